/* SPDX-License-Identifier: Apache-2.0 */
#include "core/later.h"

#include "core/index.h"

void stk_later_touch(struct stk_state *s, uint32_t node)
{
    const struct stk_node *n = &s->nodes[node];

    if (s->node_stamp[node] == s->stamp)
        return;
    s->node_stamp[node] = s->stamp;
    s->sim_free[node] = n->gpus_free;
    for (uint64_t m = n->mask_part; m; m &= m - 1) {
        uint32_t at = n->first_part + (uint32_t)__builtin_ctzll(m);

        s->part_left[at] = s->parts[at].n;
    }
}

uint32_t stk_later_back(struct stk_state *s, const struct stk_demand *d, const struct stk_piece *p)
{
    const struct stk_node *n = &s->nodes[p->node.i];
    uint32_t back = 0;

    if (!stk_demand_shares(d))
        return stk_index_back_of(s, d, p);
    stk_later_touch(s, p->node.i);
    for (uint64_t m = p->mask; m; m &= m - 1)
        back += --s->part_left[n->first_part + (uint32_t)__builtin_ctzll(m)] == 0 &&
                !(n->mask_off & m & -m);
    return back;
}

uint32_t stk_later_free(const struct stk_state *s, uint32_t node)
{
    return s->node_stamp[node] == s->stamp ? s->sim_free[node] : s->nodes[node].gpus_free;
}
