/* SPDX-License-Identifier: Apache-2.0 */
/* requests.c - requests wait here for the next turn, and their answers for its commit. */
#include <stdlib.h>
#include <string.h>

#include "core/defrag.h"
#include "core/state.h"
#include "live/state.h"

json_t *stk_live_error(const char *code, const char *message)
{
    return json_pack("{s:{s:s, s:s}}", "error", "code", code, "message", message);
}

static void request_free(struct stk_live_request *r)
{
    json_decref(r->body);
    json_decref(r->answer);
    json_decref(r->made);
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

static int enqueue(struct stk_live *l, struct stk_live_request *r)
{
    *l->last = r;
    l->last = &r->next;
    return 0;
}

int stk_live_submit(struct stk_live *l, const struct stk_asker *by, json_t *take_jobs,
                    const char *key, bool dry_run)
{
    struct stk_live_request *r = request_new(by, STK_REQ_SUBMIT);

    if (!r) {
        json_decref(take_jobs);
        return -ENOMEM;
    }
    r->body = take_jobs;
    r->dry_run = dry_run;
    r->key = key ? strdup(key) : NULL;
    if (key && !r->key) {
        request_free(r);
        return -ENOMEM;
    }
    return enqueue(l, r);
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

/* Jobs that reported a checkpoint: from now on they have less at stake. */
static int apply_saved(struct stk_live *l, struct stk_loop *loop, stk_time now, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->core);
    int rc = 0;

    for (size_t i = 0; i < l->n_saved && rc == 0; i++) {
        struct stk_entry *e = stk_entries_find(&l->entries, l->saved[i]);
        uint32_t slot = stk_core_find(l->core, l->saved[i]);
        const struct stk_job *j = slot != STK_NONE ? &s->jobs[slot] : NULL;

        if (e)
            e->saved = false;
        if (j && j->lease && (j->state == STK_JOB_RUNNING || j->state == STK_JOB_STOPPING)) {
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

int stk_live_feed(void *ctx, struct stk_loop *loop, stk_time now, struct stk_err *err)
{
    struct stk_live *l = ctx;
    int rc = l->sets.look ? stk_live_sets_renew(l, err) : 0;

    while (l->first && rc == 0) {
        struct stk_live_request *r = l->first;

        l->first = r->next;
        if (!l->first)
            l->last = &l->first;
        r->next = l->taken;
        l->taken = r;
        rc = do_one(l, r, err);
    }
    if (rc == 0 && l->cron_wake <= now)
        rc = stk_live_cron_fire(l, err);
    if (rc == 0 && l->rules_wake <= now)
        rc = stk_live_rules_step(l, err);
    if (rc == 0 && stk_live_waiting_due(l, now))
        rc = stk_live_waiting_apply(l, err);
    if (rc == 0 && l->defrag)
        rc = apply_moves(l, loop, now, err);
    if (rc == 0 && l->n_saved > 0)
        rc = apply_saved(l, loop, now, err);
    if (rc == 0 && (l->reserve_look || stk_live_reserve_wake(l) <= now))
        rc = stk_live_reserve_go_on(l, err);
    if (rc == 0 && l->off_changed)
        rc = apply_off(l, loop, now, err);
    return rc;
}

static void fail_one(struct stk_live_request *r, int rc, const struct stk_err *err)
{
    const char *code = "cannot_write";

    json_decref(r->answer);
    r->status = 507;
    if (rc == -ENOMEM) {
        r->status = 500;
        code = "no_memory";
    } else if (rc == -ECANCELED) {
        r->status = 503;
        code = "stopping";
    }
    r->answer = stk_live_error(code, err->text);
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

        if (rc < 0 && !order->durable)
            fail_one(order, rc, err);
        order->reply(order->ctx, order->status, order->answer);
        order->answer = NULL;
        request_free(order);
        order = next;
    }
}
