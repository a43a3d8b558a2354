/* SPDX-License-Identifier: Apache-2.0 */
/* update.c - another time limit, priority or name for a job that has not started. The description
 * it will be started with is made anew from the old one; jobs of one request that share a
 * description share the new one too. What the scheduler goes by is an event of the journal. */
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "live/state.h"

static const char *const keys[] = {"time_limit_s", "priority", "name"};
#define N_KEYS (sizeof(keys) / sizeof(*keys))

/* The members of a request that are to be changed; each is checked as in a description. */
static int read_changes(const json_t *body, json_t **ret, struct stk_err *err)
{
    json_t *some = json_pack("{s:[s]}", "command", "x");
    int rc;

    for (size_t i = 0; i < N_KEYS; i++)
        if (json_object_get(body, keys[i]))
            (void)json_object_set(some, keys[i], json_object_get(body, keys[i]));
    rc = json_object_size(some) > 1
             ? stk_spec_check(some, err)
             : stk_err_set(err, -EINVAL, "update takes time_limit_s, priority and name");
    (void)json_object_del(some, "command");
    if (rc < 0)
        json_decref(some);
    else
        *ret = some;
    return rc;
}

static int put_spec(struct stk_live *l, struct stk_live_request *r, const json_t *spec, int64_t of,
                    struct stk_err *err)
{
    char *text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
    int rc;

    if (!text)
        return stk_err_set(err, -ENOMEM, "out of memory");
    rc = stk_live_begin(l, err);
    rc = rc < 0 ? rc : stk_store_spec_put(l->cfg.store, text, strlen(text), &r->spec_made, err);
    free(text);
    if (rc == 0)
        r->spec_of = of;
    return rc;
}

static int rename_entry(struct stk_entry *e, const char *name)
{
    char *copy = name ? strdup(name) : NULL;

    if (name && !copy)
        return -ENOMEM;
    if (copy) {
        free(e->renamed);
        e->renamed = copy;
        e->rec.name = copy;
    }
    return 0;
}

static int apply(struct stk_live *l, uint32_t slot, const json_t *spec, struct stk_err *err)
{
    struct stk_event ev = {.at = l->now, .type = STK_EV_UPDATE, .job = {slot}};
    struct stk_spec parsed = {0};
    int rc = stk_spec_parse(spec, &parsed, err);

    if (rc < 0)
        return rc;
    ev.lease = stk_core_state(l->core)->jobs[slot].slept;
    ev.u.update.priority = parsed.job.priority;
    ev.u.update.estimate = parsed.job.estimate;
    stk_spec_done(&parsed);
    return stk_loop_apply(l->loop, &ev, err);
}

/* -EPROTO when it is too late for that. */
static int check_state(const struct stk_job *j, struct stk_err *err)
{
    if (j->slept)
        return stk_err_set(err, -EPROTO, "it has been started and sleeps: it cannot be changed");
    if (j->state == STK_JOB_HELD || j->state == STK_JOB_BLOCKED || j->state == STK_JOB_WAITING)
        return 0;
    return stk_err_set(err, -EPROTO, "it is %s: only jobs that have not started can be changed",
                       stk_job_state_name(j->state));
}

int stk_live_update(struct stk_live *l, struct stk_live_request *r, uint32_t slot,
                    struct stk_err *err)
{
    const struct stk_job *j = &stk_core_state(l->core)->jobs[slot];
    struct stk_entry *e = stk_entries_find(&l->entries, j->number);
    json_t *changes = NULL, *spec = NULL;
    int64_t old = e->rec.spec;
    int rc = check_state(j, err);

    rc = rc < 0 ? rc : read_changes(r->body, &changes, err);
    if (rc < 0)
        return rc;
    spec = stk_live_spec(l, old);
    if (!spec || json_object_update(spec, changes) < 0)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0 && json_object_get(changes, "time_limit_s"))
        (void)json_object_del(spec, "estimate_s"); /* of the old limit */
    if (rc == 0 && r->spec_of != old)
        rc = put_spec(l, r, spec, old, err);
    rc = rc < 0 ? rc : apply(l, slot, spec, err);
    rc = rc < 0 ? rc : rename_entry(e, json_string_value(json_object_get(changes, "name")));
    rc = rc < 0 ? rc : stk_store_job_respec(l->cfg.store, &e->rec, r->spec_made, err);
    if (rc == 0) {
        e->rec.spec = r->spec_made;
        free(e->text);
        e->text = NULL;
        rc = stk_store_job_update(l->cfg.store, &e->rec, err);
    }
    json_decref(spec);
    json_decref(changes);
    return rc;
}
