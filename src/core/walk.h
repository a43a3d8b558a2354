/* SPDX-License-Identifier: Apache-2.0 */
/* walk.h - for policies that decide a pool whole: all its active jobs, running and waiting, in rank
 * order, and several starts decided at once.
 *
 * Jobs whose ranks move at one rate lie in one ordered tree, so the walk is a merge of a few sorted
 * sequences: O(log rates) per job, and it can stop early.
 */
#ifndef STK_CORE_WALK_H
#define STK_CORE_WALK_H

#include "core/state.h"

#define STK_BATCH                                                                                  \
    256 /* pieces of one-node jobs that one decision may start, besides one per node */

/* Starts a walk at time 'now'. Then run by run: some jobs in rank order that lie side by side, each
 * with its id and aux = GPUs * 2 + (has a lease); 0: the end. Waiting jobs come one by one. */
void stk_walk_begin(const struct stk_state *s, struct stk_pool *p, stk_time now);
uint32_t stk_walk_run(const struct stk_state *s, struct stk_pool *p,
                      const struct stk_oent **ret_run);

/* The same, but starts at the first waiting job: those before it have leases, and together they
 * fit. Returns the GPUs that leases from there on hold, and how many leases these are. */
uint64_t stk_walk_begin_waiting(const struct stk_state *s, struct stk_pool *p, stk_time now,
                                uint32_t *ret_leases);
/* Leaves out the waiting jobs that come next and ask for more GPUs than this. O(log n). */
void stk_walk_skip(const struct stk_state *s, struct stk_pool *p, uint64_t gpus);
/* Fewest GPUs any waiting job of the pool asks for. */
uint32_t stk_walk_least(const struct stk_state *s, const struct stk_pool *p);

/* A sleeping job that was chosen and does not fit, but will when those being stopped are gone:
 * takes what is free of its place, in the transaction that is open, so that nobody ranked behind it
 * gets it. How many times something was taken; a transaction has room for STK_BATCH. */
uint32_t stk_walk_hold(struct stk_state *s, const struct stk_job *j);

/* PLACE events for as many of the jobs as fit now, one after the other. Those that do not fit are
 * passed over. Sets ask->done when all were tried. Nothing is changed. */
uint32_t stk_walk_place(struct stk_ask *ask, const uint32_t *jobs, uint32_t n);

#endif
