/* SPDX-License-Identifier: Apache-2.0 */
/* backfill.c - see backfill.h.
 *
 * Easy reserves exact nodes. Expected ends are walked in order of time, adding what each gives back
 * to a scratch copy of its node's free GPUs, until the job fits; nothing is changed on the way. The
 * nodes are then marked in s->avoid, each with the GPUs it has to spare beyond the reservation.
 * While jobs end as expected the reservation stays right: what is started in the meantime either
 * ends before it or fits into the spare part. An unexpected end drops it (core/release.c).
 *
 * Conservative plans on the pool's count of free GPUs (core/timeline.h), not on nodes. A job whose
 * planned start has come is tried like any other; when fragments keep it from starting, it starts
 * as soon as a node has room. An arrival at the end of the queue is planned in O(log n); what was
 * not foreseen (an early end, a cancelled job, a node that went) makes a new plan: O(n log n).
 */
#include "core/backfill.h"

#include "core/beside.h"
#include "core/booking.h"
#include "core/fence.h"
#include "core/gang.h"
#include "core/index.h"
#include "core/lane.h"
#include "core/limit.h"
#include "core/part.h"
#include "core/place.h"
#include "core/power.h"
#include "core/queue.h"
#include "core/speed.h"
#include "core/txn.h"
#include "model/mig.h"

#define NOBODY (-1) /* node.extra: not even who takes no GPU may be there */

/* ---- easy ---- */

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

/* A scratch copy of the node's free GPUs, and of how many share each of the others. */
static void touch(struct stk_state *s, uint32_t node)
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

/* GPUs that the piece gives back in the scratch copy: of shared ones those it is the last on. */
static uint32_t back_later(struct stk_state *s, const struct stk_demand *d,
                           const struct stk_piece *p)
{
    const struct stk_node *n = &s->nodes[p->node.i];
    uint32_t back = 0;

    if (!stk_demand_shares(d))
        return stk_index_back_of(s, d, p);
    touch(s, p->node.i);
    for (uint64_t m = p->mask; m; m &= m - 1)
        back += --s->part_left[n->first_part + (uint32_t)__builtin_ctzll(m)] == 0 &&
                !(n->mask_off & m & -m);
    return back;
}

static uint32_t free_later(const struct stk_state *s, uint32_t node)
{
    return s->node_stamp[node] == s->stamp ? s->sim_free[node] : s->nodes[node].gpus_free;
}

/* The lease's GPUs come back, in the scratch copy. Nodes that now hold a unit go to list_a. */
static void pretend_end(struct stk_state *s, const struct stk_job *j, struct search *q,
                        uint32_t *n_touched)
{
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];
        uint32_t node = p->node.i, before = free_later(s, node);
        uint32_t after = before + back_later(s, &s->shapes[j->shape].demand, p);

        if (!s->nodes[node].up || !((q->d->gpu_types >> s->nodes[node].gpu_type) & 1))
            continue;
        touch(s, node);
        s->sim_free[node] = after;
        q->have += units_in(q, after) - units_in(q, before);
        q->have_rest += before < q->rest && after >= q->rest;
        if (before < q->unit && after >= q->unit && *n_touched < s->cap_list_a)
            s->list_a[(*n_touched)++] = node;
    }
}

/* ---- jobs that sleep, and can wake on their own GPUs only ---- */

struct pinned {
    uint32_t node;
    uint64_t busy;  /* GPUs it waits for */
    uint32_t lacks; /* how many; on a node that only counts, all there is to know */
    uint32_t back;  /* GPUs of the node given back on the way */
};

/* The lease is over: true when the pinned job's GPUs are then free. */
static bool pin_cleared(const struct stk_state *s, const struct stk_job *j, struct pinned *q)
{
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];
        uint64_t mask = stk_index_blocks(s, j, p);
        uint32_t n;

        if (p->node.i != q->node)
            continue;
        n = mask ? (uint32_t)__builtin_popcountll(mask & q->busy) : p->gpus;
        q->back += p->gpus;
        q->busy &= ~mask;
        q->lacks -= n < q->lacks ? n : q->lacks;
    }
    return q->lacks == 0;
}

/* When the GPUs on which a sleeping job must wake are expected to be free: now, later, or
 * STK_NEVER_TIME: cannot be foreseen. O(leases that end before that). */
static stk_time wake_time(const struct stk_state *s, const struct stk_job *j, stk_time now,
                          struct pinned *q)
{
    const struct stk_piece at = stk_place_pin(&s->shapes[j->shape].demand);
    const struct stk_node *n = &s->nodes[at.node.i];
    stk_time t = now + 1;
    bool clear = false;

    *q = (struct pinned){at.node.i, at.mask & ~n->mask_free, 0, 0};
    if (s->shapes[j->shape].demand.exclusive)
        q->busy = n->mask_used; /* it needs all of the node */
    if (!n->up || (at.mask & n->mask_off))
        return STK_NEVER_TIME;
    if (at.mask)
        q->lacks = (uint32_t)__builtin_popcountll(q->busy);
    else if (at.gpus > n->gpus_free)
        q->lacks = at.gpus - n->gpus_free;
    if (q->lacks == 0)
        return now;
    for (uint32_t i = 0; (i = stk_queue_stopping(s, j->pool, i)) != STK_NONE; i++)
        clear = pin_cleared(s, &s->jobs[i], q);
    for (struct stk_ocursor c = stk_otree_begin(&s->trees, &s->pools[j->pool].ends);
         c.block != UINT32_MAX; stk_ocursor_next(&s->trees, &c)) {
        const struct stk_oent *e = stk_ocursor_get(&s->trees, c);

        if (clear && e->key > t)
            break;
        t = e->key > t ? e->key : t; /* all that end at that time count */
        clear = pin_cleared(s, &s->jobs[e->id], q);
    }
    return clear ? t : STK_NEVER_TIME;
}

static void reserve_pinned(struct stk_state *s, const struct stk_job *j, stk_time now)
{
    const struct stk_piece at = stk_place_pin(&s->shapes[j->shape].demand);
    struct stk_pool *p = &s->pools[j->pool];
    const struct stk_ocursor c = stk_otree_begin(&s->trees, &p->ends);
    const struct stk_oent *e = stk_ocursor_get(&s->trees, c);
    struct stk_node *n = &s->nodes[at.node.i];
    struct pinned q;

    p->resv_at = wake_time(s, j, now, &q);
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

/* ---- easy, all others ---- */

static void reserve_node(struct stk_state *s, struct stk_pool *p, uint32_t node, uint32_t gpus)
{
    s->avoid[node / 64] |= UINT64_C(1) << (node % 64);
    s->nodes[node].extra = (int64_t)free_later(s, node) - gpus;
    s->resv_nodes[p->first_node + p->n_resv++] = node;
}

/* Takes units from a node if more are wanted; false when there are enough. */
static bool reserve_units(struct stk_state *s, struct stk_pool *p, struct search *q, uint32_t node)
{
    uint64_t n = units_in(q, free_later(s, node));

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
            ((q->d->gpu_types >> s->nodes[node].gpu_type) & 1) && free_later(s, node) >= q->rest) {
            reserve_node(s, p, node, q->rest);
            return;
        }
    }
}

/* ---- easy, jobs with wishes of topology ---- */

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

void stk_reserve_for(struct stk_state *s, uint32_t job, stk_time now)
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
    if (stk_demand_near(&s->shapes[j->shape].demand)) {
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

/* Room on a reserved node beside its reservation, and beside the GPUs that a pinned one needs. */
static bool spare_on(struct stk_state *s, const struct stk_shape *sh, uint32_t node, uint64_t keep)
{
    const struct stk_demand *d = &sh->demand;
    const struct stk_node *n = &s->nodes[node];
    struct stk_piece piece = {.node = {node}, .gpus = d->gpus, .tasks = 1};
    struct stk_use u;

    if (d->pin && d->pin - 1 != node)
        return false;
    if (d->pin)
        piece = stk_place_pin(d);
    else if (!n->aggregate)
        piece.mask = stk_layout_choose(stk_topo_layout(s, node), n->mask_free & ~keep,
                                       stk_node_shy(n), d->gpus);
    if (d->mig && !d->pin && n->mig && piece.mask)
        piece.slot = stk_part_slot(s, node, (uint32_t)__builtin_ctzll(piece.mask), d->mig);
    if (piece.slot == STK_MIG_ANY)
        return false; /* that GPU has no such instance */
    u = stk_use_of(d, &piece);
    if (n->extra < (int64_t)piece.gpus || (piece.mask & keep) || !stk_index_fits(s, node, &u) ||
        !((d->gpu_types >> n->gpu_type) & 1))
        return false;
    if (stk_shape_limited(sh) &&
        !(stk_limit_open(s, (uint32_t)(sh - s->shapes)) >> n->gpu_type & 1))
        return false;
    if (!n->aggregate && (uint32_t)__builtin_popcountll(piece.mask) != piece.gpus)
        return false;
    if (stk_demand_pairs(d) && (piece.mask & ~n->mask_free))
        return false;
    s->try_pieces[0] = piece;
    return stk_power_fits(s, &piece, 1);
}

static bool spare(struct stk_state *s, uint32_t shape, uint32_t *ret_n)
{
    const struct stk_shape *sh = &s->shapes[shape];
    const struct stk_pool *p = &s->pools[sh->pool];

    if (p->resv_tight)
        return false;
    if (stk_shape_limited(sh) && !stk_limit_beside(s, shape, p->resv_job))
        return false;
    if (p->resv_beside)
        return stk_beside_try(s, shape, ret_n);
    if (stk_place_try(s, shape, s->avoid, ret_n))
        return true;
    if ((sh->demand.tasks > 1 || stk_demand_near(&sh->demand)) && !sh->demand.pin)
        return false;
    for (uint32_t i = 0; i < p->n_resv; i++)
        if (spare_on(s, sh, s->resv_nodes[p->first_node + i], p->resv_mask)) {
            *ret_n = 1;
            return true;
        }
    return false;
}

bool stk_reserve_spare(struct stk_state *s, uint32_t shape, uint32_t *ret_n)
{
    stk_txn_mark mark = stk_txn_begin(s);
    bool ok;

    if (s->pools[s->shapes[shape].pool].n_booked == 0)
        return spare(s, shape, ret_n);
    stk_fence_raise(s, shape);
    s->book.raised = true;
    ok = spare(s, shape, ret_n);
    s->book.raised = false;
    stk_txn_rollback(s, mark);
    return ok;
}

/* ---- conservative ---- */

#define PLAN_MOST 10 /* arrivals are planned up to this many times backfill.depth */

/* How long a planned job holds its GPUs. */
static stk_time plan_length(const struct stk_state *s, const struct stk_job *j, stk_time now)
{
    stk_time dur = stk_speed_longest(s, j, now);

    return dur > 0 ? dur : 1;
}

static void plan_job(struct stk_state *s, struct stk_pool *p, uint32_t job, stk_time now)
{
    struct stk_job *j = &s->jobs[job];
    stk_time dur = plan_length(s, j, now), from = now;
    struct pinned q;

    if (p->n_asleep > 0 && s->shapes[j->shape].demand.pin)
        from = wake_time(s, j, now, &q);
    stk_timeline_trim(&p->plan, now); /* so that it holds breakpoints of live jobs only */
    j->planned = stk_timeline_earliest(&p->plan, from, j->gpus, dur);
    p->plan_rank = stk_rank(s, j);
    p->plan_number = j->number;
    stk_heap_put(&p->due, s->due_pos, job, j->planned, j->number);
    stk_otree_set_aux(&s->trees, stk_lane_tree(s, j), j->rank, j->number, j->planned);
    if (j->planned != STK_NEVER_TIME)
        stk_timeline_add(&p->plan, j->planned, j->planned + dur, -(int64_t)j->gpus);
}

void stk_plan_started(struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    struct stk_pool *p = &s->pools[j->pool];
    stk_time dur = plan_length(s, j, s->now);
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    /* it may be faster than planned, or takes more than was planned for it */
    bool surprise = d->n_speeds > 0 || d->exclusive;

    if (!p->plan_valid || (j->planned == s->now && !surprise))
        return;
    if (j->planned == STK_NEVER_TIME || surprise) {
        p->plan_valid = false;
        return;
    }
    /* late, for want of a node: what was planned around it stays, as far as it can */
    stk_timeline_trim(&p->plan, s->now);
    stk_timeline_add(&p->plan, j->planned, j->planned + dur, j->gpus);
    stk_timeline_add(&p->plan, s->now, s->now + dur, -(int64_t)j->gpus);
}

void stk_plan_append(struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    struct stk_pool *p = &s->pools[j->pool];
    const int64_t rank = stk_rank(s, j);

    if (!p->plan_valid)
        return;
    if (rank < p->plan_rank || (rank == p->plan_rank && j->number < p->plan_number))
        p->plan_valid = false;
    else if (p->due.n >= PLAN_MOST * (uint64_t)s->backfill_depth)
        p->plan_cut = true; /* planned when its turn is nearer */
    else if (!p->plan_cut)
        plan_job(s, p, job, s->now);
}

/* What comes back when the job ends: nothing on a node that is down, or of GPUs that are off. */
static int64_t gives_back(struct stk_state *s, const struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    const struct stk_pool *pool = &s->pools[j->pool];
    int64_t gpus = 0;

    if (pool->gpus_up == pool->gpus && pool->gpus_off == 0 && !stk_demand_shares(d) &&
        !d->exclusive)
        return j->gpus;
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];

        gpus += s->nodes[p->node.i].up ? back_later(s, d, p) : 0;
    }
    return gpus;
}

/* The first jobs of a tree, at most backfill_depth, behind the n in s->sort. How many are there
 * then.
 */
static uint32_t first_of(struct stk_state *s, const struct stk_otree *t, uint32_t n)
{
    struct stk_ocursor c = stk_otree_begin(&s->trees, t);

    for (uint32_t k = 0; c.block != UINT32_MAX; k++, stk_ocursor_next(&s->trees, &c)) {
        const struct stk_oent *e = stk_ocursor_get(&s->trees, c);

        if (k < s->backfill_depth)
            s->sort[n++] = (struct stk_sort_item){e->tie, e->id, 0};
        else if (e->aux != INT64_MAX) /* planned before */
            stk_otree_set_aux(&s->trees, t, e->key, e->tie, INT64_MAX);
        else
            break;
    }
    return n;
}

/* The first jobs of the pool in rank order, at most backfill_depth, into s->sort. No plan holds any
 * of the others. */
static uint32_t first_jobs(struct stk_state *s, struct stk_pool *p)
{
    const struct stk_otree *t = NULL;
    uint32_t n = 0;

    while (p->due.n > 0)
        stk_heap_remove(&p->due, s->due_pos, p->due.item[0].id);
    for (uint32_t i = p->first_shape; i != 0; i = s->shapes[i - 1].pool_next)
        for (uint32_t at = 0; (at = stk_lane_next(s, i - 1, at, &t)) != STK_NONE;)
            n = first_of(s, t, n);
    stk_sort(s->sort, n, s->sort_tmp); /* by number, then, stable, by rank */
    for (uint32_t i = 0; i < n; i++)
        s->sort[i].key = stk_rank(s, &s->jobs[s->sort[i].id]);
    stk_sort(s->sort, n, s->sort_tmp);
    for (uint32_t i = s->backfill_depth; i < n; i++) {
        const struct stk_job *j = &s->jobs[s->sort[i].id];

        stk_otree_set_aux(&s->trees, stk_lane_tree(s, j), j->rank, j->number, INT64_MAX);
    }
    return n < s->backfill_depth ? n : s->backfill_depth;
}

/* Reservations take what they lack while they last; what is held comes back at the end. */
static void plan_windows(struct stk_state *s, uint32_t pool, stk_time now)
{
    for (uint32_t i = 0; i < s->book.n; i++) {
        const struct stk_booking *b = &s->book.row[i];
        int64_t lacks = 0, held = 0;

        if (b->pool != pool || b->end <= now)
            continue;
        for (uint32_t k = 0; k < b->n; k++) {
            const struct stk_fence *f = &s->book.fence[b->first + k];

            held += f->held;
            lacks += stk_fence_wants(f) - f->held;
        }
        stk_timeline_add(&s->pools[pool].plan, b->start > now ? b->start : now, b->end, -lacks);
        stk_timeline_add(&s->pools[pool].plan, b->end, STK_NEVER_TIME, held);
    }
}

void stk_plan_rebuild(struct stk_state *s, uint32_t pool, stk_time now)
{
    struct stk_pool *p = &s->pools[pool];
    uint32_t n;

    p->plan_made = now;
    s->stamp++;
    stk_timeline_reset(&p->plan, now, (int64_t)p->gpus_free);
    for (struct stk_ocursor c = stk_otree_begin(&s->trees, &p->ends); c.block != UINT32_MAX;
         stk_ocursor_next(&s->trees, &c)) {
        const struct stk_oent *e = stk_ocursor_get(&s->trees, c);

        stk_timeline_add(&p->plan, e->key > now ? e->key : now + 1, STK_NEVER_TIME,
                         gives_back(s, &s->jobs[e->id]));
    }
    for (uint32_t i = 0; (i = stk_queue_stopping(s, pool, i)) != STK_NONE; i++)
        stk_timeline_add(&p->plan, now + 1, STK_NEVER_TIME, gives_back(s, &s->jobs[i]));
    plan_windows(s, pool, now);
    n = first_jobs(s, p);
    p->plan_rank = INT64_MIN;
    p->plan_number = 0;
    for (uint32_t i = 0; i < n; i++)
        plan_job(s, p, s->sort[i].id, now);
    p->plan_cut = n < p->n_waiting;
    p->plan_valid = true;
}
