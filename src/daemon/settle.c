/* SPDX-License-Identifier: Apache-2.0 */
/* settle.c - a configuration is settled before anything is done with it: addresses, policies,
 * tenants, queues and the file of rules are checked, alone and together, and each refusal names the
 * line. A start, SIGHUP and "stoker config check" all come here, so that they refuse the same. What
 * goes together is decided by the core: one is made on trial, for the machine that is there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "rules/read.h"
#include "sys/big.h"
#include "sys/owned.h"

#define LISTEN "127.0.0.1:8470"

struct stk_http_tcp stk_daemon_tcp(const struct stk_config *c)
{
    return (struct stk_http_tcp){.address = c->listen ? c->listen : LISTEN,
                                 .cert = c->tls.cert,
                                 .key = c->tls.key,
                                 .insecure = c->insecure != 0};
}

static int check_doors(const struct stk_config *c, struct stk_err *err)
{
    const struct stk_http_tcp tcp = stk_daemon_tcp(c);
    const char *key = "listen";
    struct stk_err why;

    if (c->socket && stk_http_check_unix(c->socket, &why) < 0)
        return stk_config_refuse(c, "socket", why.text, err);
    if (stk_daemon_check_places(c, err) < 0)
        return -EINVAL;
    if (strcmp(tcp.address, "off") != 0 && stk_http_check_tcp(&tcp, &key, &why) < 0)
        return stk_config_refuse(c, key, why.text, err);
    return 0;
}

/* GPU types and pools that tenants and queues name become numbers. */
static int resolve_teams(const struct stk_daemon *d, struct stk_config *c, struct stk_err *err)
{
    const struct stk_teams_world w = {.name = c->file ? c->file : "",
                                      .types = d->machine.gpu_types,
                                      .n_types = d->machine.n_gpu_types,
                                      .pools = d->machine.pools,
                                      .pool_of = d->machine.pool_of,
                                      .n_pools = d->machine.n_pools,
                                      .loose = true};

    return c->teams ? stk_teams_resolve(c->teams, &w, err)
                    : stk_err_set(err, -ENOMEM, "out of memory");
}

/* The file of rules; *ret_list stays NULL where there is none. */
static int read_rules(const struct stk_config *c, json_t **ret_list, int64_t *ret_every_s,
                      struct stk_err *err)
{
    struct stk_err why;
    char *text;
    ssize_t n = 0, more;
    int fd, rc;

    *ret_list = NULL;
    *ret_every_s = 0;
    if (!c->rules)
        return 0;
    fd = stk_owned_open(c->rules, &why);
    if (fd < 0)
        return stk_config_refuse(c, "rules", why.text, err);
    text = malloc(STK_MAX_RULES_FILE + 1);
    while (text && n <= STK_MAX_RULES_FILE &&
           (more = read(fd, text + n, STK_MAX_RULES_FILE + 1 - (size_t)n)) > 0)
        n += more;
    (void)close(fd);
    rc = text ? stk_rules_tree(c->rules, text, (size_t)n, ret_list, ret_every_s, err)
              : stk_err_set(err, -ENOMEM, "out of memory");
    free(text);
    return rc;
}

/* Whether the core takes policies, tenants and queues together, on these nodes. */
static int try_core(const struct stk_daemon *d, const struct stk_config *c,
                    const struct stk_setup *setup, struct stk_err *err)
{
    struct stk_live_config live = {0};
    struct stk_core *core = NULL;
    struct stk_err why;
    int rc;

    stk_daemon_live_config(d, setup, c, &live);
    rc = stk_core_new(&live.core, &stk_big_mem, &core, &why);
    stk_core_free(core);
    if (rc == -ENOMEM)
        return stk_err_set(err, rc, "%s", why.text);
    return rc < 0 ? stk_config_refuse_policy(c, why.text, err) : 0;
}

int stk_daemon_settle(const struct stk_daemon *d, struct stk_config *c, struct stk_settled *ret,
                      struct stk_err *err)
{
    struct stk_settled s = {0};
    int rc = stk_config_setup(c, &s.setup, err);

    rc = rc < 0 ? rc : check_doors(c, err);
    rc = rc < 0 ? rc : resolve_teams(d, c, err);
    rc = rc < 0 ? rc : read_rules(c, &s.rules, &s.rules_every_s, err);
    rc = rc < 0 ? rc : try_core(d, c, &s.setup, err);
    if (rc < 0) {
        json_decref(s.rules);
        return rc;
    }
    *ret = s;
    return 0;
}

/* ---- warnings: names that are not there, parameters that do nothing ---- */

struct teller {
    const struct stk_config *c;
    void (*tell)(void *ctx, const char *sentence);
    void *ctx;
};

/* A name, or a group's with @ before it, that this system does not know. */
static void warn_name(const struct teller *t, int line, const char *key, const char *name)
{
    bool group = name[0] == '@';
    char sentence[480];
    uint32_t id;

    if ((group ? stk_group_id(name + 1, &id) : stk_user_id(name, &id)) != -ENOENT)
        return;
    (void)snprintf(sentence, sizeof(sentence), "%s:%d: %s: this system has no %s \"%.255s\"",
                   t->c->file ? t->c->file : "", line, key, group ? "group" : "user", name + group);
    t->tell(t->ctx, sentence);
}

/* Users that a queue allows; roles are no users. */
static void warn_allowed(const struct teller *t, const struct stk_teams *teams, uint32_t queue)
{
    const struct stk_allow *a = &teams->queue_allow[queue];

    for (uint32_t i = 0; i < a->n_users; i++) {
        const char *name = stk_names_get(&teams->users, a->users[i]);

        if (strncmp(name, "role:", 5) != 0)
            warn_name(t, teams->queues[queue].line, "queues", name);
    }
}

/* Parameters of the file that no policy in use has. */
static void warn_params(const struct teller *t)
{
    const struct stk_config *c = t->c;
    char sentence[480], owner[64];
    struct stk_setup setup;

    if (stk_config_setup(c, &setup, NULL) < 0)
        return;
    for (uint32_t i = 0; i < c->policy.n_params; i++) {
        const char *kv = c->policy.params[i];

        if (stk_setup_uses(&setup, kv))
            continue;
        stk_setup_owner(kv, owner, sizeof(owner));
        (void)snprintf(sentence, sizeof(sentence),
                       "%s:%d: policy.params: %.*s does nothing: no policy that is in use takes "
                       "it%s%s%s",
                       c->file ? c->file : "", c->param_line[i], (int)strcspn(kv, "="), kv,
                       *owner ? " (it needs " : "", owner, *owner ? ")" : "");
        t->tell(t->ctx, sentence);
    }
}

void stk_daemon_warn(const struct stk_config *c, void (*tell)(void *ctx, const char *sentence),
                     void *ctx)
{
    const struct teller t = {c, tell, ctx};
    const struct stk_teams *teams = c->teams;

    for (char **p = c->admins; p && *p; p++)
        warn_name(&t, stk_config_line(c, "admins"), "admins", *p);
    for (char **p = c->operators; p && *p; p++)
        warn_name(&t, stk_config_line(c, "operators"), "operators", *p);
    for (uint32_t i = 0; teams && i < teams->n_members; i++)
        warn_name(&t, teams->members[i].line, "tenants",
                  stk_names_get(&teams->users, teams->members[i].user));
    for (uint32_t i = 0; teams && i < teams->n_queues; i++)
        warn_allowed(&t, teams, i);
    warn_params(&t);
}

static void log_warning(void *ctx, const char *sentence)
{
    (void)ctx;
    stk_log(STK_LOG_WARN, "%s", sentence);
}

void stk_daemon_log_warnings(const struct stk_config *c)
{
    stk_daemon_warn(c, log_warning, NULL);
}
