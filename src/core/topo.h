/* SPDX-License-Identifier: Apache-2.0 */
/* topo.h - which rack has room: capacities of link domains, racks, zones and regions.
 *
 * Nodes of a group (core/state.h) are sorted by region, zone, rack and link domain, so that each of
 * these is a row of neighbours there: a *cell*. A place that has nodes of several groups has a cell
 * in each; they are chained. A node whose rack is not known is a rack of its own; a level that no
 * node knows is the next lower one.
 *
 * Of each cell it is known what its nodes could take, by *key*: units of so many GPUs, nodes with
 * so many free, units inside link islands, nodes that nobody uses. A node that changes adds the
 * difference to its cells: O(levels). Cells are also bucketed by each key, so that the tightest
 * rack with room for 8 x 4 GPUs is a look at a few words; those buckets are put in order when
 * somebody looks. Where nodes say nothing about topology none of this exists.
 */
#ifndef STK_CORE_TOPO_H
#define STK_CORE_TOPO_H

#include "core/state.h"

/* Levels of cells: link domain, rack, zone, region; and all of the group. */
enum { STK_TIER_DOMAIN, STK_TIER_RACK, STK_TIER_ZONE, STK_TIER_REGION, STK_TIER_ALL, STK_TIERS };

#define STK_TOPO_UNITS 12 /* sizes that are counted: 1 to 8, 16, 32, 64, and the largest node's */

/* What is counted; of all but the last, for each size. */
enum stk_topo_kind { STK_COUNT_UNITS, STK_COUNT_NODES, STK_COUNT_LINKED, STK_COUNT_IDLE };

#define STK_TOPO_KEYS (3 * STK_TOPO_UNITS + 1)

struct stk_cell {
    uint32_t group, tier;
    uint32_t first, n;     /* positions in the group */
    uint32_t kids, n_kids; /* cells of the next lower tier that is built */
    uint32_t id;           /* of the place; the tier's own numbers */
    uint32_t next;         /* cell of the same place in another group + 1 */
    bool known;            /* false: a node alone, of which the place is not known */
    bool dirty;
    uint64_t stamp;
};

struct stk_cells { /* of one group and tier */
    uint32_t first, n;
    uint32_t shift; /* capacities are bucketed by so many bits less */
    uint32_t n_buckets;
    struct stk_bits_layout cells, buckets;
    size_t sets; /* in words: for each key the buckets' sets, then which are not empty */
};

struct stk_filed { /* a node as it was counted last */
    uint64_t mask;
    uint32_t free;
    bool up, idle;
};

struct stk_topo {
    bool built[STK_TIERS]; /* some node says where it is at this tier; all: always */
    uint32_t n_ids[STK_TIERS];
    uint32_t *id, *cell;       /* STK_TIERS per node: its place, and the cell it is in there */
    uint32_t *head[STK_TIERS]; /* per id: first cell + 1 */
    struct stk_cell *cells;
    uint32_t n_cells, cap_cells;
    struct stk_cells *of; /* STK_TIERS per group */
    int32_t *cap;         /* STK_TOPO_KEYS per cell */
    uint16_t *bucket;     /* likewise: where it lies */
    int32_t *vector;      /* per group and free GPUs: capacities of such a node, by key */
    size_t *group_vector; /* per group: where its vectors are */
    size_t n_vector;
    bool *linked;                  /* per group: some of its GPUs are */
    uint32_t unit[STK_TOPO_UNITS]; /* sizes */
    uint32_t n_units;
    struct stk_filed *filed;
    uint32_t *dirty;
    uint32_t n_dirty;
    uint64_t *words;
    size_t n_words;
    size_t *link;             /* per group: in words, nodes by the most GPUs free in one island */
    uint64_t *room, *room_in; /* scratch, per place of any tier: sums */
    uint64_t stamp;
};

/* Sorts nodes: the place of each at each tier. After stk_index_build() has read the nodes. */
int stk_topo_places(struct stk_state *s, const struct stk_node_spec *specs, struct stk_err *err);
/* Puts a list of nodes, in order of number, into that of their places. */
void stk_topo_sort(const struct stk_state *s, struct stk_sort_item *nodes);
/* The cells, once groups are known. */
int stk_topo_build(struct stk_state *s, const struct stk_node_spec *specs);
void stk_topo_memory(struct stk_state *s, struct stk_visit *v); /* core/blocks.h */

/* The node has changed. */
void stk_topo_count(struct stk_state *s, uint32_t node);
static inline void stk_topo_changed(struct stk_state *s, uint32_t node)
{
    if (s->topo_counts)
        stk_topo_count(s, node);
}

/* The tier at which a level is decided; for link it is that of domains. STK_TIERS: the node. */
uint32_t stk_topo_tier(const struct stk_state *s, enum stk_level level);

static inline uint32_t stk_topo_id(const struct stk_state *s, uint32_t node, uint32_t tier)
{
    return s->topo->id[(size_t)node * STK_TIERS + tier];
}

static inline const struct stk_layout *stk_topo_layout(const struct stk_state *s, uint32_t node)
{
    return s->nodes[node].layout ? &s->layouts[s->nodes[node].layout - 1] : NULL;
}

/* No exclusive job has the node, and it is in the place that is wanted. */
static inline bool stk_topo_may(const struct stk_state *s, uint32_t node, const struct stk_want *w)
{
    if (s->nodes[node].held)
        return false;
    return !w->within ||
           (w->tier == STK_TIERS ? node : stk_topo_id(s, node, w->tier)) + 1 == w->within;
}

/* Units of so many GPUs, each linked inside, that are free on the node. */
uint32_t stk_topo_linked(const struct stk_state *s, uint32_t node, uint32_t unit);

/* Key of the largest size counted that is not more than this. */
uint32_t stk_topo_key(const struct stk_state *s, enum stk_topo_kind kind, uint32_t unit);

static inline uint32_t stk_topo_cap(const struct stk_state *s, uint32_t cell, uint32_t key)
{
    return (uint32_t)s->topo->cap[(size_t)cell * STK_TOPO_KEYS + key];
}

/* Walks cells of a group and tier that have at least 'need' by a key, tightest first (or emptiest
 * first): while ((cell = stk_topo_next(s, &w)) != STK_NONE). */
struct stk_topo_walk {
    uint32_t group, tier, key, need;
    bool emptiest;
    uint32_t bucket, at;
    bool begun;
};
uint32_t stk_topo_next(struct stk_state *s, struct stk_topo_walk *w);

/* The group's nodes with exactly so many GPUs free in the island that has most; a set over their
 * positions. */
const uint64_t *stk_topo_link_set(const struct stk_state *s, uint32_t group, uint32_t free);

bool stk_topo_sound(const struct stk_state *s, struct stk_err *err);

#endif
