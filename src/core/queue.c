/* SPDX-License-Identifier: Apache-2.0 */
#include "core/queue.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "core/backfill.h"
#include "core/evictable.h"
#include "core/index.h"
#include "core/place.h"

#define KEEP_SHAPES                                                                                \
    4096 /* rows of shapes nobody uses are kept up to here: they come back often                   \
          */

/* ---- memory ---- */

int stk_queue_reserve(struct stk_state *s, uint32_t pool)
{
    struct stk_pool *p = &s->pools[pool];
    const struct stk_mem *m = &s->mem;
    int rc = 0;

    /* a job moves between at most three trees per event */
    rc = rc < 0 ? rc : stk_opool_reserve(&s->trees, m, 3);
    rc = rc < 0 ? rc
                : stk_mem_grow(m, &s->shapes, &s->cap_shapes, s->n_shapes + 1, sizeof(*s->shapes));
    rc = rc < 0 ? rc
                : stk_mem_grow(m, &s->shape_pos, &s->cap_shape_pos, s->cap_shapes,
                               sizeof(*s->shape_pos));
    rc = rc < 0 ? rc : stk_map_reserve(&s->shape_by_hash, m, s->n_shapes + 1);
    rc = rc < 0 ? rc : stk_heap_reserve(&p->ready, m, s->n_shapes + 1);
    rc = rc < 0 ? rc : stk_heap_reserve(&s->timers, m, s->n_jobs + 1);
    if (s->whole_pool) {
        rc = rc < 0 ? rc
                    : stk_mem_grow(m, &p->rated, &p->cap_rated, p->n_rated + 2, sizeof(*p->rated));
        rc = rc < 0 ? rc : stk_mem_grow(m, &p->walk, &p->cap_walk, p->cap_rated, sizeof(*p->walk));
    }
    if (s->backfill->reserve_all) {
        rc = rc < 0 ? rc : stk_heap_reserve(&p->due, m, s->n_live + 1);
        rc = rc < 0 ? rc : stk_timeline_reserve(&p->plan, 2 * s->n_live + 2);
    }
    return rc;
}

/* ---- shapes ---- */

static uint32_t shape_hash(const struct stk_demand *d, uint32_t pool)
{
    uint64_t h = stk_hash_mix(pool, d->gpu_types);

    h = stk_hash_mix(h, (uint64_t)d->tasks << 32 | d->gpus);
    h = stk_hash_mix(h, (uint64_t)d->cpu_milli << 32 | d->mem_mib);
    h = stk_hash_mix(h, d->cut);
    return (uint32_t)(h >> 33); /* 31 bits: never UINT32_MAX */
}

static bool same_demand(const struct stk_demand *a, const struct stk_demand *b)
{
    return a->tasks == b->tasks && a->gpus == b->gpus && a->gpu_types == b->gpu_types &&
           a->cpu_milli == b->cpu_milli && a->mem_mib == b->mem_mib && a->cut == b->cut;
}

/* GPUs on one node without which no piece can start. */
static uint32_t piece_need(const struct stk_state *s, const struct stk_demand *d, uint32_t pool)
{
    uint32_t whole, size, rest;

    stk_place_cut(s, d, pool, &whole, &size, &rest);
    return whole > 0 ? (rest > 0 ? rest : size) : d->gpus;
}

/* The shape among those with this hash, or STK_NONE. */
static uint32_t shape_find(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                           uint32_t head)
{
    for (uint32_t at = head; at != STK_NONE; at = s->shapes[at].next - 1)
        if (s->shapes[at].pool == pool && same_demand(&s->shapes[at].demand, d))
            return at;
    return STK_NONE;
}

bool stk_shape_known(const struct stk_state *s, const struct stk_demand *d, uint32_t pool)
{
    uint32_t head = stk_map_get(&s->shape_by_hash, shape_hash(d, pool));

    return shape_find(s, d, pool, head) != STK_NONE;
}

uint32_t stk_shape_get(struct stk_state *s, const struct stk_demand *d, uint32_t pool)
{
    uint32_t hash = shape_hash(d, pool), head = stk_map_get(&s->shape_by_hash, hash);
    uint32_t at = shape_find(s, d, pool, head);

    if (at != STK_NONE) {
        s->shapes[at].refs++;
        return at;
    }
    if (s->free_shape) {
        at = s->free_shape - 1;
        s->free_shape = s->shapes[at].next;
    } else {
        at = s->n_shapes++;
    }
    s->shapes[at] = (struct stk_shape){.demand = *d,
                                       .pool = pool,
                                       .gpus = d->gpus * d->tasks,
                                       .refs = 1,
                                       .need = piece_need(s, d, pool),
                                       .next = head + 1};
    s->shape_pos[at] = STK_HEAP_OUT;
    stk_map_put(&s->shape_by_hash, hash, at);
    return at;
}

static void unpark(struct stk_state *s, uint32_t shape);

void stk_shape_drop(struct stk_state *s, uint32_t shape)
{
    struct stk_shape *sh = &s->shapes[shape];
    uint32_t hash, at;

    if (--sh->refs > 0 || s->n_shapes < KEEP_SHAPES)
        return;
    if (sh->parked != STK_READY)
        unpark(s, shape);
    hash = shape_hash(&sh->demand, sh->pool);
    at = stk_map_get(&s->shape_by_hash, hash);
    if (at == shape && sh->next == 0) {
        stk_map_remove(&s->shape_by_hash, hash);
    } else if (at == shape) {
        stk_map_put(&s->shape_by_hash, hash, sh->next - 1);
    } else {
        while (s->shapes[at].next - 1 != shape)
            at = s->shapes[at].next - 1;
        s->shapes[at].next = sh->next;
    }
    sh->next = s->free_shape;
    s->free_shape = shape + 1;
}

/* ---- parking ---- */

void stk_queue_mark_dirty(struct stk_state *s, uint32_t pool)
{
    if (s->pools[pool].dirty)
        return;
    s->pools[pool].dirty = true;
    s->dirty[s->n_dirty++] = pool;
}

static uint32_t *park_list(struct stk_state *s, const struct stk_shape *sh)
{
    struct stk_pool *p = &s->pools[sh->pool];

    return sh->parked == STK_PARKED_RESERVE ? &p->resv_parked : &s->counts[p->park_head + sh->need];
}

static void unpark(struct stk_state *s, uint32_t shape)
{
    struct stk_shape *sh = &s->shapes[shape];
    struct stk_pool *p = &s->pools[sh->pool];
    uint32_t *list = park_list(s, sh);

    if (sh->park_next)
        s->shapes[sh->park_next - 1].park_prev = sh->park_prev;
    if (sh->park_prev)
        s->shapes[sh->park_prev - 1].park_next = sh->park_next;
    else
        *list = sh->park_next;
    if (sh->parked == STK_PARKED_ROOM && *list == 0)
        stk_bits_clear(&p->park_layout, s->words + p->park_used, sh->need);
    sh->parked = STK_READY;
    sh->park_next = sh->park_prev = 0;
}

void stk_queue_requeue_shape(struct stk_state *s, uint32_t shape, const struct stk_oent *at)
{
    struct stk_pool *p = &s->pools[s->shapes[shape].pool];

    stk_heap_put(&p->ready, s->shape_pos, shape, at->key, at->tie);
}

static void make_ready(struct stk_state *s, uint32_t shape)
{
    const struct stk_oent *first;

    if (s->shapes[shape].parked != STK_READY)
        unpark(s, shape);
    first = stk_otree_first(&s->trees, &s->shapes[shape].waiting, INT64_MAX);
    if (!first)
        return;
    stk_queue_requeue_shape(s, shape, first);
    stk_queue_mark_dirty(s, s->shapes[shape].pool);
}

void stk_queue_park(struct stk_state *s, uint32_t shape, enum stk_parked why)
{
    struct stk_shape *sh = &s->shapes[shape];
    struct stk_pool *p = &s->pools[sh->pool];
    uint32_t *list;

    assert(sh->parked == STK_READY && why != STK_READY);
    stk_heap_remove(&p->ready, s->shape_pos, shape);
    sh->parked = (uint8_t)why;
    list = park_list(s, sh);
    sh->park_next = *list;
    sh->park_prev = 0;
    if (*list)
        s->shapes[*list - 1].park_prev = shape + 1;
    *list = shape + 1;
    if (why == STK_PARKED_ROOM)
        stk_bits_set(&p->park_layout, s->words + p->park_used, sh->need);
}

/* All shapes that do not fit get ready. */
static void wake_all(struct stk_state *s, struct stk_pool *p)
{
    uint32_t need;

    while ((need = stk_bits_next(&p->park_layout, s->words + p->park_used, 0)) != UINT32_MAX)
        make_ready(s, s->counts[p->park_head + need] - 1);
}

void stk_queue_unreserve(struct stk_state *s, uint32_t pool)
{
    struct stk_pool *p = &s->pools[pool];

    for (uint32_t i = 0; i < p->n_resv; i++) {
        uint32_t node = s->resv_nodes[p->first_node + i];

        s->avoid[node / 64] &= ~(UINT64_C(1) << (node % 64));
    }
    p->n_resv = 0;
    p->resv_job = STK_NONE;
    for (uint32_t i = 0; p->late_keys && i < p->ready.n; i++)
        s->list_b[i] = p->ready.item[i].id;
    for (uint32_t i = 0; p->late_keys && i < p->ready.n; i++)
        make_ready(s, s->list_b[i]);
    p->late_keys = false;
    while (p->resv_parked)
        make_ready(s, p->resv_parked - 1);
    /* those that do not fit, too: the first of them gets the next reservation */
    wake_all(s, p);
    stk_queue_mark_dirty(s, pool);
}

void stk_queue_retry(struct stk_state *s, uint32_t pool)
{
    struct stk_pool *p = &s->pools[pool];
    uint64_t below = 0; /* jobs of lower tiers with a lease */

    for (uint32_t t = 0; s->preempt->room && t < STK_TIER_MAX; t++) {
        if (below > 0 && p->tier_waiting[t] > 0) {
            p->blocked = false;
            wake_all(s, p);
            stk_queue_mark_dirty(s, pool);
            return;
        }
        below += p->tier_leased[t];
    }
}

void stk_queue_wake(struct stk_state *s, uint32_t node)
{
    const struct stk_node *n = &s->nodes[node];
    struct stk_pool *p = &s->pools[n->pool];
    uint32_t need = 0;

    if (p->n_waiting == 0)
        return;
    /* even where a node is down: the job stood before others, or was the last to be stopped */
    if (s->whole_pool || p->claim != STK_NONE)
        stk_queue_mark_dirty(s, n->pool);
    if (!n->up)
        return;
    stk_queue_retry(s, n->pool);
    if (s->backfill->reserve_all || !s->backfill->pass) {
        p->blocked = false;
        stk_queue_mark_dirty(s, n->pool);
    }
    while ((need = stk_bits_next(&p->park_layout, s->words + p->park_used, need)) <= n->gpus_free) {
        while (s->counts[p->park_head + need])
            make_ready(s, s->counts[p->park_head + need] - 1);
    }
    /* what ends on a reserved node as expected was counted when the reservation was made */
    while (p->resv_parked && !stk_bits_test(s->avoid, node))
        make_ready(s, p->resv_parked - 1);
}

/* ---- keys and trees ---- */

static struct stk_rated *rated_of(struct stk_pool *p, int64_t rate, bool leased)
{
    if (p->n_rated == 0)
        p->rated[p->n_rated++] = (struct stk_rated){.rate = 0};
    if (!leased)
        return &p->rated[0];
    for (uint32_t i = 1; i < p->n_rated; i++)
        if (p->rated[i].rate == rate)
            return &p->rated[i];
    assert(p->n_rated < p->cap_rated);
    p->rated[p->n_rated] = (struct stk_rated){.rate = rate};
    return &p->rated[p->n_rated++];
}

static void set_timer(struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    stk_time t = STK_NEVER_TIME;

    if (!s->order->next_change)
        return;
    t = s->order->next_change(s->order_st, j, s->now);
    if (t == STK_NEVER_TIME)
        stk_heap_remove(&s->timers, s->timer_pos, job);
    else
        stk_heap_put(&s->timers, s->timer_pos, job, t, j->number);
}

static void tree_add(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];
    const struct stk_key k = s->order->key(s->order_st, j, s->now);
    struct stk_oent e = {.key = k.base, .tie = j->number, .id = job};

    j->rank = k.base;
    j->rate = k.rate;
    s->drift |= k.rate > 0;
    if (s->whole_pool) {
        e.aux = (int64_t)j->gpus * 2 + (j->lease != 0);
        stk_otree_insert(&s->trees, &rated_of(&s->pools[j->pool], k.rate, j->lease != 0)->tree, e);
    } else if (j->lease == 0) {
        e.aux = s->backfill->reserve_all ? INT64_MAX : stk_job_remaining(j, s->now);
        stk_otree_insert(&s->trees, &s->shapes[j->shape].waiting, e);
    }
}

static void tree_remove(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];
    bool found = true;

    if (s->whole_pool)
        found =
            stk_otree_remove(&s->trees, &rated_of(&s->pools[j->pool], j->rate, j->lease != 0)->tree,
                             j->rank, j->number);
    else if (j->lease == 0)
        found = stk_otree_remove(&s->trees, &s->shapes[j->shape].waiting, j->rank, j->number);
    assert(found);
    (void)found;
}

void stk_queue_due(struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    const struct stk_oent e = {.key = j->rank, .tie = j->number};
    uint32_t pos = s->shape_pos[j->shape];

    if (s->shapes[j->shape].parked != STK_READY)
        return; /* does not fit, like others of its shape */
    if (pos != STK_HEAP_OUT) {
        const struct stk_heap_item *it = &s->pools[j->pool].ready.item[pos - 1];

        if (it->key != e.key ? it->key < e.key : it->tie < e.tie)
            return; /* an earlier one is to be tried already */
    }
    stk_queue_requeue_shape(s, j->shape, &e);
}

/* The shape got a job: try it, unless it is known not to fit. */
static void shape_got(struct stk_state *s, uint32_t shape, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    const struct stk_shape *sh = &s->shapes[shape];
    struct stk_pool *p = &s->pools[sh->pool];
    const struct stk_oent *first = stk_otree_first(&s->trees, &sh->waiting, INT64_MAX);

    if (s->backfill->reserve_all) {
        stk_plan_append(s, job);
        stk_queue_mark_dirty(s, sh->pool);
        return;
    }
    if (sh->parked == STK_READY && first->id != job && stk_heap_has(s->shape_pos, shape)) {
        if (!p->blocked)
            stk_queue_mark_dirty(s, sh->pool);
        return; /* an earlier job of the shape is there already */
    }
    /* one that does not fit still matters when it is now the first to be promised a start, or the
     * one others must give way to */
    if (sh->parked == STK_PARKED_ROOM &&
        (first->id != job || !(s->backfill->reserve_one || s->preempt->room)))
        return;
    if (p->blocked) { /* behind the head of a strict queue nothing can happen */
        const struct stk_heap_item *top = &p->ready.item[0];

        if (top->key != j->rank ? top->key < j->rank : top->tie < j->number) {
            stk_queue_requeue_shape(s, shape, first);
            return;
        }
        p->blocked = false;
    }
    make_ready(s, shape);
}

void stk_queue_enter(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];
    struct stk_pool *p = &s->pools[j->pool];

    j->queued = s->now;
    j->queue_seq = s->next_queue_seq++;
    p->n_waiting++;
    p->tier_waiting[j->tier]++;
    s->n_waiting++;
    tree_add(s, job);
    set_timer(s, job);
    if (s->whole_pool)
        stk_queue_mark_dirty(s, j->pool);
    else
        shape_got(s, j->shape, job);
}

void stk_queue_leave(struct stk_state *s, uint32_t job, bool starts)
{
    struct stk_job *j = &s->jobs[job];
    struct stk_pool *p = &s->pools[j->pool];
    struct stk_shape *sh = &s->shapes[j->shape];
    const struct stk_oent *first;

    tree_remove(s, job);
    stk_heap_remove(&s->timers, s->timer_pos, job);
    p->n_waiting--;
    p->tier_waiting[j->tier]--;
    s->n_waiting--;
    if (p->claim == job) {
        p->claim = STK_NONE;
        stk_queue_mark_dirty(s, j->pool);
    }
    if (p->resv_job == job)
        stk_queue_unreserve(s, j->pool);
    if (s->backfill->reserve_all) {
        stk_heap_remove(&p->due, s->due_pos, job);
        if (starts)
            stk_plan_started(s, job);
        else /* cancelled or held: others may move up */
            p->plan_valid = false;
        stk_queue_mark_dirty(s, j->pool);
    }
    if (s->whole_pool) {
        if (!starts) /* cancelled or held: it may have stood before others */
            stk_queue_mark_dirty(s, j->pool);
        return;
    }
    if (p->blocked) { /* it may have been the head */
        p->blocked = false;
        stk_queue_mark_dirty(s, j->pool);
    }
    if (sh->parked == STK_READY) {
        first = stk_otree_first(&s->trees, &sh->waiting, INT64_MAX);
        if (first)
            stk_queue_requeue_shape(s, j->shape, first);
        else
            stk_heap_remove(&p->ready, s->shape_pos, j->shape);
    } else if (sh->waiting.count == 0) {
        unpark(s, j->shape); /* the next job of the shape is tried, whatever happened meanwhile */
    } else if (s->preempt->room) {
        make_ready(s, j->shape); /* the next one may be of a higher tier */
    }
}

void stk_queue_lease(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];
    struct stk_pool *p = &s->pools[j->pool];

    j->expected_end = s->now + stk_job_remaining(j, s->now);
    p->n_leased++;
    s->n_leased++;
    p->tier_leased[j->tier]++;
    stk_evictable_lease(s, j, true);
    p->tier_gpus_leased[j->tier] += j->gpus;
    /* it may have to give way again to one of a higher tier that did not find victims so far */
    for (uint32_t t = j->tier + 1u; s->preempt->room && t < STK_TIER_MAX; t++)
        if (p->tier_waiting[t] > 0)
            wake_all(s, p);
    if (s->whole_pool)
        tree_add(s, job);
    set_timer(s, job);
    if (s->keep_ends) {
        const struct stk_oent e = {j->expected_end, j->number, job, j->gpus};

        stk_otree_insert(&s->trees, &p->ends, e);
    }
}

void stk_queue_unlease(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];
    struct stk_pool *p = &s->pools[j->pool];

    p->n_leased--;
    s->n_leased--;
    p->tier_leased[j->tier]--;
    stk_evictable_lease(s, j, false);
    p->tier_gpus_leased[j->tier] -= j->gpus;
    if (s->whole_pool)
        tree_remove(s, job);
    stk_heap_remove(&s->timers, s->timer_pos, job);
    if (s->keep_ends)
        (void)stk_otree_remove(&s->trees, &p->ends, j->expected_end, j->number);
}

void stk_queue_rekey(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];

    if (!s->whole_pool && j->lease != 0) { /* its key matters when it waits again */
        set_timer(s, job);
        return;
    }
    tree_remove(s, job);
    tree_add(s, job);
    set_timer(s, job);
    s->pools[j->pool].blocked = false; /* it may be the head now */
    if (s->whole_pool)
        stk_queue_mark_dirty(s, j->pool);
    else
        make_ready(s, j->shape);
}
