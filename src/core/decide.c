/* SPDX-License-Identifier: Apache-2.0 */
/* decide.c - what to do next.
 *
 * Only pools in which something happened are looked at. Of such a pool the shapes that might fit
 * are tried in the order of their first jobs; the first that fits is the decision, one that does
 * not is parked until something changes for it (core/shape.h). So a call costs what it decides, not
 * what waits: per decision one look at the index and O(log shapes + log jobs).
 *
 * Each call returns one start; the caller applies it and asks again. Stopping in between changes
 * nothing, since every step follows from the state alone.
 */
#include "core/decide.h"

#include "core/account.h"
#include "core/backfill.h"
#include "core/booking.h"
#include "core/core.h"
#include "core/defrag.h"
#include "core/drain.h"
#include "core/fair.h"
#include "core/fence.h"
#include "core/lane.h"
#include "core/leave.h"
#include "core/limit.h"
#include "core/outrun.h"
#include "core/place.h"
#include "core/queue.h"
#include "core/speed.h"
#include "core/stake.h"
#include "core/tenant.h"
#include "core/usage.h"

struct stk_event stk_decide_place(const struct stk_state *s, stk_time now, uint32_t job, uint32_t n)
{
    return (struct stk_event){.at = now,
                              .type = STK_EV_PLACE,
                              .job = {job},
                              .lease = s->next_lease,
                              .u.place = {s->try_pieces, n}};
}

struct stk_event stk_decide_evict(const struct stk_state *s, stk_time now, uint32_t job,
                                  uint32_t for_job)
{
    const enum stk_leave how = stk_stake_leave(s, &s->jobs[job]);

    return (struct stk_event){.at = now,
                              .type = STK_EV_EVICT,
                              .job = {job},
                              .lease = s->jobs[job].lease,
                              .u.evict = {.for_job = {for_job},
                                          .suspend = how == STK_LEAVE_SUSPEND,
                                          .kill = how == STK_LEAVE_KILL}};
}

/* Whether the job stands before the one that was promised a start. Tenants may change places
 * meanwhile: the promise holds against all but higher levels and its tenant's own jobs. */
static bool before(const struct stk_state *s, const struct stk_oent *e, const struct stk_job *j)
{
    const int64_t rank = stk_rank(s, j);

    if (stk_lanes_on(s) && s->jobs[e->id].tenant != j->tenant)
        return e->key >> STK_RANK_LEVEL < rank >> STK_RANK_LEVEL;
    return e->key != rank ? e->key < rank : e->tie < j->number;
}

/* The pool is being cleared for one job: it starts, or more must go, or it waits for them. */
static uint32_t claimed_step(struct stk_state *s, uint32_t pool, stk_time now,
                             struct stk_event *out, uint32_t cap)
{
    const struct stk_ask ask = {.s = s, .now = now, .pool = pool, .out = out, .cap = cap};
    uint32_t job = s->pools[pool].claim, n;
    bool fits;

    stk_fence_for(s, now, now + stk_speed_longest(s, &s->jobs[job], now));
    fits = stk_place_try(s, s->jobs[job].shape, NULL, &n);
    if (fits)
        out[0] = stk_decide_place(s, now, job, n);
    else
        n = s->preempt->room ? s->preempt->room(s->preempt_st, &ask, (stk_job_id){job}) : 0;
    stk_fence_any(s);
    return fits ? 1 : n;
}

/* Jobs that were moved are placed before all others. */
static uint32_t moved_step(struct stk_state *s, uint32_t pool, stk_time now, struct stk_event *out)
{
    uint32_t n;

    for (uint32_t job = stk_defrag_next(s, pool, STK_NONE); job != STK_NONE;
         job = stk_defrag_next(s, pool, job))
        if (stk_place_try(s, s->jobs[job].shape, NULL, &n)) {
            out[0] = stk_decide_place(s, now, job, n);
            return 1;
        }
    return 0;
}

/* Before others of their tenants, in whatever pool, take what their limits allow. Where room is
 * made for a job, that one comes first. */
static bool moved_anywhere(struct stk_state *s, stk_time now, struct stk_event *out)
{
    for (uint32_t i = 0; s->n_moving > 0 && i < s->n_pools; i++)
        if (s->pools[i].claim == STK_NONE && moved_step(s, i, now, out))
            return true;
    return false;
}

/* How strong the claim of a shape's first job is (core/fair.h): a guarantee, what is due, none. */
static uint32_t claim_of(const struct stk_state *s, uint32_t shape)
{
    const uint8_t title = s->shapes[shape].title;

    return title == STK_TITLE_GUARANTEE ? 2 : title == STK_TITLE_DUE;
}

/* The same of the job that the pool's reservation is for. */
static uint32_t promised(const struct stk_state *s, const struct stk_pool *p)
{
    return p->resv_job == STK_NONE ? 0 : claim_of(s, s->jobs[p->resv_job].shape);
}

/* A promise to one with a stronger claim comes first, whatever the order. */
static bool behind_reservation(const struct stk_state *s, const struct stk_pool *p,
                               const struct stk_oent *e)
{
    if (p->resv_job == STK_NONE || p->resv_job == e->id)
        return false;
    return !before(s, e, &s->jobs[p->resv_job]) ||
           promised(s, p) > claim_of(s, s->jobs[e->id].shape);
}

/* Of a job of the shape, on the pieces that were just found for it. */
static uint32_t tried_speed(const struct stk_state *s, uint32_t shape, uint32_t n)
{
    const struct stk_demand *d = &s->shapes[shape].demand;

    return d->n_speeds ? stk_speed_on(s, d, s->try_pieces, n) : STK_SPEED;
}

/* Whether a job that passes the one that was promised a start ends before that; 'work' is what it
 * needs, 'limit' what may be done until then. */
static bool in_time(const struct stk_state *s, uint32_t job, stk_time now, stk_time work,
                    stk_time limit)
{
    return work <= limit && (!stk_promise_overdue(s, s->jobs[job].pool, now) ||
                             stk_outrun_most(s, job, now) <= limit);
}

/* Tries the first due job of the best shape. 1: it starts; 0: the shape was put elsewhere. */
static uint32_t planned_try(struct stk_state *s, struct stk_pool *p, uint32_t shape,
                            const struct stk_oent *e, struct stk_event *out)
{
    const stk_time now = out->at;
    const bool behind = behind_reservation(s, p, e);
    uint32_t n;
    bool fits;

    stk_fence_for(s, now, now + stk_speed_longest(s, &s->jobs[e->id], now));
    fits = stk_place_try(s, shape, NULL, &n);
    stk_fence_any(s);
    if (!fits) { /* count said yes, fragments say no */
        if (!behind && p->resv_job != e->id)
            stk_reserve_for(s, e->id, now);
        stk_shape_park(s, shape, STK_PARKED_ROOM);
        return 0;
    }
    if (behind &&
        p->resv_at - now <
            stk_speed_time(stk_job_remaining(&s->jobs[e->id], now), tried_speed(s, shape, n)) &&
        !stk_reserve_spare(s, shape, &n)) {
        stk_shape_park(s, shape, STK_PARKED_RESERVE);
        return 0;
    }
    *out = stk_decide_place(s, now, e->id, n);
    if (!behind && p->resv_job != STK_NONE)
        stk_shape_unreserve(s, s->shapes[shape].pool);
    return 1;
}

/* Jobs whose planned start has come, in rank order; one that finds no node is tried again when
 * there is room, and the first such has nodes reserved. */
static uint32_t planned_step(struct stk_state *s, uint32_t pool, stk_time now,
                             struct stk_event *out)
{
    struct stk_pool *p = &s->pools[pool];

    if (!p->plan_valid || (p->plan_cut && p->due.n < s->backfill_depth / 2))
        stk_plan_rebuild(s, pool, now);
    while (p->due.n > 0 && p->due.item[0].key <= now) {
        uint32_t job = p->due.item[0].id;

        stk_heap_remove(&p->due, s->due_pos, job);
        stk_queue_due(s, job);
    }
    out->at = now;
    while (p->ready.n > 0) {
        uint32_t shape = p->ready.item[0].id;
        struct stk_oent e;

        if (!stk_shape_first(s, shape, now, &e))
            stk_heap_remove(&p->ready, s->shape_pos, shape);
        else if (e.key != p->ready.item[0].key || e.tie != p->ready.item[0].tie)
            stk_shape_requeue(s, shape, &e); /* others may come before it */
        else if (planned_try(s, p, shape, &e, out))
            return 1;
    }
    return 0;
}

#define SEARCH_ALWAYS 256 /* leases */

/* Others give way to the job, or nobody can. In a large pool a search costs as much as a thousand
 * starts, and mostly fails where the last one did: so a shape that is not within a guarantee is
 * searched for again after twice as many leases have begun or ended as the last time, up to a
 * quarter of those there are. */
static uint32_t make_room(const struct stk_ask *ask, uint32_t job)
{
    struct stk_state *s = ask->s;
    struct stk_shape *sh = &s->shapes[s->jobs[job].shape];
    const struct stk_pool *p = &s->pools[ask->pool];
    const bool all =
        !s->fair || s->ranked || p->n_leased < SEARCH_ALWAYS || sh->title == STK_TITLE_GUARANTEE;
    uint32_t n;

    if (!all && p->n_changes - sh->search_at < sh->search_wait)
        return 0;
    n = s->preempt->room(s->preempt_st, ask, (stk_job_id){job});
    sh->search_at = p->n_changes;
    sh->search_wait = n > 0                               ? 0
                      : sh->search_wait < p->n_leased / 8 ? 2 * sh->search_wait + 1
                                                          : p->n_leased / 4;
    return n;
}

/* The job cannot start and nobody before it waits for a reservation: others give way, or it is
 * promised a start, or it stands in the way of all. */
static uint32_t head_waits(struct stk_state *s, uint32_t pool, uint32_t job, stk_time now,
                           struct stk_event *out, uint32_t cap)
{
    struct stk_pool *p = &s->pools[pool];
    struct stk_ask ask = {.s = s, .now = now, .pool = pool, .out = out, .cap = cap};
    uint32_t n = 0;

    stk_fence_for(s, now, now + stk_speed_longest(s, &s->jobs[job], now));
    if (s->preempt->room)
        n = make_room(&ask, job);
    if (n == 0 && s->defrag > 0 && p->n_stopping == 0 && p->n_booked == 0)
        n = stk_defrag_room(&ask, job);
    stk_fence_any(s);
    if (n > 0)
        return n;
    if (!s->backfill->pass)
        p->blocked = true;
    else if (s->backfill->reserve_one && (p->resv_job != job || now >= p->resv_at))
        stk_reserve_for(s, job, now);
    return 0;
}

/* The same, and no other of its shape fits either. */
static uint32_t head_blocked(struct stk_state *s, uint32_t pool, uint32_t job, stk_time now,
                             struct stk_event *out, uint32_t cap)
{
    uint32_t n = head_waits(s, pool, job, now, out, cap);

    if (n == 0 && s->backfill->pass)
        stk_shape_park(s, s->jobs[job].shape, STK_PARKED_ROOM);
    return n;
}

/* Behind a reservation: a job that ends before it, or that fits beside it. */
static uint32_t backfill_step(struct stk_state *s, uint32_t shape, const struct stk_oent *first,
                              stk_time now, struct stk_event *out)
{
    struct stk_pool *p = &s->pools[s->shapes[shape].pool];
    const struct stk_heap_item *top = &stk_shape_heap(s, shape)->item[0];
    stk_time limit = p->resv_at == STK_NEVER_TIME ? INT64_MAX : p->resv_at - now;
    struct stk_oent e = *first;
    uint32_t n;

    if (!stk_place_try(s, shape, NULL, &n)) {
        stk_tenant_note(s, shape, false);
        stk_shape_park_behind(s, shape);
        return 0;
    }
    if (p->resv_at != STK_NEVER_TIME)
        limit = stk_speed_work(limit, tried_speed(s, shape, n));
    if (!in_time(s, first->id, now, first->aux, limit) && !stk_reserve_spare(s, shape, &n)) {
        if (!stk_shape_first(s, shape, limit, &e) || !in_time(s, e.id, now, e.aux, limit)) {
            stk_tenant_note(s, shape, false);
            stk_shape_park(s, shape, STK_PARKED_RESERVE);
            return 0;
        }
        if (e.key != top->key || e.tie != top->tie) { /* others may come before it */
            stk_shape_requeue(s, shape, &e);
            p->late_keys = true;
            return 0;
        }
        (void)stk_place_try(s, shape, NULL, &n);
    }
    out[0] = stk_decide_place(s, now, e.id, n);
    return 1;
}

/* An entitled job finds no room, and nobody can be evicted so that it does. It stands in nobody's
 * way, but is promised a start unless another one is. */
static void park_entitled(struct stk_state *s, struct stk_pool *p, uint32_t job, stk_time now)
{
    if (s->backfill->reserve_one && promised(s, p) < claim_of(s, s->jobs[job].shape))
        stk_reserve_for(s, job, now);
    stk_shape_park(s, s->jobs[job].shape, STK_PARKED_TITLE);
}

/* A job that is entitled to GPUs (core/fair.h): it starts, or others must go. Only a promise to
 * one with as strong a claim is kept. */
static uint32_t entitled_step(struct stk_state *s, uint32_t shape, const struct stk_oent *first,
                              stk_time now, struct stk_event *out, uint32_t cap)
{
    struct stk_pool *p = &s->pools[s->shapes[shape].pool];
    const struct stk_ask ask = {
        .s = s, .now = now, .pool = s->shapes[shape].pool, .out = out, .cap = cap};
    const bool behind = behind_reservation(s, p, first);
    uint32_t n;

    if (stk_fair_title(s, first->id) != s->shapes[shape].title) {
        stk_shape_requeue(s, shape, first);
        return 0;
    }
    if (behind && promised(s, p) >= claim_of(s, shape))
        return backfill_step(s, shape, first, now, out);
    stk_fence_for(s, now, now + stk_speed_longest(s, &s->jobs[first->id], now));
    if (stk_place_try(s, shape, NULL, &n)) {
        const bool ends = behind && (p->resv_at == STK_NEVER_TIME ||
                                     in_time(s, first->id, now, first->aux, p->resv_at - now));

        if (p->resv_job != STK_NONE && !ends && !(behind && stk_reserve_spare(s, shape, &n))) {
            stk_shape_unreserve(s, ask.pool);
            (void)stk_place_try(s, shape, NULL, &n);
        }
        stk_fence_any(s);
        out[0] = stk_decide_place(s, now, first->id, n);
        return 1;
    }
    stk_tenant_note(s, shape, false);
    n = make_room(&ask, first->id);
    stk_fence_any(s);
    if (n == 0)
        park_entitled(s, p, first->id, now);
    return n;
}

/* The next shape to be tried, STK_NONE: none. Entitled ones first; those do not wait for the head
 * of a strict queue. */
static uint32_t next_shape(const struct stk_pool *p)
{
    for (uint32_t i = 0; i < 2; i++)
        if (p->entitled[i].n > 0)
            return p->entitled[i].item[0].id;
    return p->ready.n > 0 && !p->blocked ? p->ready.item[0].id : STK_NONE;
}

/* ---- where GPUs are set aside for later ---- */

/* It starts now, on what is found for one that runs so long. */
static uint32_t place_for(struct stk_state *s, uint32_t job, stk_time now, struct stk_event *out)
{
    uint32_t n;
    bool fits;

    stk_fence_for(s, now, now + stk_speed_longest(s, &s->jobs[job], now));
    fits = stk_place_try(s, s->jobs[job].shape, NULL, &n);
    stk_fence_any(s);
    if (fits)
        out[0] = stk_decide_place(s, now, job, n);
    return fits;
}

/* The first job of the shape that runs no longer than this, or, behind the promise to another, that
 * ends before it or fits beside it. False: none. *ret_n: 0, or pieces have been found. */
static bool short_enough(struct stk_state *s, uint32_t shape, stk_time now, stk_time limit,
                         struct stk_oent *ret, uint32_t *ret_n)
{
    struct stk_pool *p = &s->pools[s->shapes[shape].pool];
    bool beside;

    *ret_n = 0;
    if (!stk_shape_first(s, shape, limit, ret))
        return false;
    if (!behind_reservation(s, p, ret) || p->resv_at == STK_NEVER_TIME ||
        in_time(s, ret->id, now, ret->aux, p->resv_at - now))
        return true;
    stk_fence_for(s, now, now + ret->aux);
    beside = stk_reserve_spare(s, shape, ret_n);
    stk_fence_any(s);
    if (beside)
        return true;
    *ret_n = 0;
    limit = p->resv_at - now < limit ? p->resv_at - now : limit;
    return stk_shape_first(s, shape, limit, ret) && in_time(s, ret->id, now, ret->aux, limit);
}

/* The first job of the shape cannot start, but others may that are short enough. 0: none does now.
 */
static uint32_t pass_first(struct stk_state *s, uint32_t shape, stk_time now, stk_time limit,
                           struct stk_event *out)
{
    struct stk_pool *p = &s->pools[s->shapes[shape].pool];
    const struct stk_heap_item top = p->ready.item[0];
    struct stk_oent e;
    uint32_t n;

    if (!short_enough(s, shape, now, limit, &e, &n) || e.id == p->resv_job) {
        stk_tenant_note(s, shape, false);
        stk_shape_park(s, shape, STK_PARKED_RESERVE);
        return 0;
    }
    if (e.key != top.key || e.tie != top.tie) { /* others may come before it */
        stk_shape_requeue(s, shape, &e);
        p->late_keys = true;
        return 0;
    }
    if (n > 0) {
        out[0] = stk_decide_place(s, now, e.id, n);
        return 1;
    }
    if (place_for(s, e.id, now, out))
        return 1;
    stk_shape_park(s, shape, STK_PARKED_RESERVE);
    return 0;
}

/* The best shape of a pool with reservations: its first job starts, or another that is shorter may
 * pass it. 0: the shape was put elsewhere, or the queue is blocked. */
static uint32_t booked_step(struct stk_state *s, uint32_t shape, const struct stk_oent *first,
                            stk_time now, struct stk_event *out, uint32_t cap)
{
    const uint32_t pool = s->shapes[shape].pool;
    struct stk_pool *p = &s->pools[pool];
    const struct stk_heap_item top = p->ready.item[0];
    const bool behind = behind_reservation(s, p, first);
    stk_time limit;
    uint32_t n;

    if (!stk_fence_fits(s, shape, now, &limit, &n)) {
        stk_tenant_note(s, shape, false);
        if (!behind)
            return head_blocked(s, pool, first->id, now, out, cap);
        stk_shape_park(s, shape, STK_PARKED_ROOM);
        return 0;
    }
    if (limit != STK_NEVER_TIME)
        limit = stk_speed_work(limit, tried_speed(s, shape, n));
    if (!behind && first->aux <= limit && place_for(s, first->id, now, out)) {
        if (p->resv_job != STK_NONE)
            stk_shape_unreserve(s, pool);
        return 1;
    }
    if (!behind && first->key == top.key && first->tie == top.tie) {
        n = head_waits(s, pool, first->id, now, out, cap);
        if (n > 0 || p->blocked)
            return n;
    }
    return pass_first(s, shape, now, limit, out);
}

/* Who was promised a start, and has lost the reservation for an end that was not foreseen, comes
 * next all the same. */
static void promised_first(const struct stk_state *s, const struct stk_pool *p, uint32_t *io_shape,
                           struct stk_oent *io_first)
{
    const struct stk_job *j;

    if (!p->promised || p->resv_job != STK_NONE || p->promised - 1 == io_first->id ||
        s->shapes[*io_shape].title || p->n_booked > 0)
        return;
    j = &s->jobs[p->promised - 1];
    if (s->shapes[j->shape].parked != STK_READY || before(s, io_first, j))
        return;
    *io_shape = j->shape;
    *io_first = (struct stk_oent){.key = stk_rank(s, j),
                                  .tie = j->number,
                                  .id = p->promised - 1,
                                  .aux = stk_job_remaining(j, s->now)};
}

/* Those behind a promise are left alone while it is there, and as strong as it was. */
static void look_behind(struct stk_state *s, struct stk_pool *p)
{
    const uint32_t claim = promised(s, p);

    if (p->n_behind > 0 && p->resv_job == STK_NONE)
        stk_shape_wake_first(s, p);
    else if (p->n_behind > 0 && claim < p->resv_claim)
        stk_shape_wake_all(s, p);
    p->resv_claim = claim;
}

/* A job within a guarantee is over a limit of a tenant above its own, because others below that
 * have borrowed: they go, if that suffices. */
static uint32_t limit_step(struct stk_state *s, uint32_t shape, const struct stk_oent *first,
                           const struct stk_ask *ask)
{
    uint32_t n;

    if (!s->guarantees || stk_tenant_open(s, shape) != 0 ||
        stk_fair_title(s, first->id) != STK_TITLE_GUARANTEE)
        return 0;
    if (s->shapes[shape].account[STK_OF_QUEUE] && stk_account_in_the_way(s, shape) != STK_NONE)
        return 0; /* a limit of its queue is over, and nobody goes for that */
    stk_fence_for(s, ask->now, ask->now + stk_speed_longest(s, &s->jobs[first->id], ask->now));
    n = make_room(ask, first->id);
    stk_fence_any(s);
    return n;
}

/* True: the shape is over a limit. It is parked, where it stands in nobody's way, or others go. */
static bool over_limit(struct stk_state *s, uint32_t shape, const struct stk_oent *first,
                       const struct stk_ask *ask, uint32_t *ret_n)
{
    *ret_n = 0;
    if (!stk_shape_limited(&s->shapes[shape]))
        return false;
    *ret_n = limit_step(s, shape, first, ask);
    return *ret_n > 0 || stk_limit_park(s, shape);
}

/* A shape with a title, or in a pool of which something is reserved. */
static uint32_t special_step(struct stk_state *s, uint32_t shape, const struct stk_oent *first,
                             const struct stk_ask *ask)
{
    return s->shapes[shape].title ? entitled_step(s, shape, first, ask->now, ask->out, ask->cap)
                                  : booked_step(s, shape, first, ask->now, ask->out, ask->cap);
}

static uint32_t queue_step(struct stk_state *s, uint32_t pool, stk_time now, struct stk_event *out,
                           uint32_t cap)
{
    const struct stk_ask ask = {.s = s, .now = now, .pool = pool, .out = out, .cap = cap};
    struct stk_pool *p = &s->pools[pool];

    for (uint32_t shape, n; look_behind(s, p), (shape = next_shape(p)) != STK_NONE;) {
        struct stk_oent first;

        (void)stk_shape_first(s, shape, INT64_MAX, &first);
        promised_first(s, p, &shape, &first);
        __builtin_prefetch(&s->jobs[first.id].number);
        __builtin_prefetch(&s->jobs[first.id].started);
        if (over_limit(s, shape, &first, &ask, &n) || s->shapes[shape].title || p->n_booked > 0) {
            if (n == 0 && s->shapes[shape].parked == STK_READY)
                n = special_step(s, shape, &first, &ask);
            if (n > 0)
                return n;
            continue;
        }
        if (behind_reservation(s, p, &first)) {
            if (backfill_step(s, shape, &first, now, out))
                return 1;
            continue;
        }
        if (stk_place_try(s, shape, NULL, &n)) {
            out[0] = stk_decide_place(s, now, first.id, n);
            if (p->resv_job != STK_NONE)
                stk_shape_unreserve(s, pool); /* it goes first, and may need those nodes */
            return 1;
        }
        stk_tenant_note(s, shape, false);
        n = head_blocked(s, pool, first.id, now, out, cap);
        if (n > 0)
            return n;
    }
    return 0;
}

/* Room is being made in the pool, or was: who it is for comes first, then those that moved. True:
 * the answer is *ret_n events, and nobody else is looked at. */
static bool promised_step(struct stk_state *s, uint32_t pool, stk_time now, struct stk_event *out,
                          uint32_t cap, uint32_t *ret_n)
{
    const struct stk_pool *p = &s->pools[pool];

    *ret_n = 0;
    if (p->claim != STK_NONE) {
        *ret_n = claimed_step(s, pool, now, out, cap);
        if (*ret_n > 0 || p->n_stopping > 0)
            return true; /* else the room it was promised went elsewhere: a node was lost */
    }
    if (s->n_moving > 0 && moved_step(s, pool, now, out)) {
        *ret_n = 1;
        return true; /* its claim is over */
    }
    return s->n_moving > 0 && stk_defrag_going(s, pool); /* what they were promised stays free */
}

static uint32_t pool_step(struct stk_state *s, uint32_t pool, stk_time now, struct stk_event *out,
                          uint32_t cap)
{
    struct stk_pool *p = &s->pools[pool];
    uint32_t n;

    if (p->n_waiting == 0)
        return 0;
    if (p->n_open > 0) {
        uint32_t job = stk_fence_next(s, pool, now, &n);

        if (job != STK_NONE) {
            out[0] = stk_decide_place(s, now, job, n);
            return 1;
        }
    }
    if (promised_step(s, pool, now, out, cap, &n))
        return n;
    if (p->resv_job != STK_NONE && now >= p->resv_at)
        stk_shape_unreserve(s, pool); /* its time has come: it starts, or is promised another */
    if (s->backfill->reserve_all)
        return planned_step(s, pool, now, out);
    return queue_step(s, pool, now, out, cap);
}

/* The same where a policy decides the pool whole. */
static uint32_t whole_step(struct stk_ask *ask)
{
    struct stk_state *s = ask->s;
    uint32_t n;

    if (promised_step(s, ask->pool, ask->now, ask->out, ask->cap, &n))
        return n;
    if (s->pools[ask->pool].n_waiting == 0 && !s->order->types) /* with types running ones move */
        return 0;
    return s->preempt->pass(s->preempt_st, ask);
}

/* Under a power cap the pool in which others were stopped for a job is looked at before those that
 * would take the power it was promised. */
static void claimed_first(struct stk_state *s)
{
    for (uint32_t i = 0; i + 1 < s->n_dirty; i++) {
        uint32_t pool = s->dirty[i];

        if (s->pools[pool].claim == STK_NONE)
            continue;
        s->dirty[i] = s->dirty[s->n_dirty - 1];
        s->dirty[s->n_dirty - 1] = pool;
    }
}

static void look_again(struct stk_state *s)
{
    s->again = false;
    for (uint32_t i = 0; i < s->n_pools; i++) {
        if (s->pools[i].again)
            stk_shape_mark_dirty(s, i);
        s->pools[i].again = false;
    }
}

/* Ranks have moved: all that wait are looked at. */
static void new_round(struct stk_state *s, stk_time now)
{
    s->round_at = now;
    for (uint32_t p = 0; p < s->n_pools; p++)
        if (s->pools[p].n_waiting > 0)
            stk_shape_mark_dirty(s, p);
}

uint32_t stk_decide(struct stk_state *s, stk_time now, struct stk_event *out, uint32_t cap)
{
    uint32_t n;

    stk_fair_refresh(s);
    n = s->book.n > 0 ? stk_booking_step(s, now, out, cap) : 0;
    n = n > 0 ? n : stk_drain_step(s, now, out);
    if (n > 0)
        return n;
    if (s->again && now > s->again_at)
        look_again(s);
    stk_stake_look_again(s, now);
    if (s->cap_w)
        claimed_first(s);
    if (s->round > 0 && now % s->round != 0)
        return 0;
    stk_usage_places(s, now);
    n = s->leave_look ? stk_leave_decide(s, now, out, cap) : 0;
    if (n > 0)
        return n;
    if (moved_anywhere(s, now, out))
        return 1;
    if (s->round > 0 && s->drift && s->round_at != now)
        new_round(s, now);
    while (s->n_dirty > 0) {
        struct stk_ask ask = {
            .s = s, .now = now, .pool = s->dirty[s->n_dirty - 1], .out = out, .cap = cap};

        n = s->preempt->pass ? whole_step(&ask) : pool_step(s, ask.pool, now, out, cap);
        if (ask.again) {
            s->pools[ask.pool].again = s->again = true;
            s->again_at = now;
        }
        if (n == 0 || ask.done) { /* deciding cannot add pools: it is still the last one */
            s->pools[ask.pool].dirty = false;
            s->n_dirty--;
        }
        if (n > 0)
            return n;
    }
    return 0;
}
