/* SPDX-License-Identifier: Apache-2.0 */
/* test_victims.c - who gives way is enough, no more than needed, and the cheapest there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/place.h"
#include "core/stake.h"
#include "core/txn.h"
#include "core/victims.h"
#include "lib/world.h"

#define MANY 64
#define CLASSES 3

static int lower(void *ctx, const struct stk_state *s, const struct stk_job *j,
                 const struct stk_job *v)
{
    (void)ctx;
    (void)s;
    return v->level < j->level ? v->level : STK_VICTIM_NEVER;
}

/* Most go for anybody: so there is something to find when a policy has nothing left to do. */
static int by_number(void *ctx, const struct stk_state *s, const struct stk_job *j,
                     const struct stk_job *v)
{
    (void)ctx;
    (void)s;
    (void)j;
    return v->number % 7 == 0 ? STK_VICTIM_NEVER : (int)(v->number % CLASSES);
}

static struct stk_state *state_of(const struct fx *f)
{
    return (struct stk_state *)(uintptr_t)f->s; /* all that is tried is rolled back */
}

/* Whether the job fits with those gone that stop, and these. */
static bool fits_without(struct stk_state *s, const struct stk_job *j, const uint32_t *gone,
                         uint32_t n, uint32_t but)
{
    stk_txn_mark mark = stk_txn_begin(s);
    uint32_t pieces;
    bool fits;

    for (uint32_t i = 0; i < s->n_jobs; i++)
        if (s->jobs[i].state == STK_JOB_STOPPING && s->jobs[i].lease && s->jobs[i].pool == j->pool)
            stk_txn_give_job(s, &s->jobs[i]);
    for (uint32_t i = 0; i < n; i++)
        if (i != but)
            stk_txn_give_job(s, &s->jobs[gone[i]]);
    fits = stk_place_try(s, j->shape, NULL, &pieces);
    stk_txn_rollback(s, mark);
    return fits;
}

static uint32_t candidates(const struct stk_state *s, const struct stk_job *j, uint32_t *ret)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_jobs && n < MANY; i++) {
        const struct stk_job *v = &s->jobs[i];

        if ((v->state == STK_JOB_PLACED || v->state == STK_JOB_RUNNING) && v->pool == j->pool &&
            by_number(NULL, s, j, v) >= 0)
            ret[n++] = i;
    }
    return n;
}

static uint32_t search(struct fx *f, uint32_t job, uint32_t *ret)
{
    static const struct stk_victim_rule rule = {.class = by_number};
    struct stk_event out[MANY];
    const struct stk_ask ask = {
        .s = state_of(f), .now = f->now, .pool = fx_of(f, job)->pool, .out = out, .cap = MANY};
    uint64_t calls = f->heap.calls, digest = fx_digest(f);
    uint32_t n = stk_victims_room(&ask, job, &rule);

    fx_must(f->heap.calls == calls, "a search allocates nothing");
    fx_must(fx_digest(f) == digest, "a search changes nothing");
    for (uint32_t i = 0; i < n; i++) {
        fx_must(out[i].type == STK_EV_EVICT && out[i].u.evict.for_job.i == job, "evictions for it");
        ret[i] = out[i].job.i;
    }
    return n;
}

struct seen {
    const struct world *w;
    uint32_t found, none, compared;
};

/* What a set costs: a class counts before all lower ones. */
static double cost_of(const struct stk_state *s, const uint32_t *set, uint32_t n, stk_time now)
{
    static const double weight[CLASSES] = {1, 1099511627776.0, 1099511627776.0 * 1099511627776.0};
    double sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += (double)stk_stake_units(s, &s->jobs[set[i]], now) *
               weight[s->jobs[set[i]].number % CLASSES];
    return sum;
}

/* No set of candidates that is enough costs less. */
static void nothing_cheaper(struct fx *f, uint32_t job, const uint32_t *set, uint32_t n)
{
    struct stk_state *s = state_of(f);
    uint32_t all[MANY], n_all = candidates(s, &s->jobs[job], all);
    double ours = cost_of(s, set, n, f->now);

    for (uint32_t bits = 0; bits < UINT32_C(1) << n_all; bits++) {
        uint32_t some[MANY], k = 0;

        for (uint32_t i = 0; i < n_all; i++)
            if (bits >> i & 1)
                some[k++] = all[i];
        fx_must(cost_of(s, some, k, f->now) >= ours * (1 - 1e-15) ||
                    !fits_without(s, &s->jobs[job], some, k, UINT32_MAX),
                "job %u: %u others cost less", s->jobs[job].number, k);
    }
}

static bool plain(const struct stk_state *s, const struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;

    return j->gpus > 0 && d->tasks == 1 && !d->gpu_milli && !stk_demand_near(d) && j->gpus <= 8;
}

static void check_searches(struct fx *f, void *ctx)
{
    struct seen *seen = ctx;
    struct stk_state *s = state_of(f);
    uint32_t set[MANY], all[MANY];

    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];
        uint32_t n, n_all;
        bool now;

        if (j->state != STK_JOB_WAITING)
            continue;
        n_all = candidates(s, j, all);
        now = fits_without(s, j, NULL, 0, UINT32_MAX);
        n = search(f, i, set);
        fx_must(n == 0 || !now, "job %u needs nobody to go (%s)", j->number, world_name(seen->w));
        fx_must(n > 0 || now || !fits_without(s, j, all, n_all, UINT32_MAX),
                "job %u: all could go, nobody was found (%s)", j->number, world_name(seen->w));
        fx_must(n == 0 || fits_without(s, j, set, n, UINT32_MAX), "job %u does not fit (%s)",
                j->number, world_name(seen->w));
        for (uint32_t k = 0; k < n; k++)
            fx_must(!fits_without(s, j, set, n, k), "job %u: job %u goes in vain (%s)", j->number,
                    s->jobs[set[k]].number, world_name(seen->w));
        seen->found += n > 0;
        seen->none += n == 0;
        if (n == 0 || n_all > 10 || !plain(s, j) || s->pools[j->pool].aggregate ||
            seen->w->cpu_jobs || seen->w->parts || seen->w->mig || seen->w->pairs ||
            seen->w->exclusive || seen->w->resources)
            continue;
        nothing_cheaper(f, i, set, n);
        seen->compared++;
    }
}

static void enough_needed_and_cheap(void **state)
{
    static const char *const place[] = {"pack", "spread", "first_fit", "stoker", "topology"};
    struct seen seen = {0};

    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct world w = {.setup = {.order = "priority",
                                    .backfill = seed % 2 ? "easy" : "skip",
                                    .place = place[seed % 5],
                                    .preempt = "tier"}};
        struct stk_rng r;
        struct fx *f;

        stk_rng_init(&r, seed);
        world_cluster(&w, &r);
        if (seed % 2)
            world_plain(&w);
        if (seed % 4 == 1) {
            world_no_mig(&w);
            world_no_topology(&w);
            w.parts = w.cpu_jobs = w.pairs = false;
        }
        world_delays(&w, &r);
        f = fx_new(&w.setup);
        f->on_turn = check_searches;
        f->ctx = &seen;
        seen.w = &w;
        for (int i = 0; i < 50; i++) {
            world_act(&w, f, &r);
            fx_turn(f);
            fx_run(f, f->now + (stk_time)stk_rng_below(&r, 3000000));
        }
        fx_free(f);
    }
    print_message("%u found, %u none, %u compared\n", seen.found, seen.none, seen.compared);
    assert_true(seen.found > 500 && seen.none > 500 && seen.compared > 50);
}

/* ---- by place ---- */

static uint32_t submit(struct fx *f, uint32_t tasks, uint32_t gpus, enum stk_tier tier)
{
    struct stk_job_spec spec = fx_job(gpus, 1000);

    spec.demand.tasks = tasks;
    spec.demand.cut = tasks == 1;
    spec.tier = tier;
    return fx_submit(f, spec);
}

static void the_cheapest_node_is_cleared(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.preempt = "tier", .order = "priority"});
    uint32_t large = submit(f, 1, 8, STK_TIER_BEST_EFFORT), small[4], job;

    (void)state;
    fx_turn(f);
    for (int i = 0; i < 4; i++)
        small[i] = submit(f, 1, 2, i < 2 ? STK_TIER_STANDARD : STK_TIER_BEST_EFFORT);
    fx_turn(f);
    job = submit(f, 1, 4, STK_TIER_CRITICAL); /* two of two are less than one of eight */
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    assert_int_equal(fx_of(f, large)->preemptions, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(fx_of(f, small[i])->preemptions, i >= 2);
    fx_finish(f);
}

static void a_gang_takes_the_rack_that_costs_least(void **state)
{
    struct stk_node_spec nodes[4];
    struct stk_job_spec spec = fx_job(8, 1000);
    struct fx *f;
    uint32_t low[4], gang;

    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        nodes[i] = (struct stk_node_spec){.gpus = 8, .rack = 1 + i / 2};
    f = fx_new(&(struct fx_setup){.nodes = nodes,
                                  .n_nodes = 4,
                                  .preempt = "tier",
                                  .order = "priority",
                                  .place = "first_fit"});
    low[0] = submit(f, 1, 8, STK_TIER_BEST_EFFORT);
    low[1] = submit(f, 1, 8, STK_TIER_BEST_EFFORT);
    low[2] = submit(f, 1, 8, STK_TIER_BEST_EFFORT);
    low[3] = submit(f, 1, 4, STK_TIER_BEST_EFFORT);
    fx_turn(f);
    spec.demand.tasks = 2;
    spec.demand.cut = false;
    spec.demand.level_required = STK_AT_RACK;
    spec.tier = STK_TIER_STANDARD;
    gang = fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(fx_state(f, gang), STK_JOB_RUNNING);
    for (int i = 0; i < 4; i++)
        assert_int_equal(fx_of(f, low[i])->preemptions, i >= 2);
    fx_finish(f);
}

static void a_gang_goes_whole(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.preempt = "tier", .order = "priority"});
    uint32_t gang = submit(f, 4, 4, STK_TIER_BEST_EFFORT), job;

    (void)state;
    fx_turn(f);
    job = submit(f, 1, 2, STK_TIER_STANDARD);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    assert_int_equal(fx_of(f, gang)->preemptions, 1);
    assert_int_equal(fx_state(f, gang), STK_JOB_WAITING);
    fx_finish(f);
}

/* ---- a rule that counts ---- */

struct at_most {
    uint32_t n, most;
};

static bool add(void *ctx, const struct stk_state *s, const struct stk_job *v)
{
    struct at_most *m = ctx;

    (void)s;
    (void)v;
    if (m->n == m->most)
        return false;
    m->n++;
    return true;
}

static void drop(void *ctx, const struct stk_state *s, const struct stk_job *v)
{
    struct at_most *m = ctx;

    (void)s;
    (void)v;
    assert_true(m->n > 0);
    m->n--;
}

static void a_rule_may_say_how_many(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.preempt = "tier", .order = "priority"});
    struct stk_event out[MANY];
    uint32_t job;

    (void)state;
    for (int i = 0; i < 8; i++)
        (void)submit(f, 1, 2, STK_TIER_BEST_EFFORT);
    fx_turn(f);
    job = submit(f, 1, 6, STK_TIER_STANDARD);
    for (uint32_t most = 0; most < 5; most++) {
        struct at_most m = {.most = most};
        const struct stk_victim_rule rule = {.ctx = &m, .class = lower, .add = add, .drop = drop};
        const struct stk_ask ask = {.s = state_of(f), .now = f->now, .out = out, .cap = MANY};

        assert_int_equal(stk_victims_room(&ask, job, &rule), most < 3 ? 0 : 3);
        assert_int_equal(m.n, 0);
    }
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(enough_needed_and_cheap),
        cmocka_unit_test(the_cheapest_node_is_cleared),
        cmocka_unit_test(a_gang_takes_the_rack_that_costs_least),
        cmocka_unit_test(a_gang_goes_whole),
        cmocka_unit_test(a_rule_may_say_how_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
