/* SPDX-License-Identifier: Apache-2.0 */
/* tenant.h - who jobs belong to: a tree of organisations, teams and users, each with limits on what
 * its jobs, and those of all below it, have at a time. In thousandths of a GPU: parts, MIG
 * instances and whole GPUs count alike. */
#ifndef STK_MODEL_TENANT_H
#define STK_MODEL_TENANT_H

#include "model/demand.h"

#define STK_MAX_TENANTS 65536
#define STK_MAX_TENANT_DEPTH 8
#define STK_NO_LIMIT UINT64_MAX

/* A row of a table. Those above a tenant come before it; jobs belong to those that have none below.
 * Row 0 takes the jobs of tenants that are not in the table. */
struct stk_tenant_spec {
    const char *name;
    uint32_t parent;                        /* STK_NONE: it is at the top */
    uint64_t limit;                         /* over all GPU types; STK_NO_LIMIT */
    uint64_t type_limit[STK_MAX_GPU_TYPES]; /* of each; STK_NO_LIMIT */
};

#endif
