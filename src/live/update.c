/* SPDX-License-Identifier: Apache-2.0 */
/* update.c - a job that has not started is changed; of one that has, how long it may run. The
 * description it will be started with, or started with again, is made anew from the old one; jobs
 * of one request that share a description share the new one too. What the scheduler goes by is an
 * event of the journal. */
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "live/state.h"

/* What a job may still be changed in: these alone make it another place in the queue; */
static const char *const rank_keys[] = {"time_limit_s", "priority", "nice", "class",
                                        "name"}; /* the first of one that has started, too */
/* ... these another job, as far as the scheduler knows. */
static const char *const demand_keys[] = {
    "gpus",           "gpu_mem_mib", "gpu_types", "share",     "share_max", "mig",      "tasks",
    "tasks_per_node", "topology",    "prefer",    "group",     "exclusive", "nodelist", "exclude",
    "constraint",     "cpus",        "mem_mib",   "resources", "pool",      "queue",    "tenant",
    "tier",           "begin",       "deadline",  "estimate_s"};
/* ... and these are changed where the job was sent: only the engine says so. */
static const char *const their_keys[] = {"account", "qos", "imported"};
/* Members that the server adds. */
static const char *const signed_keys[] = {"uid",   "gid",      "groups",    "user", "home",
                                          "shell", "imported", "cpu_share", "plain"};
/* What makes a job rank otherwise: who changes it must be allowed to have such a job. */
static const char *const ask_keys[] = {"priority", "nice",   "class", "queue",
                                       "tier",     "tenant", "qos",   "account"};
/* What the owner of a job may change whatever an operator gave it: nothing of this makes the job
 * need, or take, anything else. Every other change is one of its size. */
static const char *const free_keys[] = {"name", "time_limit_s", "estimate_s", "begin", "deadline"};
#define COUNT(list) (sizeof(list) / sizeof(*(list)))

static bool has_name(const char *const *keys, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(keys[i], name) == 0)
            return true;
    return false;
}

bool stk_live_may_change(const char *key)
{
    return has_name(rank_keys, COUNT(rank_keys), key) ||
           has_name(demand_keys, COUNT(demand_keys), key);
}

/* null takes a member away. True: there was one of these. */
static bool take_changes(const json_t *body, const char *const *keys, size_t n, json_t *spec)
{
    bool some = false;

    for (size_t i = 0; i < n; i++) {
        json_t *v = json_object_get(body, keys[i]);

        some |= v != NULL;
        if (json_is_null(v))
            (void)json_object_del(spec, keys[i]);
        else if (v)
            (void)json_object_set(spec, keys[i], v);
    }
    return some;
}

/* Of a job that has started how long it may run can be changed, and nothing else. */
static int check_started(const json_t *body, const struct stk_job *j, struct stk_err *err)
{
    const char *key = NULL;

    for (size_t i = 1; i < COUNT(rank_keys); i++)
        key = json_object_get(body, rank_keys[i]) ? rank_keys[i] : key;
    for (size_t i = 0; i < COUNT(demand_keys); i++)
        key = json_object_get(body, demand_keys[i]) ? demand_keys[i] : key;
    for (size_t i = 0; i < COUNT(their_keys); i++)
        key = json_object_get(body, their_keys[i]) ? their_keys[i] : key;
    return key ? stk_err_set(err, -EPROTO,
                             "%s: it has started (it is %s); of a job that has, only the time "
                             "limit can be changed",
                             key, j->slept ? "suspended" : stk_job_state_name(j->state))
               : 0;
}

/* Every rule of a description, as for one that a user sends. */
static int check_changed(json_t *spec, struct stk_err *err)
{
    json_t *plain = json_copy(spec);
    int rc;

    for (size_t i = 0; i < COUNT(signed_keys); i++)
        (void)json_object_del(plain, signed_keys[i]);
    rc = plain ? stk_spec_check(plain, err) : stk_err_set(err, -ENOMEM, "out of memory");
    json_decref(plain);
    return rc;
}

/* The description with the changes of the request; *ret_all: not only its rank. */
static int change_spec(const struct stk_live_request *r, json_t *spec, bool *ret_all,
                       struct stk_err *err)
{
    const json_t *body = r->body;
    bool rank = take_changes(body, rank_keys, COUNT(rank_keys), spec);

    *ret_all = take_changes(body, demand_keys, COUNT(demand_keys), spec);
    if (r->who.uid == STK_NOBODY)
        *ret_all |= take_changes(body, their_keys, COUNT(their_keys), spec);
    if (json_object_get(body, "priority") && !json_object_get(body, "nice"))
        (void)json_object_del(spec, "nice"); /* than what it was */
    if (json_object_get(body, "priority") || json_object_get(body, "class"))
        (void)json_object_del(spec, json_object_get(body, "priority") ? "class" : "priority");
    if (!rank && !*ret_all)
        return stk_err_set(err, -EINVAL,
                           "nothing to change: update takes name, time_limit_s, priority, gpus, "
                           "tasks, gpu_types and others (docs/spec/api.md)");
    if (json_object_get(body, "time_limit_s") && !json_object_get(body, "estimate_s"))
        (void)json_object_del(spec, "estimate_s"); /* of the old limit */
    return check_changed(spec, err);
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

struct change {
    uint32_t slot; /* of the job */
    json_t *spec;  /* as it is to be */
    stk_time was;  /* its time limit so far; 0: none */
    bool all;      /* not only its rank */
    bool started;
};

/* A queue's limit of run times is not for operators, and is looked at when the limit is said. Of a
 * job that has started the engine says what is. */
static bool beyond(const struct stk_live_request *r, const struct change *c)
{
    return (r->who.uid == STK_NOBODY ? c->started : r->who.role >= STK_ROLE_OPERATOR) ||
           (!json_object_get(r->body, "time_limit_s") && !json_object_get(r->body, "queue") &&
            !json_object_get(r->body, "qos"));
}

static int read_changed(struct stk_live *l, const struct stk_live_request *r, uint32_t uid,
                        const struct change *c, struct stk_spec *ret, struct stk_err *err)
{
    int rc;

    l->trusted = json_equal(json_object_get(json_object_get(c->spec, "imported"), "tenant"),
                            json_object_get(c->spec, "tenant"));
    l->beyond = beyond(r, c);
    rc = stk_live_read(l, uid, c->spec, ret, err);
    l->trusted = l->beyond = false;
    if (rc == 0 && ret->time_limit > 0 &&
        json_integer_value(json_object_get(c->spec, "time_limit_s")) == 0)
        rc = stk_err_set(err, -EINVAL,
                         "time_limit_s: a job in queue %.63s needs one of at most %lld",
                         stk_live_queue_name(l, ret->job.terms.queue),
                         (long long)(ret->time_limit / STK_SECOND));
    return rc;
}

static bool has_any(const json_t *body, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (json_object_get(body, keys[i]))
            return true;
    return false;
}

/* Whether the request makes the job need other things than it did. */
static bool changes_size(const json_t *body)
{
    for (size_t i = 0; i < COUNT(demand_keys); i++)
        if (json_object_get(body, demand_keys[i]) &&
            !has_name(free_keys, COUNT(free_keys), demand_keys[i]))
            return true;
    return false;
}

/* Whether such a job may be asked for. A job that is not changed in this keeps what it has. What
 * was changed with the engine's tools is its owner's wish. */
static int allow_changed(struct stk_live *l, const struct stk_live_request *r, uint32_t owner,
                         struct stk_spec *io, struct stk_err *err)
{
    const bool engine = r->who.uid == STK_NOBODY,
               asks = has_any(r->body, ask_keys, COUNT(ask_keys));
    const struct stk_who who = engine ? stk_live_owner(l, owner) : r->who;

    if (!asks && (who.role >= STK_ROLE_OPERATOR || !changes_size(r->body)))
        return 0;
    return stk_live_allow(l, &who, owner, &io->job, err);
}

/* The job as it is to be, if it may be so; 'spec' says whether it is plain. */
static int check_change(struct stk_live *l, const struct stk_live_request *r,
                        const struct stk_entry *e, struct change *c, struct stk_spec *ret,
                        struct stk_err *err)
{
    const struct stk_job *j = &stk_core_state(l->core)->jobs[c->slot];
    int rc = read_changed(l, r, e->rec.uid, c, ret, err);

    rc = rc < 0 ? rc : allow_changed(l, r, e->rec.uid, ret, err);
    if (rc == 0 && json_object_get(r->body, "time_limit_s"))
        rc = stk_live_limit_allowed(
            l, &r->who,
            &(struct stk_live_last){
                .number = e->number, .pool = ret->pool, .was = c->was, .is = ret->time_limit},
            err);
    if (rc == 0 && c->started)
        rc = stk_live_limit_check(l, r, c->slot, c->was, ret->time_limit, err);
    if (rc < 0)
        return rc;
    if (c->started)
        ret->job.estimate = stk_live_limit_estimate(j, &ret->job);
    if (!ret->job.terms.plain)
        (void)json_object_del(c->spec, "plain");
    else if (json_object_set_new(c->spec, "plain", json_true()) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    return 0;
}

static int apply(struct stk_live *l, uint32_t slot, struct stk_entry *e, const struct change *c,
                 const struct stk_spec *parsed, struct stk_err *err)
{
    struct stk_event ev = {.at = l->now, .type = STK_EV_UPDATE, .job = {slot}};
    const struct stk_demand *d = &parsed->job.demand;
    int rc;

    ev.lease = stk_core_state(l->core)->jobs[slot].slept;
    ev.u.update.priority = parsed->job.priority;
    ev.u.update.estimate = parsed->job.estimate;
    ev.u.update.asked = parsed->job.terms.asked;
    ev.u.update.limit = parsed->job.terms.limit;
    ev.u.update.plain = parsed->job.terms.plain;
    ev.u.update.spec = c->all ? &parsed->job : NULL;
    rc = stk_loop_apply(l->loop, &ev, err);
    if (rc == 0 && c->all) {
        e->rec.gpus = d->gpus * d->tasks;
        e->rec.gpu_milli = d->gpu_milli;
        e->rec.tasks = d->tasks;
        e->rec.queue = stk_live_queue_name(l, parsed->job.terms.queue);
        e->rec.tenant = stk_live_tenant_name(l, parsed->job.tenant);
    }
    return rc;
}

/* What its user asked the engine for is changed there. */
static int check_imported(const json_t *body, struct stk_err *err)
{
    static const char *const there[] = {"nodelist",    "exclude",        "constraint", "gpus",
                                        "gpu_mem_mib", "gpu_types",      "share",      "mig",
                                        "tasks",       "tasks_per_node", "exclusive",  "cpus",
                                        "mem_mib",     "name",           "pool",       "begin"};

    for (size_t i = 0; i < COUNT(there); i++)
        if (json_object_get(body, there[i]))
            return stk_err_set(err, -EPROTO,
                               "%s: it was sent with sbatch, and is changed where it was sent: "
                               "scontrol update",
                               there[i]);
    return 0;
}

int stk_live_update(struct stk_live *l, struct stk_live_request *r, uint32_t slot,
                    struct stk_err *err)
{
    const struct stk_job *j = &stk_core_state(l->core)->jobs[slot];
    struct stk_entry *e = stk_entries_find(&l->entries, j->number);
    struct change c = {.slot = slot,
                       .started = j->lease || j->slept || j->state == STK_JOB_STOPPING};
    struct stk_spec parsed = {0};
    json_t *spec = NULL;
    int64_t old = e->rec.spec;
    int rc = c.started ? check_started(r->body, j, err) : 0;

    if (rc < 0)
        return rc;
    c.spec = spec = stk_live_spec(l, old);
    c.was = json_integer_value(json_object_get(spec, "time_limit_s")) * STK_SECOND;
    if (json_object_get(spec, "imported") && r->who.uid != STK_NOBODY)
        rc = check_imported(r->body, err);
    rc = rc < 0 ? rc
         : spec ? change_spec(r, spec, &c.all, err)
                : stk_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0 && !c.started)
        rc = stk_live_share_cpus(l, spec, err);
    rc = rc < 0 ? rc : check_change(l, r, e, &c, &parsed, err);
    rc = rc < 0 ? rc : apply(l, slot, e, &c, &parsed, err);
    stk_spec_done(&parsed);
    if (rc == 0 && r->spec_of != old) /* a refused change leaves no description */
        rc = put_spec(l, r, spec, old, err);
    rc = rc < 0 ? rc : rename_entry(e, json_string_value(json_object_get(r->body, "name")));
    rc = rc < 0 ? rc : stk_store_job_respec(l->cfg.store, &e->rec, r->spec_made, err);
    if (rc == 0) {
        e->rec.spec = r->spec_made;
        free(e->text);
        e->text = NULL;
        rc = stk_store_job_update(l->cfg.store, &e->rec, err);
    }
    json_decref(spec);
    return rc;
}
