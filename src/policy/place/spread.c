/* SPDX-License-Identifier: Apache-2.0 */
/* spread.c - place: the emptiest node, lowest number first: least contention for CPU, memory and
 * network. Bad for gangs: it leaves every node a little used. */
#include "policy/registry.h"

#include "core/index.h"

uint32_t stk_place_emptiest(const struct stk_state *s, const struct stk_want *w)
{
    const struct stk_pool *p = &s->pools[w->pool];
    uint32_t best = STK_NONE, best_free = 0;

    for (uint32_t i = 0; i < p->n_groups; i++) {
        const struct stk_group *g = &s->groups[p->first_group + i];

        if (!stk_group_accepts(g, w->gpu_types))
            continue;
        for (uint32_t b = stk_index_bucket_down(s, g, g->max_gpus);
             b != STK_NONE && b >= w->gpus && (best == STK_NONE || b >= best_free);
             b = b > 0 ? stk_index_bucket_down(s, g, b - 1) : STK_NONE) {
            uint32_t node = stk_index_first(s, g, b, w);

            if (node == STK_NONE)
                continue;
            if (best == STK_NONE || b > best_free || node < best) {
                best = node;
                best_free = b;
            }
            break;
        }
    }
    return best;
}

const struct stk_place_ops stk_place_spread = {
    .name = "spread",
    .help = "the emptiest node",
    .apart = true,
    .pick = stk_place_emptiest,
    .pick_rest = stk_place_emptiest,
};
