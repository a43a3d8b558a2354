/* SPDX-License-Identifier: Apache-2.0 */
#include "core/index.h"

#include <assert.h>

#include "core/pair.h"
#include "core/part.h"
#include "core/power.h"
#include "core/resource.h"
#include "core/score.h"
#include "core/topo.h"

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

void stk_index_file(struct stk_state *s, uint32_t node)
{
    bucket_add(s, node);
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

    return !(w->avoid && stk_bits_test(w->avoid, node)) &&
           (!w->only || stk_bits_test(w->only, node)) && (w->gpus > 0 || !n->closed) &&
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
