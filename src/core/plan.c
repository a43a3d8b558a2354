/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - conservative backfill: a planned start for every waiting job (core/backfill.h).
 *
 * The plan is one of the pool's count of free GPUs (core/timeline.h), not of nodes. A job whose
 * planned start has come is tried like any other; when fragments keep it from starting, it starts
 * as soon as a node has room. An arrival at the end of the queue is planned in O(log n).
 *
 * What was not foreseen makes a new plan: O(n log n). Where it only leaves more free (an early end,
 * a cancelled job) every job keeps its place until it is its turn to look for an earlier one, in
 * rank order: so nobody is moved back for another. Where the plan can no longer be (a job that
 * outran its estimate, a node that went, a job that comes before others) all is planned from
 * nothing.
 */
#include "core/backfill.h"

#include "core/booking.h"
#include "core/fence.h"
#include "core/lane.h"
#include "core/later.h"
#include "core/outrun.h"
#include "core/pinned.h"
#include "core/queue.h"
#include "core/speed.h"

#define PLAN_MOST 10 /* arrivals are planned up to this many times backfill.depth */

/* How long a planned job holds its GPUs. Behind one whose promise was not kept, for guesses that
 * failed, nobody is planned by a guess. */
static stk_time plan_length(const struct stk_state *s, const struct stk_job *j, stk_time now)
{
    const struct stk_pool *p = &s->pools[j->pool];
    const uint32_t job = (uint32_t)(j - s->jobs);
    const bool sure = p->plan_sure && p->first_for != job + 1;
    stk_time dur =
        sure ? stk_speed_slowest(s, j, stk_outrun_most(s, job, now)) : stk_speed_longest(s, j, now);

    return dur > 0 ? dur : 1;
}

static void plan_job(struct stk_state *s, struct stk_pool *p, uint32_t job, stk_time now)
{
    struct stk_job *j = &s->jobs[job];
    stk_time dur = plan_length(s, j, now), from = now;
    struct stk_pinned q;

    if (p->n_asleep > 0 && s->shapes[j->shape].demand.pin)
        from = stk_pinned_when(s, j, now, &q);
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
        stk_plan_drop(p);
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

    if (rank < p->plan_rank || (rank == p->plan_rank && j->number < p->plan_number)) {
        p->plan_rank = rank; /* those behind it lose their places */
        p->plan_number = j->number;
        stk_plan_gains(p);
    }
    if (!p->plan_valid)
        return;
    if (p->due.n >= PLAN_MOST * (uint64_t)s->backfill_depth)
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

        gpus += s->nodes[p->node.i].up ? stk_later_back(s, d, p) : 0;
    }
    return gpus;
}

/* The first jobs of a tree, at most backfill_depth, behind the n in s->sort; data: it was planned.
 * How many are there then. */
static uint32_t first_of(struct stk_state *s, const struct stk_otree *t, uint32_t n)
{
    struct stk_ocursor c = stk_otree_begin(&s->trees, t);

    for (uint32_t k = 0; c.block != UINT32_MAX; k++, stk_ocursor_next(&s->trees, &c)) {
        const struct stk_oent *e = stk_ocursor_get(&s->trees, c);

        if (k < s->backfill_depth)
            s->sort[n++] = (struct stk_sort_item){e->tie, e->id, e->aux != INT64_MAX};
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

            if (!s->nodes[f->node].up) /* its GPUs are in no count */
                continue;
            held += f->held;
            lacks += stk_fence_wants(f) - f->held;
        }
        stk_timeline_add(&s->pools[pool].plan, b->start > now ? b->start : now, b->end, -lacks);
        stk_timeline_add(&s->pools[pool].plan, b->end, STK_NEVER_TIME, held);
    }
}

/* The pool's GPUs as leases and reservations leave them, without any planned job. */
static void plan_base(struct stk_state *s, uint32_t pool, stk_time now)
{
    struct stk_pool *p = &s->pools[pool];

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
}

/* Its place in the plan, or no longer. */
static void plan_slot(struct stk_state *s, const struct stk_job *j, stk_time now, bool taken)
{
    const int64_t gpus = taken ? -(int64_t)j->gpus : (int64_t)j->gpus;

    stk_timeline_add(&s->pools[j->pool].plan, j->planned, j->planned + plan_length(s, j, now),
                     gpus);
}

/* Whether jobs of the n in s->sort can stay where they are: none of them is late. Marks those that
 * do, which are not behind one that came since, and settles whether guesses count. */
static bool plan_stays(const struct stk_state *s, struct stk_pool *p, uint32_t n, stk_time now)
{
    const bool sure = n > 0 && stk_promise_overdue(s, s->jobs[s->sort[0].id].pool, now);
    bool late = p->plan_sure != sure;

    p->plan_sure = sure;

    for (uint32_t i = 0; i < n; i++) {
        const struct stk_job *j = &s->jobs[s->sort[i].id];
        const bool behind = s->sort[i].key > p->plan_rank ||
                            (s->sort[i].key == p->plan_rank && j->number > p->plan_number);

        s->sort[i].data &= j->planned != STK_NEVER_TIME && !behind;
        late |= s->sort[i].data && j->planned < now;
    }
    return p->plan_holds && !late;
}

/* Each of the n jobs in s->sort, in rank order, gets the earliest start there is for it; with
 * 'stays' none that is later than the one it has. True: some job moved. */
static bool plan_pass(struct stk_state *s, struct stk_pool *p, uint32_t n, stk_time now, bool stays)
{
    bool moved = false;

    for (uint32_t i = 0; i < n; i++) {
        const struct stk_job *j = &s->jobs[s->sort[i].id];
        const stk_time was = j->planned;

        if (stays && s->sort[i].data)
            plan_slot(s, j, now, false);
        plan_job(s, p, s->sort[i].id, now);
        moved |= j->planned != was;
        if (i == 0)
            stk_promise_made(p, s->sort[i].id, j->planned);
    }
    return moved;
}

void stk_plan_rebuild(struct stk_state *s, uint32_t pool, stk_time now)
{
    struct stk_pool *p = &s->pools[pool];
    bool stays;
    uint32_t n;

    p->plan_made = now;
    plan_base(s, pool, now);
    n = first_jobs(s, p);
    stays = plan_stays(s, p, n, now);
    p->plan_rank = INT64_MIN;
    p->plan_number = 0;
    for (uint32_t i = 0; stays && i < n; i++)
        if (s->sort[i].data)
            plan_slot(s, &s->jobs[s->sort[i].id], now, true);
    while (plan_pass(s, p, n, now, stays) && stays)
        for (uint32_t i = 0; i < n; i++)
            s->sort[i].data = s->jobs[s->sort[i].id].planned != STK_NEVER_TIME;
    p->plan_cut = n < p->n_waiting;
    p->plan_valid = p->plan_holds = true;
}
