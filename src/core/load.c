/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - reads what core/save.c wrote, into a fresh core.
 *
 * Two passes. First all jobs are read into their slots, and every number is checked; nothing is
 * believed that sound() could not confirm. Then, slot by slot, each job is put where its state says
 * it is, by the same functions that events use: leases take their GPUs, waiting jobs enter the
 * queue. Nodes go down, and GPUs off, last: leases stay on them.
 */
#include "core/save.h"

#include <string.h>

#include "core/account.h"
#include "core/array.h"
#include "core/booking.h"
#include "core/budget.h"
#include "core/defrag.h"
#include "core/evictable.h"
#include "core/index.h"
#include "core/leave.h"
#include "core/limit.h"
#include "core/pair.h"
#include "core/power.h"
#include "core/queue.h"
#include "core/resource.h"
#include "core/settings.h"
#include "core/stake.h"
#include "core/tenant.h"
#include "core/txn.h"
#include "core/usage.h"
#include "core/verbs.h"
#include "core/walk.h"
#include "model/mig.h"
#include "model/wire.h"

struct loaded { /* of a live job, between the passes */
    struct stk_demand demand;
    uint32_t first_piece, n_pieces; /* in load.pieces */
    uint32_t first_edge, n_edges;   /* in load.edges */
    stk_time timer;                 /* STK_NEVER_TIME: none */
};

struct saved_edge {
    uint32_t child, type;
};

struct saved_array {
    stk_job_number number;
    struct loaded by[STK_DEP_TYPE_MAX]; /* edges only */
};

struct load {
    struct stk_core *core;
    struct stk_state *s;
    bool settled; /* its settings are those that hold, not those that were saved */
    struct stk_reader r;
    struct stk_err *err;
    bool same_order, same_settings;
    struct loaded *live; /* by slot */
    struct stk_piece *pieces;
    struct saved_edge *edges;
    struct saved_array *arrays;
    uint32_t n_arrays, cap_arrays;
    uint64_t version;
    uint32_t *heard;        /* by slot: edges that lead to it */
    struct stk_node *nodes; /* 'up' and masks as saved */
    uint32_t *claims;
    uint32_t cap_live, n_pieces, cap_pieces, n_edges, cap_edges, cap_heard, n_nodes, cap_nodes;
    uint32_t n_claims, cap_claims;
    uint32_t resource[STK_MAX_RESOURCES]; /* the number here of each that was saved; STK_NONE */
    uint32_t *tenants;                    /* likewise; 0 where the name is not known here */
    uint32_t n_tenants, cap_tenants;
    uint32_t queue[STK_MAX_QUEUES], n_queues; /* likewise */
};

static int bad(struct load *l, const char *what)
{
    return stk_err_set(l->err, -EBADMSG, "not a saved state: %s", what);
}

static int no_memory(struct load *l)
{
    return stk_err_set(l->err, -ENOMEM, "out of memory");
}

/* How many things follow, of at least one byte each. */
static uint32_t get_count(struct stk_reader *r)
{
    return (uint32_t)stk_get_u(r, (uint64_t)(r->end - r->at));
}

/* ---- first pass ---- */

static int get_order(struct load *l)
{
    const unsigned char *magic = stk_get_raw(&l->r, 4), *name;
    uint32_t len;

    if (!magic || memcmp(magic, "stkC", 4) != 0)
        return bad(l, "it starts with something else");
    l->version = stk_get_u(&l->r, UINT64_MAX);
    if (!l->r.bad && (l->version == 0 || l->version > STK_SAVE_VERSION))
        return stk_err_set(l->err, -EPROTONOSUPPORT,
                           "state of format %llu; this program reads up to %d",
                           (unsigned long long)l->version, STK_SAVE_VERSION);
    if (l->version > 4 && l->settled)
        stk_settings_pass(&l->r);
    else if (l->version > 4 && stk_settings_get(&l->r, l->core, l->err) < 0)
        return no_memory(l);
    len = get_count(&l->r);
    name = stk_get_raw(&l->r, len);
    l->same_order =
        name && len == strlen(l->s->order->name) && memcmp(name, l->s->order->name, len) == 0;
    l->same_settings = (stk_get_u(&l->r, UINT64_MAX) == stk_save_settings(l->s)) && l->same_order;
    return 0;
}

static int get_head(struct load *l)
{
    struct stk_state *s = l->s;
    struct stk_reader *r = &l->r;
    int rc = get_order(l);

    if (rc < 0)
        return rc;
    s->now = stk_get_i(r, 0, STK_MAX_DURATION);
    s->next_number = stk_get_u32(r);
    s->next_lease = stk_get_u32(r);
    s->next_queue_seq = stk_get_u32(r);
    s->history = stk_get_u(r, UINT64_MAX);
    s->n_events = stk_get_u(r, UINT64_MAX);
    l->n_nodes = get_count(r);
    if (stk_mem_grow(&s->mem, &l->nodes, &l->cap_nodes, l->n_nodes, sizeof(*l->nodes)) < 0)
        return no_memory(l);
    for (uint32_t i = 0; i < l->n_nodes; i++) {
        l->nodes[i].up = stk_get_bool(r);
        l->nodes[i].mask_off = stk_get_u(r, UINT64_MAX);
        l->nodes[i].mask_last = l->version > 1 ? stk_get_u(r, UINT64_MAX) : 0;
        l->nodes[i].off = l->version > 3 && stk_get_bool(r);
        l->nodes[i].closed = l->version > 5 && stk_get_bool(r);
    }
    l->n_claims = get_count(r);
    if (stk_mem_grow(&s->mem, &l->claims, &l->cap_claims, l->n_claims, sizeof(*l->claims)) < 0)
        return no_memory(l);
    for (uint32_t i = 0; i < l->n_claims; i++)
        l->claims[i] = stk_get_u32(r);
    if (l->version > 3)
        stk_resource_get_names(r, s, l->resource);
    if (l->version > 3 &&
        stk_tenant_get_names(r, s, &l->tenants, &l->n_tenants, &l->cap_tenants) < 0)
        return no_memory(l);
    if (l->version > 4)
        stk_account_get_names(r, s, l->queue, &l->n_queues);
    return r->bad || s->next_number == 0 || s->next_lease == 0 ? bad(l, "its head") : 0;
}

static struct stk_seen_kind get_kind(struct stk_reader *r)
{
    struct stk_seen_kind k = {.cpu_milli = stk_get_u32(r)};

    k.gpus = (uint32_t)stk_get_u(r, STK_MAX_GPUS);
    k.gpu_milli = (uint32_t)stk_get_u(r, 1000);
    k.gpu_types = ~stk_get_u(r, UINT64_MAX);
    k.n = (uint32_t)stk_get_u(r, STK_SEEN_SUM);
    k.told = (uint32_t)stk_get_u(r, STK_SEEN_SUM);
    return k;
}

/* Moves so far, and what was asked for lately; read over where the place policy of today does not
 * learn. */
static int get_seen(struct load *l)
{
    struct stk_reader *r = &l->r;
    struct stk_seen *e = l->s->seen;
    uint64_t jobs, next;
    uint32_t n;

    if (l->version < 4)
        return 0;
    l->s->n_moved = stk_get_u(r, UINT32_MAX);
    n = (uint32_t)stk_get_u(r, STK_SEEN_KINDS);
    jobs = stk_get_u(r, UINT64_MAX);
    next = stk_get_u(r, UINT64_MAX);
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        const struct stk_seen_kind k = get_kind(r);

        if (e)
            e->kind[i] = k;
    }
    if (r->bad || (n > 0 && next == 0))
        return bad(l, "what was asked for");
    if (!e || next == 0) /* it is not learned, or was not */
        return 0;
    e->n = n;
    e->jobs = jobs;
    e->next = next;
    return stk_seen_restore(l->s) ? 0 : bad(l, "what was asked for");
}

static int get_pieces(struct load *l, struct loaded *v)
{
    struct stk_reader *r = &l->r;

    v->first_piece = l->n_pieces;
    v->n_pieces = get_count(r);
    if (v->n_pieces > UINT32_MAX - l->n_pieces)
        return bad(l, "its pieces");
    if (stk_mem_grow(&l->s->mem, &l->pieces, &l->cap_pieces, l->n_pieces + v->n_pieces,
                     sizeof(*l->pieces)) < 0)
        return no_memory(l);
    for (uint32_t i = 0; i < v->n_pieces; i++) {
        struct stk_piece *p = &l->pieces[l->n_pieces++];

        p->node.i = stk_get_u32(r);
        p->gpus = stk_get_u32(r);
        p->tasks = stk_get_u32(r);
        p->slot = l->version > 2 ? stk_get_u32(r) : 0;
        p->mask = stk_get_u(r, UINT64_MAX);
    }
    return 0;
}

static int get_edges(struct load *l, struct loaded *v)
{
    struct stk_reader *r = &l->r;

    v->first_edge = l->n_edges;
    v->n_edges = get_count(r);
    if (v->n_edges > UINT32_MAX - l->n_edges)
        return bad(l, "its dependencies");
    if (stk_mem_grow(&l->s->mem, &l->edges, &l->cap_edges, l->n_edges + v->n_edges,
                     sizeof(*l->edges)) < 0)
        return no_memory(l);
    for (uint32_t i = 0; i < v->n_edges; i++) {
        struct saved_edge *e = &l->edges[l->n_edges++];

        e->child = (uint32_t)stk_get_u(r, l->s->n_jobs - 1);
        e->type = (uint32_t)stk_get_u(r, STK_DEP_TYPE_MAX - 1);
    }
    return 0;
}

/* Version 1 has none: there every element had an edge of its own. */
static int get_arrays(struct load *l)
{
    uint32_t n = l->version > 1 ? get_count(&l->r) : 0;
    int rc = stk_mem_grow(&l->s->mem, &l->arrays, &l->cap_arrays, n, sizeof(*l->arrays));

    if (rc < 0)
        return no_memory(l);
    for (; l->n_arrays < n && rc == 0; l->n_arrays++) {
        struct saved_array *a = &l->arrays[l->n_arrays];

        *a = (struct saved_array){.number = stk_get_u32(&l->r)};
        for (uint32_t t = 0; t < STK_DEP_TYPE_MAX && rc == 0; t++)
            rc = get_edges(l, &a->by[t]);
    }
    return rc;
}

static int get_live(struct load *l, uint32_t job)
{
    struct stk_job *j = &l->s->jobs[job];
    struct loaded *v = &l->live[job];
    struct stk_reader *r = &l->r;
    int rc;

    stk_wire_get_demand(r, &v->demand, l->version);
    if (r->bad || stk_demand_check(&v->demand, l->err) < 0 ||
        v->demand.gpus * v->demand.tasks != j->gpus)
        return bad(l, "what a job asks for");
    if (v->demand.n_resources > 0)
        stk_resource_renumber(&v->demand, l->resource);
    j->lease = (uint32_t)stk_get_u(r, l->s->next_lease - 1);
    j->slept = (uint32_t)stk_get_u(r, l->s->next_lease - 1);
    if (j->slept) {
        v->demand.pin = stk_get_u32(r);
        v->demand.pin_mask = stk_get_u(r, UINT64_MAX);
        v->demand.pin_slot = l->version > 2 ? (uint8_t)stk_get_u(r, STK_MIG_SLICES - 1) : 0;
        r->bad |= v->demand.pin == 0;
    }
    rc = get_pieces(l, v);
    rc = rc < 0 ? rc : get_edges(l, v);
    if (rc < 0)
        return rc;
    v->timer = stk_get_bool(r) ? stk_get_i(r, 0, STK_NEVER_TIME - 1) : STK_NEVER_TIME;
    return 0;
}

static int get_terms(struct load *l, uint32_t job)
{
    struct stk_state *s = l->s;
    struct stk_terms *t = &s->terms[job];

    stk_wire_get_terms(&l->r, t, l->version);
    s->min_runs |= t->min_run > 0 || t->deadline > 0;
    stk_stake_get(&l->r, &s->stakes[job], l->version);
    if (s->n_queues > 0)
        t->queue = t->queue < l->n_queues ? l->queue[t->queue] : 0;
    if (s->jobs[job].state == STK_JOB_DONE || !t->group)
        return 0;
    if (stk_budget_reserve(s) < 0)
        return no_memory(l);
    stk_budget_join(s, job);
    return 0;
}

static int get_jobs(struct load *l)
{
    struct stk_state *s = l->s;
    uint32_t n = get_count(&l->r);

    if (stk_jobs_reserve(s, n) < 0 ||
        stk_mem_grow(&s->mem, &l->live, &l->cap_live, n, sizeof(*l->live)) < 0 ||
        stk_mem_grow(&s->mem, &l->heard, &l->cap_heard, n, sizeof(*l->heard)) < 0)
        return no_memory(l);
    s->n_jobs = n;
    for (uint32_t i = 0; i < n; i++) {
        struct stk_job *j = &s->jobs[i];
        int rc = 0;

        j->state = (uint8_t)stk_get_u(&l->r, STK_JOB_STATE_MAX - 1);
        if (j->state == STK_JOB_NONE)
            continue;
        stk_save_get_job(&l->r, s, j);
        if (l->r.bad || stk_map_get(&s->by_number, j->number) != UINT32_MAX)
            return bad(l, "a job");
        if (s->n_tenants > 0)
            j->tenant = j->tenant < l->n_tenants ? l->tenants[j->tenant] : 0;
        stk_map_put(&s->by_number, j->number, i);
        if (j->state != STK_JOB_DONE)
            rc = get_live(l, i);
        rc = rc < 0 ? rc : get_terms(l, i);
        j->priority += stk_settings_shift(s, i);
        j->level = stk_evictable_level(s, j) & 7; /* by the policy of today */
        if (rc < 0 || l->r.bad)
            return rc < 0 ? rc : bad(l, "a live job");
    }
    return 0;
}

/* A row of slots in this state; all of them must be in it. */
static int get_row(struct load *l, enum stk_job_state state, uint32_t *ret_first,
                   uint32_t *ret_last, uint32_t *ret_n)
{
    struct stk_state *s = l->s;
    uint32_t n = get_count(&l->r), want = 0;

    for (uint32_t i = 0; i < s->n_jobs; i++)
        want += s->jobs[i].state == state;
    if (n != want)
        return bad(l, "a list of slots");
    *ret_first = *ret_last = 0;
    *ret_n = n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t job = (uint32_t)stk_get_u(&l->r, s->n_jobs - 1);

        if (l->r.bad || s->jobs[job].state != state || s->jobs[job].link != 0 ||
            *ret_last == job + 1)
            return bad(l, "a list of slots");
        if (*ret_last)
            s->jobs[*ret_last - 1].link = job + 1;
        else
            *ret_first = job + 1;
        *ret_last = job + 1;
    }
    return 0;
}

/* ---- second pass ---- */

static int check_pin(struct load *l, const struct stk_job *j, const struct stk_demand *d)
{
    const struct stk_state *s = l->s;
    const struct stk_node *n;

    if (!d->pin)
        return 0;
    n = d->pin <= s->n_nodes ? &s->nodes[d->pin - 1] : NULL;
    if (!n || n->pool != j->pool || !((stk_shape_types(s, d, j->pool) >> n->gpu_type) & 1) ||
        (d->mig ? !stk_mig_slices(n->mig, d->mig, d->pin_slot) : d->pin_slot != 0) ||
        (n->aggregate ? d->pin_mask != 0
                      : (uint32_t)__builtin_popcountll(d->pin_mask) != j->gpus ||
                            (d->pin_mask & ~n->mask_all)))
        return stk_err_set(l->err, -ENODEV,
                           "job %u sleeps on node %u, which no longer has its GPUs; end it, or put "
                           "them back",
                           j->number, d->pin - 1);
    return 0;
}

static int check_state(struct load *l, const struct stk_job *j, const struct loaded *v)
{
    bool leased = j->state == STK_JOB_PLACED || j->state == STK_JOB_RUNNING;
    bool stopping = j->state == STK_JOB_STOPPING;
    bool can_sleep = j->state == STK_JOB_HELD || j->state == STK_JOB_WAITING ||
                     j->state == STK_JOB_PLACED || stopping;
    bool ok = (j->lease != 0) == (v->n_pieces > 0);

    ok &= leased ? j->lease != 0 : stopping ? j->lease != 0 || j->slept != 0 : j->lease == 0;
    ok &= j->slept == 0 || can_sleep;
    ok &= j->unmet == 0 || j->state == STK_JOB_HELD || j->state == STK_JOB_BLOCKED;
    ok &= stopping || (!j->cancel_wanted && !j->suspend_wanted && !j->by_hand);
    ok &= !j->suspend_wanted || v->n_pieces == 1;
    ok &= v->timer == STK_NEVER_TIME || leased || j->state == STK_JOB_WAITING ||
          (j->state == STK_JOB_BLOCKED && j->unmet == 0);
    return ok ? 0 : bad(l, "a job's state does not go with what it has");
}

static int take_lease(struct load *l, uint32_t job)
{
    struct stk_state *s = l->s;
    struct stk_job *j = &s->jobs[job];
    const struct loaded *v = &l->live[job];
    const struct stk_piece *pieces = &l->pieces[v->first_piece];
    struct stk_err why = {{0}};
    int rc;

    if (stk_pieces_reserve(s, v->n_pieces) < 0 || stk_txn_reserve(s, v->n_pieces) < 0)
        return no_memory(l);
    rc = stk_run_take(s, j, pieces, v->n_pieces, &why);
    if (rc < 0)
        return stk_err_set(l->err, -ENODEV, "job %u has a lease that no longer exists: %s",
                           j->number, why.text);
    j->first_piece = stk_pieces_alloc(s, v->n_pieces);
    j->n_pieces = v->n_pieces;
    memcpy(&s->pieces[j->first_piece], pieces, v->n_pieces * sizeof(*pieces));
    stk_pair_join(s, job);
    stk_limit_took(s, j);
    return 0;
}

/* A timer that was saved takes the place of the one the policy has just set. */
static void restore_timer(struct load *l, uint32_t job)
{
    struct stk_state *s = l->s;
    stk_time at = l->live[job].timer;

    if (!l->same_settings || !s->order->next_change)
        return;
    if (at == STK_NEVER_TIME)
        stk_heap_remove(&s->timers, s->timer_pos, job);
    else
        stk_heap_put(&s->timers, s->timer_pos, job, at, s->jobs[job].number);
}

static void enter(struct load *l, uint32_t job)
{
    struct stk_state *s = l->s;
    struct stk_job *j = &s->jobs[job];

    switch ((enum stk_job_state)j->state) {
    case STK_JOB_WAITING:
        stk_queue_enter(s, job);
        restore_timer(l, job);
        break;
    case STK_JOB_PLACED:
    case STK_JOB_RUNNING:
        stk_queue_lease(s, job);
        restore_timer(l, job);
        break;
    case STK_JOB_STOPPING:
        s->pools[j->pool].n_stopping += j->lease != 0;
        break;
    case STK_JOB_BLOCKED:
        s->n_blocked++;
        if (j->unmet == 0)
            stk_heap_put(&s->timers, s->timer_pos, job, j->begin, j->number);
        break;
    case STK_JOB_NONE:
    case STK_JOB_HELD:
    case STK_JOB_DONE:
    case STK_JOB_STATE_MAX:
        break;
    }
}

static int settle_job(struct load *l, uint32_t job)
{
    struct stk_state *s = l->s;
    struct stk_job *j = &s->jobs[job];
    const struct loaded *v = &l->live[job];
    int rc = check_state(l, j, v);

    if (rc == 0 && j->pool >= s->n_pools)
        rc = stk_err_set(l->err, -ENODEV, "job %u is in pool %u, which no longer exists", j->number,
                         j->pool);
    rc = rc < 0 ? rc : check_pin(l, j, &v->demand);
    if (rc == 0 && (stk_queue_reserve(s, j->pool) < 0 || stk_account_reserve(s) < 0))
        rc = no_memory(l);
    if (rc < 0)
        return rc;
    if (j->moving)
        stk_defrag_moves(s, job);
    j->shape = stk_shape_of(s, job, &v->demand);
    stk_usage_live(s, j, true);
    if (!l->same_order)
        j->word = s->order->word ? s->order->word(s->order_st, s, job) : 0;
    if (j->slept)
        s->nodes[v->demand.pin - 1].mask_wake |= v->demand.pin_mask;
    s->n_live++;
    s->pools[j->pool].n_live++;
    s->pools[j->pool].n_asleep += j->slept != 0;
    j->expected_end = j->started; /* of one that is stopping: at any time */
    if (stk_array_reserve(s) < 0)
        return no_memory(l);
    stk_array_join(s, j->array);
    rc = j->lease ? take_lease(l, job) : 0;
    if (rc == 0)
        enter(l, job);
    return rc;
}

/* Edges into a list (first + 1); of jobs that were submitted after 'number'. */
static int tie_list(struct load *l, const struct loaded *v, stk_job_number number, uint32_t *list)
{
    struct stk_state *s = l->s;

    for (uint32_t k = v->n_edges; k-- > 0;) { /* the last first: each goes to the front */
        const struct saved_edge *e = &l->edges[v->first_edge + k];
        const struct stk_job *c = &s->jobs[e->child];

        if (c->number <= number || c->unmet == 0)
            return bad(l, "a dependency");
        s->edges[s->n_edges] = (struct stk_edge){e->child, c->number, e->type, *list};
        *list = ++s->n_edges;
        l->heard[e->child]++;
    }
    return 0;
}

static int tie_arrays(struct load *l)
{
    int rc = 0;

    for (uint32_t i = 0; i < l->n_arrays && rc == 0; i++) {
        const struct saved_array *v = &l->arrays[i];
        struct stk_array *a = stk_array_find(l->s, v->number);

        for (uint32_t t = 0; t < STK_DEP_TYPE_MAX && rc == 0; t++) {
            rc = a ? tie_list(l, &v->by[t], v->number, &a->first_edge[t]) : bad(l, "an array");
            for (uint32_t k = 0; k < v->by[t].n_edges && rc == 0; k++)
                if (l->edges[v->by[t].first_edge + k].type != t)
                    rc = bad(l, "a dependency");
        }
    }
    return rc;
}

/* A job depends on jobs with smaller numbers only, and knows how many. */
static int tie_edges(struct load *l)
{
    struct stk_state *s = l->s;
    int rc = 0;

    if (stk_mem_grow(&s->mem, &s->edges, &s->cap_edges, l->n_edges, sizeof(*s->edges)) < 0)
        return no_memory(l);
    for (uint32_t i = 0; i < s->n_jobs && rc == 0; i++)
        rc = tie_list(l, &l->live[i], s->jobs[i].number, &s->jobs[i].first_edge);
    rc = rc < 0 ? rc : tie_arrays(l);
    for (uint32_t i = 0; i < s->n_jobs && rc == 0; i++)
        if (s->jobs[i].state != STK_JOB_DONE && s->jobs[i].unmet != l->heard[i])
            rc = bad(l, "a dependency");
    return rc;
}

/* Nodes are as they were, as far as they are the same. */
static int set_nodes(struct load *l)
{
    struct stk_state *s = l->s;

    for (uint32_t i = 0; i < s->n_nodes && i < l->n_nodes; i++) {
        uint64_t off = l->nodes[i].mask_off & s->nodes[i].mask_all;

        s->nodes[i].mask_last = l->nodes[i].mask_last & s->nodes[i].mask_all;
        s->nodes[i].closed = l->nodes[i].closed;
        if (stk_power_known(&s->nodes[i].power))
            stk_power_set(s, i, l->nodes[i].off && s->nodes[i].n_uses == 0);
        if (off && !s->nodes[i].aggregate) {
            stk_index_gpus_off(s, i, off);
            stk_evictable_recount(s, i);
        }
        s->nodes[i].said_up = l->nodes[i].up;
        if (!l->nodes[i].up) {
            stk_evictable_node_up(s, i, false);
            stk_index_node_up(s, i, false);
        }
    }
    stk_leave_mark(s);
    for (uint32_t p = 0; p < s->n_pools && p < l->n_claims; p++) {
        uint32_t job = l->claims[p] - 1;

        if (l->claims[p] == 0)
            continue;
        if (job >= s->n_jobs || s->jobs[job].state != STK_JOB_WAITING || s->jobs[job].pool != p)
            return bad(l, "a claim");
        s->pools[p].claim = job;
    }
    return 0;
}

/* What came with version 5, and the end. */
static int get_rest(struct load *l)
{
    stk_budgets_get(&l->r, l->s, l->version);
    if (l->version > 4 && stk_booking_get(&l->r, l->s, l->version) < 0)
        return no_memory(l);
    if (l->version > 4 && stk_usage_get(&l->r, l->s, l->tenants, l->n_tenants) < 0)
        return bad(l, "what tenants have had");
    if (l->r.bad || l->r.at != l->r.end)
        return bad(l, l->r.bad ? "it is cut short" : "something is left over");
    return 0;
}

static int load(struct load *l)
{
    struct stk_state *s = l->s;
    uint32_t last, n;
    int rc = get_head(l);

    rc = rc < 0 ? rc : get_seen(l);
    rc = rc < 0 ? rc : get_jobs(l);
    rc = rc < 0 ? rc : get_row(l, STK_JOB_NONE, &s->free_job, &last, &n);
    rc = rc < 0 ? rc : get_row(l, STK_JOB_DONE, &s->done_head, &s->done_tail, &s->n_done);
    rc = rc < 0 ? rc : get_arrays(l);
    rc = rc < 0 ? rc : get_rest(l);
    for (uint32_t i = 0; i < s->n_jobs && rc == 0; i++) {
        if (s->jobs[i].state == STK_JOB_DONE && s->jobs[i].pool >= s->n_pools)
            s->jobs[i].pool = 0;
        if (s->jobs[i].state != STK_JOB_NONE && s->jobs[i].state != STK_JOB_DONE)
            rc = settle_job(l, i);
    }
    rc = rc < 0 ? rc : tie_edges(l);
    if (rc == 0)
        stk_booking_hold_again(s);
    rc = rc < 0 ? rc : set_nodes(l);
    if (rc == 0 && stk_txn_reserve(s, 4 * (s->n_pieces + s->n_nodes + STK_BATCH) + s->n_parts +
                                          8 * s->book.n_fences) < 0)
        rc = no_memory(l);
    return rc;
}

static int load_into(struct stk_core *fresh, bool settled, const unsigned char *buf, size_t len,
                     struct stk_err *err)
{
    struct stk_state *s = &fresh->s;
    struct load l = {
        .core = fresh, .s = s, .settled = settled, .r = {buf, buf + len, false}, .err = err};
    int rc;

    if (s->n_events > 0 || s->n_jobs > 0)
        return stk_err_set(err, -EINVAL, "a state is loaded into a fresh core");
    if (len > UINT32_MAX)
        return stk_err_set(err, -EBADMSG, "not a saved state: larger than any");
    rc = load(&l);
    stk_mem_drop(&s->mem, &l.live, &l.cap_live, sizeof(*l.live));
    stk_mem_drop(&s->mem, &l.pieces, &l.cap_pieces, sizeof(*l.pieces));
    stk_mem_drop(&s->mem, &l.edges, &l.cap_edges, sizeof(*l.edges));
    stk_mem_drop(&s->mem, &l.arrays, &l.cap_arrays, sizeof(*l.arrays));
    stk_mem_drop(&s->mem, &l.heard, &l.cap_heard, sizeof(*l.heard));
    stk_mem_drop(&s->mem, &l.nodes, &l.cap_nodes, sizeof(*l.nodes));
    stk_mem_drop(&s->mem, &l.tenants, &l.cap_tenants, sizeof(*l.tenants));
    stk_mem_drop(&s->mem, &l.claims, &l.cap_claims, sizeof(*l.claims));
    return rc;
}

int stk_core_load(struct stk_core *fresh, const unsigned char *buf, size_t len, struct stk_err *err)
{
    return load_into(fresh, false, buf, len, err);
}

int stk_load_again(struct stk_core *fresh, const unsigned char *buf, size_t len,
                   struct stk_err *err)
{
    return load_into(fresh, true, buf, len, err);
}
