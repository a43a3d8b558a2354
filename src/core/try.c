/* SPDX-License-Identifier: Apache-2.0 */
#include "core/try.h"

#include <string.h>

#include "core/index.h"
#include "core/verbs.h"

#define MAX_DECISIONS 64
#define MAX_STEPS 200000 /* events; beyond, it cannot be foreseen */

struct forecast {
    struct stk_core *core; /* the copy */
    struct stk_state *s;
    uint32_t job;
    stk_time now;
    uint32_t steps, evicts;
    int rc;
};

static void tell(struct forecast *f, struct stk_event ev)
{
    ev.at = f->now;
    if (f->rc == 0)
        f->rc = stk_core_apply(f->core, &ev, NULL);
    f->steps++;
}

static void end(struct forecast *f, uint32_t job, enum stk_cause cause)
{
    const struct stk_job *j = &f->s->jobs[job];

    tell(f, (struct stk_event){.type = STK_EV_EXITED,
                               .job = {job},
                               .lease = j->lease ? j->lease : j->slept,
                               .u.exit = {.cause = cause}});
}

/* What is on its way has arrived: starts and stops are done. */
static void settle(struct forecast *f)
{
    for (uint32_t i = 0; i < f->s->n_jobs; i++) {
        const struct stk_job *j = &f->s->jobs[i];

        if (j->state == STK_JOB_STOPPING)
            end(f, i, j->cancel_wanted ? STK_CAUSE_CANCELLED : STK_CAUSE_EVICTED);
        else if (j->state == STK_JOB_PLACED)
            tell(f, (struct stk_event){.type = STK_EV_STARTED, .job = {i}, .lease = j->lease});
    }
}

static bool placed(const struct forecast *f)
{
    return f->s->jobs[f->job].state == STK_JOB_PLACED;
}

/* It ended at once: and may have been forgotten at once. */
static bool over(const struct forecast *f)
{
    return f->s->jobs[f->job].state == STK_JOB_DONE || f->s->jobs[f->job].state == STK_JOB_NONE;
}

/* Decides all there is to decide at this time; the engine of the forecast acts at once. */
static void decide(struct forecast *f)
{
    struct stk_event out[MAX_DECISIONS];
    uint32_t n;

    if (stk_core_tick_due(f->core, f->now))
        tell(f, (struct stk_event){.type = STK_EV_TICK});
    while (f->rc == 0 && f->steps < MAX_STEPS &&
           (n = stk_core_decide(f->core, f->now, out, MAX_DECISIONS)) > 0) {
        for (uint32_t i = 0; i < n; i++)
            tell(f, out[i]);
        for (uint32_t i = 0; i < n && !placed(f); i++) {
            if (out[i].type == STK_EV_EVICT) {
                f->evicts++;
                end(f, out[i].job.i, STK_CAUSE_EVICTED);
            } else {
                tell(f, (struct stk_event){
                            .type = STK_EV_STARTED, .job = out[i].job, .lease = out[i].lease});
            }
        }
        if (placed(f))
            return;
    }
}

/* When a job is next expected to end; STK_NEVER_TIME. Those that are overdue are not. */
static stk_time next_end(const struct forecast *f)
{
    stk_time t = STK_NEVER_TIME;

    for (uint32_t p = 0; p < f->s->n_pools; p++) {
        const struct stk_oent *e = stk_ocursor_get(
            &f->s->trees, stk_otree_seek(&f->s->trees, &f->s->pools[p].ends, f->now + 1, 0));

        if (e && e->key < t)
            t = e->key;
    }
    return t;
}

static void end_due(struct forecast *f)
{
    for (uint32_t p = 0; p < f->s->n_pools; p++) {
        const struct stk_oent *e;

        while (f->rc == 0 &&
               (e = stk_ocursor_get(&f->s->trees, stk_otree_seek(&f->s->trees, &f->s->pools[p].ends,
                                                                 f->now, 0))) != NULL &&
               e->key == f->now)
            end(f, e->id, STK_CAUSE_OK);
    }
}

/* Time goes on until the job starts. False: that cannot be foreseen. */
static bool wait_for_start(struct forecast *f)
{
    while (f->rc == 0 && f->steps < MAX_STEPS && !over(f)) {
        stk_time t = next_end(f), w = stk_core_wake(f->core, f->now);

        t = w < t ? w : t;
        if (t > STK_MAX_DURATION)
            return false;
        f->now = t;
        f->steps++;
        end_due(f);
        decide(f);
        if (placed(f))
            return true;
    }
    return false;
}

static void answer(struct forecast *f, struct stk_state *s, struct stk_try *ret)
{
    const struct stk_job *j = &f->s->jobs[f->job];

    settle(f);
    decide(f);
    if (f->rc == 0 && placed(f)) {
        memcpy(s->try_pieces, &f->s->pieces[j->first_piece], j->n_pieces * sizeof(*s->try_pieces));
        *ret = (struct stk_try){.answer = STK_TRY_NOW,
                                .at = f->now,
                                .evicts = f->evicts,
                                .pieces = s->try_pieces,
                                .n_pieces = j->n_pieces};
        return;
    }
    *ret = (struct stk_try){.answer = STK_TRY_UNKNOWN};
    (void)stk_core_why(f->core, (stk_job_id){f->job}, &ret->why, NULL);
    if (wait_for_start(f)) {
        ret->answer = STK_TRY_LATER;
        ret->at = f->now;
    } else if (over(f)) {
        ret->answer = STK_TRY_NEVER;
    }
}

/* Leased jobs by expected end, whatever the policies. */
static int keep_ends(struct stk_state *s)
{
    if (s->keep_ends)
        return 0;
    if (stk_opool_reserve(&s->trees, &s->mem, s->n_leased) < 0)
        return -ENOMEM;
    s->keep_ends = true;
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];
        const struct stk_oent e = {j->expected_end, j->number, i, j->gpus};

        if (j->state == STK_JOB_PLACED || j->state == STK_JOB_RUNNING)
            stk_otree_insert(&s->trees, &s->pools[j->pool].ends, e);
    }
    return 0;
}

int stk_core_try(struct stk_core *core, const struct stk_job_spec *spec, stk_time now,
                 struct stk_try *ret, struct stk_err *err)
{
    struct stk_state *s = &core->s;
    struct forecast f = {.now = now};
    struct stk_event ev = {.at = now, .type = STK_EV_SUBMIT, .u.spec = spec};
    int rc = stk_submit_check(s, spec, err);

    rc = rc < 0 ? rc : stk_core_fork(core, &f.core, err);
    if (rc < 0)
        return rc;
    f.s = &f.core->s;
    ev.job = stk_core_next_job(f.core);
    f.job = ev.job.i;
    rc = keep_ends(f.s) < 0 ? stk_err_set(err, -ENOMEM, "out of memory")
                            : stk_core_apply(f.core, &ev, err);
    if (rc == 0) {
        answer(&f, s, ret);
        rc = f.rc < 0 ? stk_err_set(err, f.rc, "out of memory") : 0;
    }
    stk_core_free(f.core);
    return rc;
}
