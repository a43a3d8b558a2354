/* SPDX-License-Identifier: Apache-2.0 */
/* first_fit.c - place: the node with the lowest number that fits. */
#include "policy/registry.h"

#include "core/index.h"

static uint32_t pick(const struct stk_state *s, const struct stk_want *w)
{
    const struct stk_pool *p = &s->pools[w->pool];
    uint32_t best = STK_NONE;

    for (uint32_t i = 0; i < p->n_groups; i++) {
        const struct stk_group *g = &s->groups[p->first_group + i];

        if (!stk_group_accepts(g, w->gpu_types))
            continue;
        for (uint32_t b = stk_index_bucket_up(s, g, w->gpus); b != STK_NONE;
             b = stk_index_bucket_up(s, g, b + 1)) {
            uint32_t node = stk_index_first(s, g, b, w);

            if (node < best)
                best = node;
        }
    }
    return best;
}

const struct stk_place_ops stk_place_first_fit = {
    .name = "first_fit",
    .help = "the first node that fits",
    .pick = pick,
    .pick_rest = pick,
};
