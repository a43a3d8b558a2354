/* SPDX-License-Identifier: Apache-2.0 */
#include "core/index.h"

#include <assert.h>
#include <string.h>

#include "base/sort.h"
#include "core/blocks.h"
#include "core/pair.h"
#include "core/part.h"
#include "core/power.h"
#include "core/resource.h"
#include "core/score.h"
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

static void bucket_add(struct stk_state *s, uint32_t node)
{
    const struct stk_node *n = &s->nodes[node];
    const struct stk_group *g = &s->groups[n->group];
    uint32_t b = n->gpus_free;

    stk_bits_set(&g->nodes_layout, s->words + g->words + (size_t)b * g->nodes_layout.n_words,
                 n->pos);
    if (s->counts[g->count + b]++ == 0)
        stk_bits_set(&g->bucket_layout, s->words + g->used, b);
}

static void bucket_del(struct stk_state *s, uint32_t node)
{
    const struct stk_node *n = &s->nodes[node];
    const struct stk_group *g = &s->groups[n->group];
    uint32_t b = n->gpus_free;

    stk_bits_clear(&g->nodes_layout, s->words + g->words + (size_t)b * g->nodes_layout.n_words,
                   n->pos);
    if (--s->counts[g->count + b] == 0)
        stk_bits_clear(&g->bucket_layout, s->words + g->used, b);
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
        bucket_add(s, i);
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

struct stk_use stk_use_of(const struct stk_demand *d, const struct stk_piece *p)
{
    struct stk_use u = {.gpus = p->gpus,
                        .mig = d->mig,
                        .slot = (uint8_t)p->slot,
                        .mask = p->mask,
                        .cpu = stk_use_share(d, p, d->cpu_milli),
                        .mem = stk_use_share(d, p, d->mem_mib),
                        .gpu_mem = d->gpu_mem_mib,
                        .milli = d->gpu_milli,
                        .share = d->share,
                        .share_max = d->share_max,
                        .share_with = d->share_with,
                        .whole = d->exclusive};

    if (d->n_resources > 0)
        u.resources = stk_amounts_of(d, p);
    if (stk_demand_pairs(d)) { /* one of two seats on each */
        u.milli = 500;
        u.share = STK_SHARE_PAIR;
    }
    return u;
}

static bool cpu_mem_fit(const struct stk_node *n, uint64_t cpu, uint64_t mem)
{
    return (!n->cpu_limited || cpu <= n->cpu_free) && (!n->mem_limited || mem <= n->mem_free);
}

/* What is not GPUs: CPU, memory, named resources. */
static bool rest_fits(const struct stk_state *s, uint32_t node, const struct stk_use *u)
{
    return cpu_mem_fit(&s->nodes[node], u->cpu, u->mem) &&
           stk_resource_fits(s, node, &u->resources);
}

static bool parts_fit(const struct stk_state *s, uint32_t node, const struct stk_use *u)
{
    for (uint64_t m = u->mask; m; m &= m - 1)
        if (!stk_part_fits(s, node, (uint32_t)__builtin_ctzll(m), u))
            return false;
    return true;
}

/* Also on a node that is closed. */
static bool fits(const struct stk_state *s, uint32_t node, const struct stk_use *u)
{
    const struct stk_node *n = &s->nodes[node];

    if ((u->gpu_mem > n->gpu_mem_mib && n->gpu_mem_mib && u->gpus) || n->held ||
        (u->whole && n->n_uses > 0))
        return false;
    if (u->milli)
        return n->up && (u->mask & n->mask_off) == 0 && parts_fit(s, node, u) &&
               rest_fits(s, node, u);
    return n->up && u->gpus <= n->gpus_free && (u->mask & ~n->mask_free) == 0 &&
           rest_fits(s, node, u);
}

bool stk_index_fits(const struct stk_state *s, uint32_t node, const struct stk_use *u)
{
    return (u->gpus > 0 || !s->nodes[node].closed) && fits(s, node, u);
}

/* Of whole GPUs that two may have: they are free, or the one that had them with it still has. */
static bool seats_fit(const struct stk_state *s, uint32_t node, const struct stk_use *u)
{
    const struct stk_node *n = &s->nodes[node];
    uint32_t mate = stk_pair_mate(s, u->holder - 1);

    for (uint64_t m = u->mask & n->mask_used; m; m &= m - 1) {
        const struct stk_part *p = &s->parts[n->first_part + (uint32_t)__builtin_ctzll(m)];

        if (!(n->mask_part & m & -m) || mate == STK_NONE || p->n != 1 || p->holder[0] != mate + 1)
            return false;
    }
    return true;
}

bool stk_index_fits_again(const struct stk_state *s, uint32_t node, const struct stk_use *u)
{
    const struct stk_node *n = &s->nodes[node];

    if (u->share == STK_SHARE_PAIR && u->milli && !seats_fit(s, node, u))
        return false;
    if ((u->mask & n->mask_off) == 0)
        return fits(s, node, u);
    if (n->held || (u->whole && n->n_uses > 0))
        return false;
    if (u->milli && (u->mask & n->mask_part)) /* its GPU is off, and others are still there */
        return n->up && parts_fit(s, node, u) && rest_fits(s, node, u);
    return n->up && (u->mask & n->mask_used) == 0 && rest_fits(s, node, u);
}

/* give is take with the sign turned. */
static void shift(struct stk_state *s, uint32_t node, const struct stk_use *u, bool take)
{
    struct stk_node *n = &s->nodes[node];

    if (n->up && u->gpus > 0)
        bucket_del(s, node);
    if (take) {
        n->gpus_free -= u->gpus;
        n->mask_free &= ~u->mask;
        n->mask_used |= u->mask;
        s->pools[n->pool].gpus_free -= n->up ? u->gpus : 0;
        n->cpu_free -= n->cpu_limited ? u->cpu : 0;
        n->mem_free -= n->mem_limited ? u->mem : 0;
    } else {
        n->gpus_free += u->gpus;
        n->mask_free |= u->mask;
        n->mask_used &= ~u->mask;
        s->pools[n->pool].gpus_free += n->up ? u->gpus : 0;
        n->cpu_free += n->cpu_limited ? u->cpu : 0;
        n->mem_free += n->mem_limited ? u->mem : 0;
    }
    if (n->up && u->gpus > 0)
        bucket_add(s, node);
}

static void take_or_give(struct stk_state *s, uint32_t node, const struct stk_use *u, bool take)
{
    assert(take ? u->gpus <= s->nodes[node].gpus_free
                : s->nodes[node].gpus_free + u->gpus <= s->nodes[node].gpus);
    shift(s, node, u, take);
}

/* Some of the GPUs are off: they are used or not, but never free. */
static void shift_off(struct stk_state *s, uint32_t node, const struct stk_use *u, bool take)
{
    struct stk_node *n = &s->nodes[node];
    uint64_t off = u->mask & n->mask_off;
    uint32_t n_off = (uint32_t)__builtin_popcountll(off);
    const struct stk_use on = {
        .gpus = u->gpus - n_off, .mask = u->mask & ~off, .cpu = u->cpu, .mem = u->mem};

    take_or_give(s, node, &on, take);
    n->mask_used = take ? n->mask_used | off : n->mask_used & ~off;
    if (n->up)
        s->pools[n->pool].gpus_idle_off += take ? 0 - (uint64_t)n_off : n_off;
}

static void shift_whole(struct stk_state *s, uint32_t node, const struct stk_use *u, bool take)
{
    if (u->mask & s->nodes[node].mask_off)
        shift_off(s, node, u, take);
    else
        take_or_give(s, node, u, take);
}

/* GPUs come and go as wholes with the first and the last part. */
static void shift_parts(struct stk_state *s, uint32_t node, const struct stk_use *u, bool take)
{
    struct stk_use whole = {.cpu = u->cpu, .mem = u->mem};

    whole.mask = take ? stk_part_take(s, node, u) : stk_part_give(s, node, u);
    whole.gpus = (uint32_t)__builtin_popcountll(whole.mask);
    shift_whole(s, node, &whole, take);
    stk_part_file(s, node);
}

static void count_tag(struct stk_state *s, uint32_t node, const struct stk_use *u, bool take)
{
    uint32_t tag = u->milli && u->share != STK_SHARE_PAIR ? 0
                   : u->gpus < STK_TAGS                   ? u->gpus
                                                          : STK_TAGS - 1;
    uint16_t *n = &s->tags[(size_t)node * STK_TAGS + tag];

    if (u->gpus > 0)
        *n = (uint16_t)(take ? *n + 1 : *n - 1);
}

struct stk_use stk_index_all(const struct stk_state *s, uint32_t node)
{
    const struct stk_node *n = &s->nodes[node];

    return (struct stk_use){
        .gpus = n->gpus, .mask = n->mask_all, .cpu = n->cpu_milli, .mem = n->mem_mib};
}

/* An exclusive job takes all there is. GPUs that are off count as its own only if it has them. */
static void shift_all(struct stk_state *s, uint32_t node, const struct stk_use *u, bool take)
{
    const struct stk_use all = stk_index_all(s, node);
    struct stk_node *n = &s->nodes[node];
    uint64_t *off = &s->pools[n->pool].gpus_idle_off;
    uint64_t others = *off - (n->up ? (uint64_t)__builtin_popcountll(stk_node_idle_off(n)) : 0);

    shift_whole(s, node, &all, take);
    n->held = take;
    n->mask_own = take ? u->mask : 0;
    *off = others + (n->up ? (uint64_t)__builtin_popcountll(stk_node_idle_off(n)) : 0);
}

static void shift_any(struct stk_state *s, uint32_t node, const struct stk_use *u, bool take)
{
    s->nodes[node].n_uses += take ? 1 : UINT32_MAX;
    s->leave_look |= s->nodes[node].leaving && s->nodes[node].n_uses == 0;
    if (u->milli)
        shift_parts(s, node, u, take);
    else if (u->whole)
        shift_all(s, node, u, take);
    else
        shift_whole(s, node, u, take);
    if (u->resources.each && take)
        stk_resource_take(s, node, &u->resources);
    else if (u->resources.each)
        stk_resource_give(s, node, &u->resources);
    if (s->tags)
        count_tag(s, node, u, take);
    stk_score_changed(s, node);
    stk_topo_changed(s, node);
}

/* The same, and what the node draws. */
static void shift_power(struct stk_state *s, uint32_t node, const struct stk_use *u, bool take)
{
    struct stk_node *n = &s->nodes[node];

    s->watts -= stk_power_of(n);
    s->n_on -= stk_power_known(&n->power) && stk_power_on(n);
    shift_any(s, node, u, take);
    s->n_on += stk_power_known(&n->power) && stk_power_on(n);
    s->watts += stk_power_of(n);
}

void stk_index_take(struct stk_state *s, uint32_t node, const struct stk_use *u)
{
    if (s->power)
        shift_power(s, node, u, true);
    else
        shift_any(s, node, u, true);
}

void stk_index_give(struct stk_state *s, uint32_t node, const struct stk_use *u)
{
    if (s->power)
        shift_power(s, node, u, false);
    else
        shift_any(s, node, u, false);
}

void stk_index_gpus_off(struct stk_state *s, uint32_t node, uint64_t off)
{
    struct stk_node *n = &s->nodes[node];
    struct stk_pool *p = &s->pools[n->pool];
    bool up = n->up;

    stk_index_node_up(s, node, false); /* out of the sums, and back in as it is then */
    p->gpus_off -= (uint64_t)__builtin_popcountll(n->mask_off);
    p->gpus_off += (uint64_t)__builtin_popcountll(off);
    n->mask_off = off;
    n->mask_free = n->mask_all & ~n->mask_used & ~off;
    n->gpus_free = (uint32_t)__builtin_popcountll(n->mask_free);
    stk_index_node_up(s, node, up);
}

void stk_index_node_up(struct stk_state *s, uint32_t node, bool up)
{
    struct stk_node *n = &s->nodes[node];
    struct stk_pool *p = &s->pools[n->pool];
    uint64_t idle_off = (uint64_t)__builtin_popcountll(stk_node_idle_off(n));

    if (n->up == up)
        return;
    if (up) {
        n->up = true;
        bucket_add(s, node);
        p->gpus_up += n->gpus;
        p->gpus_free += n->gpus_free;
        p->gpus_idle_off += idle_off;
    } else {
        bucket_del(s, node);
        n->up = false;
        p->gpus_up -= n->gpus;
        p->gpus_free -= n->gpus_free;
        p->gpus_idle_off -= idle_off;
    }
    stk_part_file(s, node);
    stk_score_changed(s, node);
    stk_topo_changed(s, node);
}

uint64_t stk_index_lowest(const struct stk_state *s, uint32_t node, uint32_t n)
{
    if (s->nodes[node].aggregate || n == 0)
        return 0;
    if (n == s->nodes[node].gpus_free)
        return s->nodes[node].mask_free;
    if (s->nodes[node].layout)
        return stk_layout_choose(stk_topo_layout(s, node), s->nodes[node].mask_free,
                                 stk_node_shy(&s->nodes[node]), n);
    if (stk_node_shy(&s->nodes[node]))
        return stk_mask_choose(s->nodes[node].mask_free, stk_node_shy(&s->nodes[node]), n);
    return stk_mask_lowest(s->nodes[node].mask_free, n);
}

bool stk_index_has_room(const struct stk_state *s, uint32_t node, const struct stk_want *w)
{
    const struct stk_node *n = &s->nodes[node];

    return !(w->avoid && stk_bits_test(w->avoid, node)) && (w->gpus > 0 || !n->closed) &&
           stk_topo_may(s, node, w) && cpu_mem_fit(n, w->cpu_milli, w->mem_mib) &&
           stk_resource_fits(s, node, &w->resources) &&
           (w->gpu_mem_mib <= n->gpu_mem_mib || n->gpu_mem_mib == 0 || w->gpus == 0) &&
           (!w->mig || stk_part_offers(s, node, w));
}

uint32_t stk_index_first(const struct stk_state *s, const struct stk_group *g, uint32_t bucket,
                         const struct stk_want *w)
{
    const uint64_t *set = s->words + g->words + (size_t)bucket * g->nodes_layout.n_words;

    for (uint32_t pos = stk_bits_next(&g->nodes_layout, set, 0); pos != UINT32_MAX;
         pos = stk_bits_next(&g->nodes_layout, set, pos + 1)) {
        uint32_t node = s->group_nodes[g->first + pos];

        if (stk_index_has_room(s, node, w))
            return node;
    }
    return STK_NONE;
}

uint32_t stk_index_bucket_up(const struct stk_state *s, const struct stk_group *g, uint32_t b)
{
    return stk_bits_next(&g->bucket_layout, s->words + g->used, b);
}

uint32_t stk_index_bucket_down(const struct stk_state *s, const struct stk_group *g, uint32_t b)
{
    return stk_bits_prev(&g->bucket_layout, s->words + g->used, b);
}
