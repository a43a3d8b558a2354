/* SPDX-License-Identifier: Apache-2.0 */
/* shape.h - waiting jobs that ask for the same share one shape, and one verdict.
 *
 * A pool keeps a heap of its ready shapes, by the rank of their first job. One that was tried and
 * does not fit is parked under the GPUs it needs on a node, and woken when a node has them; one
 * that would delay a reservation is parked until that changes. So an arrival or a release costs
 * O(log shapes) plus the shapes it wakes, whatever the number of waiting jobs.
 *
 * Parking is a cache: every function here but get and drop only makes deciding fast.
 */
#ifndef STK_CORE_SHAPE_H
#define STK_CORE_SHAPE_H

#include "core/state.h"

struct stk_under;

/* The shape of this demand under these limits (core/limit.h), one more job using it. Needs
 * stk_queue_reserve() before. */
uint32_t stk_shape_get(struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                       const struct stk_under *u);
/* The demand without what makes no difference in the pool: what no node there limits, wishes that
 * are granted anyhow. Equal ones share a shape. */
struct stk_demand stk_shape_relevant(const struct stk_state *s, const struct stk_demand *d,
                                     uint32_t pool);
bool stk_shape_known(const struct stk_state *s, const struct stk_job_spec *spec);
void stk_shape_drop(struct stk_state *s, uint32_t shape); /* one job fewer needs it */

/* They ask for the same of the same pool, whatever limits they are under. */
bool stk_shape_same(const struct stk_state *s, uint32_t a, uint32_t b);

/* GPU types that can hold it: of those it accepts, in MIG mode with its profile, or not in that
 * mode when it asks for no instance. The demand of a shape has these. */
uint64_t stk_shape_types(const struct stk_state *s, const struct stk_demand *d, uint32_t pool);

/* The job, which lies in no shape's tree, gets the shape of its demand pinned to this place; NULL:
 * not pinned. Needs stk_queue_reserve() before. */
void stk_shape_pin(struct stk_state *s, struct stk_job *j, const struct stk_piece *at);

/* The same: it is plain from now on, or no longer. */
void stk_shape_rights(struct stk_state *s, struct stk_job *j);
/* The same: it belongs to these holders of reservations (core/booking.h). */
void stk_shape_belongs(struct stk_state *s, struct stk_job *j, uint64_t holders);

/* GPUs of the node on which jobs sleep. O(shapes). */
uint64_t stk_shape_pinned(const struct stk_state *s, uint32_t node);

/* Something happened in the pool that may let a job start. */
void stk_shape_mark_dirty(struct stk_state *s, uint32_t pool);

void stk_shape_park(struct stk_state *s, uint32_t shape, enum stk_parked why);
/* For room, while another that comes first is promised a start: it may not have others evicted,
 * and is tried again when there is room, or when it may be the first. */
void stk_shape_park_behind(struct stk_state *s, uint32_t shape);
/* It is over a limit of this tenant (STK_PARKED_LIMIT) or account (STK_PARKED_QUEUE). */
void stk_shape_park_at(struct stk_state *s, uint32_t shape, enum stk_parked why, uint32_t at);
void stk_shape_unpark(struct stk_state *s, uint32_t shape);
/* Unparks it and puts it into the heap under its first job; its pool is dirty. */
void stk_shape_ready(struct stk_state *s, uint32_t shape);
/* The heap it is in when it is ready: its pool's, or that of those with its title. */
struct stk_heap *stk_shape_heap(const struct stk_state *s, uint32_t shape);
/* Puts it into the heap under this job, which waits. */
void stk_shape_requeue(struct stk_state *s, uint32_t shape, const struct stk_oent *at);

/* A node has more free than before: shapes that may fit now get ready. */
void stk_shape_wake(struct stk_state *s, uint32_t node);
/* All shapes that do not fit get ready. */
void stk_shape_wake_all(struct stk_state *s, struct stk_pool *p);
/* The same, but for those behind a promise: somebody may be found who gives way to them. */
void stk_shape_wake_heads(struct stk_state *s, struct stk_pool *p);
/* No start is promised: of those that were behind one, whoever comes before all that are ready. */
void stk_shape_wake_first(struct stk_state *s, struct stk_pool *p);
/* Those parked with a title (core/fair.h) get ready. */
void stk_shape_wake_titles(struct stk_state *s, struct stk_pool *p);
/* More is free, or on its way: with victims besides, it may be enough for a job of a higher tier.
 */
void stk_shape_retry(struct stk_state *s, uint32_t pool);
/* The pool's reservation is dropped: shapes parked for it get ready. */
void stk_shape_unreserve(struct stk_state *s, uint32_t pool);

#endif
