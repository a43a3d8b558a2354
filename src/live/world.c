/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - the world as the configuration has it, as JSON that the simulator reads back: machines
 * (the YAML of
 * --cluster), tenants and queues (the YAML of --tenants, which JSON is a part of), and the policy
 * in the words of the configuration. All numbers are those of the configuration: what operators
 * have set instead is added by notes.c, and what rules change by the clock is no part of it. */
#include <stdlib.h>
#include <string.h>

#include "live/state.h"

static void set(json_t *o, const char *key, json_t *take)
{
    (void)json_object_set_new(o, key, take);
}

/* Thousandths as a number; whole ones without decimals. */
static json_t *thousandths(uint64_t milli)
{
    json_int_t whole = (json_int_t)(milli / 1000);

    return milli % 1000 ? json_real((double)milli / 1000) : json_integer(whole);
}

/* ---- machines ---- */

static json_t *gib(uint64_t mib)
{
    uint64_t milli = mib * 1000 / 1024;

    return json_real((double)milli / 1000);
}

static json_t *show_node(const struct stk_live *l, const struct stk_node_spec *n)
{
    json_t *o = json_pack("{s:i,s:s}", "gpus", (int)n->gpus, "gpu_type",
                          n->gpu_type < l->cfg.n_gpu_types ? l->cfg.gpu_types[n->gpu_type] : "gpu");

    if (n->gpu_mem_mib)
        set(o, "gpu_mem_gib", gib(n->gpu_mem_mib));
    if (n->cpu_milli)
        set(o, "cpus", thousandths(n->cpu_milli));
    if (n->mem_mib)
        set(o, "mem_gib", gib(n->mem_mib));
    if (n->mig)
        set(o, "mig", json_true());
    if (l->cfg.core.n_pools > 1)
        set(o, "pool", json_string(l->cfg.pools[n->pool.i]));
    for (uint32_t i = 0; i < STK_MAX_RESOURCES; i++) {
        if (!n->resource[i] || i >= l->cfg.core.n_resources)
            continue;
        if (!json_object_get(o, "resources"))
            set(o, "resources", json_object());
        set(json_object_get(o, "resources"), l->cfg.core.resource_names[i],
            json_integer(n->resource[i]));
    }
    return o;
}

/* Equal ones side by side are one row. */
static json_t *show_nodes(const struct stk_live *l)
{
    json_t *list = json_array(), *last = NULL;
    json_int_t count = 0;

    for (uint32_t i = 0; i < l->cfg.core.n_nodes; i++) {
        json_t *o = show_node(l, &l->cfg.core.nodes[i]);

        if (last && json_equal(o, last)) {
            count++;
            json_decref(o);
            continue;
        }
        if (last)
            set(json_array_get(list, json_array_size(list) - 1), "count", json_integer(count));
        json_decref(last);
        last = o;
        count = 1;
        (void)json_array_append_new(list, json_copy(o));
    }
    if (last)
        set(json_array_get(list, json_array_size(list) - 1), "count", json_integer(count));
    json_decref(last);
    return list;
}

/* ---- tenants and queues ---- */

static void show_types(const struct stk_live *l, const struct stk_tenant_spec *t, json_t *o)
{
    json_t *limits = json_object(), *sure = json_object();

    for (uint32_t i = 0; i < l->cfg.n_gpu_types && i < STK_MAX_GPU_TYPES; i++) {
        if (t->type_limit[i] != STK_NO_LIMIT)
            set(limits, l->cfg.gpu_types[i], thousandths(t->type_limit[i]));
        if (t->type_guarantee[i] != STK_GUARANTEE_SUM)
            set(sure, l->cfg.gpu_types[i], thousandths(t->type_guarantee[i]));
    }
    if (json_object_size(limits))
        (void)json_object_set(o, "limits", limits);
    if (json_object_size(sure))
        (void)json_object_set(o, "guarantees", sure);
    json_decref(limits);
    json_decref(sure);
}

static json_t *show_tenant(const struct stk_live *l, uint32_t i)
{
    const struct stk_tenant_spec *t = &l->cfg.core.tenants[i];
    json_t *o = json_pack("{s:s,s:o}", "name", t->name, "weight", thousandths(t->weight)),
           *users = stk_live_members(l, i);

    if (t->limit != STK_NO_LIMIT)
        set(o, "limit", thousandths(t->limit));
    if (t->guarantee != STK_GUARANTEE_SUM)
        set(o, "guarantee", thousandths(t->guarantee));
    if (t->cpu_limit != STK_NO_LIMIT)
        set(o, "cpus", thousandths(t->cpu_limit));
    if (t->mem_limit != STK_NO_LIMIT)
        set(o, "mem_gib", gib(t->mem_limit));
    show_types(l, t, o);
    if (json_array_size(users))
        (void)json_object_set(o, "users", users);
    json_decref(users);
    return o;
}

/* Those below a tenant stand inside it; those above come first in the table. */
static json_t *show_tenants(const struct stk_live *l)
{
    const struct stk_core_config *c = &l->cfg.core;
    json_t **made = calloc(c->n_tenants + 1u, sizeof(*made)), *top = json_array();

    for (uint32_t i = 0; made && i < c->n_tenants; i++) {
        uint32_t parent = c->tenants[i].parent;
        json_t *in = top;

        made[i] = show_tenant(l, i);
        if (parent < i) {
            in = json_object_get(made[parent], "tenants");
            if (!in) {
                in = json_array();
                set(made[parent], "tenants", in);
            }
        }
        (void)json_array_append_new(in, made[i]);
    }
    free(made);
    return top;
}

static json_t *show_limit(const struct stk_queue_limit *m)
{
    json_t *o = json_object();

    if (m->milli != STK_NO_LIMIT)
        set(o, "gpus", thousandths(m->milli));
    if (m->jobs != STK_NO_JOB_LIMIT)
        set(o, "jobs", json_integer(m->jobs));
    return o;
}

static json_t *show_queue(const struct stk_live *l, const struct stk_queue_spec *q)
{
    json_t *o = json_pack("{s:i,s:s}", "class", (int)q->priority, "tier", stk_tier_name(q->tier)),
           *job = json_object();

    if (q->lowest != -STK_MAX_PRIORITY || q->most != STK_MAX_PRIORITY)
        set(o, "classes", json_pack("[i,i]", (int)q->lowest, (int)q->most));
    if (q->pool)
        set(o, "pool", json_string(l->cfg.pools[q->pool - 1]));
    if (q->job_milli != STK_NO_LIMIT)
        set(job, "gpus", thousandths(q->job_milli));
    if (q->job_time)
        set(job, "time", json_integer(q->job_time / STK_SECOND));
    if (json_object_size(job))
        (void)json_object_set(o, "job", job);
    json_decref(job);
    for (int of = 0; of < STK_QUEUE_OF_MAX; of++) {
        json_t *limit = show_limit(&q->limit[of]);

        if (json_object_size(limit))
            (void)json_object_set(o, stk_queue_of_name((enum stk_queue_of)of), limit);
        json_decref(limit);
    }
    return o;
}

static void show_queues(const struct stk_live *l, json_t *world)
{
    const struct stk_core_config *c = &l->cfg.core;
    json_t *queues = json_object();

    for (uint32_t i = 0; i < stk_n_default_queues; i++)
        set(queues, stk_default_queues[i].name, json_string("off"));
    for (uint32_t i = 0; i < c->n_queues; i++)
        set(queues, c->queues[i].name, show_queue(l, &c->queues[i]));
    set(world, "queues", queues);
    set(world, "default_queue", json_string(c->queues[0].name));
}

json_t *stk_live_configured(const struct stk_live *l)
{
    json_t *o = json_pack("{s:o,s:o}", "nodes", show_nodes(l), "teams", json_object()), *teams;

    teams = json_object_get(o, "teams");
    if (l->cfg.core.n_tenants > 0)
        set(teams, "tenants", show_tenants(l));
    if (l->cfg.core.n_queues > 0)
        show_queues(l, teams);
    set(o, "policy", l->cfg.policy_words ? json_incref(l->cfg.policy_words) : json_object());
    return o;
}
