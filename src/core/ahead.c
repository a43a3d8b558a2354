/* SPDX-License-Identifier: Apache-2.0 */
/* ahead.c - see ahead.h. A heap of the ends of leased jobs, and the loop of drive/loop.c with an
 * engine that acts at once. */
#include "core/ahead.h"

#include <string.h>

#define MAX_DECISIONS 64

int stk_ahead_init(struct stk_ahead *a, const struct stk_core *core,
                   const struct stk_ahead_ops *ops, void *ctx)
{
    const struct stk_state *s = stk_core_state(core);
    const struct stk_mem *m = &s->mem;
    uint32_t slots = s->n_jobs + 2; /* one may be submitted to the fork */

    *a = (struct stk_ahead){
        .from = core, .ops = ops, .ctx = ctx, .most = UINT32_MAX, .pause = UINT32_MAX, .s = s};
    if (stk_mem_grow(m, &a->pos, &a->cap_pos, slots, sizeof(*a->pos)) < 0 ||
        stk_mem_grow(m, &a->still, &a->cap_still, s->n_pools, sizeof(*a->still)) < 0 ||
        stk_heap_reserve(&a->ends, m, slots) < 0)
        return -ENOMEM;
    memset(a->still, 0, s->n_pools * sizeof(*a->still));
    return 0;
}

void stk_ahead_done(struct stk_ahead *a)
{
    const struct stk_mem *m = &stk_core_state(a->from)->mem;

    stk_core_free(a->core);
    a->core = NULL;
    stk_mem_drop(m, &a->pos, &a->cap_pos, sizeof(*a->pos));
    stk_mem_drop(m, &a->still, &a->cap_still, sizeof(*a->still));
    stk_heap_done(&a->ends, m);
}

void stk_ahead_only(struct stk_ahead *a, const uint32_t *jobs, uint32_t n)
{
    const struct stk_state *s = stk_core_state(a->from);
    bool linked = s->n_tenants > 0 || s->cap_w > 0;

    for (uint32_t i = 0; i < n; i++)
        linked |= s->jobs[jobs[i]].unmet > 0;
    for (uint32_t i = 0; i < s->n_pools; i++)
        a->still[i] = !linked;
    for (uint32_t i = 0; i < n; i++)
        a->still[s->jobs[jobs[i]].pool] = false;
}

int stk_ahead_fork(struct stk_ahead *a, stk_time now, struct stk_err *err)
{
    stk_core_free(a->core);
    a->core = NULL;
    a->now = now;
    a->rc = 0;
    a->undecided = false;
    a->steps = a->evicts = a->ends.n = 0;
    memset(a->pos, 0, a->cap_pos * sizeof(*a->pos));
    if (stk_core_fork(a->from, &a->core, err) < 0)
        return -ENOMEM;
    a->s = stk_core_state(a->core);
    return 0;
}

void stk_ahead_tell(struct stk_ahead *a, struct stk_event ev)
{
    ev.at = a->now;
    if (a->rc == 0)
        a->rc = stk_core_apply(a->core, &ev, NULL);
    a->steps++;
}

bool stk_ahead_has(const struct stk_ahead *a, uint32_t job)
{
    const struct stk_job *j = &a->s->jobs[job];

    return j->state == STK_JOB_PLACED || j->state == STK_JOB_RUNNING;
}

stk_time stk_ahead_expected(struct stk_ahead *a, uint32_t job)
{
    stk_time left = a->s->jobs[job].expected_end - a->now;

    return left > 0 ? left : STK_NEVER_TIME;
}

static void end(struct stk_ahead *a, uint32_t job, enum stk_cause cause)
{
    const struct stk_job *j = &a->s->jobs[job];

    stk_heap_remove(&a->ends, a->pos, job);
    stk_ahead_tell(a, (struct stk_event){.type = STK_EV_EXITED,
                                         .job = {job},
                                         .lease = j->lease ? j->lease : j->slept,
                                         .u.exit = {.cause = cause}});
}

static void starts(struct stk_ahead *a, uint32_t job)
{
    const struct stk_job *j = &a->s->jobs[job];
    stk_time t;

    if (j->state == STK_JOB_PLACED)
        stk_ahead_tell(a,
                       (struct stk_event){.type = STK_EV_STARTED, .job = {job}, .lease = j->lease});
    if (a->ops->started)
        a->ops->started(a, job);
    if (a->rc < 0 || a->still[j->pool])
        return;
    t = a->ops->holds(a, job);
    if (t != STK_NEVER_TIME)
        stk_heap_put(&a->ends, a->pos, job, a->now + t, j->number);
}

static bool goes_on(const struct stk_ahead *a)
{
    return a->rc == 0 && a->steps < a->most && !a->ops->enough(a);
}

static bool pauses(const struct stk_ahead *a)
{
    return a->steps >= a->pause && goes_on(a);
}

static void decide(struct stk_ahead *a)
{
    struct stk_event out[MAX_DECISIONS];
    uint32_t n;

    if (stk_core_tick_due(a->core, a->now))
        stk_ahead_tell(a, (struct stk_event){.type = STK_EV_TICK});
    while (goes_on(a) && !pauses(a) &&
           (n = stk_core_decide(a->core, a->now, out, MAX_DECISIONS)) > 0) {
        for (uint32_t i = 0; i < n; i++)
            stk_ahead_tell(a, out[i]);
        for (uint32_t i = 0; i < n && a->rc == 0; i++) {
            if (out[i].type == STK_EV_EVICT) {
                a->evicts++;
                end(a, out[i].job.i, STK_CAUSE_EVICTED);
            } else if (out[i].type == STK_EV_PLACE) {
                starts(a, out[i].job.i);
            }
        }
    }
    a->undecided = pauses(a);
}

void stk_ahead_settle(struct stk_ahead *a)
{
    for (uint32_t i = 0; i < a->s->n_jobs && a->rc == 0; i++) {
        const struct stk_job *j = &a->s->jobs[i];

        if (j->state == STK_JOB_STOPPING)
            end(a, i, j->cancel_wanted ? STK_CAUSE_CANCELLED : STK_CAUSE_EVICTED);
        else if (stk_ahead_has(a, i))
            starts(a, i);
    }
    decide(a);
}

static void end_due(struct stk_ahead *a)
{
    while (a->rc == 0 && a->ends.n > 0 && a->ends.item[0].key <= a->now)
        end(a, a->ends.item[0].id, STK_CAUSE_OK);
}

bool stk_ahead_go(struct stk_ahead *a)
{
    if (a->undecided)
        decide(a);
    while (goes_on(a) && !pauses(a)) {
        stk_time t = a->ends.n > 0 ? a->ends.item[0].key : STK_NEVER_TIME;
        stk_time w = stk_core_wake(a->core, a->now);

        t = w < t ? w : t;
        if (t > STK_MAX_DURATION)
            return false;
        a->now = t;
        a->steps++;
        end_due(a);
        decide(a);
    }
    return pauses(a);
}
