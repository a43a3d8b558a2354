/* SPDX-License-Identifier: Apache-2.0 */
/* lease.c - when each job waited and when it had GPUs, kept in its record as it happens, and how
 * many GPUs there are. The figures of every period are made of this (docs/spec/figures.md).
 *
 * A job waits from entering the queue until its processes start, or it is held, blocked or
 * cancelled. It has a lease from that start until the core takes its GPUs back; one whose processes
 * never started has it from when it was placed. A job may enter the queue without an event of its
 * own (the begin time comes, a dependency is met): that shows at its next event, as another
 * j->queued.
 *
 * Records are written in the transaction of the event: one update more for each start and each end
 * of a lease after the first, none for a job that runs once.
 */
#include "core/state.h"
#include "live/state.h"

static bool has_open_lease(const struct stk_record *r)
{
    return r->lease.from > 0 && r->lease.to == 0;
}

uint32_t stk_live_milli(const struct stk_state *s, const struct stk_job *j)
{
    return j->gpus * stk_demand_milli(&s->shapes[j->shape].demand);
}

/* Since when it has been waiting; 0: it is not. Of the time before the event. */
static stk_time waiting_since(const struct stk_entry *e, const struct stk_job *j)
{
    if (e->wait_since > 0)
        return e->wait_since;
    return j->queue_seq != e->queue_seq || j->queued != e->queued ? j->queued : 0;
}

static void end_wait(struct stk_entry *e, stk_time since, stk_time until)
{
    if (since > 0 && until > since)
        e->rec.waited += until - since;
    e->wait_since = 0;
}

/* The record's lease is the last one: an earlier one moves into the table. */
static int open_lease(struct stk_live *l, struct stk_entry *e, const struct stk_job *j,
                      stk_time from, struct stk_err *err)
{
    const stk_time before = e->rec.lease.waited;
    int rc = 0;

    if (e->rec.lease.from > 0) {
        rc = stk_store_lease_add(l->cfg.store, &e->rec, err);
        e->rec.leases++;
    }
    end_wait(e, waiting_since(e, j), from);
    e->rec.lease = (struct stk_lease){.from = from, .waited = e->rec.waited, .milli = e->milli};
    if (from >= l->counts.since)
        stk_live_count_lease(l, j, e->rec.waited - before);
    e->placed = false;
    return rc;
}

/* When the processes ended: an engine that was away says so later. */
static stk_time end_of(const struct stk_event *ev, const struct stk_entry *e)
{
    stk_time t = ev->type == STK_EV_EXITED ? ev->u.exit.ended : 0;

    t = t == 0 || t > ev->at ? ev->at : t;
    return t < e->rec.lease.from ? e->rec.lease.from : t;
}

static int close_lease(struct stk_live *l, struct stk_entry *e, const struct stk_job *j,
                       const struct stk_event *ev, struct stk_err *err)
{
    int rc = 0;

    if (e->placed) /* its processes never started */
        rc = open_lease(l, e, j, j->started, err);
    e->rec.lease.to = end_of(ev, e);
    e->rec.lease.preempted = j->preemptions > e->rec.preemptions;
    e->rec.preemptions = j->preemptions;
    e->rec.restarts = j->restarts;
    stk_live_count_lease_end(l, j, ev, e);
    return rc;
}

/* What is left of the wait that the job was in before this event. */
static void settle_wait(struct stk_entry *e, const struct stk_job *j, stk_time at)
{
    const stk_time since = waiting_since(e, j);

    if (j->state == STK_JOB_WAITING) {
        if (since != j->queued) /* it left the queue and is in it again */
            end_wait(e, since, at);
        e->wait_since = j->queued;
    } else if (j->lease && e->placed) {
        e->wait_since = since; /* until its processes start */
    } else {
        end_wait(e, since, at);
    }
    e->queue_seq = j->queue_seq;
    e->queued = j->queued;
}

int stk_live_lease_event(struct stk_live *l, const struct stk_job *j, const struct stk_event *ev,
                         struct stk_err *err)
{
    struct stk_entry *e = stk_entries_find(&l->entries, j->number);
    struct stk_lease was;
    stk_time waited;
    uint32_t leases;
    int rc = 0;

    if (!e)
        return 0;
    was = e->rec.lease;
    waited = e->rec.waited;
    leases = e->rec.leases;
    if (ev->type == STK_EV_PLACE) {
        e->placed = true;
        e->milli = stk_live_milli(stk_core_state(l->core), j);
    } else if (ev->type == STK_EV_STARTED && !has_open_lease(&e->rec)) {
        if (e->rec.first_started == 0)
            stk_live_count_first(l, j);
        rc = open_lease(l, e, j, ev->at, err);
    } else if ((ev->type == STK_EV_EXITED || ev->type == STK_EV_SUSPENDED) &&
               (has_open_lease(&e->rec) || e->placed)) {
        rc = close_lease(l, e, j, ev, err);
        e->wait_since = 0;
        e->queue_seq = j->queue_seq; /* what it waits from now on is another wait */
        e->queued = j->queued;
    }
    settle_wait(e, j, ev->at);
    if (rc < 0 || j->state == STK_JOB_DONE || ev->type == STK_EV_STARTED) /* written by others */
        return rc;
    if (waited == e->rec.waited && leases == e->rec.leases && was.from == e->rec.lease.from &&
        was.to == e->rec.lease.to)
        return 0;
    return stk_store_job_update(l->cfg.store, &e->rec, err);
}

/* A store of an older version has no leases. What the job ran is put into one. */
static void invent_lease(struct stk_record *r, const struct stk_job *j)
{
    const stk_time ran = j->served < j->started - r->first_started || j->lease == 0
                             ? j->served
                             : j->started - r->first_started;

    r->waited = r->first_started > r->submitted ? r->first_started - r->submitted : 0;
    r->lease = (struct stk_lease){.from = r->first_started, .waited = r->waited};
    if (j->lease)
        r->lease.from = j->started - ran;
    else
        r->lease.to = r->first_started + ran;
}

void stk_live_lease_load(const struct stk_live *l, struct stk_entry *e)
{
    const struct stk_state *s = stk_core_state(l->core);
    const struct stk_job *j = &s->jobs[stk_core_find(l->core, e->number)];

    e->milli = stk_live_milli(s, j);
    if (e->rec.lease.from == 0 && e->rec.first_started > 0) {
        invent_lease(&e->rec, j);
        e->rec.lease.milli = e->milli;
    }
    e->placed = j->lease && !has_open_lease(&e->rec);
    e->wait_since = j->state == STK_JOB_WAITING || e->placed ? j->queued : 0;
    e->queue_seq = j->queue_seq;
    e->queued = j->queued;
}

stk_time stk_live_waited(const struct stk_live *l, const struct stk_entry *e, stk_time now)
{
    const uint32_t slot = stk_core_find(l->core, e->number);
    const struct stk_job *j = slot == STK_NONE ? NULL : &stk_core_state(l->core)->jobs[slot];
    stk_time since = 0;

    if (j && (j->state == STK_JOB_WAITING || (j->lease && e->placed)))
        since = waiting_since(e, j);
    return e->rec.waited + (since > 0 && now > since ? now - since : 0);
}

/* ---- capacity ---- */

/* A node counts while it is up, and after that as long as jobs have something of it. */
static uint32_t count_gpus(struct stk_live *l)
{
    const struct stk_state *s = stk_core_state(l->core);
    uint32_t n = 0;

    l->down_in_use = false;
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        const struct stk_node *node = &s->nodes[i];

        l->down_in_use |= !node->said_up && node->n_uses > 0;
        n += node->said_up || node->n_uses > 0 ? node->gpus : 0;
    }
    return n;
}

static int put_capacity(struct stk_live *l, stk_time at, struct stk_err *err)
{
    const struct stk_capacity c = {at, count_gpus(l)};
    int rc = 0;

    if (c.gpus != l->capacity.gpus || l->capacity.at == 0)
        rc = stk_store_capacity_put(l->cfg.store, &c, err);
    if (rc == 0)
        l->capacity = c;
    return rc;
}

int stk_live_capacity_event(struct stk_live *l, const struct stk_event *ev, struct stk_err *err)
{
    const bool ends = ev->type == STK_EV_EXITED || ev->type == STK_EV_SUSPENDED;

    if (ev->type != STK_EV_NODE_DOWN && ev->type != STK_EV_NODE_UP && !(ends && l->down_in_use))
        return 0;
    return put_capacity(l, ev->at, err);
}

static int see_capacity(void *ctx, const struct stk_capacity *c)
{
    *(struct stk_capacity *)ctx = *c;
    return 0;
}

/* A store of an older version does not say: it is taken to have been as it is now. */
static int put_first(struct stk_live *l, struct stk_err *err)
{
    stk_time first = 0;
    int rc = stk_store_first_submitted(l->cfg.store, &first, err);

    if (rc < 0 || first == 0 || first >= l->now)
        return rc;
    return put_capacity(l, first, err);
}

int stk_live_capacity_load(struct stk_live *l, struct stk_err *err)
{
    int rc;

    l->capacity = (struct stk_capacity){0};
    rc = stk_store_capacity(l->cfg.store, STK_NEVER_TIME - 1, STK_NEVER_TIME, see_capacity,
                            &l->capacity, err);
    if (rc < 0 || (l->capacity.at > 0 && l->capacity.gpus == count_gpus(l)))
        return rc;
    rc = stk_store_begin(l->cfg.store, err);
    if (rc == 0 && l->capacity.at == 0)
        rc = put_first(l, err);
    rc = rc < 0 ? rc : put_capacity(l, l->now, err);
    rc = rc < 0 ? rc : stk_store_commit(l->cfg.store, err);
    if (rc < 0)
        stk_store_rollback(l->cfg.store);
    return rc;
}
