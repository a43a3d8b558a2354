/* SPDX-License-Identifier: Apache-2.0 */
#include "core/limit.h"

#include "core/account.h"
#include "core/shape.h"
#include "core/tenant.h"

struct stk_under stk_limit_join(struct stk_state *s, uint32_t job)
{
    struct stk_under u = {.tenant = stk_tenant_limited(s, s->jobs[job].tenant)};

    u.firm = stk_tenant_firm(s, (enum stk_tier)s->jobs[job].tier);
    u.plain = s->preempt->room && s->jobs[job].plain;
    stk_account_join(s, &s->terms[job], s->jobs[job].tenant, u.account);
    return u;
}

uint64_t stk_limit_milli(const struct stk_state *s, const struct stk_demand *d, uint32_t pool)
{
    uint64_t each = s->pools[pool].aggregate ? 1000 : stk_demand_asked_milli(d);

    return each * d->gpus * d->tasks;
}

int stk_limit_policies(const struct stk_state *s, const char *whose, struct stk_err *err)
{
    if (s->place->cap_w && s->place->cap_w(s->place_st) > 0)
        return stk_err_set(err, -EINVAL, "limits of %s do not go with a power cap (energy.cap_w)",
                           whose);
    if (!s->preempt->pass && !s->backfill->reserve_all)
        return 0;
    return stk_err_set(err, -EINVAL,
                       "limits of %s do not go with preempt %s and backfill %s; take preempt "
                       "none, tier or reclaim, and backfill none, skip or easy",
                       whose, s->preempt->name, s->backfill->name);
}

const char *stk_limit_tenant_name(const struct stk_state *s, uint32_t tenant)
{
    return tenant < s->n_tenants ? s->tenants[tenant].name : NULL;
}

uint64_t stk_limit_open(const struct stk_state *s, uint32_t shape)
{
    const struct stk_shape *sh = &s->shapes[shape];

    if (sh->account[STK_OF_QUEUE] && stk_account_in_the_way(s, shape) != STK_NONE)
        return 0;
    return sh->tenant ? stk_tenant_open(s, shape) : sh->demand.gpu_types;
}

bool stk_limit_beside(struct stk_state *s, uint32_t shape, uint32_t job)
{
    uint32_t account = stk_account_beside(s, shape, job);

    if (account != STK_NONE) {
        s->accounts[account].closed = true;
        return false;
    }
    if (!s->shapes[shape].tenant || stk_tenant_beside(s, shape, job))
        return true;
    stk_tenant_note(s, shape, true);
    return false;
}

bool stk_limit_park(struct stk_state *s, uint32_t shape)
{
    const struct stk_shape *sh = &s->shapes[shape];
    uint32_t at = sh->account[STK_OF_QUEUE] ? stk_account_in_the_way(s, shape) : STK_NONE;

    if (at != STK_NONE) {
        stk_shape_park_at(s, shape, STK_PARKED_QUEUE, at);
        return true;
    }
    if (!sh->tenant || stk_tenant_open(s, shape))
        return false;
    at = stk_tenant_in_the_way(s, shape);
    if (at == STK_NONE)
        return false; /* no node has what it needs any more */
    stk_shape_park_at(s, shape, STK_PARKED_LIMIT, at);
    return true;
}

/* The first of a strict queue may be over a limit now: it stands in nobody's way any more. A
 * promise is kept until its time: those who start meanwhile end before it, or leave room for it. */
static void stand_aside(struct stk_state *s, uint32_t pool)
{
    struct stk_pool *p = &s->pools[pool];
    uint32_t shape = p->blocked && p->ready.n > 0 ? p->ready.item[0].id : STK_NONE;

    if (shape == STK_NONE || stk_limit_open(s, shape))
        return;
    p->blocked = false;
    stk_shape_mark_dirty(s, pool);
}

void stk_limit_took(struct stk_state *s, const struct stk_job *j)
{
    stk_tenant_took(s, j);
    stk_account_took(s, j);
    for (uint32_t i = 0; stk_shape_limited(&s->shapes[j->shape]) && i < s->n_pools; i++)
        stand_aside(s, i);
}

void stk_limit_gave(struct stk_state *s, const struct stk_job *j)
{
    stk_tenant_gave(s, j);
    stk_account_gave(s, j);
}

void stk_limit_wake_pools(struct stk_state *s)
{
    for (uint32_t i = 0; i < s->n_pools; i++) {
        if (s->pools[i].n_waiting == 0)
            continue;
        s->pools[i].blocked = false;
        while (s->pools[i].resv_parked)
            stk_shape_ready(s, s->pools[i].resv_parked - 1);
        stk_shape_wake_all(s, &s->pools[i]);
        stk_shape_mark_dirty(s, i);
    }
}

bool stk_limit_why(struct stk_state *s, const struct stk_job *j, struct stk_reason *r)
{
    return stk_account_why(s, j, r) || (s->shapes[j->shape].tenant && stk_tenant_why(s, j, r));
}
