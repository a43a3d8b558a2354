/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - who waits, in which order, and who could be woken by what.
 *
 * Waiting jobs of one shape (core/shape.h) lie in one ordered tree. Policies that decide a pool
 * whole (srtf, las...) instead have every active job in ordered trees, one per rate at which ranks
 * move. Each function costs O(log jobs).
 *
 * Only apply() calls the changing functions. Those marked R need stk_queue_reserve() before, which
 * is where memory is made ready and may fail; they themselves cannot.
 */
#ifndef STK_CORE_QUEUE_H
#define STK_CORE_QUEUE_H

#include "core/shape.h"

int stk_queue_reserve(struct stk_state *s, uint32_t pool);

/* The same for all live jobs of all pools, each of which may get a shape of its own. */
int stk_queue_reserve_all(struct stk_state *s);

void stk_queue_enter(struct stk_state *s, uint32_t job);              /* R: starts waiting */
void stk_queue_leave(struct stk_state *s, uint32_t job, bool starts); /* no longer waits */
void stk_queue_lease(struct stk_state *s, uint32_t job);              /* R: now has a lease */
void stk_queue_unlease(struct stk_state *s, uint32_t job);            /* no longer */
/* R: it has a lease, and is expected to run so long in all */
void stk_queue_expect(struct stk_state *s, uint32_t job, stk_time estimate);
void stk_queue_rekey(struct stk_state *s, uint32_t job); /* R: its key jumped */

/* The next job from slot 'from' on that has a lease in the pool and is being stopped, or STK_NONE:
 * it lies in no tree any more, but may be gone at any time. O(jobs) when there are any, else O(1).
 */
uint32_t stk_queue_stopping(const struct stk_state *s, uint32_t pool, uint32_t from);

/* Its planned start has come. Called by decide(): changes caches only. */
void stk_queue_due(struct stk_state *s, uint32_t job);

#endif
