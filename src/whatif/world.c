/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - the world that a note carries, as the simulator wants it. JSON is YAML: the texts of
 * machines, tenants and queues are read by those who read files of them. Changes are made in the
 * JSON first, so that what is not possible is told in the same words as in a file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "whatif/whatif.h"

#define MAX_PARAMS 64

/* ---- changes ---- */

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

static int add_nodes(json_t *world, json_t *words, struct stk_err *err)
{
    json_t *list = json_object_get(world, "nodes");
    struct stk_cluster more = {0};
    struct stk_err why = {""};
    int rc;

    if (!words || json_is_null(words))
        return 0;
    if (!json_is_string(words) || strchr(json_string_value(words), '/') ||
        strchr(json_string_value(words), '.'))
        return stk_err_set(err, -EINVAL, "add_nodes must be words such as 4x8:H100");
    rc = stk_cluster_parse(&more, json_string_value(words), &why);
    if (rc < 0)
        return stk_err_set(err, -EINVAL, "add_nodes: %.200s", why.text);
    if (more.n_nodes > STK_WHATIF_MAX_CHANGE_NODES)
        rc = stk_err_set(err, -EINVAL, "add_nodes: at most %u nodes", STK_WHATIF_MAX_CHANGE_NODES);
    for (uint32_t i = 0; rc == 0 && i < more.n_nodes; i++) {
        const char *type = stk_names_get(&more.gpu_types, more.nodes[i].gpu_type);
        json_t *last = json_array_get(list, 0);

        /* without a type: more of what there is */
        if (strcmp(type, STK_GPU_TYPE_DEFAULT) == 0 && json_object_get(last, "gpu_type"))
            type = json_string_value(json_object_get(last, "gpu_type"));
        rc = json_array_append_new(list, json_pack("{s:i,s:s}", "gpus", (int)more.nodes[i].gpus,
                                                   "gpu_type", type)) < 0
                 ? -ENOMEM
                 : 0;
    }
    stk_cluster_done(&more);
    return rc;
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

static const char *const choices[] = {"bundle", "order", "backfill", "place", "preempt"};
#define N_CHOICES (sizeof(choices) / sizeof(*choices))

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

        while (i < N_CHOICES && strcmp(key, choices[i]) != 0)
            i++;
        if (i < N_CHOICES && json_is_string(v)) {
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

static int resolve(json_t *policy, struct stk_setup *ret, struct stk_err *err)
{
    const char *params[MAX_PARAMS];
    struct stk_setup_words w = {.params = params};
    const char **text[N_CHOICES] = {&w.bundle, &w.order, &w.backfill, &w.place, &w.preempt};
    json_t *list = json_object_get(policy, "params"), *v;
    struct stk_err why = {""};
    size_t i;
    int rc;

    for (i = 0; i < N_CHOICES; i++)
        *text[i] = json_string_value(json_object_get(policy, choices[i]));
    json_array_foreach(list, i, v)
    {
        if (!json_is_string(v) || w.n_params == MAX_PARAMS)
            return stk_err_set(
                err, -EINVAL, "policy.params: at most %d texts such as las.round_s=60", MAX_PARAMS);
        params[w.n_params++] = json_string_value(v);
    }
    rc = stk_setup_resolve(&w, ret, &why);
    return rc < 0 ? stk_err_set(err, rc, "policy: %.220s", why.text) : 0;
}

/* A parameter of the change that its policies do not take is a mistake. */
static int check_params(json_t *change, const struct stk_setup *s, struct stk_err *err)
{
    json_t *list = json_object_get(change, "params"), *v;
    size_t i;

    json_array_foreach(list, i, v)
    {
        if (!stk_setup_uses(s, json_string_value(v)))
            return stk_err_set(err, -EINVAL, "policy: no policy of this run takes %.80s",
                               json_string_value(v));
    }
    return 0;
}

/* ---- all of it ---- */

char *stk_world_cluster_text(json_t *world)
{
    json_t *o = json_pack("{s:O}", "nodes", json_object_get(world, "nodes"));
    char *text = o ? json_dumps(o, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;

    json_decref(o);
    return text;
}

char *stk_world_teams_text(json_t *world)
{
    json_t *teams = json_object_get(world, "teams");

    return teams ? json_dumps(teams, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;
}

static int make_cluster(struct stk_world *w, struct stk_err *err)
{
    char *text = stk_world_cluster_text(w->json);
    int rc = text ? stk_cluster_parse_text(&w->cluster, "machines", text, strlen(text), err)
                  : stk_err_set(err, -EINVAL, "it is not known which machines there were");

    free(text);
    for (uint32_t i = 0; rc == 0 && i < w->cluster.n_nodes; i++)
        w->gpus += w->cluster.nodes[i].gpus;
    return rc;
}

static int make_tenants(struct stk_world *w, struct stk_err *err)
{
    char *text;
    int rc;

    if (json_object_size(json_object_get(w->json, "teams")) == 0)
        return 0;
    text = stk_world_teams_text(w->json);
    rc = text ? stk_tenants_parse(&w->tenants, "tenants", text, strlen(text), &w->cluster, err)
              : stk_err_set(err, -ENOMEM, "out of memory");
    free(text);
    w->has_tenants = rc == 0;
    return rc;
}

static int check_changes(json_t *changes, struct stk_err *err)
{
    const char *key;
    json_t *v;

    json_object_foreach(changes, key, v)
    {
        if (strcmp(key, "policy") != 0 && strcmp(key, "add_nodes") != 0 &&
            strcmp(key, "quotas") != 0)
            return stk_err_set(
                err, -EINVAL,
                "changes: \"%.40s\" is not known; there are policy, add_nodes, quotas", key);
    }
    return 0;
}

int stk_world_make(struct stk_world *w, json_t *world, json_t *changes, struct stk_err *err)
{
    json_t *policy = json_object_get(changes, "policy");
    int rc = check_changes(changes, err);

    w->json = json_deep_copy(world);
    if (rc == 0 && !w->json)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    rc = rc < 0 ? rc : set_quotas(w->json, json_object_get(world, "quotas"), false, err);
    rc = rc < 0 ? rc : set_quotas(w->json, json_object_get(changes, "quotas"), true, err);
    rc = rc < 0 ? rc : add_nodes(w->json, json_object_get(changes, "add_nodes"), err);
    rc = rc < 0 ? rc : change_policy(w->json, policy, err);
    rc = rc < 0 ? rc : resolve(json_object_get(w->json, "policy"), &w->setup, err);
    rc = rc < 0 ? rc : check_params(policy, &w->setup, err);
    rc = rc < 0 ? rc : make_cluster(w, err);
    return rc < 0 ? rc : make_tenants(w, err);
}

json_t *stk_world_of_words(const char *cluster, json_t *policy, struct stk_err *err)
{
    json_t *nodes = json_array(),
           *world = json_pack("{s:o,s:o}", "nodes", nodes, "teams", json_object()),
           *words = json_string(cluster);

    if (policy)
        (void)json_object_set(world, "policy", policy);
    if (add_nodes(world, words, err) < 0) {
        json_decref(world);
        world = NULL;
    }
    json_decref(words);
    return world;
}

void stk_world_done(struct stk_world *w)
{
    json_decref(w->json);
    stk_tenants_free(&w->tenants);
    stk_cluster_done(&w->cluster);
    *w = (struct stk_world){0};
}
