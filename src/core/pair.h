/* SPDX-License-Identifier: Apache-2.0 */
/* pair.h - whole GPUs that two jobs have together.
 *
 * A job that may get company (stk_demand_pairs()) has its GPUs as any other has, but on each it
 * takes one of two seats (core/part.h). A second one of the same size may take the other seats: all
 * of them, or none. So two jobs that share a GPU share all of theirs, and whoever goes leaves the
 * other alone with them. Who gets on with whom the placement policy says: mate().
 *
 * Jobs that are alone lie in trees, one for each shape, by GPU type. A look for company asks the
 * policy once for each shape and type that is there, not for each job. When a job is left alone, or
 * starts alone, the waiting shapes that get on with it are tried again.
 */
#ifndef STK_CORE_PAIR_H
#define STK_CORE_PAIR_H

#include "core/state.h"

int stk_pair_init(struct stk_state *s);
void stk_pair_memory(struct stk_state *s, struct stk_visit *v); /* core/blocks.h */

/* Whether a piece of a job that may get company can be taken: its GPUs are free, or they are all
 * those of one job that is alone. For pieces[0] to pieces[i] the rest was checked. */
bool stk_pair_allows(const struct stk_state *s, const struct stk_piece *pieces, uint32_t n,
                     uint32_t i);

/* The job's lease was taken; is about to be given back. Others do not matter. */
void stk_pair_join(struct stk_state *s, uint32_t job);
void stk_pair_leave(struct stk_state *s, uint32_t job);

/* Who has the same GPUs as this job, which has a lease; STK_NONE. */
uint32_t stk_pair_mate(const struct stk_state *s, uint32_t job);

/* Before the shape of a job changes, and after. */
bool stk_pair_hide(struct stk_state *s, uint32_t job);
void stk_pair_show(struct stk_state *s, uint32_t job);

/* The best company for this demand: its pieces are in s->try_pieces, *ret_n of them. Not inside a
 * transaction that has changed something: who is where then is not known. */
bool stk_pair_find(struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                   const uint64_t *avoid, uint32_t *ret_n);

/* CPU or memory came back where jobs share: shapes that did not fit beside others get ready. */
void stk_pair_wake(struct stk_state *s, uint32_t node);

#endif
