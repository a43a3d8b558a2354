/* SPDX-License-Identifier: Apache-2.0 */
/* backfill.c - see backfill.h.
 *
 * Easy reserves exact nodes. Expected ends are walked in order of time, adding what each gives back
 * to a scratch copy of its node's free GPUs, until the job fits; nothing is changed on the way. The
 * nodes are then marked in s->avoid, each with the GPUs it has to spare beyond the reservation.
 * While jobs end as expected the reservation stays right: what is started in the meantime either
 * ends before it or fits into the spare part. An unexpected end drops it (core/release.c).
 */
#include "core/backfill.h"

#include "core/beside.h"
#include "core/fence.h"
#include "core/index.h"
#include "core/lane.h"
#include "core/later.h"
#include "core/outrun.h"
#include "core/pinned.h"
#include "core/place.h"
#include "core/queue.h"
#include "core/txn.h"

#define NOBODY (-1) /* node.extra: not even who takes no GPU may be there */

struct search { /* how far the job is from fitting */
    const struct stk_demand *d;
    uint32_t unit, rest; /* GPUs of one unit; of the rest of a cut job */
    uint64_t units;      /* wanted */
    uint64_t have, have_rest;
};

static uint64_t units_in(const struct search *q, uint64_t gpus)
{
    if (q->d->tasks > 1)
        return q->unit ? gpus / q->unit : q->units;
    return gpus >= q->unit; /* one unit per node */
}

static bool enough(const struct search *q)
{
    return q->have >= q->units && (q->rest == 0 || q->have_rest > q->units);
}

static void search_init(const struct stk_state *s, const struct stk_job *j, struct search *q)
{
    const struct stk_pool *p = &s->pools[j->pool];
    uint32_t whole, size, rest;

    *q = (struct search){.d = &s->shapes[j->shape].demand};
    stk_place_cut(s, q->d, j->pool, &whole, &size, &rest);
    q->unit = whole > 0 ? size : q->d->gpus;
    q->units = whole > 0 ? whole : q->d->tasks;
    q->rest = whole > 0 ? rest : 0;
    for (uint32_t i = 0; i < p->n_groups; i++) {
        const struct stk_group *g = &s->groups[p->first_group + i];

        if (!stk_group_accepts(g, q->d->gpu_types))
            continue;
        for (uint32_t b = stk_index_bucket_up(s, g, 0); b != STK_NONE;
             b = stk_index_bucket_up(s, g, b + 1)) {
            q->have += units_in(q, b) * stk_index_count(s, g, b);
            q->have_rest += b >= q->rest ? stk_index_count(s, g, b) : 0;
        }
    }
}

/* The lease's GPUs come back, in the scratch copy. Nodes that now hold a unit go to list_a. */
static void pretend_end(struct stk_state *s, const struct stk_job *j, struct search *q,
                        uint32_t *n_touched)
{
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];
        uint32_t node = p->node.i, before = stk_later_free(s, node);
        uint32_t after = before + stk_later_back(s, &s->shapes[j->shape].demand, p);

        if (!s->nodes[node].up || !((q->d->gpu_types >> s->nodes[node].gpu_type) & 1))
            continue;
        stk_later_touch(s, node);
        s->sim_free[node] = after;
        q->have += units_in(q, after) - units_in(q, before);
        q->have_rest += before < q->rest && after >= q->rest;
        if (before < q->unit && after >= q->unit && *n_touched < s->cap_list_a)
            s->list_a[(*n_touched)++] = node;
    }
}

/* ---- jobs that sleep ---- */

static void reserve_pinned(struct stk_state *s, const struct stk_job *j, stk_time now)
{
    const struct stk_piece at = stk_place_pin(&s->shapes[j->shape].demand);
    struct stk_pool *p = &s->pools[j->pool];
    const struct stk_ocursor c = stk_otree_begin(&s->trees, &p->ends);
    const struct stk_oent *e = stk_ocursor_get(&s->trees, c);
    struct stk_node *n = &s->nodes[at.node.i];
    struct stk_pinned q;

    p->resv_at = stk_pinned_when(s, j, now, &q);
    if (p->resv_at == STK_NEVER_TIME)
        return;
    if (p->resv_at == now) { /* what it lacks is CPU or memory */
        p->resv_tight = e != NULL;
        p->resv_at = !e ? STK_NEVER_TIME : e->key > now ? e->key : now + 1;
        return;
    }
    p->resv_mask = at.mask;
    s->avoid[at.node.i / 64] |= UINT64_C(1) << (at.node.i % 64);
    /* where GPUs are told apart, all others of the node are to spare */
    n->extra = at.mask ? INT32_MAX : (int64_t)n->gpus_free + q.back - at.gpus;
    if (s->shapes[j->shape].demand.exclusive)
        n->extra = NOBODY;
    s->resv_nodes[p->first_node + p->n_resv++] = at.node.i;
}

/* ---- all others ---- */

static void reserve_node(struct stk_state *s, struct stk_pool *p, uint32_t node, uint32_t gpus)
{
    s->avoid[node / 64] |= UINT64_C(1) << (node % 64);
    s->nodes[node].extra = (int64_t)stk_later_free(s, node) - gpus;
    s->resv_nodes[p->first_node + p->n_resv++] = node;
}

/* Takes units from a node if more are wanted; false when there are enough. */
static bool reserve_units(struct stk_state *s, struct stk_pool *p, struct search *q, uint32_t node)
{
    uint64_t n = units_in(q, stk_later_free(s, node));

    if (q->units == 0)
        return false;
    if (n > q->units)
        n = q->units;
    if (n == 0 || stk_bits_test(s->avoid, node))
        return true;
    q->units -= n;
    reserve_node(s, p, node, (uint32_t)n * q->unit);
    return true;
}

/* Nodes that have a unit free today, emptiest bucket last, then those that will have one. */
static void choose_nodes(struct stk_state *s, struct stk_pool *p, struct search *q,
                         uint32_t n_touched)
{
    for (uint32_t i = 0; i < p->n_groups && q->units > 0; i++) {
        const struct stk_group *g = &s->groups[p->first_group + i];
        const uint64_t *sets = s->words + g->words;

        if (!stk_group_accepts(g, q->d->gpu_types))
            continue;
        for (uint32_t b = stk_index_bucket_up(s, g, q->unit); b != STK_NONE && q->units > 0;
             b = stk_index_bucket_up(s, g, b + 1)) {
            const uint64_t *set = sets + (size_t)b * g->nodes_layout.n_words;

            for (uint32_t pos = stk_bits_next(&g->nodes_layout, set, 0);
                 pos != UINT32_MAX && reserve_units(s, p, q, s->group_nodes[g->first + pos]);
                 pos = stk_bits_next(&g->nodes_layout, set, pos + 1))
                ;
        }
    }
    for (uint32_t i = 0; i < n_touched && reserve_units(s, p, q, s->list_a[i]); i++)
        ;
}

/* The rest of a cut job: any one further node that will have room. */
static void choose_rest(struct stk_state *s, struct stk_pool *p, const struct search *q)
{
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        uint32_t node = s->pool_nodes[p->first_node + i];

        if (s->nodes[node].up && !stk_bits_test(s->avoid, node) &&
            ((q->d->gpu_types >> s->nodes[node].gpu_type) & 1) &&
            stk_later_free(s, node) >= q->rest) {
            reserve_node(s, p, node, q->rest);
            return;
        }
    }
}

/* ---- jobs with wishes of topology, or of nodes ---- */

/* The leases that end at one time are given back. Returns that time; STK_NEVER_TIME: none ends. */
static stk_time give_next(struct stk_state *s, struct stk_ocursor *c)
{
    const struct stk_oent *e = stk_ocursor_get(&s->trees, *c);
    stk_time t = e ? e->key : STK_NEVER_TIME;

    for (; e && e->key == t; e = stk_ocursor_get(&s->trees, *c)) {
        stk_txn_give_job(s, &s->jobs[e->id]);
        stk_ocursor_next(&s->trees, c);
    }
    return t;
}

/* Nodes for the pieces that were found, of what they have in this transaction. */
static void reserve_pieces(struct stk_state *s, const struct stk_job *j, uint32_t n)
{
    struct stk_pool *p = &s->pools[j->pool];

    s->stamp++; /* what a node will have is what it has now */
    for (uint32_t i = 0; i < n; i++) {
        uint32_t node = s->try_pieces[i].node.i;
        uint32_t gpus = s->try_pieces[i].gpus;

        if (!stk_bits_test(s->avoid, node)) /* instances may share a node */
            reserve_node(s, p, node, gpus);
        else
            s->nodes[node].extra -= gpus;
        if (s->shapes[j->shape].demand.exclusive)
            s->nodes[node].extra = NOBODY;
    }
}

/* Counting does not help here: the job is tried in a transaction after each expected end. */
static void reserve_gang(struct stk_state *s, const struct stk_job *j, stk_time now)
{
    struct stk_pool *p = &s->pools[j->pool];
    struct stk_ocursor c = stk_otree_begin(&s->trees, &p->ends);
    stk_txn_mark mark = stk_txn_begin(s);
    stk_time t = now;
    uint32_t n = 0;
    bool fits;

    for (uint32_t i = 0; (i = stk_queue_stopping(s, j->pool, i)) != STK_NONE; i++)
        stk_txn_give_job(s, &s->jobs[i]);
    fits = stk_place_try(s, j->shape, NULL, &n);
    while (!fits && (t = give_next(s, &c)) != STK_NEVER_TIME)
        fits = stk_place_try(s, j->shape, NULL, &n);
    if (fits)
        reserve_pieces(s, j, n);
    stk_txn_rollback(s, mark);
    p->resv_at = !fits ? STK_NEVER_TIME : t > now ? t : now + 1;
}

/* Where GPUs are set aside: windows open and close on the way. */
static void reserve_booked(struct stk_state *s, const struct stk_job *j, stk_time now)
{
    struct stk_pool *p = &s->pools[j->pool];
    stk_txn_mark mark = stk_txn_begin(s);
    uint32_t n = 0;
    stk_time t = stk_fence_when(s, (uint32_t)(j - s->jobs), now, &n);

    if (t != STK_NEVER_TIME)
        reserve_pieces(s, j, n);
    for (uint32_t i = 0; i < p->n_resv; i++) {
        uint32_t node = s->resv_nodes[p->first_node + i];

        s->nodes[node].extra -= stk_fence_leaves(s, node, t);
    }
    if (t != STK_NEVER_TIME && s->shapes[j->shape].demand.pin)
        p->resv_mask = stk_place_pin(&s->shapes[j->shape].demand).mask;
    stk_txn_rollback(s, mark);
    p->resv_at = t == STK_NEVER_TIME || t > now ? t : now + 1;
}

static void reserve(struct stk_state *s, uint32_t job, stk_time now)
{
    const struct stk_job *j = &s->jobs[job];
    struct stk_pool *p = &s->pools[j->pool];
    struct stk_ocursor c = stk_otree_begin(&s->trees, &p->ends);
    const struct stk_oent *e = stk_ocursor_get(&s->trees, c);
    uint32_t n_touched = 0;
    struct search q;

    stk_shape_unreserve(s, j->pool);
    p->resv_job = job;
    p->promised = stk_lanes_on(s) ? job + 1 : 0;
    if (p->n_booked > 0) {
        reserve_booked(s, j, now);
        return;
    }
    if (s->shapes[j->shape].demand.pin) {
        reserve_pinned(s, j, now);
        return;
    }
    if (stk_demand_near(&s->shapes[j->shape].demand) || s->shapes[j->shape].demand.nodes) {
        reserve_gang(s, j, now);
        return;
    }
    s->stamp++;
    search_init(s, j, &q);
    p->resv_at = STK_NEVER_TIME; /* cannot be foreseen */
    if (enough(&q) && q.d->n_resources > 0) {
        p->resv_beside = true;
        p->resv_at = stk_beside_when(s, job, now);
        return;
    }
    if (enough(&q)) { /* what it lacks is CPU or memory: the next end may bring it */
        p->resv_tight = e != NULL;
        if (e)
            p->resv_at = e->key > now ? e->key : now + 1;
        return;
    }
    p->resv_at = now + 1;
    for (uint32_t i = 0; (i = stk_queue_stopping(s, j->pool, i)) != STK_NONE; i++)
        pretend_end(s, &s->jobs[i], &q, &n_touched);
    while (e && !enough(&q)) {
        stk_time t = e->key;

        for (; e && e->key == t; e = stk_ocursor_get(&s->trees, c)) {
            pretend_end(s, &s->jobs[e->id], &q, &n_touched);
            stk_ocursor_next(&s->trees, &c);
        }
        p->resv_at = t > now ? t : now + 1; /* one that outran its estimate may end at any time */
    }
    if (!enough(&q)) {
        p->resv_at = STK_NEVER_TIME;
        return;
    }
    choose_nodes(s, p, &q, n_touched);
    if (q.rest > 0)
        choose_rest(s, p, &q);
}

void stk_reserve_for(struct stk_state *s, uint32_t job, stk_time now)
{
    struct stk_pool *p = &s->pools[s->jobs[job].pool];

    reserve(s, job, now);
    if (s->backfill->reserve_one) /* else the plan is what is promised */
        stk_promise_made(p, job, p->resv_at);
}
