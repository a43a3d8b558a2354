/* SPDX-License-Identifier: Apache-2.0 */
/* victims_near.c - victims by where they are: the cheapest on one node, and nodes for a gang. */
#include "core/victims.h"

#include <math.h>
#include <string.h>

#include "core/gang.h"
#include "core/index.h"
#include "core/place.h"

#define TRIES 8    /* nodes or places that are tried */
#define FEWER 1e-9 /* of equals, where fewer go */
#define MOST 64    /* GPUs, and candidates, of a node that are counted */

struct gains {    /* candidates that could go together, and what that costs */
    uint64_t who; /* of those of the node, in order */
    double cost;
    uint32_t n;
    int32_t prio;   /* the highest */
    uint32_t lease; /* the first */
    uint32_t gpus;  /* that they bring */
    bool ok;
};

struct on_node { /* the candidates of a node */
    uint32_t victim[MOST], piece[MOST], n;
    struct gains item[2 * MOST]; /* each frees GPUs by itself */
    uint32_t n_items;
};

/* ---- what can be had on one node ---- */

static struct gains gains_of(const struct stk_victim_search *x, const struct on_node *on,
                             uint32_t i)
{
    const struct stk_victim *v = &x->v->of[on->victim[i]];
    const struct stk_job *j = &x->s->jobs[v->job];

    return (struct gains){.who = UINT64_C(1) << i,
                          .cost = v->cost,
                          .n = 1,
                          .prio = j->priority,
                          .lease = j->lease,
                          .ok = true};
}

static struct gains both(const struct gains *a, const struct gains *b)
{
    if (a->n == 0)
        return *b;
    return (struct gains){.who = a->who | b->who,
                          .cost = a->cost + b->cost,
                          .n = a->n + b->n,
                          .prio = a->prio > b->prio ? a->prio : b->prio,
                          .lease = a->lease < b->lease ? a->lease : b->lease,
                          .ok = true};
}

static bool less(const struct gains *a, const struct gains *b)
{
    if (!b->ok || a->cost < b->cost || a->cost > b->cost)
        return !b->ok || a->cost < b->cost;
    if (a->n != b->n)
        return a->n < b->n;
    return a->prio != b->prio ? a->prio < b->prio : a->lease > b->lease;
}

static const struct stk_demand *demand_of(const struct stk_victim_search *x,
                                          const struct on_node *on, uint32_t i)
{
    return &x->s->shapes[x->s->jobs[x->v->of[on->victim[i]].job].shape].demand;
}

/* All on this shared GPU, if they are candidates: then it is free. */
static void add_shared(const struct stk_victim_search *x, struct on_node *on, uint64_t gpu,
                       uint32_t sharers)
{
    struct gains all = {.n = 0};

    for (uint32_t i = 0; i < on->n; i++)
        if (stk_demand_shares(demand_of(x, on, i)) && (x->s->pieces[on->piece[i]].mask & gpu)) {
            const struct gains one = gains_of(x, on, i);

            all = both(&all, &one);
        }
    all.gpus = 1;
    if (all.n > 0 && all.n == sharers)
        on->item[on->n_items++] = all;
}

static void look_at(const struct stk_victim_search *x, const struct stk_victim_node *row,
                    struct on_node *on)
{
    const struct stk_state *s = x->s;
    const struct stk_node *n = &s->nodes[row->node];

    on->n = on->n_items = 0;
    for (uint32_t at = row->first; at && on->n < MOST; at = x->v->at[at - 1].next) {
        if (x->v->of[x->v->at[at - 1].victim].in)
            continue;
        on->victim[on->n] = x->v->at[at - 1].victim;
        on->piece[on->n++] = x->v->at[at - 1].piece;
    }
    for (uint32_t i = 0; i < on->n; i++) {
        struct gains one = gains_of(x, on, i);
        const struct stk_demand *d = demand_of(x, on, i);

        one.gpus = stk_demand_shares(d) ? 0 : stk_index_back_of(s, d, &s->pieces[on->piece[i]]);
        if (one.gpus > 0)
            on->item[on->n_items++] = one;
    }
    for (uint64_t m = n->mask_part & ~n->mask_off; m && on->n_items < 2 * MOST; m &= m - 1)
        add_shared(x, on, m & -m, s->parts[n->first_part + (uint32_t)__builtin_ctzll(m)].n);
}

/* Of each number of GPUs up to 'most', the cheapest that bring as many. */
static void cheapest(const struct on_node *on, uint32_t most, struct gains dp[MOST + 1])
{
    dp[0] = (struct gains){.ok = true};
    for (uint32_t g = 1; g <= most; g++)
        dp[g].ok = false;
    for (uint32_t i = 0; i < on->n_items; i++) {
        const struct gains *it = &on->item[i];

        for (uint32_t g = most; g > 0; g--) {
            const struct gains *from = &dp[g > it->gpus ? g - it->gpus : 0];
            struct gains with;

            if (!from->ok || (from->who & it->who))
                continue;
            with = both(from, it);
            if (less(&with, &dp[g]))
                dp[g] = with;
        }
    }
}

/* Room for a part: on a GPU of its own, or beside others. */
static struct gains cheapest_part(const struct stk_victim_search *x, uint32_t node,
                                  const struct on_node *on)
{
    const struct stk_node *n = &x->s->nodes[node];
    struct gains best = {.ok = false};

    for (uint32_t i = 0; i < on->n_items; i++)
        if (less(&on->item[i], &best))
            best = on->item[i];
    for (uint64_t m = n->mask_part & ~n->mask_off; m; m &= m - 1) {
        const struct stk_part *p = &x->s->parts[n->first_part + (uint32_t)__builtin_ctzll(m)];
        uint32_t left = p->milli;
        struct gains some = {.ok = false};

        for (uint32_t i = 0; i < on->n && left < x->d->gpu_milli; i++) {
            const struct stk_demand *d = demand_of(x, on, i);
            const struct gains one = gains_of(x, on, i);

            if (!(x->s->pieces[on->piece[i]].mask & m & -m) || !d->gpu_milli)
                continue;
            some = both(&some, &one);
            left += d->gpu_milli;
        }
        if (some.ok && left >= x->d->gpu_milli && less(&some, &best))
            best = some;
    }
    return best;
}

static struct gains everybody(const struct stk_victim_search *x, uint32_t node,
                              const struct on_node *on)
{
    struct gains all = {.ok = false};

    for (uint32_t i = 0; i < on->n; i++) {
        const struct gains one = gains_of(x, on, i);

        all = both(&all, &one);
    }
    all.ok = all.n > 0 && all.n == x->s->nodes[node].n_uses;
    return all;
}

/* What is to go so that the node has room for so many more GPUs of the job; not ok: it never has.
 * With CPU and the like it may still not fit. */
static struct gains for_gpus(const struct stk_victim_search *x, const struct stk_victim_node *row,
                             uint32_t need)
{
    const struct stk_node *n = &x->s->nodes[row->node];
    struct gains dp[MOST + 1];
    struct on_node on;

    look_at(x, row, &on);
    if (x->d->exclusive)
        return everybody(x, row->node, &on);
    if (x->d->gpu_milli)
        return cheapest_part(x, row->node, &on);
    if (need > n->gpus)
        return (struct gains){.ok = false};
    need = need > n->gpus_free ? need - n->gpus_free : 0;
    if (need == 0) { /* it lacks something else: the first of them, to begin with */
        struct gains one = {.ok = false};

        return on.n > 0 ? gains_of(x, &on, 0) : one;
    }
    cheapest(&on, need, dp);
    return dp[need];
}

static bool add_gains(struct stk_victim_search *x, const struct stk_victim_node *row,
                      const struct gains *g)
{
    struct on_node on;
    bool ok = true;

    look_at(x, row, &on);
    for (uint32_t i = 0; i < on.n; i++)
        if (g->who >> i & 1)
            ok &= stk_victims_add(x, on.victim[i]);
    return ok;
}

/* ---- nodes with candidates ---- */

static bool of_use(const struct stk_victim_search *x, uint32_t node)
{
    const struct stk_node *n = &x->s->nodes[node];

    if (x->d->pin && x->d->pin - 1 != node)
        return false;
    return n->up && !n->aggregate && n->gpus <= MOST && (x->d->gpu_types >> n->gpu_type & 1) &&
           !(n->gpu_mem_mib && x->d->gpu_mem_mib > n->gpu_mem_mib);
}

/* Rows of nodes, each with its candidates in their order. */
static uint32_t gather_nodes(struct stk_victim_search *x)
{
    struct stk_state *s = x->s;
    uint32_t rows = 0, n_at = 0;

    s->stamp++;
    for (uint32_t i = x->n; i > 0; i--) {
        const struct stk_job *v = &s->jobs[x->v->of[i - 1].job];

        for (uint32_t k = 0; k < v->n_pieces; k++) {
            uint32_t piece = v->first_piece + k, node = s->pieces[piece].node.i;
            struct stk_victim_node *row;

            if (!of_use(x, node))
                continue;
            if (s->node_stamp[node] != s->stamp) {
                s->node_stamp[node] = s->stamp;
                s->sim_free[node] = rows;
                x->v->nodes[rows++] = (struct stk_victim_node){.node = node};
            }
            row = &x->v->nodes[s->sim_free[node]];
            if (row->first && x->v->at[row->first - 1].victim == i - 1)
                continue; /* several MIG instances of a job */
            x->v->at[n_at++] =
                (struct stk_victim_at){.victim = i - 1, .next = row->first, .piece = piece};
            row->first = n_at;
        }
    }
    return rows;
}

/* ---- a job on one node ---- */

/* So many GPUs of one node; 0: of several. */
static uint32_t on_one_node(const struct stk_victim_search *x)
{
    const struct stk_demand *d = x->d;
    uint32_t whole, size, rest;

    if (d->pin)
        return d->gpus * d->tasks;
    stk_place_cut(x->s, d, x->j->pool, &whole, &size, &rest);
    if (whole > 0)
        return 0;
    if (d->tasks > 1 && d->level_required == STK_AT_NODE && !d->gpu_milli)
        return d->gpus * d->tasks;
    return d->tasks == 1 ? (d->gpus ? d->gpus : 1) : 0;
}

static bool row_less(const struct stk_victim_node *a, const struct stk_victim_node *b)
{
    const struct gains x = {.cost = a->cost, .n = a->n, .prio = a->prio, .lease = a->lease};
    const struct gains y = {
        .cost = b->cost, .n = b->n, .prio = b->prio, .lease = b->lease, .ok = true};

    return less(&x, &y);
}

static struct stk_victim_node *best_row(const struct stk_victim_search *x, uint32_t rows)
{
    struct stk_victim_node *best = NULL;

    for (uint32_t i = 0; i < rows; i++) {
        struct stk_victim_node *row = &x->v->nodes[i];

        if (!row->tried && row->cost >= 0 && (!best || row_less(row, best)))
            best = row;
    }
    return best;
}

static void try_node(struct stk_victim_search *x, const struct stk_victim_node *row, uint32_t need)
{
    const struct gains g = for_gpus(x, row, need);
    bool fits = add_gains(x, row, &g) && stk_victims_fit(x);

    if (!fits) {
        for (uint32_t at = row->first; at; at = x->v->at[at - 1].next)
            (void)stk_victims_add(x, x->v->at[at - 1].victim);
        fits = stk_victims_fit(x);
    }
    if (fits)
        stk_victims_keep(x);
    else
        stk_victims_reset(x);
}

static bool by_node(struct stk_victim_search *x, uint32_t need)
{
    uint32_t rows = gather_nodes(x);
    struct stk_victim_node *row;

    for (uint32_t i = 0; i < rows; i++) {
        const struct gains g = for_gpus(x, &x->v->nodes[i], need);

        row = &x->v->nodes[i];
        row->cost = g.ok ? g.cost : -1;
        row->n = g.n;
        row->prio = g.prio;
        row->lease = g.lease;
    }
    for (uint32_t i = 0; i < TRIES && (row = best_row(x, rows)) != NULL; i++) {
        if (x->n_best > 0 && row->cost >= x->best_cost)
            return true;
        row->tried = true;
        try_node(x, row, need);
    }
    return x->n_best > 0;
}

/* ---- a gang ---- */

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
static struct gains more_on(const struct stk_victim_search *x, const struct gang *g,
                            const struct stk_victim_node *row, uint32_t *ret_units)
{
    const struct stk_node *n = &x->s->nodes[row->node];
    uint32_t had = units_on(g, n->gpus_free), most = units_on(g, n->gpus);
    struct gains dp[MOST + 1], best = {.ok = false};
    struct on_node on;

    *ret_units = 0;
    if (most <= had)
        return best;
    look_at(x, row, &on);
    if (x->d->exclusive) {
        *ret_units = most;
        return everybody(x, row->node, &on);
    }
    cheapest(&on, most * g->unit - n->gpus_free, dp);
    for (uint32_t k = had + 1; k <= most; k++) {
        const struct gains *c = &dp[k * g->unit - n->gpus_free];

        if (c->ok && (!best.ok || c->cost * *ret_units < best.cost * (k - had))) {
            best = *c;
            *ret_units = k - had;
        }
    }
    return best;
}

/* Pieces that every place has room for as it is. */
static void count_free(const struct stk_victim_search *x, const struct gang *g)
{
    const struct stk_state *s = x->s;
    const struct stk_pool *p = &s->pools[x->ask->pool];

    for (uint32_t i = 0; i <= s->n_nodes; i++) {
        x->v->have[i] = 0;
        x->v->price[i] = 0;
    }
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        uint32_t node = s->pool_nodes[p->first_node + i];

        if (of_use(x, node) && !s->nodes[node].held &&
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

/* Nodes by what a piece costs there, in v->order. */
static uint32_t sort_rows(struct stk_victim_search *x, const struct gang *g, uint32_t rows)
{
    struct stk_victims *v = x->v;
    uint32_t n = 0;

    for (uint32_t i = 0; i < rows; i++) {
        struct stk_victim_node *row = &v->nodes[i];
        const struct gains c = more_on(x, g, row, &row->units);

        row->cost = c.cost;
        row->place = place_of(x->s, g, row->node);
        if (c.ok)
            v->order[n++] =
                (struct stk_sort_item){as_key(c.cost / row->units * (1 + c.n * FEWER)), i, 0};
    }
    stk_sort(v->order, n, v->order_tmp);
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
static void add_rest(struct stk_victim_search *x, const struct gang *g, uint32_t rows)
{
    const struct stk_victim_node *best = NULL;
    struct gains least = {.ok = false};

    for (uint32_t i = 0; i < rows; i++) {
        const struct stk_victim_node *row = &x->v->nodes[i];
        const struct gains c = x->s->nodes[row->node].gpus_free < x->s->nodes[row->node].gpus
                                   ? for_gpus(x, row, g->rest)
                                   : (struct gains){.ok = false};

        if (c.ok && less(&c, &least)) {
            least = c;
            best = row;
        }
    }
    if (best)
        (void)add_gains(x, best, &least);
}

/* Its nodes in order, until there are enough pieces; then until the job fits, for a while. */
static void try_place(struct stk_victim_search *x, const struct gang *g, uint32_t place, uint32_t n,
                      uint32_t rows)
{
    uint64_t have = 0;
    uint32_t tries = 0;
    bool fits = false;

    for (uint32_t i = 0; i < x->s->pools[x->ask->pool].n_nodes; i++) {
        uint32_t node = x->s->pool_nodes[x->s->pools[x->ask->pool].first_node + i];

        if (of_use(x, node) && !x->s->nodes[node].held && place_of(x->s, g, node) == place &&
            (!x->d->exclusive || x->s->nodes[node].n_uses == 0))
            have += units_on(g, x->s->nodes[node].gpus_free);
    }
    for (uint32_t i = 0; i < n && !fits && tries < TRIES; i++) {
        const struct stk_victim_node *row = &x->v->nodes[x->v->order[i].id];
        uint32_t units;
        struct gains c;

        if (row->place != place)
            continue;
        c = more_on(x, g, row, &units);
        if (!c.ok || !add_gains(x, row, &c))
            continue;
        have += units;
        if (have < g->units)
            continue;
        fits = stk_victims_fit(x);
        if (!fits && g->rest && tries == 0) {
            add_rest(x, g, rows);
            fits = stk_victims_fit(x);
        }
        tries++;
    }
    if (fits)
        stk_victims_keep(x);
    else
        stk_victims_reset(x);
}

static void by_place(struct stk_victim_search *x)
{
    const struct gang g = gang_of(x);
    uint32_t rows, n, place;

    if (g.unit == 0 || g.unit > MOST || x->d->gpu_milli)
        return;
    rows = gather_nodes(x);
    count_free(x, &g);
    n = sort_rows(x, &g, rows);
    price_places(x, &g, n);
    for (uint32_t i = 0; i < TRIES && (place = best_place(x, &g, n)) != STK_NONE; i++) {
        if (x->n_best > 0 && x->v->price[place] >= x->best_cost)
            return;
        x->v->price[place] = (double)INFINITY;
        try_place(x, &g, place, n, rows);
    }
}

bool stk_victims_near(struct stk_victim_search *x)
{
    uint32_t need = on_one_node(x);

    if (need > 0)
        return by_node(x, need);
    by_place(x);
    return false;
}
