/* SPDX-License-Identifier: Apache-2.0 */
/* trace_swf.c - the Standard Workload Format of the Parallel Workloads Archive: 18 numbers per
 * line, -1 for unknown, header comments after ';'. Processors count as GPUs.
 *
 * Two kinds of line are not jobs that ran and are left out without complaint: those cancelled
 * before they started, and the partial executions (status 2 to 4) of a job that has a line of its
 * own. A job without a run time or a size is malformed. The preceding job (field 17) becomes a
 * dependency when it is a job read earlier that was submitted no later.
 *
 * See: Feitelson, "The Standard Workload Format", version 2.2.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/trace_formats.h"
#include "sim/trace_ids.h"
#include "sim/trace_lines.h"

enum { /* fields, from 0 */
       JOB = 0,
       SUBMIT = 1,
       WAIT = 2,
       RUN = 3,
       ALLOCATED = 4,
       REQUESTED = 7,
       REQUESTED_TIME = 8,
       STATUS = 10,
       USER = 11,
       QUEUE = 14,
       PARTITION = 15,
       PRECEDING = 16,
       N_FIELDS = 18
};

enum { FAILED = 0, COMPLETED = 1, PARTIAL_FIRST = 2, PARTIAL_LAST = 4, CANCELLED = 5 };

struct reader {
    struct stk_trace *t;
    struct stk_id_map ids;
};

struct line {
    struct stk_field f[N_FIELDS];
    int64_t run, allocated, requested, status;
};

/* A number that may be unknown: anything negative is -1. */
static int number(struct stk_trace_lines *in, const struct line *l, uint32_t i, int64_t max,
                  int64_t *ret)
{
    struct stk_field f = l->f[i];
    bool negative = f.len > 1 && f.s[0] == '-';
    uint64_t us;

    if (negative) {
        f.s++;
        f.len--;
    }
    if (!stk_field_micro(f, &us) || us > (uint64_t)max)
        return stk_lines_bad(in, "expected a number (-1 to %" PRId64 ") in field %u, got \"%s\"",
                             max / 1000000, i + 1, stk_field_show(l->f[i]).text);
    *ret = negative ? -1 : (int64_t)us;
    return 0;
}

static int seconds(struct stk_trace_lines *in, const struct line *l, uint32_t i, int64_t *ret)
{
    return number(in, l, i, STK_MAX_DURATION, ret);
}

static int whole(struct stk_trace_lines *in, const struct line *l, uint32_t i, int64_t max,
                 int64_t *ret)
{
    int64_t us = -1;
    int rc = number(in, l, i, max * 1000000, &us);

    if (rc == 0)
        *ret = us < 0 ? -1 : us / 1000000;
    return rc;
}

static int get_line(struct stk_trace_lines *in, struct line *l)
{
    uint32_t n = stk_lines_words(in, l->f, N_FIELDS);
    int rc;

    if (n != N_FIELDS)
        return stk_lines_bad_count(in, "Standard Workload Format", N_FIELDS, n);
    if ((rc = whole(in, l, STATUS, UINT16_MAX, &l->status)) < 0 ||
        (rc = seconds(in, l, RUN, &l->run)) < 0 ||
        (rc = whole(in, l, ALLOCATED, STK_MAX_GPUS, &l->allocated)) < 0 ||
        (rc = whole(in, l, REQUESTED, STK_MAX_GPUS, &l->requested)) < 0)
        return rc;
    return 0;
}

static bool is_left_out(const struct line *l)
{
    return (l->status == CANCELLED && l->run <= 0) ||
           (l->status >= PARTIAL_FIRST && l->status <= PARTIAL_LAST);
}

static int get_job(struct stk_trace_lines *in, const struct line *l, struct stk_trace_job *j)
{
    int64_t gpus = l->requested > 0 ? l->requested : l->allocated;
    int rc = seconds(in, l, SUBMIT, &j->submit);

    if (rc < 0 || (rc = seconds(in, l, REQUESTED_TIME, &j->estimate)) < 0 ||
        (rc = seconds(in, l, WAIT, &j->waited)) < 0)
        return rc;
    j->recorded = j->waited >= 0;
    if (j->submit < 0)
        return stk_lines_bad(in, "expected a submit time in field %d, got \"%s\"", SUBMIT + 1,
                             stk_field_show(l->f[SUBMIT]).text);
    if (l->run < 0)
        return stk_lines_bad(in, "expected a run time in field %d, got \"%s\"", RUN + 1,
                             stk_field_show(l->f[RUN]).text);
    if (gpus <= 0)
        return stk_lines_bad(in, "expected a number of processors in field %d or %d, got \"%s\"",
                             REQUESTED + 1, ALLOCATED + 1, stk_field_show(l->f[REQUESTED]).text);
    j->duration = l->run;
    j->gpus = (uint32_t)gpus;
    if (j->estimate < 0)
        j->estimate = 0;
    if (l->status == FAILED)
        j->cause = STK_CAUSE_FAILED;
    else if (l->status == CANCELLED)
        j->cause = STK_CAUSE_CANCELLED;
    return 0;
}

/* "user-12" in 'names', or the default name when the field is unknown. */
static int numbered_name(struct stk_trace_lines *in, struct stk_names *names, const char *prefix,
                         int64_t id, uint32_t *ret)
{
    char text[32] = "";

    if (id >= 0)
        (void)snprintf(text, sizeof(text), "%s-%" PRId64, prefix, id);
    return stk_lines_name(in, names, STK_TRACE_MAX_NAMES,
                          (struct stk_field){text, (uint32_t)strlen(text)}, NULL, ret);
}

static int get_names(struct stk_trace_lines *in, const struct line *l, struct stk_trace *t,
                     struct stk_trace_job *j)
{
    int64_t user = -1, queue = -1, partition = -1;
    int rc;

    if ((rc = whole(in, l, USER, UINT32_MAX, &user)) < 0 ||
        (rc = whole(in, l, QUEUE, UINT32_MAX, &queue)) < 0 ||
        (rc = whole(in, l, PARTITION, UINT32_MAX, &partition)) < 0 ||
        (rc = stk_lines_id(in, t, l->f[JOB], &j->id)) < 0 ||
        (rc = numbered_name(in, &t->tenants, "user", user, &j->tenant)) < 0)
        return rc;
    if (partition >= 0)
        return numbered_name(in, &t->groups, "partition", partition, &j->group);
    return numbered_name(in, &t->groups, "queue", queue, &j->group);
}

/* -ENOENT when there is none. */
static int64_t preceding(const struct reader *r, const struct line *l,
                         const struct stk_trace_job *j)
{
    uint64_t id;
    int64_t on;

    if (!stk_field_whole(l->f[PRECEDING], &id))
        return -ENOENT;
    on = stk_id_map_get(&r->ids, id);
    return on >= 0 && r->t->jobs[on].submit <= j->submit ? on : -ENOENT;
}

static int one(struct stk_trace_lines *in, void *ctx)
{
    struct reader *r = ctx;
    struct stk_trace_job j = stk_lines_job();
    struct line l;
    int64_t on;
    int rc = get_line(in, &l);

    if (rc < 0 || is_left_out(&l))
        return rc;
    if ((rc = get_job(in, &l, &j)) < 0 || (rc = get_names(in, &l, r->t, &j)) < 0)
        return rc;
    on = preceding(r, &l, &j);
    if (on >= 0) {
        struct stk_trace_dep *dep = stk_trace_push_dep(r->t);

        if (!dep)
            return -ENOMEM;
        *dep = (struct stk_trace_dep){(uint32_t)on, STK_DEP_AFTERANY};
        j.first_dep = r->t->n_deps - 1;
        j.n_deps = 1;
    }
    rc = stk_lines_push(r->t, &j);
    return rc < 0 ? rc : stk_id_map_put(&r->ids, j.id, r->t->n_jobs - 1);
}

static int parse(struct stk_trace *t, struct stk_trace_lines *in, struct stk_err *err)
{
    struct reader r = {.t = t};
    int rc;

    in->comment = ';';
    rc = stk_lines_each(in, one, &r, err);
    stk_id_map_done(&r.ids);
    return rc;
}

static bool detect(const char *data, size_t len)
{
    struct stk_trace_lines in;
    struct stk_field f[N_FIELDS];

    stk_lines_init(&in, "", data, len);
    if (!stk_lines_next(&in))
        return false;
    if (in.text.s[0] == ';')
        return true;
    if (stk_lines_words(&in, f, N_FIELDS) != N_FIELDS)
        return false;
    for (int i = 0; i < N_FIELDS; i++)
        if (f[i].s[0] != '-' && (f[i].s[0] < '0' || f[i].s[0] > '9'))
            return false;
    return true;
}

const struct stk_trace_format stk_trace_swf = {
    .name = "swf",
    .help = "Standard Workload Format: 18 numbers per line, ';' before comments; processors count "
            "as GPUs",
    .detect = detect,
    .parse = parse,
};
