/* SPDX-License-Identifier: Apache-2.0 */
/* victims_gang.c - victims by where they are: nodes, and the place, for a gang. */
#include "core/victims.h"

#include <math.h>
#include <string.h>

#include "core/gang.h"
#include "core/place.h"

#define TRIES 8    /* places that are tried, and nodes beyond those that should do */
#define FEWER 1e-9 /* of equals, where fewer go */
#define MOST STK_VICTIM_MOST

struct gang {
    uint32_t unit, units; /* pieces of so many GPUs, so many of them */
    uint32_t rest;        /* and one of so many */
    uint32_t tier;
    uint32_t per_node; /* at most so many on a node */
};

static struct gang gang_of(const struct stk_victim_search *x)
{
    const struct stk_demand *d = x->d;
    struct gang g = {.unit = d->gpus, .units = d->tasks, .tier = STK_TIER_ALL, .per_node = MOST};
    uint32_t whole, size, rest;

    stk_place_cut(x->s, d, x->j->pool, &whole, &size, &rest);
    if (whole > 0)
        g = (struct gang){size, whole, rest, STK_TIER_ALL, 1};
    if (d->per_node) {
        g.unit = d->per_node * d->gpus;
        g.units = d->tasks / d->per_node;
        g.per_node = 1;
    }
    if (d->level_required && d->level_required < STK_AT_FAR)
        g.tier = stk_topo_tier(x->s, (enum stk_level)d->level_required);
    return g;
}

static uint32_t place_of(const struct stk_state *s, const struct gang *g, uint32_t node)
{
    if (g->tier == STK_TIERS)
        return node;
    return g->tier == STK_TIER_ALL ? 0 : stk_topo_id(s, node, g->tier);
}

static uint32_t units_on(const struct gang *g, uint32_t gpus)
{
    uint32_t n = gpus / g->unit;

    return n < g->per_node ? n : g->per_node;
}

/* The cheapest way to more pieces on the node, by what one of them costs. */
static struct stk_victim_gains more_on(const struct stk_victim_search *x, const struct gang *g,
                                       const struct stk_victim_node *row, uint32_t *ret_units)
{
    const struct stk_node *n = &x->s->nodes[row->node];
    uint32_t had = units_on(g, n->gpus_free), most = units_on(g, n->gpus);
    struct stk_victim_gains dp[MOST + 1], best = {.ok = false};
    struct stk_victim_on on;

    *ret_units = 0;
    if (most <= had)
        return best;
    stk_victims_look(x, row, &on);
    if (x->d->exclusive) {
        *ret_units = most;
        return stk_victims_everybody(x, row->node, &on);
    }
    stk_victims_cheapest(&on, most * g->unit - n->gpus_free, dp);
    for (uint32_t k = had + 1; k <= most; k++) {
        const struct stk_victim_gains *c = &dp[k * g->unit - n->gpus_free];

        if (c->ok && (!best.ok || c->cost * *ret_units < best.cost * (k - had))) {
            best = *c;
            *ret_units = k - had;
        }
    }
    return best;
}

/* Pieces that every place has room for as it is. */
static void count_free(struct stk_victim_search *x, const struct gang *g)
{
    const struct stk_state *s = x->s;
    const struct stk_pool *p = &s->pools[x->ask->pool];

    if (x->counted)
        return;
    x->counted = true;
    for (uint32_t i = 0; i <= s->n_nodes; i++) {
        x->v->have[i] = 0;
        x->v->price[i] = 0;
    }
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        uint32_t node = s->pool_nodes[p->first_node + i];

        if (stk_victims_of_use(x, node) && !s->nodes[node].held &&
            (!x->d->exclusive || s->nodes[node].n_uses == 0))
            x->v->have[place_of(s, g, node)] += units_on(g, s->nodes[node].gpus_free);
    }
}

/* Positive numbers are in the order of their bytes. */
static int64_t as_key(double cost)
{
    int64_t key;

    memcpy(&key, &cost, sizeof(key));
    return key;
}

/* Of the candidates of a node, which are priced, the one that would go last. */
static const struct stk_victim_at *last_of(const struct stk_victim_search *x,
                                           const struct stk_victim_node *row)
{
    const struct stk_victim_at *last = NULL;

    for (uint32_t at = row->first; at; at = x->v->at[at - 1].next) {
        const struct stk_victim_at *a = &x->v->at[at - 1];

        if (!last || stk_victims_before(&x->v->of[last->victim], &x->v->of[a->victim]))
            last = a;
    }
    return last;
}

enum sort_by { BY_PIECE, BY_LEASE, BY_PRIORITY, BY_KEY, BY_COST, SORTS };

static int64_t sort_key(const struct stk_victim_search *x, uint32_t i, enum sort_by by)
{
    const struct stk_victim_node *row = &x->v->nodes[i];
    const struct stk_victim_at *at = last_of(x, row);
    const struct stk_victim *last = &x->v->of[at->victim];

    switch (by) {
    case BY_PIECE:
        return at->piece;
    case BY_LEASE:
        return last->lease;
    case BY_PRIORITY:
        return -last->priority;
    case BY_KEY:
        return -last->key;
    case BY_COST:
    case SORTS:
        break;
    }
    return as_key(row->cost / row->units * (1 + row->n * FEWER));
}

/* Nodes by what a piece costs there, in v->order; among equals by who would go last there, so that
 * it does not depend on the order in which candidates were found. */
static uint32_t sort_rows(struct stk_victim_search *x, const struct gang *g)
{
    struct stk_victims *v = x->v;
    uint32_t n = 0;

    for (uint32_t i = 0; i < x->rows; i++) {
        struct stk_victim_node *row = &v->nodes[i];
        struct stk_victim_gains c;

        if (units_on(g, row->most) <= units_on(g, x->s->nodes[row->node].gpus_free) &&
            !x->d->exclusive)
            continue;
        c = more_on(x, g, row, &row->units);
        row->place = place_of(x->s, g, row->node);
        row->cost = c.cost;
        row->n = c.n;
        if (c.ok)
            v->order[n++] = (struct stk_sort_item){0, i, 0};
    }
    for (int by = 0; by < SORTS; by++) { /* the last of what counts comes first */
        for (uint32_t i = 0; i < n; i++)
            v->order[i].key = sort_key(x, v->order[i].id, (enum sort_by)by);
        stk_sort(v->order, n, v->order_tmp);
    }
    return n;
}

/* What each place would cost: as far as its cheapest nodes suffice. */
static void price_places(const struct stk_victim_search *x, const struct gang *g, uint32_t n)
{
    struct stk_victims *v = x->v;

    for (uint32_t i = 0; i < n; i++) {
        const struct stk_victim_node *row = &v->nodes[v->order[i].id];

        if (v->have[row->place] >= g->units)
            continue;
        v->have[row->place] += row->units;
        v->price[row->place] += row->cost;
    }
}

/* The cheapest place that has, or could have, enough; those that are out cost INFINITY. */
static uint32_t best_place(const struct stk_victim_search *x, const struct gang *g, uint32_t n)
{
    const struct stk_victims *v = x->v;
    uint32_t best = STK_NONE;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t p = v->nodes[v->order[i].id].place;

        if (v->have[p] >= g->units && v->price[p] < (double)INFINITY &&
            (best == STK_NONE || v->price[p] < v->price[best]))
            best = p;
    }
    return best;
}

/* One more piece, of what is left of a cut job, where it costs least. */
static void add_rest(struct stk_victim_search *x, const struct gang *g)
{
    const struct stk_victim_node *best = NULL;
    struct stk_victim_gains least = {.ok = false};

    for (uint32_t i = 0; i < x->rows; i++) {
        const struct stk_victim_node *row = &x->v->nodes[i];
        const struct stk_victim_gains c =
            x->s->nodes[row->node].gpus_free < x->s->nodes[row->node].gpus
                ? stk_victims_for(x, row, g->rest)
                : (struct stk_victim_gains){.ok = false};

        if (c.ok && stk_victims_less(&c, &least)) {
            least = c;
            best = row;
        }
    }
    if (best)
        (void)stk_victims_add_gains(x, best, &least);
}

/* Its nodes in order, until there are enough pieces; then until the job fits, for a while. */
static void try_place(struct stk_victim_search *x, const struct gang *g, uint32_t place, uint32_t n)
{
    uint64_t have = 0;
    uint32_t tries = 0;
    bool fits = false;

    for (uint32_t i = 0; i < x->s->pools[x->ask->pool].n_nodes; i++) {
        uint32_t node = x->s->pool_nodes[x->s->pools[x->ask->pool].first_node + i];

        if (stk_victims_of_use(x, node) && !x->s->nodes[node].held &&
            place_of(x->s, g, node) == place && (!x->d->exclusive || x->s->nodes[node].n_uses == 0))
            have += units_on(g, x->s->nodes[node].gpus_free);
    }
    for (uint32_t i = 0; i < n && !fits && tries < TRIES; i++) {
        const struct stk_victim_node *row = &x->v->nodes[x->v->order[i].id];
        uint32_t units;
        struct stk_victim_gains c;

        if (row->place != place)
            continue;
        c = more_on(x, g, row, &units);
        if (!c.ok || !stk_victims_add_gains(x, row, &c))
            continue;
        have += units;
        if (have < g->units)
            continue;
        fits = stk_victims_fit(x);
        if (!fits && g->rest && tries == 0) {
            add_rest(x, g);
            fits = stk_victims_fit(x);
        }
        tries++;
    }
    if (fits)
        stk_victims_keep(x);
    else
        stk_victims_reset(x);
}

bool stk_victims_could(struct stk_victim_search *x)
{
    const struct gang g = gang_of(x);
    struct stk_victims *v = x->v;

    if (g.unit == 0 || g.unit > MOST || x->d->gpu_milli || !x->sure)
        return true;
    if (x->s->pools[x->ask->pool].gpus_free + x->brings < (uint64_t)g.unit * g.units)
        return false;
    count_free(x, &g);
    for (uint32_t i = 0; i < x->rows; i++) {
        v->nodes[i].place = place_of(x->s, &g, v->nodes[i].node);
        v->most[v->nodes[i].place] = v->have[v->nodes[i].place];
    }
    for (uint32_t i = 0; i < x->rows; i++) {
        const struct stk_victim_node *row = &v->nodes[i];
        const struct stk_node *n = &x->s->nodes[row->node];
        const bool counted = !n->held && (!x->d->exclusive || n->n_uses == 0);

        v->most[row->place] += units_on(&g, row->most < n->gpus ? row->most : n->gpus);
        v->most[row->place] -= counted ? units_on(&g, n->gpus_free) : 0;
        if (v->most[row->place] >= g.units)
            return true;
    }
    return false;
}

void stk_victims_by_place(struct stk_victim_search *x)
{
    const struct gang g = gang_of(x);
    uint32_t n, place;

    if (g.unit == 0 || g.unit > MOST || x->d->gpu_milli)
        return;
    count_free(x, &g);
    n = sort_rows(x, &g);
    price_places(x, &g, n);
    x->counted = false;
    for (uint32_t i = 0; i < TRIES && (place = best_place(x, &g, n)) != STK_NONE; i++) {
        if (x->n_best > 0 && x->v->price[place] >= x->best_cost)
            return;
        x->v->price[place] = (double)INFINITY;
        try_place(x, &g, place, n);
    }
}
