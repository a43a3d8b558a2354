/* SPDX-License-Identifier: Apache-2.0 */
/* index_build.c - the nodes of a core are checked, put in order and laid out: once, when it is
 * made. */
#include "core/index.h"

#include "base/sort.h"
#include "core/blocks.h"
#include "core/part.h"
#include "core/resource.h"
#include "core/topo.h"

#define ALLOC(s, n, type)                                                                          \
    ((type *)(s)->mem.resize((s)->mem.ctx, NULL, 0, (size_t)(n) * sizeof(type)))

static int check_node(const struct stk_node_spec *n, uint32_t i, uint32_t n_pools,
                      struct stk_err *err)
{
    if (n->pool.i >= n_pools)
        return stk_err_set(err, -EINVAL, "node %u: no pool %u", i, n->pool.i);
    if (n->gpu_type >= STK_MAX_GPU_TYPES)
        return stk_err_set(err, -EINVAL, "node %u: more than %d GPU types", i, STK_MAX_GPU_TYPES);
    if (!n->aggregate && n->gpus > STK_MAX_NODE_GPUS)
        return stk_err_set(err, -EINVAL, "node %u: %u GPUs on one node, at most %d are allowed", i,
                           n->gpus, STK_MAX_NODE_GPUS);
    if (n->gpus > STK_MAX_GPUS)
        return stk_err_set(err, -EINVAL, "node %u: more than %d GPUs", i, STK_MAX_GPUS);
    if (n->mig && (n->aggregate || !stk_mig_model_name(n->mig)))
        return stk_err_set(err, -EINVAL, "node %u: its GPUs cannot be in MIG mode", i);
    if (n->power.off_w > n->power.idle_w)
        return stk_err_set(err, -EINVAL,
                           "node %u: draws more when it is off (%u W) than when it is idle (%u W)",
                           i, n->power.off_w, n->power.idle_w);
    return 0;
}

/* A type is in MIG mode or is not. */
static int check_types(struct stk_state *s, const struct stk_node_spec *specs, uint32_t n,
                       struct stk_err *err)
{
    uint64_t seen = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t type = specs[i].gpu_type;

        if ((seen >> type & 1) && s->mig[type] != specs[i].mig)
            return stk_err_set(err, -EINVAL,
                               "node %u: GPUs in MIG mode and others must not be of one type", i);
        seen |= UINT64_C(1) << type;
        s->mig[type] = specs[i].mig;
        s->any_mig |= specs[i].mig != 0;
    }
    return 0;
}

static void fill_node(struct stk_node *n, const struct stk_node_spec *spec)
{
    *n = (struct stk_node){.pool = spec->pool.i,
                           .gpus = spec->gpus,
                           .gpus_free = spec->gpus,
                           .gpu_type = spec->gpu_type,
                           .gpu_mem_mib = spec->gpu_mem_mib,
                           .mig = spec->mig,
                           .instances = spec->instances,
                           .power = spec->power,
                           .up = true,
                           .said_up = true,
                           .aggregate = spec->aggregate,
                           .cpu_limited = spec->cpu_milli > 0,
                           .mem_limited = spec->mem_mib > 0,
                           .cpu_milli = spec->cpu_milli,
                           .cpu_free = spec->cpu_milli,
                           .mem_mib = spec->mem_mib,
                           .mem_free = spec->mem_mib};
    if (!spec->aggregate && spec->gpus > 0)
        n->mask_free = n->mask_all = ~UINT64_C(0) >> (64 - spec->gpus);
}

/* Nodes in order of (pool, type, place, id), in 'a'. */
static int order_nodes(struct stk_state *s, struct stk_sort_item **ret)
{
    struct stk_sort_item *a = ALLOC(s, 2 * (size_t)s->n_nodes + 1, struct stk_sort_item);

    if (!a)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->n_nodes; i++)
        a[i].id = i;
    stk_topo_sort(s, a);
    for (uint32_t i = 0; i < s->n_nodes; i++)
        a[i].key = (int64_t)s->nodes[a[i].id].pool * STK_MAX_GPU_TYPES + s->nodes[a[i].id].gpu_type;
    stk_sort(a, s->n_nodes, a + s->n_nodes);
    *ret = a;
    return 0;
}

/* Rows of pools, groups and the two node lists. */
static void list_nodes(struct stk_state *s, const struct stk_sort_item *order)
{
    for (uint32_t p = 0; p < s->n_pools; p++)
        s->pools[p] =
            (struct stk_pool){.claim = STK_NONE, .resv_job = STK_NONE, .pass_at = INT64_MIN};
    for (uint32_t k = 0; k < s->n_nodes; k++) {
        struct stk_node *n = &s->nodes[order[k].id];
        struct stk_pool *pool = &s->pools[n->pool];
        struct stk_group *g = &s->groups[s->n_groups - 1];

        if (pool->n_nodes++ == 0) {
            pool->first_node = k;
            pool->first_group = s->n_groups;
        }
        if (s->n_groups == 0 || g->pool != n->pool || g->gpu_type != n->gpu_type) {
            g = &s->groups[s->n_groups++];
            *g = (struct stk_group){.pool = n->pool, .gpu_type = n->gpu_type, .first = k};
            pool->n_groups++;
        }
        n->group = s->n_groups - 1;
        n->pos = g->n++;
        s->group_nodes[k] = s->pool_nodes[k] = order[k].id;
        if (n->gpus > g->max_gpus)
            g->max_gpus = n->gpus;
        if (n->gpus > pool->max_gpus)
            pool->max_gpus = n->gpus;
        pool->aggregate |= n->aggregate;
        pool->cpu_limited |= n->cpu_limited;
        pool->mem_limited |= n->mem_limited;
        pool->max_cpu = n->cpu_limited && n->cpu_milli <= pool->max_cpu ? pool->max_cpu
                        : n->cpu_limited                                ? n->cpu_milli
                                                                        : UINT64_MAX;
        pool->max_mem = n->mem_limited && n->mem_mib <= pool->max_mem ? pool->max_mem
                        : n->mem_limited                              ? n->mem_mib
                                                                      : UINT64_MAX;
        pool->gpus += n->gpus;
        pool->gpus_up += n->gpus;
        pool->gpus_free += n->gpus;
    }
}

/* Lays the bucket sets of all groups, and the parking lots of all pools, into two flat arrays. */
static int lay_out(struct stk_state *s)
{
    size_t words = 0, counts = 0;

    for (uint32_t i = 0; i < s->n_groups; i++) {
        struct stk_group *g = &s->groups[i];

        stk_bits_layout_init(&g->nodes_layout, g->n);
        stk_bits_layout_init(&g->bucket_layout, g->max_gpus + 1);
        g->words = words;
        words += (size_t)g->nodes_layout.n_words * (g->max_gpus + 1);
        g->used = words;
        words += g->bucket_layout.n_words;
        g->count = counts;
        counts += g->max_gpus + 1;
        g->parts = words;
        words += (size_t)g->nodes_layout.n_words * STK_PART_LEVELS;
    }
    for (uint32_t i = 0; i < s->n_pools; i++) {
        struct stk_pool *p = &s->pools[i];

        stk_bits_layout_init(&p->park_layout, 2 * (p->max_gpus + 1));
        p->park_used = words;
        words += p->park_layout.n_words;
        p->park_head = counts;
        counts += p->park_layout.n;
    }
    s->words = ALLOC(s, words, uint64_t);
    s->counts = ALLOC(s, counts, uint32_t);
    s->n_words = words;
    s->n_counts = counts;
    return s->words && s->counts ? 0 : -ENOMEM;
}

/* Where GPUs are only counted nobody knows which are in MIG mode. */
static int check_apart(const struct stk_state *s, struct stk_err *err)
{
    for (uint32_t i = 0; s->any_mig && i < s->n_nodes; i++)
        if (s->nodes[i].mig && s->pools[s->nodes[i].pool].aggregate)
            return stk_err_set(err, -EINVAL, "node %u: GPUs in MIG mode must be told apart", i);
    return 0;
}

int stk_index_build(struct stk_state *s, const struct stk_node_spec *specs, uint32_t n,
                    uint32_t n_pools, struct stk_err *err)
{
    struct stk_sort_item *order = NULL;
    int rc;

    if (n > STK_MAX_NODES || n_pools > STK_MAX_POOLS || n_pools == 0)
        return stk_err_set(err, -EINVAL, "at most %d nodes in 1 to %d pools", STK_MAX_NODES,
                           STK_MAX_POOLS);
    for (uint32_t i = 0; i < n; i++) {
        rc = check_node(&specs[i], i, n_pools, err);
        if (rc < 0)
            return rc;
    }
    if (check_types(s, specs, n, err) < 0)
        return -EINVAL;
    s->n_nodes = n;
    s->n_pools = n_pools;
    s->nodes = ALLOC(s, n + 1, struct stk_node);
    s->groups = ALLOC(s, n + 1, struct stk_group);
    s->pools = ALLOC(s, n_pools, struct stk_pool);
    s->group_nodes = ALLOC(s, n + 1, uint32_t);
    s->pool_nodes = ALLOC(s, n + 1, uint32_t);
    s->resv_nodes = ALLOC(s, n + 1, uint32_t);
    s->avoid = ALLOC(s, n / 64 + 1, uint64_t);
    s->dirty = ALLOC(s, n_pools, uint32_t);
    s->node_stamp = ALLOC(s, n + 1, uint64_t);
    s->sim_free = ALLOC(s, n + 1, uint32_t);
    s->tally = ALLOC(s, n + 1, struct stk_tally);
    if (!s->nodes || !s->groups || !s->pools || !s->group_nodes || !s->pool_nodes ||
        !s->resv_nodes || !s->avoid || !s->dirty || !s->node_stamp || !s->sim_free || !s->tally)
        return stk_err_set(err, -ENOMEM, "out of memory for %u nodes", n);
    for (uint32_t i = 0; i < n; i++) {
        fill_node(&s->nodes[i], &specs[i]);
        s->nodes[i].first_part = s->n_parts;
        s->n_parts += specs[i].aggregate ? 0 : specs[i].gpus;
    }
    s->parts = ALLOC(s, s->n_parts + 1, struct stk_part);
    s->part_left = ALLOC(s, s->n_parts + 1, uint32_t);
    s->part_mem = ALLOC(s, s->n_parts + 1, uint32_t);
    if (!s->parts || !s->part_left || !s->part_mem)
        return stk_err_set(err, -ENOMEM, "out of memory for %u GPUs", s->n_parts);
    rc = stk_topo_places(s, specs, err);
    if (rc < 0)
        return rc;
    if (order_nodes(s, &order) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory for %u nodes", n);
    list_nodes(s, order);
    (void)s->mem.resize(s->mem.ctx, order, (2 * (size_t)n + 1) * sizeof(*order), 0);
    if (lay_out(s) < 0 || stk_topo_build(s, specs) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory for %u nodes", n);
    for (uint32_t i = 0; i < n; i++)
        stk_index_file(s, i);
    return check_apart(s, err) < 0 ? -EINVAL : stk_resource_build(s, specs, err);
}

void stk_index_memory(struct stk_state *s, struct stk_visit *v)
{
    stk_topo_memory(s, v);
    STK_BLOCK(v, s->layouts, s->n_layouts + 1);
    STK_BLOCK(v, s->nodes, s->n_nodes + 1);
    STK_BLOCK(v, s->groups, s->n_nodes + 1);
    STK_BLOCK(v, s->group_nodes, s->n_nodes + 1);
    STK_BLOCK(v, s->pool_nodes, s->n_nodes + 1);
    STK_BLOCK(v, s->resv_nodes, s->n_nodes + 1);
    STK_BLOCK(v, s->avoid, s->n_nodes / 64 + 1);
    STK_BLOCK(v, s->dirty, s->n_pools);
    STK_BLOCK(v, s->node_stamp, s->n_nodes + 1);
    STK_BLOCK(v, s->sim_free, s->n_nodes + 1);
    STK_BLOCK(v, s->tally, s->n_nodes + 1);
    STK_BLOCK(v, s->parts, s->n_parts + 1);
    STK_BLOCK(v, s->part_left, s->n_parts + 1);
    STK_BLOCK(v, s->part_mem, s->n_parts + 1);
    STK_BLOCK(v, s->words, s->n_words);
    STK_BLOCK(v, s->counts, s->n_counts);
    stk_resource_memory(s, v);
}
