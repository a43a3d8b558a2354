/* SPDX-License-Identifier: Apache-2.0 */
/* act.c - what people do to jobs: cancel, hold, release, suspend, resume, requeue, signal,
 * update; and to
 * GPUs: drain. Each verb is one or two events; whether it is possible is the core's to say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "live/state.h"
#include "spec/ending.h"

bool stk_live_may(const struct stk_who *who, uint32_t owner_uid)
{
    return who->role >= STK_ROLE_OPERATOR || who->uid == owner_uid;
}

static int apply(struct stk_live *l, uint32_t slot, enum stk_event_type type, bool suspend,
                 struct stk_err *err)
{
    const struct stk_job *j = &stk_core_state(l->core)->jobs[slot];
    struct stk_event ev = {
        .at = l->now, .type = type, .job = {slot}, .lease = j->lease ? j->lease : j->slept};

    if (type == STK_EV_EVICT) {
        ev.u.evict.for_job.i = STK_NONE;
        ev.u.evict.suspend = suspend;
        ev.u.evict.by_hand = true;
    }
    return stk_loop_apply(l->loop, &ev, err);
}

static bool has_gpus(const struct stk_job *j)
{
    return j->state == STK_JOB_PLACED || j->state == STK_JOB_RUNNING;
}

static int do_hold(struct stk_live *l, uint32_t slot, struct stk_err *err)
{
    const struct stk_job *j = &stk_core_state(l->core)->jobs[slot];

    if (has_gpus(j))
        return stk_err_set(err, -EPROTO, "it is running; to stop it for a while: stoker suspend %u",
                           j->number);
    if (j->state == STK_JOB_HELD)
        return 0;
    return apply(l, slot, STK_EV_HOLD, false, err);
}

static int do_release(struct stk_live *l, uint32_t slot, struct stk_err *err)
{
    const struct stk_job *j = &stk_core_state(l->core)->jobs[slot];

    if (j->state != STK_JOB_HELD && j->state != STK_JOB_STOPPING)
        return stk_err_set(err, -EPROTO, "it is not held: it is %s", stk_job_state_name(j->state));
    return apply(l, slot, STK_EV_RELEASE, false, err);
}

static int do_suspend(struct stk_live *l, uint32_t slot, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->core);
    const struct stk_job *j = &s->jobs[slot];
    int rc;

    if (j->slept && (j->state == STK_JOB_WAITING || j->state == STK_JOB_HELD))
        return j->state == STK_JOB_HELD ? 0 : apply(l, slot, STK_EV_HOLD, false, err);
    if (j->state == STK_JOB_STOPPING) {
        if (!j->suspend_wanted)
            return stk_err_set(err, -EPROTO, "it is being stopped already");
        return apply(l, slot, STK_EV_HOLD, false, err);
    }
    if (!has_gpus(j))
        return stk_err_set(err, -EPROTO,
                           "it does not run: it is %s; to keep it from starting: "
                           "stoker hold %u",
                           stk_job_state_name(j->state), j->number);
    if (s->shapes[j->shape].demand.share == STK_SHARE_MPS)
        return stk_err_set(
            err, -EPROTO,
            "it shares its GPU by MPS, whose clients CUDA cannot suspend; to stop it "
            "and start it anew later: stoker requeue %u",
            j->number);
    rc = apply(l, slot, STK_EV_EVICT, true, err);
    return rc < 0 ? rc : apply(l, slot, STK_EV_HOLD, false, err);
}

static bool is_adopted(struct stk_live *l, stk_job_number number)
{
    const struct stk_entry *e = stk_entries_find(&l->entries, number);
    json_t *spec = e ? stk_live_spec(l, e->rec.spec) : NULL;
    bool adopted = json_object_get(spec, "adopt") != NULL;

    json_decref(spec);
    return adopted;
}

/* Its user sent it to the engine so that it is not started a second time. */
static bool starts_once(struct stk_live *l, stk_job_number number)
{
    const struct stk_entry *e = stk_entries_find(&l->entries, number);
    json_t *spec = e ? stk_live_spec(l, e->rec.spec) : NULL;
    bool once =
        json_object_get(spec, "imported") && json_is_false(json_object_get(spec, "requeue"));

    json_decref(spec);
    return once;
}

/* It makes room already, and says on its signal that it has saved: it need not be waited for. Only
 * the engine hears of it; should that be lost, the wait is longer and nothing else. */
static int no_more_waiting(struct stk_live *l, uint32_t slot, const struct stk_job *j)
{
    const struct stk_stop stop = {
        .job = {slot}, .lease = j->lease, .cause = STK_CAUSE_EVICTED, .suspend = false};

    l->cfg.engine->ops->stop(l->cfg.engine, l->now, &stop);
    return 0;
}

static int do_requeue(struct stk_live *l, const char *user, uint32_t slot, struct stk_err *err)
{
    const struct stk_job *j = &stk_core_state(l->core)->jobs[slot];
    char text[96];
    int rc;

    if (j->state == STK_JOB_STOPPING && !j->cancel_wanted)
        return no_more_waiting(l, slot, j);
    if (!has_gpus(j) && !j->slept)
        return stk_err_set(err, -EPROTO, "it does not run: it is %s", stk_job_state_name(j->state));
    if (is_adopted(l, j->number))
        return stk_err_set(err, -EPROTO,
                           "it was started by hand: once stopped it could not be started again; to "
                           "end it: stoker cancel %u",
                           j->number);
    if (starts_once(l, j->number))
        return stk_err_set(err, -EPROTO,
                           "it was sent with --no-requeue, or has no script: once stopped it could "
                           "not be started again; to end it: stoker cancel %u",
                           j->number);
    rc = apply(l, slot, STK_EV_EVICT, false, err);
    (void)snprintf(text, sizeof(text), "requeued by %s", user);
    if (rc == 0)
        stk_live_blame(l, j->number, text);
    return rc;
}

static int do_signal(struct stk_live *l, uint32_t slot, const json_t *args, struct stk_err *err)
{
    const struct stk_job *j = &stk_core_state(l->core)->jobs[slot];
    json_int_t sig = json_integer_value(json_object_get(args, "signal"));

    if (sig < 1 || sig > 64)
        return stk_err_set(err, -EINVAL, "signal must be a number from 1 to 64");
    if (!l->cfg.signal || j->state != STK_JOB_RUNNING)
        return stk_err_set(err, -EPROTO, "it does not run");
    return l->cfg.signal(l->cfg.ctx, j->number, (int)sig, err);
}

static int do_verb(struct stk_live *l, struct stk_live_request *r, uint32_t slot,
                   struct stk_err *err)
{
    stk_job_number number = stk_core_state(l->core)->jobs[slot].number, last;
    stk_time next;

    if (strcmp(r->verb, "cancel") == 0)
        return apply(l, slot, STK_EV_CANCEL, false, err);
    if (stk_live_schedule(l, number, &next, &last))
        return stk_err_set(err, -EPROTO,
                           "it is a schedule, which submits jobs by the clock; to stop that: "
                           "stoker cancel %u",
                           number);
    if (strcmp(r->verb, "hold") == 0)
        return do_hold(l, slot, err);
    if (strcmp(r->verb, "release") == 0 || strcmp(r->verb, "resume") == 0)
        return do_release(l, slot, err);
    if (strcmp(r->verb, "suspend") == 0)
        return do_suspend(l, slot, err);
    if (strcmp(r->verb, "requeue") == 0)
        return do_requeue(l, r->who.user, slot, err);
    if (strcmp(r->verb, "update") == 0)
        return stk_live_update(l, r, slot, err);
    return do_signal(l, slot, r->body, err);
}

int stk_live_see_cause(void *ctx, const struct stk_record *r)
{
    *(enum stk_cause *)ctx = r->cause;
    return 0;
}

static int act_on(struct stk_live *l, struct stk_live_request *r, stk_job_number number,
                  struct stk_err *err)
{
    const struct stk_entry *e = stk_entries_find(&l->entries, number);
    enum stk_cause cause = STK_CAUSE_NONE;
    char how[48];
    uint32_t slot;

    if (!e) {
        if (stk_store_job_get(l->cfg.store, number, stk_live_see_cause, &cause, NULL) == 0) {
            stk_end_already(cause, how, sizeof(how));
            return stk_err_set(err, -EALREADY, "job %u %s", number, how);
        }
        return stk_err_set(err, -ENOENT, "there is no job %u", number);
    }
    if (!stk_live_may(&r->who, e->rec.uid))
        return stk_err_set(err, -EACCES, "job %u belongs to %s", number, e->rec.user);
    slot = stk_core_find(l->core, number);
    if (slot == STK_NONE)
        return stk_err_set(err, -EALREADY, "job %u has already ended", number);
    return do_verb(l, r, slot, err);
}

static int status_of(int rc)
{
    switch (rc) {
    case 0:
        return 200;
    case -ENOENT:
        return 404;
    case -EACCES:
    case -EPERM:
        return 403;
    case -EBADMSG:
        return 400;
    case -EINVAL:
        return 422;
    default:
        return 409;
    }
}

/* Acts on one of them; its row of the results. -ENOMEM. */
static int act_next(struct stk_live *l, struct stk_live_request *r, stk_job_number number,
                    struct stk_err *err)
{
    const struct stk_entry *e = stk_entries_find(&l->entries, number);
    stk_job_number array = e ? e->rec.array : 0;
    uint32_t index = e ? e->rec.array_index : 0;
    struct stk_err why = {{0}};
    int rc = act_on(l, r, number, &why);
    json_t *one = json_pack("{s:I, s:b}", "id", (json_int_t)number, "ok", rc == 0);

    if (array)
        (void)json_object_update_new(one, json_pack("{s:I, s:I}", "array_id", (json_int_t)array,
                                                    "array_index", (json_int_t)index));
    if (rc == -ENOMEM) {
        json_decref(one);
        return stk_err_set(err, rc, "%.200s", why.text);
    }
    if (rc < 0) {
        (void)json_object_set_new(one, "error", json_string(why.text));
        r->status = status_of(rc);
        r->denied = rc == -EPERM;
    }
    return json_array_append_new(r->results, one) < 0 ? stk_err_set(err, -ENOMEM, "out of memory")
                                                      : 0;
}

static const char *refusal_code(const struct stk_live_request *r)
{
    if (r->denied)
        return "not_allowed";
    switch (r->status) {
    case 400:
        return "bad_job";
    case 403:
        return "not_yours";
    case 404:
        return "no_such_job";
    case 422:
        return "unprocessable";
    default:
        return "not_possible";
    }
}

int stk_live_do_act(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    int rc;

    if (!r->results) {
        r->status = 200;
        r->results = json_array();
    }
    while (r->acted < r->n_numbers) {
        rc = act_next(l, r, r->numbers[r->acted++], err);
        if (rc < 0)
            return rc;
        if (r->acted < r->n_numbers && stk_live_late(l)) {
            rc = stk_live_settle(l, r, err); /* ends are seen from now on */
            return rc < 0 ? rc : 1;
        }
    }
    if (r->n_numbers == 1 && r->status != 200) {
        const char *text =
            json_string_value(json_object_get(json_array_get(r->results, 0), "error"));

        r->answer = stk_live_error(refusal_code(r), text ? text : "");
        return 0;
    }
    r->status = 200;
    r->answer = json_pack("{s:O}", "results", r->results);
    return 0;
}

/* ---- GPUs that take no new jobs ---- */

static int keep_drained(struct stk_live *l, uint32_t node, struct stk_err *err)
{
    char key[64], value[32];

    (void)snprintf(key, sizeof(key), "drained.%u", node);
    (void)snprintf(value, sizeof(value), "%llx", (unsigned long long)l->off[node].drained);
    return stk_store_meta_set(l->cfg.store, key, value, strlen(value), err);
}

int stk_live_close_node(struct stk_live *l, uint32_t node, struct stk_err *err)
{
    int rc = stk_live_begin(l, err);

    if (rc < 0)
        return rc;
    l->off[node].drained |= stk_core_state(l->core)->nodes[node].mask_all;
    l->off_changed = true;
    return keep_drained(l, node, err);
}

int stk_live_do_drain(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    struct stk_live_off *o = &l->off[r->node];
    int rc;

    if (r->who.role < STK_ROLE_OPERATOR) {
        r->status = 403;
        r->answer = stk_live_error("not_allowed", "draining needs the role operator");
        return 0;
    }
    rc = stk_live_begin(l, err);
    if (rc < 0)
        return rc;
    o->drained = r->on ? o->drained | r->mask : o->drained & ~r->mask;
    l->off_changed = true;
    if (!r->on && l->cfg.gpus_resumed)
        l->cfg.gpus_resumed(l->cfg.ctx, r->node, r->mask);
    r->status = 200;
    r->answer = json_pack("{s:I}", "drained", (json_int_t)o->drained);
    return keep_drained(l, r->node, err);
}

void stk_live_gpus_off(struct stk_live *l, uint32_t node, uint64_t mask, uint64_t last, bool shut)
{
    struct stk_live_off *o = node < l->cfg.core.n_nodes ? &l->off[node] : NULL;

    l->gpus_seen = true;
    if (!o || (o->unusable == mask && o->last == last && o->shut == shut))
        return;
    o->unusable = mask;
    o->last = last;
    o->shut = shut;
    l->off_changed = true;
}

uint64_t stk_live_drained(const struct stk_live *l, uint32_t node)
{
    return node < l->cfg.core.n_nodes ? l->off[node].drained : 0;
}
