/* SPDX-License-Identifier: Apache-2.0 */
#include "core/part.h"

#include <assert.h>

/* Memory slices in use on a GPU in MIG mode; all of them when it is not to be had. */
static uint8_t slices_on(const struct stk_state *s, const struct stk_node *n, uint32_t gpu)
{
    uint64_t bit = UINT64_C(1) << gpu;

    return n->mask_free & bit ? 0 : n->mask_part & bit ? s->parts[n->first_part + gpu].slices : 255;
}

/* The starts at which the GPU has such an instance; all of them where instances are made. */
static uint32_t starts_of(const struct stk_node *n, uint32_t gpu, uint16_t mig)
{
    uint32_t starts = 0;

    if (!n->instances)
        return 0xff;
    for (uint32_t i = 0; i < STK_MIG_SLICES; i++)
        starts |= (uint32_t)(n->instances[gpu * STK_MIG_SLICES + i] == mig) << i;
    return starts;
}

/* Where a new instance starts beside the slices in use. */
static uint32_t choose(const struct stk_node *n, uint32_t gpu, uint16_t mig, uint8_t used)
{
    uint32_t starts;

    if (!n->instances)
        return stk_mig_choose(n->mig, mig, used);
    starts = stk_mig_starts(n->mig, mig, used) & starts_of(n, gpu, mig);
    return starts ? (uint32_t)__builtin_ctz(starts) : STK_MIG_ANY;
}

uint32_t stk_part_slot(const struct stk_state *s, uint32_t node, uint32_t gpu, uint16_t mig)
{
    const struct stk_node *n = &s->nodes[node];

    return choose(n, gpu, mig, slices_on(s, n, gpu));
}

uint32_t stk_part_instances(const struct stk_node *n, uint16_t mig)
{
    uint32_t gpus = 0;

    for (uint32_t g = 0; g < n->gpus; g++)
        gpus += (starts_of(n, g, mig) & stk_mig_starts(n->mig, mig, 0)) != 0;
    return gpus;
}

static bool instance_fits(const struct stk_state *s, const struct stk_node *n, uint32_t gpu,
                          const struct stk_use *u)
{
    uint32_t starts = stk_mig_starts(n->mig, u->mig, slices_on(s, n, gpu));

    /* one that has its place keeps it, though the card may have been divided anew since */
    return u->slot == STK_MIG_ANY ? (starts & starts_of(n, gpu, u->mig)) != 0
                                  : starts >> u->slot & 1;
}

bool stk_part_fits(const struct stk_state *s, uint32_t node, uint32_t gpu, const struct stk_use *u)
{
    const struct stk_node *n = &s->nodes[node];
    const struct stk_part *p = &s->parts[n->first_part + gpu];
    uint64_t bit = UINT64_C(1) << gpu;

    if (u->mig || n->mig)
        return instance_fits(s, n, gpu, u);
    if (n->mask_free & bit)
        return n->gpu_mem_mib == 0 || u->gpu_mem <= n->gpu_mem_mib;
    return (n->mask_part & bit) && p->milli >= u->milli && p->share == u->share &&
           p->share_max == u->share_max && p->with == u->share_with &&
           (p->share_max == 0 || p->n < p->share_max) &&
           (n->gpu_mem_mib == 0 || u->gpu_mem <= p->mem_mib);
}

/* An instance comes or goes. */
static void turn_slices(const struct stk_node *n, struct stk_part *p, const struct stk_use *u)
{
    p->slices ^= u->slices ? u->slices : stk_mig_slices(n->mig, u->mig, u->slot);
    p->milli = (uint16_t)stk_mig_left(n->mig, p->slices);
}

/* Memory that it takes from the others there: in turns each has all of it. */
static uint32_t memory_of(const struct stk_node *n, const struct stk_part *p,
                          const struct stk_use *u)
{
    return n->gpu_mem_mib && p->share != STK_SHARE_TIME ? u->gpu_mem : 0;
}

/* Who has a whole GPU that two may have, in the order in which they came. */
static void seat(struct stk_part *p, const struct stk_use *u, bool take)
{
    uint32_t who = u->holder ? u->holder : UINT32_MAX;

    if (take) {
        p->holder[p->holder[0] != 0] = who;
        return;
    }
    if (p->holder[1] != who)
        p->holder[0] = p->holder[1];
    p->holder[1] = 0;
}

uint64_t stk_part_take(struct stk_state *s, uint32_t node, const struct stk_use *u)
{
    struct stk_node *n = &s->nodes[node];
    uint64_t first = u->mask & ~n->mask_part;

    for (uint64_t left = u->mask; left; left &= left - 1) {
        struct stk_part *p = &s->parts[n->first_part + (uint32_t)__builtin_ctzll(left)];

        if (first & left & -left)
            *p = (struct stk_part){.milli = 1000,
                                   .share = u->share,
                                   .share_max = u->share_max,
                                   .with = u->share_with,
                                   .mem_mib = n->gpu_mem_mib};
        assert(p->milli >= u->milli);
        if (u->mig)
            turn_slices(n, p, u);
        else
            p->milli = (uint16_t)(p->milli - u->milli);
        p->mem_mib -= memory_of(n, p, u);
        if (u->share == STK_SHARE_PAIR)
            seat(p, u, true);
        p->n++;
    }
    n->mask_part |= first;
    return first;
}

uint64_t stk_part_give(struct stk_state *s, uint32_t node, const struct stk_use *u)
{
    struct stk_node *n = &s->nodes[node];
    uint64_t last = 0;

    for (uint64_t left = u->mask; left; left &= left - 1) {
        struct stk_part *p = &s->parts[n->first_part + (uint32_t)__builtin_ctzll(left)];

        if (u->mig)
            turn_slices(n, p, u);
        else
            p->milli = (uint16_t)(p->milli + u->milli);
        p->mem_mib += memory_of(n, p, u);
        if (u->share == STK_SHARE_PAIR)
            seat(p, u, false);
        if (--p->n == 0)
            last |= left & -left;
    }
    n->mask_part &= ~last;
    return last;
}

struct stk_use stk_part_keep(const struct stk_state *s, uint32_t node, uint32_t gpu,
                             const struct stk_demand *d)
{
    const struct stk_node *n = &s->nodes[node];
    const struct stk_part *p = &s->parts[n->first_part + gpu];
    struct stk_use u = {.gpus = 1, .mask = UINT64_C(1) << gpu};
    bool alike = p->share == d->share && p->share_max == d->share_max && p->with == d->share_with;

    if (d->mig) {
        u.mig = d->mig;
        u.slices = (uint8_t)(stk_mig_slices(n->mig, d->mig, d->pin_slot) & ~p->slices);
        u.milli = u.slices != 0;
        return u;
    }
    u.milli = alike && d->gpu_milli < p->milli ? d->gpu_milli : p->milli;
    u.gpu_mem = d->gpu_mem_mib < p->mem_mib ? d->gpu_mem_mib : p->mem_mib;
    return u;
}

struct stk_use stk_part_rest(const struct stk_state *s, uint32_t node, uint32_t gpu)
{
    const struct stk_node *n = &s->nodes[node];
    const struct stk_part *p = &s->parts[n->first_part + gpu];
    struct stk_use u = {.gpus = 1,
                        .mask = UINT64_C(1) << gpu,
                        .milli = p->share == STK_SHARE_PAIR ? 0 : p->milli,
                        .share = p->share,
                        .share_max = p->share_max,
                        .share_with = p->with};

    if (n->mig && u.milli) {
        u.mig = 1; /* whichever: its slices are named */
        u.slices = (uint8_t)(stk_mig_all(n->mig) & ~p->slices);
    }
    return u;
}

static uint32_t level_of(const struct stk_state *s, const struct stk_node *n)
{
    uint32_t most = 0;
    bool any = false;

    for (uint64_t left = n->up ? n->mask_part & ~n->mask_off : 0; left; left &= left - 1) {
        const struct stk_part *p = &s->parts[n->first_part + (uint32_t)__builtin_ctzll(left)];

        if (p->share == STK_SHARE_PAIR)
            continue;
        any = true;
        most = p->milli > most ? p->milli : most;
    }
    return any ? 1 + most * STK_PART_LEVELS / 1000 : 0;
}

static uint64_t *bucket(const struct stk_state *s, const struct stk_group *g, uint32_t level)
{
    return s->words + g->parts + (size_t)(level - 1) * g->nodes_layout.n_words;
}

void stk_part_file(struct stk_state *s, uint32_t node)
{
    struct stk_node *n = &s->nodes[node];
    const struct stk_group *g = &s->groups[n->group];
    uint32_t level = level_of(s, n);

    if (level == n->part_level)
        return;
    if (n->part_level)
        stk_bits_clear(&g->nodes_layout, bucket(s, g, n->part_level), n->pos);
    n->part_level = level;
    if (level)
        stk_bits_set(&g->nodes_layout, bucket(s, g, level), n->pos);
}

/* Ways to put other instances there that are lost; any on a free GPU are more than all others. */
static uint32_t ways_lost(const struct stk_state *s, const struct stk_node *n, uint32_t gpu,
                          uint16_t mig)
{
    uint8_t used = slices_on(s, n, gpu);
    uint32_t start = choose(n, gpu, mig, used);

    return (used ? 0 : 1000) + stk_mig_ways(n->mig, used) -
           stk_mig_ways(n->mig, used | stk_mig_slices(n->mig, mig, start));
}

uint32_t stk_part_gpu(const struct stk_state *s, uint32_t node, const struct stk_use *u,
                      uint64_t but)
{
    const struct stk_node *n = &s->nodes[node];
    uint32_t best = UINT32_MAX, best_left = 0;
    bool by_ways = u->mig && !s->place->apart;

    for (uint64_t m = ((n->mask_part & ~n->mask_off) | n->mask_free) & ~but; m; m &= m - 1) {
        uint32_t gpu = (uint32_t)__builtin_ctzll(m);
        uint32_t left = by_ways ? ways_lost(s, n, gpu, u->mig) : stk_part_left(s, n, gpu);
        bool better = s->place->apart ? left > best_left : left < best_left;

        if ((best == UINT32_MAX || better) && stk_part_fits(s, node, gpu, u)) {
            best = gpu;
            best_left = left;
        }
    }
    return best;
}

uint64_t stk_part_left_in(const struct stk_state *s, const struct stk_group *g)
{
    uint64_t sum = 0;

    for (uint32_t level = 1; level <= STK_PART_LEVELS; level++) {
        const uint64_t *set = bucket(s, g, level);

        for (uint32_t pos = stk_bits_next(&g->nodes_layout, set, 0); pos != UINT32_MAX;
             pos = stk_bits_next(&g->nodes_layout, set, pos + 1)) {
            const struct stk_node *n = &s->nodes[s->group_nodes[g->first + pos]];

            for (uint64_t m = n->mask_part & ~n->mask_off; m; m &= m - 1)
                sum += stk_part_left(s, n, (uint32_t)__builtin_ctzll(m));
        }
    }
    return sum;
}

/* One of these GPUs has room for it, and it has none there yet. */
static bool any_fits(const struct stk_state *s, uint32_t node, const struct stk_want *w, uint64_t m)
{
    const struct stk_use u = stk_want_use(w);

    for (uint32_t i = 0; i < w->n_mine; i++)
        m &= w->mine[i].node.i == node ? ~w->mine[i].mask : ~UINT64_C(0);
    for (; m; m &= m - 1)
        if (stk_part_fits(s, node, (uint32_t)__builtin_ctzll(m), &u))
            return true;
    return false;
}

bool stk_part_offers(const struct stk_state *s, uint32_t node, const struct stk_want *w)
{
    const struct stk_node *n = &s->nodes[node];

    return !n->instances || any_fits(s, node, w, n->mask_free | (n->mask_part & ~n->mask_off));
}

uint32_t stk_part_pick(const struct stk_state *s, const struct stk_want *w)
{
    const struct stk_pool *p = &s->pools[w->pool];
    uint32_t first = 1 + w->gpu_milli * STK_PART_LEVELS / 1000U;

    for (uint32_t level = first; level <= STK_PART_LEVELS; level++)
        for (uint32_t i = 0; i < p->n_groups; i++) {
            const struct stk_group *g = &s->groups[p->first_group + i];
            const uint64_t *set = bucket(s, g, level);

            if (!stk_group_accepts(g, w->gpu_types))
                continue;
            for (uint32_t pos = stk_bits_next(&g->nodes_layout, set, 0); pos != UINT32_MAX;
                 pos = stk_bits_next(&g->nodes_layout, set, pos + 1)) {
                uint32_t node = s->group_nodes[g->first + pos];

                if (stk_index_has_room(s, node, w) &&
                    any_fits(s, node, w, s->nodes[node].mask_part & ~s->nodes[node].mask_off))
                    return node;
            }
        }
    return STK_NONE;
}
