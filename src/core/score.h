/* SPDX-License-Identifier: Apache-2.0 */
/* score.h - the best node by a policy's score, without asking for the score of every node.
 *
 * A score depends on the node and on what is wanted, nothing else. So it is kept, in a row of all
 * nodes for each thing wanted, and made anew only for nodes that have changed since the row was
 * last used: a log of changed nodes says which. Nodes alike that nobody has used are scored once.
 * The best of a row is found through the best of each block of 64 nodes.
 *
 * Where whole GPUs are wanted and no node limits CPU, all nodes of a type may suit as well
 * (stk_place_ops.whole): then there is no row, and the fullest is found by the index.
 *
 * A decision costs O(nodes that changed since this was last wanted + nodes / 64). Rows are caches:
 * the ones not used for longest make room for others.
 */
#ifndef STK_CORE_SCORE_H
#define STK_CORE_SCORE_H

#include "core/state.h"

/* Memory for the rows, if the policy scores. */
int stk_score_init(struct stk_state *s);
void stk_score_memory(struct stk_state *s, struct stk_visit *v); /* core/blocks.h */

/* The node is not as it was. */
static inline void stk_score_changed(struct stk_state *s, uint32_t node)
{
    if (s->scores)
        s->score_log[s->n_score_log++ & (STK_SCORE_LOG - 1)] = node;
}

/* Scores are others from now on, though no node has changed. */
void stk_score_forget(struct stk_state *s);

/* The node with the highest score that has room for 'w', lowest number first; STK_NONE. 'ret_gpu':
 * of a part, the GPU. */
uint32_t stk_score_pick(struct stk_state *s, const struct stk_want *w, uint32_t *ret_gpu);

#endif
