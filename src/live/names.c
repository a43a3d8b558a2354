/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - pools, queues, GPU types and resources: what a description names, as the core's
 * numbers. Where pools share nodes, the first of them has them all in the core, and a job of
 * another is one of the first that is confined to nodes of its own (sets.c). */
#include <stdio.h>
#include <string.h>

#include "live/state.h"

static int find_name(const char *const *names, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcasecmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

/* A type may be part of the full name: "h200". Of several such names the first counts. */
static int resolve_types(const struct stk_live *l, struct stk_spec *s, struct stk_err *err)
{
    struct stk_demand *d = &s->job.demand;

    if (s->n_gpu_types == 0)
        return 0;
    d->gpu_types = 0;
    for (uint32_t k = 0; k < s->n_gpu_types; k++)
        for (uint32_t i = 0; i < l->cfg.n_gpu_types; i++) {
            uint64_t bit = UINT64_C(1) << i;

            if ((d->gpu_types & bit) || !strcasestr(l->cfg.gpu_types[i], s->gpu_types[k]))
                continue;
            d->gpu_types |= bit;
            if (stk_demand_set_speed(d, i, s->gpu_speeds[k]) < 0)
                return stk_err_set(err, -EINVAL,
                                   "at most %d GPU types may have a speed other than 1",
                                   STK_MAX_SPEEDS);
        }
    if (d->gpu_types == 0)
        return stk_err_set(err, -EINVAL, "there are no GPUs of type \"%.60s\" here; there are: %s",
                           s->gpu_types[0], l->cfg.n_gpu_types ? l->cfg.gpu_types[0] : "none");
    return 0;
}

/* The names, with commas between them; "none". */
static const char *list_names(const char *const *names, uint32_t n, char *buf, size_t size)
{
    size_t len = (size_t)snprintf(buf, size, "%s", n ? "" : "none");

    for (uint32_t i = 0; i < n && len < size; i++)
        if (*names[i]) /* else a pool of the past */
            len += (size_t)snprintf(buf + len, size - len, "%s%s", i ? ", " : "", names[i]);
    return buf;
}

static int resolve_resources(const struct stk_live *l, struct stk_spec *s, struct stk_err *err)
{
    const struct stk_core_config *c = &l->cfg.core;
    char names[160];

    for (uint32_t k = 0; k < s->n_resources; k++) {
        uint32_t i = 0;

        while (i < c->n_resources && strcmp(c->resource_names[i], s->resources[k]) != 0)
            i++;
        if (i == c->n_resources)
            return stk_err_set(err, -EINVAL, "there is no resource \"%.60s\" here; there are: %s",
                               s->resources[k],
                               list_names(c->resource_names, c->n_resources, names, sizeof(names)));
        stk_demand_set_resource(&s->job.demand, i, s->amounts[k]);
    }
    return 0;
}

uint32_t stk_live_pool_of(const struct stk_live_config *c, uint32_t pool)
{
    return c->pool_of && pool < c->core.n_pools ? c->pool_of[pool] : pool;
}

uint32_t stk_live_queue_pool(const struct stk_live_config *c, uint32_t queue)
{
    return queue >= c->core.n_queues ? 0
           : c->teams                ? c->teams->queue_pool[queue]
                                     : c->core.queues[queue].pool;
}

bool stk_live_pool_shared(const struct stk_live_config *c, uint32_t pool)
{
    uint32_t n = 0;

    for (uint32_t i = 0; c->pool_of && i < c->core.n_pools; i++)
        n += c->pool_of[i] == pool;
    return n > 1;
}

const char *stk_live_node_pools(const struct stk_live_config *c, uint32_t node, uint32_t pool,
                                char buf[STK_POOLS_TEXT])
{
    uint64_t in = c->nodes[node].pools;
    size_t len = 0;

    if (!in)
        return c->pools[pool];
    for (buf[0] = '\0'; in && len < STK_POOLS_TEXT; in &= in - 1)
        len += (size_t)snprintf(buf + len, STK_POOLS_TEXT - len, "%s%s", len ? "," : "",
                                c->pools[__builtin_ctzll(in)]);
    return buf;
}

uint32_t stk_live_pool_row(const struct stk_live_config *c, const char *pool, uint32_t queue)
{
    uint32_t of = stk_live_queue_pool(c, queue);
    int row = of ? (int)of - 1 : pool ? find_name(c->pools, c->core.n_pools, pool) : 0;

    return row < 0 ? 0 : (uint32_t)row;
}

/* Pool and queue. Slurm's partitions are either: a pool's name that only a queue has means it. */
static int resolve_queue(const struct stk_live *l, struct stk_spec *s, struct stk_err *err)
{
    const struct stk_core_config *c = &l->cfg.core;
    const struct stk_spec_queues t = {.queues = c->n_queues ? c->queues : stk_default_queues,
                                      .n_queues = c->n_queues,
                                      .classes = l->cfg.teams ? l->cfg.teams->classes
                                                              : stk_default_classes,
                                      .n_classes = l->cfg.teams ? l->cfg.teams->n_classes : 0,
                                      .beyond = l->beyond};
    int pool = s->pool ? find_name(l->cfg.pools, c->n_pools, s->pool) : 0, rc;
    uint32_t of, row;
    char names[160];

    if (pool < 0 && !s->queue && stk_queue_find(c->queues, c->n_queues, s->pool) != STK_NONE) {
        s->queue = s->pool;
        s->pool = NULL;
        pool = 0;
    }
    if (pool < 0)
        return stk_err_set(err, -EINVAL, "there is no pool \"%.60s\"; there are: %s", s->pool,
                           list_names(l->cfg.pools, c->n_pools, names, sizeof(names)));
    rc = stk_spec_enqueue(s, &t, err);
    if (rc < 0)
        return rc;
    of = stk_live_queue_pool(&l->cfg, s->job.terms.queue);
    if (of && s->pool && of - 1 != (uint32_t)pool)
        return stk_err_set(err, -EINVAL, "pool: jobs of queue %.63s run in pool %.60s, not %.60s",
                           t.queues[s->job.terms.queue].name, l->cfg.pools[of - 1], s->pool);
    row = stk_live_pool_row(&l->cfg, s->pool, s->job.terms.queue);
    s->pool = l->cfg.pools[row];
    s->job.pool.i = stk_live_pool_of(&l->cfg, row);
    return 0;
}

int stk_live_resolve(struct stk_live *l, struct stk_spec *s, struct stk_err *err)
{
    if (resolve_queue(l, s, err) < 0)
        return -EINVAL;
    if (resolve_types(l, s, err) < 0 || resolve_resources(l, s, err) < 0)
        return -EINVAL;
    return stk_live_set_of(l, s, err);
}

const char *stk_live_noun_name(void *ctx, enum stk_rules_noun noun, uint32_t row)
{
    const struct stk_live *l = ctx;
    const struct stk_core_config *c = &l->cfg.core;

    switch (noun) {
    case STK_RULES_TENANT:
        return row < c->n_tenants ? c->tenants[row].name : NULL;
    case STK_RULES_QUEUE:
        return row < c->n_queues ? c->queues[row].name : NULL;
    case STK_RULES_POOL:
        return row < c->n_pools ? l->cfg.pools[row] : NULL;
    case STK_RULES_NODE:
        return row < c->n_nodes ? l->cfg.nodes[row].name : NULL;
    case STK_RULES_GPU_TYPE:
        return row < l->cfg.n_gpu_types ? l->cfg.gpu_types[row] : NULL;
    }
    return NULL;
}
