/* SPDX-License-Identifier: Apache-2.0 */
/* tenant.h - who jobs belong to: a tree of organisations, teams and users. Each has, for its jobs
 * and those of all below it, over all GPU types and of each: a limit on what they have at a time, a
 * guarantee of what they can always have, and a weight, by which what is above guarantees is
 * shared. In thousandths of a GPU: parts, MIG instances and whole GPUs count alike. Beside that,
 * limits on CPUs and memory, and how many of its jobs must stay up, whoever needs room. */
#ifndef STK_MODEL_TENANT_H
#define STK_MODEL_TENANT_H

#include "model/demand.h"

#define STK_MAX_TENANTS 65536
#define STK_MAX_TENANT_DEPTH 8
#define STK_NO_LIMIT UINT64_MAX
#define STK_GUARANTEE_SUM UINT64_MAX        /* as much as those below it are guaranteed together */
#define STK_MAX_QUOTA UINT64_C(10000000000) /* 10 million GPUs */
#define STK_WEIGHT 1000                     /* unless said otherwise; in thousandths */
#define STK_MAX_WEIGHT 1000000000
#define STK_MAX_KEEP_UP 1000000 /* jobs */

/* A row of a table. Those above a tenant come before it; jobs belong to those that have none below.
 * Row 0 takes the jobs of tenants that are not in the table. */
struct stk_tenant_spec {
    const char *name;
    const char *was; /* the name that it had before: whose jobs are its own now; NULL: none */
    int line;        /* of the configuration, for messages; 0: it is in none */
    uint32_t parent; /* STK_NONE: it is at the top */
    uint64_t limit;  /* over all GPU types; STK_NO_LIMIT */
    uint64_t type_limit[STK_MAX_GPU_TYPES];     /* of each; STK_NO_LIMIT */
    uint64_t cpu_limit, mem_limit;              /* cpu_milli, MiB; STK_NO_LIMIT */
    uint64_t guarantee;                         /* over all GPU types; STK_GUARANTEE_SUM */
    uint64_t type_guarantee[STK_MAX_GPU_TYPES]; /* of each, part of that; STK_GUARANTEE_SUM */
    uint32_t weight;  /* in thousandths; 0: no share of what is above guarantees */
    uint32_t keep_up; /* of its jobs so many stay up, whoever needs room; 0: none must */
};

/* No limits, no guarantee of its own, the usual weight. */
void stk_tenant_spec_init(struct stk_tenant_spec *t, const char *name, uint32_t parent);

/* Its row: by name, else the one that had this name before; STK_NONE. */
uint32_t stk_tenant_find(const struct stk_tenant_spec *tenants, uint32_t n, const char *name);

#endif
