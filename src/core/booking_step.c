/* SPDX-License-Identifier: Apache-2.0 */
/* booking_step.c - what reservations decide: that they are over, and who must go for those that
 * evict: lowest tier first, then lowest priority, then latest start; never critical jobs, nor those
 * that use a reservation themselves, are protected (core/stake.h) or needed (core/budget.h). */
#include "core/booking.h"
#include "core/budget.h"
#include "core/decide.h"
#include "core/drain.h"
#include "core/stake.h"

/* ---- decisions ---- */

static bool is_over(const struct stk_state *s, const struct stk_booking *b, stk_time now,
                    enum stk_over_why *ret)
{
    if (b->drain)
        return stk_drain_over(s, b, now, ret);
    if (now >= b->end)
        *ret = STK_OVER_ENDED;
    else if (b->open && now >= stk_booking_lapses(b))
        *ret = STK_OVER_LAPSED;
    else
        return false;
    return true;
}

/* GPUs that the fence lacks and that are not on their way. */
static uint32_t lacks(const struct stk_state *s, const struct stk_fence *f)
{
    uint32_t want = stk_fence_wants(f) - f->held, coming = 0;

    for (uint32_t i = 0; want > 0 && i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        for (uint32_t k = 0; j->state == STK_JOB_STOPPING && k < j->n_pieces; k++)
            if (s->pieces[j->first_piece + k].node.i == f->node)
                coming += stk_booking_keeps(s, j, &s->pieces[j->first_piece + k]);
    }
    return want > coming ? want - coming : 0;
}

/* Whether the first gives way before the second. */
static bool goes_first(const struct stk_job *a, const struct stk_job *b)
{
    if (a->tier != b->tier)
        return a->tier < b->tier;
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->started != b->started ? a->started > b->started : a->number > b->number;
}

/* It is neither protected nor needed; if so, this is looked at again when that is over. */
static bool may_go(struct stk_state *s, uint32_t job, stk_time now)
{
    const stk_time until = stk_stake_until(s, &s->jobs[job], now);

    if (until <= now)
        return stk_budget_spares(s, job, 1);
    stk_stake_spared(s, s->jobs[job].pool, until);
    return false;
}

/* One who has had GPUs of the node since before it was opened; STK_NONE: nobody who may be stopped.
 */
static uint32_t victim(struct stk_state *s, const struct stk_fence *f, stk_time now)
{
    const stk_lease_id opened = s->book.row[f->row].opened;
    uint32_t found = STK_NONE;

    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];
        bool there = false;

        if (!stk_has_gpus(j) || j->lease >= opened || j->tier == STK_TIER_CRITICAL ||
            s->book.charged[i])
            continue;
        for (uint32_t k = 0; k < j->n_pieces; k++)
            there |= s->pieces[j->first_piece + k].node.i == f->node &&
                     s->pieces[j->first_piece + k].gpus > 0;
        if (there && (found == STK_NONE || goes_first(j, &s->jobs[found])) && may_go(s, i, now))
            found = i;
    }
    return found;
}

static uint32_t evict_for(struct stk_state *s, const struct stk_booking *b, stk_time now,
                          struct stk_event *out)
{
    for (uint32_t i = 0; i < b->n; i++) {
        const struct stk_fence *f = &s->book.fence[b->first + i];
        uint32_t job = lacks(s, f) > 0 ? victim(s, f, now) : STK_NONE;

        if (job == STK_NONE)
            continue;
        *out = stk_decide_evict(s, now, job, STK_NONE);
        return 1;
    }
    return 0;
}

uint32_t stk_booking_step(struct stk_state *s, stk_time now, struct stk_event *out, uint32_t cap)
{
    (void)cap;
    for (uint32_t i = 0; i < s->book.n; i++) {
        const struct stk_booking *b = &s->book.row[i];
        enum stk_over_why why;

        if (is_over(s, b, now, &why)) {
            *out = (struct stk_event){.at = now,
                                      .type = STK_EV_UNRESERVE,
                                      .job = {STK_NONE},
                                      .u.unreserve = {b->number, why}};
            return 1;
        }
        if (b->evict && b->open && evict_for(s, b, now, out))
            return 1;
    }
    return 0;
}
