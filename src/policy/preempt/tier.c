/* SPDX-License-Identifier: Apache-2.0 */
/* tier.c - preempt: a job that cannot start may take the place of jobs of lower levels, a
 * plain one that of jobs of lower tiers (policy/preempt/levels.h).
 *
 * Who goes is the cheapest set of jobs of lower levels with which gone the job provably fits
 * (core/victims.h), lowest levels first. While they stop, the pool is claimed for the job, so that
 * nobody else takes the room.
 *
 * Cost: a look at counters when no eviction could help (core/evictable.h), else that of
 * core/victims.h.
 */
#include "policy/preempt/levels.h"
#include "policy/registry.h"

#include "core/evictable.h"
#include "core/victims.h"

static int class_of(void *ctx, const struct stk_state *s, const struct stk_job *j,
                    const struct stk_job *v, uint64_t milli)
{
    (void)ctx;
    (void)milli;
    return v->level < stk_evictable_below(s, j) ? v->level : STK_VICTIM_NEVER;
}

static uint32_t room(const void *st, const struct stk_ask *ask, stk_job_id job)
{
    static const struct stk_victim_rule rule = {.class = class_of};
    const struct stk_job *j = &ask->s->jobs[job.i];
    const uint32_t below = stk_evictable_below(ask->s, j);
    uint64_t leased = 0;

    (void)st;
    for (uint32_t l = 0; l < below; l++)
        leased += ask->s->pools[ask->pool].level_leased[l];
    if (leased == 0 || !stk_evictable_could(ask->s, j))
        return 0;
    return stk_victims_room(ask, job.i, &rule);
}

const struct stk_preempt_ops stk_preempt_tier = {
    .name = "tier",
    .help = "a job that cannot start takes the place of jobs of lower tiers, or of lower "
            "classes of priority in its own",
    .params = stk_levels_params,
    .state_size = sizeof(struct stk_levels),
    .init = stk_levels_init,
    .levels = stk_levels_n,
    .level = stk_levels_of,
    .below = stk_levels_below,
    .room = room,
};
