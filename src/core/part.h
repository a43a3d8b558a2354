/* SPDX-License-Identifier: Apache-2.0 */
/* part.h - GPUs that are shared: what is left of each, and where a part of one fits.
 *
 * A GPU is free, leased whole, or leased in parts. The first part takes the GPU out of the node's
 * free ones; the last one to go gives it back. So whoever wants whole GPUs need not know about
 * parts. Those who share it in turns have all its memory each; else it is divided, too. Nodes with
 * shared GPUs lie in buckets by the most that is left of one: a look for a part starts at the
 * bucket where it just fits.
 *
 * Jobs on whole GPUs that may have company (core/pair.h) take one of two seats on each, as parts
 * that no other part fits beside.
 *
 * GPUs in MIG mode are leased in parts alone, by instances: a part there has a profile and a start
 * (model/mig.h), and what is left is what of its memory is.
 */
#ifndef STK_CORE_PART_H
#define STK_CORE_PART_H

#include "core/index.h"
#include "model/mig.h"

#define STK_PART_LEVELS 32 /* buckets; part_level of a node is 1 to this, or 0: it is in none */

/* What is left of a GPU for parts: 1000 when it is free, 0 when it is leased whole or off. */
static inline uint32_t stk_part_left(const struct stk_state *s, const struct stk_node *n,
                                     uint32_t gpu)
{
    uint64_t bit = UINT64_C(1) << gpu;

    if (n->mask_free & bit)
        return 1000;
    if ((n->mask_part & ~n->mask_off & bit) == 0 ||
        s->parts[n->first_part + gpu].share == STK_SHARE_PAIR)
        return 0;
    return s->parts[n->first_part + gpu].milli;
}

/* What one GPU of 'w' takes; where an instance starts is open. */
static inline struct stk_use stk_want_use(const struct stk_want *w)
{
    return (struct stk_use){.mig = w->mig,
                            .slot = STK_MIG_ANY,
                            .milli = w->gpu_milli,
                            .gpu_mem = w->gpu_mem_mib,
                            .share = w->share,
                            .share_max = w->share_max,
                            .share_with = w->share_with};
}

/* Whether a part as 'u' has it fits on this GPU, which is free or shared. CPU is not looked at. */
bool stk_part_fits(const struct stk_state *s, uint32_t node, uint32_t gpu, const struct stk_use *u);

/* What is free of the place of a sleeping job's part on this GPU, which is shared: as much as can
 * be kept for it. milli 0: nothing. */
struct stk_use stk_part_keep(const struct stk_state *s, uint32_t node, uint32_t gpu,
                             const struct stk_demand *d);

/* All that is left of this GPU, which is shared; milli 0: nothing. */
struct stk_use stk_part_rest(const struct stk_state *s, uint32_t node, uint32_t gpu);

/* For the index alone: the parts of the mask are taken or given; returns the GPUs of which they
 * were the first, or the last. */
uint64_t stk_part_take(struct stk_state *s, uint32_t node, const struct stk_use *u);
uint64_t stk_part_give(struct stk_state *s, uint32_t node, const struct stk_use *u);
/* After a change of the node: into the bucket where it belongs. */
void stk_part_file(struct stk_state *s, uint32_t node);

/* The GPU of the node with the least left that fits, or the most, as the policy likes it; none of
 * 'but'. Of instances, not the least left: the one in use that loses the fewest ways to put others
 * there. UINT32_MAX: there is none. */
uint32_t stk_part_gpu(const struct stk_state *s, uint32_t node, const struct stk_use *u,
                      uint64_t but);

/* What is left, in thousandths, of all shared GPUs of the group's nodes that are up. */
uint64_t stk_part_left_in(const struct stk_state *s, const struct stk_group *g);

/* Where an instance of this profile starts on a GPU that is free or shared; STK_MIG_ANY: it does
 * not fit. */
uint32_t stk_part_slot(const struct stk_state *s, uint32_t node, uint32_t gpu, uint16_t mig);

/* How many GPUs of the node can have such an instance when they are empty. */
uint32_t stk_part_instances(const struct stk_node *n, uint16_t mig);

/* Where GPUs are divided already: the node has such an instance that is free. */
bool stk_part_offers(const struct stk_state *s, uint32_t node, const struct stk_want *w);

/* A node with a shared GPU on which the part fits, the fullest first; STK_NONE. */
uint32_t stk_part_pick(const struct stk_state *s, const struct stk_want *w);

#endif
