/* SPDX-License-Identifier: Apache-2.0 */
/* requests.c - requests wait here for the next turn, and their answers for its commit. */
#include <stdlib.h>
#include <string.h>

#include "core/defrag.h"
#include "core/settings.h"
#include "core/state.h"
#include "live/state.h"

#define SLICE_NS UINT64_C(10000000) /* that requests are worked on before the loop polls again */

json_t *stk_live_error(const char *code, const char *message)
{
    return json_pack("{s:{s:s, s:s}}", "error", "code", code, "message", message);
}

bool stk_live_late(const struct stk_live *l)
{
    return stk_live_ns() - l->slice_ns > (l->cfg.slice_ns ? l->cfg.slice_ns : SLICE_NS);
}

static void request_free(struct stk_live_request *r)
{
    json_decref(r->body);
    json_decref(r->answer);
    json_decref(r->made);
    json_decref(r->results);
    stk_many_done(&r->jobs);
    stk_live_taking_free(r->taking);
    free(r->key);
    free(r->numbers);
    free(r);
}

static struct stk_live_request *request_new(const struct stk_asker *by, enum stk_request_kind kind)
{
    struct stk_live_request *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->kind = kind;
    r->who = by->who;
    r->reply = by->reply;
    r->ctx = by->ctx;
    return r;
}

void stk_live_enqueue(struct stk_live *l, struct stk_live_request *take)
{
    *l->last = take;
    l->last = &take->next;
}

static int enqueue(struct stk_live *l, struct stk_live_request *r)
{
    stk_live_enqueue(l, r);
    return 0;
}

int stk_live_submit(struct stk_live *l, const struct stk_asker *by, struct stk_many *take_jobs,
                    const char *key, bool dry_run)
{
    struct stk_live_request *r = request_new(by, STK_REQ_SUBMIT);

    if (!r) {
        stk_many_done(take_jobs);
        return -ENOMEM;
    }
    r->jobs = *take_jobs;
    *take_jobs = (struct stk_many){0};
    r->dry_run = dry_run;
    r->key = key ? strdup(key) : NULL;
    if (key && !r->key) {
        request_free(r);
        return -ENOMEM;
    }
    return enqueue(l, r);
}

size_t stk_live_held(const struct stk_live *l, uint32_t uid)
{
    const struct stk_live_request *const lists[] = {l->first, l->taken};
    size_t n = 0;

    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        for (const struct stk_live_request *r = lists[i]; r; r = r->next)
            n += uid == STK_NONE || r->who.uid == uid ? r->jobs.bytes : 0;
    return n;
}

int stk_live_act(struct stk_live *l, const struct stk_asker *by, const char *verb,
                 const stk_job_number *numbers, uint32_t n, json_t *take_args)
{
    static const char *const verbs[] = {"cancel", "hold",    "release", "suspend",
                                        "resume", "requeue", "signal",  "update"};
    struct stk_live_request *r = request_new(by, STK_REQ_ACT);

    if (r) {
        r->body = take_args;
        r->numbers = malloc((n ? n : 1) * sizeof(*numbers));
    } else {
        json_decref(take_args);
    }
    for (size_t i = 0; r && i < sizeof(verbs) / sizeof(*verbs); i++)
        if (strcmp(verb, verbs[i]) == 0)
            r->verb = verbs[i];
    if (!r || !r->numbers || !r->verb) {
        int rc = r && r->numbers ? -EINVAL : -ENOMEM;

        if (r)
            request_free(r);
        return rc;
    }
    memcpy(r->numbers, numbers, n * sizeof(*numbers));
    r->n_numbers = n;
    return enqueue(l, r);
}

int stk_live_drain(struct stk_live *l, const struct stk_asker *by, uint32_t node, uint64_t mask,
                   bool on)
{
    struct stk_live_request *r;

    if (node >= l->cfg.core.n_nodes)
        return -ENOENT;
    r = request_new(by, STK_REQ_DRAIN);
    if (!r)
        return -ENOMEM;
    r->node = node;
    r->mask = mask;
    r->on = on;
    return enqueue(l, r);
}

int stk_live_reserve(struct stk_live *l, const struct stk_asker *by, bool on, json_t *take_body)
{
    struct stk_live_request *r = request_new(by, STK_REQ_RESERVE);

    if (!r) {
        json_decref(take_body);
        return -ENOMEM;
    }
    r->body = take_body;
    r->on = on;
    return enqueue(l, r);
}

int stk_live_adopt(struct stk_live *l, const struct stk_asker *by,
                   const struct stk_live_adoption *a)
{
    struct stk_live_request *r = request_new(by, STK_REQ_ADOPT);

    if (!r) {
        json_decref(a->job);
        return -ENOMEM;
    }
    r->adopt = *a;
    r->body = a->job;
    return enqueue(l, r);
}

int stk_live_bring(struct stk_live *l, const struct stk_asker *by, const struct stk_who *owner,
                   json_t *take_job, const char *key, json_t *take_made)
{
    struct stk_live_request *r = request_new(by, STK_REQ_BRING);
    char *copy = r ? strdup(key) : NULL;

    if (!copy) {
        free(r);
        json_decref(take_job);
        json_decref(take_made);
        return -ENOMEM;
    }
    r->adopt.owner = *owner;
    r->body = take_job;
    r->made = take_made;
    r->key = copy;
    return enqueue(l, r);
}

int stk_live_quota(struct stk_live *l, const struct stk_asker *by, const char *tenant,
                   json_t *take_numbers)
{
    uint32_t row = l->cfg.teams ? stk_teams_find(l->cfg.teams, tenant) : STK_NONE;
    struct stk_live_request *r = row != STK_NONE ? request_new(by, STK_REQ_QUOTA) : NULL;

    if (!r) {
        json_decref(take_numbers);
        return row == STK_NONE ? -ENOENT : -ENOMEM;
    }
    r->node = row;
    r->body = take_numbers;
    return enqueue(l, r);
}

int stk_live_rule(struct stk_live *l, const struct stk_asker *by, json_t *take_rule, bool on)
{
    struct stk_live_request *r = request_new(by, STK_REQ_RULE);

    if (!r) {
        json_decref(take_rule);
        return -ENOMEM;
    }
    r->body = take_rule;
    r->on = on;
    return enqueue(l, r);
}

static int apply_off(struct stk_live *l, struct stk_loop *loop, stk_time now, struct stk_err *err)
{
    int rc = 0;

    l->off_changed = false;
    for (uint32_t i = 0; rc == 0 && i < l->cfg.core.n_nodes; i++) {
        struct stk_live_off *o = &l->off[i];
        const uint64_t all = stk_core_state(l->core)->nodes[i].mask_all;
        uint64_t mask = o->drained | o->unusable;
        const struct stk_event ev = {
            .at = now,
            .type = STK_EV_GPUS_OFF,
            .u.off = {{i}, mask, o->last, o->shut || (all && (o->drained & all) == all)}};

        if (mask == o->applied && o->last == o->applied_last && ev.u.off.closed == o->closed)
            continue;
        rc = stk_loop_apply(loop, &ev, err);
        if (rc == 0) {
            o->applied = mask;
            o->applied_last = o->last;
            o->closed = ev.u.off.closed;
        }
    }
    return rc;
}

/* What its steps say of how long it will run becomes what is expected of it, within its limit. */
static int apply_steps(struct stk_live *l, struct stk_loop *loop, struct stk_entry *e,
                       uint32_t slot, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->core);
    const struct stk_job *j = &s->jobs[slot];
    const struct stk_terms *t = &s->terms[slot];
    const stk_time limit = t->limit ? t->limit : STK_MAX_DURATION,
                   ran = stk_job_served(j, l->now) - j->lost, least = ran + STK_SECOND;
    stk_time total = e->steps.total > least ? e->steps.total : least;
    struct stk_event ev = {.at = l->now, .type = STK_EV_UPDATE, .job = {slot}};

    total = total < limit ? total : limit;
    e->steps.told = true;
    e->steps.told_at = ran;
    ev.u.update.priority = j->priority - stk_settings_shift(s, slot);
    ev.u.update.estimate = total;
    ev.u.update.asked = t->asked;
    ev.u.update.limit = limit;
    ev.u.update.expected = true;
    return total == j->estimate ? 0 : stk_loop_apply(loop, &ev, err);
}

/* Jobs that reported a checkpoint have less at stake from now on; of those that reported steps it
 * is known when they will end. */
static int apply_reports(struct stk_live *l, struct stk_loop *loop, stk_time now,
                         struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->core);
    int rc = 0;

    for (size_t i = 0; i < l->n_saved && rc == 0; i++) {
        struct stk_entry *e = stk_entries_find(&l->entries, l->saved[i]);
        uint32_t slot = stk_core_find(l->core, l->saved[i]);
        const struct stk_job *j = slot != STK_NONE ? &s->jobs[slot] : NULL;
        const bool saved = e && e->saved, stepped = e && e->stepped;

        if (e)
            e->saved = e->stepped = false;
        if (stepped && j && j->state == STK_JOB_RUNNING)
            rc = apply_steps(l, loop, e, slot, err);
        if (rc == 0 && saved && j && j->lease &&
            (j->state == STK_JOB_RUNNING || j->state == STK_JOB_STOPPING)) {
            const struct stk_event ev = {
                .at = now, .type = STK_EV_CHECKPOINT, .job = {slot}, .lease = j->lease};

            rc = stk_loop_apply(loop, &ev, err);
        }
    }
    l->n_saved = 0;
    return rc;
}

static int apply_move(struct stk_live *l, struct stk_loop *loop, uint32_t job, uint32_t for_job,
                      struct stk_err *err)
{
    const struct stk_event ev = {.at = l->now,
                                 .type = STK_EV_EVICT,
                                 .job = {job},
                                 .lease = stk_core_state(l->core)->jobs[job].lease,
                                 .u.evict = {.for_job = {for_job}, .moved = true}};

    return stk_loop_apply(loop, &ev, err);
}

/* The node is closed first, so that nobody comes back to it. */
static int apply_empty(struct stk_live *l, struct stk_loop *loop, stk_time now, struct stk_err *err)
{
    const uint32_t node = l->empty - 1;
    struct stk_empty_plan p;
    int rc = 0;

    l->empty = 0;
    if (!stk_core_empty(l->core, now, node, &p) || !p.possible)
        return 0;
    rc = stk_live_close_node(l, node, err);
    rc = rc < 0 ? rc : apply_off(l, loop, now, err);
    for (uint32_t i = 0; i < p.n && rc == 0; i++)
        rc = apply_move(l, loop, p.move[i], STK_NONE, err);
    return rc;
}

/* An operator asked for it. By now there may be another plan, or none. */
static int apply_moves(struct stk_live *l, struct stk_loop *loop, stk_time now, struct stk_err *err)
{
    struct stk_defrag_plan p;
    int rc = 0;

    l->defrag = false;
    if (l->empty)
        return apply_empty(l, loop, now, err);
    if (!stk_core_defrag(l->core, now, &p))
        return 0;
    for (uint32_t i = 0; i < p.n && rc == 0; i++)
        rc = apply_move(l, loop, p.moves[i], p.for_job, err);
    return rc;
}

static int do_one(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    if (r->kind == STK_REQ_SUBMIT)
        return stk_live_do_submit(l, r, err);
    if (r->kind == STK_REQ_ACT)
        return stk_live_do_act(l, r, err);
    if (r->kind == STK_REQ_ADOPT)
        return stk_live_do_adopt(l, r, err);
    if (r->kind == STK_REQ_BRING)
        return stk_live_do_bring(l, r, err);
    if (r->kind == STK_REQ_QUOTA)
        return stk_live_do_quota(l, r, err);
    if (r->kind == STK_REQ_RESERVE)
        return stk_live_do_reserve(l, r, err);
    if (r->kind == STK_REQ_RULE)
        return stk_live_do_rule(l, r, err);
    return stk_live_do_drain(l, r, err);
}

/* Takes the next request out of the queue: the oldest, but a user whose request kept all others
 * waiting comes after them until a turn has served one of them. What one user asks for is done in
 * its order. */
static struct stk_live_request *take_next(struct stk_live *l)
{
    struct stk_live_request **at = &l->first, *r;

    while (*at && (*at)->who.uid == l->long_uid)
        at = &(*at)->next;
    if (!*at)
        at = &l->first;
    r = *at;
    *at = r->next;
    if (l->last == &r->next)
        l->last = at;
    r->next = l->taken;
    l->taken = r;
    return r;
}

int stk_live_settle(struct stk_live *l, struct stk_live_request *r, struct stk_err *err)
{
    struct stk_live_request **at = &l->taken;
    const int rc = stk_live_commit(l, err);

    if (rc < 0)
        return rc;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    stk_live_answer(l, 0, NULL);
    l->taken = r;
    r->next = NULL;
    r->durable = false;
    r->settled = true;
    r->spec_of = 0; /* before the next slice the description that was made may be pruned */
    r->kept = r->acted;
    return 0;
}

/* The request that was begun goes on. */
static int go_on(struct stk_live *l, struct stk_err *err)
{
    struct stk_live_request *r = l->open;
    int rc = do_one(l, r, err);

    if (rc > 0)
        return -EINPROGRESS;
    l->open = NULL;
    l->hidden = 0;
    l->long_uid = r->who.uid;
    l->full = true; /* it is answered before another one begins */
    return rc;
}

static int take_requests(struct stk_live *l, struct stk_err *err)
{
    bool others = false;
    int rc = 0;

    while (l->first && rc == 0 && !l->full) {
        struct stk_live_request *r = take_next(l);
        const stk_job_number next = stk_core_state(l->core)->next_number;

        stk_live_show(l, &l->shown);
        others |= r->who.uid != l->long_uid;
        rc = do_one(l, r, err);
        if (rc > 0) {
            l->open = r;
            l->hidden = r->kind == STK_REQ_SUBMIT ? next : 0;
            return -EINPROGRESS;
        }
        l->full = stk_live_late(l);
    }
    if (others)
        l->long_uid = STK_NONE;
    return rc;
}

int stk_live_feed(void *ctx, struct stk_loop *loop, stk_time now, struct stk_err *err)
{
    struct stk_live *l = ctx;
    int rc = l->open ? go_on(l, err) : 0;

    if (rc == 0 && l->sets.look)
        rc = stk_live_sets_renew(l, err);
    rc = rc < 0 ? rc : take_requests(l, err);
    if (rc == 0 && l->cron_wake <= stk_live_wall(l))
        rc = stk_live_cron_fire(l, err);
    if (rc == 0 && l->rules_wake <= stk_live_wall(l))
        rc = stk_live_rules_step(l, err);
    if (rc == 0 && stk_live_waiting_due(l, now))
        rc = stk_live_waiting_apply(l, err);
    if (rc == 0 && l->defrag)
        rc = apply_moves(l, loop, now, err);
    if (rc == 0 && l->n_saved > 0)
        rc = apply_reports(l, loop, now, err);
    if (rc == 0 && (l->reserve_look || stk_live_reserve_wake(l) <= stk_live_wall(l)))
        rc = stk_live_reserve_go_on(l, err);
    if (rc == 0 && l->off_changed)
        rc = apply_off(l, loop, now, err);
    return rc;
}

static void fail_one(struct stk_live_request *r, int rc, const char *why)
{
    const char *code = "cannot_write";
    struct stk_err text;

    json_decref(r->answer);
    r->status = 507;
    if (rc == -ENOMEM) {
        r->status = 503;
        code = "no_memory";
    } else if (rc == -ECANCELED) {
        r->status = 503;
        code = "stopping";
    }
    (void)stk_err_set(&text, rc, "%u of %u jobs were acted on, then: %.200s", r->kept, r->n_numbers,
                      why);
    r->answer = stk_live_error(code, r->kept > 0 ? text.text : why);
}

void stk_live_answer(struct stk_live *l, int rc, const struct stk_err *err)
{
    struct stk_live_request *r = l->taken, *order = NULL;

    l->taken = NULL;
    while (r) { /* oldest first */
        struct stk_live_request *next = r->next;

        r->next = order;
        order = r;
        r = next;
    }
    while (order) {
        struct stk_live_request *next = order->next;

        if (rc < 0 && !order->durable) {
            fail_one(order, rc, err ? err->text : "");
            stk_live_cron_again(l, order->schedule);
        }
        order->reply(order->ctx, order->status, order->answer);
        order->answer = NULL;
        request_free(order);
        order = next;
    }
}
