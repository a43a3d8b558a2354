/* SPDX-License-Identifier: Apache-2.0 */
#include "core/place.h"

#include "core/fence.h"
#include "core/gang.h"
#include "core/limit.h"
#include "core/pair.h"
#include "core/part.h"
#include "core/power.h"
#include "core/resource.h"
#include "core/score.h"
#include "core/sets.h"
#include "core/shape.h"
#include "core/speed.h"
#include "core/txn.h"

/* Of the nodes of its set. O(nodes of the pool). */
static uint32_t largest_in_set(const struct stk_state *s, const struct stk_demand *d, uint32_t pool)
{
    const struct stk_pool *p = &s->pools[pool];
    uint32_t most = 0;

    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const uint32_t node = s->pool_nodes[p->first_node + i];
        const struct stk_node *n = &s->nodes[node];

        if ((d->gpu_types >> n->gpu_type & 1) && n->gpus > most && stk_sets_allow(s, d, node))
            most = n->gpus;
    }
    return most;
}

/* At most so many; of a demand that is cut, exactly. */
static uint32_t largest_node(const struct stk_state *s, const struct stk_demand *d, uint32_t pool)
{
    const struct stk_pool *p = &s->pools[pool];
    uint32_t most = 0;

    if (d->nodes && d->cut)
        return largest_in_set(s, d, pool);
    for (uint32_t i = 0; i < p->n_groups; i++) {
        const struct stk_group *g = &s->groups[p->first_group + i];

        if (stk_group_accepts(g, d->gpu_types) && g->max_gpus > most)
            most = g->max_gpus;
    }
    return most;
}

void stk_place_cut(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                   uint32_t *ret_whole, uint32_t *ret_size, uint32_t *ret_rest)
{
    uint32_t size = largest_node(s, d, pool);

    *ret_size = size;
    if (!d->cut || size == 0 || d->gpus <= size) {
        *ret_whole = 0;
        *ret_rest = d->gpus;
        return;
    }
    *ret_whole = d->gpus / size;
    *ret_rest = d->gpus % size;
}

/* Nodes that could take one piece of 'gpus' GPUs each, and how many such pieces in all. */
static uint64_t count_pieces(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                             uint32_t gpus, uint64_t enough)
{
    const struct stk_pool *p = &s->pools[pool];
    uint64_t sum = 0;

    for (uint32_t i = 0; i < p->n_groups && sum < enough; i++) {
        const struct stk_group *g = &s->groups[p->first_group + i];

        if (!stk_group_accepts(g, d->gpu_types))
            continue;
        for (uint32_t b = stk_index_bucket_up(s, g, gpus); b != STK_NONE && sum < enough;
             b = stk_index_bucket_up(s, g, b + 1))
            sum += (uint64_t)stk_index_count(s, g, b) * (gpus ? b / gpus : 1);
    }
    return sum;
}

/* Puts a piece on a node tentatively and writes it down. */
static void settle(struct stk_state *s, const struct stk_demand *d, uint32_t at, uint32_t node,
                   uint32_t gpus, uint32_t tasks)
{
    const struct stk_piece piece = {{node}, gpus, tasks, 0, stk_index_lowest(s, node, gpus)};
    const struct stk_use u = stk_use_of(d, &piece);

    s->try_pieces[at] = piece;
    stk_txn_take(s, node, &u);
}

static struct stk_want want_of(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                               uint32_t gpus, uint32_t tasks, const uint64_t *avoid)
{
    const struct stk_piece piece = {.gpus = gpus, .tasks = tasks};
    struct stk_want w = {.pool = pool,
                         .gpu_types = d->gpu_types,
                         .gpus = gpus,
                         .cpu_milli = stk_use_share(d, &piece, d->cpu_milli),
                         .mem_mib = stk_use_share(d, &piece, d->mem_mib),
                         .avoid = avoid,
                         .only = stk_sets_of(s, d),
                         .gpu_mem_mib = d->gpu_mem_mib,
                         .gpu_milli = d->gpu_milli,
                         .share = d->share,
                         .share_max = d->share_max,
                         .share_with = d->share_with,
                         .mig = d->mig};

    if (d->n_resources > 0)
        w.resources = stk_amounts_of(d, &piece);
    return w;
}

/* One that goes by a mix does not score before there is one. */
static bool scores(const struct stk_state *s)
{
    return s->place->score && (!s->place->mix || s->mix->n > 0);
}

/* The policy's node; of a part that it scores, also its GPU. */
static uint32_t pick(struct stk_state *s, const struct stk_want *w, uint32_t *ret_gpu)
{
    *ret_gpu = UINT32_MAX;
    return scores(s) ? stk_score_pick(s, w, ret_gpu) : s->place->pick(s, w);
}

/* Whole nodes, then the rest by the policy's own rule. */
static bool place_cut(struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                      const uint64_t *avoid, uint32_t *ret_n)
{
    uint32_t whole, size, rest, gpu, n = 0;

    stk_place_cut(s, d, pool, &whole, &size, &rest);
    if (count_pieces(s, d, pool, size, whole) < whole)
        return false;
    while (n < whole) {
        const struct stk_want w = want_of(s, d, pool, size, 1, avoid);
        uint32_t node = pick(s, &w, &gpu);

        if (node == STK_NONE)
            return false;
        settle(s, d, n++, node, size, 1);
    }
    if (rest > 0) {
        const struct stk_want w = want_of(s, d, pool, rest, 1, avoid);
        uint32_t node = s->place->score_rest ? pick(s, &w, &gpu) : s->place->pick_rest(s, &w);

        if (node == STK_NONE)
            return false;
        settle(s, d, n++, node, rest, 1);
    }
    *ret_n = n;
    return true;
}

/* As many tasks per node as fit, so that few nodes are used. */
static bool place_tasks(struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                        const uint64_t *avoid, uint32_t *ret_n)
{
    uint32_t left = d->tasks, n = 0;
    uint32_t most = d->gpus ? largest_node(s, d, pool) / d->gpus : left;

    if (d->cpu_milli > 0 && s->pools[pool].max_cpu / d->cpu_milli < most)
        most = (uint32_t)(s->pools[pool].max_cpu / d->cpu_milli);
    if (d->mem_mib > 0 && s->pools[pool].max_mem / d->mem_mib < most)
        most = (uint32_t)(s->pools[pool].max_mem / d->mem_mib);
    if (d->n_resources > 0) {
        const struct stk_amounts one = {d->resource, d->n_resources, 1, 1};

        most = (uint32_t)stk_resource_times(s, s->resource_most, pool, &one, most);
    }

    if (d->gpus > 0 && count_pieces(s, d, pool, d->gpus, left) < left)
        return false;
    while (left > 0) {
        uint32_t t = left < most ? left : most, node = STK_NONE, gpu;

        for (; t > 0 && node == STK_NONE; t -= node == STK_NONE) {
            const struct stk_want w = want_of(s, d, pool, t * d->gpus, t, avoid);

            node = pick(s, &w, &gpu);
        }
        if (node == STK_NONE)
            return false;
        settle(s, d, n++, node, t * d->gpus, t);
        left -= t;
        most = t; /* what did not fit once does not fit later */
    }
    *ret_n = n;
    return true;
}

/* Where a part goes: beside others, or on a free GPU, as the policy likes it. */
static uint32_t pick_part(struct stk_state *s, const struct stk_want *w, uint32_t *ret_gpu)
{
    uint32_t node;

    *ret_gpu = UINT32_MAX;
    if (scores(s) && w->n_mine == 0)
        return stk_score_pick(s, w, ret_gpu);
    node = s->place->apart ? s->place->pick(s, w) : stk_part_pick(s, w);

    if (node != STK_NONE)
        return node;
    return s->place->apart ? stk_part_pick(s, w) : s->place->pick(s, w);
}

/* One more task on a GPU of the node: in the job's piece there, or in a new one at the end. */
static void add_task(struct stk_state *s, uint32_t node, const struct stk_use *u, uint32_t *io_n)
{
    uint32_t i = 0;

    while (i < *io_n && (s->try_pieces[i].node.i != node || s->try_pieces[i].slot != u->slot))
        i++;
    if (i == *io_n)
        s->try_pieces[(*io_n)++] = (struct stk_piece){.node = {node}, .slot = u->slot};
    s->try_pieces[i].mask |= u->mask;
    s->try_pieces[i].gpus++;
    s->try_pieces[i].tasks++;
}

/* GPUs of the node that the job has already. */
static uint64_t mine_on(const struct stk_want *w, uint32_t node)
{
    uint64_t mask = 0;

    for (uint32_t i = 0; i < w->n_mine; i++)
        mask |= w->mine[i].node.i == node ? w->mine[i].mask : 0;
    return mask;
}

/* One task after the other, each on a GPU that no other task of the job is on. */
static bool place_parts(struct stk_state *s, const struct stk_demand *d, struct stk_want w,
                        uint32_t *ret_n)
{
    uint32_t n = 0;

    w.mine = s->try_pieces;
    for (uint32_t t = 0; t < d->tasks; t++) {
        const struct stk_piece one = {.gpus = 1, .tasks = 1};
        struct stk_use u = stk_use_of(d, &one);
        uint32_t node, gpu;

        u.slot = STK_MIG_ANY;
        w.n_mine = n;
        node = pick_part(s, &w, &gpu);
        if (node == STK_NONE)
            return false;
        if (gpu == UINT32_MAX)
            gpu = stk_part_gpu(s, node, &u, mine_on(&w, node));
        if (gpu == UINT32_MAX)
            return false;
        u.mask = UINT64_C(1) << gpu;
        u.slot = d->mig ? (uint8_t)stk_part_slot(s, node, gpu, d->mig) : 0;
        add_task(s, node, &u, &n);
        stk_txn_take(s, node, &u);
    }
    *ret_n = n;
    return true;
}

/* The same in any one place of the tier. Linear in places. */
static bool parts_in_tier(struct stk_state *s, const struct stk_demand *d, struct stk_want w,
                          uint32_t tier, uint32_t *ret_n)
{
    const struct stk_pool *p = &s->pools[w.pool];
    uint32_t last = STK_NONE;

    if (tier == STK_TIER_ALL)
        return place_parts(s, d, w, ret_n);
    w.tier = tier;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        uint32_t node = s->pool_nodes[p->first_node + i];
        uint32_t place = tier == STK_TIERS ? node : stk_topo_id(s, node, tier);
        stk_txn_mark mark = stk_txn_begin(s);

        if (place == last || (tier == STK_TIERS && s->nodes[node].gpus < d->tasks))
            continue;
        last = place;
        w.within = place + 1;
        if (place_parts(s, d, w, ret_n))
            return true;
        stk_txn_rollback(s, mark);
    }
    return false;
}

/* At the narrowest level that has room, of those that the job may have. */
static bool place_parts_near(struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                             const uint64_t *avoid, uint32_t *ret_n)
{
    const struct stk_want w = want_of(s, d, pool, 1, 1, avoid);
    enum stk_level level = stk_gang_first(s, d), last = stk_gang_last(d);
    uint32_t tried = UINT32_MAX;

    for (level = level < STK_AT_NODE ? STK_AT_NODE : level; level <= last; level++) {
        uint32_t tier = stk_topo_tier(s, level);

        if (tier != tried && parts_in_tier(s, d, w, tier, ret_n))
            return true;
        tried = tier;
    }
    return false;
}

static bool place_pinned(struct stk_state *s, const struct stk_demand *d, const uint64_t *avoid,
                         uint32_t *ret_n)
{
    const struct stk_piece piece = stk_place_pin(d);
    const struct stk_use u = stk_use_of(d, &piece);

    if ((avoid && stk_bits_test(avoid, piece.node.i)) || !stk_index_fits(s, piece.node.i, &u))
        return false;
    if (stk_demand_pairs(d) && (d->pin_mask & ~s->nodes[piece.node.i].mask_free))
        return false; /* it may have company, but not just anybody's */
    s->try_pieces[0] = piece;
    *ret_n = 1;
    return true;
}

static bool try_types(struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                      const uint64_t *avoid, uint32_t *ret_n)
{
    stk_txn_mark mark;
    bool ok;

    if (d->pin)
        return place_pinned(s, d, avoid, ret_n);
    if (!d->gpu_milli &&
        (stk_demand_near(d) || (s->place->near && (uint64_t)d->gpus * d->tasks > 1)))
        return stk_gang_try(s, d, pool, avoid, ret_n);
    if (!d->gpu_milli && d->tasks == 1 &&
        d->gpus <= s->pools[pool].max_gpus) { /* the common case */
        const struct stk_want w = want_of(s, d, pool, d->gpus, 1, avoid);
        uint32_t gpu, node = pick(s, &w, &gpu);

        if (node != STK_NONE) {
            s->try_pieces[0] =
                (struct stk_piece){{node}, d->gpus, 1, 0, stk_index_lowest(s, node, d->gpus)};
            *ret_n = 1;
            return true;
        }
        if (!d->cut || d->gpus <= largest_node(s, d, pool))
            return false;
    }
    mark = stk_txn_begin(s);
    if (d->gpu_milli)
        ok = stk_demand_near(d) || (s->place->near && d->tasks > 1)
                 ? place_parts_near(s, d, pool, avoid, ret_n)
                 : place_parts(s, d, want_of(s, d, pool, 1, 1, avoid), ret_n);
    else
        ok = d->cut ? place_cut(s, d, pool, avoid, ret_n) : place_tasks(s, d, pool, avoid, ret_n);
    stk_txn_rollback(s, mark);
    return ok;
}

/* The fastest types on which it fits, whatever the policy likes: those of the greatest speed, then
 * those of the next as well. A gang is as slow as the slowest of its GPUs, and no faster set of
 * GPUs would hold it. */
static bool try_fastest(struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                        const uint64_t *avoid, uint32_t *ret_n)
{
    struct stk_demand part = *d;
    uint32_t below = UINT32_MAX;

    while ((part.gpu_types = stk_speed_class(s, d, pool, &below)) != 0)
        if (try_types(s, &part, pool, avoid, ret_n))
            return true;
    return false;
}

/* On GPUs of its own, or its part of one. */
static bool try_own(struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                    const uint64_t *avoid, uint32_t *ret_n)
{
    return d->n_speeds && !d->pin ? try_fastest(s, d, pool, avoid, ret_n)
                                  : try_types(s, d, pool, avoid, ret_n);
}

static bool try_all(struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                    const uint64_t *avoid, uint32_t *ret_n)
{
    if (s->share.join_first)
        return stk_pair_find(s, d, pool, avoid, ret_n) || try_own(s, d, pool, avoid, ret_n);
    return try_own(s, d, pool, avoid, ret_n) || stk_pair_find(s, d, pool, avoid, ret_n);
}

/* Under a power cap: where the policy likes it, else on nodes of one type. */
static bool try_capped(struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                       const uint64_t *avoid, uint32_t *ret_n)
{
    struct stk_pool *p = &s->pools[pool];
    struct stk_demand one = *d;

    if (!try_all(s, d, pool, avoid, ret_n))
        return false;
    if (stk_power_fits(s, s->try_pieces, *ret_n))
        return true;
    for (uint32_t i = 0; p->n_groups > 1 && i < p->n_groups; i++) {
        one.gpu_types = d->gpu_types & UINT64_C(1) << s->groups[p->first_group + i].gpu_type;
        if (one.gpu_types && try_all(s, &one, pool, avoid, ret_n) &&
            stk_power_fits(s, s->try_pieces, *ret_n))
            return true;
    }
    p->power_short = s->power_short = true;
    return false;
}

static bool try_demand(struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                       const uint64_t *avoid, uint32_t *ret_n)
{
    return s->cap_w ? try_capped(s, d, pool, avoid, ret_n) : try_all(s, d, pool, avoid, ret_n);
}

/* Jobs of many tenants ask for the same: where one of them has just found no room, the next does
 * not look. */
static bool try_limited(struct stk_state *s, uint32_t shape, const uint64_t *avoid, uint32_t *ret_n)
{
    struct stk_no_room *full = &s->no_room[s->shapes[shape].kin & (STK_NO_ROOM - 1)];
    const uint64_t types = s->shapes[shape].demand.gpu_types & stk_limit_open(s, shape);
    const bool keeps = !avoid && !s->cap_w && s->pools[s->shapes[shape].pool].n_booked == 0;
    struct stk_demand d;

    if (!types || (keeps && full->room == s->room && full->types == types &&
                   stk_shape_same(s, full->shape, shape)))
        return false;
    d = s->shapes[shape].demand;
    d.gpu_types = types;
    if (try_demand(s, &d, s->shapes[shape].pool, avoid, ret_n))
        return true;
    if (keeps)
        *full = (struct stk_no_room){.types = types, .room = s->room, .shape = shape};
    return false;
}

static bool try_shape(struct stk_state *s, uint32_t shape, const uint64_t *avoid, uint32_t *ret_n)
{
    if (stk_shape_limited(&s->shapes[shape]))
        return try_limited(s, shape, avoid, ret_n);
    return try_demand(s, &s->shapes[shape].demand, s->shapes[shape].pool, avoid, ret_n);
}

bool stk_place_try(struct stk_state *s, uint32_t shape, const uint64_t *avoid, uint32_t *ret_n)
{
    stk_txn_mark mark;
    bool ok;

    if (s->shapes[shape].demand.nodes && !s->shapes[shape].demand.holders &&
        !stk_sets_room(s, shape))
        return false;
    if (s->pools[s->shapes[shape].pool].n_booked == 0 || s->book.raised)
        return try_shape(s, shape, avoid, ret_n);
    mark = stk_txn_begin(s);
    stk_fence_raise(s, shape);
    ok = try_shape(s, shape, avoid, ret_n);
    stk_txn_rollback(s, mark);
    return ok;
}

bool stk_place_try_types(struct stk_state *s, uint32_t shape, uint64_t types, uint32_t *ret_n)
{
    struct stk_demand d = s->shapes[shape].demand;

    d.gpu_types &= types;
    return d.gpu_types && try_demand(s, &d, s->shapes[shape].pool, NULL, ret_n);
}
