/* SPDX-License-Identifier: Apache-2.0 */
#include "live/live.h"

#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "live/state.h"
#include "sys/big.h"
#include "sys/json.h"
#include "sys/zones.h"

#define ROOM 131072u /* bytes that must be free for the store to be well again */

static void say(const struct stk_live *l, const char *line)
{
    if (l->cfg.log)
        l->cfg.log(l->cfg.ctx, line);
}

int stk_live_open(const struct stk_live_config *cfg, struct stk_live **ret_live,
                  struct stk_err *err)
{
    struct stk_live *l = calloc(1, sizeof(*l));
    int rc = 0;

    if (!l)
        return stk_err_set(err, -ENOMEM, "out of memory");
    l->cfg = *cfg;
    l->mem = stk_big_mem;
    stk_zones_local(&l->zone);
    stk_live_counts_init(l);
    l->last = &l->first;
    l->long_uid = STK_NONE;
    l->off = calloc(cfg->core.n_nodes, sizeof(*l->off));
    if (!l->off)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    *ret_live = l; /* the engine may ask while it takes over */
    rc = rc < 0 ? rc : stk_live_recover(l, err);
    if (rc < 0) {
        *ret_live = NULL;
        stk_live_close(l);
    }
    return rc;
}

void stk_live_refuse(struct stk_live *l, int rc, const struct stk_err *err)
{
    while (l->first) {
        struct stk_live_request *r = l->first;

        l->first = r->next;
        r->next = l->taken;
        l->taken = r;
    }
    l->last = &l->first;
    l->open = NULL;
    l->hidden = 0;
    l->full = l->half = false;
    stk_live_answer(l, rc, err);
}

void stk_live_close(struct stk_live *l)
{
    struct stk_err err = {"the daemon is stopping"};

    if (!l)
        return;
    if (l->open && l->in_txn) { /* none of it was ever there; nothing else was written */
        stk_store_rollback(l->cfg.store);
        l->in_txn = false;
        l->torn = true;
    }
    stk_live_refuse(l, -ECANCELED, &err);
    l->closing = true;
    if (l->loop && !l->in_txn && !l->torn && stk_live_snapshot(l, &err) < 0)
        say(l, err.text);
    stk_live_drop(l);
    free(l->off);
    stk_live_items_free(l);
    stk_live_outlook_free(l);
    free(l->waiting);
    free(l->saved);
    free(l->schedules);
    json_decref(l->reservations);
    stk_live_counts_free(l);
    free(l->wire);
    free(l);
}

/* Nothing of this turn was made durable and nothing of it was acted on: back to what the store has.
 */
static int undo(struct stk_live *l, int rc, struct stk_err *err)
{
    struct stk_err again = {{0}};

    if (l->in_txn)
        stk_store_rollback(l->cfg.store);
    l->in_txn = false;
    l->failed = 0;
    l->skipped += l->skipping;
    l->skipping = 0;
    l->trouble = true;
    stk_live_refuse(l, rc, err); /* nobody waits for a disk that may stay full */
    if (stk_live_recover(l, &again) < 0) {
        *err = again;
        return -ENOTRECOVERABLE;
    }
    return rc;
}

/* Whether writing works again is found out by writing: as much as a request may need, and some
 * beside the store's own files, which have a little room left on a full disk. */
static int try_to_write(struct stk_live *l, struct stk_err *err)
{
    unsigned char some[32768];
    int rc;

    if (!l->trouble)
        return 0;
    rc = stk_store_room(l->cfg.store, ROOM, err);
    if (rc < 0)
        return rc;
    memset(some, 0, sizeof(some));
    memcpy(some, &l->now, sizeof(l->now)); /* not what is there already */
    rc = stk_live_begin(l, err);
    return rc < 0 ? rc : stk_store_meta_set(l->cfg.store, "trouble", some, sizeof(some), err);
}

static int begin_turn(struct stk_live *l, struct stk_err *err)
{
    int rc = try_to_write(l, err);

    return rc < 0 ? rc : stk_live_items_flush(l, err);
}

bool stk_live_is_open(const struct stk_live *l)
{
    return l->open != NULL;
}

bool stk_live_asked_for(struct stk_live *l)
{
    const bool asked = l->asked_for && !l->open;

    l->asked_for = l->asked_for && !asked;
    return asked;
}

int stk_live_turn(struct stk_live *l, struct stk_err *err)
{
    double begun = stk_live_seconds(), written = l->counts.commit.sum;
    stk_time now;
    int rc;

    stk_live_jump(l);
    now = l->cfg.clock(l->cfg.ctx);
    if (now > l->now)
        l->now = now;
    if (!l->loop) /* a turn before could not be undone */
        return stk_err_set(err, -ENOTRECOVERABLE, "the state could not be read again");
    l->slice_ns = stk_live_ns();
    rc = l->open ? 0 : begin_turn(l, err);
    if (rc == 0 && !l->open && l->skipped > 0)
        rc = stk_live_skip(l, err);
    if (rc == 0 && !l->open && stk_live_clock_moved(l))
        rc = stk_live_clock_follow(l, err);
    rc = rc < 0 ? rc : stk_loop_turn(l->loop, l->now, err);
    l->half = rc == -EINPROGRESS;
    if (l->half)
        return 0;
    l->full = false;
    if (rc == 0) /* what was written without an event: tokens, items, drained GPUs */
        rc = stk_live_commit(l, err);
    l->counts.failed += rc < 0;
    if (rc < 0)
        return undo(l, rc, err);
    stk_histogram_add(&l->counts.turn,
                      stk_live_seconds() - begun - (l->counts.commit.sum - written));
    l->trouble = false;
    stk_live_answer(l, 0, NULL);
    rc = stk_live_snapshot(l, err);
    if (rc < 0) { /* the journal is all that is needed; another try comes */
        if (l->in_txn)
            stk_store_rollback(l->cfg.store);
        l->in_txn = false;
        say(l, err->text);
    }
    return 0;
}

bool stk_live_pending(const struct stk_live *l)
{
    return !l->loop || l->failed || l->first || l->open || l->off_changed || l->reserve_look ||
           l->in_txn || l->n_saved > 0 || l->defrag || l->items.n_late > 0 ||
           stk_live_waiting_due(l, l->cfg.clock(l->cfg.ctx)) || stk_loop_pending(l->loop) ||
           stk_live_wake(l) <= l->cfg.clock(l->cfg.ctx) || stk_live_clock_moved(l) ||
           stk_live_behind(l);
}

stk_time stk_live_wake(const struct stk_live *l)
{
    stk_time wake = l->core ? stk_live_core_wake(l) : 0, by_wall;

    for (uint32_t i = 0; i < l->n_waiting; i++)
        wake = l->waiting[i].until < wake ? l->waiting[i].until : wake;
    by_wall = stk_live_reserve_wake(l);
    by_wall = l->rules_wake < by_wall ? l->rules_wake : by_wall;
    by_wall = stk_live_due_at(l, l->cron_wake < by_wall ? l->cron_wake : by_wall);
    return by_wall < wake ? by_wall : wake;
}

/* Room for what is off on more nodes. */
static int more_off(struct stk_live *l, uint32_t n)
{
    struct stk_live_off *off = realloc(l->off, n * sizeof(*off));

    if (!off)
        return -ENOMEM;
    if (n > l->cfg.core.n_nodes)
        memset(off + l->cfg.core.n_nodes, 0, (n - l->cfg.core.n_nodes) * sizeof(*off));
    l->off = off;
    return 0;
}

int stk_live_reload(struct stk_live *l, const struct stk_live_config *cfg, struct stk_err *err)
{
    const struct stk_live_config before = l->cfg;
    struct stk_err again = {{0}};
    int rc = 0;

    while (l->open && rc == 0) /* tables that it uses are about to change */
        rc = stk_live_turn(l, err);
    if (rc < 0)
        return rc;
    l->closing = true; /* a snapshot now, whatever has happened since the last */
    rc = stk_live_snapshot(l, err);
    l->closing = false;
    if (rc < 0 && l->in_txn) {
        stk_store_rollback(l->cfg.store);
        l->in_txn = false;
    }
    if (rc == 0 && cfg->core.n_nodes > l->cfg.core.n_nodes && more_off(l, cfg->core.n_nodes) < 0)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    if (rc < 0)
        return rc;
    l->cfg.nodes = cfg->nodes;
    l->cfg.pools = cfg->pools;
    l->cfg.pool_of = cfg->pool_of;
    l->cfg.gpu_types = cfg->gpu_types;
    l->cfg.n_gpu_types = cfg->n_gpu_types;
    l->cfg.core = cfg->core;
    l->cfg.policy = cfg->policy;
    l->cfg.policy_words = cfg->policy_words;
    l->cfg.limits = cfg->limits;
    l->cfg.teams = cfg->teams;
    l->cfg.share = cfg->share;
    l->cfg.default_cpu_milli = cfg->default_cpu_milli;
    l->cfg.rules = cfg->rules;
    l->cfg.rules_every = cfg->rules_every;
    rc = stk_live_recover(l, err);
    if (rc == 0)
        return 0;
    l->cfg = before;
    if (stk_live_recover(l, &again) < 0) {
        *err = again;
        return -ENOTRECOVERABLE;
    }
    return rc;
}

/* ---- what jobs say of themselves ---- */

void stk_live_note(struct stk_live *l, stk_job_number number, const char *sentence)
{
    struct stk_entry *e = stk_entries_find(&l->entries, number);

    if (!e)
        return;
    free(e->note);
    e->note = strndup(sentence, 500);
}

void stk_live_warn(struct stk_live *l, stk_job_number number, enum stk_warn of,
                   const char *sentence)
{
    struct stk_entry *e = stk_entries_find(&l->entries, number);

    if (!e)
        return;
    free(e->warning[of]);
    e->warning[of] = sentence ? strndup(sentence, 500) : NULL;
}

void stk_live_lent(struct stk_live *l, stk_job_number number, bool lent)
{
    struct stk_entry *e = stk_entries_find(&l->entries, number);

    if (e)
        e->lent = lent;
}

void stk_live_blame(struct stk_live *l, stk_job_number number, const char *sentence)
{
    struct stk_entry *e = stk_entries_find(&l->entries, number);

    if (!e)
        return;
    free(e->why);
    e->why = strndup(sentence, 500);
}

/* The core hears of it with the next turn; what does not fit into memory is lost, and harmless. */
static bool note_report(struct stk_live *l, struct stk_entry *e)
{
    if (e->saved || e->stepped)
        return true;
    if (l->n_saved == l->cap_saved) {
        size_t cap = l->cap_saved ? 2 * l->cap_saved : 64;
        stk_job_number *more = realloc(l->saved, cap * sizeof(*more));

        if (!more)
            return false;
        l->saved = more;
        l->cap_saved = cap;
    }
    l->saved[l->n_saved++] = e->number;
    return true;
}

/* Steps that a running job has done, of how many. */
static void note_steps(struct stk_live *l, struct stk_entry *e, const json_t *report)
{
    const json_t *step = json_object_get(report, "step"), *of = json_object_get(report, "total");
    const struct stk_state *s = l->core ? stk_core_state(l->core) : NULL;
    uint32_t slot = s ? stk_core_find(l->core, e->number) : STK_NONE;
    const struct stk_job *j = slot != STK_NONE ? &s->jobs[slot] : NULL;
    stk_time now = l->cfg.clock(l->cfg.ctx), ran;

    if (!l->cfg.predict || !step || !of || !j || j->state != STK_JOB_RUNNING)
        return;
    now = now > s->now ? now : s->now;
    ran = stk_job_served(j, now) - j->lost;
    if (stk_progress_step(&e->steps, ran, json_number_value(step), json_number_value(of),
                          j->restarts == 0 && j->preemptions == 0) &&
        stk_progress_due(&e->steps, ran, stk_job_remaining(j, now)) && note_report(l, e))
        e->stepped = true;
}

int stk_live_report(struct stk_live *l, const struct stk_who *who, stk_job_number number,
                    json_t *take_report, struct stk_err *err)
{
    struct stk_entry *e = stk_entries_find(&l->entries, number);
    int rc = 0;

    if (!e)
        rc = stk_err_set(err, -ENOENT, "there is no running job %u", number);
    else if (!stk_live_may(who, e->rec.uid))
        rc = stk_err_set(err, -EACCES, "job %u belongs to %s", number, e->rec.user);
    if (!e || rc < 0) {
        json_decref(take_report);
        return rc;
    }
    if (json_object_get(take_report, "checkpoint") && note_report(l, e))
        e->saved = true;
    note_steps(l, e, take_report);
    if (json_integer_value(json_object_get(take_report, "step")) > (json_int_t)e->rec.steps)
        e->rec.steps = (uint64_t)json_integer_value(json_object_get(take_report, "step"));
    if (!e->progress) {
        e->progress = take_report;
        return 0;
    }
    rc = json_object_update(e->progress, take_report);
    json_decref(take_report);
    return rc < 0 ? stk_err_set(err, -ENOMEM, "out of memory") : 0;
}

void stk_live_empty(struct stk_live *l, uint32_t node)
{
    l->empty = node + 1;
    stk_live_defrag(l);
}

void stk_live_defrag(struct stk_live *l)
{
    l->defrag = true;
}

/* ---- looking ---- */

struct stk_core *stk_live_core(struct stk_live *l)
{
    return l->core;
}

struct stk_store *stk_live_store(struct stk_live *l)
{
    return l->cfg.store;
}

const struct stk_live_config *stk_live_config(const struct stk_live *l)
{
    return &l->cfg;
}

uint64_t stk_live_seq(const struct stk_live *l)
{
    return l->durable;
}

stk_time stk_live_now(const struct stk_live *l)
{
    return l->now;
}

/* Jobs that are being made are shown when they are durable. */
bool stk_live_hides(const struct stk_live *l, stk_job_number number)
{
    return l->hidden && number >= l->hidden;
}

const struct stk_entry *stk_live_entry(const struct stk_live *l, stk_job_number number)
{
    return stk_live_hides(l, number) ? NULL : stk_entries_find(&l->entries, number);
}

const struct stk_entry *stk_live_next(const struct stk_live *l, stk_job_number after)
{
    const struct stk_entry *e = stk_entries_next(&l->entries, after);

    return e && !stk_live_hides(l, e->number) ? e : NULL;
}

void stk_live_show(const struct stk_live *l, struct stk_live_shown *ret)
{
    const struct stk_state *s = stk_core_state(l->core);

    *ret = l->hidden ? l->shown : (struct stk_live_shown){s->n_live, s->n_blocked, s->n_waiting};
}

uint32_t stk_live_count(const struct stk_live *l)
{
    return l->hidden ? l->shown.live : l->entries.live;
}

json_t *stk_live_spec(struct stk_live *l, int64_t spec_id)
{
    struct stk_err err;
    char *text = NULL;
    size_t len;
    json_t *json;

    if (stk_store_spec_get(l->cfg.store, spec_id, &text, &len, &err) < 0)
        return NULL;
    json = stk_json_loads(text);
    free(text);
    return json;
}
