/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c - every event goes into the store as it is applied, with the records it changes; one
 * commit makes a whole turn durable.
 *
 * A write that fails is remembered and found by the commit: the turn is then undone as a whole.
 */
#include <stdlib.h>
#include <string.h>

#include "core/save.h"
#include "core/state.h"
#include "live/state.h"
#include "model/wire.h"

#define SNAPSHOT_EVENTS 50000 /* plus one per job: so that saving is always a small part */

int stk_live_begin(struct stk_live *l, struct stk_err *err)
{
    int rc;

    if (l->in_txn)
        return 0;
    rc = stk_store_begin(l->cfg.store, err);
    l->in_txn = rc == 0;
    return rc;
}

static void fail(struct stk_live *l, int rc, const struct stk_err *err)
{
    if (l->failed)
        return;
    l->failed = rc;
    l->failed_err = *err;
}

static int append(struct stk_live *l, const struct stk_event *ev, stk_job_number number,
                  struct stk_err *err)
{
    size_t need = stk_wire_bound(ev), len = 0;

    if (need > l->cap_wire) {
        unsigned char *more = realloc(l->wire, need);

        if (!more)
            return stk_err_set(err, -ENOMEM, "out of memory");
        l->wire = more;
        l->cap_wire = need;
    }
    if (stk_wire_put(ev, l->wire, l->cap_wire, &len) < 0)
        return stk_err_set(err, -EINVAL, "an event that cannot be written");
    return stk_store_append(
        l->cfg.store,
        &(struct stk_row){
            .at = ev->at, .type = ev->type, .number = number, .bytes = l->wire, .len = len},
        &l->seq, err);
}

static int on_submit(struct stk_live *l, struct stk_err *err)
{
    struct stk_entry *e;
    int rc = stk_entries_add(&l->entries, l->submitting, &e);

    return rc < 0 ? stk_err_set(err, rc, "out of memory")
                  : stk_store_job_put(l->cfg.store, &e->rec, err);
}

static int on_started(struct stk_live *l, const struct stk_job *j, stk_time at, struct stk_err *err)
{
    struct stk_entry *e = stk_entries_find(&l->entries, j->number);

    if (!e)
        return 0;
    e->rec.started = at;
    (void)stk_live_logs_found(l, j, e);
    if (e->rec.first_started == 0) {
        e->rec.first_started = at;
        stk_live_outlook_started(l, j, at);
    }
    return stk_store_job_update(l->cfg.store, &e->rec, err);
}

/* The job has ended: its record is complete and leaves the table. */
static int finish(struct stk_live *l, const struct stk_job *j, struct stk_err *err)
{
    struct stk_entry *e = stk_entries_find(&l->entries, j->number);
    int rc;

    if (!e)
        return 0;
    e->rec.ended = j->ended;
    e->rec.cause = (enum stk_cause)j->cause;
    e->rec.code = j->exit_code;
    e->rec.restarts = j->restarts;
    e->rec.preemptions = j->preemptions;
    e->rec.served = j->served;
    stk_live_name_dep(l, j);
    if (e->note)
        e->rec.note = e->note;
    l->counts.ended[j->cause < STK_CAUSE_MAX ? j->cause : STK_CAUSE_UNKNOWN]++;
    stk_live_outlook_ended(l, j, e->rec.uid);
    rc = stk_store_job_update(l->cfg.store, &e->rec, err);
    stk_entries_remove(&l->entries, j->number);
    return rc;
}

/* Jobs that ended since the last look: one event can end many, through dependencies. */
static int finish_all(struct stk_live *l, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->core);
    uint32_t at = s->done_head;
    int rc = 0;

    l->named_dep = 0;

    if (l->done_number != 0 && l->done_slot < s->n_jobs &&
        s->jobs[l->done_slot].number == l->done_number &&
        s->jobs[l->done_slot].state == STK_JOB_DONE)
        at = s->jobs[l->done_slot].link;
    while (at != 0 && rc == 0) {
        const struct stk_job *j = &s->jobs[at - 1];

        l->done_slot = at - 1;
        l->done_number = j->number;
        rc = finish(l, j, err);
        at = j->link;
    }
    return rc;
}

/* For whom: the slot is another job's later. */
static void name_evictor(const struct stk_state *s, struct stk_event *ev)
{
    const uint32_t other = ev->u.evict.for_job.i;

    if (other >= s->n_jobs || s->jobs[other].state == STK_JOB_NONE)
        return;
    ev->u.evict.for_number = s->jobs[other].number;
    ev->u.evict.for_tier = (uint8_t)(s->jobs[other].tier + 1);
}

void stk_live_journal(void *ctx, const struct stk_event *ev)
{
    struct stk_live *l = ctx;
    const struct stk_state *s = stk_core_state(l->core);
    const struct stk_job *j = stk_event_is_of_job(ev->type) ? &s->jobs[ev->job.i] : NULL;
    struct stk_event named = *ev;
    struct stk_err err = {{0}};
    int rc = stk_live_begin(l, &err);

    stk_live_count_event(l, ev, j);
    if (ev->type == STK_EV_EVICT)
        name_evictor(s, &named);
    if (rc == 0)
        rc = append(l, &named, j ? j->number : 0, &err);
    if (rc == 0 && ev->type == STK_EV_SUBMIT)
        rc = on_submit(l, &err);
    if (rc == 0 && j)
        rc = stk_live_lease_event(l, j, ev, &err);
    if (rc == 0)
        rc = stk_live_capacity_event(l, ev, &err);
    if (rc == 0 && j && ev->type == STK_EV_STARTED)
        rc = on_started(l, j, ev->at, &err);
    if (rc == 0 && j && ev->type == STK_EV_EXITED && j->kind == STK_KIND_BATCH)
        rc = stk_live_items_back(l, j, &err);
    if (rc == 0 && ev->type == STK_EV_UNRESERVE)
        rc = stk_live_reserve_over(l, ev, &err);
    if (rc == 0)
        rc = finish_all(l, &err);
    l->since_snapshot++;
    if (rc < 0)
        fail(l, rc, &err);
}

int stk_live_commit(void *ctx, struct stk_err *err)
{
    struct stk_live *l = ctx;
    double begun = stk_live_seconds();
    int rc = l->failed;

    if (rc < 0) {
        *err = l->failed_err;
        return rc;
    }
    if (!l->in_txn)
        return 0;
    rc = stk_store_commit(l->cfg.store, err);
    if (rc < 0)
        return rc;
    stk_histogram_add(&l->counts.commit, stk_live_seconds() - begun);
    l->in_txn = false;
    l->skipping = 0;
    l->durable = l->seq;
    /* a later commit of this turn may fail: that is not their failure */
    for (struct stk_live_request *r = l->taken; r; r = r->next)
        r->durable = true;
    return 0;
}

int stk_live_snapshot(struct stk_live *l, struct stk_err *err)
{
    struct stk_bytes bytes = {.mem = &l->mem};
    int rc = 0;

    if (l->since_snapshot < SNAPSHOT_EVENTS + l->entries.live && !l->closing)
        return 0;
    if (l->since_snapshot == 0)
        return 0;
    rc = stk_core_save(l->core, &bytes, err);
    rc = rc < 0 ? rc : stk_live_begin(l, err);
    rc = rc < 0
             ? rc
             : stk_store_snapshot_put(
                   l->cfg.store, &(struct stk_snapshot){l->seq, l->now, bytes.data, bytes.n}, err);
    rc = rc < 0 ? rc : stk_live_commit(l, err);
    stk_bytes_done(&bytes);
    if (rc == 0)
        l->since_snapshot = 0;
    return rc;
}
