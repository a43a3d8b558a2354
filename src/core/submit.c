/* SPDX-License-Identifier: Apache-2.0 */
/* submit.c - a job comes in: checked, given a number and a shape, and queued, held or blocked. */
#include "core/verbs.h"

#include <string.h>

#include "core/account.h"
#include "core/array.h"
#include "core/booking.h"
#include "core/budget.h"
#include "core/defrag.h"
#include "core/evictable.h"
#include "core/fair.h"
#include "core/limit.h"
#include "core/power.h"
#include "core/queue.h"
#include "core/settings.h"
#include "core/tenant.h"
#include "core/txn.h"
#include "core/usage.h"
#include "model/mig.h"

/* In the one form that is compared: nothing that makes no difference. */
static int check_lists(const struct stk_demand *d, struct stk_err *err)
{
    bool ok = d->n_resources <= STK_MAX_RESOURCES && d->n_speeds <= STK_MAX_SPEEDS;

    ok = ok && (d->n_resources == 0 || d->resource[d->n_resources - 1] > 0);
    for (uint32_t i = 0; ok && i < d->n_speeds; i++)
        ok = d->speed_milli[i] > 0 && d->speed_milli[i] != STK_SPEED && d->gpus > 0 &&
             d->speed_type[i] < STK_MAX_GPU_TYPES && (d->gpu_types >> d->speed_type[i] & 1) &&
             (i == 0 || d->speed_type[i - 1] < d->speed_type[i]);
    return ok ? 0 : stk_err_set(err, -EINVAL, "resources or speeds in disorder");
}

/* Who may be on the same GPUs. */
static int check_share(const struct stk_demand *d, struct stk_err *err)
{
    if (d->share >= STK_SHARE_MAX || (!d->gpu_milli && (d->share || d->share_with)))
        return stk_err_set(err, -EINVAL, "only parts of a GPU are shared in some way");
    if (!d->gpu_milli && d->share_max && (d->share_max != 2 || d->gpus == 0 || d->exclusive))
        return stk_err_set(err, -EINVAL, "whole GPUs are shared by two jobs, got %u of %u GPUs",
                           d->share_max, d->gpus);
    if (d->slo_milli > 1000)
        return stk_err_set(err, -EINVAL, "an SLO is 0 to 1000 thousandths of a speed, got %u",
                           d->slo_milli);
    return 0;
}

int stk_demand_check(const struct stk_demand *d, struct stk_err *err)
{
    if (d->tasks < 1 || d->tasks > STK_MAX_TASKS)
        return stk_err_set(err, -EINVAL, "tasks must be 1 to %d, got %u", STK_MAX_TASKS, d->tasks);
    if (d->gpus > STK_MAX_GPUS || (uint64_t)d->gpus * d->tasks > STK_MAX_GPUS)
        return stk_err_set(err, -EINVAL, "a job may ask for at most %d GPUs, got %u x %u",
                           STK_MAX_GPUS, d->tasks, d->gpus);
    if (d->gpu_milli >= 1000 || (d->gpu_milli && (d->gpus != 1 || d->cut)))
        return stk_err_set(err, -EINVAL, "1 to 999 thousandths of one GPU per task, got %u of %u",
                           d->gpu_milli, d->gpus);
    if (d->mig && (d->gpu_milli != stk_mig_milli(d->mig) || !d->gpu_milli || d->gpu_mem_mib ||
                   d->share || d->share_max || d->share_with))
        return stk_err_set(err, -EINVAL, "a MIG instance is what its profile says, and not shared");
    if (check_share(d, err) < 0)
        return -EINVAL;
    if (d->share == STK_SHARE_TIME && d->tasks != 1)
        return stk_err_set(err, -EINVAL,
                           "the tasks of a gang would not have their turns at the same time: "
                           "share time takes one task, got %u",
                           d->tasks);
    if (d->cut && d->tasks != 1)
        return stk_err_set(err, -EINVAL, "a job that may be cut has one task, got %u", d->tasks);
    if (check_lists(d, err) < 0)
        return -EINVAL;
    if (d->pin || d->pin_mask || d->pin_slot || d->holders)
        return stk_err_set(err, -EINVAL, "a new job cannot be pinned to GPUs, or name holders");
    return stk_demand_near_check(d, err);
}

int stk_rank_check(int32_t priority, stk_time estimate, struct stk_err *err)
{
    if (priority > STK_MAX_PRIORITY || priority < -STK_MAX_PRIORITY)
        return stk_err_set(err, -EINVAL, "priority must be within +-%d, got %d", STK_MAX_PRIORITY,
                           priority);
    if (estimate < 0 || estimate > STK_MAX_DURATION)
        return stk_err_set(err, -EINVAL, "estimate must be 0 to 100 years");
    return 0;
}

bool stk_terms_check(stk_time asked, stk_time limit, struct stk_err *err)
{
    if (asked >= 0 && asked <= STK_MAX_DURATION && limit >= 0 && limit <= STK_MAX_DURATION)
        return true;
    (void)stk_err_set(err, -EINVAL, "run times that are asked for must be 0 to 100 years");
    return false;
}

/* What most jobs do not say. */
static int check_terms(const struct stk_state *s, const struct stk_terms *t, struct stk_err *err)
{
    if (!stk_terms_check(t->asked, t->limit, err))
        return -EINVAL;
    if (t->deadline < 0 || t->deadline > STK_MAX_DURATION || t->min_run < 0 ||
        t->min_run > STK_MAX_DURATION)
        return stk_err_set(err, -EINVAL, "deadline and least run time must be 0 to 100 years");
    if (t->min_run && s->preempt->pass)
        return stk_err_set(err, -EINVAL,
                           "preempt policy %s decides all anew and protects nobody; take tier, or "
                           "leave out the minimum run time",
                           s->preempt->name);
    if (t->group_min && s->preempt->pass)
        return stk_err_set(err, -EINVAL,
                           "preempt policy %s decides all anew and keeps no members of a group up; "
                           "take tier, or say nothing of how many must stay up",
                           s->preempt->name);
    if (t->group_min && !t->group)
        return stk_err_set(err, -EINVAL, "how many must stay up is said of a group: name it");
    return 0;
}

static int check_spec(const struct stk_state *s, const struct stk_job_spec *j, struct stk_err *err)
{
    if (j->pool.i >= s->n_pools)
        return stk_err_set(err, -EINVAL, "there is no pool %u (0 to %u)", j->pool.i,
                           s->n_pools - 1);
    if ((unsigned)j->kind >= STK_KIND_MAX || (unsigned)j->tier >= STK_TIER_MAX)
        return stk_err_set(err, -EINVAL, "unknown kind or tier");
    if (stk_rank_check(j->priority, j->estimate, err) < 0)
        return -EINVAL;
    if (j->begin < 0 || j->begin > STK_MAX_DURATION)
        return stk_err_set(err, -EINVAL, "begin time must be 0 to 100 years");
    if (check_terms(s, &j->terms, err) < 0)
        return -EINVAL;
    if (j->n_deps > STK_MAX_DEPS)
        return stk_err_set(err, -EINVAL, "at most %d dependencies, got %u", STK_MAX_DEPS,
                           j->n_deps);
    for (uint32_t i = 0; i < j->n_deps; i++) {
        if ((unsigned)j->deps[i].type >= STK_DEP_TYPE_MAX)
            return stk_err_set(err, -EINVAL, "unknown kind of dependency");
        if (j->deps[i].whole && !stk_array_find(s, j->deps[i].on))
            return stk_err_set(err, -ENOENT, "depends on array %u, which has ended", j->deps[i].on);
        if (!j->deps[i].whole && stk_map_get(&s->by_number, j->deps[i].on) == UINT32_MAX)
            return stk_err_set(err, -ENOENT, "depends on job %u, which is not known (any more)",
                               j->deps[i].on);
    }
    if (j->demand.nodes > s->n_sets)
        return stk_err_set(err, -EINVAL, "there is no set of nodes %u here", j->demand.nodes);
    if (j->demand.n_resources > s->n_resources)
        return stk_err_set(err, -EINVAL, "there is no resource %u here", j->demand.n_resources - 1);
    return stk_demand_check(&j->demand, err);
}

int stk_jobs_reserve(struct stk_state *s, uint32_t n)
{
    const struct stk_mem *m = &s->mem;
    int rc = stk_mem_grow(m, &s->jobs, &s->cap_jobs, n, sizeof(*s->jobs));

    rc = rc < 0 ? rc : stk_mem_grow(m, &s->terms, &s->cap_terms, n, sizeof(*s->terms));
    rc = rc < 0 ? rc : stk_mem_grow(m, &s->stakes, &s->cap_stakes, n, sizeof(*s->stakes));
    rc = rc < 0 ? rc : stk_fair_reserve(s, n);
    rc = rc < 0 ? rc : stk_mem_grow(m, &s->timer_pos, &s->cap_timer_pos, n, sizeof(*s->timer_pos));
    rc = rc < 0 ? rc : stk_mem_grow(m, &s->due_pos, &s->cap_due_pos, n, sizeof(*s->due_pos));
    rc = rc < 0 ? rc : stk_mem_grow(m, &s->sort, &s->cap_sort, n, sizeof(*s->sort));
    rc = rc < 0 ? rc : stk_mem_grow(m, &s->sort_tmp, &s->cap_sort_tmp, n, sizeof(*s->sort_tmp));
    rc = rc < 0 ? rc : stk_mem_grow(m, &s->list_a, &s->cap_list_a, n, sizeof(*s->list_a));
    rc = rc < 0 ? rc : stk_mem_grow(m, &s->list_b, &s->cap_list_b, n, sizeof(*s->list_b));
    rc = rc < 0 ? rc : stk_heap_reserve(&s->outruns, m, n);
    rc = rc < 0 ? rc : stk_booking_jobs(s, n);
    return rc < 0 ? rc : stk_map_reserve(&s->by_number, m, n);
}

static int reserve(struct stk_state *s, const struct stk_job_spec *spec)
{
    const struct stk_mem *m = &s->mem;
    int rc = stk_jobs_reserve(s, s->n_jobs + 1);

    rc = rc < 0 ? rc
                : stk_mem_grow(m, &s->edges, &s->cap_edges, s->n_edges + spec->n_deps,
                               sizeof(*s->edges));
    rc = rc < 0 || !spec->array ? rc : stk_array_reserve(s);
    rc = rc < 0 ? rc : stk_account_reserve(s);
    rc = rc < 0 || !spec->terms.group ? rc : stk_budget_reserve(s);
    return rc < 0 ? rc : stk_queue_reserve(s, spec->pool.i);
}

/* A new edge at the front of a list (edge + 1). */
static void add_edge(struct stk_state *s, uint32_t job, stk_job_number number,
                     enum stk_dep_type type, uint32_t *list)
{
    uint32_t e;

    if (s->free_edge) {
        e = s->free_edge - 1;
        s->free_edge = s->edges[e].next;
    } else {
        e = s->n_edges++;
    }
    s->edges[e] = (struct stk_edge){job, number, type, *list};
    *list = e + 1;
}

/* Ties the job to those it depends on; false when one of them has already ended the wrong way. */
static bool tie(struct stk_state *s, struct stk_job *j, const struct stk_job_spec *spec)
{
    uint32_t job = (uint32_t)(j - s->jobs);

    for (uint32_t i = 0; i < spec->n_deps; i++) {
        const struct stk_dep *d = &spec->deps[i];
        struct stk_job *on = d->whole ? NULL : &s->jobs[stk_map_get(&s->by_number, d->on)];
        uint32_t *list =
            on ? &on->first_edge : &stk_array_find(s, d->on)->first_edge[(unsigned)d->type];

        if (on && on->state == STK_JOB_DONE) {
            if (!stk_dep_met(d->type, (enum stk_cause)on->cause)) {
                j->failed_dep = on->number;
                return false;
            }
            continue;
        }
        add_edge(s, job, j->number, d->type, list);
        j->unmet++;
    }
    return true;
}

static void fill(struct stk_job *j, const struct stk_job_spec *spec)
{
    *j = (struct stk_job){.tag = spec->tag,
                          .kind = spec->kind & 15,
                          .tier = spec->tier & 7,
                          .plain = spec->terms.plain,
                          .priority = spec->priority,
                          .tenant = spec->tenant,
                          .pool = spec->pool.i,
                          .gpus = spec->demand.gpus * spec->demand.tasks,
                          .begin = spec->begin,
                          .estimate = spec->estimate,
                          .array = spec->array,
                          .array_index = spec->array_index};
    memcpy(j->retry, spec->retry, sizeof(j->retry));
}

int stk_submit_check(const struct stk_state *s, const struct stk_job_spec *spec,
                     struct stk_err *err)
{
    struct stk_job_spec
        open; /* the job without GPU types that its tenant can never have so many of */
    uint64_t types = 0;
    int rc = check_spec(s, spec, err);

    rc = rc < 0 ? rc : stk_account_check(s, spec, err);
    rc = rc < 0 ? rc : stk_tenant_check(s, spec, &types, err);
    if (rc == 0 && types != spec->demand.gpu_types) {
        open = *spec;
        open.demand.gpu_types = types;
        rc = s->admit->check(s, &open, err);
    } else if (rc == 0) {
        rc = s->admit->check(s, spec, err);
    }
    rc = rc < 0 ? rc : stk_power_check(s, spec, err);
    if (rc == 0 && s->next_number == UINT32_MAX)
        rc = stk_err_set(err, -EOVERFLOW, "job numbers are used up");
    return rc;
}

uint32_t stk_shape_of(struct stk_state *s, uint32_t job, const struct stk_demand *demand)
{
    const struct stk_under under = stk_limit_join(s, job);
    struct stk_demand d;

    if (s->book.n_holders == 0)
        return stk_shape_get(s, demand, s->jobs[job].pool, &under);
    d = *demand;
    d.holders = stk_booking_holders(s, &s->jobs[job], &s->terms[job]);
    return stk_shape_get(s, &d, s->jobs[job].pool, &under);
}

int stk_submit(struct stk_state *s, const struct stk_event *ev, struct stk_err *err)
{
    const struct stk_job_spec *spec = ev->u.spec;
    uint32_t job = ev->job.i;
    struct stk_job *j;
    bool dead;
    int rc = stk_submit_check(s, spec, err);

    if (rc < 0)
        return rc;
    if (reserve(s, spec) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory for %u jobs", s->n_jobs + 1);
    if (s->free_job) {
        s->free_job = s->jobs[job].link;
    } else {
        s->n_jobs++;
        s->timer_pos[job] = s->due_pos[job] = STK_HEAP_OUT;
    }
    j = &s->jobs[job];
    fill(j, spec);
    s->terms[job] = spec->terms;
    s->min_runs |= spec->terms.min_run > 0 || spec->terms.deadline > 0;
    j->priority += stk_settings_shift(s, job);
    s->stakes[job] = (struct stk_stake){0};
    stk_budget_join(s, job);
    j->level = stk_evictable_level(s, j) & 7;
    j->submitted = s->now;
    j->number = s->next_number++;
    j->shape = stk_shape_of(s, job, &spec->demand);
    if (s->seen)
        stk_seen_add(s, &spec->demand, j->pool);
    stk_usage_live(s, j, true);
    if (s->order->word)
        j->word = s->order->word(s->order_st, s, job);
    s->n_live++;
    s->pools[j->pool].n_live++;
    stk_map_put(&s->by_number, j->number, job);
    dead = !tie(s, j, spec);
    stk_array_join(s, j->array);
    if (dead) {
        j->state = STK_JOB_HELD; /* never seen: it ends at once */
        stk_release_finish(s, job, STK_CAUSE_DEPENDENCY, s->now);
    } else if (spec->held) {
        j->state = STK_JOB_HELD;
    } else {
        stk_enqueue(s, job);
    }
    return 0;
}

void stk_enqueue(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];

    if (j->unmet > 0 || j->begin > s->now) {
        j->state = STK_JOB_BLOCKED;
        s->n_blocked++;
        if (j->unmet == 0)
            stk_heap_put(&s->timers, s->timer_pos, job, j->begin, j->number);
        return;
    }
    j->state = STK_JOB_WAITING;
    j->queued = s->now;
    j->queue_seq = s->next_queue_seq++;
    stk_queue_enter(s, job);
}

void stk_unblock(struct stk_state *s, uint32_t job)
{
    if (s->jobs[job].state != STK_JOB_BLOCKED)
        return;
    s->n_blocked--;
    stk_heap_remove(&s->timers, s->timer_pos, job);
}

void stk_hold(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];

    if (j->state == STK_JOB_STOPPING) {
        j->hold_wanted = true;
        return;
    }
    if (j->state == STK_JOB_WAITING)
        stk_queue_leave(s, job, false);
    else
        stk_unblock(s, job);
    stk_defrag_moved(s, j);
    j->state = STK_JOB_HELD;
}

void stk_unhold(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];

    if (j->state == STK_JOB_STOPPING)
        j->hold_wanted = false;
    else
        stk_enqueue(s, job);
}

int stk_advise(struct stk_state *s, const struct stk_event *ev, struct stk_err *err)
{
    struct stk_job *j = &s->jobs[ev->job.i];

    if (!s->order->advised)
        return stk_err_set(err, -EINVAL, "job %u: order %s takes no advice", j->number,
                           s->order->name);
    if (ev->u.advice.where > STK_MAX_GPU_TYPES)
        return stk_err_set(err, -EINVAL, "job %u: there is no GPU type %u", j->number,
                           ev->u.advice.where - 1);
    if (stk_queue_reserve(s, j->pool) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    j->word = s->order->advised(ev->u.advice.where, ev->u.advice.rank);
    stk_queue_rekey(s, ev->job.i);
    return 0;
}

void stk_tick(struct stk_state *s)
{
    while (s->timers.n > 0 && s->timers.item[0].key <= s->now) {
        uint32_t job = s->timers.item[0].id;
        struct stk_job *j = &s->jobs[job];

        stk_heap_remove(&s->timers, s->timer_pos, job);
        if (j->state == STK_JOB_BLOCKED) {
            stk_unblock(s, job);
            stk_enqueue(s, job);
            continue;
        }
        if (s->order->on_change)
            j->word = s->order->on_change(s->order_st, j, s->now);
        stk_queue_rekey(s, job);
    }
}
