/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_cluster.c - any bytes as a cluster: as words when they look like it, as the text of a file
 * otherwise. What was read must be valid before and after it is folded. */
#include <stdint.h>
#include <string.h>

#include "fuzz/fyaml_leaks.h"
#include "fuzz/require.h"
#include "sim/cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t check(const struct stk_cluster *c)
{
    uint64_t gpus = 0;

    require(c->n_nodes >= 1 && c->n_nodes <= STK_MAX_NODES, "number of nodes");
    require(c->pools.n <= STK_MAX_POOLS && c->gpu_types.n <= STK_MAX_GPU_TYPES, "names");
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        const struct stk_node_spec *n = &c->nodes[i];

        require(n->aggregate || n->gpus <= STK_MAX_NODE_GPUS, "GPUs of a node");
        require(n->pool.i < c->pools.n && n->gpu_type < c->gpu_types.n, "names known");
        gpus += n->gpus;
    }
    return gpus;
}

static void check_parsed(int rc, struct stk_cluster *c, const struct stk_err *err)
{
    uint64_t gpus;

    if (rc < 0) {
        require(err->text[0] && c->n_nodes == 0 && !c->nodes,
                "a refusal says why and leaves nothing");
        return;
    }
    gpus = check(c);
    require(stk_cluster_aggregate(c, NULL) == 0 && check(c) == gpus, "folding keeps the GPUs");
    stk_cluster_done(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stk_cluster c = {0};
    struct stk_err err = {""};
    int rc;

    if (size > 0 && size < 200 && data[0] >= '0' && data[0] <= '9') {
        char spec[256] = "";

        memcpy(spec, data, size);
        rc = stk_cluster_parse(&c, spec, &err);
    } else {
        rc = stk_cluster_parse_text(&c, "fuzz", (const char *)data, size, &err);
    }
    check_parsed(rc, &c, &err);
    return 0;
}
