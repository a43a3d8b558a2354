/* SPDX-License-Identifier: Apache-2.0 */
#include "core/defrag.h"

#include "core/booking.h"
#include "core/budget.h"
#include "core/index.h"
#include "core/part.h"
#include "core/place.h"
#include "core/sets.h"
#include "core/stake.h"
#include "core/txn.h"

#define LOOKS 64 /* candidates that are looked at, of one search */
#define TRIES 6  /* of these, tried */
#define SHAPES 16

struct search {
    struct stk_state *s;
    uint32_t home[STK_DEFRAG_MOVES + 1]; /* jobs without a place: who waits, and who moves */
    uint32_t n, most;
    uint32_t n_movers;      /* in s->sort */
    struct stk_whole after; /* when it is done */
};

struct candidate {
    uint64_t key;       /* smaller first */
    stk_lease_id lease; /* then who started last */
    uint32_t job;
};

/* ---- who may have to go ---- */

/* What the job needs on one node: of a gang, one piece of it. */
static struct stk_use need_of(const struct stk_state *s, const struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    struct stk_piece piece = {.tasks = 1};
    uint32_t whole, size, rest;
    struct stk_use u;

    stk_place_cut(s, d, j->pool, &whole, &size, &rest);
    piece.gpus = whole > 0 ? size : rest;
    u = stk_use_of(d, &piece);
    u.milli = d->gpu_milli; /* one that may have company is put on GPUs of its own */
    return u;
}

/* So many GPUs of it, in thousandths. */
static uint64_t size_of(const struct stk_demand *d, uint32_t gpus)
{
    return (uint64_t)gpus * stk_demand_asked_milli(d);
}

static bool shares(const struct stk_part *p, const struct stk_use *u)
{
    return p->share == u->share && p->share_max == u->share_max && p->with == u->share_with;
}

/* Whole GPUs that are free when it goes: of shared ones those that it is alone on. */
static uint32_t freed_by(const struct stk_state *s, const struct stk_demand *d,
                         const struct stk_piece *p)
{
    const struct stk_node *n = &s->nodes[p->node.i];
    uint32_t back = 0;

    if (!stk_demand_shares(d))
        return stk_index_back_of(s, d, p);
    for (uint64_t m = p->mask & ~n->mask_off; m; m &= m - 1)
        back += s->parts[n->first_part + (uint32_t)__builtin_ctzll(m)].n == 1;
    return back;
}

/* A part that needs so much finds it on a shared GPU of the node when 'u' has gone. */
static bool part_fits(const struct stk_state *s, const struct stk_node *n, const struct stk_use *u,
                      const struct stk_use *need)
{
    for (uint64_t m = n->mask_part & ~n->mask_off; m; m &= m - 1) {
        const struct stk_part *p = &s->parts[n->first_part + (uint32_t)__builtin_ctzll(m)];
        uint32_t left = p->milli + (u->mask & m & -m ? u->milli : 0U);

        if (left >= need->milli && shares(p, need))
            return true;
    }
    return false;
}

/* 1: there is room when this job has gone; 2: when another like it goes too; 0: no. */
static int helps(const struct stk_state *s, const struct stk_demand *d, const struct stk_use *need,
                 const struct stk_job *v)
{
    const struct stk_piece *p = &s->pieces[v->first_piece];
    const struct stk_node *n = &s->nodes[p->node.i];
    const struct stk_use u = stk_use_of(&s->shapes[v->shape].demand, p);
    uint32_t freed = freed_by(s, &s->shapes[v->shape].demand, p);

    if (!n->up || !((d->gpu_types >> n->gpu_type) & 1) || !stk_sets_allow(s, d, p->node.i) ||
        (need->whole && n->n_uses > 2) || (n->cpu_limited && n->cpu_free + u.cpu < need->cpu) ||
        (n->mem_limited && n->mem_free + u.mem < need->mem) ||
        (n->gpu_mem_mib && d->gpu_mem_mib > n->gpu_mem_mib))
        return 0;
    if (need->milli)
        return n->gpus_free + freed > 0 || part_fits(s, n, &u, need);
    if (need->whole && n->n_uses == 2)
        return 2;
    if (n->gpus_free + freed >= need->gpus)
        return 1;
    return freed > 0 && n->gpus_free + 2 * freed >= need->gpus ? 2 : 0;
}

static bool may_move(struct stk_state *s, uint32_t pool, const struct stk_job *v)
{
    const uint32_t job = (uint32_t)(v - s->jobs);

    if ((!s->defrag_all && !s->terms[job].movable) || stk_stake_until(s, v, s->now) > s->now ||
        !stk_budget_spares(s, job, 1))
        return false;
    return (v->state == STK_JOB_RUNNING || v->state == STK_JOB_PLACED) && v->pool == pool &&
           v->n_pieces == 1 && !v->slept && v->tier != STK_TIER_CRITICAL &&
           !s->shapes[v->shape].demand.mig && !stk_booking_owns(s, (uint32_t)(v - s->jobs));
}

/* Jobs that may be moved, with their nodes and sizes, into s->sort: once for a search. */
static uint32_t gather(struct stk_state *s, uint32_t pool)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *v = &s->jobs[i];

        if (may_move(s, pool, v))
            s->sort[n++] =
                (struct stk_sort_item){(int64_t)size_of(&s->shapes[v->shape].demand, v->gpus), i,
                                       s->pieces[v->first_piece].node.i};
    }
    return n;
}

/* How small a job may be, at least, to be of any help on this node; more than 'need' has: none is.
 */
static uint32_t least_help(const struct stk_state *s, const struct stk_demand *d,
                           const struct stk_use *need, const struct stk_node *n)
{
    uint32_t most = 0;

    if (!n->up || !((d->gpu_types >> n->gpu_type) & 1) ||
        !stk_sets_allow(s, d, (uint32_t)(n - s->nodes)))
        return UINT32_MAX;
    if (n->gpus_free > 0)
        return 0;
    if (need->gpus > 1)
        return UINT32_MAX;
    for (uint64_t m = n->mask_part & ~n->mask_off; m; m &= m - 1) {
        uint32_t left = s->parts[n->first_part + (uint32_t)__builtin_ctzll(m)].milli;

        most = left > most ? left : most;
    }
    return size_of(d, need->gpus) > most ? (uint32_t)size_of(d, need->gpus) - most : 0;
}

/* The same, once for each node. */
static uint32_t least_on(struct stk_state *s, const struct stk_demand *d,
                         const struct stk_use *need, uint32_t node)
{
    if (s->node_stamp[node] != s->stamp) {
        s->node_stamp[node] = s->stamp;
        s->sim_free[node] = least_help(s, d, need, &s->nodes[node]);
    }
    return s->sim_free[node];
}

static bool homeless(const struct search *x, uint32_t job)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (x->home[i] == job)
            return true;
    return false;
}

static bool sooner(const struct candidate *a, const struct candidate *b)
{
    return a->key != b->key ? a->key < b->key : a->lease > b->lease;
}

/* Into its place in the list of the best, if it is one of them. */
static void keep(struct candidate *list, uint32_t *io_n, struct candidate c)
{
    uint32_t at = *io_n < LOOKS ? (*io_n)++ : LOOKS;

    if (at == LOOKS && !sooner(&c, &list[--at]))
        return;
    for (; at > 0 && sooner(&c, &list[at - 1]); at--)
        list[at] = list[at - 1];
    list[at] = c;
}

/* The smallest first, those that suffice before those that need another; of equal ones those that
 * started last: they have least to lose. */
static uint32_t candidates(const struct search *x, uint32_t job, struct candidate list[LOOKS])
{
    struct stk_state *s = x->s;
    const struct stk_job *j = &s->jobs[job];
    const struct stk_use need = need_of(s, j);
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    uint32_t n = 0;

    s->stamp++;
    for (uint32_t i = 0; i < x->n_movers; i++) {
        const struct stk_sort_item *v = &s->sort[i];
        int how;

        if (v->key >= (int64_t)size_of(d, need.gpus) || v->key < least_on(s, d, &need, v->data) ||
            homeless(x, v->id))
            continue;
        how = helps(s, d, &need, &s->jobs[v->id]);
        if (how == 1 || (how == 2 && x->n < x->most))
            keep(list, &n,
                 (struct candidate){(uint64_t)how << 32 | (uint64_t)v->key, s->jobs[v->id].lease,
                                    v->id});
    }
    return n;
}

/* ---- what if they went ---- */

bool stk_defrag_put(struct stk_state *s, uint32_t job, uint32_t *ret_node)
{
    const struct stk_demand *d = &s->shapes[s->jobs[job].shape].demand;
    uint32_t n;

    if (!stk_place_try(s, s->jobs[job].shape, NULL, &n))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct stk_use u = stk_use_of(d, &s->try_pieces[i]);

        stk_txn_take(s, s->try_pieces[i].node.i, &u);
    }
    if (ret_node)
        *ret_node = s->try_pieces[0].node.i;
    return true;
}

struct known { /* shapes of which it is known whether there is room for one more */
    uint32_t shape[SHAPES];
    bool fits[SHAPES];
    uint32_t n;
};

static bool fits_elsewhere(struct stk_state *s, uint32_t shape, struct known *k)
{
    uint32_t n;

    for (uint32_t i = 0; i < k->n; i++)
        if (k->shape[i] == shape)
            return k->fits[i];
    if (k->n == SHAPES)
        return false;
    k->shape[k->n] = shape;
    k->fits[k->n] = stk_place_try(s, shape, NULL, &n);
    return k->fits[k->n++];
}

static bool settle(struct search *x, uint32_t at);

/* Somebody goes, so that the job at 'at' fits. */
static bool settle_with_another(struct search *x, uint32_t at)
{
    struct candidate list[LOOKS];
    uint32_t tries = 0, n = candidates(x, x->home[at], list);
    struct known known = {.n = 0};

    for (uint32_t i = 0; i < n && tries < TRIES; i++) {
        stk_txn_mark mark;

        if (x->n == x->most && !fits_elsewhere(x->s, x->s->jobs[list[i].job].shape, &known))
            continue; /* it is the last that may move */
        if (!stk_budget_take(x->s, list[i].job))
            continue; /* it may, but not beside the other */
        mark = stk_txn_begin(x->s);
        tries++;
        stk_txn_give_job(x->s, &x->s->jobs[list[i].job]);
        x->home[x->n++] = list[i].job;
        if (settle(x, at))
            return true;
        x->n--;
        stk_budget_give(x->s, list[i].job);
        stk_txn_rollback(x->s, mark);
    }
    return false;
}

/* All from 'at' on find a place. */
static bool settle(struct search *x, uint32_t at)
{
    while (at < x->n && stk_defrag_put(x->s, x->home[at], NULL))
        at++;
    if (at == x->n)
        return true;
    return x->n <= x->most && settle_with_another(x, at);
}

/* All go first, then each is put where it will be put. */
static bool holds(const struct search *x)
{
    uint32_t i = 0;

    for (uint32_t k = 1; k < x->n; k++)
        stk_txn_give_job(x->s, &x->s->jobs[x->home[k]]);
    while (i < x->n && stk_defrag_put(x->s, x->home[i], NULL))
        i++;
    return i == x->n;
}

/* As much as it needs is free on GPUs it accepts. */
static bool enough_free(const struct stk_state *s, const struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    const struct stk_pool *p = &s->pools[j->pool];
    uint64_t want = size_of(d, j->gpus), have = 0;

    for (uint32_t i = 0; i < p->n_groups; i++) {
        const struct stk_group *g = &s->groups[p->first_group + i];

        if (!stk_group_accepts(g, d->gpu_types))
            continue;
        for (uint32_t b = stk_index_bucket_up(s, g, 1); b != STK_NONE;
             b = stk_index_bucket_up(s, g, b + 1))
            have += UINT64_C(1000) * b * stk_index_count(s, g, b);
        have += stk_part_left_in(s, g);
    }
    return have >= want;
}

/* Who moves so that the job can start: x->home from 1 on. */
static bool find(struct search *x, uint32_t job)
{
    struct stk_state *s = x->s;
    const struct stk_job *j = &s->jobs[job];
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    stk_txn_mark mark;
    bool found;

    if (x->most == 0 || s->n_moving > 0 || j->gpus == 0 || d->pin || d->mig ||
        s->pools[j->pool].aggregate || !enough_free(s, j))
        return false;
    x->home[0] = job;
    x->n = 1;
    s->plans_moves = true;
    x->n_movers = gather(s, j->pool);
    mark = stk_txn_begin(s);
    found = settle(x, 0) && x->n > 1;
    for (uint32_t i = 1; found && i < x->n; i++)
        stk_budget_give(s, x->home[i]);
    stk_txn_rollback(s, mark);
    found = found && holds(x);
    x->after = stk_empty_whole(s, j->pool);
    stk_txn_rollback(s, mark);
    s->plans_moves = false;
    return found;
}

uint32_t stk_defrag_room(const struct stk_ask *ask, uint32_t job)
{
    struct stk_state *s = ask->s;
    struct search x = {.s = s, .most = STK_DEFRAG_MOVES};
    uint64_t placed = s->next_lease - 1 > s->n_moved ? s->next_lease - 1 - s->n_moved : 0;
    uint64_t left = placed * s->defrag / 1000;

    left = left > s->n_moved ? left - s->n_moved : 0;
    x.most = left < x.most ? (uint32_t)left : x.most;
    x.most = ask->cap < x.most ? ask->cap : x.most;
    if (!find(&x, job))
        return 0;
    for (uint32_t i = 1; i < x.n; i++)
        ask->out[i - 1] = (struct stk_event){.at = ask->now,
                                             .type = STK_EV_EVICT,
                                             .job = {x.home[i]},
                                             .lease = s->jobs[x.home[i]].lease,
                                             .u.evict = {.for_job = {job}, .moved = true}};
    return x.n - 1;
}

/* The job stands before the other in its queue. */
static bool before(const struct stk_job *a, const struct stk_job *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->number < b->number;
}

bool stk_defrag_plan(struct stk_state *s, stk_time now, struct stk_defrag_plan *ret)
{
    bool any = false;

    for (uint32_t i = 0; i < s->n_shapes && stk_defrag_goes(s->preempt, s->backfill); i++) {
        struct search x = {.s = s, .most = STK_DEFRAG_MOVES};
        const struct stk_oent *e;

        if (s->shapes[i].waiting.count == 0 || s->pools[s->shapes[i].pool].claim != STK_NONE ||
            s->pools[s->shapes[i].pool].n_stopping > 0)
            continue;
        e = stk_otree_first(&s->trees, &s->shapes[i].waiting, INT64_MAX);
        if ((any && !before(&s->jobs[e->id], &s->jobs[ret->for_job])) || !find(&x, e->id))
            continue;
        any = true;
        *ret = (struct stk_defrag_plan){.for_job = e->id,
                                        .n = x.n - 1,
                                        .before = stk_empty_whole(s, s->shapes[i].pool),
                                        .after = x.after};
        for (uint32_t k = 1; k < x.n; k++) {
            ret->moves[k - 1] = x.home[k];
            ret->units_of[k - 1] = stk_stake_units(s, &s->jobs[x.home[k]], now);
            ret->units += ret->units_of[k - 1];
        }
    }
    return any;
}

/* ---- while they move ---- */

uint32_t stk_defrag_next(const struct stk_state *s, uint32_t pool, uint32_t after)
{
    bool seen = after == STK_NONE;

    for (uint32_t i = 0; s->n_moving > 0 && i < s->next_moving; i++) {
        uint32_t job = s->moving[i];

        if (seen && job < s->n_jobs && s->jobs[job].moving && s->jobs[job].pool == pool &&
            s->jobs[job].state == STK_JOB_WAITING)
            return job;
        seen |= job == after;
    }
    return STK_NONE;
}

bool stk_defrag_going(const struct stk_state *s, uint32_t pool)
{
    for (uint32_t i = 0; s->n_moving > 0 && i < s->next_moving; i++) {
        uint32_t job = s->moving[i];

        if (job < s->n_jobs && s->jobs[job].moving && s->jobs[job].pool == pool &&
            s->jobs[job].state == STK_JOB_STOPPING)
            return true;
    }
    return false;
}

void stk_defrag_moves(struct stk_state *s, uint32_t job)
{
    if (s->n_moving == 0)
        s->next_moving = 0;
    if (s->next_moving < STK_MAX_MOVING)
        s->moving[s->next_moving++] = job;
    s->jobs[job].moving = true;
    s->n_moving++;
}

void stk_defrag_moved(struct stk_state *s, struct stk_job *j)
{
    s->n_moving -= j->moving;
    j->moving = false;
}
