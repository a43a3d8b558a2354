/* SPDX-License-Identifier: Apache-2.0 */
/* prop_victims.c - who gives way for a gang, against all sets there are: small worlds with at most
 * MANY running jobs on a few nodes in racks, single ones and gangs, some needed by their groups or
 * tenants; a gang with wishes of topology waits. The set that is chosen lets it start, without any
 * one of them it would not, none is found only where there is none, and none is cheaper.
 *
 * STOKER_RUNS (default 200) times 10 worlds from STOKER_SEED (default 1) on; one that fails prints
 * its seed, and STOKER_RUNS=1 STOKER_SEED=that repeats it alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/budget.h"
#include "core/place.h"
#include "core/stake.h"
#include "core/tenant.h"
#include "core/txn.h"
#include "core/victims.h"
#include "lib/prop.h"
#include "lib/world.h"

#define MANY 10
#define WORLDS 10

static struct count {
    uint64_t found, none, near;
    uint64_t cheapest, within_10, within_50, more;
    double worst, sum;
} count;

static struct stk_state *state_of(const struct fx *f)
{
    return (struct stk_state *)(uintptr_t)f->s; /* all that is tried is rolled back */
}

static uint32_t below(struct stk_rng *r, uint32_t n)
{
    return (uint32_t)stk_rng_below(r, n);
}

/* ---- worlds ---- */

static struct fx *make(struct stk_rng *r, struct stk_node_spec *nodes,
                       struct stk_tenant_spec *tenants)
{
    static const char *const place[] = {"pack", "spread", "first_fit", "stoker", "topology"};
    const uint32_t n = 2 + below(r, 5), gpus = 2 + below(r, 7);
    const uint32_t how = below(r, 5), cpus = below(r, 3) == 0;

    for (uint32_t i = 0; i < n; i++)
        nodes[i] = (struct stk_node_spec){.gpus = gpus,
                                          .rack = 1 + i / 2,
                                          .zone = 1 + i / 4,
                                          .cpu_milli = cpus ? 1000 * (gpus + 2) : 0};
    stk_tenant_spec_init(&tenants[0], "default", STK_NONE);
    stk_tenant_spec_init(&tenants[1], "web", STK_NONE);
    tenants[1].keep_up = below(r, 3);
    return fx_new(&(struct fx_setup){.nodes = nodes,
                                     .n_nodes = n,
                                     .order = "priority",
                                     .backfill = "skip",
                                     .preempt = "tier",
                                     .place = place[how],
                                     .tenants = tenants,
                                     .n_tenants = 2,
                                     .params = "restart_s=60"});
}

static struct stk_job_spec some_job(struct stk_rng *r, uint32_t gpus)
{
    struct stk_job_spec spec = fx_job(1 + below(r, gpus), 100000);

    spec.tier = STK_TIER_BEST_EFFORT;
    spec.priority = below(r, 2) ? 0 : 500;
    spec.tenant = below(r, 4) == 0;
    spec.demand.cut = false;
    spec.demand.cpu_milli = 1000 * below(r, 4);
    if (below(r, 3) == 0) {
        spec.demand.tasks = 2 + below(r, 2);
        spec.demand.gpus = 1 + below(r, (gpus + 1) / 2);
    }
    if (below(r, 4) == 0) {
        spec.terms.group = 1;
        spec.terms.group_min = below(r, 3);
    }
    return spec;
}

/* Jobs start, some report checkpoints, and time goes by: what each would lose differs. */
static void fill(struct fx *f, struct stk_rng *r)
{
    const uint32_t n = 3 + below(r, MANY - 2);

    for (uint32_t i = 0; i < n; i++) {
        const struct stk_job_spec spec = some_job(r, f->s->nodes[0].gpus);

        (void)fx_try_submit(f, &spec);
        fx_turn(f);
        f->now += (stk_time)below(r, 300) * STK_SECOND;
        for (uint32_t k = 0; k < f->s->n_jobs; k++)
            if (fx_state(f, k) == STK_JOB_RUNNING && below(r, 5) == 0)
                (void)fx_job_event(f, STK_EV_CHECKPOINT, k);
    }
    for (uint32_t k = 0; k < f->s->n_jobs; k++)
        if (fx_state(f, k) == STK_JOB_WAITING)
            (void)fx_cancel(f, k);
    f->now += (stk_time)below(r, 1000) * STK_SECOND;
}

/* The one that waits. */
static struct stk_job_spec the_gang(struct stk_rng *r, const struct fx *f)
{
    static const enum stk_level levels[] = {STK_AT_NODE, STK_AT_RACK, STK_AT_RACK, STK_AT_ZONE};
    const uint32_t gpus = f->s->nodes[0].gpus;
    struct stk_job_spec spec = fx_job(1 + below(r, gpus), 1000);

    spec.demand.cut = below(r, 5) == 0;
    if (spec.demand.cut) {
        spec.demand.gpus = gpus + 1 + below(r, gpus);
    } else {
        spec.demand.tasks = below(r, 4) ? 2 + below(r, 4) : 1;
        spec.demand.gpus = 1 + below(r, gpus);
    }
    spec.demand.cpu_milli = 1000 * below(r, 4);
    if (below(r, 2) == 0)
        spec.demand.level_required = (uint8_t)levels[below(r, 4)];
    if (!spec.demand.cut && spec.demand.tasks > 1 && below(r, 4) == 0)
        spec.demand.per_node = 1;
    spec.demand.exclusive = below(r, 8) == 0;
    spec.tier = STK_TIER_STANDARD;
    spec.priority = 400;
    return spec;
}

/* ---- all sets ---- */

static int by_level(void *ctx, const struct stk_state *s, const struct stk_job *j,
                    const struct stk_job *v, uint64_t milli)
{
    (void)ctx;
    (void)s;
    (void)milli;
    return v->level < j->level ? v->level : STK_VICTIM_NEVER;
}

static double cost_of(const struct stk_state *s, uint32_t job, stk_time now)
{
    double w = 1;

    for (uint32_t i = 0; i < s->jobs[job].level; i++)
        w *= 1099511627776.0;
    return w * (double)stk_stake_units(s, &s->jobs[job], now);
}

static uint32_t candidates(const struct fx *f, uint32_t job, uint32_t ret[MANY])
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < f->s->n_jobs && n < MANY; i++)
        if (fx_state(f, i) == STK_JOB_RUNNING && i != job)
            ret[n++] = i;
    return n;
}

/* With these gone the job fits; false also where they may not go together. */
static bool enough(struct stk_state *s, uint32_t job, const uint32_t *all, uint32_t n,
                   uint32_t bits, bool heed)
{
    const stk_txn_mark mark = stk_txn_begin(s);
    uint32_t taken = 0, pieces;
    bool ok = true;

    for (uint32_t i = 0; i < n; i++)
        if (bits >> i & 1) {
            const bool may = stk_budget_take(s, all[i]);

            taken |= (uint32_t)may << i;
            ok &= may || !heed;
            stk_txn_give_job(s, &s->jobs[all[i]]);
        }
    ok = ok && stk_place_try(s, s->jobs[job].shape, NULL, &pieces);
    for (uint32_t i = 0; i < n; i++)
        if (taken >> i & 1)
            stk_budget_give(s, all[i]);
    stk_txn_rollback(s, mark);
    return ok;
}

/* The least that a set costs with which it starts; < 0: there is none. */
static double cheapest(struct fx *f, uint32_t job, const uint32_t *all, uint32_t n)
{
    struct stk_state *s = state_of(f);
    double best = -1;

    for (uint32_t bits = 1; bits < UINT32_C(1) << n; bits++) {
        double cost = 0;

        for (uint32_t i = 0; i < n; i++)
            cost += bits >> i & 1 ? cost_of(s, all[i], f->now) : 0;
        if ((best < 0 || cost < best) && enough(s, job, all, n, bits, true))
            best = cost;
    }
    return best;
}

/* ---- the property ---- */

static void note(double ours, double least)
{
    const double ratio = ours / least;

    count.cheapest += ratio <= 1 + 1e-12;
    count.within_10 += ratio > 1 + 1e-12 && ratio <= 1.1;
    count.within_50 += ratio > 1.1 && ratio <= 1.5;
    count.more += ratio > 1.5;
    count.worst = ratio > count.worst ? ratio : count.worst;
    count.sum += ratio;
}

static void compare(struct fx *f, uint32_t job)
{
    static const struct stk_victim_rule rule = {.class = by_level};
    struct stk_state *s = state_of(f);
    struct stk_event out[MANY];
    const struct stk_ask ask = {.s = s, .now = f->now, .out = out, .cap = MANY};
    uint32_t all[MANY], bits = 0, n = candidates(f, job, all);
    uint32_t n_out = stk_victims_room(&ask, job, &rule);
    double least, ours = 0;

    for (uint32_t i = 0; i < n_out; i++) {
        ours += cost_of(s, out[i].job.i, f->now);
        for (uint32_t k = 0; k < n; k++)
            bits |= (uint32_t)(all[k] == out[i].job.i) << k;
    }
    fx_must(n_out == 0 || enough(s, job, all, n, bits, true), "it starts, and nobody needed goes");
    for (uint32_t k = 0; k < n; k++)
        fx_must(!(bits >> k & 1) || !enough(s, job, all, n, bits & ~(UINT32_C(1) << k), false),
                "job %u goes in vain", s->jobs[all[k]].number);
    least = cheapest(f, job, all, n);
    fx_must((least < 0) == (n_out == 0), least < 0 ? "there is a set" : "there is none");
    count.none += n_out == 0;
    count.found += n_out > 0;
    count.near += n_out > 0 && stk_demand_near(&s->shapes[s->jobs[job].shape].demand);
    if (n_out > 0)
        note(ours, least);
    fx_must(n_out == 0 || ours <= least * (1 + 1e-12), "%u others cost %g, not %g", n_out, least,
            ours);
}

static void victims_run(uint64_t seed)
{
    struct stk_node_spec nodes[8];
    struct stk_tenant_spec tenants[2];
    struct stk_job_spec gang;
    struct stk_rng r;
    struct fx *f;
    uint32_t job, pieces;

    stk_rng_init(&r, seed);
    f = make(&r, nodes, tenants);
    fill(f, &r);
    gang = the_gang(&r, f);
    job = stk_core_next_job(f->core).i;
    if (fx_try_submit(f, &gang) == 0 &&
        !stk_place_try(state_of(f), fx_of(f, job)->shape, NULL, &pieces))
        compare(f, job);
    fx_free(f);
}

/* ---- running them ---- */

int main(void)
{
    uint64_t runs = prop_number("STOKER_RUNS", 200), seed = prop_number("STOKER_SEED", 1);

    prop_watch("prop_victims");
    for (uint64_t world = seed * WORLDS; world < (seed + runs) * WORLDS; world++) {
        prop_seed = world / WORLDS;
        victims_run(world);
    }
    (void)printf(
        "%llu sets (%llu with wishes of topology), %llu times none; cheapest: %llu, within "
        "10%%: %llu, 50%%: %llu, more: %llu; mean %.4f, worst %.2f\n",
        (unsigned long long)count.found, (unsigned long long)count.near,
        (unsigned long long)count.none, (unsigned long long)count.cheapest,
        (unsigned long long)count.within_10, (unsigned long long)count.within_50,
        (unsigned long long)count.more, count.sum / (double)(count.found + !count.found),
        count.worst);
    fx_must(runs < 100 || (count.found > 3 * runs && count.none > runs && count.near > runs),
            "all kinds are seen");
    return 0;
}
