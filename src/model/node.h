/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - machines as they are described to the core; what is free on them is core state. */
#ifndef STK_MODEL_NODE_H
#define STK_MODEL_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/demand.h"
#include "model/id.h"

#define STK_MAX_NODES 1000000
#define STK_MAX_POOLS 4096
#define STK_MAX_NODE_GPUS 64 /* GPUs that can be told apart on one node */

/* What a node draws, and how long it takes to switch it on. All 0: not known. */
struct stk_power {
    uint32_t idle_w; /* on, its GPUs idle */
    uint32_t gpu_w;  /* more for each GPU that a job has */
    uint32_t off_w;
    uint32_t boot_s;
};

static inline bool stk_power_known(const struct stk_power *p)
{
    return p->idle_w || p->gpu_w || p->off_w || p->boot_s;
}

struct stk_node_spec {
    stk_pool_id pool;
    uint32_t gpu_type; /* index into the cluster's type table, < STK_MAX_GPU_TYPES */
    uint32_t gpus;
    uint32_t gpu_mem_mib;                 /* of each GPU; 0: unknown */
    uint32_t cpu_milli;                   /* 0: not limited */
    uint32_t mem_mib;                     /* 0: not limited */
    uint32_t resource[STK_MAX_RESOURCES]; /* named things; 0: it has none */
    /* where it is, by number; 0: not known, and then nobody else is there (topology.h) */
    uint32_t domain; /* joins its GPUs to those of other nodes by links; lies in one rack */
    uint32_t rack, zone, region;
    uint32_t layout; /* of its GPUs: index into the table of layouts + 1; 0: none is linked */
    uint8_t mig;     /* its GPUs are in MIG mode: their model (mig.h). All nodes with this type
                        are so, or none. 0: they are not */
    struct stk_power power;
    /* In MIG mode, where instances are not made as they are wanted: for each GPU and each slice of
     * memory (STK_MIG_SLICES) the profile of the instance that starts there, 0: none. Borrowed for
     * the life of the core. NULL: they are made. */
    const uint16_t *instances;
    bool aggregate; /* counts GPUs but does not tell them apart; then 'gpus' may exceed
                       STK_MAX_NODE_GPUS. Used by the placement policy "count". */
};

#endif
