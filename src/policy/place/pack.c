/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - place: the fullest node that still fits (best fit), lowest number first, to keep whole
 * nodes free for large jobs. What is left of a job cut into whole nodes goes to the emptiest node.
 * Cost: one look per non-empty bucket until one fits. */
#include "policy/registry.h"

#include "core/index.h"

uint32_t stk_place_fullest(const struct stk_state *s, const struct stk_want *w)
{
    const struct stk_pool *p = &s->pools[w->pool];
    uint32_t best = STK_NONE, best_free = UINT32_MAX;

    for (uint32_t i = 0; i < p->n_groups; i++) {
        const struct stk_group *g = &s->groups[p->first_group + i];

        if (!stk_group_accepts(g, w->gpu_types))
            continue;
        for (uint32_t b = stk_index_bucket_up(s, g, w->gpus); b != STK_NONE && b <= best_free;
             b = stk_index_bucket_up(s, g, b + 1)) {
            uint32_t node = stk_index_first(s, g, b, w);

            if (node == STK_NONE)
                continue;
            if (b < best_free || node < best) {
                best = node;
                best_free = b;
            }
            break;
        }
    }
    return best;
}

const struct stk_place_ops stk_place_pack = {
    .name = "pack",
    .help = "the fullest node that fits; large jobs get whole nodes",
    .pick = stk_place_fullest,
    .pick_rest = stk_place_emptiest,
};
