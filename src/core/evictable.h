/* SPDX-License-Identifier: Apache-2.0 */
/* evictable.h - could a job be placed if every job of a lower tier gave way?
 *
 * Per tier, nodes are counted by the GPUs that are free or held by lower tiers, so the answer is a
 * look at a few counters instead of a trial. It counts GPUs, not CPU or memory: "no" is certain,
 * "yes" has to be tried. Kept only when a policy preempts by tier. A lease costs O(pieces) to add
 * or remove. A job that is being stopped no longer counts as holding anything.
 */
#ifndef STK_CORE_EVICTABLE_H
#define STK_CORE_EVICTABLE_H

#include "core/state.h"

int stk_evictable_init(struct stk_state *s);
void stk_evictable_done(struct stk_state *s);
void stk_evictable_lease(struct stk_state *s, const struct stk_job *j, bool add);
void stk_evictable_node_up(struct stk_state *s, uint32_t node, bool up);

/* Other GPUs of the node are off now. O(leases). */
void stk_evictable_recount(struct stk_state *s, uint32_t node);

/* False: it does not fit whatever is evicted. */
bool stk_evictable_could(const struct stk_state *s, const struct stk_job *j);

#endif
