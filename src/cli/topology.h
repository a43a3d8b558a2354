/* SPDX-License-Identifier: Apache-2.0 */
/* topology.h - draws how a machine is built. */
#ifndef STK_CLI_TOPOLOGY_H
#define STK_CLI_TOPOLOGY_H

#include <jansson.h>

#include "cli/term.h"

/* A member of "nodes" in the answer of /v1/topology: a tree, then how any two GPUs are connected.
 */
void stk_topology_draw(const json_t *node, const struct stk_term *t);

#endif
