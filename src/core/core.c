/* SPDX-License-Identifier: Apache-2.0 */
#include "core/core.h"

#include "base/hash.h"
#include "core/array.h"
#include "core/backfill.h"
#include "core/booking.h"
#include "core/decide.h"
#include "core/defrag.h"
#include "core/drain.h"
#include "core/evictable.h"
#include "core/index.h"
#include "core/lane.h"
#include "core/lifecycle.h"
#include "core/outrun.h"
#include "core/power.h"
#include "core/queue.h"
#include "core/sets.h"
#include "core/settings.h"
#include "core/share.h"
#include "core/verbs.h"

stk_job_id stk_core_next_job(const struct stk_core *c)
{
    return (stk_job_id){c->s.free_job ? c->s.free_job - 1 : c->s.n_jobs};
}

stk_lease_id stk_core_next_lease(const struct stk_core *c)
{
    return c->s.next_lease;
}

uint32_t stk_core_next_booking(const struct stk_core *c)
{
    return c->s.book.next;
}

const struct stk_state *stk_core_state(const struct stk_core *c)
{
    return &c->s;
}

uint32_t stk_core_find(const struct stk_core *c, stk_job_number number)
{
    return stk_map_get(&c->s.by_number, number);
}

/* Whether other jobs wait for all of its array. */
static bool array_awaited(const struct stk_state *s, const struct stk_job *j)
{
    const struct stk_array *a = stk_array_find(s, j->array);
    bool any = false;

    for (uint32_t t = 0; a && t < STK_DEP_TYPE_MAX; t++)
        any |= a->first_edge[t] != 0;
    return any;
}

/* How many jobs an end may queue: the job itself and its dependents. */
static uint32_t count_set_off(const struct stk_state *s, const struct stk_job *j,
                              enum stk_cause cause)
{
    const uint32_t most = s->n_blocked + 1;
    uint32_t n = array_awaited(s, j) ? most : 1;

    for (uint32_t e = j->first_edge; e && n < most; e = s->edges[e - 1].next) {
        n++;
        if (!stk_dep_met((enum stk_dep_type)s->edges[e - 1].type, cause))
            n = most; /* its end may set off others */
    }
    return n;
}

/* Memory for what an end may set off. */
static int reserve_end(struct stk_state *s, const struct stk_job *j, enum stk_cause cause)
{
    const uint32_t n = count_set_off(s, j, cause);

    if (stk_lane_reserve(s, n + 1) < 0)
        return -ENOMEM;
    return stk_opool_reserve(&s->trees, &s->mem, 2 * n + 4);
}

/* An event about a lease is about the one the job has, or the one its processes sleep under. */
static int check_lease(const struct stk_job *j, const struct stk_event *ev, struct stk_err *err)
{
    bool asleep_too = ev->type == STK_EV_EXITED || ev->type == STK_EV_EVICT;
    stk_lease_id mine = j->lease == 0 && asleep_too ? j->slept : j->lease;

    if (ev->type != STK_EV_STARTED && ev->type != STK_EV_SUSPENDED &&
        ev->type != STK_EV_CHECKPOINT && ev->type != STK_EV_SWAPPED && !asleep_too)
        return 0;
    if (mine == 0)
        return stk_err_set(err, -EPROTO, "job %u is %s and has no processes: %s is not possible",
                           j->number, stk_job_state_name((enum stk_job_state)j->state),
                           stk_event_type_name(ev->type));
    if (ev->lease != mine)
        return stk_err_set(err, -ESTALE, "job %u: event about lease %u, it has lease %u", j->number,
                           ev->lease, mine);
    return 0;
}

static int check_evict(const struct stk_state *s, const struct stk_event *ev, struct stk_err *err)
{
    const struct stk_job *j = &s->jobs[ev->job.i];
    uint32_t by = ev->u.evict.for_job.i;

    if (by != STK_NONE &&
        (by >= s->n_jobs || s->jobs[by].state != STK_JOB_WAITING || s->jobs[by].pool != j->pool))
        return stk_err_set(err, -EINVAL, "job %u: evicted for a job that does not wait", j->number);
    if (ev->u.evict.moved && (ev->u.evict.suspend || s->n_moving >= STK_MAX_MOVING))
        return stk_err_set(err, -EINVAL, "job %u: moved to sleep, or beside too many", j->number);
    if (ev->u.evict.kill && ev->u.evict.suspend)
        return stk_err_set(err, -EINVAL, "job %u: killed, or put to sleep", j->number);
    if (j->lease == 0 && (by != STK_NONE || ev->u.evict.suspend))
        return stk_err_set(err, -EINVAL, "job %u sleeps: it has nothing to give", j->number);
    return 0;
}

static int apply_suspended(struct stk_state *s, const struct stk_event *ev, struct stk_err *err)
{
    const struct stk_job *j = &s->jobs[ev->job.i];

    if (!j->suspend_wanted)
        return stk_err_set(err, -EINVAL, "job %u was not told to sleep, or lies on %u nodes",
                           j->number, j->n_pieces);
    if (stk_queue_reserve(s, j->pool) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    stk_release_suspended(s, ev);
    return 0;
}

static int apply_exited(struct stk_state *s, const struct stk_event *ev, struct stk_err *err)
{
    const struct stk_job *j = &s->jobs[ev->job.i];

    if ((unsigned)ev->u.exit.cause >= STK_CAUSE_MAX || ev->u.exit.cause == STK_CAUSE_NONE ||
        ev->u.exit.lost < 0 || ev->u.exit.lost > STK_MAX_DURATION)
        return stk_err_set(err, -EINVAL, "job %u: exit without a cause", j->number);
    if (stk_queue_reserve(s, j->pool) < 0 || reserve_end(s, j, ev->u.exit.cause) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    stk_release_exited(s, ev);
    return 0;
}

static int apply_job(struct stk_state *s, const struct stk_event *ev, struct stk_err *err)
{
    struct stk_job *j = &s->jobs[ev->job.i];
    int rc = check_lease(j, ev, err);

    if (rc < 0)
        return rc;
    switch (ev->type) {
    case STK_EV_HOLD:
        stk_hold(s, ev->job.i);
        return 0;
    case STK_EV_RELEASE:
        if (stk_queue_reserve(s, j->pool) < 0)
            return stk_err_set(err, -ENOMEM, "out of memory");
        stk_unhold(s, ev->job.i);
        return 0;
    case STK_EV_CANCEL:
        if (reserve_end(s, j, STK_CAUSE_CANCELLED) < 0)
            return stk_err_set(err, -ENOMEM, "out of memory");
        stk_release_cancel(s, ev->job.i);
        return 0;
    case STK_EV_PLACE:
        return stk_run_place(s, ev, err);
    case STK_EV_EVICT:
        rc = check_evict(s, ev, err);
        if (rc == 0)
            stk_run_evict(s, ev);
        return rc;
    case STK_EV_STARTED:
        if (stk_queue_reserve(s, j->pool) < 0)
            return stk_err_set(err, -ENOMEM, "out of memory");
        stk_run_started(s, ev->job.i);
        return 0;
    case STK_EV_EXITED:
        return apply_exited(s, ev, err);
    case STK_EV_SUSPENDED:
        return apply_suspended(s, ev, err);
    case STK_EV_UPDATE:
        return stk_update(s, ev, err);
    case STK_EV_ADVISE:
        return stk_advise(s, ev, err);
    case STK_EV_CHECKPOINT:
        s->stakes[ev->job.i].saved = s->now;
        return 0;
    case STK_EV_SWAPPED:
        return stk_swap(s, ev, err);
    case STK_EV_SUBMIT:
    case STK_EV_NODES:
    case STK_EV_NODE_DOWN:
    case STK_EV_NODE_UP:
    case STK_EV_GPUS_OFF:
    case STK_EV_NODE_OFF:
    case STK_EV_TICK:
    case STK_EV_SET:
    case STK_EV_RESERVE:
    case STK_EV_UNRESERVE:
    case STK_EV_TYPE_MAX:
        break;
    }
    return -EINVAL;
}

static int check_off(const struct stk_node *n, uint64_t off, struct stk_err *err)
{
    if (n->aggregate)
        return stk_err_set(err, -EINVAL, "a node that only counts its GPUs cannot have some off");
    if (off & ~n->mask_all)
        return stk_err_set(err, -EINVAL, "GPUs off that do not exist: the node has %u", n->gpus);
    return 0;
}

static int apply_node_off(struct stk_state *s, uint32_t node, struct stk_err *err)
{
    const struct stk_node *n = &s->nodes[node];

    if (!stk_power_known(&n->power) || n->n_uses > 0)
        return stk_err_set(err, -EINVAL, "node %u cannot be switched off: %s", node,
                           n->n_uses > 0 ? "jobs are there" : "its power is not known");
    stk_power_set(s, node, true);
    stk_power_freed(s);
    return 0;
}

static int apply_node(struct stk_state *s, const struct stk_event *ev, struct stk_err *err)
{
    uint32_t node = ev->type == STK_EV_GPUS_OFF ? ev->u.off.node.i : ev->u.node.i;
    uint32_t pool;
    bool up;
    int rc = 0;

    if (node >= s->n_nodes)
        return stk_err_set(err, -EINVAL, "there is no node %u", node);
    pool = s->nodes[node].pool;
    if (ev->type == STK_EV_NODE_OFF)
        return apply_node_off(s, node, err);
    if (ev->type == STK_EV_GPUS_OFF) {
        rc = check_off(&s->nodes[node], ev->u.off.mask | ev->u.off.last, err);
        if (rc < 0)
            return rc;
        s->nodes[node].mask_last = ev->u.off.last;
        s->nodes[node].closed = ev->u.off.closed;
        stk_index_gpus_off(s, node, ev->u.off.mask);
        stk_evictable_recount(s, node);
    } else {
        s->nodes[node].said_up = ev->type == STK_EV_NODE_UP;
        up = s->nodes[node].said_up && !s->nodes[node].leaving;
        stk_evictable_node_up(s, node, up);
        stk_index_node_up(s, node, up);
    }
    stk_share_changed(s);
    if (ev->type == STK_EV_NODE_UP)
        stk_plan_gains(&s->pools[pool]);
    else
        stk_plan_drop(&s->pools[pool]);
    s->pools[pool].blocked = false;
    stk_shape_unreserve(s, pool);
    if (s->book.n > 0) {
        stk_booking_mend(s, pool);
        stk_booking_fill(s, node);
    }
    stk_shape_wake(s, node);
    return 0;
}

static int apply_tick(struct stk_state *s, struct stk_err *err)
{
    uint32_t n = stk_heap_count(&s->timers, s->now);

    /* a tick must not stop half-way for lack of memory */
    if (stk_outrun_reserve(s, 2 * n + 3) < 0 || stk_lane_reserve(s, n) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    stk_tick(s);
    stk_outrun_tick(s);
    stk_booking_tick(s);
    return 0;
}

static int apply_submit(struct stk_core *c, const struct stk_event *ev, struct stk_err *err)
{
    if (ev->job.i != stk_core_next_job(c).i)
        return stk_err_set(err, -EINVAL, "a submit must carry slot %u", stk_core_next_job(c).i);
    return stk_submit(&c->s, ev, err);
}

static int check_event(const struct stk_state *s, const struct stk_event *ev, struct stk_err *err)
{
    enum stk_job_state from;

    if ((unsigned)ev->type >= STK_EV_TYPE_MAX)
        return stk_err_set(err, -EINVAL, "no such event type");
    if (ev->at < s->now || ev->at > STK_MAX_DURATION)
        return stk_err_set(err, -EINVAL, "time %lld is before the latest event or out of range",
                           (long long)ev->at);
    if (ev->type == STK_EV_SUBMIT || ev->type == STK_EV_TICK || ev->type == STK_EV_NODE_UP ||
        ev->type == STK_EV_NODE_DOWN || ev->type == STK_EV_GPUS_OFF ||
        ev->type == STK_EV_NODE_OFF || ev->type == STK_EV_NODES || ev->type == STK_EV_SET ||
        ev->type == STK_EV_RESERVE || ev->type == STK_EV_UNRESERVE)
        return 0;
    from = ev->job.i < s->n_jobs ? (enum stk_job_state)s->jobs[ev->job.i].state : STK_JOB_NONE;
    if (stk_lifecycle_next(from, ev->type) == 0)
        return stk_err_set(err, -EPROTO, "job in slot %u is %s: %s is not possible", ev->job.i,
                           stk_job_state_name(from), stk_event_type_name(ev->type));
    return 0;
}

static int apply_any(struct stk_core *c, const struct stk_event *ev, struct stk_err *err)
{
    struct stk_state *s = &c->s;

    switch (ev->type) {
    case STK_EV_SUBMIT:
        return apply_submit(c, ev, err);
    case STK_EV_NODE_UP:
    case STK_EV_NODE_DOWN:
    case STK_EV_GPUS_OFF:
    case STK_EV_NODE_OFF:
        return apply_node(s, ev, err);
    case STK_EV_TICK:
        return apply_tick(s, err);
    case STK_EV_SET:
        return stk_settings_set(c, ev->u.set, err);
    case STK_EV_NODES:
        return stk_sets_define(s, ev->u.nodes, err);
    case STK_EV_RESERVE:
        return stk_booking_add(s, ev, err);
    case STK_EV_UNRESERVE:
        return stk_booking_remove(s, ev, err);
    case STK_EV_HOLD:
    case STK_EV_RELEASE:
    case STK_EV_CANCEL:
    case STK_EV_PLACE:
    case STK_EV_EVICT:
    case STK_EV_STARTED:
    case STK_EV_EXITED:
    case STK_EV_SUSPENDED:
    case STK_EV_UPDATE:
    case STK_EV_ADVISE:
    case STK_EV_CHECKPOINT:
    case STK_EV_SWAPPED:
    case STK_EV_TYPE_MAX:
        return apply_job(s, ev, err);
    }
    return -EINVAL;
}

int stk_core_apply(struct stk_core *c, const struct stk_event *ev, struct stk_err *err)
{
    struct stk_state *s = &c->s;
    stk_time before = s->now;
    int rc = check_event(s, ev, err);

    if (rc < 0)
        return rc;
    s->now = ev->at;
    if (before != s->now)
        s->lease_now = s->next_lease;
    rc = apply_any(c, ev, err);
    if (rc < 0) {
        s->lease_now = before == s->now ? s->lease_now : 0;
        s->now = before;
        return rc;
    }
    if (ev->type != STK_EV_PLACE && ev->type != STK_EV_STARTED)
        s->room = ++s->room_last;
    s->n_events++;
    s->history = stk_hash_mix(stk_hash_mix(s->history, (uint64_t)ev->at),
                              (uint64_t)ev->type << 32 | ev->job.i);
    if (ev->type == STK_EV_PLACE)
        s->history = stk_hash_mix(s->history, ev->u.place.pieces[0].node.i);
    return 0;
}

int stk_core_why(struct stk_core *c, stk_job_id job, struct stk_reason *ret, struct stk_err *err)
{
    struct stk_reasons all;
    int rc = stk_explain(&c->s, job, &all, err);

    if (rc == 0)
        *ret = all.list[0];
    return rc;
}

int stk_core_reasons(struct stk_core *c, stk_job_id job, struct stk_reasons *ret,
                     struct stk_err *err)
{
    return stk_explain(&c->s, job, ret, err);
}

uint64_t stk_core_due(struct stk_core *c, uint32_t tenant)
{
    return stk_share_due(&c->s, tenant);
}

int stk_core_check(const struct stk_core *c, const struct stk_job_spec *spec, struct stk_err *err)
{
    return stk_submit_check(&c->s, spec, err);
}

bool stk_core_empty(struct stk_core *c, stk_time now, uint32_t node, struct stk_empty_plan *ret)
{
    return node == STK_NONE ? stk_empty_best(&c->s, now, ret)
                            : stk_empty_plan(&c->s, now, node, ret);
}

bool stk_core_defrag(struct stk_core *c, stk_time now, struct stk_defrag_plan *ret)
{
    return stk_defrag_plan(&c->s, now, ret);
}

uint32_t stk_core_decide(struct stk_core *c, stk_time now, struct stk_event *out, uint32_t cap)
{
    return cap == 0 ? 0 : stk_decide(&c->s, now, out, cap);
}

void stk_core_expect(const struct stk_core *c, stk_job_id job)
{
    if (job.i >= c->s.n_jobs)
        return;
    __builtin_prefetch(&c->s.jobs[job.i].number);
    __builtin_prefetch(&c->s.jobs[job.i].started);
    __builtin_prefetch(&c->s.timer_pos[job.i]);
}

bool stk_core_tick_due(const struct stk_core *c, stk_time now)
{
    return (c->s.timers.n > 0 && c->s.timers.item[0].key <= now) || stk_outrun_wake(&c->s) <= now ||
           stk_booking_due(&c->s, now);
}

stk_time stk_core_wake(const struct stk_core *c, stk_time now)
{
    const struct stk_state *s = &c->s;
    stk_time t = s->timers.n > 0 ? s->timers.item[0].key : STK_NEVER_TIME;
    stk_time w = stk_booking_wake(s), d = stk_drain_wake(s);

    d = d > now ? d : now;
    t = d < t ? d : t;
    t = s->protect_at < t ? s->protect_at : t;
    t = stk_outrun_wake(s) < t ? stk_outrun_wake(s) : t;
    t = w < t ? w : t;
    /* ranks move while jobs run; where none does a round decides what the last one did */
    if (s->round > 0 && (s->leave_look ||
                         (s->n_waiting > 0 && ((s->drift && s->n_leased > 0) || s->n_dirty > 0)))) {
        stk_time next = (now / s->round + 1) * s->round;

        if (next < t)
            t = next;
    }
    return t;
}
