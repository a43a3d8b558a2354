/* SPDX-License-Identifier: Apache-2.0 */
#include "core/queue.h"
#include "core/drain.h"

#include <assert.h>

#include "core/backfill.h"
#include "core/booking.h"
#include "core/budget.h"
#include "core/evictable.h"
#include "core/fair.h"
#include "core/index.h"
#include "core/lane.h"
#include "core/outrun.h"
#include "core/place.h"
#include "core/share.h"
#include "core/speed.h"
#include "core/usage.h"

/* Memory for so many more shapes, and as many entries in trees four times. */
static int reserve(struct stk_state *s, uint32_t pool, uint32_t n)
{
    struct stk_pool *p = &s->pools[pool];
    const struct stk_mem *m = &s->mem;
    int rc = 0;

    /* a job moves between at most four trees per event, and another may be left alone */
    rc = rc < 0 ? rc : stk_opool_reserve(&s->trees, m, 5 * n);
    rc = rc < 0 ? rc
                : stk_mem_grow(m, &s->shapes, &s->cap_shapes, s->n_shapes + n, sizeof(*s->shapes));
    rc = rc < 0 ? rc
                : stk_mem_grow(m, &s->shape_pos, &s->cap_shape_pos, s->cap_shapes,
                               sizeof(*s->shape_pos));
    rc = rc < 0 ? rc : stk_map_reserve(&s->shape_by_hash, m, s->n_shapes + n);
    rc = rc < 0 ? rc : stk_heap_reserve(&p->ready, m, p->n_shapes + n);
    for (uint32_t i = 0; s->fair && i < 2; i++)
        rc = rc < 0 ? rc : stk_heap_reserve(&p->entitled[i], m, p->n_shapes + n);
    rc = rc < 0 ? rc : stk_heap_reserve(&s->timers, m, s->n_jobs + 1);
    rc = rc < 0 ? rc : stk_lane_reserve(s, n + 1);
    if (s->whole_pool) {
        rc = rc < 0 ? rc
                    : stk_mem_grow(m, &p->rated, &p->cap_rated, p->n_rated + 2, sizeof(*p->rated));
        rc = rc < 0 ? rc : stk_mem_grow(m, &p->walk, &p->cap_walk, p->cap_rated, sizeof(*p->walk));
    }
    if (s->backfill->reserve_all) {
        rc = rc < 0 ? rc : stk_heap_reserve(&p->due, m, p->n_live + 1);
        rc = rc < 0 ? rc : stk_timeline_reserve(&p->plan, 2 * p->n_live + 2 + 2 * s->book.n);
    }
    return rc;
}

int stk_queue_reserve(struct stk_state *s, uint32_t pool)
{
    return reserve(s, pool, 1);
}

int stk_queue_reserve_all(struct stk_state *s)
{
    int rc = 0;

    for (uint32_t i = 0; i < s->n_pools && rc == 0; i++)
        rc = reserve(s, i, s->n_live + 1);
    return rc;
}

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
    stk_fair_add(s, job);
    s->drift |= k.rate > 0;
    if (s->whole_pool) {
        e.aux = (int64_t)j->gpus * 2 + (j->lease != 0);
        stk_otree_insert(&s->trees, &rated_of(&s->pools[j->pool], k.rate, j->lease != 0)->tree, e);
    } else if (j->lease == 0) {
        e.aux = s->backfill->reserve_all ? INT64_MAX : stk_job_remaining(j, s->now);
        stk_lane_add(s, j, e);
    }
}

static void tree_remove(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];
    bool found = true;

    stk_fair_remove(s, job);
    if (s->whole_pool)
        found =
            stk_otree_remove(&s->trees, &rated_of(&s->pools[j->pool], j->rate, j->lease != 0)->tree,
                             j->rank, j->number);
    else if (j->lease == 0)
        found = stk_lane_remove(s, j);
    assert(found);
    (void)found;
}

static bool before(const struct stk_state *s, const struct stk_heap_item *it,
                   const struct stk_job *j)
{
    int64_t rank = stk_rank(s, j);

    return it->key != rank ? it->key < rank : it->tie < j->number;
}

void stk_queue_due(struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    const struct stk_oent e = {.key = stk_rank(s, j), .tie = j->number, .id = job};
    uint32_t pos = s->shape_pos[j->shape];

    if (s->shapes[j->shape].parked != STK_READY)
        return; /* does not fit, like others of its shape */
    if (pos != STK_HEAP_OUT && before(s, &s->pools[j->pool].ready.item[pos - 1], j))
        return; /* an earlier one is to be tried already */
    stk_shape_requeue(s, j->shape, &e);
}

/* The shape got a job: try it, unless it is known not to fit. */
static void shape_got(struct stk_state *s, uint32_t shape, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    const struct stk_shape *sh = &s->shapes[shape];
    struct stk_pool *p = &s->pools[sh->pool];
    struct stk_oent first;

    if (s->backfill->reserve_all) {
        stk_plan_append(s, job);
        stk_shape_mark_dirty(s, sh->pool);
        return;
    }
    (void)stk_shape_first(s, shape, INT64_MAX, &first);
    if (sh->parked == STK_READY && first.id != job && stk_heap_has(s->shape_pos, shape)) {
        if (!p->blocked)
            stk_shape_mark_dirty(s, sh->pool);
        return; /* an earlier job of the shape is there already */
    }
    /* one that does not fit still matters when it is now the first to be promised a start, or the
     * one others must give way to */
    if (sh->parked == STK_PARKED_ROOM &&
        (first.id != job || !(s->backfill->reserve_one || s->preempt->room)))
        return;
    if (sh->parked == STK_PARKED_TITLE && first.id != job)
        return; /* all of a shape have the same title */
    if (sh->parked == STK_PARKED_QUEUE)
        return; /* all of a shape are over the same limit */
    if (sh->parked == STK_PARKED_LIMIT &&
        (first.id != job || !s->fair || !s->guarantees || !stk_fair_types(s, j)))
        return; /* likewise; but for one who is within a guarantee others may go */
    if (p->blocked && !stk_lanes_on(s) && before(s, &p->ready.item[0], j)) {
        if (sh->parked != STK_READY)
            stk_shape_unpark(s, shape); /* entitled ones are, in a strict queue, too */
        stk_shape_requeue(s, shape, &first);
        if (sh->title)
            stk_shape_mark_dirty(s, sh->pool);
        return; /* behind the head of a strict queue nothing can happen, but to who is entitled */
    }
    p->blocked = false;
    stk_shape_ready(s, shape);
}

void stk_queue_enter(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];
    struct stk_pool *p = &s->pools[j->pool];

    p->n_waiting++;
    stk_share_waits(s, j, true);
    p->level_waiting[j->level]++;
    s->n_waiting++;
    tree_add(s, job);
    set_timer(s, job);
    stk_drain_waits(s, j);
    if (s->whole_pool)
        stk_shape_mark_dirty(s, j->pool);
    else
        shape_got(s, j->shape, job);
    if (p->n_open > 0 && s->shapes[j->shape].demand.holders)
        stk_shape_mark_dirty(s, j->pool); /* something may be held for it */
}

void stk_queue_leave(struct stk_state *s, uint32_t job, bool starts)
{
    struct stk_job *j = &s->jobs[job];
    struct stk_pool *p = &s->pools[j->pool];
    struct stk_shape *sh = &s->shapes[j->shape];
    struct stk_oent first;

    tree_remove(s, job);
    stk_heap_remove(&s->timers, s->timer_pos, job);
    p->n_waiting--;
    stk_share_waits(s, j, false);
    p->level_waiting[j->level]--;
    s->n_waiting--;
    if (p->claim == job) {
        p->claim = STK_NONE;
        stk_shape_mark_dirty(s, j->pool);
    }
    if (p->promised == job + 1)
        p->promised = 0;
    if (p->resv_job == job)
        stk_shape_unreserve(s, j->pool);
    if (s->backfill->reserve_all) {
        stk_heap_remove(&p->due, s->due_pos, job);
        if (starts)
            stk_plan_started(s, job);
        else /* cancelled or held: others may move up */
            stk_plan_gains(p);
        stk_shape_mark_dirty(s, j->pool);
    }
    if (p->first_for == job + 1)
        p->first_for = 0;
    if (s->whole_pool) {
        if (!starts) /* cancelled or held: it may have stood before others */
            stk_shape_mark_dirty(s, j->pool);
        return;
    }
    if (p->blocked) { /* it may have been the head */
        p->blocked = false;
        stk_shape_mark_dirty(s, j->pool);
    }
    if (sh->parked == STK_READY) {
        if (stk_shape_first(s, j->shape, INT64_MAX, &first))
            stk_shape_requeue(s, j->shape, &first);
        else
            stk_heap_remove(stk_shape_heap(s, j->shape), s->shape_pos, j->shape);
    } else if (sh->waiting.count == 0) {
        /* the next job of the shape is tried, whatever happened meanwhile */
        stk_shape_unpark(s, j->shape);
    } else if (s->preempt->room) {
        stk_shape_ready(s, j->shape); /* the next one may be of a higher level */
    }
}

/* When its lease should end; kept in order where somebody asks. */
static void expect_end(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];

    j->expected_end =
        j->started + stk_speed_time(stk_job_remaining(j, j->started), stk_job_speed(s, j));
    if (s->keep_ends) {
        const struct stk_oent e = {j->expected_end, j->number, job, j->gpus};

        stk_otree_insert(&s->trees, &s->pools[j->pool].ends, e);
    }
}

static void forget_end(struct stk_state *s, const struct stk_job *j)
{
    if (s->keep_ends)
        (void)stk_otree_remove(&s->trees, &s->pools[j->pool].ends, j->expected_end, j->number);
}

void stk_queue_lease(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];
    struct stk_pool *p = &s->pools[j->pool];

    expect_end(s, job);
    p->n_leased++;
    p->n_changes++;
    s->n_leased++;
    stk_budget_up(s, job, true);
    p->level_leased[j->level]++;
    stk_evictable_lease(s, j, true);
    p->level_gpus_leased[j->level] += j->gpus;
    /* it may have to give way again to one of a higher level that did not find victims so far */
    for (uint32_t k = j->level + 1u; k < s->n_levels; k++)
        if (p->level_waiting[k] > 0)
            stk_shape_wake_heads(s, p);
    if (s->whole_pool || s->ranked)
        tree_add(s, job);
    else
        stk_fair_add(s, job);
    stk_shape_wake_titles(s, p); /* it may give way to them */
    set_timer(s, job);
    stk_outrun_watch(s, job);
    stk_booking_lease(s, job);
}

void stk_queue_expect(struct stk_state *s, uint32_t job, stk_time estimate)
{
    struct stk_job *j = &s->jobs[job];
    const bool ranked = s->whole_pool || s->ranked;

    if (ranked)
        tree_remove(s, job);
    forget_end(s, j);
    stk_booking_unlease(s, job);
    stk_usage_live(s, j, false);
    j->estimate = estimate;
    if (j->lost > STK_MAX_DURATION - estimate) /* as in release.c */
        j->lost = STK_MAX_DURATION - estimate;
    stk_usage_live(s, j, true);
    expect_end(s, job);
    stk_booking_lease(s, job);
    if (ranked)
        tree_add(s, job);
}

void stk_queue_unlease(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];
    struct stk_pool *p = &s->pools[j->pool];

    p->n_leased--;
    p->n_changes++;
    s->n_leased--;
    stk_budget_up(s, job, false);
    p->level_leased[j->level]--;
    stk_evictable_lease(s, j, false);
    p->level_gpus_leased[j->level] -= j->gpus;
    if (s->whole_pool || s->ranked)
        tree_remove(s, job);
    else
        stk_fair_remove(s, job);
    stk_heap_remove(&s->timers, s->timer_pos, job);
    stk_outrun_forget(s, job);
    forget_end(s, j);
    stk_booking_unlease(s, job);
}

uint32_t stk_queue_stopping(const struct stk_state *s, uint32_t pool, uint32_t from)
{
    for (uint32_t job = from; s->pools[pool].n_stopping > 0 && job < s->n_jobs; job++)
        if (s->jobs[job].state == STK_JOB_STOPPING && s->jobs[job].lease &&
            s->jobs[job].pool == pool)
            return job;
    return STK_NONE;
}

void stk_queue_rekey(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];

    if (!s->whole_pool && !s->ranked && j->lease != 0) { /* its key matters when it waits again */
        set_timer(s, job);
        return;
    }
    tree_remove(s, job);
    tree_add(s, job);
    set_timer(s, job);
    if (j->lease != 0 && s->ranked) { /* it may have to give way now */
        stk_fair_fell(s, j->tenant);
        stk_shape_wake_all(s, &s->pools[j->pool]);
    }
    s->pools[j->pool].blocked = false; /* it may be the head now */
    stk_plan_drop(&s->pools[j->pool]); /* and is planned at its new place */
    if (s->whole_pool)
        stk_shape_mark_dirty(s, j->pool);
    else if (j->lease == 0)
        stk_shape_ready(s, j->shape);
}
