/* SPDX-License-Identifier: Apache-2.0 */
/* victims_exact.c - the cheapest set of all, where few may go: branch and bound.
 *
 * All candidates go, in a transaction. Then, the dearest first, each comes back if the job still
 * fits; if it does not, the candidate must go. Where it may come back both ways are followed, first
 * the one without it; a way ends when those that must go cost as much as the best set known. What
 * is left when all ways have ended is the cheapest set there is, gangs, topology, CPU and all: what
 * fits is what the trial says. A set that a rule or a budget does not allow is none.
 *
 * With more than STK_EXACT_MOST candidates the same is done with those of the best set known, and
 * the first in order beside them: often there is a cheaper set nearby. With very many it is not
 * done.
 *
 * It is exact as long as room only grows when somebody goes, and core/place.h finds room whenever
 * there is some. Cost: at most STK_EXACT_TRIES tries; when they are used up, the best set known is
 * kept. Not where GPUs are all that a job on one node lacks: then the cheapest set is known.
 */
#include "core/tenant.h"
#include "core/victims.h"

#include <math.h>

#include "core/budget.h"
#include "core/stake.h"
#include "core/txn.h"

struct exact {
    struct stk_victim_search *x;
    uint32_t who[STK_EXACT_MOST], n; /* candidates, the dearest first */
    uint32_t chosen[STK_EXACT_MOST], n_chosen;
    uint32_t best[STK_EXACT_MOST], n_best;
    double cost, best_cost; /* of those chosen; best_cost: to be beaten */
    uint32_t tries, most;   /* tries: so far */
};

static bool may_go(const struct exact *e, uint32_t victim)
{
    struct stk_state *s = e->x->s;
    const uint32_t job = e->x->v->of[victim].job;

    if (!stk_budget_take(s, job))
        return false;
    if (e->x->rule->add && !e->x->rule->add(e->x->rule->ctx, s, &s->jobs[job])) {
        stk_budget_give(s, job);
        return false;
    }
    return true;
}

static void come_back(const struct exact *e, uint32_t victim)
{
    struct stk_state *s = e->x->s;
    const uint32_t job = e->x->v->of[victim].job;

    stk_budget_give(s, job);
    if (e->x->rule->drop)
        e->x->rule->drop(e->x->rule->ctx, s, &s->jobs[job]);
}

static bool fits(struct exact *e)
{
    e->tries++;
    return stk_victims_fit(e->x);
}

/* Those from 'at' on are not decided; all of them, and those chosen, are gone, and it fits. */
// NOLINTNEXTLINE(misc-no-recursion): at most STK_EXACT_MOST deep
static void decide(struct exact *e, uint32_t at)
{
    struct stk_state *s = e->x->s;
    const double cost = e->cost;
    stk_txn_mark mark;

    if (e->cost >= e->best_cost || e->tries >= e->most)
        return;
    if (at == e->n) {
        e->best_cost = e->cost;
        e->n_best = e->n_chosen;
        for (uint32_t i = 0; i < e->n_chosen; i++)
            e->best[i] = e->chosen[i];
        return;
    }
    mark = stk_txn_begin(s);
    stk_txn_retake_job(s, &s->jobs[e->x->v->of[e->who[at]].job]);
    stk_tenant_going(s, &s->jobs[e->x->v->of[e->who[at]].job], false);
    if (fits(e))
        decide(e, at + 1);
    stk_tenant_going(s, &s->jobs[e->x->v->of[e->who[at]].job], true);
    stk_txn_rollback(s, mark);
    if (!may_go(e, e->who[at]))
        return;
    e->chosen[e->n_chosen++] = e->who[at];
    e->cost = cost + e->x->v->of[e->who[at]].cost;
    decide(e, at + 1);
    e->cost = cost;
    e->n_chosen--;
    come_back(e, e->who[at]);
}

static void put(struct exact *e, uint32_t victim)
{
    const struct stk_victim *v = &e->x->v->of[victim];

    e->x->s->sort[e->n++] =
        (struct stk_sort_item){-((int64_t)v->class << 52 | v->units), victim, 0};
}

static bool in_best(const struct stk_victim_search *x, uint32_t victim)
{
    for (uint32_t i = 0; i < x->n_best; i++)
        if (x->s->list_b[i] == x->v->of[victim].job)
            return true;
    return false;
}

/* Candidates that could be in a cheaper set, the dearest first: those of the best set known, then
 * the first in order, as many as there is room for. */
static bool list(struct exact *e)
{
    struct stk_victim_search *x = e->x;
    struct stk_state *s = x->s;

    if (x->n_best > STK_EXACT_MOST || x->n > STK_NEARBY_MOST)
        return false;
    e->most = x->n <= STK_EXACT_MOST ? STK_EXACT_TRIES : STK_NEARBY_TRIES;
    stk_victims_order(x);
    for (uint32_t i = 0; i < x->n; i++)
        if (in_best(x, i))
            put(e, i);
    for (uint32_t i = 0; i < x->n && e->n < STK_EXACT_MOST; i++)
        if (x->n_best == 0 || (x->v->of[i].cost < x->best_cost && !in_best(x, i)))
            put(e, i);
    stk_sort(s->sort, e->n, s->sort_tmp);
    for (uint32_t i = 0; i < e->n; i++)
        e->who[i] = s->sort[i].id;
    return e->n > 0;
}

/* A job on one node that whole GPUs are enough for, and everybody may go: the cheapest set there is
 * was found by counting (core/victims_near.c). */
static bool is_known(const struct stk_victim_search *x)
{
    const struct stk_demand *d = x->d;
    const struct stk_pool *p = &x->s->pools[x->ask->pool];

    return x->n_best > 0 && d->tasks == 1 && !d->cut && d->gpus > 0 && !d->gpu_milli && !d->mig &&
           !d->exclusive && !stk_demand_near(d) && !d->n_resources && !x->rule->add &&
           !(p->cpu_limited && d->cpu_milli) && !(p->mem_limited && d->mem_mib) &&
           x->s->n_budgets == 0 && !x->s->keep_up;
}

void stk_victims_exact(struct stk_victim_search *x)
{
    struct exact e = {.x = x, .best_cost = x->n_best > 0 ? x->best_cost : HUGE_VAL};

    if (is_known(x) || !list(&e))
        return;
    for (uint32_t i = 0; i < e.n; i++) {
        stk_txn_give_job(x->s, &x->s->jobs[x->v->of[e.who[i]].job]);
        stk_tenant_going(x->s, &x->s->jobs[x->v->of[e.who[i]].job], true);
    }
    if (fits(&e))
        decide(&e, 0);
    for (uint32_t i = 0; i < e.n; i++)
        stk_tenant_going(x->s, &x->s->jobs[x->v->of[e.who[i]].job], false);
    stk_victims_reset(x);
    for (uint32_t i = 0; i < e.n_best; i++)
        (void)stk_victims_add(x, e.best[i]);
    if (e.n_best > 0 && stk_victims_fit(x))
        stk_victims_keep(x);
    else
        stk_victims_reset(x);
}
