/* SPDX-License-Identifier: Apache-2.0 */
/* victims_who.c - candidates: who may go, in which order, and what each costs.
 *
 * Where tenants' jobs lie in order (core/fair.h) they are walked by tenant and level, class by
 * class: those of which nobody may go, and those of higher classes than are needed, are not looked
 * at.
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
    until = x->rule->reclaims ? 0 : stk_stake_until(s, &s->jobs[id], x->ask->now);
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
        struct stk_victim_side side = {.class = STK_VICTIM_ASK};

        if (x->rule->side)
            x->rule->side(x->rule->ctx, s, v->tenant, v->level, &side);
        if (side.class != STK_VICTIM_NEVER)
            consider(x, id, x->rule->class(x->rule->ctx, s, x->j, v, milli));
    }
}

/* ---- by tenant and level ---- */

/* Higher levels come first in a tenant's tree (core/fair.h). */
static struct stk_ocursor level_begin(const struct stk_state *s, uint32_t tenant, uint32_t level)
{
    return stk_otree_seek(&s->trees, &s->tenants[tenant].jobs,
                          (int64_t)(STK_LEVEL_MAX - level) << 32, 0);
}

static uint32_t level_of(const struct stk_oent *e)
{
    return STK_LEVEL_MAX - (uint32_t)(e->key >> 32);
}

/* The groups of a tenant, in s->sort: there are no more of them than jobs. False: some have to be
 * asked about one by one. */
static bool add_groups(struct stk_victim_search *x, uint32_t tenant)
{
    struct stk_state *s = x->s;
    struct stk_ocursor c = stk_otree_begin(&s->trees, &s->tenants[tenant].jobs);

    while (c.block != UINT32_MAX) {
        const uint32_t level = level_of(stk_ocursor_get(&s->trees, c));
        struct stk_victim_side side;

        x->rule->side(x->rule->ctx, s, tenant, level, &side);
        if (side.class == STK_VICTIM_ASK)
            return false;
        if (side.class >= 0)
            s->sort[x->groups++] = (struct stk_sort_item){side.class, tenant, level};
        if (level == 0)
            break;
        c = level_begin(s, tenant, level - 1);
    }
    return true;
}

/* Whether candidates can be had class by class, with few looks at those who may not go. */
static bool by_group(struct stk_victim_search *x)
{
    const struct stk_state *s = x->s;

    x->groups = x->at_group = 0;
    if (!s->fair || s->ranked || !x->rule->side ||
        s->n_leased / 2 > s->pools[x->ask->pool].n_leased)
        return false;
    for (uint32_t i = 0; i < s->n_tenants; i++)
        if (s->tenants[i].jobs.count > 0 && !add_groups(x, i)) {
            x->groups = 0;
            return false;
        }
    stk_sort(s->sort, x->groups, s->sort_tmp);
    return true;
}

static void of_group(struct stk_victim_search *x, uint32_t tenant, uint32_t level)
{
    struct stk_state *s = x->s;
    const uint32_t own = stk_fair_stamp(s, tenant);
    struct stk_victim_side side;
    const struct stk_oent *e;

    x->rule->side(x->rule->ctx, s, tenant, level, &side);
    for (struct stk_ocursor c = level_begin(s, tenant, level);
         c.block != UINT32_MAX && level_of(e = stk_ocursor_get(&s->trees, c)) == level;
         stk_ocursor_next(&s->trees, &c)) {
        int class = side.class;

        if ((uint64_t)e->aux > side.most || (!side.own && s->own[e->id].stamp == own))
            continue;
        if (s->n_pools > 1 && s->jobs[e->id].pool != x->ask->pool)
            continue;
        if (side.fresh && (uint32_t)e->key >= s->lease_now)
            class = x->rule->class(x->rule->ctx, s, x->j, &s->jobs[e->id], (uint64_t)e->aux);
        consider(x, e->id, class);
    }
}

bool stk_victims_gather(struct stk_victim_search *x, bool all)
{
    const struct stk_state *s = x->s;
    const uint32_t before = x->n;

    if (x->n == 0 && x->groups == 0 && !by_group(x)) {
        of_pool(x);
        return false;
    }
    while (x->at_group < x->groups) {
        const struct stk_sort_item *g = &s->sort[x->at_group++];

        of_group(x, g->id, g->data);
        if (!all && x->n > before && x->at_group < x->groups && g[1].key != g->key)
            return true;
    }
    return false;
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
