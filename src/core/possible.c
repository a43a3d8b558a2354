/* SPDX-License-Identifier: Apache-2.0 */
/* possible.c - whether a job could be placed if all were free, and the sentence for a person when
 * it could not. Asked once for each job that comes in: O(nodes). */
#include "core/place.h"

#include <stdio.h>

#include "core/gang.h"
#include "core/part.h"
#include "core/resource.h"
#include "core/sets.h"
#include "core/shape.h"
#include "core/shortage.h"

uint64_t stk_place_holds(const struct stk_state *s, const struct stk_demand *d, uint32_t node,
                         uint32_t gpus)
{
    const struct stk_node *n = &s->nodes[node];
    const struct stk_piece one = {.gpus = gpus, .tasks = 1};
    const struct stk_use u = stk_use_of(d, &one);
    uint64_t fit = gpus ? n->gpus / gpus : d->tasks;

    if (!((d->gpu_types >> n->gpu_type) & 1) || !stk_sets_allow(s, d, node) ||
        (gpus && n->gpu_mem_mib && d->gpu_mem_mib > n->gpu_mem_mib))
        return 0;
    if (d->mig && !n->aggregate) /* where GPUs are only counted, an instance is one */
        fit = stk_part_instances(n, d->mig);
    if (n->cpu_limited && u.cpu && n->cpu_milli / u.cpu < fit)
        fit = n->cpu_milli / u.cpu;
    if (n->mem_limited && u.mem && n->mem_mib / u.mem < fit)
        fit = n->mem_mib / u.mem;
    return stk_resource_times(s, s->resource_all, node, &u.resources, fit);
}

/* How many tasks of this size all nodes could hold, each empty. */
static uint64_t count_tasks(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                            uint32_t gpus)
{
    const struct stk_pool *p = &s->pools[pool];
    uint64_t sum = 0;

    for (uint32_t i = 0; i < p->n_nodes; i++)
        sum += stk_place_holds(s, d, s->pool_nodes[p->first_node + i], gpus);
    return sum;
}

/* GPUs that can have its instance. */
static uint64_t instances_of(const struct stk_state *s, const struct stk_demand *d, uint32_t pool)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++)
        if (s->nodes[i].pool == pool && (d->gpu_types >> s->nodes[i].gpu_type & 1) &&
            stk_sets_allow(s, d, i))
            n += stk_part_instances(&s->nodes[i], d->mig);
    return n;
}

/* A demand that is cut over several nodes has them. */
static bool could_cut(const struct stk_state *s, const struct stk_demand *d, uint32_t pool)
{
    uint32_t whole, size, rest;
    uint64_t can;

    stk_place_cut(s, d, pool, &whole, &size, &rest);
    can = count_tasks(s, d, pool, size);
    if (can != whole || rest == 0)
        return can >= whole;
    return count_tasks(s, d, pool, rest) > whole * (uint64_t)(size / rest);
}

/* Of a demand for GPU types of the pool's own. */
static int possible(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                    struct stk_err *err)
{
    char name[STK_MIG_NAME_LEN], where[STK_WHERE_LEN];
    uint32_t whole, size, rest;
    uint64_t can;

    stk_place_cut(s, d, pool, &whole, &size, &rest);
    if (whole > 0) {
        if (could_cut(s, d, pool))
            return 0;
        if (stk_shortage_besides(s, d, pool, could_cut, err) < 0)
            return -ERANGE;
        return stk_err_set(
            err, -ERANGE, "asks for %u GPUs; %s has %llu (and %llu nodes of %u it can use)",
            d->gpus, stk_shortage_where(s, pool, where), (unsigned long long)s->pools[pool].gpus,
            (unsigned long long)count_tasks(s, d, pool, size), size);
    }
    can = count_tasks(s, d, pool, d->gpus);
    if (can >= d->tasks)
        return 0;
    if (size > 0 && d->mig && instances_of(s, d, pool) < d->tasks)
        return stk_err_set(err, -ERANGE,
                           "asks for %u MIG instances %s, each on a GPU of its own; so many GPUs "
                           "with one: %llu",
                           d->tasks, stk_mig_name(d->mig, name),
                           (unsigned long long)instances_of(s, d, pool));
    if (size == 0 && d->mig)
        return stk_err_set(err, -ERANGE,
                           "asks for a MIG instance %s that no GPU it may use in %s has",
                           stk_mig_name(d->mig, name), stk_shortage_where(s, pool, where));
    if (size == 0 && d->gpus > 0)
        return stk_err_set(err, -ERANGE, "asks for GPUs of a type that %s does not have",
                           stk_shortage_where(s, pool, where));
    return stk_shortage_say(s, d, pool, d->gpus, can, err);
}

/* GPUs that the largest place of the level has, of types the job takes. */
static uint64_t largest_place(const struct stk_state *s, const struct stk_demand *d, uint32_t pool)
{
    const struct stk_pool *p = &s->pools[pool];
    uint32_t tier = stk_topo_tier(s, stk_gang_last(d));
    uint64_t *sum = s->topo->room, most = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++)
        sum[i] = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        uint32_t node = s->pool_nodes[p->first_node + i];
        uint32_t place = tier == STK_TIERS ? node : stk_topo_id(s, node, tier);

        if (((d->gpu_types >> s->nodes[node].gpu_type) & 1) && stk_sets_allow(s, d, node))
            sum[place] += s->nodes[node].gpus;
        most = sum[place] > most ? sum[place] : most;
    }
    return most;
}

/* "64 tasks of 1 GPU, 8 on each node, in subgroups of 8 in one link". */
static void name_gang(char *buf, size_t size, const struct stk_demand *d)
{
    size_t n = (size_t)snprintf(buf, size, "%u task%s of %u GPU%s", d->tasks,
                                d->tasks == 1 ? "" : "s", d->gpus, d->gpus == 1 ? "" : "s");

    if (d->per_node)
        n += (size_t)snprintf(buf + n, size - n, ", %u on each node", d->per_node);
    if (d->group)
        (void)snprintf(buf + n, size - n, ", in subgroups of %u inside one %s", d->group,
                       stk_level_name((enum stk_level)d->group_level));
}

static bool could_near(const struct stk_state *s, const struct stk_demand *d, uint32_t pool)
{
    bool enough;

    (void)stk_gang_most(s, d, pool, &enough);
    return enough;
}

/* The nodes would do, wherever they are: do they lie as the job wants them? */
static int possible_near(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                         struct stk_err *err)
{
    const char *level = stk_level_name(stk_gang_last(d));
    uint64_t need = (uint64_t)d->gpus * d->tasks, has = largest_place(s, d, pool), most;
    char what[160];
    bool enough;

    if (d->level_required >= STK_AT_NODE && need > has)
        return stk_err_set(err, -ERANGE,
                           "needs %llu GPUs in one %s; the largest %s it may use has %llu",
                           (unsigned long long)need, level, level, (unsigned long long)has);
    most = stk_gang_most(s, d, pool, &enough);
    if (enough)
        return 0;
    if (stk_shortage_besides(s, d, pool, could_near, err) < 0)
        return -ERANGE;
    name_gang(what, sizeof(what), d);
    return stk_err_set(err, -ERANGE,
                       "asks for %s%s%s; the most that %s it may use can hold is %llu", what,
                       d->level_required ? ", all in one " : "", d->level_required ? level : "",
                       d->level_required ? "one" : "all nodes", (unsigned long long)most);
}

/* Where all nodes would do and those of its set do not, that is what is said. */
static int possible_in_set(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                           struct stk_err *err)
{
    struct stk_demand all = *d;
    uint32_t nodes;

    all.nodes = 0;
    (void)stk_sets_free(s, d, pool, &nodes);
    if (nodes == 0)
        return stk_err_set(
            err, -ERANGE, "no node of its pool is left by the nodes and features that it asks for");
    if (possible(s, d, pool, NULL) == 0 || possible(s, &all, pool, NULL) < 0)
        return 0;
    return stk_err_set(err, -ERANGE,
                       "what it asks for does not fit on the %u node%s that its pool and the nodes "
                       "and features it asks for leave, even if all of that is free",
                       nodes, nodes == 1 ? "" : "s");
}

int stk_place_possible(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                       struct stk_err *err)
{
    struct stk_demand here = *d;
    int rc;

    here.gpu_types = stk_shape_types(s, d, pool);
    rc = d->nodes ? possible_in_set(s, &here, pool, err) : 0;
    rc = rc < 0 ? rc : possible(s, &here, pool, err);
    if (rc == 0 && stk_demand_near(&here) && !s->pools[pool].aggregate && !here.pin)
        rc = possible_near(s, &here, pool, err);
    return rc;
}

bool stk_place_anywhere(const struct stk_state *s, const struct stk_demand *d)
{
    uint64_t tasks = 0, gpus = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++) {
        tasks += stk_place_holds(s, d, i, d->gpus);
        gpus += stk_place_holds(s, d, i, 1) ? s->nodes[i].gpus : 0;
    }
    return tasks >= d->tasks || (d->cut && gpus >= d->gpus);
}
