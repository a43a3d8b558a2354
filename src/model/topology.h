/* SPDX-License-Identifier: Apache-2.0 */
/* topology.h - how near two GPUs are.
 *
 * GPUs lie in link islands (NVLink), islands in nodes, nodes in racks, racks in zones, zones in
 * regions. A link domain joins the GPUs of several nodes as an island does inside one; it lies
 * inside a rack. A node says in which rack, zone and so on it is by number (node.h); 0 is "not
 * known", and then nobody else is in it.
 *
 * Which GPUs of a node are linked, and which share a NUMA node, is its layout. Few layouts serve
 * many nodes, so they lie in a table.
 */
#ifndef STK_MODEL_TOPOLOGY_H
#define STK_MODEL_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/linked.h"
#include "model/node.h"

#define STK_MAX_LAYOUTS 256
#define STK_MAX_ISLANDS 32 /* of one node; so many NUMA nodes, too */

/* From near to far. As a wish of a job, STK_AT_GPU is "none". */
enum stk_level {
    STK_AT_GPU,    /* the same GPU */
    STK_AT_LINK,   /* joined by links: one island, or one link domain */
    STK_AT_NODE,   /* the same node */
    STK_AT_RACK,   /* the same rack */
    STK_AT_ZONE,   /* the same zone */
    STK_AT_REGION, /* the same region */
    STK_AT_FAR,    /* farther */
    STK_AT_MAX
};

/* "gpu", "link", "node", "rack", "zone", "region", "far". */
const char *stk_level_name(enum stk_level level);
/* The other way, for those that a job may wish for: link to region; STK_AT_GPU: no such name. */
enum stk_level stk_level_of(const char *name, size_t len);

/* The GPUs of a node. Islands do not overlap, NUMA nodes neither. GPUs that are in no island are
 * not linked to any other. */
struct stk_layout {
    uint32_t gpus;
    uint32_t n_islands, n_numa;
    uint64_t island[STK_MAX_ISLANDS]; /* a bit per GPU */
    uint64_t numa[STK_MAX_ISLANDS];
    /* How well any two are connected: 'gpus' rows of as many (linked.h). Then GPUs are chosen by
     * it, not by island and NUMA node alone. NULL: not known. Borrowed for life. */
    const stk_weight *weight;
};

/* 0, or -EINVAL with what is wrong with it: GPUs that it has not, or that are in two islands. */
int stk_layout_check(const struct stk_layout *l, struct stk_err *err);

bool stk_layout_equal(const struct stk_layout *a, const struct stk_layout *b);

/* 'n' of the free GPUs that are as near to each other as can be: in one island if one has as many,
 * in the one that then has fewest left; else in few islands; among those in one NUMA node,
 * likewise; then the lowest. GPUs in 'last' are taken only when the others do not suffice. All that
 * are free when they are fewer than 'n'. 'l' may be NULL: the lowest. With weights: those with the
 * greatest (stk_linked_choose). */
uint64_t stk_layout_choose(const struct stk_layout *l, uint64_t free, uint64_t last, uint32_t n);

/* 'n' times 'unit' GPUs, each unit inside one island (l: not NULL); 0 when there are not so many.
 */
uint64_t stk_layout_choose_units(const struct stk_layout *l, uint64_t free, uint64_t last,
                                 uint32_t unit, uint32_t n);

/* How many units of so many GPUs, each inside one island, the free GPUs have room for. */
uint32_t stk_layout_units(const struct stk_layout *l, uint64_t free, uint32_t unit);

/* The GPUs linked to this one on its node, itself included. */
uint64_t stk_layout_island(const struct stk_layout *l, uint32_t gpu);

/* One GPU of a cluster. */
struct stk_gpu_at {
    uint32_t node, gpu;
};

/* How near two GPUs are. 'layouts' is the table that the nodes' numbers are of. */
enum stk_level stk_level_between(const struct stk_node_spec *nodes,
                                 const struct stk_layout *layouts, struct stk_gpu_at a,
                                 struct stk_gpu_at b);

#endif
