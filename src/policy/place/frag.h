/* SPDX-License-Identifier: Apache-2.0 */
/* frag.h - how much of a node's free GPU is of no use to those who usually come.
 *
 * For each kind of task of the mix: if the node cannot take one, all of its free GPU is fragment;
 * else what is left on GPUs too full for it. The sum, weighted by the kinds' shares, is the node's
 * fragment, in thousandths of a GPU.
 *
 * See: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
 * Gradient Descent", ATC 2023.
 */
#ifndef STK_POLICY_PLACE_FRAG_H
#define STK_POLICY_PLACE_FRAG_H

#include "core/state.h"

struct stk_frag { /* a node as fragmentation sees it */
    uint32_t left[STK_MAX_NODE_GPUS];
    uint32_t gpus, type;
    uint64_t cpu; /* free; where it is not limited, enough for anything */
};

void stk_frag_see(struct stk_frag *f, const struct stk_state *s, uint32_t node);
double stk_frag(const struct stk_frag *f, const struct stk_mix *mix);

/* Takes what is wanted as the published simulator's trial does: GPUs in ascending order of what is
 * left. Whole GPUs, parts, or no GPU at all. */
void stk_frag_take(struct stk_frag *f, const struct stk_want *w);

/* The GPU with the least left that has 'milli', the first of equals; UINT32_MAX: none. */
static inline uint32_t stk_frag_least(const struct stk_frag *f, uint32_t milli)
{
    uint32_t best = UINT32_MAX;

    for (uint32_t g = 0; g < f->gpus; g++)
        if (f->left[g] >= milli && (best == UINT32_MAX || f->left[g] < f->left[best]))
            best = g;
    return best;
}

/* What is left of all its GPUs. */
static inline uint32_t stk_frag_free(const struct stk_frag *f)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < f->gpus; i++)
        sum += f->left[i];
    return sum;
}

/* GPUs on which the part fits, of those just as full only the first: they come to the same. */
uint64_t stk_frag_choices(const struct stk_frag *f, const struct stk_state *s, uint32_t node,
                          const struct stk_want *w);

/* Thousandths of a GPU that each GPU of 'w' gives. */
static inline uint32_t stk_want_milli(const struct stk_want *w)
{
    return w->gpu_milli ? w->gpu_milli : 1000;
}

#endif
