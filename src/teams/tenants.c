/* SPDX-License-Identifier: Apache-2.0 */
/* tenants.c - the tree of tenants: a list of mappings, in which lists of mappings lie. */
#include <stdlib.h>
#include <string.h>

#include "teams/read.h"

/* A new row; its number, or -ENOMEM. */
static int64_t add_row(struct stk_teams *t, uint32_t parent)
{
    if (t->n_tenants == t->cap_tenants) {
        uint32_t cap = t->cap_tenants ? 2 * t->cap_tenants : 16;
        struct stk_tenant_spec *rows = realloc(t->tenants, cap * sizeof(*rows));
        struct stk_allow *allow;

        if (!rows)
            return -ENOMEM;
        t->tenants = rows;
        allow = realloc(t->tenant_allow, cap * sizeof(*allow));
        if (!allow)
            return -ENOMEM;
        t->tenant_allow = allow;
        t->cap_tenants = cap;
    }
    t->tenant_allow[t->n_tenants] = (struct stk_allow){0};
    stk_tenant_spec_init(&t->tenants[t->n_tenants], NULL, parent);
    return t->n_tenants++;
}

/* A limit or a guarantee of single GPU types, which have the numbers of t->types for now. */
static int read_by_type(const struct stk_teams_reader *r, const char *what,
                        const struct stk_teams_field *f, uint64_t ret[STK_MAX_GPU_TYPES])
{
    struct fy_node *v = f->value;
    struct fy_node_pair *pair;
    void *it = NULL;
    int rc = 0;

    if (!fy_node_is_mapping(v) || fy_node_is_alias(v))
        return stk_teams_bad(r, v, "%s must be a mapping such as {A100: 16}", f->key);
    while (rc == 0 && (pair = fy_node_mapping_iterate(v, &it))) {
        struct fy_node *key = fy_node_pair_key(pair), *value = fy_node_pair_value(pair);
        uint32_t type = 0;

        rc = stk_teams_name(r, &r->t->types, r->t->type_line, STK_MAX_GPU_TYPES, key, &type);
        if (rc == 0 && !value)
            rc = stk_teams_bad(r, key, "this GPU type has no value");
        rc = rc < 0 ? rc : stk_teams_milli(r, what, value, STK_TEAMS_MAX_GPUS, &ret[type]);
    }
    return rc;
}

enum {
    NAME,
    LIMIT,
    LIMITS,
    GUARANTEE,
    GUARANTEES,
    WEIGHT,
    KEEP_UP,
    CPUS,
    MEM,
    USERS,
    WAS,
    ALLOW,
    TENANTS,
    N_FIELDS
};

/* Its row, which is new. */
static int name_row(const struct stk_teams_reader *r, struct fy_node *n,
                    const struct stk_teams_field *f, uint32_t parent, uint32_t *ret)
{
    struct stk_teams *t = r->t;
    struct fy_node *at = f[NAME].value ? f[NAME].value : n;
    bool is_default = stk_teams_is(at, STK_TENANT_DEFAULT);
    size_t len;
    const char *name = stk_teams_word(f[NAME].value, &len);
    int64_t row;

    if (len == 0 || len > STK_MAX_NAME_LEN)
        return stk_teams_bad(r, at, "a tenant needs a name of at most 255 bytes");
    if (is_default && (parent != STK_NONE || f[TENANTS].value || f[USERS].value))
        return stk_teams_bad(r, at,
                             "default is for all who are in no other tenant: it is at the top, has "
                             "no list of users, and none are below it");
    if (stk_names_find(&t->names, name, len) >= (is_default ? 1 : 0))
        return stk_teams_bad(r, at, "there are two tenants \"%s\"", stk_teams_show(at).text);
    *ret = 0;
    if (is_default) {
        t->tenants[0].line = stk_yaml_line_of(at);
        return 0;
    }
    if (t->n_tenants == STK_MAX_TENANTS)
        return stk_teams_bad(r, at, "there are more than %d tenants", STK_MAX_TENANTS - 1);
    row = stk_names_add(&t->names, name, len, STK_MAX_TENANTS);
    if (row < 0 || add_row(t, parent) < 0)
        return stk_teams_no_memory(r);
    t->tenants[row].line = stk_yaml_line_of(at);
    *ret = (uint32_t)row;
    return 0;
}

/* The name that it had before. */
static int read_was(const struct stk_teams_reader *r, struct fy_node *v, uint32_t row)
{
    struct stk_teams *t = r->t;
    size_t len;
    const char *name = stk_teams_word(v, &len);
    uint32_t n = t->old.n, *rows;
    int64_t at;

    if (len == 0 || len > STK_MAX_NAME_LEN)
        return stk_teams_bad(r, v, "was is the name that the tenant had before");
    if (stk_names_find(&t->old, name, len) >= 0)
        return stk_teams_bad(r, v, "two tenants were \"%s\" before", stk_teams_show(v).text);
    rows = realloc(t->old_row, (n + (size_t)1) * sizeof(*rows));
    if (!rows)
        return stk_teams_no_memory(r);
    t->old_row = rows;
    at = stk_names_add(&t->old, name, len, STK_MAX_TENANTS);
    if (at < 0)
        return stk_teams_no_memory(r);
    t->old_row[at] = row;
    return 0;
}

/* When all have been read: what a tenant was before, no other may be now. */
static int set_was(const struct stk_teams_reader *r)
{
    struct stk_teams *t = r->t;

    for (uint32_t i = 0; i < t->old.n; i++) {
        const char *was = stk_names_get(&t->old, i);
        struct stk_tenant_spec *row = &t->tenants[t->old_row[i]];

        if (stk_names_find(&t->names, was, strlen(was)) >= 0)
            return stk_err_set(r->err, -EINVAL,
                               "%s:%d: was: tenant \"%.60s\" is still in this file", r->name,
                               row->line, was);
        row->was = was;
    }
    return 0;
}

/* Jobs that stay up. */
static int read_keep_up(const struct stk_teams_reader *r, struct fy_node *v, uint32_t *ret)
{
    static const char what[] = "keep_up is a number of jobs (0 to 1000000)";
    uint64_t milli = 0;
    int rc = stk_teams_milli(r, what, v, STK_MAX_KEEP_UP, &milli);

    if (rc == 0 && milli % 1000)
        return stk_teams_bad(r, v, "%s", what);
    *ret = (uint32_t)(milli / 1000);
    return rc;
}

static int read_means(const struct stk_teams_reader *r, const struct stk_teams_field *f,
                      struct stk_tenant_spec *t)
{
    int rc = 0;

    if (f[CPUS].value)
        rc = stk_teams_milli(r, "cpus is a number of CPUs (0 to 10000000, in thousandths)",
                             f[CPUS].value, STK_TEAMS_MAX_GPUS, &t->cpu_limit);
    if (rc == 0 && f[MEM].value) {
        rc = stk_teams_milli(r, "mem_gib is a number of GiB (0 to 9000000, in thousandths)",
                             f[MEM].value, 9000000, &t->mem_limit);
        t->mem_limit = rc == 0 ? t->mem_limit * 1024 / 1000 : STK_NO_LIMIT;
    }
    return rc;
}

static int read_numbers(const struct stk_teams_reader *r, const struct stk_teams_field *f,
                        struct stk_tenant_spec *t)
{
    static const char limit[] = "a limit is " STK_TEAMS_GPUS;
    static const char guarantee[] = "a guarantee is " STK_TEAMS_GPUS;
    uint64_t weight;
    int rc = 0;

    if (f[LIMIT].value)
        rc = stk_teams_milli(r, limit, f[LIMIT].value, STK_TEAMS_MAX_GPUS, &t->limit);
    if (rc == 0 && f[LIMITS].value)
        rc = read_by_type(r, limit, &f[LIMITS], t->type_limit);
    if (rc == 0 && f[GUARANTEE].value)
        rc = stk_teams_milli(r, guarantee, f[GUARANTEE].value, STK_TEAMS_MAX_GPUS, &t->guarantee);
    if (rc == 0 && f[GUARANTEES].value)
        rc = read_by_type(r, guarantee, &f[GUARANTEES], t->type_guarantee);
    if (rc == 0 && f[WEIGHT].value) {
        rc = stk_teams_milli(r, "a weight is 0 to 1000000, in thousandths", f[WEIGHT].value,
                             STK_MAX_WEIGHT / STK_WEIGHT, &weight);
        t->weight = rc == 0 ? (uint32_t)weight : t->weight;
    }
    if (rc == 0 && f[KEEP_UP].value)
        rc = read_keep_up(r, f[KEEP_UP].value, &t->keep_up);
    return rc < 0 ? rc : read_means(r, f, t);
}

static int add_member(const struct stk_teams_reader *r, struct fy_node *at, uint32_t tenant)
{
    struct stk_teams *t = r->t;
    size_t len;
    const char *name = stk_teams_word(at, &len);
    int64_t user;

    if (len == 0 || len > STK_MAX_NAME_LEN || (len == 1 && name[0] == '@'))
        return stk_teams_bad(r, at, "expected a user, or a group such as \"@staff\"");
    if (t->n_members == STK_MAX_MEMBERS)
        return stk_teams_bad(r, at, "tenants have more than %u users", STK_MAX_MEMBERS);
    if (t->n_members == t->cap_members) {
        uint32_t cap = t->cap_members ? 2 * t->cap_members : 16;
        struct stk_member *members = realloc(t->members, cap * sizeof(*members));

        if (!members)
            return stk_teams_no_memory(r);
        t->members = members;
        t->cap_members = cap;
    }
    user = stk_names_add(&t->users, name, len, STK_MAX_MEMBERS);
    if (user < 0)
        return stk_teams_no_memory(r);
    t->members[t->n_members++] = (struct stk_member){(uint32_t)user, tenant, stk_yaml_line_of(at)};
    return 0;
}

static int read_users(const struct stk_teams_reader *r, const struct stk_teams_field *f,
                      uint32_t tenant)
{
    struct fy_node *list = f[USERS].value, *n;
    void *it = NULL;
    int rc = 0;

    if (f[TENANTS].value)
        return stk_teams_bad(r, list,
                             "users belong to tenants that have none below them: name them there");
    if (!fy_node_is_sequence(list) || fy_node_is_alias(list))
        return stk_teams_bad(r, list, "users must be a list such as [ann, \"@vision\"]");
    while (rc == 0 && (n = fy_node_sequence_iterate(list, &it)))
        rc = add_member(r, n, tenant);
    return rc;
}

static int read_list(const struct stk_teams_reader *r, struct fy_node *list, uint32_t parent,
                     uint32_t depth);

// NOLINTNEXTLINE(misc-no-recursion): at most STK_MAX_TENANT_DEPTH deep
static int read_tenant(const struct stk_teams_reader *r, struct fy_node *n, uint32_t parent,
                       uint32_t depth)
{
    struct stk_teams_field f[N_FIELDS + 1] = {
        [NAME] = {"name", NULL},           [WAS] = {"was", NULL},
        [LIMIT] = {"limit", NULL},         [LIMITS] = {"limits", NULL},
        [GUARANTEE] = {"guarantee", NULL}, [GUARANTEES] = {"guarantees", NULL},
        [WEIGHT] = {"weight", NULL},       [CPUS] = {"cpus", NULL},
        [MEM] = {"mem_gib", NULL},         [KEEP_UP] = {"keep_up", NULL},
        [USERS] = {"users", NULL},         [ALLOW] = {"allow", NULL},
        [TENANTS] = {"tenants", NULL}};
    uint32_t row = 0;
    int rc = stk_teams_fields(r, n, "a tenant", f);

    rc = rc < 0 ? rc : name_row(r, n, f, parent, &row);
    rc = rc < 0 ? rc : read_numbers(r, f, &r->t->tenants[row]);
    if (rc == 0 && f[WAS].value)
        rc = read_was(r, f[WAS].value, row);
    if (rc == 0 && f[USERS].value)
        rc = read_users(r, f, row);
    if (rc == 0 && f[ALLOW].value)
        rc = stk_teams_allow(r, f[ALLOW].value, false, &r->t->tenant_allow[row]);
    if (rc == 0 && f[TENANTS].value)
        rc = read_list(r, f[TENANTS].value, row, depth + 1);
    return rc;
}

// NOLINTNEXTLINE(misc-no-recursion)
static int read_list(const struct stk_teams_reader *r, struct fy_node *list, uint32_t parent,
                     uint32_t depth)
{
    struct fy_node *n;
    void *it = NULL;
    int rc = 0;

    if (!fy_node_is_sequence(list) || fy_node_is_alias(list))
        return stk_teams_bad(r, list,
                             "\"tenants\" must be a list such as [{name: vision, limit: 8}]");
    if (depth > STK_MAX_TENANT_DEPTH)
        return stk_teams_bad(r, list, "there are more than %d levels of tenants",
                             STK_MAX_TENANT_DEPTH);
    while (rc == 0 && (n = fy_node_sequence_iterate(list, &it)))
        rc = read_tenant(r, n, parent, depth);
    return rc;
}

int stk_teams_tenants(const struct stk_teams_reader *r, struct fy_node *at, struct fy_node *list)
{
    struct stk_teams *t = r->t;
    int rc;

    if (!list)
        return stk_teams_bad(r, at,
                             "\"tenants\" must be a list such as [{name: vision, limit: 8}]");
    if (stk_names_add(&t->names, STK_TENANT_DEFAULT, strlen(STK_TENANT_DEFAULT), 1) < 0 ||
        add_row(t, STK_NONE) < 0)
        return stk_teams_no_memory(r);
    rc = read_list(r, list, STK_NONE, 1);
    for (uint32_t i = 0; i < t->n_tenants; i++)
        t->tenants[i].name = stk_names_get(&t->names, i);
    return rc < 0 ? rc : set_was(r);
}
