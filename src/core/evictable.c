/* SPDX-License-Identifier: Apache-2.0 */
#include "core/evictable.h"

#include "core/blocks.h"
#include "core/index.h"
#include "core/place.h"

uint32_t stk_evictable_level(const struct stk_state *s, const struct stk_job *j)
{
    return s->preempt->room ? s->preempt->level(s->preempt_st, j) : 0;
}

static size_t size_on(const struct stk_state *s)
{
    return ((size_t)s->n_nodes * s->n_levels + 1) * sizeof(*s->evictable);
}

static size_t size_nodes(const struct stk_state *s)
{
    return s->n_counts * s->n_levels * sizeof(*s->evictable_nodes);
}

int stk_evictable_init(struct stk_state *s)
{
    s->evictable = s->mem.resize(s->mem.ctx, NULL, 0, size_on(s));
    s->evictable_nodes = s->mem.resize(s->mem.ctx, NULL, 0, size_nodes(s));
    if (!s->evictable || !s->evictable_nodes)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->n_nodes; i++)
        for (uint32_t k = 0; k < s->n_levels; k++) {
            *stk_evictable_on(s, i, k) = s->nodes[i].gpus;
            ++*stk_evictable_nodes(s, &s->groups[s->nodes[i].group], k, s->nodes[i].gpus);
        }
    return 0;
}

void stk_evictable_memory(struct stk_state *s, struct stk_visit *v)
{
    stk_block(v, &s->evictable, size_on(s));
    stk_block(v, &s->evictable_nodes, size_nodes(s));
}

/* The node has so many for this level from now on. */
static void set(struct stk_state *s, uint32_t node, uint32_t level, uint32_t gpus)
{
    const struct stk_node *n = &s->nodes[node];
    const struct stk_group *g = &s->groups[n->group];
    uint32_t *on = stk_evictable_on(s, node, level);

    *stk_evictable_nodes(s, g, level, *on) -= n->up;
    *on = gpus;
    *stk_evictable_nodes(s, g, level, gpus) += n->up;
}

void stk_evictable_lease(struct stk_state *s, const struct stk_job *j, bool add)
{
    if (stk_demand_shares(&s->shapes[j->shape].demand))
        return; /* shared GPUs count as to be had, whoever is on them */
    for (uint32_t i = 0; s->evictable && i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];
        const uint32_t gpus = stk_index_back_of(s, &s->shapes[j->shape].demand, p),
                       change = add ? 0 - gpus : gpus;

        for (uint32_t k = 0; k <= j->level; k++) /* those it does not give way to */
            set(s, p->node.i, k, *stk_evictable_on(s, p->node.i, k) + change);
    }
}

void stk_evictable_node_up(struct stk_state *s, uint32_t node, bool up)
{
    const struct stk_node *n = &s->nodes[node];

    for (uint32_t k = 0; s->evictable && n->up != up && k < s->n_levels; k++)
        *stk_evictable_nodes(s, &s->groups[n->group], k, *stk_evictable_on(s, node, k)) +=
            up ? 1 : UINT32_MAX;
}

/* What leases of jobs that are not being stopped hold of the node, of GPUs that are not off. */
static void count_leases(const struct stk_state *s, uint32_t node, uint32_t *held)
{
    const struct stk_pool *p = &s->pools[s->nodes[node].pool];

    for (struct stk_ocursor c = stk_otree_begin(&s->trees, &p->ends); c.block != UINT32_MAX;
         stk_ocursor_next(&s->trees, &c)) {
        const struct stk_job *j = &s->jobs[stk_ocursor_get(&s->trees, c)->id];

        for (uint32_t i = 0; !stk_demand_shares(&s->shapes[j->shape].demand) && i < j->n_pieces;
             i++) {
            const struct stk_piece *k = &s->pieces[j->first_piece + i];

            for (uint32_t l = 0; k->node.i == node && l <= j->level; l++)
                held[l] += stk_index_back_of(s, &s->shapes[j->shape].demand, k);
        }
    }
}

void stk_evictable_recount(struct stk_state *s, uint32_t node)
{
    const struct stk_node *n = &s->nodes[node];
    const uint32_t on = n->gpus - (uint32_t)__builtin_popcountll(n->mask_off);
    uint32_t held[STK_LEVEL_MAX] = {0};

    if (!s->evictable)
        return;
    count_leases(s, node, held);
    for (uint32_t k = 0; k < s->n_levels; k++)
        set(s, node, k, on - held[k]);
}

/* Pieces of 'gpus' GPUs that could be had, and nodes with at least 'rest'. */
static void count(const struct stk_state *s, const struct stk_job *j, uint32_t gpus, uint32_t rest,
                  uint64_t *ret_pieces, uint64_t *ret_rest)
{
    const struct stk_pool *p = &s->pools[j->pool];
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    const uint32_t below = stk_evictable_below(s, j);

    *ret_pieces = *ret_rest = 0;
    for (uint32_t i = 0; i < p->n_groups; i++) {
        const struct stk_group *g = &s->groups[p->first_group + i];

        for (uint32_t b = rest < gpus ? rest : gpus;
             stk_group_accepts(g, d->gpu_types) && b <= g->max_gpus; b++) {
            uint64_t nodes = *stk_evictable_nodes(s, g, below, b);

            *ret_pieces += b >= gpus ? nodes * (d->tasks > 1 ? b / gpus : 1) : 0;
            *ret_rest += b >= rest ? nodes : 0;
        }
    }
}

bool stk_evictable_could(const struct stk_state *s, const struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    uint32_t whole, size, rest;
    uint64_t pieces, rests;

    if (!s->evictable || d->gpus == 0)
        return true;
    if (d->pin)
        return s->nodes[d->pin - 1].up &&
               *stk_evictable_on(s, d->pin - 1, stk_evictable_below(s, j)) >= j->gpus;
    stk_place_cut(s, d, j->pool, &whole, &size, &rest);
    if (whole == 0) {
        count(s, j, d->gpus, d->gpus, &pieces, &rests);
        return pieces >= d->tasks;
    }
    count(s, j, size, rest, &pieces, &rests);
    return pieces >= whole && (rest == 0 || rests > whole);
}
