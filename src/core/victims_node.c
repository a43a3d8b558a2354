/* SPDX-License-Identifier: Apache-2.0 */
/* victims_node.c - victims by where they are: the cheapest on one node.
 *
 * Nodes are counted first: what is free there with all its candidates gone. Only on those that then
 * have enough candidates are priced and put in order.
 */
#include "core/victims.h"

#include "core/index.h"
#include "core/place.h"
#include "core/sets.h"

#define TRIES 8 /* nodes that are tried */
#define MOST STK_VICTIM_MOST

/* ---- what can be had on one node ---- */

/* What a candidate costs. One with pieces on other nodes brings room there, too: for a gang, which
 * may use that, this node bears its part. Not where all sets are looked at in the end. */
static double cost_on(const struct stk_victim_search *x, const struct stk_victim *v,
                      const struct stk_job *j, uint32_t piece)
{
    if (x->need > 0 || j->n_pieces < 2 || j->gpus == 0 || x->n <= STK_EXACT_MOST)
        return v->cost;
    return v->cost * x->s->pieces[piece].gpus / j->gpus;
}

static struct stk_victim_gains gains_of(const struct stk_victim_search *x,
                                        const struct stk_victim_on *on, uint32_t i)
{
    const struct stk_victim *v = &x->v->of[on->victim[i]];
    const struct stk_job *j = &x->s->jobs[v->job];

    return (struct stk_victim_gains){.who = UINT64_C(1) << i,
                                     .cost = cost_on(x, v, j, on->piece[i]),
                                     .n = 1,
                                     .prio = j->priority,
                                     .lease = j->lease,
                                     .ok = true};
}

static struct stk_victim_gains both(const struct stk_victim_gains *a,
                                    const struct stk_victim_gains *b)
{
    if (a->n == 0)
        return *b;
    return (struct stk_victim_gains){.who = a->who | b->who,
                                     .cost = a->cost + b->cost,
                                     .n = a->n + b->n,
                                     .prio = a->prio > b->prio ? a->prio : b->prio,
                                     .lease = a->lease < b->lease ? a->lease : b->lease,
                                     .ok = true};
}

bool stk_victims_less(const struct stk_victim_gains *a, const struct stk_victim_gains *b)
{
    if (!b->ok || a->cost < b->cost || a->cost > b->cost)
        return !b->ok || a->cost < b->cost;
    if (a->n != b->n)
        return a->n < b->n;
    return a->prio != b->prio ? a->prio < b->prio : a->lease > b->lease;
}

static const struct stk_demand *demand_of(const struct stk_victim_search *x,
                                          const struct stk_victim_on *on, uint32_t i)
{
    return &x->s->shapes[x->s->jobs[x->v->of[on->victim[i]].job].shape].demand;
}

/* All on this shared GPU, if they are candidates: then it is free. */
static void add_shared(const struct stk_victim_search *x, struct stk_victim_on *on, uint64_t gpu,
                       uint32_t sharers)
{
    struct stk_victim_gains all = {.n = 0};

    for (uint32_t i = 0; i < on->n; i++)
        if (stk_demand_shares(demand_of(x, on, i)) && (x->s->pieces[on->piece[i]].mask & gpu)) {
            const struct stk_victim_gains one = gains_of(x, on, i);

            all = both(&all, &one);
        }
    all.gpus = 1;
    if (all.n > 0 && all.n == sharers)
        on->item[on->n_items++] = all;
}

/* One more, where it goes; of more than MOST the first are kept. */
static void insert(const struct stk_victim_search *x, struct stk_victim_on *on, uint32_t victim,
                   uint32_t piece)
{
    const struct stk_victim *of = x->v->of;
    uint32_t at = on->n;

    while (at > 0 && stk_victims_before(&of[victim], &of[on->victim[at - 1]]))
        at--;
    if (at == MOST)
        return;
    on->n += on->n < MOST;
    for (uint32_t k = on->n - 1; k > at; k--) {
        on->victim[k] = on->victim[k - 1];
        on->piece[k] = on->piece[k - 1];
    }
    on->victim[at] = victim;
    on->piece[at] = piece;
}

void stk_victims_look(const struct stk_victim_search *x, const struct stk_victim_node *row,
                      struct stk_victim_on *on)
{
    const struct stk_state *s = x->s;
    const struct stk_node *n = &s->nodes[row->node];

    on->n = on->n_items = 0;
    for (uint32_t at = row->first; at; at = x->v->at[at - 1].next) {
        struct stk_victim *v = &x->v->of[x->v->at[at - 1].victim];

        if (v->in)
            continue;
        stk_victims_price(x, v);
        insert(x, on, x->v->at[at - 1].victim,
               s->jobs[v->job].first_piece + x->v->at[at - 1].piece);
    }
    for (uint32_t i = 0; i < on->n; i++) {
        struct stk_victim_gains one = gains_of(x, on, i);
        const struct stk_demand *d = demand_of(x, on, i);

        one.gpus = stk_demand_shares(d) ? 0 : stk_index_back_of(s, d, &s->pieces[on->piece[i]]);
        if (one.gpus > 0)
            on->item[on->n_items++] = one;
    }
    for (uint64_t m = n->mask_part & ~n->mask_off; m && on->n_items < 2 * MOST; m &= m - 1)
        add_shared(x, on, m & -m, s->parts[n->first_part + (uint32_t)__builtin_ctzll(m)].n);
}

void stk_victims_cheapest(const struct stk_victim_on *on, uint32_t most,
                          struct stk_victim_gains dp[MOST + 1])
{
    dp[0] = (struct stk_victim_gains){.ok = true};
    for (uint32_t g = 1; g <= most; g++)
        dp[g].ok = false;
    for (uint32_t i = 0; i < on->n_items; i++) {
        const struct stk_victim_gains *it = &on->item[i];

        for (uint32_t g = most; g > 0; g--) {
            const struct stk_victim_gains *from = &dp[g > it->gpus ? g - it->gpus : 0];
            struct stk_victim_gains with;

            if (!from->ok || (from->who & it->who))
                continue;
            with = both(from, it);
            if (stk_victims_less(&with, &dp[g]))
                dp[g] = with;
        }
    }
}

/* Room for a part: on a GPU of its own, or beside others. */
static struct stk_victim_gains cheapest_part(const struct stk_victim_search *x, uint32_t node,
                                             const struct stk_victim_on *on)
{
    const struct stk_node *n = &x->s->nodes[node];
    struct stk_victim_gains best = {.ok = false};

    for (uint32_t i = 0; i < on->n_items; i++)
        if (stk_victims_less(&on->item[i], &best))
            best = on->item[i];
    for (uint64_t m = n->mask_part & ~n->mask_off; m; m &= m - 1) {
        const struct stk_part *p = &x->s->parts[n->first_part + (uint32_t)__builtin_ctzll(m)];
        uint32_t left = p->milli;
        struct stk_victim_gains some = {.ok = false};

        for (uint32_t i = 0; i < on->n && left < x->d->gpu_milli; i++) {
            const struct stk_demand *d = demand_of(x, on, i);
            const struct stk_victim_gains one = gains_of(x, on, i);

            if (!(x->s->pieces[on->piece[i]].mask & m & -m) || !d->gpu_milli)
                continue;
            some = both(&some, &one);
            left += d->gpu_milli;
        }
        if (some.ok && left >= x->d->gpu_milli && stk_victims_less(&some, &best))
            best = some;
    }
    return best;
}

struct stk_victim_gains stk_victims_everybody(const struct stk_victim_search *x, uint32_t node,
                                              const struct stk_victim_on *on)
{
    struct stk_victim_gains all = {.ok = false};

    for (uint32_t i = 0; i < on->n; i++) {
        const struct stk_victim_gains one = gains_of(x, on, i);

        all = both(&all, &one);
    }
    all.ok = all.n > 0 && all.n == x->s->nodes[node].n_uses;
    return all;
}

struct stk_victim_gains stk_victims_for(const struct stk_victim_search *x,
                                        const struct stk_victim_node *row, uint32_t need)
{
    const struct stk_node *n = &x->s->nodes[row->node];
    struct stk_victim_gains dp[MOST + 1];
    struct stk_victim_on on;

    stk_victims_look(x, row, &on);
    if (x->d->exclusive)
        return stk_victims_everybody(x, row->node, &on);
    if (x->d->gpu_milli)
        return cheapest_part(x, row->node, &on);
    if (need > n->gpus)
        return (struct stk_victim_gains){.ok = false};
    need = need > n->gpus_free ? need - n->gpus_free : 0;
    if (need == 0) { /* it lacks something else: the first of them, to begin with */
        struct stk_victim_gains one = {.ok = false};

        return on.n > 0 ? gains_of(x, &on, 0) : one;
    }
    stk_victims_cheapest(&on, need, dp);
    return dp[need];
}

bool stk_victims_add_gains(struct stk_victim_search *x, const struct stk_victim_node *row,
                           const struct stk_victim_gains *g)
{
    struct stk_victim_on on;
    bool ok = true;

    stk_victims_look(x, row, &on);
    for (uint32_t i = 0; i < on.n; i++)
        if (g->who >> i & 1)
            ok &= stk_victims_add(x, on.victim[i]);
    return ok;
}

/* ---- nodes with candidates ---- */

bool stk_victims_of_use(const struct stk_victim_search *x, uint32_t node)
{
    const struct stk_node *n = &x->s->nodes[node];

    if (x->d->pin ? x->d->pin - 1 != node : !stk_sets_allow(x->s, x->d, node))
        return false;
    return n->up && !n->aggregate && n->gpus <= MOST && (x->d->gpu_types >> n->gpu_type & 1) &&
           !(n->gpu_mem_mib && x->d->gpu_mem_mib > n->gpu_mem_mib);
}

/* GPUs that come back when the piece goes, at most: of a shared one, all of the node's. */
static uint32_t brings(const struct stk_state *s, const struct stk_job *v, uint32_t piece)
{
    const struct stk_demand *d = &s->shapes[v->shape].demand;
    const struct stk_piece *p = &s->pieces[piece];

    return stk_demand_shares(d) ? s->nodes[p->node.i].gpus : stk_index_back_of(s, d, p);
}

/* The row of a node; NULL: the job cannot be there. */
static struct stk_victim_node *row_of(struct stk_victim_search *x, uint32_t node)
{
    struct stk_state *s = x->s;
    const struct stk_node *n = &s->nodes[node];

    if (s->node_stamp[node] != s->stamp) {
        s->node_stamp[node] = s->stamp;
        s->sim_free[node] = x->rows;
        if (stk_victims_of_use(x, node)) {
            x->v->nodes[x->rows++] = (struct stk_victim_node){.node = node, .most = n->gpus_free};
        } else {
            s->sim_free[node] = STK_NONE;
            x->sure &= !n->aggregate && n->gpus <= MOST;
        }
    }
    return s->sim_free[node] == STK_NONE ? NULL : &x->v->nodes[s->sim_free[node]];
}

static void add_piece(struct stk_victim_search *x, uint32_t victim, uint32_t piece, uint32_t node,
                      uint32_t gpus)
{
    struct stk_victim_node *row = row_of(x, node);

    if (!row)
        return;
    row->most += gpus;
    x->brings += gpus;
    x->reached |= x->need > 0 && row->most >= x->need;
    if (row->first && x->v->at[row->first - 1].victim == victim)
        return; /* several MIG instances of a job */
    x->v->at[x->n_at++] =
        (struct stk_victim_at){.victim = victim, .next = row->first, .piece = piece};
    row->first = x->n_at;
}

/* Nodes are found by s->stamp and s->sim_free, which trials between two calls have used, too. */
static void find_rows_again(struct stk_victim_search *x)
{
    struct stk_state *s = x->s;

    x->stamp = ++s->stamp;
    for (uint32_t i = 0; i < x->rows; i++) {
        s->node_stamp[x->v->nodes[i].node] = s->stamp;
        s->sim_free[x->v->nodes[i].node] = i;
    }
}

void stk_victims_rows(struct stk_victim_search *x)
{
    struct stk_state *s = x->s;

    if (x->n_rowed == 0 || x->stamp != s->stamp)
        find_rows_again(x);
    for (; x->n_rowed < x->n; x->n_rowed++) {
        const uint32_t job = x->v->of[x->n_rowed].job;
        const struct stk_job *v = &s->jobs[job];

        if (s->fair && s->own[job].node != STK_NONE) {
            add_piece(x, x->n_rowed, 0, s->own[job].node, s->own[job].gpus);
            continue;
        }
        for (uint32_t k = 0; k < v->n_pieces; k++)
            add_piece(x, x->n_rowed, k, s->pieces[v->first_piece + k].node.i,
                      brings(s, v, v->first_piece + k));
    }
}

/* ---- a job on one node ---- */

uint32_t stk_victims_need(const struct stk_victim_search *x)
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
    const struct stk_victim_gains x = {
        .cost = a->cost, .n = a->n, .prio = a->prio, .lease = a->lease, .ok = true};
    const struct stk_victim_gains y = {
        .cost = b->cost, .n = b->n, .prio = b->prio, .lease = b->lease, .ok = true};

    if (stk_victims_less(&x, &y) || stk_victims_less(&y, &x))
        return stk_victims_less(&x, &y);
    return a->node < b->node;
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
    const struct stk_victim_gains g = stk_victims_for(x, row, need);
    bool fits = stk_victims_add_gains(x, row, &g) && stk_victims_fit(x);

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

static void find_cost(const struct stk_victim_search *x, struct stk_victim_node *row, uint32_t need)
{
    const struct stk_victim_gains g = stk_victims_for(x, row, need);

    row->cost = g.ok ? g.cost : -1;
    row->n = g.n;
    row->prio = g.prio;
    row->lease = g.lease;
}

bool stk_victims_by_node(struct stk_victim_search *x)
{
    struct stk_victim_node *row;

    for (uint32_t i = 0; i < x->rows; i++) {
        row = &x->v->nodes[i];
        row->cost = -1;
        row->tried = false;
        if (row->most >= x->need || x->d->gpu_milli)
            find_cost(x, row, x->need);
    }
    for (uint32_t i = 0; i < TRIES && (row = best_row(x, x->rows)) != NULL; i++) {
        if (x->n_best > 0 && row->cost >= x->best_cost)
            return true;
        row->tried = true;
        try_node(x, row, x->need);
    }
    return x->n_best > 0;
}
