/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_changes.c - users' own jobs in Slurm that are changed there while they wait: what is
 * different is changed here, as "stoker update" would. Account and QOS are tenant and queue
 * (slurm_groups.c); what was said here of these counts until the names are others. What is refused
 * is said in the log and in the job's warning. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "daemon/daemon.h"
#include "engine/slurm/slurm.h"

/* What may change while a job waits, beside account and QOS. */
static const char *const change_keys[] = {"nodelist",       "exclude",   "constraint", "name",
                                          "time_limit_s",   "begin",     "gpus",       "tasks",
                                          "tasks_per_node", "gpu_types", "cpus",       "mem_mib",
                                          "exclusive",      "nice",      "pool"};

/* Units and what each has; of a job that has run, where Slurm has spread it otherwise since. */
static const char *const shape_keys[] = {"tasks", "gpus",    "tasks_per_node", "gpu_types",
                                         "cpus",  "mem_mib", "exclusive"};

static json_int_t all_gpus(const json_t *o)
{
    json_int_t tasks = json_integer_value(json_object_get(o, "tasks"));

    return (tasks > 0 ? tasks : 1) * json_integer_value(json_object_get(o, "gpus"));
}

static bool same_value(const json_t *a, const json_t *b)
{
    return (!a && !b) || json_equal(a, b);
}

/* Of such a job only another number or kind of GPUs is a change of its user's. */
static void differ_in_shape(const json_t *spec, const json_t *shape, json_t *args)
{
    if (!shape ||
        (all_gpus(spec) == all_gpus(shape) &&
         json_is_true(json_object_get(spec, "exclusive")) ==
             json_is_true(json_object_get(shape, "exclusive")) &&
         same_value(json_object_get(spec, "gpu_types"), json_object_get(shape, "gpu_types"))))
        return;
    for (size_t i = 0; i < sizeof(shape_keys) / sizeof(*shape_keys); i++) {
        json_t *is = json_object_get(shape, shape_keys[i]);

        if (is)
            (void)json_object_set(args, shape_keys[i], is);
        else if (json_object_get(spec, shape_keys[i]))
            (void)json_object_set_new(args, shape_keys[i], json_null());
    }
}

static void put(json_t *args, const char *key, json_t *is)
{
    (void)json_object_set_new(args, key, is ? json_incref(is) : json_null());
}

/* Of which tenant its user need not be a member is kept with what it was made of. */
static void differ_in_tenant(const json_t *spec, const json_t *is, const char *trusted,
                             json_t *args)
{
    json_t *made = json_copy(json_object_get(spec, "imported"));

    put(args, "account", json_object_get(is, "account"));
    put(args, "tenant", json_object_get(is, "tenant"));
    if (trusted)
        (void)json_object_set_new(made, "tenant", json_string(trusted));
    else
        (void)json_object_del(made, "tenant");
    (void)json_object_set_new(args, "imported", made);
}

/* A class or a priority that the QOS before did not give stays. */
static void differ_in_queue(const json_t *spec, const json_t *was, const json_t *is, json_t *args)
{
    static const char *const ranks[] = {"class", "priority"};

    put(args, "qos", json_object_get(is, "qos"));
    put(args, "queue", json_object_get(is, "queue"));
    for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++) {
        const json_t *other = json_object_get(is, ranks[1 - i]); /* takes the place of this one */
        json_t *now = json_object_get(is, ranks[i]);

        if (now ||
            (!other && json_equal(json_object_get(spec, ranks[i]), json_object_get(was, ranks[i]))))
            put(args, ranks[i], now);
    }
    if (json_object_get(args, "priority") && !json_object_get(args, "nice"))
        put(args, "nice", json_object_get(spec, "nice")); /* it would go with the priority */
}

/* Account and QOS, and what they mean. */
static json_t *names_of(const struct stk_daemon *d, const json_t *o, const char **ret_trusted)
{
    json_t *names = json_pack("{s:O*,s:O*}", "account", json_object_get(o, "account"), "qos",
                              json_object_get(o, "qos"));

    *ret_trusted = stk_daemon_slurm_map(d, names);
    return names;
}

/* False: they are the same. */
static bool differ_in_names(const struct stk_daemon *d, const json_t *spec, const json_t *wish,
                            json_t *args)
{
    const char *before, *trusted;
    json_t *was = names_of(d, spec, &before), *is = names_of(d, wish, &trusted);
    bool account = !same_value(json_object_get(was, "account"), json_object_get(is, "account"));
    bool qos = !same_value(json_object_get(was, "qos"), json_object_get(is, "qos"));

    if (account)
        differ_in_tenant(spec, is, trusted, args);
    if (qos)
        differ_in_queue(spec, was, is, args);
    json_decref(was);
    json_decref(is);
    return account || qos;
}

/* What else is different. */
static json_t *difference(const json_t *spec, const json_t *wish)
{
    json_t *args = json_object();
    bool all = json_object_get(wish, "tasks") != NULL; /* else only what may change later, too */

    for (size_t i = 0; i < sizeof(change_keys) / sizeof(*change_keys); i++) {
        json_t *was = json_object_get(spec, change_keys[i]),
               *is = json_object_get(wish, change_keys[i]);

        if (is && !json_equal(was, is))
            (void)json_object_set(args, change_keys[i], is);
        else if (was && !is && (all || strcmp(change_keys[i], "time_limit_s") == 0) &&
                 strcmp(change_keys[i], "pool") != 0)
            (void)json_object_set_new(args, change_keys[i], json_null());
    }
    differ_in_shape(spec, json_object_get(wish, "shape"), args);
    return args;
}

/* ---- what becomes of it ---- */

struct changing {
    struct stk_daemon *d;
    stk_job_number number; /* the first */
    json_t *rest;          /* what is changed where account and QOS cannot be; NULL: nothing */
    bool waits;            /* not the limit of one that runs */
    bool said;
};

/* 'why': NULL: it was changed. One that has started meanwhile is changed when it waits again. */
static void say(struct changing *c, stk_job_number number, bool wrong, const char *why)
{
    char sentence[500];

    if (!why) {
        if (c->waits)
            stk_live_warn(c->d->live, number, STK_WARN_ASKED, NULL);
        return;
    }
    if (!wrong && !stk_daemon_slurm_waits(c->d, number))
        return;
    (void)snprintf(sentence, sizeof(sentence), "was changed in Slurm to what cannot be: %.400s",
                   why);
    if (!c->said)
        stk_log(STK_LOG_WARN, "job %u %s", number, sentence);
    c->said = true;
    if (c->waits)
        stk_live_warn(c->d->live, number, STK_WARN_ASKED, sentence);
    if (c->rest)
        stk_daemon_slurm_act(c->d, "update", &number, 1, json_incref(c->rest));
}

static void on_reply(void *ctx, int status, json_t *take_body)
{
    struct changing *c = ctx;
    json_t *results = json_object_get(take_body, "results"), *one;
    const char *why =
        json_string_value(json_object_get(json_object_get(take_body, "error"), "message"));
    size_t i;

    if (!c->d->stopping && !results)
        say(c, c->number, status == 400, status < 300 ? NULL : why ? why : "no reason");
    json_array_foreach(results, i, one)
    {
        if (!c->d->stopping)
            say(c, (stk_job_number)json_integer_value(json_object_get(one, "id")), false,
                json_string_value(json_object_get(one, "error")));
    }
    json_decref(c->rest);
    json_decref(take_body);
    free(c);
}

static void change(struct stk_daemon *d, const stk_job_number *numbers, uint32_t n,
                   const json_t *spec, const json_t *wish)
{
    struct changing *c = calloc(1, sizeof(*c));
    const struct stk_asker by = {.who = stk_daemon_slurm_who, .reply = on_reply, .ctx = c};
    json_t *args = difference(spec, wish);

    if (!c) {
        json_decref(args);
        return;
    }
    *c = (struct changing){.d = d, .number = numbers[0]};
    c->waits = json_object_get(wish, "tasks") || json_object_get(wish, "shape");
    if (c->waits) {
        c->rest = json_object_size(args) > 0 ? json_copy(args) : NULL;
        if (!differ_in_names(d, spec, wish, args)) {
            json_decref(c->rest);
            c->rest = NULL;
        }
    }
    if (json_object_size(args) > 0) {
        if (stk_live_act(d->live, &by, "update", numbers, n, args) == 0)
            return;
    } else {
        for (uint32_t i = 0; i < n; i++) /* it is as it was */
            say(c, numbers[i], false, NULL);
        json_decref(args);
    }
    json_decref(c->rest);
    free(c);
}

void stk_daemon_slurm_changed(void *ctx, const stk_job_number *numbers, uint32_t n,
                              const json_t *wish)
{
    struct stk_daemon *d = ctx;
    const struct stk_entry *e = n > 0 ? stk_live_entry(d->live, numbers[0]) : NULL;
    json_t *spec = e ? stk_live_spec(d->live, e->rec.spec) : NULL;

    if (spec)
        change(d, numbers, n, spec, wish);
    json_decref(spec);
}
