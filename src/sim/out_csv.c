/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/out_csv.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "sim/emit.h"

static void comma(struct stk_emit *e)
{
    stk_emit_bytes(e, ",", 1);
}

static void time_or_empty(struct stk_emit *e, stk_time us, bool known)
{
    comma(e);
    if (known)
        stk_emit_us(e, us);
}

struct columns { /* that are there only sometimes */
    bool turns, power;
};

static void row(struct stk_emit *e, const struct stk_trace *t, const struct stk_run_result *run,
                uint32_t i, struct columns has)
{
    const struct stk_job_result *r = &run->jobs[i];
    const struct stk_trace_job *j = &t->jobs[i];

    if (j->id & STK_TRACE_ID_NAME)
        stk_emit_csv(e, stk_names_get(&t->ids, (uint32_t)(j->id & ~STK_TRACE_ID_NAME)));
    else
        stk_emit_u64(e, j->id);
    time_or_empty(e, j->submit, true);
    time_or_empty(e, r->first_start, r->first_start >= 0);
    time_or_empty(e, r->end, r->end >= 0);
    time_or_empty(e, r->wait, r->end >= 0);
    comma(e);
    stk_emit_u64(e, r->preemptions);
    comma(e);
    stk_emit_u64(e, r->nodes);
    if (has.turns)
        time_or_empty(e, r->done, run->turns && r->end >= 0);
    if (has.power) {
        comma(e);
        if (r->end >= 0)
            stk_emit_real(e, r->gpu_kwh, 6);
    }
    stk_emit_bytes(e, "\n", 1);
}

static int write_all(FILE *f, const struct stk_trace *t, const struct stk_run_result *runs,
                     uint32_t n_runs)
{
    struct columns has = {.power = n_runs > 0 && runs[0].power}; /* all have the same nodes */
    struct stk_emit e;

    for (uint32_t k = 0; k < n_runs; k++)
        has.turns = has.turns || runs[k].turns;
    stk_emit_init(&e, f);
    if (n_runs > 1)
        stk_emit_text(&e, "bundle,");
    stk_emit_text(&e, "id,submit_s,first_start_s,end_s,wait_s,preemptions,nodes");
    stk_emit_text(&e, has.turns ? ",done_s" : "");
    stk_emit_text(&e, has.power ? ",gpu_kwh\n" : "\n");
    for (uint32_t k = 0; k < n_runs; k++) {
        for (uint32_t i = 0; i < t->n_jobs; i++) {
            if (n_runs > 1) {
                stk_emit_csv(&e, runs[k].bundle);
                comma(&e);
            }
            row(&e, t, &runs[k], i, has);
        }
    }
    return stk_emit_end(&e);
}

int stk_out_csv(const char *path, const struct stk_trace *t, const struct stk_run_result *runs,
                uint32_t n_runs, struct stk_err *err)
{
    bool to_stdout = strcmp(path, "-") == 0;
    FILE *f;
    int rc;

    for (uint32_t k = 0; k < n_runs; k++)
        if (!runs[k].jobs)
            return stk_err_set(err, -EINVAL, "run %s kept no per-job rows", runs[k].bundle);
    f = to_stdout ? stdout : fopen(path, "we");
    if (!f)
        return stk_err_set(err, -errno, "%s: %s", path, strerror(errno));
    rc = write_all(f, t, runs, n_runs);
    if (!to_stdout && fclose(f) && !rc)
        rc = -errno;
    return rc ? stk_err_set(err, rc, "%s: %s", path, strerror(-rc)) : 0;
}
