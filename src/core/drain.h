/* SPDX-License-Identifier: Apache-2.0 */
/* drain.h - draining reservations: a job, mostly of many GPUs, that has waited long while others
 * passed it gets nodes on which GPUs are kept free for it, until it starts.
 *
 * Such a reservation is a window like others (core/booking.h): its holder is the one job, it has
 * exact nodes, it opens when all it needs there is expected to be free, and it is over when the job
 * starts or its time is up. Before it opens, shorter jobs run on its nodes; then what comes free is
 * held. decide() proposes it, apply() makes it, like any other event.
 *
 * Who: of the jobs of drain.gpus and more that have waited drain.after_s, whom some job has passed
 * that entered the queue later and is of no higher tier, the one that has waited longest. Not a
 * part of a GPU, nor one that sleeps, nor one over a limit.
 *
 * Bounds: drain.most at a time in a pool, of no more than drain.share of its GPUs; none that is not
 * expected to open within drain.limit_s; after that it is given up, and the job has to wait
 * drain.after_s again. Two of them never need the same GPU, so none waits for another.
 *
 * Costs: a look O(jobs), or O(1) when all that wait have waited long enough and no more may be set
 * aside, and, for a job that may have one, a try per expected end; looks are at
 * least a sixteenth of drain.after_s apart. Nothing where drain.after_s is 0.
 */
#ifndef STK_CORE_DRAIN_H
#define STK_CORE_DRAIN_H

#include "base/bytes.h"
#include "base/err.h"
#include "core/state.h"

/* A job begins to wait: it may have earned one later. */
static inline void stk_drain_waits(struct stk_state *s, const struct stk_job *j)
{
    struct stk_drain *d = &s->book.drain;
    const stk_time at = j->queued + d->after;

    if (d->after == 0)
        return;
    d->all_earned = at > d->all_earned ? at : d->all_earned;
    if (j->gpus < d->gpus)
        return;
    d->look_at = at < d->look_at ? at : d->look_at;
    d->wake_at = at < d->wake_at ? at : d->wake_at;
}

/* When the next job may have earned one, if nothing happens before; STK_NEVER_TIME. */
stk_time stk_drain_wake(const struct stk_state *s);

/* For decide(): a new one, or none. */
uint32_t stk_drain_step(struct stk_state *s, stk_time now, struct stk_event *out);
/* Whether one is over. */
bool stk_drain_over(const struct stk_state *s, const struct stk_booking *b, stk_time now,
                    enum stk_over_why *ret);
/* It goes: others may have their turn. If it was given up, its job must wait anew. */
void stk_drain_done(struct stk_state *s, const struct stk_booking *b, enum stk_over_why why);

/* The one of this job; NULL. */
const struct stk_booking *stk_drain_of(const struct stk_state *s, const struct stk_job *j);
/* GPUs of it that the job could have now, and when it is expected to have all; 0: not known. */
uint32_t stk_drain_has(const struct stk_state *s, const struct stk_booking *b, stk_time *ret_until);

void stk_drain_put(struct stk_bytes *out, const struct stk_state *s);
void stk_drain_get(struct stk_reader *r, struct stk_state *s);
uint64_t stk_drain_digest(const struct stk_state *s, uint64_t h);
bool stk_drain_sound(const struct stk_state *s, struct stk_err *err);

#endif
