/* SPDX-License-Identifier: Apache-2.0 */
/* gang_check.c - whether pieces lie where a job asked for, and whether they ever could. Written
 * apart from gang.c, from the words of model/demand.h. */
#include "core/gang.h"

#include "core/index.h"
#include "core/place.h"
#include "core/sets.h"

static bool in_domain(const struct stk_state *s, uint32_t node)
{
    const struct stk_topo *t = s->topo;

    return t->built[STK_TIER_DOMAIN] &&
           t->cells[t->cell[(size_t)node * STK_TIERS + STK_TIER_DOMAIN]].known;
}

/* Two nodes lie in one place of this level, GPUs apart. */
static bool together(const struct stk_state *s, uint32_t a, uint32_t b, enum stk_level level)
{
    uint32_t tier = stk_topo_tier(s, level);

    if (a == b)
        return true;
    return tier != STK_TIERS && stk_topo_id(s, a, tier) == stk_topo_id(s, b, tier);
}

/* So many GPUs of the piece's node, each unit of them linked. */
static bool linked(const struct stk_state *s, const struct stk_piece *p, uint32_t unit)
{
    if (unit <= 1 || in_domain(s, p->node.i))
        return true;
    return stk_layout_units(stk_topo_layout(s, p->node.i), p->mask, unit) * unit == p->gpus;
}

static bool level_kept(const struct stk_state *s, const struct stk_demand *d,
                       const struct stk_piece *pieces, uint32_t n)
{
    const enum stk_level level = (enum stk_level)d->level_required;

    for (uint32_t i = 1; level && i < n; i++)
        if (!together(s, pieces[0].node.i, pieces[i].node.i, level))
            return false;
    return level != STK_AT_LINK || n > 1 || linked(s, &pieces[0], pieces[0].gpus);
}

/* Subgroups are of consecutive tasks, over pieces in their order. */
static bool groups_kept(const struct stk_state *s, const struct stk_demand *d,
                        const struct stk_piece *pieces, uint32_t n)
{
    const enum stk_level level = (enum stk_level)d->group_level;
    uint32_t in = 0, first = 0; /* tasks of the subgroup so far, and the piece it began with */

    for (uint32_t i = 0; i < n; i++) {
        uint32_t spans = in + pieces[i].tasks;

        first = in > 0 ? first : i;
        if (in > 0 && !together(s, pieces[first].node.i, pieces[i].node.i, level))
            return false;
        if (level == STK_AT_LINK && !in_domain(s, pieces[i].node.i) &&
            (in > 0 || spans % d->group || !linked(s, &pieces[i], d->group * d->gpus)))
            return false;
        if (spans >= d->group)
            first = i;
        in = spans % d->group;
    }
    return in == 0;
}

int stk_gang_check(const struct stk_state *s, const struct stk_demand *d,
                   const struct stk_piece *pieces, uint32_t n, struct stk_err *err)
{
    if (!level_kept(s, d, pieces, n))
        return stk_err_set(err, -EINVAL, "its pieces are not in one %s",
                           stk_level_name((enum stk_level)d->level_required));
    if (d->group && !groups_kept(s, d, pieces, n))
        return stk_err_set(err, -EINVAL, "a subgroup of %u tasks is not in one %s", d->group,
                           stk_level_name((enum stk_level)d->group_level));
    for (uint32_t i = 0; d->per_node && i < n; i++)
        if (pieces[i].tasks != d->per_node)
            return stk_err_set(err, -EINVAL, "node %u has %u of its tasks, not %u",
                               pieces[i].node.i, pieces[i].tasks, d->per_node);
    return 0;
}

/* ---- if all were free ---- */

struct could {
    const struct stk_state *s;
    const struct stk_demand *d;
    uint32_t pool;
    enum stk_level level;
    uint32_t whole, size, rest; /* of a job that is cut */
    uint32_t low;               /* tier of subgroups; STK_TIERS: they lie on one node, or there are
                                   none */
};

/* Subgroups of the size that an empty node could hold, when they must lie on it. */
static uint64_t groups_on(const struct could *q, uint32_t node, uint32_t size)
{
    const struct stk_node *n = &q->s->nodes[node];
    uint64_t fit = stk_place_holds(q->s, q->d, node, q->d->gpus) / size, in;

    if (size * q->d->gpus <= 1 || in_domain(q->s, node))
        return fit;
    in = stk_layout_units(stk_topo_layout(q->s, node), n->mask_all, size * q->d->gpus);
    return in < fit ? in : fit;
}

/* Tasks that an empty node could hold, subgroups on it and tasks per node heeded. */
static uint64_t node_holds(const struct could *q, uint32_t node)
{
    const struct stk_demand *d = q->d;
    const bool link = d->group_level == STK_AT_LINK && !in_domain(q->s, node);
    uint64_t fit = stk_place_holds(q->s, d, node, d->gpus);

    if (d->group && (link || q->low == STK_TIERS)) { /* its subgroups lie on it whole */
        if (d->per_node % d->group)
            return 0;
        fit = d->group * (link ? groups_on(q, node, d->group) : fit / d->group);
    }
    if (!d->per_node)
        return fit;
    return fit >= d->per_node ? d->per_node : 0;
}

/* The most that one node could hold of a job that must lie on one. */
static uint64_t most_on_node(const struct could *q)
{
    const struct stk_pool *p = &q->s->pools[q->pool];
    uint64_t most = 0;

    for (uint32_t i = 0; i < p->n_nodes && !q->whole; i++) {
        uint32_t node = q->s->pool_nodes[p->first_node + i];
        uint64_t fit = node_holds(q, node);

        if (q->level == STK_AT_LINK) /* the largest island that has room */
            while (fit > 0 && groups_on(q, node, (uint32_t)fit) == 0)
                fit--;
        most = fit > most ? fit : most;
    }
    return most;
}

static uint64_t batch_of(const struct stk_demand *d)
{
    uint64_t b = d->group;

    while (d->per_node && b % d->per_node)
        b += d->group;
    return b;
}

/* The most tasks that one place of a tier could hold. */
static uint64_t most_in_place(const struct could *q, uint32_t tier)
{
    const struct stk_state *s = q->s;
    const struct stk_pool *p = &s->pools[q->pool];
    const bool groups = q->d->group && q->low < tier;
    uint64_t *room = s->topo->room, *in = s->topo->room_in, most = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++)
        room[i] = in[i] = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        uint32_t node = s->pool_nodes[p->first_node + i];

        in[stk_topo_id(s, node, groups ? q->low : tier)] += node_holds(q, node);
    }
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        uint32_t node = s->pool_nodes[p->first_node + i], at = stk_topo_id(s, node, tier);
        uint64_t *low = &in[stk_topo_id(s, node, groups ? q->low : tier)];

        if (q->level == STK_AT_LINK && !in_domain(s, node))
            continue;
        room[at] += groups ? *low - *low % batch_of(q->d) : *low;
        *low = 0;
        most = room[at] > most ? room[at] : most;
    }
    return most;
}

/* The same of a job that is cut: its pieces, if some place has enough; else the most GPUs in whole
 * pieces. */
static uint64_t most_cut(const struct could *q, uint32_t tier, bool *ret_enough)
{
    const struct stk_state *s = q->s;
    const struct stk_pool *p = &s->pools[q->pool];
    uint64_t *whole = s->topo->room, *rest = s->topo->room_in, most = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++)
        whole[i] = rest[i] = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        uint32_t node = s->pool_nodes[p->first_node + i], at = stk_topo_id(s, node, tier);

        if (q->level == STK_AT_LINK && !in_domain(s, node))
            continue;
        whole[at] += stk_place_holds(s, q->d, node, q->size) > 0;
        rest[at] += q->rest && stk_place_holds(s, q->d, node, q->rest) > 0;
        most = whole[at] > most ? whole[at] : most;
        *ret_enough |= whole[at] >= q->whole && (!q->rest || rest[at] > q->whole);
    }
    return most;
}

uint64_t stk_gang_most(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                       bool *ret_enough)
{
    struct could q = {.s = s, .d = d, .pool = pool, .level = stk_gang_last(d)};
    uint32_t tier = stk_topo_tier(s, q.level);
    uint64_t most, wide = 0;

    stk_place_cut(s, d, pool, &q.whole, &q.size, &q.rest);
    q.low = d->group ? stk_topo_tier(s, (enum stk_level)d->group_level) : STK_TIERS;
    *ret_enough = false;
    if (q.whole)
        return tier == STK_TIERS ? 0 : most_cut(&q, tier, ret_enough);
    most = tier == STK_TIERS || q.level == STK_AT_LINK ? most_on_node(&q) : 0;
    if (tier != STK_TIERS)
        wide = most_in_place(&q, tier);
    most = wide > most ? wide : most;
    *ret_enough = most >= d->tasks;
    return most;
}

uint64_t stk_gang_most_free(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                            enum stk_level level)
{
    const struct stk_pool *p = &s->pools[pool];
    uint32_t tier = stk_topo_tier(s, level);
    uint64_t *room = s->topo->room, most = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++)
        room[i] = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        uint32_t node = s->pool_nodes[p->first_node + i];
        const struct stk_node *n = &s->nodes[node];
        uint64_t *at = &room[tier == STK_TIERS ? node : stk_topo_id(s, node, tier)], one = 0;

        if (!n->up || !((d->gpu_types >> n->gpu_type) & 1) || !stk_sets_allow(s, d, node))
            continue;
        *at += n->gpus_free;
        for (uint32_t k = 1; level == STK_AT_LINK && !in_domain(s, node) && k <= n->gpus_free; k++)
            one = stk_topo_linked(s, node, k) ? k : one;
        if (level == STK_AT_LINK && !in_domain(s, node))
            *at = one;
        most = *at > most ? *at : most;
    }
    return most;
}
