/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - the world that a note carries, as the simulator wants it. JSON is YAML: the texts of
 * machines, tenants and queues are read by those who read files of them. */
#include <stdlib.h>
#include <string.h>

#include "whatif/whatif.h"

#define MAX_PARAMS 64

/* The priority of the default queue. */
static int32_t usual_priority(json_t *teams)
{
    const char *name = json_string_value(json_object_get(teams, "default_queue"));
    const json_t *queue = name ? json_object_get(json_object_get(teams, "queues"), name) : NULL,
                 *priority = json_object_get(queue, "class");

    return json_is_integer(priority) ? (int32_t)json_integer_value(priority)
                                     : stk_default_queues[0].priority;
}

/* As the daemon resolves it: where tenants were configured "default" means them. Those of an
 * imported trace are nobody's configuration. */
static int resolve(json_t *world, struct stk_setup *ret, struct stk_err *err)
{
    const char *params[MAX_PARAMS];
    json_t *policy = json_object_get(world, "policy"), *teams = json_object_get(world, "teams");
    struct stk_setup_words w = {.params = params,
                                .tenants = !json_is_true(json_object_get(world, "imported")) &&
                                           json_array_size(json_object_get(teams, "tenants")) > 0};
    const char **text[] = {&w.bundle, &w.order, &w.backfill, &w.place, &w.preempt};
    json_t *list = json_object_get(policy, "params"), *v;
    struct stk_err why = {""};
    size_t i;
    int rc;

    for (i = 0; stk_world_choices[i]; i++)
        *text[i] = json_string_value(json_object_get(policy, stk_world_choices[i]));
    json_array_foreach(list, i, v)
    {
        if (!json_is_string(v) || w.n_params == MAX_PARAMS)
            return stk_err_set(
                err, -EINVAL, "policy.params: at most %d texts such as las.round_s=60", MAX_PARAMS);
        params[w.n_params++] = json_string_value(v);
    }
    rc = stk_setup_resolve(&w, ret, &why);
    rc = rc < 0 ? rc : stk_setup_serve(ret, usual_priority(teams), &why);
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

int stk_world_make(struct stk_world *w, json_t *world, json_t *changes, struct stk_err *err)
{
    json_t *policy = json_object_get(changes, "policy");
    int rc = 0;

    w->json = json_deep_copy(world);
    if (!w->json)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    rc = rc < 0 ? rc : stk_world_change(w->json, changes, err);
    rc = rc < 0 ? rc : resolve(w->json, &w->setup, err);
    rc = rc < 0 ? rc : check_params(policy, &w->setup, err);
    rc = rc < 0 ? rc : make_cluster(w, err);
    return rc < 0 ? rc : make_tenants(w, err);
}

json_t *stk_world_of_words(const char *cluster, json_t *policy, struct stk_err *err)
{
    json_t *world = json_pack("{s:[],s:{},s:b}", "nodes", "teams", "imported", true),
           *words = json_string(cluster);

    if (policy)
        (void)json_object_set(world, "policy", policy);
    if (stk_world_add_nodes(world, words, err) < 0) {
        json_decref(world);
        world = NULL;
    }
    json_decref(words);
    return world;
}

int stk_world_take_tenants(json_t *world, const struct stk_trace *t, struct stk_err *err)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < t->tenants.n && i < STK_MAX_TENANTS - 1; i++) {
        const char *name = stk_names_get(&t->tenants, i);

        if (strlen(name) < STK_MAX_NAME_LEN)
            (void)json_array_append_new(list, json_pack("{s:s}", "name", name));
    }
    if (json_object_set_new(json_object_get(world, "teams"), "tenants", list) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    return 0;
}

void stk_world_done(struct stk_world *w)
{
    json_decref(w->json);
    stk_tenants_free(&w->tenants);
    stk_cluster_done(&w->cluster);
    *w = (struct stk_world){0};
}
