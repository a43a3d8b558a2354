/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tenant.h"

#include <string.h>

#include "model/id.h"

void stk_tenant_spec_init(struct stk_tenant_spec *t, const char *name, uint32_t parent)
{
    *t = (struct stk_tenant_spec){.name = name,
                                  .parent = parent,
                                  .limit = STK_NO_LIMIT,
                                  .cpu_limit = STK_NO_LIMIT,
                                  .mem_limit = STK_NO_LIMIT,
                                  .guarantee = STK_GUARANTEE_SUM,
                                  .weight = STK_WEIGHT};
    for (uint32_t k = 0; k < STK_MAX_GPU_TYPES; k++) {
        t->type_limit[k] = STK_NO_LIMIT;
        t->type_guarantee[k] = STK_GUARANTEE_SUM;
    }
}

uint32_t stk_tenant_find(const struct stk_tenant_spec *tenants, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(tenants[i].name, name) == 0)
            return i;
    for (uint32_t i = 0; i < n; i++)
        if (tenants[i].was && strcmp(tenants[i].was, name) == 0)
            return i;
    return STK_NONE;
}
