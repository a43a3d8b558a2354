/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.h - the machines a simulation runs on, from a few words or a file.
 *
 * A cluster that was parsed is valid: 1 to STK_MAX_NODES nodes, each in a pool and with a GPU type
 * that has a name here. Nodes for which no pool is named are in STK_POOL_DEFAULT.
 *
 * GPUs in MIG mode are of a type of their own, named like the GPU, STK_GPU_TYPE_MIG and the model.
 */
#ifndef STK_SIM_CLUSTER_H
#define STK_SIM_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/node.h"
#include "model/topology.h"
#include "sim/trace.h"
#include "sim/trace_lines.h"

#define STK_POOL_DEFAULT "default"
#define STK_GPU_TYPE_DEFAULT "gpu"
#define STK_GPU_TYPE_NONE "none" /* of a node without GPUs */
#define STK_GPU_TYPE_MIG "/mig-"

/* What nodes lie in: each of these inside the next. */
enum { STK_PLACE_DOMAIN, STK_PLACE_RACK, STK_PLACE_ZONE, STK_PLACE_REGION, STK_PLACES };

struct stk_cluster { /* zeroed: empty */
    struct stk_node_spec *nodes;
    uint32_t n_nodes, cap_nodes;
    struct stk_names pools;
    struct stk_names gpu_types;
    uint32_t type_speed[STK_MAX_GPU_TYPES]; /* of each, in thousandths; 0: not said, 1000 */
    struct stk_names resources;             /* by the number they have in stk_node_spec */
    struct stk_names places[STK_PLACES];    /* a node's number is that of the name + 1 */
    struct stk_layout *layouts;             /* that the nodes name */
    uint32_t n_layouts;
    struct stk_node_spec *within[STK_PLACES]; /* by number: what it lies in */
    uint32_t cap_within[STK_PLACES];
};

/* Fills an empty cluster from what follows --cluster:
 *   NODESxGPUS[:TYPE], several joined by '+', for example 16x8:A100+4x4:V100; or
 *   the path of a YAML file, nodes: [{count, gpus, gpu_type, gpu_mem_gib, mig, cpus, mem_gib,
 * pool, rack, zone, region, domain, racks, per_rack, islands, numa,
 * resources: {NAME: AMOUNT}}]; or the path of a CSV file
 * with a header of name,gpus,gpu_type,cpus,mem_gib,pool (any order, only gpus must be there) or
 * that of the Alibaba traces, sn,cpu_milli,memory_mib,gpu,model. 0, or -Exxx with a sentence; then
 * 'c' is empty. */
int stk_cluster_parse(struct stk_cluster *c, const char *spec, struct stk_err *err);

/* The same over the text of a file, for tests and fuzzers. 'name' is used in messages. */
int stk_cluster_parse_text(struct stk_cluster *c, const char *name, const char *data, size_t len,
                           struct stk_err *err);

/* Gives the nodes to pools as a CSV file of "vc,nodes" says: the first nodes to the first line's
 * pool, and so on, to the last node. Every name in 'groups' (may be NULL) must have a line. The
 * pools there were are forgotten. On failure nothing has changed. */
int stk_cluster_split(struct stk_cluster *c, const struct stk_names *groups,
                      const char *pools_csv_path, struct stk_err *err);

/* Replaces all nodes of each (pool, GPU type) by one aggregate node, for placement that only
 * counts. What is unlimited on one of them is unlimited on the aggregate. */
int stk_cluster_aggregate(struct stk_cluster *c, struct stk_err *err);

void stk_cluster_done(struct stk_cluster *c);

/* For the file formats, cluster_*.c. */
struct stk_node_row {
    uint64_t count;
    struct stk_node_spec node; /* pool and gpu_type are set by stk_cluster_add() */
    const char *pool, *gpu_type;
    size_t pool_len, gpu_type_len;      /* 0: the default name */
    bool mig;                           /* its GPUs are in MIG mode */
    uint32_t speed;                     /* of its GPUs, in thousandths; 0: not said */
    struct stk_field place[STK_PLACES]; /* names; of racks, what their names begin with */
    uint32_t racks, per_rack;           /* the nodes are in so many racks; 0: in one, if any */
    bool rack_domains;                  /* each rack is a link domain */
    struct stk_layout layout;           /* lists of GPUs, if there are any */
    uint32_t islands, numa;             /* or so many equal parts */
};
/* The number of a named resource, which may be new. */
int stk_cluster_resource(struct stk_cluster *c, const char *name, size_t len, uint32_t *ret,
                         struct stk_err *err);
/* Where the k-th node of the row is, and how its GPUs are linked; 'node' was the one before. */
int stk_cluster_place(struct stk_cluster *c, const struct stk_node_row *row, uint64_t k,
                      struct stk_node_spec *node, struct stk_err *err);
void stk_cluster_places_done(struct stk_cluster *c);
int stk_cluster_add(struct stk_cluster *c, const struct stk_node_row *row, struct stk_err *err);
int stk_cluster_parse_yaml(struct stk_cluster *c, const char *name, const char *data, size_t len,
                           struct stk_err *err);
int stk_cluster_parse_csv(struct stk_cluster *c, const char *name, const char *data, size_t len,
                          struct stk_err *err);

#endif
