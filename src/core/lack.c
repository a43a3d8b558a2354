/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lack.h"

#include <string.h>

#include "core/index.h"
#include "core/part.h"
#include "core/place.h"
#include "core/resource.h"
#include "core/sets.h"
#include "core/topo.h"

struct look {
    const struct stk_state *s;
    const struct stk_demand *d;
    uint32_t pool, of;
    bool empty;
    uint32_t gpus; /* of the smallest piece */
    uint64_t all;  /* needed of it by all tasks */
};

static uint32_t each_of(const struct stk_demand *d, uint32_t of)
{
    const uint32_t k = of - STK_LACK_RESOURCE;

    if (of == STK_LACK_CPUS)
        return d->cpu_milli;
    if (of == STK_LACK_MEM)
        return d->mem_mib;
    return k < d->n_resources ? d->resource[k] : 0;
}

bool stk_lack_asks(const struct stk_demand *d, uint32_t of)
{
    for (uint32_t i = 0; of == STK_LACK_ANY && i < STK_LACK_END; i++)
        if (each_of(d, i))
            return true;
    return of < STK_LACK_END && each_of(d, of) > 0;
}

struct stk_demand stk_lack_without(const struct stk_demand *d, uint32_t of)
{
    struct stk_demand without = *d;

    if (of == STK_LACK_CPUS || of == STK_LACK_ANY)
        without.cpu_milli = 0;
    if (of == STK_LACK_MEM || of == STK_LACK_ANY)
        without.mem_mib = 0;
    if (of == STK_LACK_ANY) {
        memset(without.resource, 0, sizeof(without.resource));
        without.n_resources = 0;
    } else if (of >= STK_LACK_RESOURCE) {
        stk_demand_set_resource(&without, of - STK_LACK_RESOURCE, 0);
    }
    return without;
}

/* It has the GPUs for a task, or part of one. */
static bool has_gpus(const struct look *q, uint32_t node)
{
    const struct stk_node *n = &q->s->nodes[node];
    struct stk_use u;

    if (q->gpus == 0 || q->d->pin)
        return true;
    if (q->empty)
        return stk_place_holds(q->s,
                               &(struct stk_demand){.tasks = 1,
                                                    .gpu_types = q->d->gpu_types,
                                                    .gpu_mem_mib = q->d->gpu_mem_mib,
                                                    .mig = q->d->mig},
                               node, q->gpus) > 0;
    if (stk_demand_pairs(q->d))
        return true;
    if (!q->d->gpu_milli || n->aggregate)
        return n->gpus_free >= q->gpus;
    u = stk_use_of(q->d, &(struct stk_piece){.gpus = 1, .tasks = 1});
    u.slot = STK_MIG_ANY;
    return stk_part_gpu(q->s, node, &u, 0) != UINT32_MAX;
}

static bool may_use(const struct look *q, uint32_t node)
{
    const struct stk_node *n = &q->s->nodes[node];

    if ((q->d->pin && q->d->pin - 1 != node) || !(q->d->gpu_types >> n->gpu_type & 1) ||
        !stk_sets_allow(q->s, q->d, node))
        return false;
    return (q->empty || (n->up && !(n->closed && q->gpus == 0))) && has_gpus(q, node);
}

static uint64_t on_node(const struct look *q, uint32_t node)
{
    const struct stk_state *s = q->s;
    const struct stk_node *n = &s->nodes[node];

    if (q->of == STK_LACK_CPUS)
        return !n->cpu_limited ? q->all : q->empty ? n->cpu_milli : n->cpu_free;
    if (q->of == STK_LACK_MEM)
        return !n->mem_limited ? q->all : q->empty ? n->mem_mib : n->mem_free;
    return stk_resource_on(s, q->empty ? s->resource_all : s->resource_free,
                           node)[q->of - STK_LACK_RESOURCE];
}

/* The most that one place of the level has; level 0: the sum. */
static uint64_t most_in(const struct look *q, enum stk_level level)
{
    const struct stk_state *s = q->s;
    const struct stk_pool *p = &s->pools[q->pool];
    const uint32_t tier = level ? stk_topo_tier(s, level) : STK_TIER_ALL;
    uint64_t *room = s->topo->room, most = 0, sum = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++)
        room[i] = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const uint32_t node = s->pool_nodes[p->first_node + i];
        uint64_t *at = &room[level == 0 || tier == STK_TIERS ? node : stk_topo_id(s, node, tier)];

        if (!may_use(q, node))
            continue;
        *at += on_node(q, node);
        sum += on_node(q, node);
        most = *at > most ? *at : most;
    }
    return level ? most : sum;
}

bool stk_lack_find(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                   uint32_t of, bool empty, struct stk_lack *ret)
{
    const uint32_t each = each_of(d, of);
    const enum stk_level last = d->pin ? STK_AT_NODE : (enum stk_level)d->level_required;
    struct look q = {s, d, pool, of, empty, d->gpus, (uint64_t)each * d->tasks};
    struct stk_piece one = {.gpus = d->gpus, .tasks = 1};
    uint32_t whole, size, rest;

    stk_place_cut(s, d, pool, &whole, &size, &rest);
    if (whole > 0) {
        one.gpus = size;
        q.gpus = rest > 0 ? rest : size;
    }
    /* all of it, then what must be together, from the widest place to the narrowest */
    const struct {
        enum stk_level level;
        uint64_t need;
    } parts[] = {{last, last || whole || d->tasks > 1 ? q.all : 0},
                 {(enum stk_level)d->group_level, (uint64_t)each * d->group},
                 {STK_AT_NODE, (uint64_t)each * d->per_node},
                 {STK_AT_NODE, stk_use_share(d, &one, each)}};

    for (uint32_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        const uint64_t have = parts[i].need > 0 ? most_in(&q, parts[i].level) : 0;

        if (have >= parts[i].need)
            continue;
        *ret = (struct stk_lack){parts[i].level, parts[i].need, have};
        if (ret->level && stk_topo_tier(s, ret->level) == STK_TIERS)
            ret->level = s->pools[pool].n_nodes > 1 ? STK_AT_NODE : 0;
        return true;
    }
    *ret = (struct stk_lack){0, q.all, most_in(&q, 0)};
    return false;
}
