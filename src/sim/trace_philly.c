/* SPDX-License-Identifier: Apache-2.0 */
/* trace_philly.c - the Microsoft Philly trace, flattened to one line per job.
 *
 * There are no users in it. A virtual cluster was a team's share of the machine, so it serves as
 * the tenant as well as the group.
 *
 * See: Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads",
 * ATC 2019.
 */
#include "sim/trace_formats.h"
#include "sim/trace_lines.h"

#define COLUMNS "job_id,submit_s,gpus,duration_s,vc"
enum { JOB_ID, SUBMIT, GPUS, DURATION, VC, N_FIELDS };

struct reader {
    struct stk_trace *t;
    struct stk_last_name group, tenant;
};

static int one(struct stk_trace_lines *in, void *ctx)
{
    struct reader *r = ctx;
    struct stk_trace_job j = stk_lines_job();
    struct stk_field f[N_FIELDS];
    uint32_t n = stk_lines_split(in, ',', f, N_FIELDS);
    int rc = 0;

    if (n != N_FIELDS)
        return stk_lines_bad_count(in, COLUMNS, N_FIELDS, n);
    if ((rc = stk_lines_seconds(in, f[SUBMIT], SUBMIT + 1, &j.submit)) < 0 ||
        (rc = stk_lines_gpus(in, f[GPUS], GPUS + 1, &j.gpus)) < 0 ||
        (rc = stk_lines_seconds(in, f[DURATION], DURATION + 1, &j.duration)) < 0 ||
        (rc = stk_lines_id(in, r->t, f[JOB_ID], &j.id)) < 0 ||
        (rc = stk_lines_name(in, &r->t->groups, STK_TRACE_MAX_NAMES, f[VC], &r->group, &j.group)) <
            0 ||
        (rc = stk_lines_name(in, &r->t->tenants, STK_TRACE_MAX_NAMES, f[VC], &r->tenant,
                             &j.tenant)) < 0)
        return rc;
    return stk_lines_push(r->t, &j);
}

static int parse(struct stk_trace *t, struct stk_trace_lines *in, struct stk_err *err)
{
    struct reader r = {.t = t};
    int rc = stk_lines_header(in, COLUMNS, err);

    return rc < 0 ? rc : stk_lines_each(in, one, &r, err);
}

static bool detect(const char *data, size_t len)
{
    return stk_text_begins(data, len, COLUMNS);
}

const struct stk_trace_format stk_trace_philly = {
    .name = "philly",
    .help = "Microsoft Philly as CSV: " COLUMNS,
    .detect = detect,
    .parse = parse,
};
