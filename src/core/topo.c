/* SPDX-License-Identifier: Apache-2.0 */
#include "core/topo.h"

#define BAD(...) (stk_err_set(err, -EINVAL, __VA_ARGS__), false)

enum { LINKED = STK_COUNT_LINKED * STK_TOPO_UNITS, IDLE = STK_COUNT_IDLE * STK_TOPO_UNITS };

_Static_assert(IDLE == STK_TOPO_KEYS - 1, "idle nodes are counted last");

uint32_t stk_topo_tier(const struct stk_state *s, enum stk_level level)
{
    uint32_t tier = level == STK_AT_FAR      ? STK_TIER_ALL
                    : level == STK_AT_REGION ? STK_TIER_REGION
                    : level == STK_AT_ZONE   ? STK_TIER_ZONE
                    : level == STK_AT_RACK   ? STK_TIER_RACK
                    : level == STK_AT_LINK   ? STK_TIER_DOMAIN
                                             : STK_TIERS;

    while (tier != STK_TIERS && !s->topo->built[tier])
        tier = tier > 0 ? tier - 1 : STK_TIERS;
    return tier;
}

uint32_t stk_topo_key(const struct stk_state *s, enum stk_topo_kind kind, uint32_t unit)
{
    const struct stk_topo *t = s->topo;
    uint32_t i = t->n_units ? t->n_units - 1 : 0;

    if (kind == STK_COUNT_IDLE)
        return IDLE;
    while (i > 0 && t->unit[i] > unit)
        i--;
    return (uint32_t)kind * STK_TOPO_UNITS + i;
}

static bool in_domain(const struct stk_state *s, uint32_t node)
{
    const struct stk_topo *t = s->topo;

    return t->built[STK_TIER_DOMAIN] &&
           t->cells[t->cell[(size_t)node * STK_TIERS + STK_TIER_DOMAIN]].known;
}

static uint32_t linked_in(const struct stk_state *s, uint32_t node, uint64_t free, uint32_t n,
                          uint32_t unit)
{
    if (in_domain(s, node))
        return n / unit;
    return stk_layout_units(stk_topo_layout(s, node), free, unit);
}

uint32_t stk_topo_linked(const struct stk_state *s, uint32_t node, uint32_t unit)
{
    const struct stk_node *n = &s->nodes[node];

    return linked_in(s, node, n->mask_free, n->gpus_free, unit);
}

/* The most of them that are in one island. */
static uint32_t most_linked(const struct stk_state *s, uint32_t node, uint64_t free, uint32_t n)
{
    const struct stk_layout *l = stk_topo_layout(s, node);
    uint32_t most = n > 0;

    if (in_domain(s, node))
        return n;
    for (uint32_t i = 0; l && i < l->n_islands; i++) {
        uint32_t in = (uint32_t)__builtin_popcountll(l->island[i] & free);

        most = in > most ? in : most;
    }
    return most;
}

static uint64_t *link_set(const struct stk_state *s, uint32_t group, uint32_t free)
{
    return s->topo->words + s->topo->link[group] +
           (size_t)free * s->groups[group].nodes_layout.n_words;
}

const uint64_t *stk_topo_link_set(const struct stk_state *s, uint32_t group, uint32_t free)
{
    return link_set(s, group, free);
}

/* What has changed about linked GPUs, and the node's bucket by them. */
static void count_linked(struct stk_state *s, uint32_t node, const struct stk_filed *was,
                         const struct stk_filed *is, int32_t *diff)
{
    const struct stk_topo *t = s->topo;
    const struct stk_node *n = &s->nodes[node];
    const struct stk_bits_layout *l = &s->groups[n->group].nodes_layout;

    for (uint32_t u = 0; u < t->n_units; u++)
        diff[LINKED + u] = (int32_t)linked_in(s, node, is->mask, is->free, t->unit[u]) -
                           (int32_t)linked_in(s, node, was->mask, was->free, t->unit[u]);
    if (was->up)
        stk_bits_clear(l, link_set(s, n->group, most_linked(s, node, was->mask, was->free)),
                       n->pos);
    if (is->up)
        stk_bits_set(l, link_set(s, n->group, most_linked(s, node, is->mask, is->free)), n->pos);
}

static void add_to_cells(struct stk_topo *t, uint32_t node, const int32_t *diff)
{
    for (uint32_t tier = 0; tier < STK_TIER_ALL; tier++) {
        uint32_t cell = t->cell[(size_t)node * STK_TIERS + tier];
        int32_t *cap = &t->cap[(size_t)cell * STK_TOPO_KEYS];

        if (!t->built[tier])
            continue;
        for (uint32_t k = 0; k < STK_TOPO_KEYS; k++)
            cap[k] += diff[k];
        if (!t->cells[cell].dirty) {
            t->cells[cell].dirty = true;
            t->dirty[t->n_dirty++] = cell;
        }
    }
}

void stk_topo_count(struct stk_state *s, uint32_t node)
{
    struct stk_topo *t = s->topo;
    const struct stk_node *n = &s->nodes[node];
    struct stk_filed *was = &t->filed[node];
    const struct stk_filed is = {.mask = n->up ? n->mask_free : 0,
                                 .free = n->up ? n->gpus_free : 0,
                                 .up = n->up,
                                 .idle = n->up && n->n_uses == 0};
    const int32_t *v = t->vector + t->group_vector[n->group];
    int32_t diff[STK_TOPO_KEYS] = {0};

    if (was->mask == is.mask && was->free == is.free && was->up == is.up && was->idle == is.idle)
        return;
    for (uint32_t k = 0; k < LINKED; k++)
        diff[k] = v[(size_t)is.free * STK_TOPO_KEYS + k] - v[(size_t)was->free * STK_TOPO_KEYS + k];
    if (t->linked[n->group])
        count_linked(s, node, was, &is, diff);
    diff[IDLE] = (int32_t)is.idle - (int32_t)was->idle;
    *was = is;
    add_to_cells(t, node, diff);
}

/* ---- buckets ---- */

static uint64_t *cell_set(const struct stk_topo *t, const struct stk_cells *row, uint32_t key,
                          uint32_t bucket)
{
    size_t each = (size_t)row->n_buckets * row->cells.n_words + row->buckets.n_words;

    return t->words + row->sets + key * each + (size_t)bucket * row->cells.n_words;
}

static bool empty(const struct stk_cells *row, const uint64_t *set)
{
    return set[row->cells.start[row->cells.levels - 1]] == 0;
}

/* Puts the cell into its bucket by this key; 0 is none. */
static void file(const struct stk_topo *t, const struct stk_cells *row, uint32_t cell, uint32_t key)
{
    uint16_t *at = &t->bucket[(size_t)cell * STK_TOPO_KEYS + key];
    uint32_t is = (uint32_t)t->cap[(size_t)cell * STK_TOPO_KEYS + key] >> row->shift;
    bool some = t->cap[(size_t)cell * STK_TOPO_KEYS + key] > 0;
    uint64_t *used = cell_set(t, row, key, row->n_buckets), *set;

    if (*at == (some ? is + 1 : 0))
        return;
    if (*at) {
        set = cell_set(t, row, key, *at - 1U);
        stk_bits_clear(&row->cells, set, cell - row->first);
        if (empty(row, set))
            stk_bits_clear(&row->buckets, used, *at - 1U);
    }
    *at = (uint16_t)(some ? is + 1 : 0);
    if (some) {
        stk_bits_set(&row->cells, cell_set(t, row, key, is), cell - row->first);
        stk_bits_set(&row->buckets, used, is);
    }
}

static void refresh(struct stk_topo *t)
{
    while (t->n_dirty > 0) {
        uint32_t cell = t->dirty[--t->n_dirty];
        const struct stk_cell *c = &t->cells[cell];
        const struct stk_cells *row = &t->of[(size_t)c->group * STK_TIERS + c->tier];

        t->cells[cell].dirty = false;
        for (uint32_t k = 0; k < STK_TOPO_KEYS; k++)
            file(t, row, cell, k);
    }
}

/* The next bucket that is not empty, in the order of the walk. */
static uint32_t next_bucket(const struct stk_topo *t, const struct stk_cells *row,
                            const struct stk_topo_walk *w)
{
    const uint64_t *used = cell_set(t, row, w->key, row->n_buckets);
    uint32_t least = w->need >> row->shift, b;

    if (!w->emptiest)
        return stk_bits_next(&row->buckets, used, w->begun ? w->bucket + 1 : least);
    if (w->begun && w->bucket <= least)
        return UINT32_MAX;
    b = stk_bits_prev(&row->buckets, used, w->begun ? w->bucket - 1 : row->n_buckets - 1);
    return b == UINT32_MAX || b < least ? UINT32_MAX : b;
}

uint32_t stk_topo_next(struct stk_state *s, struct stk_topo_walk *w)
{
    struct stk_topo *t = s->topo;
    const struct stk_cells *row = &t->of[(size_t)w->group * STK_TIERS + w->tier];

    if (!w->begun) {
        refresh(t);
        w->bucket = next_bucket(t, row, w);
        w->begun = true;
    }
    for (; w->bucket != UINT32_MAX; w->bucket = next_bucket(t, row, w), w->at = 0) {
        const uint64_t *set = cell_set(t, row, w->key, w->bucket);

        while ((w->at = stk_bits_next(&row->cells, set, w->at)) != UINT32_MAX) {
            uint32_t cell = row->first + w->at++;

            if (stk_topo_cap(s, cell, w->key) >= w->need)
                return cell;
        }
    }
    return STK_NONE;
}

/* ---- checks ---- */

static bool node_sound(const struct stk_state *s, uint32_t node, struct stk_err *err)
{
    const struct stk_topo *t = s->topo;
    const struct stk_node *n = &s->nodes[node];
    const struct stk_filed *f = &t->filed[node];

    if (f->up != n->up || f->free != (n->up ? n->gpus_free : 0) ||
        f->mask != (n->up ? n->mask_free : 0) || f->idle != (n->up && n->n_uses == 0))
        return BAD("node %u is counted in its rack as it was before", node);
    if (t->linked[n->group] && n->up &&
        !stk_bits_test(link_set(s, n->group, most_linked(s, node, n->mask_free, n->gpus_free)),
                       n->pos))
        return BAD("node %u: its linked GPUs are not counted", node);
    return true;
}

static int32_t worth(const struct stk_state *s, uint32_t node, uint32_t key)
{
    const struct stk_node *n = &s->nodes[node];
    uint32_t unit = s->topo->unit[key % STK_TOPO_UNITS];

    if (!n->up || (key != IDLE && key % STK_TOPO_UNITS >= s->topo->n_units))
        return 0;
    if (key == IDLE)
        return n->n_uses == 0;
    if (key >= LINKED)
        return s->topo->linked[n->group] ? (int32_t)stk_topo_linked(s, node, unit) : 0;
    return key < STK_COUNT_NODES * STK_TOPO_UNITS ? (int32_t)(n->gpus_free / unit)
                                                  : n->gpus_free >= unit;
}

bool stk_topo_sound(const struct stk_state *s, struct stk_err *err)
{
    const struct stk_topo *t = s->topo;

    for (uint32_t i = 0; s->topo_counts && i < s->n_nodes; i++)
        if (!node_sound(s, i, err))
            return false;
    for (uint32_t c = 0; s->topo_counts && c < t->n_cells; c++) {
        const struct stk_cell *cell = &t->cells[c];

        for (uint32_t k = 0; cell->tier != STK_TIER_ALL && k < STK_TOPO_KEYS; k++) {
            int32_t sum = 0;

            for (uint32_t i = 0; i < cell->n; i++)
                sum += worth(s, s->group_nodes[s->groups[cell->group].first + cell->first + i], k);
            if (sum != t->cap[(size_t)c * STK_TOPO_KEYS + k])
                return BAD("place %u of tier %u has room for %d by key %u, counted %d", cell->id,
                           cell->tier, sum, k, t->cap[(size_t)c * STK_TOPO_KEYS + k]);
        }
    }
    return true;
}
