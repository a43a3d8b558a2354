/* SPDX-License-Identifier: Apache-2.0 */
/* booking.h - reservations: GPUs set aside for somebody in a window of time (model/booking.h).
 *
 * A reservation is bound to nodes when it is made: so many GPUs of each, a *fence*. Which ones the
 * event says, or the core chooses (booking_choose.c).
 *
 * Once its window is open, what is free on its nodes is *held*: taken like a lease's GPUs, so that
 * nothing else in the core sees them as free, whatever the policies. What comes back there is held
 * at once until the fence has all its GPUs. Jobs of its holder see them as free (core/fence.h), and
 * count as *charged* to it: with them less is held. Before it is open, the fence knows how many of
 * its node's GPUs are expected back too late, and jobs that would take what is missing then are not
 * started (core/fence.h).
 *
 * Whose jobs may use it follows from the job (tenant, user, what it names, its number); holders of
 * reservations are numbered, and the demand of a shape has a bit for each its jobs belong to. So a
 * verdict still serves a whole shape. A new holder gives its jobs other shapes: O(jobs), once.
 *
 * Costs: RESERVE and UNRESERVE O(jobs + nodes log nodes); a lease begins or ends O(pieces x fences
 * on their nodes). Nothing where there are no reservations.
 */
#ifndef STK_CORE_BOOKING_H
#define STK_CORE_BOOKING_H

#include "base/bytes.h"
#include "base/err.h"
#include "core/blocks.h"
#include "core/state.h"

int stk_booking_init(struct stk_state *s);
void stk_booking_memory(struct stk_state *s, struct stk_visit *v); /* core/blocks.h */
int stk_booking_jobs(struct stk_state *s, uint32_t n);             /* room for so many jobs */

/* The events. */
int stk_booking_add(struct stk_state *s, const struct stk_event *ev, struct stk_err *err);
int stk_booking_remove(struct stk_state *s, const struct stk_event *ev, struct stk_err *err);
/* Windows whose time has come open. */
bool stk_booking_due(const struct stk_state *s, stk_time now);
void stk_booking_tick(struct stk_state *s);
/* When one opens, ends or lapses; STK_NEVER_TIME. */
stk_time stk_booking_wake(const struct stk_state *s);

/* For decide(): those that are over, and who must go from the nodes of those that evict. */
uint32_t stk_booking_step(struct stk_state *s, stk_time now, struct stk_event *out, uint32_t cap);

/* The row with this number; NULL. */
struct stk_booking *stk_booking_find(const struct stk_state *s, uint32_t number);

/* Of a job with these members: bits of the holders it belongs to. */
uint64_t stk_booking_holders(const struct stk_state *s, const struct stk_job *j,
                             const struct stk_terms *t);
static inline bool stk_booking_mine(const struct stk_booking *b, uint64_t holders)
{
    return holders >> b->holder & 1;
}

/* The GPUs the job has are set aside for it: they are nobody else's when it goes. */
static inline bool stk_booking_owns(const struct stk_state *s, uint32_t job)
{
    return s->book.n > 0 && s->book.charged[job] && stk_booking_find(s, s->book.charged[job]);
}

/* A lease is counted, and no longer; called with the job's expected end and pieces as they are. */
void stk_booking_lease(struct stk_state *s, uint32_t job);
void stk_booking_unlease(struct stk_state *s, uint32_t job);
/* The lease is over. */
void stk_booking_uncharge(struct stk_state *s, uint32_t job);

/* Around taking GPUs for the job: what is held for it on these nodes is free, tentatively; then
 * that stays so (ok), or not. */
void stk_booking_let(struct stk_state *s, const struct stk_job *j, const struct stk_piece *pieces,
                     uint32_t n);
void stk_booking_settle(struct stk_state *s, bool ok);

/* For the files of this module. */
static inline bool stk_has_gpus(const struct stk_job *j)
{
    return j->state == STK_JOB_PLACED || j->state == STK_JOB_RUNNING;
}
uint32_t stk_booking_keeps(const struct stk_state *s, const struct stk_job *j,
                           const struct stk_piece *p); /* GPUs it keeps others from */
/* The lease in the sums of the row's fences, or (STK_NONE) of all. */
void stk_booking_count(struct stk_state *s, uint32_t job, bool add, uint32_t row);
bool stk_booking_charge(struct stk_state *s, uint32_t job, uint32_t row); /* if it may be */
void stk_booking_give(struct stk_state *s, struct stk_fence *f, uint32_t gpus);
void stk_booking_link(struct stk_state *s);
stk_time stk_booking_lapses(const struct stk_booking *b); /* if nobody comes; STK_NEVER_TIME */

/* What is free on the node is held for the reservations there that lack it. */
void stk_booking_fill(struct stk_state *s, uint32_t node);

/* GPUs of the fence that nobody of its holder has. */
static inline uint32_t stk_fence_wants(const struct stk_fence *f)
{
    return f->gpus > f->used ? f->gpus - f->used : 0;
}

static inline struct stk_use stk_fence_use(const struct stk_fence *f)
{
    return (struct stk_use){.gpus = f->held, .mask = f->mask};
}

/* Which nodes (booking_choose.c): so many GPUs of each into s->try_pieces; *ret_n of them. -EBUSY
 * with the sentence what overlaps. */
int stk_booking_choose(struct stk_state *s, const struct stk_booking_spec *k, uint32_t *ret_n,
                       struct stk_err *err);

/* Whether there is a row and a holder left for it. */
bool stk_booking_room(const struct stk_state *s, const struct stk_booking_spec *k);
/* GPUs of the node that no other reservation needs at any time of its window. One that drains gives
 * way to those that operators make: it is over then, since its node is crowded. */
uint32_t stk_booking_spare(const struct stk_state *s, uint32_t node,
                           const struct stk_booking_spec *k);
bool stk_booking_crowded(const struct stk_state *s, uint32_t node, stk_time start, stk_time end);

/* A node of the pool went or came: what reservations had on nodes that are gone moves to others
 * that have it to spare, unless the nodes were given. O(jobs + nodes) for each that moves. */
void stk_booking_mend(struct stk_state *s, uint32_t pool);

/* Save and load. After the rows are loaded, leases are counted as they are settled; then what was
 * held is held again, as far as it still exists. */
void stk_booking_put(struct stk_bytes *out, const struct stk_state *s);
int stk_booking_get(struct stk_reader *r, struct stk_state *s, uint64_t version);
void stk_booking_hold_again(struct stk_state *s);
uint64_t stk_booking_digest(const struct stk_state *s, uint64_t h);
bool stk_booking_sound(const struct stk_state *s, struct stk_err *err);

#endif
