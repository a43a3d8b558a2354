/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - who waits, in which order, and who could be woken by what.
 *
 * Waiting jobs of one shape lie in one ordered tree; a pool keeps a heap of its shapes by their
 * first job. A shape that was tried and does not fit is parked until a node has what it lacks, so
 * an arrival or a release costs O(log) whatever the number of waiting jobs. Policies that decide a
 * pool whole (srtf, las...) instead have every active job in ordered trees, one per rate at which
 * ranks move.
 *
 * Only apply() calls the changing functions. Those marked R need stk_queue_reserve() before, which
 * is where memory is made ready and may fail; they themselves cannot.
 */
#ifndef STK_CORE_QUEUE_H
#define STK_CORE_QUEUE_H

#include "core/state.h"

int stk_queue_reserve(struct stk_state *s, uint32_t pool);

uint32_t stk_shape_get(struct stk_state *s, const struct stk_demand *d, uint32_t pool); /* R */
bool stk_shape_known(const struct stk_state *s, const struct stk_demand *d, uint32_t pool);
void stk_shape_drop(struct stk_state *s, uint32_t shape); /* one job fewer needs it */

void stk_queue_enter(struct stk_state *s, uint32_t job);              /* R: starts waiting */
void stk_queue_leave(struct stk_state *s, uint32_t job, bool starts); /* no longer waits */
void stk_queue_lease(struct stk_state *s, uint32_t job);              /* R: now has a lease */
void stk_queue_unlease(struct stk_state *s, uint32_t job);            /* no longer */
void stk_queue_rekey(struct stk_state *s, uint32_t job);              /* R: its key jumped */

/* A node has more free than before: shapes that may fit now get ready. */
void stk_queue_wake(struct stk_state *s, uint32_t node);
/* More is free, or on its way: with victims besides, it may be enough for a job of a higher tier.
 */
void stk_queue_retry(struct stk_state *s, uint32_t pool);
/* The pool's reservation is gone: shapes parked for it get ready. */
void stk_queue_unreserve(struct stk_state *s, uint32_t pool);
void stk_queue_mark_dirty(struct stk_state *s, uint32_t pool);

/* Called by decide(): these change caches only. */
void stk_queue_due(struct stk_state *s, uint32_t job); /* its planned start has come */
void stk_queue_park(struct stk_state *s, uint32_t shape, enum stk_parked why);
void stk_queue_requeue_shape(struct stk_state *s, uint32_t shape, const struct stk_oent *at);

#endif
