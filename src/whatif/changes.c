/* SPDX-License-Identifier: Apache-2.0 */
/* changes.c - what is to be different in a world: quotas, machines, policy. Changes are made in its
 * JSON, so that what is not possible is told in the same words as in a file. */
#include <stdlib.h>
#include <string.h>

#include "whatif/whatif.h"

/* ---- quotas ---- */

static json_t *find_tenant(json_t *list, const char *name, int depth)
{
    json_t *t, *found;
    size_t i;

    json_array_foreach(list, i, t)
    {
        const char *own = json_string_value(json_object_get(t, "name"));

        if (own && strcmp(own, name) == 0)
            return t;
        found = depth < STK_MAX_TENANT_DEPTH
                    ? find_tenant(json_object_get(t, "tenants"), name, depth + 1)
                    : NULL;
        if (found)
            return found;
    }
    return NULL;
}

static int set_number(json_t *o, const char *key, json_t *v, struct stk_err *err)
{
    if (json_is_null(v))
        return json_object_del(o, key), 0;
    if (!json_is_number(v) || json_number_value(v) < 0)
        return stk_err_set(err, -EINVAL, "quotas: %.40s must be a number from 0 on, or null", key);
    return json_object_set(o, key, v) < 0 ? -ENOMEM : 0;
}

static int set_types(json_t *tenant, const char *key, json_t *types, struct stk_err *err)
{
    json_t *of = json_object_get(tenant, key), *v;
    const char *type;
    int rc = 0;

    if (!json_is_object(types))
        return stk_err_set(err, -EINVAL, "quotas: %.40s are numbers by GPU type", key);
    if (!of) {
        of = json_object();
        (void)json_object_set_new(tenant, key, of);
    }
    json_object_foreach(types, type, v)
    {
        rc = rc < 0 ? rc : set_number(of, type, v, err);
    }
    return rc;
}

static int set_quota(json_t *tenant, json_t *numbers, struct stk_err *err)
{
    const char *key;
    json_t *v;
    int rc = 0;

    json_object_foreach(numbers, key, v)
    {
        if (strcmp(key, "limits") == 0 || strcmp(key, "guarantees") == 0)
            rc = set_types(tenant, key, v, err);
        else if (strcmp(key, "limit") == 0 || strcmp(key, "guarantee") == 0 ||
                 strcmp(key, "weight") == 0)
            rc = set_number(tenant, key, v, err);
        else
            rc = stk_err_set(err, -EINVAL,
                             "quotas: \"%.40s\" is not known; a tenant has limit, guarantee, "
                             "weight, limits and guarantees",
                             key);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* 'must': a tenant that is not there is an error; else what was set for it is of no use. */
static int set_quotas(json_t *world, json_t *quotas, bool must, struct stk_err *err)
{
    json_t *list = json_object_get(json_object_get(world, "teams"), "tenants"), *v;
    const char *name;
    int rc = 0;

    if (quotas && !json_is_object(quotas) && !json_is_null(quotas))
        return stk_err_set(err, -EINVAL, "quotas must be {\"tenant\": {\"limit\": 8}}");
    json_object_foreach(quotas, name, v)
    {
        json_t *tenant = find_tenant(list, name, 0);

        if (!tenant && !must)
            continue;
        if (!tenant)
            return stk_err_set(err, -EINVAL, "quotas: there was no tenant \"%.60s\"", name);
        rc = set_quota(tenant, v, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- machines ---- */

/* The machines that words say. -EINVAL with a sentence that begins with the key. */
static int read_nodes(const char *key, json_t *words, struct stk_cluster *ret, struct stk_err *err)
{
    const char *text = json_string_value(words);
    struct stk_err why = {""};
    int rc;

    if (!text || strchr(text, '/') || strchr(text, '.'))
        return stk_err_set(err, -EINVAL, "%s must be words such as 4x8:H100", key);
    rc = stk_cluster_parse(ret, text, &why);
    if (rc < 0)
        return stk_err_set(err, -EINVAL, "%s: %.200s", key, why.text);
    if (ret->n_nodes > STK_WHATIF_MAX_CHANGE_NODES) {
        stk_cluster_done(ret);
        return stk_err_set(err, -EINVAL, "%s: at most %u nodes", key, STK_WHATIF_MAX_CHANGE_NODES);
    }
    return 0;
}

static json_int_t count_of(json_t *row)
{
    json_t *n = json_object_get(row, "count");

    return n ? json_integer_value(n) : 1;
}

static int set_count(json_t *row, json_int_t n)
{
    return json_object_set_new(row, "count", json_integer(n)) < 0 ? -ENOMEM : 0;
}

/* One that is like those of this size and type, or has nothing but these. */
static json_t *node_like(json_t *list, uint32_t gpus, const char *type)
{
    json_t *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        const char *own = json_string_value(json_object_get(row, "gpu_type"));

        if (json_integer_value(json_object_get(row, "gpus")) == (json_int_t)gpus && own &&
            strcmp(own, type) == 0)
            return json_copy(row);
    }
    return json_pack("{s:i,s:s}", "gpus", (int)gpus, "gpu_type", type);
}

/* One more; equal ones side by side are one row. */
static int add_node(json_t *list, uint32_t gpus, const char *type)
{
    json_t *last = json_array_get(list, json_array_size(list) - 1),
           *row = node_like(list, gpus, type);

    if (!row || set_count(row, last ? count_of(last) : 1) < 0) {
        json_decref(row);
        return -ENOMEM;
    }
    if (last && json_equal(row, last)) {
        json_decref(row);
        return set_count(last, count_of(last) + 1);
    }
    (void)set_count(row, 1);
    return json_array_append_new(list, row) < 0 ? -ENOMEM : 0;
}

int stk_world_add_nodes(json_t *world, json_t *words, struct stk_err *err)
{
    json_t *list = json_object_get(world, "nodes");
    const char *first = json_string_value(json_object_get(json_array_get(list, 0), "gpu_type"));
    struct stk_cluster more = {0};
    int rc;

    if (!words || json_is_null(words))
        return 0;
    rc = read_nodes("add_nodes", words, &more, err);
    for (uint32_t i = 0; rc == 0 && i < more.n_nodes; i++) {
        const char *type = stk_names_get(&more.gpu_types, more.nodes[i].gpu_type);

        /* without a type: more of what there is */
        type = strcmp(type, STK_GPU_TYPE_DEFAULT) == 0 && first ? first : type;
        rc = add_node(list, more.nodes[i].gpus, type);
    }
    stk_cluster_done(&more);
    return rc == -ENOMEM ? stk_err_set(err, rc, "out of memory") : rc;
}

/* One less: the last that has so many GPUs, of this type ("": any). */
static int remove_node(json_t *list, uint32_t gpus, const char *type, struct stk_err *err)
{
    for (size_t i = json_array_size(list); i-- > 0;) {
        json_t *row = json_array_get(list, i);
        const char *own = json_string_value(json_object_get(row, "gpu_type"));
        json_int_t n = count_of(row);

        if (json_integer_value(json_object_get(row, "gpus")) == (json_int_t)gpus && n > 0 &&
            (!*type || (own && strcmp(own, type) == 0)))
            return set_count(row, n - 1);
    }
    return stk_err_set(err, -EINVAL,
                       "remove_nodes: there are not that many nodes of %u GPUs%s%.60s", gpus,
                       *type ? " of type " : "", type);
}

static int remove_nodes(json_t *world, json_t *words, struct stk_err *err)
{
    json_t *list = json_object_get(world, "nodes");
    struct stk_cluster less = {0};
    int rc;

    if (!words || json_is_null(words))
        return 0;
    rc = read_nodes("remove_nodes", words, &less, err);
    for (uint32_t i = 0; rc == 0 && i < less.n_nodes; i++) {
        const char *type = stk_names_get(&less.gpu_types, less.nodes[i].gpu_type);

        rc = remove_node(list, less.nodes[i].gpus,
                         strcmp(type, STK_GPU_TYPE_DEFAULT) == 0 ? "" : type, err);
    }
    stk_cluster_done(&less);
    return rc;
}

/* Rows of which none is left have stayed so long to say what others are like. */
static int drop_empty(json_t *world, struct stk_err *err)
{
    json_t *list = json_object_get(world, "nodes");

    for (size_t i = json_array_size(list); i-- > 0;)
        if (count_of(json_array_get(list, i)) == 0)
            (void)json_array_remove(list, i);
    if (json_array_size(list) == 0)
        return stk_err_set(err, -EINVAL, "remove_nodes: no machine would be left");
    return 0;
}

/* ---- the policy ---- */

static bool same_name(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");

    return n == strcspn(b, "=") && memcmp(a, b, n) == 0;
}

/* The parameters of one in front of another's, which give way. */
static json_t *join_params(json_t *old, json_t *new)
{
    json_t *list = json_array(), *v, *w;
    size_t i, k;

    json_array_foreach(old, i, v)
    {
        bool gone = !json_is_string(v);

        json_array_foreach(new, k, w)
        {
            gone |= json_is_string(w) && json_is_string(v) &&
                    same_name(json_string_value(v), json_string_value(w));
        }
        if (!gone)
            (void)json_array_append(list, v);
    }
    json_array_foreach(new, k, w)
    {
        (void)json_array_append(list, w);
    }
    return list;
}

const char *const stk_world_choices[] = {"bundle", "order", "backfill", "place", "preempt", NULL};

/* Another bundle takes the place of all; single choices and parameters are put over it. */
static int change_policy(json_t *world, json_t *change, struct stk_err *err)
{
    json_t *old = json_object_get(world, "policy"), *p, *v;
    const char *key;
    bool whole = json_is_string(json_object_get(change, "bundle"));

    if (!change || json_is_null(change))
        return 0;
    if (!json_is_object(change))
        return stk_err_set(err, -EINVAL, "policy must be {\"order\": \"fairshare\"}");
    p = old && !whole ? json_copy(old) : json_object();
    json_object_foreach(change, key, v)
    {
        size_t i = 0;

        while (stk_world_choices[i] && strcmp(key, stk_world_choices[i]) != 0)
            i++;
        if (stk_world_choices[i] && json_is_string(v)) {
            (void)json_object_set(p, key, v);
        } else if (strcmp(key, "params") == 0 && json_is_array(v)) {
            (void)json_object_set_new(p, key, join_params(json_object_get(p, key), v));
        } else {
            json_decref(p);
            return stk_err_set(err, -EINVAL,
                               "policy.%.40s is not understood; there are bundle, order, "
                               "backfill, place, preempt (names) and params (a list of "
                               "\"name=value\")",
                               key);
        }
    }
    return json_object_set_new(world, "policy", p) < 0 ? -ENOMEM : 0;
}

/* ---- all of it ---- */

static int check_changes(json_t *changes, struct stk_err *err)
{
    static const char *const known[] = {"policy", "add_nodes", "remove_nodes", "quotas"};
    const char *key;
    json_t *v;

    json_object_foreach(changes, key, v)
    {
        size_t i = 0;

        while (i < sizeof(known) / sizeof(*known) && strcmp(key, known[i]) != 0)
            i++;
        if (i == sizeof(known) / sizeof(*known))
            return stk_err_set(err, -EINVAL,
                               "changes: \"%.40s\" is not known; there are policy, add_nodes, "
                               "remove_nodes, quotas",
                               key);
    }
    return 0;
}

int stk_world_change(json_t *world, json_t *changes, struct stk_err *err)
{
    int rc = check_changes(changes, err);

    rc = rc < 0 ? rc : set_quotas(world, json_object_get(world, "quotas"), false, err);
    rc = rc < 0 ? rc : set_quotas(world, json_object_get(changes, "quotas"), true, err);
    rc = rc < 0 ? rc : remove_nodes(world, json_object_get(changes, "remove_nodes"), err);
    rc = rc < 0 ? rc : stk_world_add_nodes(world, json_object_get(changes, "add_nodes"), err);
    rc = rc < 0 ? rc : drop_empty(world, err);
    return rc < 0 ? rc : change_policy(world, json_object_get(changes, "policy"), err);
}
