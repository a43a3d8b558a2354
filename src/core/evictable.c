/* SPDX-License-Identifier: Apache-2.0 */
#include "core/evictable.h"

#include "core/index.h"
#include "core/place.h"

/* The counter of nodes of this group with 'gpus' to be had by this tier. */
static uint32_t *counter(const struct stk_state *s, const struct stk_group *g, uint32_t tier,
                         uint32_t gpus)
{
    return &s->evictable[tier * s->n_counts + g->count + gpus];
}

int stk_evictable_init(struct stk_state *s)
{
    s->evictable =
        s->mem.resize(s->mem.ctx, NULL, 0, s->n_counts * STK_TIER_MAX * sizeof(*s->evictable));
    if (!s->evictable)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->n_nodes; i++)
        for (uint32_t t = 0; t < STK_TIER_MAX; t++) {
            s->nodes[i].evictable[t] = s->nodes[i].gpus;
            ++*counter(s, &s->groups[s->nodes[i].group], t, s->nodes[i].gpus);
        }
    return 0;
}

void stk_evictable_done(struct stk_state *s)
{
    if (s->evictable)
        (void)s->mem.resize(s->mem.ctx, s->evictable,
                            s->n_counts * STK_TIER_MAX * sizeof(*s->evictable), 0);
}

void stk_evictable_lease(struct stk_state *s, const struct stk_job *j, bool add)
{
    for (uint32_t i = 0; s->evictable && i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];
        struct stk_node *n = &s->nodes[p->node.i];
        const struct stk_group *g = &s->groups[n->group];
        uint32_t gpus = stk_index_back(s, p);

        for (uint32_t t = 0; t <= j->tier; t++) { /* those it does not give way to */
            *counter(s, g, t, n->evictable[t]) -= n->up;
            n->evictable[t] = add ? n->evictable[t] - gpus : n->evictable[t] + gpus;
            *counter(s, g, t, n->evictable[t]) += n->up;
        }
    }
}

void stk_evictable_node_up(struct stk_state *s, uint32_t node, bool up)
{
    const struct stk_node *n = &s->nodes[node];

    for (uint32_t t = 0; s->evictable && n->up != up && t < STK_TIER_MAX; t++)
        *counter(s, &s->groups[n->group], t, n->evictable[t]) += up ? 1 : UINT32_MAX;
}

/* What leases of jobs that are not being stopped hold of the node, of GPUs that are not off. */
static void count_leases(const struct stk_state *s, uint32_t node, uint32_t *held)
{
    const struct stk_pool *p = &s->pools[s->nodes[node].pool];

    for (struct stk_ocursor c = stk_otree_begin(&s->trees, &p->ends); c.block != UINT32_MAX;
         stk_ocursor_next(&s->trees, &c)) {
        const struct stk_job *j = &s->jobs[stk_ocursor_get(&s->trees, c)->id];

        for (uint32_t i = 0; i < j->n_pieces; i++) {
            const struct stk_piece *k = &s->pieces[j->first_piece + i];

            for (uint32_t t = 0; k->node.i == node && t <= j->tier; t++)
                held[t] += stk_index_back(s, k);
        }
    }
}

void stk_evictable_recount(struct stk_state *s, uint32_t node)
{
    struct stk_node *n = &s->nodes[node];
    const uint32_t on = n->gpus - (uint32_t)__builtin_popcountll(n->mask_off);
    uint32_t held[STK_TIER_MAX] = {0};

    if (!s->evictable)
        return;
    count_leases(s, node, held);
    for (uint32_t t = 0; t < STK_TIER_MAX; t++) {
        *counter(s, &s->groups[n->group], t, n->evictable[t]) -= n->up;
        n->evictable[t] = on - held[t];
        *counter(s, &s->groups[n->group], t, n->evictable[t]) += n->up;
    }
}

/* Pieces of 'gpus' GPUs that could be had, and nodes with at least 'rest'. */
static void count(const struct stk_state *s, const struct stk_job *j, uint32_t gpus, uint32_t rest,
                  uint64_t *ret_pieces, uint64_t *ret_rest)
{
    const struct stk_pool *p = &s->pools[j->pool];
    const struct stk_demand *d = &s->shapes[j->shape].demand;

    *ret_pieces = *ret_rest = 0;
    for (uint32_t i = 0; i < p->n_groups; i++) {
        const struct stk_group *g = &s->groups[p->first_group + i];

        for (uint32_t b = rest < gpus ? rest : gpus;
             stk_group_accepts(g, d->gpu_types) && b <= g->max_gpus; b++) {
            uint64_t nodes = *counter(s, g, j->tier, b);

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
        return s->nodes[d->pin - 1].up && s->nodes[d->pin - 1].evictable[j->tier] >= j->gpus;
    stk_place_cut(s, d, j->pool, &whole, &size, &rest);
    if (whole == 0) {
        count(s, j, d->gpus, d->gpus, &pieces, &rests);
        return pieces >= d->tasks;
    }
    count(s, j, size, rest, &pieces, &rests);
    return pieces >= whole && (rest == 0 || rests > whole);
}
