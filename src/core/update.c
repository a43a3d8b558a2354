/* SPDX-License-Identifier: Apache-2.0 */
/* update.c - a job that has not started is changed: another priority and estimate, or whatever else
 * it was submitted with. It keeps its number, the jobs it depends on, and its time in the queue.
 *
 * Of a job that has GPUs, or is being stopped, how long it is expected to run and may run is
 * changed, and nothing else. Its expected end moves, and promises and plans of its pool are made
 * anew: a later end may delay them. Who may do that is not for the core to say (core/delay.h has
 * whom it would hit). */
#include "core/account.h"
#include "core/backfill.h"
#include "core/booking.h"
#include "core/budget.h"
#include "core/defrag.h"
#include "core/evictable.h"
#include "core/fair.h"
#include "core/limit.h"
#include "core/outrun.h"
#include "core/queue.h"
#include "core/settings.h"
#include "core/shape.h"
#include "core/usage.h"
#include "core/verbs.h"

static void limit_lost(struct stk_job *j)
{
    if (j->lost > STK_MAX_DURATION - j->estimate)
        j->lost = STK_MAX_DURATION - j->estimate;
}

/* The lease ends earlier than was expected, or later: what was promised and planned with it. */
static void end_moved(struct stk_state *s, const struct stk_job *j, bool later)
{
    struct stk_pool *p = &s->pools[j->pool];

    if (later)
        stk_plan_drop(p);
    else
        stk_plan_gains(p);
    p->outran |= later; /* the first in line may be late by it */
    stk_shape_unreserve(s, j->pool);
    if (p->n_waiting == 0)
        return;
    p->blocked = false;
    if (s->ranked) /* it may have to give way now */
        stk_fair_fell(s, j->tenant);
    stk_shape_wake_all(s, p); /* reservations may need less than they did */
    stk_shape_mark_dirty(s, j->pool);
}

static void run_longer(struct stk_state *s, const struct stk_event *ev)
{
    struct stk_job *j = &s->jobs[ev->job.i];
    const stk_time was = j->expected_end;

    s->terms[ev->job.i].asked = ev->u.update.asked;
    if (!stk_has_gpus(j)) { /* in no tree */
        stk_usage_live(s, j, false);
        j->estimate = ev->u.update.estimate;
        s->terms[ev->job.i].limit = ev->u.update.limit;
        limit_lost(j);
        stk_usage_live(s, j, true);
        return;
    }
    stk_outrun_forget(s, ev->job.i);
    s->terms[ev->job.i].limit = ev->u.update.limit;
    stk_queue_expect(s, ev->job.i, ev->u.update.estimate);
    stk_outrun_watch(s, ev->job.i);
    if (j->expected_end != was)
        end_moved(s, j, j->expected_end > was);
}

static int rank(struct stk_state *s, const struct stk_event *ev, struct stk_err *err)
{
    struct stk_job *j = &s->jobs[ev->job.i];
    bool waits = j->state == STK_JOB_WAITING;
    int rc = stk_rank_check(ev->u.update.priority, ev->u.update.estimate, err);

    if (rc < 0)
        return rc;
    if (!stk_terms_check(ev->u.update.asked, ev->u.update.limit, err))
        return -EINVAL;
    if (stk_queue_reserve(s, j->pool) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    if (j->lease || j->state == STK_JOB_STOPPING) {
        run_longer(s, ev);
        return 0;
    }
    if (waits)
        stk_queue_leave(s, ev->job.i, false);
    stk_usage_live(s, j, false);
    j->priority = ev->u.update.priority + stk_settings_shift(s, ev->job.i);
    j->estimate = ev->u.update.estimate;
    s->terms[ev->job.i].asked = ev->u.update.asked;
    s->terms[ev->job.i].limit = ev->u.update.limit;
    s->terms[ev->job.i].plain = ev->u.update.plain;
    j->plain = ev->u.update.plain;
    limit_lost(j);
    stk_usage_live(s, j, true);
    j->level = stk_evictable_level(s, j) & 7;
    stk_shape_rights(s, j);
    if (waits)
        stk_queue_enter(s, ev->job.i); /* it keeps its time in the queue */
    return 0;
}

static int check(struct stk_state *s, const struct stk_job *j, const struct stk_job_spec *spec,
                 struct stk_err *err)
{
    int rc;

    if (j->slept || j->lease || j->state == STK_JOB_STOPPING)
        return stk_err_set(err, -EPROTO, "job %u has processes: what it asks for cannot be changed",
                           j->number);
    if (spec->n_deps > 0)
        return stk_err_set(err, -EINVAL, "job %u: what it depends on cannot be changed", j->number);
    rc = stk_submit_check(s, spec, err);
    if (rc == 0 && (stk_queue_reserve(s, j->pool) < 0 || stk_queue_reserve(s, spec->pool.i) < 0 ||
                    stk_account_reserve(s) < 0 || stk_budget_reserve(s) < 0))
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    return rc;
}

static void change(struct stk_state *s, uint32_t job, const struct stk_job_spec *spec)
{
    struct stk_job *j = &s->jobs[job];

    stk_usage_live(s, j, false);
    stk_account_leave(s, j);
    stk_shape_drop(s, j->shape);
    s->pools[j->pool].n_live--;
    j->tier = spec->tier & 7;
    j->plain = spec->terms.plain;
    j->tenant = spec->tenant;
    j->pool = spec->pool.i;
    j->gpus = spec->demand.gpus * spec->demand.tasks;
    j->begin = spec->begin;
    j->estimate = spec->estimate;
    limit_lost(j);
    stk_budget_leave(s, job);
    s->terms[job] = spec->terms;
    s->min_runs |= spec->terms.min_run > 0 || spec->terms.deadline > 0;
    stk_budget_join(s, job);
    j->priority = spec->priority + stk_settings_shift(s, job);
    j->level = stk_evictable_level(s, j) & 7;
    j->shape = stk_shape_of(s, job, &spec->demand);
    stk_usage_live(s, j, true);
    if (s->order->word)
        j->word = s->order->word(s->order_st, s, job);
    s->pools[j->pool].n_live++;
}

int stk_update(struct stk_state *s, const struct stk_event *ev, struct stk_err *err)
{
    const struct stk_job_spec *spec = ev->u.update.spec;
    struct stk_job *j = &s->jobs[ev->job.i];
    const enum stk_job_state was = (enum stk_job_state)j->state;
    int rc;

    if (!spec)
        return rank(s, ev, err);
    rc = check(s, j, spec, err);
    if (rc < 0)
        return rc;
    if (was == STK_JOB_WAITING)
        stk_queue_leave(s, ev->job.i, false);
    else
        stk_unblock(s, ev->job.i);
    stk_defrag_moved(s, j);
    change(s, ev->job.i, spec);
    if (was == STK_JOB_WAITING && j->begin <= s->now)
        stk_queue_enter(s, ev->job.i);
    else if (was != STK_JOB_HELD)
        stk_enqueue(s, ev->job.i);
    return 0;
}
