/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tenants.c - any bytes as a file of tenants. What was read must be a tree that a core could
 * be made of. */
#include <stdint.h>

#include "fuzz/fyaml_leaks.h"
#include "fuzz/require.h"
#include "model/id.h"
#include "sim/tenants.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stk_tenants t = {0};
    struct stk_cluster c = {0};
    struct stk_err err = {""};

    require(stk_cluster_parse(&c, "1x8:a100+1x8:h100", &err) == 0, "a cluster");
    if (stk_tenants_parse(&t, "fuzz", (const char *)data, size, &c, &err) < 0)
        require(err.text[0], "a refusal says why");
    else
        for (uint32_t i = 0; i < t.n; i++)
            require(t.rows[i].name && (t.rows[i].parent == STK_NONE || t.rows[i].parent < i),
                    "a name, and the one above comes before");
    stk_tenants_free(&t);
    stk_cluster_done(&c);
    return 0;
}
