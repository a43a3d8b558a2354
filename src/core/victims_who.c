/* SPDX-License-Identifier: Apache-2.0 */
/* victims_who.c - candidates: who may go, in which order, and what each costs.
 *
 * Where tenants' jobs lie in order (core/fair.h) they are walked by tenant and level, and those of
 * which nobody may go are not looked at.
 */
#include "core/victims.h"

#include "core/booking.h"
#include "core/fair.h"
#include "core/limit.h"
#include "core/stake.h"
#include "core/tenant.h"

#define CLASS_WEIGHT 1099511627776.0 /* 2^40: a class counts before all lower ones */
#define CLASS_SHIFT 52

/* It may go by its class, unless it is protected. */
static void consider(struct stk_victim_search *x, uint32_t id, int class)
{
    struct stk_state *s = x->s;
    stk_time until;

    if (class < 0 || stk_booking_owns(s, id))
        return;
    until = x->rule->reclaims ? 0 : stk_stake_until(s, &s->jobs[id]);
    if (until > x->ask->now)
        stk_stake_spared(s, x->ask->pool, until);
    else
        x->v->of[x->n++] = (struct stk_victim){.job = id, .class = (uint8_t) class};
}

static void of_pool(struct stk_victim_search *x)
{
    struct stk_state *s = x->s;

    for (struct stk_ocursor c = stk_otree_begin(&s->trees, &s->pools[x->ask->pool].ends);
         c.block != UINT32_MAX; stk_ocursor_next(&s->trees, &c)) {
        const uint32_t id = stk_ocursor_get(&s->trees, c)->id;
        const struct stk_job *v = &s->jobs[id];
        const uint64_t milli = stk_limit_milli(s, &s->shapes[v->shape].demand, v->pool);

        if (x->rule->all && x->rule->all(x->rule->ctx, s, v->tenant, v->level) == STK_VICTIM_NEVER)
            continue;
        consider(x, id, x->rule->class(x->rule->ctx, s, x->j, v, milli));
    }
}

/* Higher levels come first in a tenant's tree (core/fair.h). */
static void of_tenant(struct stk_victim_search *x, uint32_t tenant)
{
    struct stk_state *s = x->s;
    const struct stk_otree *t = &s->tenants[tenant].jobs;
    struct stk_ocursor c = stk_otree_begin(&s->trees, t);
    int64_t level = -1;
    int all = 0;

    while (c.block != UINT32_MAX) {
        const struct stk_oent *e = stk_ocursor_get(&s->trees, c);
        int class = all;

        if (STK_LEVEL_MAX - (e->key >> 32) != level) {
            level = STK_LEVEL_MAX - (e->key >> 32);
            all = class = x->rule->all(x->rule->ctx, s, tenant, (uint32_t)level);
        }
        if (all == STK_VICTIM_NEVER) {
            c = stk_otree_seek(&s->trees, t, (STK_LEVEL_MAX - level + 1) << 32, 0);
            continue;
        }
        if (all == STK_VICTIM_ASK)
            class = x->rule->class(x->rule->ctx, s, x->j, &s->jobs[e->id], (uint64_t)e->aux);
        else if (stk_fair_own_of(s, tenant, e->id))
            class = STK_VICTIM_NEVER;
        if (class >= 0 && (s->n_pools == 1 || s->jobs[e->id].pool == x->ask->pool))
            consider(x, e->id, class);
        stk_ocursor_next(&s->trees, &c);
    }
}

void stk_victims_gather(struct stk_victim_search *x)
{
    const struct stk_state *s = x->s;

    x->n = 0;
    if (!s->fair || s->ranked || !x->rule->all ||
        s->n_leased / 2 > s->pools[x->ask->pool].n_leased) {
        of_pool(x);
        return;
    }
    for (uint32_t i = 0; i < s->n_tenants; i++)
        if (s->tenants[i].jobs.count > 0)
            of_tenant(x, i);
}

void stk_victims_price(const struct stk_victim_search *x, struct stk_victim *v)
{
    const struct stk_job *j = &x->s->jobs[v->job];
    const int64_t gpus = j->gpus ? j->gpus : 1;

    if (v->priced)
        return;
    v->units = stk_stake_units(x->s, j, x->ask->now);
    v->cost = (double)v->units;
    for (uint32_t i = 0; i < v->class; i++)
        v->cost *= CLASS_WEIGHT;
    v->key = (int64_t)v->class << CLASS_SHIFT | (x->s->stake_rule.latest ? 0 : v->units / gpus);
    v->priority = j->priority;
    v->lease = j->lease;
    v->priced = true;
}

bool stk_victims_before(const struct stk_victim *a, const struct stk_victim *b)
{
    if (a->key != b->key)
        return a->key < b->key;
    return a->priority != b->priority ? a->priority < b->priority : a->lease > b->lease;
}

void stk_victims_order(struct stk_victim_search *x)
{
    struct stk_state *s = x->s;
    struct stk_victim *of = x->v->of;

    if (x->ordered)
        return;
    x->ordered = true;
    for (uint32_t i = 0; i < x->n; i++)
        s->sort[i] =
            (struct stk_sort_item){-(int64_t)s->jobs[of[i].job].lease, of[i].job, of[i].class};
    stk_sort(s->sort, x->n, s->sort_tmp); /* the last of what counts comes first */
    for (uint32_t i = 0; i < x->n; i++)
        s->sort[i].key = s->jobs[s->sort[i].id].priority;
    stk_sort(s->sort, x->n, s->sort_tmp);
    for (uint32_t i = 0; i < x->n; i++) {
        struct stk_victim v = {.job = s->sort[i].id, .class = (uint8_t)s->sort[i].data};

        stk_victims_price(x, &v);
        s->sort[i].key = v.key;
    }
    stk_sort(s->sort, x->n, s->sort_tmp);
    for (uint32_t i = 0; i < x->n; i++) {
        of[i] = (struct stk_victim){.job = s->sort[i].id, .class = (uint8_t)s->sort[i].data};
        stk_victims_price(x, &of[i]);
    }
}
