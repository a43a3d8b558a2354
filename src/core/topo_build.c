/* SPDX-License-Identifier: Apache-2.0 */
/* topo_build.c - places and cells, from what nodes say about themselves. See topo.h.
 *
 * The place of a node at a tier is named by the lowest node that is in it: of two nodes with one
 * rack number, the lower. A node that does not know its rack is in the place it has one tier below,
 * in the end itself. So places are nested, and sorting by those names makes each of them a row.
 */
#include "core/topo.h"

#include "core/blocks.h"

#define ALLOC(s, n, type)                                                                          \
    ((type *)(s)->mem.resize((s)->mem.ctx, NULL, 0, (size_t)(n) * sizeof(type)))
#define FREE(s, p, n)                                                                              \
    ((p) ? (void)(s)->mem.resize((s)->mem.ctx, (p), (size_t)(n) * sizeof(*(p)), 0) : (void)0)

#define MOST_BUCKETS 512

static const char *const tier_name[] = {
    [STK_TIER_DOMAIN] = "link domain",
    [STK_TIER_RACK] = "rack",
    [STK_TIER_ZONE] = "zone",
    [STK_TIER_REGION] = "region",
};

static uint32_t number_of(const struct stk_node_spec *n, uint32_t tier)
{
    switch (tier) {
    case STK_TIER_DOMAIN:
        return n->domain;
    case STK_TIER_RACK:
        return n->rack;
    case STK_TIER_ZONE:
        return n->zone;
    default:
        return n->region;
    }
}

/* The lowest node of each place, into 'id'. */
static void name_places(struct stk_state *s, const struct stk_node_spec *specs, uint32_t tier,
                        struct stk_sort_item *a)
{
    struct stk_topo *t = s->topo;
    uint32_t *id = t->id + tier, last = 0, first = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++) {
        a[i] = (struct stk_sort_item){number_of(&specs[i], tier), i, 0};
        t->built[tier] |= a[i].key != 0;
        id[(size_t)i * STK_TIERS] = tier ? stk_topo_id(s, i, tier - 1) : i;
    }
    if (!t->built[tier])
        return;
    stk_sort(a, s->n_nodes, a + s->n_nodes);
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        if (a[i].key == 0)
            continue;
        if (a[i].key != last) {
            last = (uint32_t)a[i].key;
            first = a[i].id;
        }
        id[(size_t)a[i].id * STK_TIERS] = first;
    }
}

/* A rack lies in one zone, and so on. */
static int check_nested(const struct stk_state *s, const struct stk_node_spec *specs,
                        struct stk_err *err)
{
    for (uint32_t i = 0; i < s->n_nodes; i++)
        for (uint32_t tier = STK_TIER_DOMAIN; tier < STK_TIER_REGION; tier++) {
            uint32_t first = stk_topo_id(s, i, tier);

            for (uint32_t up = tier + 1; up <= STK_TIER_REGION; up++)
                if (number_of(&specs[first], up) != number_of(&specs[i], up))
                    return stk_err_set(err, -EINVAL,
                                       "node %u: its %s, that of node %u too, is in another %s", i,
                                       tier_name[tier], first, tier_name[up]);
        }
    return 0;
}

/* From names to numbers without gaps. */
static void number_places(struct stk_state *s, uint32_t tier)
{
    struct stk_topo *t = s->topo;

    for (uint32_t i = 0; i < s->n_nodes; i++) {
        uint32_t *id = &t->id[(size_t)i * STK_TIERS + tier];

        *id = *id == i ? t->n_ids[tier]++ : t->id[(size_t)*id * STK_TIERS + tier];
    }
}

static int check_layouts(const struct stk_state *s, const struct stk_node_spec *specs,
                         struct stk_err *err)
{
    struct stk_err why;

    for (uint32_t i = 0; i < s->n_layouts; i++)
        if (stk_layout_check(&s->layouts[i], &why) < 0)
            return stk_err_set(err, -EINVAL, "layout %u: %s", i, why.text);
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        const struct stk_node_spec *n = &specs[i];

        if (n->layout == 0 || n->aggregate)
            continue;
        if (n->layout > s->n_layouts || s->layouts[n->layout - 1].gpus != n->gpus)
            return stk_err_set(err, -EINVAL, "node %u: its layout is not one of %u GPUs", i,
                               n->gpus);
        if (n->domain && s->layouts[n->layout - 1].n_islands > 0)
            return stk_err_set(err, -EINVAL,
                               "node %u: a link domain joins all GPUs; it has no islands", i);
        s->nodes[i].layout = (uint16_t)n->layout;
    }
    return 0;
}

int stk_topo_places(struct stk_state *s, const struct stk_node_spec *specs, struct stk_err *err)
{
    struct stk_sort_item *a = ALLOC(s, 2 * (size_t)s->n_nodes + 1, struct stk_sort_item);
    struct stk_topo *t = s->topo = ALLOC(s, 1, struct stk_topo);
    int rc;

    if (t)
        t->id = ALLOC(s, (size_t)s->n_nodes * STK_TIERS + 1, uint32_t);
    if (!a || !t || !t->id) {
        FREE(s, a, 2 * (size_t)s->n_nodes + 1);
        return stk_err_set(err, -ENOMEM, "out of memory for %u nodes", s->n_nodes);
    }
    for (uint32_t tier = 0; tier <= STK_TIER_REGION; tier++) {
        name_places(s, specs, tier, a);
        s->topo_counts |= t->built[tier];
    }
    FREE(s, a, 2 * (size_t)s->n_nodes + 1);
    rc = check_nested(s, specs, err);
    rc = rc < 0 ? rc : check_layouts(s, specs, err);
    t->built[STK_TIER_ALL] = true;
    return rc;
}

void stk_topo_sort(const struct stk_state *s, struct stk_sort_item *nodes)
{
    const uint32_t n = s->n_nodes;

    if (!s->topo_counts)
        return;
    for (uint32_t i = 0; i < n; i++)
        nodes[i].key = stk_topo_id(s, nodes[i].id, STK_TIER_DOMAIN);
    stk_sort(nodes, n, nodes + n);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *id = &s->topo->id[(size_t)nodes[i].id * STK_TIERS];

        nodes[i].key = (int64_t)id[STK_TIER_REGION] << 40 | (int64_t)id[STK_TIER_ZONE] << 20 |
                       id[STK_TIER_RACK];
    }
    stk_sort(nodes, n, nodes + n);
}

_Static_assert(STK_MAX_NODES <= 1 << 20, "three names fit in a key");

/* ---- cells ---- */

static struct stk_cell *add_cell(struct stk_state *s, uint32_t group, uint32_t tier, uint32_t pos,
                                 uint32_t id)
{
    struct stk_topo *t = s->topo;
    struct stk_cell *c = &t->cells[t->n_cells++];

    *c = (struct stk_cell){.group = group, .tier = tier, .first = pos, .id = id};
    c->next = t->head[tier][id];
    t->head[tier][id] = t->n_cells;
    return c;
}

/* The next lower tier that has cells; STK_TIERS: none. */
static uint32_t below(const struct stk_topo *t, uint32_t tier)
{
    while (tier-- > 0)
        if (t->built[tier])
            return tier;
    return STK_TIERS;
}

/* The kids of a row's cells lie in the row below, in the same order. */
static void find_kids(struct stk_topo *t, const struct stk_cells *row, const struct stk_cells *low)
{
    uint32_t k = 0;

    for (uint32_t i = 0; i < row->n; i++) {
        struct stk_cell *c = &t->cells[row->first + i];

        c->kids = low->first + k;
        while (k < low->n && t->cells[low->first + k].first < c->first + c->n)
            k++;
        c->n_kids = low->first + k - c->kids;
    }
}

static void make_row(struct stk_state *s, uint32_t group, uint32_t tier,
                     const struct stk_node_spec *specs)
{
    struct stk_topo *t = s->topo;
    const struct stk_group *g = &s->groups[group];
    struct stk_cells *row = &t->of[(size_t)group * STK_TIERS + tier];
    struct stk_cell *c = NULL;
    uint32_t low = below(t, tier);

    row->first = t->n_cells;
    for (uint32_t pos = 0; pos < g->n; pos++) {
        uint32_t node = s->group_nodes[g->first + pos], id = stk_topo_id(s, node, tier);

        if (!c || c->id != id)
            c = add_cell(s, group, tier, pos, id);
        c->known |= tier == STK_TIER_ALL || number_of(&specs[node], tier) != 0;
        c->n++;
        t->cell[(size_t)node * STK_TIERS + tier] = (uint32_t)(c - t->cells);
    }
    row->n = t->n_cells - row->first;
    if (low != STK_TIERS)
        find_kids(t, row, &t->of[(size_t)group * STK_TIERS + low]);
}

/* How cells of a row are bucketed. Returns the words it needs. */
static size_t lay_row(const struct stk_state *s, struct stk_cells *row)
{
    uint64_t most = 1;

    for (uint32_t i = 0; i < row->n; i++) {
        const struct stk_cell *c = &s->topo->cells[row->first + i];
        uint64_t max = (uint64_t)c->n * (s->groups[c->group].max_gpus + 1);

        most = max > most ? max : most;
    }
    while (most >> row->shift >= MOST_BUCKETS)
        row->shift++;
    row->n_buckets = (uint32_t)(most >> row->shift) + 1;
    stk_bits_layout_init(&row->cells, row->n);
    stk_bits_layout_init(&row->buckets, row->n_buckets);
    return STK_TOPO_KEYS * ((size_t)row->n_buckets * row->cells.n_words + row->buckets.n_words);
}

static void list_units(struct stk_state *s)
{
    struct stk_topo *t = s->topo;
    uint32_t most = 0;

    for (uint32_t i = 0; i < s->n_groups; i++)
        most = s->groups[i].max_gpus > most ? s->groups[i].max_gpus : most;
    for (uint32_t u = 1; u <= 64 && u <= most; u += u < 8 ? 1 : u)
        t->unit[t->n_units++] = u;
    if (most > 8 && most < 64 && t->unit[t->n_units - 1] != most)
        t->unit[t->n_units++] = most;
}

/* What nodes with so many free GPUs count for. */
static int make_vectors(struct stk_state *s)
{
    struct stk_topo *t = s->topo;

    for (uint32_t i = 0; i < s->n_groups; i++) {
        t->group_vector[i] = t->n_vector;
        t->n_vector += (size_t)(s->groups[i].max_gpus + 1) * STK_TOPO_KEYS;
    }
    t->vector = ALLOC(s, t->n_vector + 1, int32_t);
    for (uint32_t i = 0; t->vector && i < s->n_groups; i++)
        for (uint32_t f = 0; f <= s->groups[i].max_gpus; f++) {
            int32_t *v = t->vector + t->group_vector[i] + (size_t)f * STK_TOPO_KEYS;

            for (uint32_t u = 0; u < t->n_units; u++) {
                v[STK_COUNT_UNITS * STK_TOPO_UNITS + u] = (int32_t)(f / t->unit[u]);
                v[STK_COUNT_NODES * STK_TOPO_UNITS + u] = f >= t->unit[u];
            }
        }
    return t->vector ? 0 : -ENOMEM;
}

/* Memory for counting, and sets for buckets. */
static int make_counts(struct stk_state *s, const struct stk_node_spec *specs)
{
    struct stk_topo *t = s->topo;

    list_units(s);
    for (uint32_t i = 0; i < s->n_nodes; i++)
        t->linked[s->nodes[i].group] |= specs[i].domain != 0 || s->nodes[i].layout != 0;
    for (uint32_t i = 0; i < s->n_groups; i++) {
        for (uint32_t tier = 0; tier < STK_TIER_ALL; tier++) {
            struct stk_cells *row = &t->of[(size_t)i * STK_TIERS + tier];

            row->sets = t->n_words;
            t->n_words += t->built[tier] ? lay_row(s, row) : 0;
        }
        t->link[i] = t->n_words;
        if (t->linked[i])
            t->n_words += (size_t)s->groups[i].nodes_layout.n_words * (s->groups[i].max_gpus + 1);
    }
    t->cap = ALLOC(s, (size_t)t->n_cells * STK_TOPO_KEYS + 1, int32_t);
    t->bucket = ALLOC(s, (size_t)t->n_cells * STK_TOPO_KEYS + 1, uint16_t);
    t->filed = ALLOC(s, s->n_nodes + 1, struct stk_filed);
    t->dirty = ALLOC(s, t->n_cells + 1, uint32_t);
    t->words = ALLOC(s, t->n_words + 1, uint64_t);
    if (!t->cap || !t->bucket || !t->filed || !t->dirty || !t->words || make_vectors(s) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->n_nodes; i++)
        stk_topo_count(s, i);
    return 0;
}

int stk_topo_build(struct stk_state *s, const struct stk_node_spec *specs)
{
    struct stk_topo *t = s->topo;

    for (uint32_t i = 0; i < s->n_nodes; i++) {
        t->id[(size_t)i * STK_TIERS + STK_TIER_ALL] = 0;
        s->topo_counts |= s->nodes[i].layout != 0;
    }
    t->n_ids[STK_TIER_ALL] = 1;
    for (uint32_t tier = 0; tier <= STK_TIER_ALL; tier++) {
        if (tier < STK_TIER_ALL)
            number_places(s, tier);
        t->cap_cells += !t->built[tier] ? 0 : tier == STK_TIER_ALL ? s->n_groups : s->n_nodes;
        t->head[tier] = ALLOC(s, t->n_ids[tier] + 1, uint32_t);
        if (!t->head[tier])
            return -ENOMEM;
    }
    t->cells = ALLOC(s, t->cap_cells + 1, struct stk_cell);
    t->cell = ALLOC(s, (size_t)s->n_nodes * STK_TIERS + 1, uint32_t);
    t->of = ALLOC(s, (size_t)s->n_groups * STK_TIERS + 1, struct stk_cells);
    t->link = ALLOC(s, s->n_groups + 1, size_t);
    t->linked = ALLOC(s, s->n_groups + 1, bool);
    t->group_vector = ALLOC(s, s->n_groups + 1, size_t);
    t->room = ALLOC(s, s->n_nodes + 1, uint64_t);
    t->room_in = ALLOC(s, s->n_nodes + 1, uint64_t);
    if (!t->cells || !t->cell || !t->of || !t->link || !t->linked || !t->group_vector || !t->room ||
        !t->room_in)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->n_groups; i++)
        for (uint32_t tier = 0; tier <= STK_TIER_ALL; tier++)
            if (t->built[tier])
                make_row(s, i, tier, specs);
    return s->topo_counts ? make_counts(s, specs) : 0;
}

static void in_topo(const struct stk_state *s, struct stk_topo *t, struct stk_visit *v)
{
    for (uint32_t tier = 0; tier <= STK_TIER_ALL; tier++)
        STK_BLOCK(v, t->head[tier], t->n_ids[tier] + 1);
    STK_BLOCK(v, t->id, (size_t)s->n_nodes * STK_TIERS + 1);
    STK_BLOCK(v, t->cell, (size_t)s->n_nodes * STK_TIERS + 1);
    STK_BLOCK(v, t->cells, t->cap_cells + 1);
    STK_BLOCK(v, t->of, (size_t)s->n_groups * STK_TIERS + 1);
    STK_BLOCK(v, t->link, s->n_groups + 1);
    STK_BLOCK(v, t->linked, s->n_groups + 1);
    STK_BLOCK(v, t->group_vector, s->n_groups + 1);
    STK_BLOCK(v, t->room, s->n_nodes + 1);
    STK_BLOCK(v, t->room_in, s->n_nodes + 1);
    STK_BLOCK(v, t->cap, (size_t)t->n_cells * STK_TOPO_KEYS + 1);
    STK_BLOCK(v, t->bucket, (size_t)t->n_cells * STK_TOPO_KEYS + 1);
    STK_BLOCK(v, t->filed, s->n_nodes + 1);
    STK_BLOCK(v, t->dirty, t->n_cells + 1);
    STK_BLOCK(v, t->words, t->n_words + 1);
    STK_BLOCK(v, t->vector, t->n_vector + 1);
}

void stk_topo_memory(struct stk_state *s, struct stk_visit *v)
{
    if (v->copies)
        STK_BLOCK(v, s->topo, 1);
    if (s->topo)
        in_topo(s, s->topo, v);
    if (!v->copies)
        STK_BLOCK(v, s->topo, 1);
}
