/* SPDX-License-Identifier: Apache-2.0 */
/* test_orders.c - orders by tenant (fairshare, drf), by finish-time fairness and by deadline: who
 * starts next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/growth.h"
#include "core/tenant.h"
#include "core/usage.h"
#include "lib/fixture.h"

enum { DEFAULT, ORG, ANN, BOB, EVE, N };

static struct stk_tenant_spec table[N];
static const struct stk_node_spec four = {.gpus = 4};

/* default; org over ann and bob; eve. */
static int plant(void **state)
{
    (void)state;
    stk_tenant_spec_init(&table[DEFAULT], "default", STK_NONE);
    stk_tenant_spec_init(&table[ORG], "org", STK_NONE);
    stk_tenant_spec_init(&table[ANN], "ann", ORG);
    stk_tenant_spec_init(&table[BOB], "bob", ORG);
    stk_tenant_spec_init(&table[EVE], "eve", STK_NONE);
    return 0;
}

static struct fx_setup setup_of(const char *order, const char *backfill, const char *params)
{
    return (struct fx_setup){.order = order,
                             .backfill = backfill,
                             .params = params,
                             .nodes = &four,
                             .n_nodes = 1,
                             .tenants = table,
                             .n_tenants = N};
}

static struct fx *world(const char *order, const char *params)
{
    const struct fx_setup setup = setup_of(order, "skip", params);

    return fx_new(&setup);
}

static uint32_t submit(struct fx *f, uint32_t tenant, uint32_t gpus, int64_t seconds)
{
    struct stk_job_spec spec = fx_job(gpus, seconds);

    spec.tenant = tenant;
    return fx_submit(f, spec);
}

static bool runs(const struct fx *f, uint32_t job)
{
    return fx_state(f, job) == STK_JOB_RUNNING;
}

/* How many of these run. */
static uint32_t running(const struct fx *f, const uint32_t *jobs, uint32_t n)
{
    uint32_t k = 0;

    for (uint32_t i = 0; i < n; i++)
        k += runs(f, jobs[i]);
    return k;
}

static void end(struct fx *f)
{
    fx_drain(f);
    fx_finish(f);
}

/* ---- fairshare ---- */

static void who_has_had_less_comes_first(void **state)
{
    struct fx *f = world("fairshare", "");
    uint32_t a, e;

    (void)state;
    submit(f, ANN, 4, 100);
    fx_turn(f);
    a = submit(f, ANN, 4, 10);
    e = submit(f, EVE, 4, 10);
    fx_run(f, 100 * STK_SECOND);
    assert_true(runs(f, e) && !runs(f, a));
    end(f);
}

static void what_becomes_free_at_once_is_shared(void **state)
{
    uint32_t a[4], e[4];
    struct fx *f = world("fairshare", "");

    (void)state;
    for (int i = 0; i < 4; i++)
        a[i] = submit(f, ANN, 1, 10);
    for (int i = 0; i < 4; i++)
        e[i] = submit(f, EVE, 1, 10);
    fx_turn(f);
    assert_int_equal(running(f, a, 4), 2);
    assert_int_equal(running(f, e, 4), 2);
    end(f);
}

static void without_looking_ahead_one_takes_all(void **state)
{
    uint32_t a[4];
    struct fx *f = world("fairshare", "fairshare.ahead_s=0");

    (void)state;
    for (int i = 0; i < 4; i++)
        a[i] = submit(f, ANN, 1, 10);
    submit(f, EVE, 1, 10);
    fx_turn(f);
    assert_int_equal(running(f, a, 4), 4);
    end(f);
}

/* A team that is behind comes first whole, though its user has had more than others. */
static void the_tree_is_compared_from_the_top(void **state)
{
    struct fx *f = world("fairshare", "");
    uint32_t a, b, e;

    (void)state;
    submit(f, ANN, 1, 100);
    submit(f, EVE, 3, 100);
    fx_turn(f);
    a = submit(f, ANN, 4, 10);
    b = submit(f, BOB, 4, 10);
    e = submit(f, EVE, 4, 10);
    fx_run(f, 100 * STK_SECOND);
    assert_true(runs(f, b)); /* org has had 100, eve 300; in org bob nothing */
    fx_run(f, 110 * STK_SECOND);
    assert_true(runs(f, a)); /* ann has had 100, and still comes before eve */
    fx_run(f, 120 * STK_SECOND);
    assert_true(runs(f, e));
    end(f);
}

static void weights_divide_what_was_had(void **state)
{
    struct fx *f;
    uint32_t a, e;

    table[EVE].weight = 4000;
    f = world("fairshare", "");
    (void)state;
    submit(f, ANN, 1, 100);
    submit(f, EVE, 3, 100);
    fx_turn(f);
    a = submit(f, ANN, 4, 10);
    e = submit(f, EVE, 4, 10);
    fx_run(f, 100 * STK_SECOND);
    assert_true(runs(f, e) && !runs(f, a)); /* 300 / 4 against 100 */
    end(f);
}

static void what_was_had_fades(void **state)
{
    struct fx *f = world("fairshare", "fairshare.half_life_s=100 fairshare.ahead_s=0");
    uint32_t a, e;

    (void)state;
    submit(f, ANN, 4, 100); /* 400, of which 400/ln2*(1-1/2)... is left, then a 1024th of that */
    fx_turn(f);
    fx_run(f, 1100 * STK_SECOND);
    f->now = 1100 * STK_SECOND;
    submit(f, EVE, 4, 10); /* 40 */
    fx_turn(f);
    a = submit(f, ANN, 4, 10);
    e = submit(f, EVE, 4, 10);
    fx_run(f, 1110 * STK_SECOND);
    assert_true(runs(f, a) && !runs(f, e));
    end(f);
}

static void usage_is_counted_to_the_second(void **state)
{
    struct fx *f = world("fairshare", "fairshare.half_life_s=100");
    double had;

    (void)state;
    submit(f, ANN, 2, 50);
    fx_turn(f);
    fx_run(f, 50 * STK_SECOND);
    had = (double)stk_usage_of(f->s, ANN, 1) / (double)STK_GROWTH_ONE / 1e6;
    assert_true(had > 2 * 0.41421355 && had < 2 * 0.41421357); /* 2^(50/100) - 1, of 2 GPUs */
    assert_int_equal(stk_usage_of(f->s, ANN, 1), stk_usage_of(f->s, ORG, 1));
    assert_int_equal(stk_usage_of(f->s, EVE, 1), 0);
    end(f);
}

static void after_many_half_lives_order_is_kept(void **state)
{
    struct fx *f = world("fairshare", "fairshare.half_life_s=1 fairshare.ahead_s=0");
    uint32_t a, e;

    (void)state;
    for (int i = 1; i < 60; i++) {
        f->now = i * 20 * STK_SECOND;
        submit(f, ANN, 2, 10);
        submit(f, EVE, 1, 10);
        fx_turn(f);
        fx_run(f, f->now + 10 * STK_SECOND);
        fx_sound(f);
    }
    f->now += STK_SECOND;
    a = submit(f, ANN, 3, 1);
    e = submit(f, EVE, 3, 1);
    fx_turn(f);
    assert_true(runs(f, e) && !runs(f, a));
    end(f);
}

static void gpus_of_slow_types_count_less(void **state)
{
    static const struct stk_node_spec nodes[2] = {{.gpus = 4}, {.gpus = 4, .gpu_type = 1}};
    static uint32_t speed[STK_MAX_GPU_TYPES];
    struct fx_setup setup = setup_of("fairshare", "skip", "fairshare.ahead_s=0");
    struct stk_job_spec spec = fx_job(4, 100);
    struct fx *f;
    uint32_t a, e;

    (void)state;
    for (uint32_t i = 0; i < STK_MAX_GPU_TYPES; i++)
        speed[i] = i == 1 ? 400 : 1000;
    setup.nodes = nodes;
    setup.n_nodes = 2;
    setup.type_speed = speed;
    f = fx_new(&setup);
    spec.tenant = ANN;
    spec.demand.gpu_types = 2; /* 400 GPU-seconds, which are 160 */
    fx_submit(f, spec);
    spec = fx_job(2, 100);
    spec.tenant = EVE;
    spec.demand.gpu_types = 1; /* 200 */
    fx_submit(f, spec);
    fx_turn(f);
    fx_run(f, 100 * STK_SECOND);
    a = submit(f, ANN, 8, 10);
    e = submit(f, EVE, 8, 10);
    fx_turn(f);
    assert_true(runs(f, a) && !runs(f, e));
    end(f);
}

static void classes_come_before_tenants_and_priorities_after(void **state)
{
    struct stk_job_spec spec = fx_job(4, 10);
    struct fx *f = world("fairshare", "");
    uint32_t serve, train, low, high;

    (void)state;
    submit(f, ANN, 4, 100);
    fx_turn(f);
    spec.tenant = EVE;
    spec.priority = 100;
    low = fx_submit(f, spec);
    spec.priority = 200;
    high = fx_submit(f, spec);
    spec.tenant = ANN;
    spec.priority = 500;
    train = fx_submit(f, spec);
    spec.priority = 1000;
    serve = fx_submit(f, spec);
    fx_run(f, 100 * STK_SECOND);
    assert_true(runs(f, serve));
    fx_run(f, 110 * STK_SECOND);
    assert_true(runs(f, train));
    fx_run(f, 120 * STK_SECOND);
    assert_true(runs(f, high));
    fx_run(f, 130 * STK_SECOND);
    assert_true(runs(f, low));
    end(f);
}

/* Whoever was promised a start keeps it, though its tenant falls behind meanwhile. */
static void a_promise_outlives_places(void **state)
{
    struct fx_setup setup = setup_of("fairshare", "easy", "");
    struct fx *f = fx_new(&setup);
    uint32_t big, other;

    (void)state;
    submit(f, ANN, 3, 100);
    fx_turn(f);
    big = submit(f, ANN, 4, 10); /* promised a start at 100 */
    fx_turn(f);
    other = submit(f, EVE, 4, 10); /* has had nothing */
    submit(f, ANN, 1, 90);         /* fits beside, and makes it worse for ann */
    fx_turn(f);
    fx_run(f, 100 * STK_SECOND);
    assert_true(runs(f, big) && !runs(f, other));
    end(f);
}

/* The same when a job ends before its time, and promises are made anew. */
static void a_promise_outlives_an_early_end(void **state)
{
    struct fx_setup setup = setup_of("fairshare", "easy", "");
    struct fx *f = fx_new(&setup);
    uint32_t first, big, other;

    (void)state;
    first = submit(f, ANN, 1, 100);
    submit(f, ANN, 2, 200);
    fx_turn(f);
    big = submit(f, ANN, 4, 10);
    fx_turn(f);
    other = submit(f, EVE, 4, 10);
    fx_turn(f);
    f->now = 50 * STK_SECOND;
    fx_cancel(f, first);
    fx_turn(f);
    fx_run(f, 200 * STK_SECOND);
    assert_true(runs(f, big) && !runs(f, other));
    end(f);
}

static void the_head_of_a_strict_queue_is_that_of_the_first_tenant(void **state)
{
    struct fx_setup setup = setup_of("fairshare", "none", "");
    struct fx *f = fx_new(&setup);
    uint32_t big, other;

    (void)state;
    submit(f, ANN, 3, 100);
    fx_turn(f);
    big = submit(f, ANN, 4, 10);
    fx_turn(f);
    other = submit(f, EVE, 1, 10);
    fx_turn(f);
    assert_true(runs(f, other) && !runs(f, big));
    end(f);
}

static void usage_survives_saving(void **state)
{
    struct fx_setup setup = setup_of("fairshare", "skip", "fairshare.half_life_s=1000");
    struct fx_setup other = setup_of("fairshare", "skip", "fairshare.half_life_s=4000");
    struct fx *f = fx_new(&setup);
    struct stk_core *c;
    double a, b;

    (void)state;
    submit(f, ANN, 2, 50);
    submit(f, EVE, 2, 500);
    fx_turn(f);
    fx_run(f, 300 * STK_SECOND);
    f->now = 300 * STK_SECOND;
    submit(f, BOB, 2, 500);
    fx_turn(f);
    c = fx_reload(f, f->core, NULL);
    assert_true(stk_core_digest(c) == stk_core_digest(f->core));
    assert_true(stk_core_sound(c, NULL));
    stk_core_free(c);
    c = fx_reload(f, f->core, &other); /* GPU-seconds stay what they are */
    a = (double)stk_usage_of(f->s, ANN, stk_growth((uint64_t)f->now, (uint64_t)1000 * STK_SECOND)) *
        1000 / (double)stk_growth((uint64_t)f->now, (uint64_t)1000 * STK_SECOND);
    b = (double)stk_usage_of(stk_core_state(c), ANN, STK_GROWTH_ONE) * 4000 / STK_GROWTH_ONE;
    assert_true(a > 0 && b / a > 0.99999 && b / a < 1.00001);
    assert_true(stk_core_sound(c, NULL));
    stk_core_free(c);
    end(f);
}

/* ---- drf ---- */

static void the_dominant_share_counts(void **state)
{
    static const struct stk_node_spec node = {.gpus = 8, .cpu_milli = 16000, .mem_mib = 1000};
    struct fx_setup setup = setup_of("drf", "skip", "");
    struct stk_job_spec spec = fx_job(1, 100);
    uint32_t a[8], e[8];
    struct fx *f;

    (void)state;
    setup.nodes = &node;
    f = fx_new(&setup);
    for (int i = 0; i < 8; i++) {
        spec.demand.cpu_milli = 4000; /* a quarter of the CPU for an eighth of the GPUs */
        spec.tenant = ANN;
        a[i] = fx_submit(f, spec);
        spec.demand.cpu_milli = 500;
        spec.tenant = EVE;
        e[i] = fx_submit(f, spec);
    }
    fx_turn(f);
    assert_int_equal(running(f, a, 8), 3); /* dominant shares: 3/4 of CPU, 5/8 of GPUs */
    assert_int_equal(running(f, e, 8), 5);
    end(f);
}

static void drf_knows_no_past(void **state)
{
    struct fx *f = world("drf", "");
    uint32_t a;

    (void)state;
    submit(f, ANN, 4, 100);
    fx_turn(f);
    a = submit(f, ANN, 4, 10);
    submit(f, EVE, 4, 10);
    fx_run(f, 100 * STK_SECOND);
    assert_true(runs(f, a)); /* both have nothing now; bob's and ann's org is named first */
    end(f);
}

/* ---- ftf ---- */

static void the_worst_delay_comes_first(void **state)
{
    struct fx *f = world("ftf", "");
    uint32_t longer, shorter;

    (void)state;
    submit(f, ANN, 4, 1000);
    fx_turn(f);
    longer = submit(f, ANN, 4, 2000);
    f->now = 500 * STK_SECOND;
    shorter =
        submit(f, EVE, 4, 50); /* alone with half of the GPUs: 100 s; 500 s later that is bad */
    fx_turn(f);
    fx_run(f, 1000 * STK_SECOND);
    assert_true(runs(f, shorter) && !runs(f, longer));
    end(f);
}

static void who_floods_waits_behind_its_own_jobs(void **state)
{
    struct fx *f = world("ftf", "");
    uint32_t a[6], e;

    (void)state;
    for (int i = 0; i < 6; i++)
        a[i] = submit(f, ANN, 4, 100); /* each more would take ann's part of the cluster longer */
    e = submit(f, EVE, 4, 100);
    fx_turn(f);
    fx_run(f, 100 * STK_SECOND);
    assert_true(runs(f, a[1])); /* as bad as eve's, and older */
    fx_run(f, 200 * STK_SECOND);
    assert_int_equal(running(f, a, 6), 0);
    assert_true(runs(f, e));
    fx_sound(f);
    end(f);
}

static void the_isolated_time_follows_from_weights(void **state)
{
    struct fx *f;

    (void)state;
    table[EVE].weight = 3000;
    f = world("ftf", "");
    submit(f, ANN, 4, 100); /* alone it has all: 100 s */
    assert_int_equal(stk_usage_isolated(f->s, ANN), 100 * STK_SECOND);
    submit(f, EVE, 2, 100);
    assert_int_equal(stk_usage_isolated(f->s, ANN), 400 * STK_SECOND);
    assert_int_equal(stk_usage_isolated(f->s, EVE), 200 * STK_SECOND / 3);
    submit(f, BOB, 4, 100); /* half of org's quarter */
    assert_int_equal(stk_usage_isolated(f->s, BOB), 800 * STK_SECOND);
    fx_turn(f);
    end(f);
}

/* ---- edf ---- */

static uint32_t submit_by(struct fx *f, int64_t seconds, int64_t deadline_s, int32_t priority)
{
    struct stk_job_spec spec = fx_job(4, seconds);

    spec.terms.deadline = deadline_s * STK_SECOND;
    spec.priority = priority;
    return fx_submit(f, spec);
}

static void the_earliest_deadline_comes_first(void **state)
{
    struct fx *f = world("edf", "edf.margin_s=0");
    uint32_t none, urgent, late, early;

    (void)state;
    submit_by(f, 100, 0, 0);
    fx_turn(f);
    none = submit_by(f, 10, 0, 10);
    urgent = submit_by(f, 10, 0, 20);
    late = submit_by(f, 10, 9000, 0);
    early = submit_by(f, 10, 8000, 0);
    fx_run(f, 100 * STK_SECOND);
    assert_true(runs(f, early));
    fx_run(f, 110 * STK_SECOND);
    assert_true(runs(f, late));
    fx_run(f, 120 * STK_SECOND);
    assert_true(runs(f, urgent));
    fx_run(f, 130 * STK_SECOND);
    assert_true(runs(f, none));
    end(f);
}

/* A long job with a late deadline may have to start before a short one with an early one. */
static void a_job_in_danger_goes_first(void **state)
{
    struct fx *f = world("edf", "edf.margin_s=60");
    uint32_t longer, shorter;

    (void)state;
    submit_by(f, 100, 0, 0);
    fx_turn(f);
    shorter = submit_by(f, 10, 500, 0);
    longer = submit_by(f, 850, 1000, 0); /* must start by 150 */
    fx_run(f, 100 * STK_SECOND);
    assert_true(runs(f, longer) && !runs(f, shorter));
    end(f);
}

static void what_is_late_anyhow_makes_nobody_late(void **state)
{
    struct fx *f = world("edf", "");
    uint32_t lost, kept;

    (void)state;
    submit_by(f, 100, 0, 0);
    fx_turn(f);
    lost = submit_by(f, 50, 120, 0); /* could have made it until 70 */
    kept = submit_by(f, 50, 300, 0);
    fx_run(f, 100 * STK_SECOND);
    assert_true(runs(f, kept) && !runs(f, lost));
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(who_has_had_less_comes_first, plant),
        cmocka_unit_test_setup(what_becomes_free_at_once_is_shared, plant),
        cmocka_unit_test_setup(without_looking_ahead_one_takes_all, plant),
        cmocka_unit_test_setup(the_tree_is_compared_from_the_top, plant),
        cmocka_unit_test_setup(weights_divide_what_was_had, plant),
        cmocka_unit_test_setup(what_was_had_fades, plant),
        cmocka_unit_test_setup(usage_is_counted_to_the_second, plant),
        cmocka_unit_test_setup(after_many_half_lives_order_is_kept, plant),
        cmocka_unit_test_setup(gpus_of_slow_types_count_less, plant),
        cmocka_unit_test_setup(classes_come_before_tenants_and_priorities_after, plant),
        cmocka_unit_test_setup(a_promise_outlives_places, plant),
        cmocka_unit_test_setup(a_promise_outlives_an_early_end, plant),
        cmocka_unit_test_setup(the_head_of_a_strict_queue_is_that_of_the_first_tenant, plant),
        cmocka_unit_test_setup(usage_survives_saving, plant),
        cmocka_unit_test_setup(the_dominant_share_counts, plant),
        cmocka_unit_test_setup(drf_knows_no_past, plant),
        cmocka_unit_test_setup(the_worst_delay_comes_first, plant),
        cmocka_unit_test_setup(who_floods_waits_behind_its_own_jobs, plant),
        cmocka_unit_test_setup(the_isolated_time_follows_from_weights, plant),
        cmocka_unit_test_setup(the_earliest_deadline_comes_first, plant),
        cmocka_unit_test_setup(a_job_in_danger_goes_first, plant),
        cmocka_unit_test_setup(what_is_late_anyhow_makes_nobody_late, plant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
