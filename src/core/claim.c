/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim.h"

#include "core/booking.h"
#include "core/budget.h"
#include "core/evictable.h"
#include "core/limit.h"
#include "core/share.h"
#include "core/stake.h"
#include "core/tenant.h"
#include "core/verbs.h"

const char *stk_shield_name(enum stk_shield s)
{
    static const char *const names[STK_SHIELDS] = {
        [STK_SHIELD_NONE] = "none",         [STK_SHIELD_OWN] = "own",
        [STK_SHIELD_CRITICAL] = "critical", [STK_SHIELD_RESERVATION] = "reservation",
        [STK_SHIELD_GROUP] = "group",       [STK_SHIELD_MIN_RUN] = "min_run",
        [STK_SHIELD_PER_DAY] = "per_day",   [STK_SHIELD_DEADLINE] = "deadline",
    };

    return (unsigned)s < STK_SHIELDS ? names[s] : "?";
}

/* Whether the job fits into this guarantee of the tenant, beside what 'used' says. */
static bool fits(const struct stk_state *s, uint32_t tenant, uint32_t of, uint64_t used,
                 uint64_t milli)
{
    const uint64_t g = *stk_tenant_guarantee(s, tenant, of);

    return g >= milli && used <= g - milli;
}

/* The first tenant from its own up that is within a guarantee with the job. */
static void find_guarantee(struct stk_state *s, const struct stk_job *j, struct stk_claim *ret)
{
    const uint64_t milli = stk_limit_milli(s, &s->shapes[j->shape].demand, j->pool);

    for (uint32_t at = j->tenant + 1; at; at = s->tenants[at - 1].parent) {
        const uint64_t used = s->ranked ? 0 : stk_fair_level(s, at - 1, stk_evictable_below(s, j));
        uint32_t of = STK_ALL_TYPES;

        if (!fits(s, at - 1, of, used, milli))
            for (of = STK_OF_TYPE(0); of < s->n_tenant_cols; of++)
                if (fits(s, at - 1, of, *stk_tenant_used(s, at - 1, of), milli))
                    break;
        if (of == s->n_tenant_cols)
            continue;
        ret->tenant = at - 1;
        ret->gpu_type = of;
        ret->used = *stk_tenant_used(s, at - 1, of);
        ret->amount = *stk_tenant_guarantee(s, at - 1, of);
        return;
    }
}

void stk_core_claim(struct stk_core *c, stk_job_id job, struct stk_claim *ret)
{
    struct stk_state *s = &c->s;
    const struct stk_job *j = &s->jobs[job.i];

    *ret = (struct stk_claim){.title = STK_TITLE_NONE, .tenant = STK_NONE};
    if (s->n_tenants == 0 || j->state != STK_JOB_WAITING)
        return;
    ret->title = stk_fair_title(s, job.i);
    if (ret->title == STK_TITLE_GUARANTEE) {
        find_guarantee(s, j, ret);
    } else if (ret->title == STK_TITLE_DUE) {
        ret->tenant = j->tenant;
        ret->used = *stk_tenant_used(s, j->tenant, STK_ALL_TYPES);
        ret->amount = stk_share_due(s, j->tenant);
    }
}

/* What protects it for a time. */
static enum stk_shield for_a_while(const struct stk_state *s, const struct stk_job *v, stk_time now,
                                   stk_time *until)
{
    const stk_time least = s->terms[v - s->jobs].min_run;

    *until = stk_stake_until(s, v, now);
    if (*until <= now) {
        *until = 0;
        return STK_SHIELD_NONE;
    }
    if (*until == v->expected_end && stk_stake_in_time(s, v, now))
        return STK_SHIELD_DEADLINE;
    return *until == v->started + (least ? least : s->stake_rule.min_run) ? STK_SHIELD_MIN_RUN
                                                                          : STK_SHIELD_PER_DAY;
}

void stk_core_hold(struct stk_core *c, stk_job_id job, stk_job_id other, stk_time now,
                   struct stk_hold *ret)
{
    struct stk_state *s = &c->s;
    const struct stk_job *j = &s->jobs[job.i], *v = &s->jobs[other.i];
    const bool own = s->fair && stk_fair_own(s, v);

    *ret = (struct stk_hold){.borrowed = s->guarantees && s->fair && !own,
                             .stopping = v->state == STK_JOB_STOPPING};
    if (ret->stopping)
        return;
    if (v->tier == STK_TIER_CRITICAL)
        ret->shield = STK_SHIELD_CRITICAL;
    else if (s->fair && (own || (v->tenant == j->tenant && v->level >= stk_evictable_below(s, j))))
        ret->shield = STK_SHIELD_OWN;
    else if (stk_booking_owns(s, other.i))
        ret->shield = STK_SHIELD_RESERVATION;
    else if (!stk_budget_spares(s, other.i, 1))
        ret->shield = STK_SHIELD_GROUP;
    else if (!s->fair || stk_fair_title(s, job.i) != STK_TITLE_GUARANTEE)
        ret->shield = for_a_while(s, v, now, &ret->until);
}
