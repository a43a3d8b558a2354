/* SPDX-License-Identifier: Apache-2.0 */
/* defrag.h - running jobs move, so that one that waits finds room: enough is free for it, but in
 * fragments.
 *
 * A move is an eviction marked as such; the job is queued again, and is the first of its pool to be
 * placed once the one it made room for has started. Before anything is evicted, all of it was tried
 * in a transaction, in the order in which it will happen: the one that waits fits, and so do all
 * that move. While they move, the pool is claimed and prices stand still, so that an engine that
 * stops jobs at once finds things as they were planned. With one that takes its time a node may be
 * lost meanwhile; then the job waits, first in line.
 *
 * The search: who would have to go so that the job fits on that node, smallest first; each of a few
 * must itself fit elsewhere, or a second one goes for it. At most STK_DEFRAG_MOVES jobs move at a
 * time, and at most defrag.most in a thousand placements are moves. A search costs O(jobs), and a
 * few tries. Whole nodes are emptied elsewhere (core/empty.h). Only jobs that say they may
 * (terms.movable) are moved, unless defrag.jobs is all; none that is protected (core/stake.h), and
 * none that its group cannot do without (core/budget.h).
 *
 * A person may ask for a plan, and for it to be done, whatever defrag.most says.
 */
#ifndef STK_CORE_DEFRAG_H
#define STK_CORE_DEFRAG_H

#include "core/empty.h"
#include "core/state.h"

/* Whether running jobs can be moved under these policies: a plan for all that wait knows of no
 * moves, and who decides a pool whole must ask for them. */
static inline bool stk_defrag_goes(const struct stk_preempt_ops *preempt,
                                   const struct stk_backfill_ops *backfill)
{
    return (!preempt->pass || preempt->moves) && !backfill->reserve_all;
}

/* 'job' cannot start: evictions of jobs to be moved, which make it start; 0: there are none. */
uint32_t stk_defrag_room(const struct stk_ask *ask, uint32_t job);

/* What could be moved now so that a job that waits can start: the first in rank for which there is
 * something. False: nothing. O(shapes that wait) searches; changes nothing. */
struct stk_defrag_plan {
    uint32_t for_job;
    uint32_t moves[STK_DEFRAG_MOVES], n;
    int64_t units; /* what it costs those that move (core/stake.h); units_of: each */
    int64_t units_of[STK_DEFRAG_MOVES];
    struct stk_whole before, after;
};
bool stk_defrag_plan(struct stk_state *s, stk_time now, struct stk_defrag_plan *ret);

/* A job of the pool that was moved and waits for its new place; STK_NONE. 'after': another one. */
uint32_t stk_defrag_next(const struct stk_state *s, uint32_t pool, uint32_t after);

/* Some that move there are still being stopped: nobody else starts in the pool. */
bool stk_defrag_going(const struct stk_state *s, uint32_t pool);

/* In a transaction: the job is put where the policy puts it now, which is *ret_node (of its first
 * piece; may be NULL). False: there is no room. */
bool stk_defrag_put(struct stk_state *s, uint32_t job, uint32_t *ret_node);

/* The job is being moved; no longer: it has its new place, is held, or has ended. */
void stk_defrag_moves(struct stk_state *s, uint32_t job);
void stk_defrag_moved(struct stk_state *s, struct stk_job *j);

#endif
