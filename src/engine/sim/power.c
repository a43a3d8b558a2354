/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/sim/power.h"

int stk_sim_power_init(struct stk_sim_power *p, const struct stk_sim_power_config *cfg,
                       const struct stk_mem *mem)
{
    *p = (struct stk_sim_power){.cfg = *cfg, .mem = *mem};
    if (!cfg->saves)
        return 0;
    if (stk_mem_grow(mem, &p->nodes, &p->cap_nodes, cfg->n_nodes + 1, sizeof(*p->nodes)) < 0 ||
        stk_mem_grow(mem, &p->pos, &p->cap_pos, cfg->n_nodes + 1, sizeof(*p->pos)) < 0 ||
        stk_heap_reserve(&p->empty, mem, cfg->n_nodes + 1) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < cfg->n_nodes; i++)
        p->nodes[i].off = stk_power_known(&cfg->nodes[i].power);
    return 0;
}

void stk_sim_power_done(struct stk_sim_power *p)
{
    if (!p->mem.resize)
        return;
    for (uint32_t i = 0; i < p->cap_leases; i++)
        stk_mem_drop(&p->mem, &p->leases[i].nodes, &p->leases[i].cap, sizeof(*p->leases[i].nodes));
    stk_mem_drop(&p->mem, &p->leases, &p->cap_leases, sizeof(*p->leases));
    stk_mem_drop(&p->mem, &p->nodes, &p->cap_nodes, sizeof(*p->nodes));
    stk_mem_drop(&p->mem, &p->pos, &p->cap_pos, sizeof(*p->pos));
    stk_heap_done(&p->empty, &p->mem);
}

stk_time stk_sim_power_start(struct stk_sim_power *p, stk_time now, const struct stk_start *s)
{
    struct stk_sim_power_lease *l;
    stk_time ready = now;

    if (!p->cfg.saves)
        return 0;
    if (stk_mem_grow(&p->mem, &p->leases, &p->cap_leases, s->job.i + 1, sizeof(*p->leases)) < 0)
        return -ENOMEM;
    l = &p->leases[s->job.i];
    if (stk_mem_grow(&p->mem, &l->nodes, &l->cap, s->n_pieces, sizeof(*l->nodes)) < 0)
        return -ENOMEM;
    l->n = s->n_pieces;
    for (uint32_t i = 0; i < s->n_pieces; i++) {
        uint32_t node = s->pieces[i].node.i;
        struct stk_sim_power_node *n = &p->nodes[node];

        l->nodes[i] = s->pieces[i].node;
        if (n->off)
            n->ready = now + (stk_time)p->cfg.nodes[node].power.boot_s * STK_SECOND;
        n->off = false;
        n->leases++;
        stk_heap_remove(&p->empty, p->pos, node);
        ready = n->ready > ready ? n->ready : ready;
    }
    return ready - now;
}

void stk_sim_power_stop(struct stk_sim_power *p, stk_time now, uint32_t job)
{
    for (uint32_t i = 0; p->cfg.saves && i < p->leases[job].n; i++) {
        uint32_t node = p->leases[job].nodes[i].i;

        if (--p->nodes[node].leases == 0 && stk_power_known(&p->cfg.nodes[node].power))
            stk_heap_put(&p->empty, p->pos, node, now + p->cfg.off_after, node);
    }
}

uint32_t stk_sim_power_off(struct stk_sim_power *p, stk_time now)
{
    uint32_t node;

    if (p->empty.n == 0 || p->empty.item[0].key > now)
        return STK_NONE;
    node = p->empty.item[0].id;
    stk_heap_remove(&p->empty, p->pos, node);
    p->nodes[node].off = true;
    return node;
}

stk_time stk_sim_power_next(const struct stk_sim_power *p)
{
    return p->empty.n > 0 ? p->empty.item[0].key : STK_NEVER_TIME;
}
