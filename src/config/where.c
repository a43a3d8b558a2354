/* SPDX-License-Identifier: Apache-2.0 */
/* where.c - which line of the file a refusal is about, when the values have been read and the
 * document is gone. */
#include <stdio.h>
#include <string.h>

#include "config/config.h"

int stk_config_line(const struct stk_config *c, const char *path)
{
    for (const struct stk_config_key *k = stk_config_keys; k->path; k++)
        if (strcmp(k->path, path) == 0)
            return c->line[k - stk_config_keys];
    return 0;
}

void stk_config_forget_line(struct stk_config *c, const char *path)
{
    for (const struct stk_config_key *k = stk_config_keys; k->path; k++)
        if (strcmp(k->path, path) == 0)
            c->line[k - stk_config_keys] = 0;
}

static int refuse_at(const struct stk_config *c, int line, const char *what, struct stk_err *err)
{
    if (c->file && line > 0)
        return stk_err_set(err, -EINVAL, "%s:%d: %.220s", c->file, line, what);
    return stk_err_set(err, -EINVAL, "%s%s%.220s", c->file ? c->file : "", c->file ? ": " : "",
                       what);
}

int stk_config_refuse(const struct stk_config *c, const char *path, const char *what,
                      struct stk_err *err)
{
    char text[256];
    int line = stk_config_line(c, path);

    (void)snprintf(text, sizeof(text), "%s: %s", path, what);
    if (line == 0)
        return stk_err_set(err, -EINVAL, "%s", text); /* of the command line, or built in */
    return refuse_at(c, line, text, err);
}

/* Whether 'text' begins with "tenant NAME:", of which 60 bytes are shown at most. */
static bool is_about(const char *text, const char *noun, const char *name)
{
    char lead[96];
    int n = snprintf(lead, sizeof(lead), "%s %.60s:", noun, name);

    return n > 0 && strncmp(text, lead, (size_t)n) == 0;
}

static int team_line(const struct stk_teams *t, const char *text)
{
    for (uint32_t i = 0; i < t->n_tenants; i++)
        if (is_about(text, "tenant", t->tenants[i].name))
            return t->tenants[i].line;
    for (uint32_t i = 0; i < t->n_queues; i++)
        if (is_about(text, "queue", t->queues[i].name))
            return t->queues[i].line;
    return 0;
}

/* Line of a parameter of the file that the sentence names. */
static int param_line(const struct stk_config *c, const char *text)
{
    for (uint32_t i = 0; i < c->policy.n_params; i++) {
        char name[96];

        (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(c->policy.params[i], "="),
                       c->policy.params[i]);
        if (strstr(text, name))
            return c->param_line[i];
    }
    return 0;
}

/* Line of a policy that the sentence names, else of whatever is said of policies first, else of the
 * tenants, else of the queues. */
static int policy_line(const struct stk_config *c, const char *text)
{
    static const char *const keys[] = {"policy.preempt", "policy.backfill", "policy.order",
                                       "policy.place"};
    static const char *const rest[] = {"policy.bundle", "policy.preempt", "policy.backfill",
                                       "policy.order",  "policy.place",   "policy.params",
                                       "tenants",       "queues"};
    const char *const values[] = {c->policy.preempt, c->policy.backfill, c->policy.order,
                                  c->policy.place};
    int line = 0;

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys) && line == 0; i++)
        if (values[i] && strstr(text, values[i]))
            line = stk_config_line(c, keys[i]);
    for (size_t i = 0; i < sizeof(rest) / sizeof(*rest) && line == 0; i++)
        line = stk_config_line(c, rest[i]);
    return line;
}

int stk_config_refuse_policy(const struct stk_config *c, const char *what, struct stk_err *err)
{
    static const char together[] = "tenants are guaranteed ";
    int line = c->teams ? team_line(c->teams, what) : 0;

    if (line == 0 && strncmp(what, together, sizeof(together) - 1) == 0)
        line = stk_config_line(c, "tenants");
    line = line ? line : param_line(c, what);
    line = line ? line : policy_line(c, what);
    return refuse_at(c, line, what, err);
}
