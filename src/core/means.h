/* SPDX-License-Identifier: Apache-2.0 */
/* means.h - CPUs and memory that tenants' jobs have, where a tenant has a limit on them
 * (model/tenant.h). Kept beside the GPUs of core/tenant.h, and only if some tenant has such a
 * limit: otherwise the table is not there, and nothing is paid.
 *
 * A lease counts what its job asked for, for its tenant and all above it: O(depth) when it begins
 * and ends. A job that asks for none is within every limit.
 */
#ifndef STK_CORE_MEANS_H
#define STK_CORE_MEANS_H

#include "core/blocks.h"
#include "core/state.h"
#include "model/reason.h"
#include "model/tenant.h"

enum { STK_MEANS_CPU, STK_MEANS_MEM, STK_MEANS }; /* cpu_milli, MiB */

struct stk_means { /* of one tenant */
    uint64_t limit[STK_MEANS], used[STK_MEANS];
    uint64_t seen[STK_MEANS]; /* scratch of sound() */
};

/* What jobs ask for in all. */
struct stk_wants {
    uint64_t of[STK_MEANS];
};

static inline struct stk_wants stk_wants_of(const struct stk_demand *d)
{
    return (struct stk_wants){{(uint64_t)d->cpu_milli * d->tasks, (uint64_t)d->mem_mib * d->tasks}};
}

int stk_means_init(struct stk_state *s, const struct stk_tenant_spec *specs); /* 0, -ENOMEM */
void stk_means_memory(struct stk_state *s, struct stk_visit *v);

/* Whether the tenant has a limit of its own. */
bool stk_means_limited(const struct stk_state *s, uint32_t tenant);
/* Whether it may have so much more; only where there is a table. */
bool stk_means_within(const struct stk_state *s, uint32_t tenant, const struct stk_wants *more);
/* The job got a lease, or gives it back. */
void stk_means_count(struct stk_state *s, const struct stk_job *j, bool add);

/* 0, or -ERANGE with a sentence: it could never be within the tenant's limits. */
int stk_means_ever(const struct stk_state *s, uint32_t tenant, const struct stk_demand *d,
                   struct stk_err *err);
/* The tenant's limit that is in the way of so much more, as a reason; false: none is. */
bool stk_means_why(const struct stk_state *s, uint32_t tenant, const struct stk_wants *more,
                   struct stk_reason *r);

uint64_t stk_means_digest(const struct stk_state *s, uint64_t h);
bool stk_means_sound(const struct stk_state *s, struct stk_err *err);

#endif
