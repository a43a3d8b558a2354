/* SPDX-License-Identifier: Apache-2.0 */
/* part.h - GPUs that are shared: what is left of each, and where a part of one fits.
 *
 * A GPU is free, leased whole, or leased in parts. The first part takes the GPU out of the node's
 * free ones; the last one to go gives it back. So whoever wants whole GPUs need not know about
 * parts. Nodes with shared GPUs lie in buckets by the most that is left of one: a look for a part
 * starts at the bucket where it just fits.
 */
#ifndef STK_CORE_PART_H
#define STK_CORE_PART_H

#include "core/index.h"

#define STK_PART_LEVELS 32 /* buckets; part_level of a node is 1 to this, or 0: it is in none */

/* What is left of a GPU: 1000 when it is free, 0 when it is leased whole or off. */
static inline uint32_t stk_part_left(const struct stk_state *s, const struct stk_node *n,
                                     uint32_t gpu)
{
    uint64_t bit = UINT64_C(1) << gpu;

    if (n->mask_free & bit)
        return 1000;
    return n->mask_part & ~n->mask_off & bit ? s->parts[n->first_part + gpu].milli : 0;
}

/* Whether a part as 'u' has it fits on this GPU, which is free or shared. CPU is not looked at. */
bool stk_part_fits(const struct stk_state *s, uint32_t node, uint32_t gpu, const struct stk_use *u);

/* For the index alone: the parts of the mask are taken or given; returns the GPUs of which they
 * were the first, or the last. */
uint64_t stk_part_take(struct stk_state *s, uint32_t node, const struct stk_use *u);
uint64_t stk_part_give(struct stk_state *s, uint32_t node, const struct stk_use *u);
/* After a change of the node: into the bucket where it belongs. */
void stk_part_file(struct stk_state *s, uint32_t node);

/* The GPU of the node with the least left that fits, or the most, as the policy likes it; none of
 * 'but'. UINT32_MAX: there is none. */
uint32_t stk_part_gpu(const struct stk_state *s, uint32_t node, const struct stk_use *u,
                      uint64_t but);

/* A node with a shared GPU on which the part fits, the fullest first; STK_NONE. */
uint32_t stk_part_pick(const struct stk_state *s, const struct stk_want *w);

#endif
