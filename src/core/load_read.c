/* SPDX-License-Identifier: Apache-2.0 */
/* load_read.c - the first pass of loading a state: every number is read and checked. See load.c. */
#include <string.h>

#include "core/account.h"
#include "core/booking.h"
#include "core/budget.h"
#include "core/evictable.h"
#include "core/loading.h"
#include "core/resource.h"
#include "core/save.h"
#include "core/sets.h"
#include "core/settings.h"
#include "core/stake.h"
#include "core/tenant.h"
#include "core/usage.h"
#include "core/verbs.h"
#include "model/mig.h"
#include "model/wire.h"

/* How many things follow, of at least one byte each. */
static uint32_t get_count(struct stk_reader *r)
{
    return (uint32_t)stk_get_u(r, (uint64_t)(r->end - r->at));
}

static int get_order(struct stk_loading *l)
{
    const unsigned char *magic = stk_get_raw(&l->r, 4), *name;
    uint32_t len;

    if (!magic || memcmp(magic, "stkC", 4) != 0)
        return stk_loading_bad(l, "it starts with something else");
    l->version = stk_get_u(&l->r, UINT64_MAX);
    if (!l->r.bad && (l->version == 0 || l->version > STK_SAVE_VERSION))
        return stk_err_set(l->err, -EPROTONOSUPPORT,
                           "state of format %llu; this program reads up to %d",
                           (unsigned long long)l->version, STK_SAVE_VERSION);
    if (l->version > 4 && l->settled)
        stk_settings_pass(&l->r);
    else if (l->version > 4 && stk_settings_get(&l->r, l->core, l->err) < 0)
        return stk_loading_no_memory(l);
    len = get_count(&l->r);
    name = stk_get_raw(&l->r, len);
    l->same_order =
        name && len == strlen(l->s->order->name) && memcmp(name, l->s->order->name, len) == 0;
    l->same_settings = (stk_get_u(&l->r, UINT64_MAX) == stk_save_settings(l->s)) && l->same_order;
    return 0;
}

static int get_head(struct stk_loading *l)
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
        return stk_loading_no_memory(l);
    for (uint32_t i = 0; i < l->n_nodes; i++) {
        l->nodes[i].up = stk_get_bool(r);
        l->nodes[i].mask_off = stk_get_u(r, UINT64_MAX);
        l->nodes[i].mask_last = l->version > 1 ? stk_get_u(r, UINT64_MAX) : 0;
        l->nodes[i].off = l->version > 3 && stk_get_bool(r);
        l->nodes[i].closed = l->version > 5 && stk_get_bool(r);
    }
    l->n_claims = get_count(r);
    if (stk_mem_grow(&s->mem, &l->claims, &l->cap_claims, l->n_claims, sizeof(*l->claims)) < 0)
        return stk_loading_no_memory(l);
    for (uint32_t i = 0; i < l->n_claims; i++)
        l->claims[i] = stk_get_u32(r);
    if (l->version > 3)
        stk_resource_get_names(r, s, l->resource);
    if (l->version > 3 &&
        stk_tenant_get_names(r, s, &l->tenants, &l->n_tenants, &l->cap_tenants) < 0)
        return stk_loading_no_memory(l);
    if (l->version > 4)
        stk_account_get_names(r, s, l->queue, &l->n_queues);
    return r->bad || s->next_number == 0 || s->next_lease == 0 ? stk_loading_bad(l, "its head") : 0;
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
static int get_seen(struct stk_loading *l)
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
        return stk_loading_bad(l, "what was asked for");
    if (!e || next == 0) /* it is not learned, or was not */
        return 0;
    e->n = n;
    e->jobs = jobs;
    e->next = next;
    return stk_seen_restore(l->s) ? 0 : stk_loading_bad(l, "what was asked for");
}

static int get_pieces(struct stk_loading *l, struct stk_loaded *v)
{
    struct stk_reader *r = &l->r;

    v->first_piece = l->n_pieces;
    v->n_pieces = get_count(r);
    if (v->n_pieces > UINT32_MAX - l->n_pieces)
        return stk_loading_bad(l, "its pieces");
    if (stk_mem_grow(&l->s->mem, &l->pieces, &l->cap_pieces, l->n_pieces + v->n_pieces,
                     sizeof(*l->pieces)) < 0)
        return stk_loading_no_memory(l);
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

static int get_edges(struct stk_loading *l, struct stk_loaded *v)
{
    struct stk_reader *r = &l->r;

    v->first_edge = l->n_edges;
    v->n_edges = get_count(r);
    if (v->n_edges > UINT32_MAX - l->n_edges)
        return stk_loading_bad(l, "its dependencies");
    if (stk_mem_grow(&l->s->mem, &l->edges, &l->cap_edges, l->n_edges + v->n_edges,
                     sizeof(*l->edges)) < 0)
        return stk_loading_no_memory(l);
    for (uint32_t i = 0; i < v->n_edges; i++) {
        struct stk_saved_edge *e = &l->edges[l->n_edges++];

        e->child = (uint32_t)stk_get_u(r, l->s->n_jobs - 1);
        e->type = (uint32_t)stk_get_u(r, STK_DEP_TYPE_MAX - 1);
    }
    return 0;
}

/* Version 1 has none: there every element had an edge of its own. */
static int get_arrays(struct stk_loading *l)
{
    uint32_t n = l->version > 1 ? get_count(&l->r) : 0;
    int rc = stk_mem_grow(&l->s->mem, &l->arrays, &l->cap_arrays, n, sizeof(*l->arrays));

    if (rc < 0)
        return stk_loading_no_memory(l);
    for (; l->n_arrays < n && rc == 0; l->n_arrays++) {
        struct stk_saved_array *a = &l->arrays[l->n_arrays];

        *a = (struct stk_saved_array){.number = stk_get_u32(&l->r)};
        for (uint32_t t = 0; t < STK_DEP_TYPE_MAX && rc == 0; t++)
            rc = get_edges(l, &a->by[t]);
    }
    return rc;
}

static int get_live(struct stk_loading *l, uint32_t job)
{
    struct stk_job *j = &l->s->jobs[job];
    struct stk_loaded *v = &l->live[job];
    struct stk_reader *r = &l->r;
    int rc;

    stk_wire_get_demand(r, &v->demand, l->version);
    v->demand.nodes = l->version > 5 ? (uint16_t)stk_get_u(r, STK_MAX_NODE_SETS) : 0;
    if (r->bad || stk_demand_check(&v->demand, l->err) < 0 ||
        v->demand.gpus * v->demand.tasks != j->gpus)
        return stk_loading_bad(l, "what a job asks for");
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

static int get_terms(struct stk_loading *l, uint32_t job)
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
        return stk_loading_no_memory(l);
    stk_budget_join(s, job);
    return 0;
}

static int get_jobs(struct stk_loading *l)
{
    struct stk_state *s = l->s;
    uint32_t n = get_count(&l->r);

    if (stk_jobs_reserve(s, n) < 0 ||
        stk_mem_grow(&s->mem, &l->live, &l->cap_live, n, sizeof(*l->live)) < 0 ||
        stk_mem_grow(&s->mem, &l->heard, &l->cap_heard, n, sizeof(*l->heard)) < 0)
        return stk_loading_no_memory(l);
    s->n_jobs = n;
    for (uint32_t i = 0; i < n; i++) {
        struct stk_job *j = &s->jobs[i];
        int rc = 0;

        j->state = (uint8_t)stk_get_u(&l->r, STK_JOB_STATE_MAX - 1);
        if (j->state == STK_JOB_NONE)
            continue;
        stk_save_get_job(&l->r, s, j);
        if (l->r.bad || stk_map_get(&s->by_number, j->number) != UINT32_MAX)
            return stk_loading_bad(l, "a job");
        if (s->n_tenants > 0)
            j->tenant = j->tenant < l->n_tenants ? l->tenants[j->tenant] : 0;
        stk_map_put(&s->by_number, j->number, i);
        if (j->state != STK_JOB_DONE)
            rc = get_live(l, i);
        rc = rc < 0 ? rc : get_terms(l, i);
        j->plain = s->terms[i].plain;
        j->priority += stk_settings_shift(s, i);
        j->level = stk_evictable_level(s, j) & 7; /* by the policy of today */
        if (rc < 0 || l->r.bad)
            return rc < 0 ? rc : stk_loading_bad(l, "a live job");
    }
    return 0;
}

/* A row of slots in this state; all of them must be in it. */
static int get_row(struct stk_loading *l, enum stk_job_state state, uint32_t *ret_first,
                   uint32_t *ret_last, uint32_t *ret_n)
{
    struct stk_state *s = l->s;
    uint32_t n = get_count(&l->r), want = 0;

    for (uint32_t i = 0; i < s->n_jobs; i++)
        want += s->jobs[i].state == state;
    if (n != want)
        return stk_loading_bad(l, "a list of slots");
    *ret_first = *ret_last = 0;
    *ret_n = n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t job = (uint32_t)stk_get_u(&l->r, s->n_jobs - 1);

        if (l->r.bad || s->jobs[job].state != state || s->jobs[job].link != 0 ||
            *ret_last == job + 1)
            return stk_loading_bad(l, "a list of slots");
        if (*ret_last)
            s->jobs[*ret_last - 1].link = job + 1;
        else
            *ret_first = job + 1;
        *ret_last = job + 1;
    }
    return 0;
}

/* What came with version 5, and the end. */
static int get_rest(struct stk_loading *l)
{
    stk_budgets_get(&l->r, l->s, l->version);
    if (l->version > 4 && stk_booking_get(&l->r, l->s, l->version) < 0)
        return stk_loading_no_memory(l);
    if (l->version > 4 && stk_usage_get(&l->r, l->s, l->tenants, l->n_tenants) < 0)
        return stk_loading_bad(l, "what tenants have had");
    if (stk_sets_get(&l->r, l->s, l->version) < 0)
        return stk_loading_no_memory(l);
    if (l->r.bad || l->r.at != l->r.end)
        return stk_loading_bad(l, l->r.bad ? "it is cut short" : "something is left over");
    return 0;
}

int stk_loading_read(struct stk_loading *l)
{
    struct stk_state *s = l->s;
    uint32_t last, n;
    int rc = get_head(l);

    rc = rc < 0 ? rc : get_seen(l);
    rc = rc < 0 ? rc : get_jobs(l);
    rc = rc < 0 ? rc : get_row(l, STK_JOB_NONE, &s->free_job, &last, &n);
    rc = rc < 0 ? rc : get_row(l, STK_JOB_DONE, &s->done_head, &s->done_tail, &s->n_done);
    rc = rc < 0 ? rc : get_arrays(l);
    return rc < 0 ? rc : get_rest(l);
}
