/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_groups.c - what Slurm's accounts and QOS mean here: tenants and queues, as the
 * configuration says, or where they have the same names. Users' own jobs are taken in so
 * (slurm_jobs.c, slurm_changes.c); here it is shown, and what means nothing is said once. The other
 * way round it says to which account Slurm books what we send there. */
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "core/tenant.h"
#include "daemon/daemon.h"
#include "engine/slurm/slurm.h"

const char *stk_daemon_slurm_mapped(char *const *list, const char *name)
{
    size_t len = name ? strlen(name) : 0;

    for (; list && *list && len > 0; list++)
        if (strncmp(*list, name, len) == 0 && (*list)[len] == '=')
            return *list + len + 1;
    return NULL;
}

static const char *tenant_of(const struct stk_daemon *d, const char *account)
{
    const struct stk_state *s = stk_core_state(stk_live_core(d->live));
    const char *to = stk_daemon_slurm_mapped(d->config.slurm.accounts, account);

    for (uint32_t i = 0; !to && i < s->n_tenants; i++)
        if (strcmp(s->tenants[i].name, account) == 0)
            return s->tenants[i].name;
    return to;
}

static const char *queue_of(const struct stk_daemon *d, const char *qos)
{
    const struct stk_state *s = stk_core_state(stk_live_core(d->live));
    const char *to = stk_daemon_slurm_mapped(d->config.slurm.qos, qos);
    const struct stk_queue_spec *queues = s->n_queues ? s->queues : stk_default_queues;
    uint32_t i = to ? STK_NONE : stk_queue_find(queues, s->n_queues, qos);

    return i == STK_NONE ? to : queues[i].name;
}

/* As the configuration has it; what has the same name needs no words. */
const char *stk_daemon_slurm_map(const struct stk_daemon *d, json_t *job)
{
    const char *tenant = stk_daemon_slurm_mapped(
                   d->config.slurm.accounts, json_string_value(json_object_get(job, "account"))),
               *qos = stk_daemon_slurm_mapped(d->config.slurm.qos,
                                              json_string_value(json_object_get(job, "qos")));

    if (tenant)
        (void)json_object_set_new(job, "tenant", json_string(tenant));
    if (qos && strncmp(qos, "class:", 6) == 0)
        (void)json_object_set_new(job, "class", json_string(qos + 6));
    else if (qos && strncmp(qos, "priority:", 9) == 0)
        (void)json_object_set_new(job, "priority", json_integer(strtol(qos + 9, NULL, 10)));
    else if (qos)
        (void)json_object_set_new(job, "queue", json_string(qos));
    return stk_slurm_enforces(d->engine, "associations") ? tenant : NULL;
}

/* ---- the other way round ---- */

static const json_t *find(const json_t *groups, const char *kind, const char *name)
{
    const json_t *list = json_object_get(groups, kind), *o;
    size_t i;

    json_array_foreach(list, i, o)
    {
        const char *its = json_string_value(json_object_get(o, "name"));

        if (its && strcmp(its, name) == 0)
            return o;
    }
    return NULL;
}

/* The first name that means 'what'; a new reference, NULL: none does. */
static json_t *backwards(char *const *list, const char *what)
{
    for (; list && *list; list++) {
        const char *eq = strchr(*list, '=');

        if (eq && strcmp(eq + 1, what) == 0)
            return json_stringn(*list, (size_t)(eq - *list));
    }
    return NULL;
}

struct kind { /* of such words */
    const char *name;
    char *const *map;
    const char *(*of)(const struct stk_daemon *d, const char *name); /* what it means here */
};

/* A word as Slurm has it: what Slurm knows, or what is mapped, is Slurm's own; else what is mapped
 * to it. Another that means nothing here is for Slurm to judge, when its user has 'said' it. NULL:
 * none.
 */
static json_t *slurms(const struct stk_daemon *d, const struct kind *k, const char *word, bool said)
{
    const json_t *groups = stk_slurm_groups(d->engine);
    json_t *name;

    if (!word || !*word)
        return NULL;
    if (stk_daemon_slurm_mapped(k->map, word) || find(groups, k->name, word))
        return json_string(word);
    name = backwards(k->map, word);
    return name || !said || (groups && k->of(d, word)) ? name : json_string(word);
}

void stk_daemon_slurm_names(void *ctx, stk_job_number number, json_t *o)
{
    const struct stk_daemon *d = ctx;
    const struct kind accounts = {"accounts", d->config.slurm.accounts, tenant_of},
                      qos = {"qos", d->config.slurm.qos, queue_of};
    const struct stk_entry *e = d->live ? stk_live_entry(d->live, number) : NULL;
    json_t *account = slurms(d, &accounts, json_string_value(json_object_get(o, "account")), true);

    if (!account && e)
        account = slurms(d, &accounts, e->rec.tenant, false);
    (void)json_object_set_new(o, "account", account ? account : json_null());
    account = slurms(d, &qos, json_string_value(json_object_get(o, "qos")), true);
    (void)json_object_set_new(o, "qos", account ? account : json_null());
    if (e)
        (void)json_object_set_new(o, "partition",
                                  json_string(stk_daemon_slurm_partition(
                                      d, e, json_string_value(json_object_get(o, "partition")))));
}

/* ---- shown ---- */

/* Each with what it means, or null. */
static json_t *show(const struct stk_daemon *d, const json_t *list, const char *key,
                    const char *(*of)(const struct stk_daemon *d, const char *name))
{
    json_t *out = json_array(), *o;
    size_t i;

    json_array_foreach(list, i, o)
    {
        const char *name = json_string_value(json_object_get(o, "name"));
        const char *to = name ? of(d, name) : NULL;
        json_t *row = json_pack("{s:s,s:o,s:O?}", "name", name ? name : "", key,
                                to ? json_string(to) : json_null(), "description",
                                json_object_get(o, "description"));

        (void)json_array_append_new(out, row);
    }
    return out;
}

json_t *stk_daemon_slurm_means(struct stk_daemon *d)
{
    const json_t *groups = d->slurm && d->live ? stk_slurm_groups(d->engine) : NULL;

    if (!groups)
        return NULL;
    return json_pack("{s:o,s:o}", "accounts",
                     show(d, json_object_get(groups, "accounts"), "tenant", tenant_of), "qos",
                     show(d, json_object_get(groups, "qos"), "queue", queue_of));
}

/* "a, b and others" of those that mean nothing. */
static void name_some(const json_t *list, const char *key, char *buf, size_t size)
{
    size_t n = 0, len = 0, i;
    json_t *o;

    buf[0] = '\0';
    json_array_foreach(list, i, o)
    {
        if (!json_is_null(json_object_get(o, key)) || len >= size)
            continue;
        len += (size_t)snprintf(buf + len, size - len, n >= 8 ? " ..." : "%s%s", n ? ", " : "",
                                json_string_value(json_object_get(o, "name")));
        if (n++ >= 8)
            break;
    }
}

void stk_daemon_slurm_groups(void *ctx, const json_t *groups)
{
    struct stk_daemon *d = ctx;
    json_t *means = groups ? stk_daemon_slurm_means(d) : NULL;
    const json_t *accounts = json_object_get(means, "accounts"),
                 *qos = json_object_get(means, "qos");
    char some[512], more[512];

    if (!groups)
        stk_log(STK_LOG_INFO, "Slurm keeps no accounting (AccountingStorageType=accounting_storage/"
                              "slurmdbd): its accounts and QOS are known when jobs name them");
    if (!means)
        return;
    name_some(accounts, "tenant", some, sizeof(some));
    name_some(qos, "queue", more, sizeof(more));
    stk_log(STK_LOG_INFO, "Slurm has %zu accounts and %zu QOS (stoker tenants)%s%s%s%s",
            json_array_size(accounts), json_array_size(qos),
            *some ? "; accounts that are no tenants, and not in slurm.accounts: " : "", some,
            *more ? "; QOS that are no queues, and not in slurm.qos: " : "", more);
    json_decref(means);
}
