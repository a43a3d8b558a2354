/* SPDX-License-Identifier: Apache-2.0 */
/* release.c - a lease ends: GPUs come back, the job is queued again or done, dependents are told.
 */
#include "core/verbs.h"

#include "core/account.h"
#include "core/array.h"
#include "core/backfill.h"
#include "core/booking.h"
#include "core/budget.h"
#include "core/defrag.h"
#include "core/limit.h"
#include "core/pair.h"
#include "core/power.h"
#include "core/queue.h"
#include "core/speed.h"
#include "core/stake.h"
#include "core/txn.h"
#include "core/usage.h"

static void give_back(struct stk_state *s, struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;

    stk_pair_leave(s, (uint32_t)(j - s->jobs));
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];
        const struct stk_use u = stk_use_by(s, j, d, p);

        stk_index_give(s, p->node.i, &u);
        if (s->book.n > 0)
            stk_booking_fill(s, p->node.i);
        stk_shape_wake(s, p->node.i);
    }
    stk_limit_gave(s, j);
    stk_pieces_free(s, j->first_piece, j->n_pieces);
    j->n_pieces = 0;
    stk_power_freed(s);
}

/* An end that was not expected at this time moves reservations and plans. One that is due at the
 * time a plan is made, or a lease is given, is planned an instant later. */
static void check_expected(struct stk_state *s, const struct stk_job *j)
{
    struct stk_pool *p = &s->pools[j->pool];

    if (j->expected_end == s->now && j->started < s->now) {
        if (p->plan_made >= s->now)
            stk_plan_gains(p);
        return;
    }
    if (j->expected_end >= s->now)
        stk_plan_gains(p);
    else
        stk_plan_drop(p);
    if (p->resv_job != STK_NONE)
        stk_shape_unreserve(s, j->pool);
}

/* When the processes ended: an engine that was away says so later. */
static stk_time end_of(const struct stk_state *s, const struct stk_job *j,
                       const struct stk_event *ev)
{
    stk_time t = ev->u.exit.ended;

    if (t == 0 || t > s->now)
        return s->now;
    return t < j->started ? j->started : t;
}

/* What it did at another speed is less, or more, than the time it had. How much is left once it has
 * outrun its estimate nobody knows: from then on time counts as it is. */
static stk_time lost_by_speed(const struct stk_state *s, const struct stk_job *j, stk_time ran)
{
    uint32_t milli = stk_job_speed(s, j);
    stk_time most = stk_speed_time(stk_job_remaining(j, j->started), milli);

    ran = ran < most ? ran : most;
    return ran - stk_speed_work(ran, milli);
}

/* The lease's GPUs, CPU and memory come back. */
static void end_lease(struct stk_state *s, uint32_t job, stk_time ended)
{
    struct stk_job *j = &s->jobs[job];
    stk_time behind;

    if (j->state == STK_JOB_STOPPING)
        s->pools[j->pool].n_stopping--;
    else
        stk_queue_unlease(s, job);
    if (s->keep_ends)
        check_expected(s, j);
    behind = lost_by_speed(s, j, ended - j->started);
    j->served += ended - j->started;
    j->lost += behind;
    give_back(s, j);
    stk_booking_uncharge(s, job);
    j->lease = 0;
    j->suspend_wanted = false;
    s->stakes[job].kill = false;
}

/* Its processes are gone: those of its lease, or those that slept. */
static void end_processes(struct stk_state *s, uint32_t job, const struct stk_event *ev)
{
    struct stk_job *j = &s->jobs[job];

    if (j->lease)
        end_lease(s, job, end_of(s, j, ev));
    else if (j->state == STK_JOB_WAITING)
        stk_queue_leave(s, job, false);
    if (j->slept)
        stk_awake(s, j);
    j->lost += ev->u.exit.lost;
    if (j->lost > STK_MAX_DURATION - j->estimate) /* no job is longer, so that keys fit */
        j->lost = STK_MAX_DURATION - j->estimate;
    j->exit_code = ev->u.exit.code;
}

static void give_way(struct stk_state *s, struct stk_job *j, bool counts)
{
    if (!counts)
        return;
    j->preemptions++;
    stk_stake_count(s, j);
}

/* Whether the job is queued again after this end; counts it against its budget. */
static bool comes_back(struct stk_state *s, struct stk_job *j, const struct stk_event *ev)
{
    enum stk_cause cause = ev->u.exit.cause;
    enum stk_retry r = stk_retry_of(cause);

    if (j->cancel_wanted)
        return false;
    if (cause == STK_CAUSE_EVICTED) {
        give_way(s, j, !j->by_hand && !j->moving);
        return true;
    }
    if (ev->u.exit.final || r == STK_RETRY_MAX || j->retry[r] == 0)
        return false;
    if (j->retry[r] != STK_RETRY_ALWAYS)
        j->retry[r]--;
    return true;
}

/* It waits again, or is held when a hold came while it was being stopped. */
static void queue_again(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];

    if (!j->hold_wanted) {
        stk_enqueue(s, job);
        return;
    }
    stk_defrag_moved(s, j);
    j->hold_wanted = false;
    j->state = STK_JOB_HELD;
}

void stk_release_exited(struct stk_state *s, const struct stk_event *ev)
{
    struct stk_job *j = &s->jobs[ev->job.i];
    enum stk_cause cause = ev->u.exit.cause;
    bool back;

    j->hold_wanted |= j->state == STK_JOB_HELD; /* it slept, and stays held */
    end_processes(s, ev->job.i, ev);
    back = comes_back(s, j, ev);
    j->by_hand = false;
    if (back) {
        j->restarts++;
        queue_again(s, ev->job.i);
        return;
    }
    if (j->cancel_wanted && cause != STK_CAUSE_OK)
        cause = STK_CAUSE_CANCELLED;
    stk_release_finish(s, ev->job.i, cause, end_of(s, j, ev));
}

void stk_awake(struct stk_state *s, struct stk_job *j)
{
    j->slept = 0;
    s->pools[j->pool].n_asleep--;
    stk_shape_pin(s, j, NULL);
}

void stk_release_suspended(struct stk_state *s, const struct stk_event *ev)
{
    struct stk_job *j = &s->jobs[ev->job.i];
    const struct stk_piece at = s->pieces[j->first_piece];

    s->pools[j->pool].n_asleep += j->slept == 0;
    j->slept = j->lease;
    end_lease(s, ev->job.i, s->now);
    stk_shape_pin(s, j, &at);
    if (j->cancel_wanted)
        return; /* asleep, and stopping until its processes are gone */
    give_way(s, j, !j->by_hand && !j->hold_wanted);
    j->by_hand = false;
    queue_again(s, ev->job.i);
}

/* A sleeping job ends when its processes have been ended. True: it is one. */
static bool cancel_asleep(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];

    if (!j->slept || j->lease)
        return false;
    if (j->state == STK_JOB_WAITING)
        stk_queue_leave(s, job, false);
    j->state = STK_JOB_STOPPING;
    j->cancel_wanted = true;
    return true;
}

void stk_release_cancel(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];

    if (cancel_asleep(s, job))
        return;
    switch ((enum stk_job_state)j->state) {
    case STK_JOB_WAITING:
        stk_queue_leave(s, job, false);
        stk_release_finish(s, job, STK_CAUSE_CANCELLED, s->now);
        return;
    case STK_JOB_HELD:
    case STK_JOB_BLOCKED:
        stk_unblock(s, job);
        stk_release_finish(s, job, STK_CAUSE_CANCELLED, s->now);
        return;
    case STK_JOB_PLACED:
    case STK_JOB_RUNNING:
        stk_queue_unlease(s, job);
        j->state = STK_JOB_STOPPING;
        s->pools[j->pool].n_stopping++;
        stk_plan_gains(&s->pools[j->pool]); /* it should be gone soon */
        j->cancel_wanted = true;
        stk_shape_retry(s, j->pool);
        if (s->whole_pool || s->backfill->reserve_all) /* it no longer stands before others */
            stk_shape_mark_dirty(s, j->pool);
        return;
    case STK_JOB_STOPPING:
        j->cancel_wanted = true;
        return;
    case STK_JOB_NONE:
    case STK_JOB_DONE:
    case STK_JOB_STATE_MAX:
        return; /* the lifecycle table does not let these through */
    }
}

static void forget_oldest(struct stk_state *s)
{
    uint32_t job = s->done_head - 1;
    struct stk_job *j = &s->jobs[job];

    s->done_head = j->link;
    if (s->done_head == 0)
        s->done_tail = 0;
    s->n_done--;
    stk_map_remove(&s->by_number, j->number);
    *j = (struct stk_job){.state = STK_JOB_NONE, .link = s->free_job};
    s->free_job = job + 1;
}

static void mark_done(struct stk_state *s, uint32_t job, enum stk_cause cause, stk_time ended)
{
    struct stk_job *j = &s->jobs[job];

    stk_defrag_moved(s, j);
    stk_budget_leave(s, job);
    j->state = STK_JOB_DONE;
    j->cause = (uint8_t)cause;
    j->ended = ended;
    j->link = 0;
    s->n_live--;
    s->pools[j->pool].n_live--;
    stk_account_leave(s, j);
    stk_usage_live(s, j, false);
    stk_shape_drop(s, j->shape);
    if (s->done_tail)
        s->jobs[s->done_tail - 1].link = job + 1;
    else
        s->done_head = job + 1;
    s->done_tail = job + 1;
    s->n_done++;
}

/* Those in a list of edges (first + 1) are told that what they wait for is settled, by the end of
 * the job with the number 'by'; the rest of the list is free again. Jobs that can no longer run
 * end. */
static void settle_edges(struct stk_state *s, uint32_t first, stk_job_number by, bool met)
{
    while (first) {
        const struct stk_edge e = s->edges[first - 1];
        struct stk_job *c = &s->jobs[e.child];

        s->edges[first - 1].next = s->free_edge;
        s->free_edge = first;
        first = e.next;
        if (c->number != e.child_number || c->state == STK_JOB_DONE || c->state == STK_JOB_NONE)
            continue; /* ended meanwhile */
        if (!met) {
            stk_unblock(s, e.child);
            c->failed_dep = by;
            mark_done(s, e.child, STK_CAUSE_DEPENDENCY, s->now);
        } else if (--c->unmet == 0 && c->state == STK_JOB_BLOCKED) {
            stk_unblock(s, e.child);
            stk_enqueue(s, e.child);
        }
    }
}

/* Those that wait for this one job: each by its own type. */
static void settle_own(struct stk_state *s, struct stk_job *j)
{
    uint32_t e = j->first_edge;

    j->first_edge = 0;
    while (e) {
        uint32_t next = s->edges[e - 1].next;

        s->edges[e - 1].next = 0;
        settle_edges(
            s, e, j->number,
            stk_dep_met((enum stk_dep_type)s->edges[e - 1].type, (enum stk_cause)j->cause));
        e = next;
    }
}

/* Those that wait for all of its array. */
static void settle_array(struct stk_state *s, const struct stk_job *j)
{
    struct stk_array *a = stk_array_find(s, j->array);
    uint32_t first;
    bool met;

    if (!a)
        return;
    while ((first = stk_array_take(a, (enum stk_cause)j->cause, &met)) != 0)
        settle_edges(s, first, j->number, met);
    stk_array_leave(s, a);
}

void stk_release_finish(struct stk_state *s, uint32_t job, enum stk_cause cause, stk_time ended)
{
    uint32_t at = job + 1;

    mark_done(s, job, cause, ended);
    /* whoever ends by this is added to the row of finished jobs, and told on from there */
    while (at) {
        settle_own(s, &s->jobs[at - 1]);
        settle_array(s, &s->jobs[at - 1]);
        at = s->jobs[at - 1].link;
    }
    /* the caller has yet to read how these jobs ended: older ones alone are forgotten */
    while (s->n_done > s->retain_done && (s->done_head != job + 1 || s->retain_done == 0))
        forget_oldest(s);
}
