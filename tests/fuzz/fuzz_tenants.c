/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tenants.c - any bytes as a file of tenants and queues. What was read must be a tree and a
 * table that a core could be made of. */
#include <stdint.h>

#include "fuzz/fyaml_leaks.h"
#include "fuzz/require.h"
#include "model/id.h"
#include "sim/tenants.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct stk_teams *t)
{
    for (uint32_t i = 0; i < t->n_tenants; i++)
        require(t->tenants[i].name &&
                    (t->tenants[i].parent == STK_NONE || t->tenants[i].parent < i),
                "a name, and the one above comes before");
    for (uint32_t i = 0; i < t->n_members; i++)
        require(t->members[i].tenant < t->n_tenants && stk_teams_leaf(t, t->members[i].tenant),
                "users are of tenants that take jobs");
    require(t->n_queues > 0 && t->n_queues <= STK_MAX_QUEUES, "there are queues");
    for (uint32_t i = 0; i < t->n_queues; i++)
        require(t->queues[i].name[0] && t->queues[i].lowest <= t->queues[i].priority &&
                    t->queues[i].priority <= t->queues[i].most &&
                    stk_queue_find(t->queues, t->n_queues, t->queues[i].name) == i,
                "a queue has a name of its own, and its priority is within its range");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stk_tenants t = {0};
    struct stk_cluster c = {0};
    struct stk_err err = {""};

    require(stk_cluster_parse(&c, "1x8:a100+1x8:h100", &err) == 0, "a cluster");
    if (stk_tenants_parse(&t, "fuzz", (const char *)data, size, &c, &err) < 0)
        require(err.text[0], "a refusal says why");
    else
        check(&t.teams);
    stk_tenants_free(&t);
    stk_cluster_done(&c);
    return 0;
}
