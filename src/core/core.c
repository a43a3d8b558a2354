/* SPDX-License-Identifier: Apache-2.0 */
#include "core/core.h"

#include <string.h>

#include "base/hash.h"
#include "core/decide.h"
#include "core/evictable.h"
#include "core/index.h"
#include "core/lifecycle.h"
#include "core/queue.h"
#include "core/txn.h"
#include "core/verbs.h"
#include "core/walk.h"

struct stk_core {
    struct stk_state s;
};

enum { P_ROUND, P_DEPTH };
const struct stk_param stk_core_params[] = {
    [P_ROUND] = {"round_s", STK_PARAM_SECONDS, "0", 0, 31536000, NULL,
                 "decide only at multiples of this; in the simulator jobs then end there too"},
    [P_DEPTH] = {"backfill.depth", STK_PARAM_INT, "500", 1, 1000000000, NULL,
                 "conservative: when plans change, this many jobs are planned anew at a time"},
    {0},
};

static int policy_init(struct stk_state *s, const struct stk_core_config *cfg, struct stk_err *err)
{
    int rc = 0;

    if (cfg->order->state_size)
        s->order_st = s->mem.resize(s->mem.ctx, NULL, 0, cfg->order->state_size);
    if (cfg->preempt->state_size)
        s->preempt_st = s->mem.resize(s->mem.ctx, NULL, 0, cfg->preempt->state_size);
    if ((cfg->order->state_size && !s->order_st) || (cfg->preempt->state_size && !s->preempt_st))
        return stk_err_set(err, -ENOMEM, "out of memory");
    if (cfg->order->init)
        rc = cfg->order->init(s->order_st, cfg->params, err);
    if (rc == 0 && cfg->preempt->init)
        rc = cfg->preempt->init(s->preempt_st, cfg->params, err);
    if (rc < 0)
        return rc;
    s->round = stk_params_seconds(cfg->params, &stk_core_params[P_ROUND]);
    if (s->round == 0 && cfg->order->round)
        s->round = cfg->order->round(s->order_st);
    if (s->round == 0 && cfg->preempt->round)
        s->round = cfg->preempt->round(s->preempt_st);
    if (s->round > 0 && s->round < STK_SECOND / 1000)
        return stk_err_set(err, -EINVAL, "rounds must be at least 0.001 s");
    s->backfill_depth = (uint32_t)stk_params_int(cfg->params, &stk_core_params[P_DEPTH]);
    return 0;
}

/* What follows from the policies, and memory for the nodes. */
static int finish_new(struct stk_state *s, struct stk_err *err)
{
    const struct stk_mem *mem = &s->mem;
    uint32_t n = s->n_nodes;

    s->next_number = s->next_lease = 1;
    s->round_at = INT64_MIN;
    s->kept_pool = STK_NONE;
    s->whole_pool = s->preempt->pass != NULL;
    s->keep_ends = s->backfill->reserve_one || s->backfill->reserve_all || s->preempt->room;
    if ((s->preempt->room && stk_evictable_init(s) < 0) ||
        stk_mem_grow(mem, &s->try_pieces, &s->cap_try, n + 1, sizeof(*s->try_pieces)) < 0 ||
        stk_mem_grow(mem, &s->list_a, &s->cap_list_a, n + 1, sizeof(*s->list_a)) < 0 ||
        stk_mem_grow(mem, &s->batch, &s->cap_batch, n + STK_BATCH, sizeof(*s->batch)) < 0 ||
        stk_txn_reserve(s, 4 * n + 2 * STK_BATCH) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory for %u nodes", n);
    return 0;
}

int stk_core_new(const struct stk_core_config *cfg, const struct stk_mem *mem,
                 struct stk_core **ret_core, struct stk_err *err)
{
    struct stk_core *c = mem->resize(mem->ctx, NULL, 0, sizeof(*c));
    struct stk_state *s;
    int rc;

    if (!c)
        return stk_err_set(err, -ENOMEM, "out of memory");
    s = &c->s;
    s->mem = *mem;
    s->order = cfg->order;
    s->backfill = cfg->backfill;
    s->place = cfg->place;
    s->preempt = cfg->preempt;
    s->admit = cfg->admit;
    s->retain_done = cfg->retain_done;
    rc = stk_index_build(s, cfg->nodes, cfg->n_nodes, cfg->n_pools, err);
    for (uint32_t p = 0; rc == 0 && p < s->n_pools; p++)
        stk_timeline_init(&s->pools[p].plan, &s->mem);
    rc = rc < 0 ? rc : policy_init(s, cfg, err);
    rc = rc < 0 ? rc : finish_new(s, err);
    if (rc < 0) {
        stk_core_free(c);
        return rc;
    }
    *ret_core = c;
    return 0;
}

static int copy_policy(const struct stk_state *from, size_t size, const void *st, void **ret)
{
    if (size == 0)
        return 0;
    *ret = from->mem.resize(from->mem.ctx, NULL, 0, size);
    if (!*ret)
        return -ENOMEM;
    memcpy(*ret, st, size);
    return 0;
}

/* The nodes as they were described. */
static struct stk_node_spec *describe(const struct stk_state *s)
{
    struct stk_node_spec *specs =
        s->mem.resize(s->mem.ctx, NULL, 0, (s->n_nodes + (size_t)1) * sizeof(*specs));

    for (uint32_t i = 0; specs && i < s->n_nodes; i++) {
        const struct stk_node *n = &s->nodes[i];

        specs[i] = (struct stk_node_spec){.pool = {n->pool},
                                          .gpu_type = n->gpu_type,
                                          .gpus = n->gpus,
                                          .gpu_mem_mib = n->gpu_mem_mib,
                                          .cpu_milli = (uint32_t)n->cpu_milli,
                                          .mem_mib = (uint32_t)n->mem_mib,
                                          .aggregate = n->aggregate};
    }
    return specs;
}

int stk_core_twin(const struct stk_core *core, struct stk_core **ret, struct stk_err *err)
{
    const struct stk_state *from = &core->s;
    const struct stk_mem *mem = &from->mem;
    struct stk_node_spec *specs = describe(from);
    struct stk_core *c = mem->resize(mem->ctx, NULL, 0, sizeof(*c));
    int rc = specs && c ? 0 : stk_err_set(err, -ENOMEM, "out of memory");

    if (rc == 0) {
        c->s = (struct stk_state){.mem = from->mem,
                                  .order = from->order,
                                  .backfill = from->backfill,
                                  .place = from->place,
                                  .preempt = from->preempt,
                                  .admit = from->admit,
                                  .round = from->round,
                                  .retain_done = from->retain_done,
                                  .backfill_depth = from->backfill_depth};
        rc = stk_index_build(&c->s, specs, from->n_nodes, from->n_pools, err);
    }
    for (uint32_t p = 0; rc == 0 && p < c->s.n_pools; p++)
        stk_timeline_init(&c->s.pools[p].plan, mem);
    if (rc == 0 &&
        (copy_policy(from, from->order->state_size, from->order_st, &c->s.order_st) < 0 ||
         copy_policy(from, from->preempt->state_size, from->preempt_st, &c->s.preempt_st) < 0))
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    rc = rc < 0 ? rc : finish_new(&c->s, err);
    if (specs)
        (void)mem->resize(mem->ctx, specs, (from->n_nodes + (size_t)1) * sizeof(*specs), 0);
    if (rc < 0) {
        stk_core_free(c);
        return rc;
    }
    *ret = c;
    return 0;
}

static void free_pools(struct stk_state *s)
{
    for (uint32_t p = 0; s->pools && p < s->n_pools; p++) {
        struct stk_pool *pool = &s->pools[p];

        stk_heap_done(&pool->ready, &s->mem);
        stk_heap_done(&pool->due, &s->mem);
        stk_timeline_done(&pool->plan);
        stk_mem_drop(&s->mem, &pool->rated, &pool->cap_rated, sizeof(*pool->rated));
        stk_mem_drop(&s->mem, &pool->walk, &pool->cap_walk, sizeof(*pool->walk));
    }
}

void stk_core_free(struct stk_core *c)
{
    struct stk_state *s;
    struct stk_mem m;

    if (!c)
        return;
    s = &c->s;
    m = s->mem;
    free_pools(s);
    stk_evictable_done(s);
    stk_index_done(s);
    if (s->order_st)
        (void)m.resize(m.ctx, s->order_st, s->order->state_size, 0);
    if (s->preempt_st)
        (void)m.resize(m.ctx, s->preempt_st, s->preempt->state_size, 0);
    stk_mem_drop(&m, &s->jobs, &s->cap_jobs, sizeof(*s->jobs));
    stk_mem_drop(&m, &s->edges, &s->cap_edges, sizeof(*s->edges));
    stk_mem_drop(&m, &s->pieces, &s->cap_pieces, sizeof(*s->pieces));
    stk_mem_drop(&m, &s->shapes, &s->cap_shapes, sizeof(*s->shapes));
    stk_mem_drop(&m, &s->shape_pos, &s->cap_shape_pos, sizeof(*s->shape_pos));
    stk_mem_drop(&m, &s->timer_pos, &s->cap_timer_pos, sizeof(*s->timer_pos));
    stk_mem_drop(&m, &s->due_pos, &s->cap_due_pos, sizeof(*s->due_pos));
    stk_mem_drop(&m, &s->undo, &s->cap_undo, sizeof(*s->undo));
    stk_mem_drop(&m, &s->try_pieces, &s->cap_try, sizeof(*s->try_pieces));
    stk_mem_drop(&m, &s->batch, &s->cap_batch, sizeof(*s->batch));
    stk_mem_drop(&m, &s->sort, &s->cap_sort, sizeof(*s->sort));
    stk_mem_drop(&m, &s->sort_tmp, &s->cap_sort_tmp, sizeof(*s->sort_tmp));
    stk_mem_drop(&m, &s->list_a, &s->cap_list_a, sizeof(*s->list_a));
    stk_mem_drop(&m, &s->list_b, &s->cap_list_b, sizeof(*s->list_b));
    stk_map_done(&s->by_number, &m);
    stk_map_done(&s->shape_by_hash, &m);
    stk_heap_done(&s->timers, &m);
    stk_opool_done(&s->trees, &m);
    (void)m.resize(m.ctx, c, sizeof(*c), 0);
}

stk_job_id stk_core_next_job(const struct stk_core *c)
{
    return (stk_job_id){c->s.free_job ? c->s.free_job - 1 : c->s.n_jobs};
}

stk_lease_id stk_core_next_lease(const struct stk_core *c)
{
    return c->s.next_lease;
}

const struct stk_state *stk_core_state(const struct stk_core *c)
{
    return &c->s;
}

struct stk_state *stk_core_edit(struct stk_core *c)
{
    return &c->s;
}

uint32_t stk_core_find(const struct stk_core *c, stk_job_number number)
{
    return stk_map_get(&c->s.by_number, number);
}

/* Memory for what an end may set off: the job itself queued again, and dependents queued. */
static int reserve_end(struct stk_state *s, const struct stk_job *j, enum stk_cause cause)
{
    uint32_t n = 1;

    for (uint32_t e = j->first_edge; e; e = s->edges[e - 1].next) {
        n++;
        if (!stk_dep_met((enum stk_dep_type)s->edges[e - 1].type, cause))
            n = s->n_blocked + 1; /* its end may set off others */
        if (n > s->n_blocked)
            break;
    }
    return stk_opool_reserve(&s->trees, &s->mem, n + 3);
}

/* An event about a lease is about the one the job has, or the one its processes sleep under. */
static int check_lease(const struct stk_job *j, const struct stk_event *ev, struct stk_err *err)
{
    bool asleep_too = ev->type == STK_EV_EXITED || ev->type == STK_EV_EVICT;
    stk_lease_id mine = j->lease == 0 && asleep_too ? j->slept : j->lease;

    if (ev->type != STK_EV_STARTED && ev->type != STK_EV_SUSPENDED && !asleep_too)
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
        if ((unsigned)ev->u.exit.cause >= STK_CAUSE_MAX || ev->u.exit.cause == STK_CAUSE_NONE ||
            ev->u.exit.lost < 0 || ev->u.exit.lost > STK_MAX_DURATION)
            return stk_err_set(err, -EINVAL, "job %u: exit without a cause", j->number);
        if (stk_queue_reserve(s, j->pool) < 0 || reserve_end(s, j, ev->u.exit.cause) < 0)
            return stk_err_set(err, -ENOMEM, "out of memory");
        stk_release_exited(s, ev);
        return 0;
    case STK_EV_SUSPENDED:
        return apply_suspended(s, ev, err);
    case STK_EV_SUBMIT:
    case STK_EV_NODE_DOWN:
    case STK_EV_NODE_UP:
    case STK_EV_GPUS_OFF:
    case STK_EV_TICK:
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

static int apply_node(struct stk_state *s, const struct stk_event *ev, struct stk_err *err)
{
    uint32_t node = ev->type == STK_EV_GPUS_OFF ? ev->u.off.node.i : ev->u.node.i;
    uint32_t pool;
    int rc = 0;

    if (node >= s->n_nodes)
        return stk_err_set(err, -EINVAL, "there is no node %u", node);
    pool = s->nodes[node].pool;
    if (ev->type == STK_EV_GPUS_OFF) {
        rc = check_off(&s->nodes[node], ev->u.off.mask, err);
        if (rc < 0)
            return rc;
        stk_index_gpus_off(s, node, ev->u.off.mask);
        stk_evictable_recount(s, node);
    } else {
        stk_evictable_node_up(s, node, ev->type == STK_EV_NODE_UP);
        stk_index_node_up(s, node, ev->type == STK_EV_NODE_UP);
    }
    s->pools[pool].plan_valid = false;
    s->pools[pool].blocked = false;
    stk_shape_unreserve(s, pool);
    stk_shape_wake(s, node);
    return 0;
}

static int apply_tick(struct stk_state *s, struct stk_err *err)
{
    /* a tick must not stop half-way for lack of memory */
    if (stk_opool_reserve(&s->trees, &s->mem, stk_heap_count(&s->timers, s->now) + 3) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    stk_tick(s);
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
        ev->type == STK_EV_NODE_DOWN || ev->type == STK_EV_GPUS_OFF)
        return 0;
    from = ev->job.i < s->n_jobs ? (enum stk_job_state)s->jobs[ev->job.i].state : STK_JOB_NONE;
    if (stk_lifecycle_next(from, ev->type) == 0)
        return stk_err_set(err, -EPROTO, "job in slot %u is %s: %s is not possible", ev->job.i,
                           stk_job_state_name(from), stk_event_type_name(ev->type));
    return 0;
}

int stk_core_apply(struct stk_core *c, const struct stk_event *ev, struct stk_err *err)
{
    struct stk_state *s = &c->s;
    stk_time before = s->now;
    int rc = check_event(s, ev, err);

    if (rc < 0)
        return rc;
    s->now = ev->at;
    switch (ev->type) {
    case STK_EV_SUBMIT:
        rc = apply_submit(c, ev, err);
        break;
    case STK_EV_NODE_UP:
    case STK_EV_NODE_DOWN:
    case STK_EV_GPUS_OFF:
        rc = apply_node(s, ev, err);
        break;
    case STK_EV_TICK:
        rc = apply_tick(s, err);
        break;
    case STK_EV_HOLD:
    case STK_EV_RELEASE:
    case STK_EV_CANCEL:
    case STK_EV_PLACE:
    case STK_EV_EVICT:
    case STK_EV_STARTED:
    case STK_EV_EXITED:
    case STK_EV_SUSPENDED:
    case STK_EV_TYPE_MAX:
        rc = apply_job(s, ev, err);
        break;
    }
    if (rc < 0) {
        s->now = before;
        return rc;
    }
    s->n_events++;
    s->history = stk_hash_mix(stk_hash_mix(s->history, (uint64_t)ev->at),
                              (uint64_t)ev->type << 32 | ev->job.i);
    if (ev->type == STK_EV_PLACE)
        s->history = stk_hash_mix(s->history, ev->u.place.pieces[0].node.i);
    return 0;
}

int stk_core_why(struct stk_core *c, stk_job_id job, struct stk_reason *ret, struct stk_err *err)
{
    return stk_explain(&c->s, job, ret, err);
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
    return c->s.timers.n > 0 && c->s.timers.item[0].key <= now;
}

stk_time stk_core_wake(const struct stk_core *c, stk_time now)
{
    const struct stk_state *s = &c->s;
    stk_time t = s->timers.n > 0 ? s->timers.item[0].key : STK_NEVER_TIME;

    if (s->round > 0 && s->n_waiting > 0 && (s->drift || s->n_dirty > 0)) {
        stk_time next = (now / s->round + 1) * s->round;

        if (next < t)
            t = next;
    }
    return t;
}
