/* SPDX-License-Identifier: Apache-2.0 */
#include "core/try.h"

#include <string.h>

#include "core/ahead.h"
#include "core/verbs.h"

#define MAX_STEPS 200000 /* events; beyond, it cannot be foreseen */

static uint32_t job_of(const struct stk_ahead *a)
{
    return *(const uint32_t *)a->ctx;
}

/* It has GPUs, or it ended at once: and may have been forgotten at once. */
static bool over(const struct stk_ahead *a)
{
    const struct stk_job *j = &a->s->jobs[job_of(a)];

    return j->state == STK_JOB_DONE || j->state == STK_JOB_NONE;
}

static bool enough(const struct stk_ahead *a)
{
    return stk_ahead_has(a, job_of(a)) || over(a);
}

static const struct stk_ahead_ops ops = {.holds = stk_ahead_expected, .enough = enough};

static void answer(struct stk_ahead *a, struct stk_state *s, struct stk_try *ret)
{
    const struct stk_job *j = &a->s->jobs[job_of(a)];

    stk_ahead_settle(a);
    if (a->rc == 0 && stk_ahead_has(a, job_of(a))) {
        memcpy(s->try_pieces, &a->s->pieces[j->first_piece], j->n_pieces * sizeof(*s->try_pieces));
        *ret = (struct stk_try){.answer = STK_TRY_NOW,
                                .at = a->now,
                                .evicts = a->evicts,
                                .pieces = s->try_pieces,
                                .n_pieces = j->n_pieces};
        return;
    }
    *ret = (struct stk_try){.answer = STK_TRY_UNKNOWN};
    (void)stk_core_why(a->core, (stk_job_id){job_of(a)}, &ret->why, NULL);
    (void)stk_ahead_go(a);
    if (stk_ahead_has(a, job_of(a))) {
        ret->answer = STK_TRY_LATER;
        ret->at = a->now;
    } else if (over(a)) {
        ret->answer = STK_TRY_NEVER;
    }
}

int stk_core_try(struct stk_core *core, const struct stk_job_spec *spec, stk_time now,
                 struct stk_try *ret, struct stk_err *err)
{
    struct stk_state *s = &core->s;
    uint32_t job = stk_core_next_job(core).i;
    struct stk_event ev = {.at = now, .type = STK_EV_SUBMIT, .job = {job}, .u.spec = spec};
    struct stk_ahead a;
    int rc = stk_submit_check(s, spec, err);

    if (rc < 0)
        return rc;
    rc = stk_ahead_init(&a, core, &ops, &job) < 0 ? stk_err_set(err, -ENOMEM, "out of memory")
                                                  : stk_ahead_fork(&a, now, err);
    a.most = MAX_STEPS;
    rc = rc < 0 ? rc : stk_core_apply(a.core, &ev, err);
    if (rc == 0) {
        answer(&a, s, ret);
        rc = a.rc < 0 ? stk_err_set(err, a.rc, "out of memory") : 0;
    }
    stk_ahead_done(&a);
    return rc;
}
