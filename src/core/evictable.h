/* SPDX-License-Identifier: Apache-2.0 */
/* evictable.h - could a job be placed if every job that it may evict gave way?
 *
 * Per level, nodes are counted by the GPUs that are free or held by lower levels, so the answer is
 * a look at a few counters instead of a trial. It counts GPUs, not CPU or memory: "no" is certain,
 * "yes" has to be tried. Kept only when a policy preempts by level (core/policy.h). A lease costs
 * O(pieces x levels) to add or remove. A job that is being stopped no longer counts as holding
 * anything.
 */
#ifndef STK_CORE_EVICTABLE_H
#define STK_CORE_EVICTABLE_H

#include "core/state.h"

/* The level of a job that comes in, by its tier and priority. */
uint32_t stk_evictable_level(const struct stk_state *s, const struct stk_job *j);

/* The job evicts others of levels below this only. */
static inline uint32_t stk_evictable_below(const struct stk_state *s, const struct stk_job *j)
{
    return j->plain && s->preempt->room ? s->preempt->below(s->preempt_st, j) : j->level;
}

int stk_evictable_init(struct stk_state *s);
void stk_evictable_memory(struct stk_state *s, struct stk_visit *v); /* core/blocks.h */
void stk_evictable_lease(struct stk_state *s, const struct stk_job *j, bool add);
void stk_evictable_node_up(struct stk_state *s, uint32_t node, bool up);

/* Other GPUs of the node are off now. O(leases). */
void stk_evictable_recount(struct stk_state *s, uint32_t node);

/* GPUs of the node that a job of this level could have. */
static inline uint32_t *stk_evictable_on(const struct stk_state *s, uint32_t node, uint32_t level)
{
    return &s->evictable[(size_t)node * s->n_levels + level];
}

/* The counter of nodes of this group that have exactly so many. */
static inline uint32_t *stk_evictable_nodes(const struct stk_state *s, const struct stk_group *g,
                                            uint32_t level, uint32_t gpus)
{
    return &s->evictable_nodes[level * s->n_counts + g->count + gpus];
}

/* False: it does not fit whatever is evicted. */
bool stk_evictable_could(const struct stk_state *s, const struct stk_job *j);

#endif
