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
#include "core/defrag.h"
#include "core/evictable.h"
#include "core/index.h"
#include "core/leave.h"
#include "core/limit.h"
#include "core/loading.h"
#include "core/named.h"
#include "core/pair.h"
#include "core/power.h"
#include "core/queue.h"
#include "core/skipped.h"
#include "core/txn.h"
#include "core/usage.h"
#include "core/verbs.h"
#include "core/walk.h"
#include "model/mig.h"

static int check_pin(struct stk_loading *l, const struct stk_job *j, const struct stk_demand *d)
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

static int check_state(struct stk_loading *l, const struct stk_job *j, const struct stk_loaded *v)
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
    return ok ? 0 : stk_loading_bad(l, "a job's state does not go with what it has");
}

static int take_lease(struct stk_loading *l, uint32_t job)
{
    struct stk_state *s = l->s;
    struct stk_job *j = &s->jobs[job];
    const struct stk_loaded *v = &l->live[job];
    const struct stk_piece *pieces = &l->pieces[v->first_piece];
    struct stk_err why = {{0}};
    int rc;

    if (stk_pieces_reserve(s, v->n_pieces) < 0 || stk_txn_reserve(s, v->n_pieces) < 0)
        return stk_loading_no_memory(l);
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
static void restore_timer(struct stk_loading *l, uint32_t job)
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

static void enter(struct stk_loading *l, uint32_t job)
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

static int settle_job(struct stk_loading *l, uint32_t job)
{
    struct stk_state *s = l->s;
    struct stk_job *j = &s->jobs[job];
    const struct stk_loaded *v = &l->live[job];
    int rc = check_state(l, j, v);

    if (rc == 0 && j->pool >= s->n_pools)
        rc = stk_err_set(l->err, -ENODEV,
                         "job %u is in pool %u, which no longer exists: put the pool back, or end "
                         "its jobs first",
                         j->number, j->pool);
    rc = rc < 0 ? rc : check_pin(l, j, &v->demand);
    if (rc == 0 && v->demand.nodes > s->n_sets)
        rc = stk_loading_bad(l, "a set of nodes");
    if (rc == 0 && (stk_queue_reserve(s, j->pool) < 0 || stk_account_reserve(s) < 0))
        rc = stk_loading_no_memory(l);
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
        return stk_loading_no_memory(l);
    stk_array_join(s, j->array);
    rc = j->lease ? take_lease(l, job) : 0;
    if (rc == 0)
        enter(l, job);
    return rc;
}

/* Edges into a list (first + 1); of jobs that were submitted after 'number'. */
static int tie_list(struct stk_loading *l, const struct stk_loaded *v, stk_job_number number,
                    uint32_t *list)
{
    struct stk_state *s = l->s;

    for (uint32_t k = v->n_edges; k-- > 0;) { /* the last first: each goes to the front */
        const struct stk_saved_edge *e = &l->edges[v->first_edge + k];
        const struct stk_job *c = &s->jobs[e->child];

        if (c->number <= number || c->unmet == 0)
            return stk_loading_bad(l, "a dependency");
        s->edges[s->n_edges] = (struct stk_edge){e->child, c->number, e->type, *list};
        *list = ++s->n_edges;
        l->heard[e->child]++;
    }
    return 0;
}

static int tie_arrays(struct stk_loading *l)
{
    int rc = 0;

    for (uint32_t i = 0; i < l->n_arrays && rc == 0; i++) {
        const struct stk_saved_array *v = &l->arrays[i];
        struct stk_array *a = stk_array_find(l->s, v->number);

        for (uint32_t t = 0; t < STK_DEP_TYPE_MAX && rc == 0; t++) {
            rc = a ? tie_list(l, &v->by[t], v->number, &a->first_edge[t])
                   : stk_loading_bad(l, "an array");
            for (uint32_t k = 0; k < v->by[t].n_edges && rc == 0; k++)
                if (l->edges[v->by[t].first_edge + k].type != t)
                    rc = stk_loading_bad(l, "a dependency");
        }
    }
    return rc;
}

/* A job depends on jobs with smaller numbers only, and knows how many. */
static int tie_edges(struct stk_loading *l)
{
    struct stk_state *s = l->s;
    int rc = 0;

    if (stk_mem_grow(&s->mem, &s->edges, &s->cap_edges, l->n_edges, sizeof(*s->edges)) < 0)
        return stk_loading_no_memory(l);
    for (uint32_t i = 0; i < s->n_jobs && rc == 0; i++)
        rc = tie_list(l, &l->live[i], s->jobs[i].number, &s->jobs[i].first_edge);
    rc = rc < 0 ? rc : tie_arrays(l);
    for (uint32_t i = 0; i < s->n_jobs && rc == 0; i++)
        if (s->jobs[i].state != STK_JOB_DONE && s->jobs[i].unmet != l->heard[i])
            rc = stk_loading_bad(l, "a dependency");
    return rc;
}

/* Nodes are as they were, as far as they are the same. */
static int set_nodes(struct stk_loading *l)
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
            return stk_loading_bad(l, "a claim");
        s->pools[p].claim = job;
    }
    return 0;
}

static int load(struct stk_loading *l)
{
    struct stk_state *s = l->s;
    int rc = stk_loading_read(l);

    if (rc == 0 && l->later)
        stk_named_move(s, l->later);
    if (rc == 0 && l->skipped)
        stk_skipped_move(s, l->skipped);
    if (l->later || l->skipped)
        l->same_settings = false; /* timers that were saved are of other times */
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
        rc = stk_loading_no_memory(l);
    for (uint32_t i = 0; i < s->book.n_fences && rc == 0; i++)
        stk_booking_fill(s, s->book.fence[i].node); /* a node may have come back with the change */
    return rc;
}

static int load_into(struct stk_loading *l)
{
    struct stk_state *s = l->s;
    int rc;

    if (s->n_events > 0 || s->n_jobs > 0)
        return stk_err_set(l->err, -EINVAL, "a state is loaded into a fresh core");
    if (l->r.end - l->r.at > UINT32_MAX)
        return stk_err_set(l->err, -EBADMSG, "not a saved state: larger than any");
    rc = load(l);
    stk_mem_drop(&s->mem, &l->live, &l->cap_live, sizeof(*l->live));
    stk_mem_drop(&s->mem, &l->pieces, &l->cap_pieces, sizeof(*l->pieces));
    stk_mem_drop(&s->mem, &l->edges, &l->cap_edges, sizeof(*l->edges));
    stk_mem_drop(&s->mem, &l->arrays, &l->cap_arrays, sizeof(*l->arrays));
    stk_mem_drop(&s->mem, &l->heard, &l->cap_heard, sizeof(*l->heard));
    stk_mem_drop(&s->mem, &l->nodes, &l->cap_nodes, sizeof(*l->nodes));
    stk_mem_drop(&s->mem, &l->tenants, &l->cap_tenants, sizeof(*l->tenants));
    stk_mem_drop(&s->mem, &l->claims, &l->cap_claims, sizeof(*l->claims));
    return rc;
}

int stk_core_load(struct stk_core *fresh, const unsigned char *buf, size_t len, struct stk_err *err)
{
    return load_into(&(struct stk_loading){
        .core = fresh, .s = &fresh->s, .r = {buf, buf + len, false}, .err = err});
}

int stk_load_again(struct stk_core *fresh, const unsigned char *buf, size_t len, stk_time later,
                   stk_time skipped, struct stk_err *err)
{
    return load_into(&(struct stk_loading){.core = fresh,
                                           .s = &fresh->s,
                                           .settled = true,
                                           .later = later,
                                           .skipped = skipped,
                                           .r = {buf, buf + len, false},
                                           .err = err});
}
