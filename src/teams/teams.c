/* SPDX-License-Identifier: Apache-2.0 */
#include "teams/teams.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "teams/read.h"

static const char *const keys[STK_TEAMS_KEYS] = {[STK_TEAMS_TENANTS] = "tenants",
                                                 [STK_TEAMS_CLASSES] = "classes",
                                                 [STK_TEAMS_QUEUES] = "queues",
                                                 [STK_TEAMS_DEFAULT] = "default_queue"};

bool stk_teams_take(struct stk_teams *t, struct fy_node *key, struct fy_node *value)
{
    for (int i = 0; i < STK_TEAMS_KEYS; i++)
        if (stk_teams_is(key, keys[i])) {
            t->found[i].key = key;
            t->found[i].value = value;
            return true;
        }
    return false;
}

int stk_teams_read(struct stk_teams *t, const char *name, struct stk_err *err)
{
    const struct stk_teams_reader r = {t, name, err};
    int rc = 0;

    for (int i = 0; i < STK_TEAMS_KEYS; i++)
        if (t->found[i].key && !t->found[i].value)
            return stk_teams_bad(&r, t->found[i].key, "%s has no value", keys[i]);
    rc = stk_teams_classes(&r, t->found[STK_TEAMS_CLASSES].value);
    if (rc == 0 && t->found[STK_TEAMS_TENANTS].key)
        rc = stk_teams_tenants(&r, t->found[STK_TEAMS_TENANTS].key,
                               t->found[STK_TEAMS_TENANTS].value);
    rc = rc < 0 ? rc : stk_teams_queues(&r, t->found[STK_TEAMS_QUEUES].value);
    rc = rc < 0 ? rc : stk_teams_default(&r, t->found[STK_TEAMS_DEFAULT].value);
    memset(t->found, 0, sizeof(t->found)); /* the document goes */
    return rc;
}

/* ---- a file of its own ---- */

static int read_document(const struct stk_teams_reader *r, struct fy_node *root)
{
    struct fy_node_pair *pair;
    void *it = NULL;

    if (!root || !fy_node_is_mapping(root))
        return stk_teams_bad(r, root,
                             "expected \"tenants:\" and a list of tenants, or \"queues:\"");
    while ((pair = fy_node_mapping_iterate(root, &it)))
        if (!stk_teams_take(r->t, fy_node_pair_key(pair), fy_node_pair_value(pair)))
            return stk_teams_bad(r, fy_node_pair_key(pair),
                                 "unknown key \"%s\"; there are tenants, queues, classes and "
                                 "default_queue",
                                 stk_teams_show(fy_node_pair_key(pair)).text);
    return stk_teams_read(r->t, r->name, r->err);
}

/* Some versions of libfyaml never return from what is refused here. */
static int check_text(const struct stk_teams_reader *r, const char *text, size_t len)
{
    bool start = true;
    int line = 1;

    for (size_t i = 0; i < len;) {
        uint32_t code;
        size_t n = stk_utf8(text + i, len - i, &code);

        if (n == 0 || (code < 0x20 && code != '\t' && code != '\n' && code != '\r'))
            return stk_err_set(r->err, -EINVAL, "%s:%d: expected text in UTF-8", r->name, line);
        if (start && code == '%')
            return stk_err_set(r->err, -EINVAL, "%s:%d: YAML directives are not supported", r->name,
                               line);
        start = code == '\n';
        line += start;
        i += n;
    }
    return 0;
}

int stk_teams_parse(struct stk_teams *t, const char *name, const char *text, size_t len,
                    struct stk_err *err)
{
    const char *slash = strrchr(name, '/');
    struct stk_teams_reader r = {t, slash && strlen(name) > 80 ? slash + 1 : name, err};
    struct stk_yaml_doc d;
    int rc = check_text(&r, text, len);

    if (rc < 0)
        return rc;
    rc = stk_yaml_open(&d, r.name, text, len, err);
    if (rc == 0)
        rc = read_document(&r, d.doc ? fy_document_root(d.doc) : NULL);
    stk_yaml_close(&d);
    return rc;
}

void stk_teams_done(struct stk_teams *t)
{
    for (uint32_t i = 0; i < t->n_tenants; i++)
        stk_teams_allow_done(&t->tenant_allow[i]);
    for (uint32_t i = 0; i < t->n_queues; i++)
        stk_teams_allow_done(&t->queue_allow[i]);
    free(t->tenant_allow);
    free(t->tenants);
    free(t->members);
    for (uint32_t i = 0; i < t->n_words; i++)
        free(t->words[i]);
    stk_names_done(&t->names);
    stk_names_done(&t->old);
    free(t->old_row);
    stk_names_done(&t->users);
    stk_names_done(&t->types);
    stk_names_done(&t->pools);
    *t = (struct stk_teams){0};
}

/* ---- what there is here ---- */

static bool contains(const char *text, const char *part)
{
    size_t n = strlen(part);

    for (; *text; text++)
        if (strncasecmp(text, part, n) == 0)
            return true;
    return false;
}

static uint32_t find_name(const char *const *names, uint32_t n, const char *name, bool loose)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    for (uint32_t i = 0; loose && i < n; i++)
        if (contains(names[i], name))
            return i;
    return STK_NONE;
}

/* In the order of the numbers here; what was not said keeps its value. */
static void place(uint64_t of[STK_MAX_GPU_TYPES], const uint32_t *here, uint32_t n, uint64_t none)
{
    uint64_t said[STK_MAX_GPU_TYPES];

    memcpy(said, of, sizeof(said));
    for (uint32_t i = 0; i < STK_MAX_GPU_TYPES; i++)
        of[i] = none;
    for (uint32_t i = 0; i < n; i++)
        if (said[i] != none)
            of[here[i]] = said[i];
}

static int resolve_types(struct stk_teams *t, const struct stk_teams_world *w, struct stk_err *err)
{
    uint32_t here[STK_MAX_GPU_TYPES];

    for (uint32_t i = 0; i < t->types.n; i++) {
        here[i] = find_name(w->types, w->n_types, stk_names_get(&t->types, i), w->loose);
        if (here[i] == STK_NONE)
            return stk_err_set(err, -EINVAL,
                               "%s:%d: the cluster has no GPUs of type \"%.60s\"; it has: %.100s",
                               w->name, t->type_line[i], stk_names_get(&t->types, i),
                               w->n_types ? w->types[0] : "none");
    }
    for (uint32_t i = 0; t->types.n > 0 && i < t->n_tenants; i++) {
        place(t->tenants[i].type_limit, here, t->types.n, STK_NO_LIMIT);
        place(t->tenants[i].type_guarantee, here, t->types.n, STK_GUARANTEE_SUM);
    }
    return 0;
}

int stk_teams_resolve(struct stk_teams *t, const struct stk_teams_world *w, struct stk_err *err)
{
    int rc = resolve_types(t, w, err);

    for (uint32_t i = 0; i < t->n_queues && rc == 0; i++) {
        const char *pool =
            t->queues[i].pool ? stk_names_get(&t->pools, t->queues[i].pool - 1) : NULL;
        uint32_t at = pool ? find_name(w->pools, w->n_pools, pool, false) : 0;

        if (pool && at == STK_NONE)
            rc = stk_err_set(err, -EINVAL, "%s:%d: there is no pool \"%.60s\"; there are: %.60s",
                             w->name, t->pool_line[t->queues[i].pool - 1], pool,
                             w->n_pools ? w->pools[0] : "none");
        else if (pool)
            t->queues[i].pool = (w->pool_of ? w->pool_of[at] : at) + 1;
        t->queue_pool[i] = pool && rc == 0 ? at + 1 : 0;
    }
    stk_names_done(&t->types);
    stk_names_done(&t->pools);
    return rc;
}

uint32_t stk_teams_find(const struct stk_teams *t, const char *tenant)
{
    int64_t row = stk_names_find(&t->names, tenant, strlen(tenant)), old;

    if (row >= 0)
        return (uint32_t)row;
    old = stk_names_find(&t->old, tenant, strlen(tenant));
    return old < 0 ? STK_NONE : t->old_row[old];
}

bool stk_teams_leaf(const struct stk_teams *t, uint32_t tenant)
{
    for (uint32_t i = tenant + 1; i < t->n_tenants; i++)
        if (t->tenants[i].parent == tenant)
            return false;
    return true;
}
