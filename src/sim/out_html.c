/* SPDX-License-Identifier: Apache-2.0 */
/* out_html.c - fills the two placeholders of the page: the title, as HTML text, and the data, as
 * JSON inside a <script> that is never executed. Both are escaped where they are written (emit.h),
 * and the page puts strings into the document as text only; either alone would be enough.
 *
 * The size is bounded whatever the trace: so many points a chart, so many tenants.
 */
#include "sim/out_html.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/emit.h"
#include "sim/out_json.h"
#include "sim/series.h"
#include "sim/stats.h"

#define CDF_POINTS 400
#define TIME_POINTS 480
#define TENANTS 12
#define TIME_DECIMALS 3

/* Made of report.html by scripts/embed. */
extern const char stk_report_html[];

struct report {
    struct stk_emit emit;
    const struct stk_trace *trace;
    stk_time *times; /* 2 * n_jobs: values and scratch */
    struct stk_bins bins;
    uint32_t tenants[TENANTS];
    uint32_t n_tenants;
};

enum which { WHICH_JCT, WHICH_WAIT };

static void number(struct stk_emit *e, bool first, double v, unsigned digits)
{
    if (!first)
        stk_emit_bytes(e, ",", 1);
    stk_emit_real(e, v, digits);
}

static void write_cdf(struct report *p, const struct stk_run_result *r, enum which which)
{
    stk_time points[CDF_POINTS];
    size_t n = 0;
    uint32_t n_points;

    for (uint32_t i = 0; r->jobs && i < p->trace->n_jobs; i++) {
        const struct stk_job_result *j = &r->jobs[i];

        if (j->end >= 0)
            p->times[n++] = which == WHICH_WAIT ? j->wait : j->end - p->trace->jobs[i].submit;
    }
    stk_times_sort(p->times, p->times + p->trace->n_jobs, n);
    n_points = stk_series_cdf(p->times, n, points, CDF_POINTS);
    stk_emit_member(&p->emit, which == WHICH_WAIT ? "wait" : "jct");
    stk_emit_text(&p->emit, "[");
    for (uint32_t i = 0; i < n_points; i++)
        number(&p->emit, i == 0, (double)points[i] / (double)STK_SECOND, TIME_DECIMALS);
    stk_emit_text(&p->emit, "]");
}

static void write_timeline(struct report *p, const struct stk_run_result *r)
{
    double busy[TIME_POINTS];
    uint32_t waiting[TIME_POINTS];
    uint32_t n = r->samples ? stk_series_sample(r, &p->bins, busy, waiting) : 0;

    stk_emit_member(&p->emit, "util");
    stk_emit_text(&p->emit, "[");
    for (uint32_t i = 0; r->gpus && i < n; i++)
        number(&p->emit, i == 0, busy[i] / (double)r->gpus, 4);
    stk_emit_text(&p->emit, "]");
    stk_emit_member(&p->emit, "queue");
    stk_emit_text(&p->emit, "[");
    for (uint32_t i = 0; i < n; i++)
        number(&p->emit, i == 0, waiting[i], 0);
    stk_emit_text(&p->emit, "]");
}

static int write_tenants(struct report *p, const struct stk_run_result *r)
{
    struct stk_tenant_wait rows[TENANTS];
    int rc = stk_tenant_waits(r, p->trace, p->tenants, p->n_tenants, rows);

    if (rc < 0)
        return rc;
    stk_emit_member(&p->emit, "tenants");
    for (uint32_t i = 0; i < p->n_tenants; i++) {
        stk_emit_text(&p->emit, i ? ",[" : "[[");
        number(&p->emit, true, rows[i].jobs, 0);
        number(&p->emit, false, rows[i].avg_wait_s, TIME_DECIMALS);
        number(&p->emit, false, rows[i].p50_wait_s, TIME_DECIMALS);
        number(&p->emit, false, rows[i].p90_wait_s, TIME_DECIMALS);
        number(&p->emit, false, rows[i].gpu_hours, 1);
        stk_emit_text(&p->emit, "]");
    }
    stk_emit_text(&p->emit, p->n_tenants ? "]" : "[]");
    return 0;
}

static int write_run(struct report *p, const struct stk_run_result *r)
{
    stk_out_json_members(&p->emit, r);
    stk_emit_member(&p->emit, "gpus");
    stk_emit_u64(&p->emit, r->gpus);
    stk_emit_member(&p->emit, "nodes");
    stk_emit_u64(&p->emit, r->nodes);
    stk_emit_member(&p->emit, "pools");
    stk_emit_u64(&p->emit, r->pools);
    write_cdf(p, r, WHICH_JCT);
    write_cdf(p, r, WHICH_WAIT);
    write_timeline(p, r);
    return write_tenants(p, r);
}

static int write_data(struct report *p, const struct stk_run_result *runs, uint32_t n_runs)
{
    struct stk_emit *e = &p->emit;
    int rc = 0;

    stk_emit_text(e, "{\"trace_jobs\":");
    stk_emit_u64(e, p->trace->n_jobs);
    stk_emit_member(e, "t0");
    stk_emit_us(e, p->bins.start);
    stk_emit_member(e, "dt");
    stk_emit_us(e, p->bins.width);
    stk_emit_member(e, "n_tenants");
    stk_emit_u64(e, p->trace->tenants.n);
    stk_emit_member(e, "tenants");
    stk_emit_text(e, "[");
    for (uint32_t i = 0; i < p->n_tenants; i++) {
        stk_emit_text(e, i ? "," : "");
        stk_emit_json(e, stk_names_get(&p->trace->tenants, p->tenants[i]));
    }
    stk_emit_text(e, "]");
    stk_emit_member(e, "runs");
    stk_emit_text(e, "[");
    for (uint32_t i = 0; i < n_runs && !rc; i++) {
        stk_emit_text(e, i ? ",\n{" : "\n{");
        rc = write_run(p, &runs[i]);
        stk_emit_text(e, "}");
    }
    stk_emit_text(e, "]}");
    return rc;
}

/* The page, with what is between @@ and @@ replaced. */
static int write_page(struct report *p, const struct stk_run_result *runs, uint32_t n_runs,
                      const char *title)
{
    const char *at = stk_report_html;
    const char *mark;
    int rc = 0, end_rc;

    while ((mark = strstr(at, "@@")) && !rc) {
        stk_emit_bytes(&p->emit, at, (size_t)(mark - at));
        if (strncmp(mark, "@@TITLE@@", 9) == 0)
            stk_emit_html(&p->emit, title);
        else
            rc = write_data(p, runs, n_runs);
        at = strstr(mark + 2, "@@") + 2;
    }
    stk_emit_text(&p->emit, at);
    end_rc = stk_emit_end(&p->emit);
    return rc ? rc : end_rc;
}

/* What can fail for want of memory, before the file is touched. */
static struct report *report_new(const struct stk_trace *t, const struct stk_run_result *runs,
                                 uint32_t n_runs)
{
    struct report *p = calloc(1, sizeof(*p));
    int n;

    if (!p)
        return NULL;
    p->trace = t;
    p->times = malloc(2 * ((size_t)t->n_jobs + 1) * sizeof(*p->times));
    p->bins = stk_series_bins(runs, n_runs, TIME_POINTS);
    n = stk_tenants_top(t, p->tenants, TENANTS);
    if (!p->times || n < 0) {
        free(p->times);
        free(p);
        return NULL;
    }
    p->n_tenants = (uint32_t)n;
    return p;
}

int stk_out_html(const char *path, const struct stk_trace *t, const struct stk_run_result *runs,
                 uint32_t n_runs, const char *title, struct stk_err *err)
{
    bool to_stdout = strcmp(path, "-") == 0;
    struct report *p = report_new(t, runs, n_runs);
    FILE *f;
    int rc;

    if (!p)
        return stk_err_set(err, -ENOMEM, "%s: out of memory for the report", path);
    f = to_stdout ? stdout : fopen(path, "we");
    if (f) {
        stk_emit_init(&p->emit, f);
        rc = write_page(p, runs, n_runs, title);
        if (!to_stdout && fclose(f) && !rc)
            rc = -errno;
    } else {
        rc = -errno;
    }
    free(p->times);
    free(p);
    return rc ? stk_err_set(err, rc, "%s: %s", path, strerror(-rc)) : 0;
}
