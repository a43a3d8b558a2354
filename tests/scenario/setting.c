/* SPDX-License-Identifier: Apache-2.0 */
/* setting.c - the cluster, policies, tenants and queues, as the simulator reads them. */
#include "parse.h"

#include <stdlib.h>
#include <string.h>

/* "KEY VALUE" as YAML. */
static int plain_key(struct parser *p, struct scn_text *to)
{
    if (p->n != 2 || !scn_name_ok(p->word[0]))
        return scn_wrong(p, "expected KEY VALUE, got \"%.40s\"", p->n ? p->word[0] : "");
    return scn_add(to, ", %s: %s", p->word[0], p->word[1]) ? 0 : scn_wrong(p, "too long");
}

static int clause_of_cluster(struct parser *p, struct scn_text *to, bool first)
{
    uint32_t i = 0;
    bool ok = true;

    if (!first)
        return plain_key(p, to);
    if (p->n > 3 && (scn_is(p, 1, "nodes") || scn_is(p, 1, "node")) && scn_is(p, 2, "x")) {
        ok = scn_whole(p->word[0]) > 0 && scn_add(to, "count: %s, ", p->word[0]);
        i = 3;
    }
    if (!ok || i >= p->n || scn_whole(p->word[i]) < 0)
        return scn_wrong(p, "expected \"cluster: N nodes x GPUS TYPE\"");
    ok = scn_add(to, "gpus: %s", p->word[i]);
    i++;
    i += scn_is_gpus(p, i);
    if (ok && i < p->n)
        ok = scn_name_ok(p->word[i]) && scn_add(to, ", gpu_type: %s", p->word[i]), i++;
    return ok && i == p->n ? 0 : scn_wrong(p, "expected \"cluster: N nodes x GPUS TYPE\"");
}

static int policy_clause(struct parser *p, bool first)
{
    static const char *const kinds[] = {"bundle", "order", "backfill", "place", "preempt"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if ((p->n == 2 && scn_is(p, 0, kinds[i])) || (i == 0 && p->n == 1 && first)) {
            if (!scn_name_ok(p->word[p->n - 1]))
                return scn_wrong(p, "no name of a policy: %.40s", p->word[p->n - 1]);
            (void)snprintf(p->s->policy[i], SCN_MAX_NAME, "%s", p->word[p->n - 1]);
            return 0;
        }
    return scn_wrong(
        p, "expected \"policy: BUNDLE\", \"order NAME\", \"backfill NAME\", \"place NAME\" "
           "or \"preempt NAME\"");
}

int scn_read_param(struct parser *p, char *text)
{
    struct scenario *s = p->s;

    if (scn_split(p, text) < 0)
        return -EINVAL;
    if (p->n != 1 || !strchr(p->word[0], '=') || strlen(p->word[0]) >= sizeof(s->params[0]))
        return scn_wrong(p, "expected \"param: NAME=VALUE\"");
    if (s->n_params == SCN_MAX_PARAMS)
        return scn_wrong(p, "more than %d parameters", SCN_MAX_PARAMS);
    (void)snprintf(s->params[s->n_params++], sizeof(s->params[0]), "%s", p->word[0]);
    return 0;
}

/* "limit 8", "limit 8 of A100", "weight 2", "under research". */
static int clause_of_tenant(struct parser *p, struct scn_tenant *t, bool first)
{
    if (first) {
        if (p->n != 1 || !scn_name_ok(p->word[0]))
            return scn_wrong(p, "expected \"tenant: NAME, ...\"");
        (void)snprintf(t->name, sizeof(t->name), "%s", p->word[0]);
        return 0;
    }
    if (p->n == 2 && scn_is(p, 0, "under") && scn_name_ok(p->word[1])) {
        (void)snprintf(t->parent, sizeof(t->parent), "%s", p->word[1]);
        return 0;
    }
    if (p->n == 4 && scn_is(p, 2, "of") && scn_name_ok(p->word[0]) && scn_name_ok(p->word[3]))
        return scn_add(&t->keys, ", %ss: {%s: %s}", p->word[0], p->word[3], p->word[1])
                   ? 0
                   : scn_wrong(p, "too long");
    return plain_key(p, &t->keys);
}

static int one_cluster(struct parser *p, void *ctx, bool first)
{
    return clause_of_cluster(p, ctx, first);
}

static int one_policy(struct parser *p, void *ctx, bool first)
{
    (void)ctx;
    return policy_clause(p, first);
}

static int one_tenant(struct parser *p, void *ctx, bool first)
{
    return clause_of_tenant(p, ctx, first);
}

int scn_read_cluster(struct parser *p, char *text)
{
    struct scn_text *t = &p->s->cluster;
    int rc;

    p->s->cluster_line = p->line;
    if (!scn_add(t, t->len ? "  - {" : "nodes:\n  - {"))
        return scn_wrong(p, "too long");
    rc = scn_clauses(p, text, one_cluster, t);
    return rc < 0 ? rc : scn_add(t, "}\n") ? 0 : scn_wrong(p, "too long");
}

int scn_read_tenant(struct parser *p, char *text)
{
    struct scenario *s = p->s;
    struct scn_tenant *t;
    int rc;

    if (!s->tenant)
        s->tenant = calloc(SCN_MAX_TENANTS, sizeof(*s->tenant));
    if (!s->tenant || s->n_tenants == SCN_MAX_TENANTS)
        return scn_wrong(p, "more than %d tenants", SCN_MAX_TENANTS);
    t = &s->tenant[s->n_tenants++];
    t->line = p->line;
    s->tenants_line = p->line;
    rc = scn_clauses(p, text, one_tenant, t);
    for (uint32_t i = 0; rc == 0 && *t->parent; i++) {
        if (i == s->n_tenants - 1)
            return scn_wrong(p, "no tenant %s above this line", t->parent);
        if (strcmp(s->tenant[i].name, t->parent) == 0)
            break;
    }
    return rc;
}

/* "NAME {...}", as YAML has it. */
int scn_read_queue(struct parser *p, char *text)
{
    char *yaml = strchr(text, '{');
    char name[SCN_MAX_NAME];
    size_t n = yaml ? strlen(yaml) : 0;

    if (!yaml || yaml[n - 1] != '}' || yaml == text)
        return scn_wrong(p, "expected \"queue: NAME {KEY: VALUE, ...}\"");
    yaml[-1] = '\0';
    if (scn_split(p, text) < 0 || p->n != 1 || !scn_name_ok(p->word[0]))
        return scn_wrong(p, "expected \"queue: NAME {KEY: VALUE, ...}\"");
    (void)snprintf(name, sizeof(name), "%s", p->word[0]);
    p->s->tenants_line = p->line;
    return scn_add(&p->s->queues, "  %s: %s\n", name, yaml) ? 0 : scn_wrong(p, "too long");
}

/* The tenants below 'parent', as YAML. */
bool scn_write_tenants(struct scenario *s, const char *parent, uint32_t depth)
{
    bool ok = scn_add(&s->tenants, "[");

    for (uint32_t i = 0, n = 0; ok && i < s->n_tenants && depth < 16; i++) {
        struct scn_tenant *t = &s->tenant[i];
        bool above = false;

        if (strcmp(t->parent, parent) != 0)
            continue;
        for (uint32_t k = i + 1; k < s->n_tenants; k++)
            above |= strcmp(s->tenant[k].parent, t->name) == 0;
        ok = scn_add(&s->tenants, "%s{name: %s%s", n++ ? ", " : "", t->name,
                     t->keys.s ? t->keys.s : "");
        if (ok && above)
            ok = scn_add(&s->tenants, ", tenants: ") && scn_write_tenants(s, t->name, depth + 1);
        ok = ok && scn_add(&s->tenants, "}");
    }
    return ok && scn_add(&s->tenants, "]");
}

int scn_read_policy(struct parser *p, char *text)
{
    return scn_clauses(p, text, one_policy, NULL);
}
