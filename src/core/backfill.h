/* SPDX-License-Identifier: Apache-2.0 */
/* backfill.h - reserved starts: one for the first job that cannot start (easy), or one for every
 * waiting job (conservative). Reservations are caches: they follow from the state and can be made
 * again at any time. */
#ifndef STK_CORE_BACKFILL_H
#define STK_CORE_BACKFILL_H

#include "core/state.h"

/* Easy: finds the earliest time at which the job fits if running jobs end as expected, and reserves
 * nodes for it from then on. Cost: the leases that end before that time. */
void stk_reserve_for(struct stk_state *s, uint32_t job, stk_time now);

/* A job of this shape that outlives the reservation: room for it that the reservation does not
 * need. As stk_place_try(). */
bool stk_reserve_spare(struct stk_state *s, uint32_t shape, uint32_t *ret_n);

/* Conservative: plans the first backfill.depth waiting jobs of the pool again, in rank order. Each
 * costs O(log n) per gap that is too short for it. */
void stk_plan_rebuild(struct stk_state *s, uint32_t pool, stk_time now);
/* A job entered the queue: planned after all others, or the plan is dropped when it is not last. */
void stk_plan_append(struct stk_state *s, uint32_t job);

/* A planned job starts now. */
void stk_plan_started(struct stk_state *s, uint32_t job);

/* What was planned can no longer be: all is planned from nothing. */
static inline void stk_plan_drop(struct stk_pool *p)
{
    p->plan_valid = p->plan_holds = false;
}

/* More is free than was planned with: jobs may move up, and none moves back. */
static inline void stk_plan_gains(struct stk_pool *p)
{
    p->plan_valid = false;
}

#endif
