/* SPDX-License-Identifier: Apache-2.0 */
/* drf.c - order: dominant resource fairness (Ghodsi et al., NSDI'11), over a tree of tenants.
 *
 * A tenant's dominant share is the largest of its shares of the cluster's GPUs, CPU and memory, of
 * what its jobs have now. Siblings are compared by that over their weights, from the top down;
 * those above count the sum of all below them. CPU and memory count where nodes limit them. Levels
 * come before tenants, the priority after them. What tenants had in the past makes no difference.
 *
 * Cost: core/usage.h. Bad when GPUs are all that is scarce and jobs are long: who came first keeps
 * what it has.
 */
#include "policy/registry.h"

#include "core/tenant.h"
#include "core/usage.h"
#include "policy/preempt/levels.h"

static struct stk_key key(const void *st, const struct stk_job *j, stk_time now)
{
    (void)now;
    return (struct stk_key){stk_levels_rank(st, j) + stk_priority_rank(j), 0};
}

#define ONE_BITS 50 /* all of a resource is 2^50 */

/* One division, so that equal shares are equal. */
static stk_u128 part(uint64_t used, uint64_t all, uint32_t weight)
{
    return all ? ((stk_u128)used * 1000 << ONE_BITS) / ((stk_u128)all * weight) : 0;
}

static int64_t share(const void *st, const struct stk_state *s, uint32_t tenant, uint64_t growth)
{
    const struct stk_usages *x = s->usage;
    const struct stk_usage *row = &x->row[tenant];
    const uint32_t weight = stk_tenant_weight(s, tenant);
    stk_u128 most = part(row->gpu_milli, x->all_gpu, weight);
    stk_u128 cpu = part(row->cpu_milli, x->all_cpu, weight);
    stk_u128 mem = part(row->mem_mib, x->all_mem, weight);

    (void)st;
    (void)growth;
    most = most > cpu ? most : cpu;
    return stk_usage_key(most > mem ? most : mem);
}

static void rule(const void *st, struct stk_usage_rule *ret)
{
    (void)st;
    *ret = (struct stk_usage_rule){.half_life = STK_MAX_DURATION, .period = STK_NEVER_TIME};
}

const struct stk_order_ops stk_order_drf = {
    .name = "drf",
    .help = "by tier and class, then tenants with the smallest dominant share of GPUs, CPU and "
            "memory for their weight; then higher priority",
    .shared = stk_levels_params,
    .state_size = sizeof(struct stk_levels),
    .tick = 1,
    .levels = true,
    .init = stk_levels_init,
    .key = key,
    .share = share,
    .rule = rule,
};
