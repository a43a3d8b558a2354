/* SPDX-License-Identifier: Apache-2.0 */
/* reload.c - SIGHUP: the configuration is read again. It is checked whole before anything of it is
 * used; a bad one changes nothing. What cannot change while we run is named. */
#include <string.h>

#include "daemon/daemon.h"
#include "sys/owned.h"

static bool same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_amounts(const struct stk_config_amounts *a, const struct stk_config_amounts *b)
{
    bool alike = a->n == b->n;

    for (uint32_t i = 0; alike && i < a->n; i++)
        alike = strcmp(a->names[i], b->names[i]) == 0 && a->amounts[i] == b->amounts[i];
    return alike;
}

static bool same_names(char *const *a, char *const *b)
{
    uint32_t i = 0;

    while (a && b && a[i] && b[i] && strcmp(a[i], b[i]) == 0)
        i++;
    return (!a || !a[i]) && (!b || !b[i]);
}

static void name_fixed(const struct stk_config *was, const struct stk_config *is)
{
    const struct {
        const char *key;
        bool same;
    } fixed[] = {{"listen", same(was->listen, is->listen)},
                 {"socket", same(was->socket, is->socket)},
                 {"state", same(was->state, is->state)},
                 {"tls", same(was->tls.cert, is->tls.cert) && same(was->tls.key, is->tls.key)},
                 {"bind_cpus", was->bind_cpus == is->bind_cpus},
                 {"series.step", was->series.step_s == is->series.step_s},
                 {"engine", was->engine == is->engine},
                 {"slurm.conf", same(was->slurm.conf, is->slurm.conf)},
                 {"slurm.gpu_type", same(was->slurm.gpu_type, is->slurm.gpu_type)},
                 {"slurm.partitions", same_names(was->slurm.partitions, is->slurm.partitions)},
                 {"virtual_gpus", was->virtual_gpus == is->virtual_gpus},
                 {"virtual_nodes", was->virtual_nodes == is->virtual_nodes},
                 {"resources", same_amounts(&was->resources, &is->resources)}};

    for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
        if (!fixed[i].same)
            stk_log(STK_LOG_WARN, "%s has changed; that takes a restart", fixed[i].key);
}

static int reload(struct stk_daemon *d, struct stk_err *err)
{
    struct stk_config fresh, old;
    struct stk_live_config live = *stk_live_config(d->live);
    struct stk_settled settled = {0};
    struct stk_setup before = d->setup;
    uint32_t quantum_ms, switch_pct;
    json_t *old_rules = d->rules, *old_words = d->policy_words;
    int64_t old_every = d->rules_every_s;
    int rc;

    stk_config_init(&fresh);
    rc = stk_owned_open(d->opt.config, err);
    rc = rc < 0 ? rc : stk_config_read(d->opt.config, rc, &fresh, err);
    rc = rc < 0 ? rc : stk_daemon_merge(&d->opt, &fresh, err);
    rc = rc < 0 ? rc : stk_daemon_settle(d, &fresh, &settled, err);
    if (rc == 0 && stk_live_pending(d->live)) /* nothing may be half done */
        rc = stk_live_turn(d->live, err);
    while (rc == 0 && stk_live_is_open(d->live))
        rc = stk_live_turn(d->live, err);
    if (rc == 0) {
        d->setup = settled.setup; /* its name is kept by reference */
        d->rules = settled.rules;
        d->rules_every_s = settled.rules_every_s;
        d->policy_words = stk_daemon_policy(&fresh);
        stk_daemon_live_config(d, &d->setup, &fresh, &live);
        rc = stk_live_reload(d->live, &live, err);
        if (rc < 0) {
            d->setup = before;
            json_decref(d->policy_words);
            d->policy_words = old_words;
            d->rules = old_rules;
            d->rules_every_s = old_every;
        }
    }
    json_decref(rc < 0 ? settled.rules : old_rules);
    if (rc < 0) {
        stk_config_done(&fresh);
        return rc;
    }
    json_decref(old_words);
    stk_daemon_log_warnings(&fresh);
    name_fixed(&d->config, &fresh);
    old = d->config;
    d->config = fresh;
    stk_api_set_names(d->api, (const char *const *)fresh.admins,
                      (const char *const *)fresh.operators, (const char *const *)fresh.hosts);
    stk_watchman_reload(d->watchman);
    stk_daemon_cost(d);
    stk_daemon_logins(d);
    stk_daemon_turns(&d->config, &quantum_ms, &switch_pct);
    if (!d->slurm)
        stk_local_turns_set(d->engine, quantum_ms, switch_pct);
    stk_config_done(&old);
    if (stk_live_note_config(d->live, err) < 0)
        stk_log(STK_LOG_WARN, "what was changed is not written down: %s", err->text);
    return 0;
}

void stk_daemon_reload(struct stk_daemon *d)
{
    struct stk_err err = {""};

    if (!d->opt.config) {
        stk_log(STK_LOG_INFO, "there is no configuration file to read again");
        return;
    }
    stk_notify("RELOADING=1");
    if (reload(d, &err) < 0)
        stk_log(STK_LOG_ERROR, "configuration not changed: %s", err.text);
    else
        stk_log(STK_LOG_INFO, "configuration read again: policy %s", d->setup.name);
    stk_notify("READY=1");
}
