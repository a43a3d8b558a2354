/* SPDX-License-Identifier: Apache-2.0 */
/* outrun.h - jobs that run longer than expected.
 *
 * Where an estimate is only a guess, the job says how long it may run besides (terms.limit). One
 * that has run as long as its estimate and goes on is expected to take twice as long in all, and so
 * on up to its limit; from there on it may end at any time. Without a limit of that kind the
 * estimate stays: a job that has outrun it may end at any time, too.
 *
 * The first moment after the expected end is a time the core asks for: the next guess is made by
 * that tick, so at most some fifty times for a lease, and promises are made anew. They move later
 * for nothing else: a start of another job never does that.
 *
 * One more thing keeps the first in line from being passed for ever by jobs whose guesses are all
 * too short. When it is late by backfill.patience_s after the start it was first promised, and
 * guesses have failed since, it is passed only by jobs that end in time even if they run to their
 * limits; one that has none is taken to need four times what is expected (stk_promise_overdue()).
 *
 * Cost: O(log n) for a lease and for a guess; with conservative backfill a guess makes a new plan.
 */
#ifndef STK_CORE_OUTRUN_H
#define STK_CORE_OUTRUN_H

#include "core/state.h"

/* The job has a lease, or none any more. */
void stk_outrun_watch(struct stk_state *s, uint32_t job);
void stk_outrun_forget(struct stk_state *s, uint32_t job);

/* When the next guess is to be made; STK_NEVER_TIME. */
stk_time stk_outrun_wake(const struct stk_state *s);
/* A tick: guesses that are due. Memory for these must be reserved. */
int stk_outrun_reserve(struct stk_state *s, uint32_t more); /* and so many entries of trees */
void stk_outrun_tick(struct stk_state *s);

/* What the job may still need at most, whatever is expected of it: work at speed 1. */
stk_time stk_outrun_most(const struct stk_state *s, uint32_t job, stk_time now);

/* The first in line is promised this start. */
void stk_promise_made(struct stk_pool *p, uint32_t job, stk_time at);
/* Its first promise was not kept, by much (backfill.patience_s), for guesses that failed. */
static inline bool stk_promise_overdue(const struct stk_state *s, uint32_t pool, stk_time now)
{
    const struct stk_pool *p = &s->pools[pool];

    return p->outran && p->first_for && now - s->patience >= p->first_at;
}

bool stk_outruns_sound(const struct stk_state *s, struct stk_err *err);

#endif
