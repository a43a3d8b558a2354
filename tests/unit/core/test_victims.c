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
#include "core/tenant.h"
#include "core/txn.h"
#include "core/victims.h"
#include "lib/world.h"

#define MANY 64
#define CLASSES 3

static int lower(void *ctx, const struct stk_state *s, const struct stk_job *j,
                 const struct stk_job *v, uint64_t milli)
{
    (void)milli;
    (void)ctx;
    (void)s;
    return v->level < j->level ? v->level : STK_VICTIM_NEVER;
}

/* Most go for anybody: so there is something to find when a policy has nothing left to do. */
static int by_number(void *ctx, const struct stk_state *s, const struct stk_job *j,
                     const struct stk_job *v, uint64_t milli)
{
    (void)milli;
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
            by_number(NULL, s, j, v, 0) >= 0)
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
        w.booked = false; /* who goes from reserved GPUs makes no room */
        for (uint32_t i = 0; i < w.setup.n_tenants; i++)
            w.tenants[i].keep_up = 0; /* all may go */
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

/* ---- what is at stake ---- */

static struct fx *one_node(const char *params)
{
    static const struct stk_node_spec node = {.gpus = 8};

    return fx_new(&(struct fx_setup){
        .nodes = &node, .n_nodes = 1, .order = "priority", .preempt = "tier", .params = params});
}

static void who_has_just_saved_goes_first(void **state)
{
    struct fx *f = one_node("preempt.best_effort=kill restart_s=30");
    uint32_t a = submit(f, 1, 4, STK_TIER_BEST_EFFORT), b, job;

    (void)state;
    fx_turn(f);
    b = submit(f, 1, 4, STK_TIER_BEST_EFFORT); /* the later one: it would go */
    fx_turn(f);
    fx_run(f, 300 * STK_SECOND);
    f->now = 300 * STK_SECOND;
    assert_int_equal(stk_stake_units(f->s, fx_of(f, a), f->now), 4000 * 930);
    assert_int_equal(fx_job_event(f, STK_EV_CHECKPOINT, a), 0);
    f->now = 310 * STK_SECOND;
    assert_int_equal(stk_stake_units(f->s, fx_of(f, a), f->now), 4000 * 40);
    job = submit(f, 1, 4, STK_TIER_STANDARD);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    assert_int_equal(fx_of(f, a)->preemptions, 1);
    assert_int_equal(fx_of(f, b)->preemptions, 0);
    fx_finish(f);
}

static void silence_is_neither_safe_nor_the_first_to_go(void **state)
{
    struct fx *f = one_node("preempt.best_effort=kill");
    uint32_t silent = submit(f, 1, 4, STK_TIER_BEST_EFFORT);
    uint32_t says = submit(f, 1, 4, STK_TIER_BEST_EFFORT);

    (void)state;
    fx_turn(f);
    f->now = 10 * STK_SECOND;
    assert_int_equal(fx_job_event(f, STK_EV_CHECKPOINT, says), 0);
    f->now = 500 * STK_SECOND;
    assert_true(stk_stake_units(f->s, fx_of(f, says), f->now) <
                stk_stake_units(f->s, fx_of(f, silent), f->now));
    f->now = 950 * STK_SECOND;
    assert_true(stk_stake_units(f->s, fx_of(f, says), f->now) >
                stk_stake_units(f->s, fx_of(f, silent), f->now));
    fx_finish(f);
}

static void the_way_it_leaves_says_what_it_loses(void **state)
{
    struct fx *f = one_node("preempt.standard=signal restart_s=20 suspend_s=5");
    struct stk_state *s = state_of(f);
    uint32_t sleeps = submit(f, 1, 1, STK_TIER_BEST_EFFORT);
    uint32_t warned = submit(f, 1, 1, STK_TIER_STANDARD);

    (void)state;
    fx_turn(f);
    assert_int_equal(stk_stake_leave(s, fx_of(f, sleeps)), STK_LEAVE_SUSPEND);
    assert_int_equal(stk_stake_leave(s, fx_of(f, warned)), STK_LEAVE_SIGNAL);
    assert_int_equal(stk_stake_units(s, fx_of(f, sleeps), f->now), 920 * 1000);
    s->stake_rule.sleeps = true; /* the engine can */
    assert_int_equal(stk_stake_units(s, fx_of(f, sleeps), f->now), 5 * 1000);
    s->terms[sleeps].no_sleep = true;
    assert_int_equal(stk_stake_leave(s, fx_of(f, sleeps)), STK_LEAVE_SIGNAL);
    assert_int_equal(stk_stake_units(s, fx_of(f, warned), f->now), 920 * 1000);
    s->terms[warned].signals = true; /* it saves */
    assert_int_equal(stk_stake_units(s, fx_of(f, warned), f->now), 20 * 1000);
    fx_free(f);
}

/* ---- who is protected ---- */

static void a_start_protects_for_a_while(void **state)
{
    for (int own = 0; own < 2; own++) {
        struct fx *f = one_node(own ? NULL : "preempt.min_run_s=60");
        struct stk_job_spec spec = fx_job(8, 1000);
        uint32_t low, job;

        (void)state;
        spec.tier = STK_TIER_BEST_EFFORT;
        spec.terms.min_run = own ? 60 * STK_SECOND : 0;
        low = fx_submit(f, spec);
        fx_turn(f);
        f->now = 10 * STK_SECOND;
        job = submit(f, 1, 4, STK_TIER_STANDARD);
        fx_turn(f);
        assert_int_equal(fx_state(f, job), STK_JOB_WAITING);
        assert_int_equal(fx_next(f), 60 * STK_SECOND); /* nothing else happens then */
        fx_run(f, 60 * STK_SECOND);
        assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
        assert_int_equal(fx_of(f, low)->preemptions, 1);
        fx_finish(f);
    }
}

static void nobody_is_protected_from_a_guarantee(void **state)
{
    struct fx *f = one_node("preempt.min_run_s=60");
    struct stk_victim_rule rule = {.class = lower};
    struct stk_event out[MANY];
    const struct stk_ask ask = {.s = state_of(f), .now = 0, .out = out, .cap = MANY};
    uint32_t job;

    (void)state;
    (void)submit(f, 1, 8, STK_TIER_BEST_EFFORT);
    fx_turn(f);
    job = submit(f, 1, 4, STK_TIER_STANDARD);
    assert_int_equal(stk_victims_room(&ask, job, &rule), 0);
    rule.reclaims = true;
    assert_int_equal(stk_victims_room(&ask, job, &rule), 1);
    fx_finish(f);
}

static void so_often_a_day_and_no_more(void **state)
{
    struct fx *f = one_node("preempt.per_day=2");
    struct stk_job_spec low = fx_job(8, 500000), high = fx_job(8, 10);
    uint32_t job, last;

    (void)state;
    low.tier = STK_TIER_BEST_EFFORT;
    job = fx_submit(f, low);
    fx_turn(f);
    for (int i = 0; i < 2; i++) {
        fx_run(f, (i + 1) * 1000 * STK_SECOND);
        f->now = (i + 1) * 1000 * STK_SECOND;
        (void)fx_submit(f, high);
        fx_turn(f);
        assert_int_equal(fx_of(f, job)->preemptions, i + 1);
    }
    fx_run(f, 3000 * STK_SECOND);
    f->now = 3000 * STK_SECOND;
    last = fx_submit(f, high);
    fx_turn(f);
    assert_int_equal(fx_state(f, last), STK_JOB_WAITING);
    assert_int_equal(fx_next(f), 1000 * STK_SECOND + STK_DAY);
    fx_run(f, 1000 * STK_SECOND + STK_DAY);
    assert_int_equal(fx_state(f, last), STK_JOB_RUNNING);
    assert_int_equal(fx_of(f, job)->preemptions, 3);
    assert_int_equal(f->s->stakes[job].times, 1); /* another day */
    fx_finish(f);
}

/* ---- budgets ---- */

static void a_group_keeps_so_many_up(void **state)
{
    struct fx *f = one_node(NULL);
    struct stk_job_spec spec = fx_job(2, 1000);
    uint32_t low[4], job, up = 0;

    (void)state;
    spec.tier = STK_TIER_BEST_EFFORT;
    spec.terms.group = 7;
    for (uint32_t i = 0; i < 4; i++) {
        spec.terms.group_min = i == 2 ? 3 : 0; /* one says it for all */
        low[i] = fx_submit(f, spec);
    }
    fx_turn(f);
    job = submit(f, 1, 4, STK_TIER_CRITICAL);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_WAITING); /* two would have to go */
    for (int i = 0; i < 4; i++)
        assert_int_equal(fx_of(f, low[i])->preemptions, 0);
    assert_int_equal(fx_cancel(f, job), 0);
    job = submit(f, 1, 2, STK_TIER_CRITICAL);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    job = submit(f, 1, 2, STK_TIER_CRITICAL);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_WAITING);
    for (int i = 0; i < 4; i++)
        up += fx_state(f, low[i]) == STK_JOB_RUNNING;
    assert_int_equal(up, 3);
    fx_sound(f);
    fx_drain(f);
    assert_int_equal(f->s->by_group.n, 0);
    fx_finish(f);
}

/* Another member starts, and the one that was needed may go. */
static void when_another_is_up_one_may_go(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 8}, {.gpus = 4, .gpu_type = 1}};
    struct fx *f = fx_new(
        &(struct fx_setup){.nodes = nodes, .n_nodes = 2, .order = "priority", .preempt = "tier"});
    struct stk_job_spec spec = fx_job(8, 1000), other = fx_job(4, 100);
    uint32_t first, job, node;

    (void)state;
    spec.tier = STK_TIER_BEST_EFFORT;
    spec.terms.group = 1;
    spec.terms.group_min = 1;
    first = fx_submit(f, spec);
    other.demand.gpu_types = 2;
    node = fx_submit(f, other);
    spec.demand.gpus = 4;
    spec.demand.gpu_types = 2;
    (void)fx_submit(f, spec);
    fx_turn(f);
    job = submit(f, 1, 8, STK_TIER_STANDARD);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_WAITING);
    fx_run(f, 100 * STK_SECOND);
    assert_int_equal(fx_state(f, node), STK_JOB_DONE);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    assert_int_equal(fx_of(f, first)->preemptions, 1);
    fx_finish(f);
}

/* Of a tenant and all below it, in whatever pool. */
static void a_tenant_keeps_so_many_up(void **state)
{
    struct stk_node_spec nodes[] = {{.gpus = 4}, {.gpus = 2, .pool = {1}}};
    struct stk_tenant_spec tenants[4];
    struct stk_job_spec spec = fx_job(1, 1000);
    struct fx *f;
    uint32_t low[4], job;

    (void)state;
    stk_tenant_spec_init(&tenants[0], "default", STK_NONE);
    stk_tenant_spec_init(&tenants[1], "serving", STK_NONE);
    stk_tenant_spec_init(&tenants[2], "chat", 1);
    stk_tenant_spec_init(&tenants[3], "search", 1);
    tenants[1].keep_up = 3;
    f = fx_new(&(struct fx_setup){.nodes = nodes,
                                  .n_nodes = 2,
                                  .n_pools = 2,
                                  .order = "priority",
                                  .preempt = "tier",
                                  .tenants = tenants,
                                  .n_tenants = 4});
    spec.tier = STK_TIER_BEST_EFFORT;
    for (uint32_t i = 0; i < 4; i++) {
        spec.tenant = 2 + i % 2;
        low[i] = fx_submit(f, spec);
    }
    fx_turn(f);
    assert_int_equal(f->s->tenants[1].up, 4);
    job = submit(f, 1, 2, STK_TIER_STANDARD);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_WAITING); /* two would have to go */
    spec.pool.i = 1;
    (void)fx_submit(f, spec); /* one more of them, elsewhere */
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    assert_int_equal(f->s->tenants[1].up, 3);
    assert_int_equal(fx_of(f, low[0])->preemptions + fx_of(f, low[1])->preemptions, 0);
    fx_sound(f);
    fx_drain(f);
    assert_int_equal(f->s->tenants[1].up, 0);
    fx_finish(f);
}

static void policies_that_keep_no_budget_refuse_it(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "srtf", .preempt = "afresh"});
    struct stk_job_spec spec = fx_job(1, 10);

    (void)state;
    spec.terms.group = 1;
    assert_int_equal(fx_try_submit(f, &spec), 0);
    spec.terms.group_min = 1;
    assert_int_equal(fx_try_submit(f, &spec), -EINVAL);
    assert_non_null(strstr(f->err.text, "afresh"));
    spec.terms = (struct stk_terms){.min_run = STK_SECOND};
    assert_int_equal(fx_try_submit(f, &spec), -EINVAL);
    assert_non_null(strstr(f->err.text, "afresh"));
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
        cmocka_unit_test(who_has_just_saved_goes_first),
        cmocka_unit_test(silence_is_neither_safe_nor_the_first_to_go),
        cmocka_unit_test(the_way_it_leaves_says_what_it_loses),
        cmocka_unit_test(a_start_protects_for_a_while),
        cmocka_unit_test(nobody_is_protected_from_a_guarantee),
        cmocka_unit_test(so_often_a_day_and_no_more),
        cmocka_unit_test(a_group_keeps_so_many_up),
        cmocka_unit_test(when_another_is_up_one_may_go),
        cmocka_unit_test(a_tenant_keeps_so_many_up),
        cmocka_unit_test(policies_that_keep_no_budget_refuse_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
