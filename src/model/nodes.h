/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.h - a set of nodes that jobs may be confined to. Whoever feeds the core makes it from names
 * and features (sys and the like know those), under a number of its own choosing; demands name it
 * by that number, and jobs that name the same set share a shape. */
#ifndef STK_MODEL_NODES_H
#define STK_MODEL_NODES_H

#include <stdint.h>

#define STK_MAX_NODE_SETS 4096

struct stk_node_range {
    uint32_t first, last; /* both belong to it */
};

struct stk_node_set {
    uint32_t number;                    /* 1 to STK_MAX_NODE_SETS */
    uint32_t n;                         /* 0: no node */
    const struct stk_node_range *range; /* ascending, and apart; borrowed for the call */
};

#endif
