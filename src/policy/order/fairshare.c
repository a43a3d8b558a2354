/* SPDX-License-Identifier: Apache-2.0 */
/* fairshare.c - order: tenants that have had little come first.
 *
 * What a tenant has had is GPU-time, by the speed of the GPUs, that fades with a half-life.
 * Siblings are compared by that over their weights, from the top of the tree down (Slurm calls this
 * a fair tree): an organisation that is behind comes first whole, whoever of its users submits.
 * Levels (tier and class of priority) come before tenants, the priority after them.
 *
 * Leases that run count as if they had gone on for fairshare.ahead_s: else all that becomes free at
 * one time would go to the one tenant that has had least.
 *
 * Cost: core/usage.h. Bad when tenants do not matter; and a tenant that used nothing for long comes
 * before all others until it has caught up, or the half-life has passed.
 */
#include "policy/registry.h"

#include "core/tenant.h"
#include "core/usage.h"
#include "policy/preempt/levels.h"

enum { P_HALF, P_AHEAD, P_PERIOD };
static const struct stk_param params[] = {
    [P_HALF] = {"fairshare.half_life_s", STK_PARAM_SECONDS, "604800", 1, 315360000, NULL,
                "GPU-time that a tenant has had counts half after this"},
    [P_AHEAD] = {"fairshare.ahead_s", STK_PARAM_SECONDS, "3600", 0, 31536000, NULL,
                 "running jobs count as if they had run so much longer"},
    [P_PERIOD] = {"fairshare.period_s", STK_PARAM_SECONDS, "60", 0, 31536000, NULL,
                  "tenants are put in order anew after this, if no job began or ended before"},
    {0},
};

struct fairshare {
    struct stk_usage_rule rule;
    struct stk_levels classes;
};

static int init(void *st, const struct stk_params *p, struct stk_err *err)
{
    struct fairshare *f = st;

    f->rule = (struct stk_usage_rule){.half_life = stk_params_seconds(p, &params[P_HALF]),
                                      .ahead = stk_params_seconds(p, &params[P_AHEAD]),
                                      .period = stk_params_seconds(p, &params[P_PERIOD])};
    return stk_levels_init(&f->classes, p, err);
}

static struct stk_key key(const void *st, const struct stk_job *j, stk_time now)
{
    const struct fairshare *f = st;

    (void)now;
    return (struct stk_key){stk_levels_rank(&f->classes, j) + stk_priority_rank(j), 0};
}

static int64_t share(const void *st, const struct stk_state *s, uint32_t tenant, uint64_t growth)
{
    (void)st;
    return stk_usage_key(stk_usage_of(s, tenant, growth) / stk_tenant_weight(s, tenant));
}

static void rule(const void *st, struct stk_usage_rule *ret)
{
    *ret = ((const struct fairshare *)st)->rule;
}

const struct stk_order_ops stk_order_fairshare = {
    .name = "fairshare",
    .help = "by tier and class, then tenants that have had least GPU-time for their weight, which "
            "fades; then higher priority",
    .params = params,
    .shared = stk_levels_params,
    .state_size = sizeof(struct fairshare),
    .tick = 1,
    .levels = true,
    .init = init,
    .key = key,
    .share = share,
    .rule = rule,
};
