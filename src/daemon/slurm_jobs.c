/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_jobs.c - users' own jobs in Slurm, as the engine tells of them: taken in for their users,
 * held and ended as they are there. What is changed: slurm_changes.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/span.h"
#include "core/state.h"
#include "daemon/daemon.h"
#include "engine/slurm/slurm.h"
#include "sys/user.h"

const struct stk_who stk_daemon_slurm_who = {
    .uid = STK_NOBODY, .gid = STK_NOBODY, .role = STK_ROLE_ADMIN, .user = "Slurm"};

static void no_reply(void *ctx, int status, json_t *take_body)
{
    (void)ctx;
    if (status >= 400 && status != 409 && status != 404) {
        char *s = json_dumps(take_body, JSON_COMPACT);

        stk_log(STK_LOG_WARN, "a job of Slurm's could not be changed: %s", s ? s : "");
        free(s);
    }
    json_decref(take_body);
}

void stk_daemon_slurm_act(struct stk_daemon *d, const char *verb, const stk_job_number *numbers,
                          uint32_t n, json_t *take_args)
{
    const struct stk_asker by = {.who = stk_daemon_slurm_who, .reply = no_reply};

    (void)stk_live_act(d->live, &by, verb, numbers, n, take_args);
}

/* ---- taken in ---- */

struct bringing {
    struct stk_daemon *d;
    json_t *made;
};

/* The elements that it had when it was taken in, should it have been before. */
static void recall(struct stk_daemon *d, stk_job_number number, json_t *made)
{
    const struct stk_entry *e = stk_live_entry(d->live, number);
    json_t *spec = e ? stk_live_spec(d->live, e->rec.spec) : NULL;
    json_t *tasks = json_object_get(json_object_get(spec, "imported"), "tasks");

    if (tasks)
        (void)json_object_set(made, "tasks", tasks);
    json_decref(spec);
}

static void on_reply(void *ctx, int status, json_t *take_body)
{
    struct bringing *b = ctx;
    const char *why =
        json_string_value(json_object_get(json_object_get(take_body, "error"), "message"));
    stk_job_number first = (stk_job_number)json_integer_value(json_object_get(take_body, "id"));

    if (json_is_true(json_object_get(take_body, "repeated")))
        recall(b->d, first, b->made);
    if (!b->d->stopping)
        stk_slurm_brought(b->d->engine, b->made, first,
                          (uint32_t)json_integer_value(json_object_get(take_body, "count")),
                          status < 300 ? NULL
                          : why        ? why
                                       : "no reason");
    json_decref(b->made);
    json_decref(take_body);
    free(b);
}

void stk_daemon_slurm_bring(void *ctx, uint32_t uid, json_t *take_job, const char *key,
                            json_t *take_made)
{
    struct stk_daemon *d = ctx;
    struct bringing *b = malloc(sizeof(*b));
    const struct stk_asker by = {.who = stk_daemon_slurm_who, .reply = on_reply, .ctx = b};
    struct stk_who owner = {.uid = uid};
    const char *tenant;
    struct stk_user u;

    if (!b || stk_user_by_id(uid, &u) < 0) {
        stk_slurm_brought(d->engine, take_made, 0, 0,
                          b ? "its user is not known on the machine of stoker" : "out of memory");
        free(b);
        json_decref(take_job);
        json_decref(take_made);
        return;
    }
    tenant = stk_daemon_slurm_map(d, take_job);
    if (tenant)
        (void)json_object_set_new(take_made, "tenant", json_string(tenant));
    owner.gid = u.gid;
    (void)snprintf(owner.user, sizeof(owner.user), "%s", u.name);
    *b = (struct bringing){.d = d, .made = json_incref(take_made)};
    if (stk_live_bring(d->live, &by, &owner, take_job, key, take_made) < 0) {
        stk_slurm_brought(d->engine, b->made, 0, 0, "out of memory");
        json_decref(b->made);
        free(b);
    }
}

/* ---- while they wait ---- */

enum stk_job_state stk_daemon_slurm_state(struct stk_daemon *d, stk_job_number number)
{
    const struct stk_state *s = stk_core_state(stk_live_core(d->live));
    uint32_t slot = stk_core_find(stk_live_core(d->live), number);

    return slot == STK_NONE ? STK_JOB_NONE : (enum stk_job_state)s->jobs[slot].state;
}

bool stk_daemon_slurm_waits(struct stk_daemon *d, stk_job_number number)
{
    enum stk_job_state state = stk_daemon_slurm_state(d, number);

    return state == STK_JOB_WAITING || state == STK_JOB_BLOCKED || state == STK_JOB_HELD;
}

void stk_daemon_slurm_hold(void *ctx, const stk_job_number *numbers, uint32_t n, const char *why)
{
    struct stk_daemon *d = ctx;

    for (uint32_t i = 0; i < n; i++) {
        enum stk_job_state state = stk_daemon_slurm_state(d, numbers[i]);

        stk_live_warn(d->live, numbers[i], STK_WARN_ENGINE, why);
        if (why && (state == STK_JOB_WAITING || state == STK_JOB_BLOCKED ||
                    state == STK_JOB_STOPPING || state == STK_JOB_PLACED ||
                    state == STK_JOB_RUNNING)) /* the last three: it has ended, we hear of it */
            stk_daemon_slurm_act(d, "hold", &numbers[i], 1, NULL);
        else if (!why && state == STK_JOB_HELD)
            stk_daemon_slurm_act(d, "release", &numbers[i], 1, NULL);
    }
}

void stk_daemon_slurm_rest(void *ctx, stk_job_number number, int64_t until, const char *sentence)
{
    struct stk_daemon *d = ctx;

    stk_live_warn(d->live, number, STK_WARN_ENGINE, sentence);
    if (until >= 0)
        stk_daemon_slurm_act(
            d, "update", &number, 1,
            json_pack("{s:o}", "begin", until > 0 ? json_integer(until) : json_null()));
}

void stk_daemon_slurm_gone(void *ctx, stk_job_number number, const char *sentence)
{
    struct stk_daemon *d = ctx;

    if (!stk_live_entry(d->live, number))
        return;
    stk_live_note(d->live, number, sentence);
    stk_daemon_slurm_act(d, "cancel", &number, 1, NULL);
}

int64_t stk_daemon_slurm_limit(void *ctx, stk_job_number number)
{
    struct stk_daemon *d = ctx;
    const struct stk_entry *e = stk_live_entry(d->live, number);
    json_t *spec = e ? stk_live_spec(d->live, e->rec.spec) : NULL;
    int64_t s = json_integer_value(json_object_get(spec, "time_limit_s"));

    json_decref(spec);
    return s;
}

/* Slurm has it, and is told of another limit as an administrator's: then it looks at none of its
 * own any more. */
static bool is_there(struct stk_daemon *d, stk_job_number number)
{
    const struct stk_entry *e = stk_live_entry(d->live, number);
    json_t *spec = e ? stk_live_spec(d->live, e->rec.spec) : NULL;
    bool there = json_object_get(spec, "imported") || stk_slurm_of(d->engine, number);

    json_decref(spec);
    return there;
}

int stk_daemon_slurm_may_last(void *ctx, const struct stk_live_last *ask, struct stk_err *err)
{
    struct stk_daemon *d = ctx;
    int64_t most = stk_slurm_longest(d->engine, ask->pool);
    bool none =
        ask->was == 0 && ask->number && stk_daemon_slurm_state(d, ask->number) == STK_JOB_RUNNING;
    char text[STK_SPAN_SIZE];

    if (ask->is > 0 && (none || ask->is <= ask->was)) /* shorter */
        return 0;
    if (most > 0 && (ask->is > most * STK_SECOND || (ask->is == 0 && ask->number)))
        return stk_err_set(err, -EINVAL,
                           "time_limit_s: a job may run for at most %s in Slurm's partition %.60s "
                           "(MaxTime); ask for less, or ask an operator",
                           stk_span(most, text, sizeof(text)), ask->pool);
    if (ask->number && stk_slurm_enforces(d->engine, "limits") && is_there(d, ask->number))
        return stk_err_set(err, -EINVAL,
                           "time_limit_s: Slurm enforces limits of accounts and QOS here, which it "
                           "would not look at: only an operator can make a job longer that Slurm "
                           "has already");
    return 0;
}

void stk_daemon_slurm_know(struct stk_daemon *d)
{
    stk_job_number array = 0;

    for (const struct stk_entry *e = stk_live_next(d->live, 0); e;
         e = stk_live_next(d->live, e->number)) {
        json_t *spec, *made;

        if (e->rec.array && e->rec.array == array)
            continue; /* the same */
        array = e->rec.array;
        spec = stk_live_spec(d->live, e->rec.spec);
        made = json_object_get(spec, "imported");
        if (made)
            stk_slurm_know(d->engine, array ? array : e->number, made);
        json_decref(spec);
    }
}

void stk_daemon_slurm_missing(void *ctx)
{
    struct stk_daemon *d = ctx;

    for (const struct stk_entry *e = stk_live_next(d->live, 0); e;
         e = stk_live_next(d->live, e->number)) {
        json_t *spec, *made;

        if (!stk_daemon_slurm_waits(d, e->number))
            continue;
        spec = stk_live_spec(d->live, e->rec.spec);
        made = json_object_get(spec, "imported");
        if (made && !stk_slurm_has(d->engine, e->number, made))
            stk_daemon_slurm_gone(d, e->number, "is gone from Slurm");
        json_decref(spec);
    }
}
