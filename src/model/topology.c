/* SPDX-License-Identifier: Apache-2.0 */
#include "model/topology.h"

#include <string.h>

static const char *const names[STK_AT_MAX] = {
    [STK_AT_GPU] = "gpu",   [STK_AT_LINK] = "link", [STK_AT_NODE] = "node",
    [STK_AT_RACK] = "rack", [STK_AT_ZONE] = "zone", [STK_AT_REGION] = "region",
    [STK_AT_FAR] = "far",
};

const char *stk_level_name(enum stk_level level)
{
    return (unsigned)level < STK_AT_MAX ? names[level] : "?";
}

enum stk_level stk_level_of(const char *name, size_t len)
{
    for (unsigned i = STK_AT_LINK; i < STK_AT_FAR; i++)
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
            return (enum stk_level)i;
    return STK_AT_GPU;
}

static uint32_t count(uint64_t mask)
{
    return (uint32_t)__builtin_popcountll(mask);
}

static int check_masks(const uint64_t *mask, uint32_t n, uint64_t all, const char *what,
                       struct stk_err *err)
{
    uint64_t seen = 0;

    if (n > STK_MAX_ISLANDS)
        return stk_err_set(err, -EINVAL, "a node has at most %d %ss, got %u", STK_MAX_ISLANDS, what,
                           n);
    for (uint32_t i = 0; i < n; i++) {
        if (mask[i] == 0)
            return stk_err_set(err, -EINVAL, "%s %u has no GPU", what, i);
        if (mask[i] & ~all)
            return stk_err_set(err, -EINVAL, "%s %u has GPU %d; the node has GPUs 0 to %d", what, i,
                               63 - __builtin_clzll(mask[i]), (int)count(all) - 1);
        if (mask[i] & seen)
            return stk_err_set(err, -EINVAL, "GPU %d is in two %ss",
                               __builtin_ctzll(mask[i] & seen), what);
        seen |= mask[i];
    }
    return 0;
}

int stk_layout_check(const struct stk_layout *l, struct stk_err *err)
{
    uint64_t all;
    int rc;

    if (l->gpus == 0 || l->gpus > STK_MAX_NODE_GPUS)
        return stk_err_set(err, -EINVAL, "a layout is of 1 to %d GPUs, got %u", STK_MAX_NODE_GPUS,
                           l->gpus);
    all = ~UINT64_C(0) >> (64 - l->gpus);
    rc = check_masks(l->island, l->n_islands, all, "island", err);
    return rc < 0 ? rc : check_masks(l->numa, l->n_numa, all, "NUMA node", err);
}

bool stk_layout_equal(const struct stk_layout *a, const struct stk_layout *b)
{
    return a->gpus == b->gpus && a->n_islands == b->n_islands && a->n_numa == b->n_numa &&
           memcmp(a->island, b->island, a->n_islands * sizeof(*a->island)) == 0 &&
           memcmp(a->numa, b->numa, a->n_numa * sizeof(*a->numa)) == 0 && a->weight == b->weight;
}

uint64_t stk_layout_island(const struct stk_layout *l, uint32_t gpu)
{
    uint64_t bit = UINT64_C(1) << gpu;

    for (uint32_t i = 0; l && i < l->n_islands; i++)
        if (l->island[i] & bit)
            return l->island[i];
    return bit;
}

static uint64_t lowest(uint64_t mask, uint32_t n)
{
    uint64_t left = mask;

    while (n-- > 0)
        left &= left - 1;
    return mask & ~left;
}

/* Of these sets, the one with fewest free GPUs that are enough; 0: none has as many. */
static uint64_t tightest(const uint64_t *set, uint32_t n_sets, uint64_t free, uint32_t n)
{
    uint64_t best = 0;

    for (uint32_t i = 0; i < n_sets; i++)
        if (count(set[i] & free) >= n && (best == 0 || count(set[i] & free) < count(best)))
            best = set[i] & free;
    return best;
}

static uint64_t fullest(const uint64_t *set, uint32_t n_sets, uint64_t free)
{
    uint64_t best = 0;

    for (uint32_t i = 0; i < n_sets; i++)
        if (count(set[i] & free) > count(best))
            best = set[i] & free;
    return best;
}

/* So many of one island, or of GPUs that are in none. */
static uint64_t near_numa(const struct stk_layout *l, uint64_t free, uint32_t n)
{
    uint64_t one = tightest(l->numa, l->n_numa, free, n), got = 0;

    if (l->weight)
        return stk_linked_choose(l->weight, l->gpus, 0, free, n);
    if (one)
        return lowest(one, n);
    while (n > 0) {
        uint64_t most = fullest(l->numa, l->n_numa, free & ~got);

        if (count(most) < 2 || count(most) > n)
            break;
        got |= most;
        n -= count(most);
    }
    one = tightest(l->numa, l->n_numa, free & ~got, n);
    return got | lowest(one ? one : free & ~got, n);
}

static uint64_t choose(const struct stk_layout *l, uint64_t free, uint32_t n)
{
    uint64_t got = 0, one;

    if (count(free) <= n || n == 0)
        return n ? free : 0;
    while (!(one = tightest(l->island, l->n_islands, free & ~got, n))) {
        one = fullest(l->island, l->n_islands, free & ~got);
        if (count(one) < 2) /* no two of the others are linked */
            return got | near_numa(l, free & ~got, n);
        got |= one;
        n -= count(one);
    }
    return got | near_numa(l, one, n);
}

/* So many, beside those that are 'had'. */
static uint64_t choose_beside(const struct stk_layout *l, uint64_t had, uint64_t free, uint32_t n)
{
    if (!l)
        return lowest(free, n);
    return l->weight ? stk_linked_choose(l->weight, l->gpus, had, free, n) : choose(l, free, n);
}

uint64_t stk_layout_choose(const struct stk_layout *l, uint64_t free, uint64_t last, uint32_t n)
{
    uint64_t first = free & ~last;

    if (count(first) < n)
        return first | choose_beside(l, first, free & last, n - count(first));
    return choose_beside(l, 0, first, n);
}

uint32_t stk_layout_units(const struct stk_layout *l, uint64_t free, uint32_t unit)
{
    uint32_t n = 0;

    if (unit <= 1)
        return count(free);
    for (uint32_t i = 0; l && i < l->n_islands; i++)
        n += count(l->island[i] & free) / unit;
    return n;
}

uint64_t stk_layout_choose_units(const struct stk_layout *l, uint64_t free, uint64_t last,
                                 uint32_t unit, uint32_t n)
{
    uint64_t got = 0;

    if (unit <= 1)
        return count(free) < n ? 0 : stk_layout_choose(l, free, last, n);
    for (; n > 0; n--) {
        uint64_t one = tightest(l->island, l->n_islands, free & ~last & ~got, unit), first;

        if (!one)
            one = tightest(l->island, l->n_islands, free & ~got, unit);
        if (!one)
            return 0;
        first = near_numa(l, one & ~last, unit);
        got |= first | near_numa(l, one & last, unit - count(first));
    }
    return got;
}

static bool same(uint32_t a, uint32_t b)
{
    return a != 0 && a == b;
}

enum stk_level stk_level_between(const struct stk_node_spec *nodes,
                                 const struct stk_layout *layouts, struct stk_gpu_at a,
                                 struct stk_gpu_at b)
{
    const struct stk_node_spec *m = &nodes[a.node], *n = &nodes[b.node];

    if (a.node == b.node && a.gpu == b.gpu)
        return STK_AT_GPU;
    if (same(m->domain, n->domain))
        return STK_AT_LINK;
    if (a.node == b.node)
        return m->layout && (stk_layout_island(&layouts[m->layout - 1], a.gpu) >> b.gpu & 1)
                   ? STK_AT_LINK
                   : STK_AT_NODE;
    return same(m->rack, n->rack)       ? STK_AT_RACK
           : same(m->zone, n->zone)     ? STK_AT_ZONE
           : same(m->region, n->region) ? STK_AT_REGION
                                        : STK_AT_FAR;
}
