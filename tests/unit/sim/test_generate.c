/* SPDX-License-Identifier: Apache-2.0 */
/* test_generate.c - the generator draws what was asked for, and the same every time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "sim/generate.h"
#include "unit/sim/trace_equal.h"

#define DAY (86400 * STK_SECOND)

static struct stk_err err;

static void generate(struct stk_trace *t, const char *spec)
{
    *t = (struct stk_trace){0};
    if (stk_generate(t, spec, 1, &err) < 0)
        fail_msg("%s", err.text);
}

static double work(const struct stk_trace *t)
{
    double sum = 0;

    for (uint32_t i = 0; i < t->n_jobs; i++)
        sum += (double)t->jobs[i].gpus * (double)(t->jobs[i].duration / STK_SECOND);
    return sum;
}

static void the_random_numbers_are_those_of_xoshiro256starstar(void **state)
{
    static const uint64_t expected[] = {11520, 0, 1509978240, 1215971899390074240};
    struct stk_rng r = {{1, 2, 3, 4}};

    (void)state;
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
        assert_int_equal(stk_rng_next(&r), expected[i]);
}

static void random_numbers_below_n_are_below_n_and_even(void **state)
{
    uint32_t seen[6] = {0};
    struct stk_rng r;

    (void)state;
    stk_rng_init(&r, 0);
    assert_int_equal(stk_rng_below(&r, 0), 0);
    assert_int_equal(stk_rng_below(&r, 1), 0);
    for (int i = 0; i < 60000; i++) {
        double u = stk_rng_unit(&r);

        assert_true(u >= 0 && u < 1);
        seen[stk_rng_below(&r, 6)]++;
    }
    for (int i = 0; i < 6; i++)
        assert_in_range(seen[i], 9500, 10500);
    assert_true(stk_rng_below(&r, UINT64_MAX) < UINT64_MAX);
}

static void the_same_seed_gives_the_same_trace(void **state)
{
    struct stk_trace a, b, c;

    (void)state;
    generate(&a, "jobs=2000,seed=7,mix=sample,estimate_factor=3");
    generate(&b, "jobs=2000,seed=7,mix=sample,estimate_factor=3");
    generate(&c, "jobs=2000,seed=8,mix=sample,estimate_factor=3");
    assert_null(traces_differ(&a, &b));
    assert_non_null(traces_differ(&a, &c));
    stk_trace_done(&a);
    stk_trace_done(&b);
    stk_trace_done(&c);
}

static void the_default_seed_is_used_when_none_is_given(void **state)
{
    struct stk_trace a = {0}, b = {0};

    (void)state;
    assert_int_equal(stk_generate(&a, "jobs=100", 5, &err), 0);
    assert_int_equal(stk_generate(&b, "seed=5,jobs=100", 1, &err), 0);
    assert_null(traces_differ(&a, &b));
    stk_trace_done(&a);
    stk_trace_done(&b);
}

static void jobs_are_valid_and_in_order(void **state)
{
    struct stk_trace t;

    (void)state;
    generate(&t, "jobs=20000,mix=sample,gpus=512");
    assert_int_equal(t.n_jobs, 20000);
    for (uint32_t i = 0; i < t.n_jobs; i++) {
        const struct stk_trace_job *j = &t.jobs[i];

        assert_true(i == 0 || t.jobs[i - 1].submit <= j->submit);
        assert_true(j->submit >= 0 && j->submit % STK_SECOND == 0);
        assert_true(j->duration >= STK_SECOND && j->gpus >= 1 && j->gpus <= 512);
        assert_true(j->tenant < t.tenants.n && j->group < t.groups.n);
        assert_int_equal(j->cause, STK_CAUSE_OK);
        assert_true(j->gpu_types == STK_ANY_GPU_TYPE);
    }
    stk_trace_done(&t);
}

static void the_load_asked_for_is_met(void **state)
{
    struct stk_trace t;
    double span;

    (void)state;
    generate(&t, "jobs=50000,gpus=128,load=0.75");
    span = (double)(t.jobs[t.n_jobs - 1].submit / STK_SECOND);
    assert_true(fabs(work(&t) / (128 * span) / 0.75 - 1) < 0.01);
    stk_trace_done(&t);
}

static void rate_days_and_hours_set_the_span(void **state)
{
    static const struct {
        const char *spec;
        double hours;
    } cases[] = {
        {"jobs=10000,rate=100", 100}, {"jobs=10000,days=3", 72}, {"jobs=10000,hours=5.5", 5.5}};
    struct stk_trace t;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        double last;

        generate(&t, cases[i].spec);
        last = (double)t.jobs[t.n_jobs - 1].submit / (double)STK_SECOND / 3600;
        assert_true(last <= cases[i].hours && last > 0.98 * cases[i].hours);
        stk_trace_done(&t);
    }
}

/* Jobs that arrive in [from, to) hours of a day, and on which days of the week. */
static uint32_t arrivals(const struct stk_trace *t, int from, int to, bool weekend)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->n_jobs; i++) {
        stk_time hour = t->jobs[i].submit % DAY / STK_SECOND / 3600;

        if (hour >= from && hour < to && (t->jobs[i].submit / DAY % 7 >= 5) == weekend)
            n++;
    }
    return n;
}

static void days_are_busier_than_nights_and_weekends_quieter(void **state)
{
    struct stk_trace t;
    double night, afternoon;

    (void)state;
    generate(&t, "jobs=200000,days=28,day=0.8,week=0.5");
    night = arrivals(&t, 1, 5, false);
    afternoon = arrivals(&t, 13, 17, false);
    assert_true(afternoon / night > 6 && afternoon / night < 10); /* near 1.8 : 0.2 */
    assert_true(fabs((double)arrivals(&t, 0, 24, true) / arrivals(&t, 0, 24, false) - 0.2) < 0.01);
    stk_trace_done(&t);
    generate(&t, "jobs=200000,days=28,day=0,week=0");
    night = arrivals(&t, 1, 5, false);
    afternoon = arrivals(&t, 13, 17, false);
    assert_true(fabs(afternoon / night - 1) < 0.05);
    stk_trace_done(&t);
}

static void sizes_and_durations_follow_their_distributions(void **state)
{
    struct stk_trace t;
    uint32_t two = 0, below = 0;

    (void)state;
    generate(&t, "jobs=100000,sizes=1:75/2:25,dur_median_s=500,dur_sigma=1.5,dur_max_s=9999");
    for (uint32_t i = 0; i < t.n_jobs; i++) {
        assert_true(t.jobs[i].gpus == 1 || t.jobs[i].gpus == 2);
        assert_true(t.jobs[i].duration <= 9999 * STK_SECOND);
        two += t.jobs[i].gpus == 2;
        below += t.jobs[i].duration < 500 * STK_SECOND;
    }
    assert_in_range(two, 24500, 25500);
    assert_in_range(below, 49000, 51000);
    stk_trace_done(&t);
}

static void the_kth_tenant_submits_one_kth_as_much(void **state)
{
    struct stk_trace t;
    uint32_t n[4] = {0};

    (void)state;
    generate(&t, "jobs=100000,tenants=4");
    assert_int_equal(t.tenants.n, 4);
    for (uint32_t i = 0; i < t.n_jobs; i++) { /* "team-k" */
        const char *name = stk_names_get(&t.tenants, t.jobs[i].tenant);

        assert_in_range(name[5], '1', '4');
        n[name[5] - '1']++;
    }
    for (uint32_t k = 1; k < 4; k++)
        assert_true(fabs((double)n[0] / n[k] / (k + 1) - 1) < 0.05);
    stk_trace_done(&t);
}

static void users_over_estimate_by_the_factor_on_average(void **state)
{
    struct stk_trace t;
    double sum = 0;

    (void)state;
    generate(&t, "jobs=50000,estimate_factor=4,dur_median_s=5000");
    for (uint32_t i = 0; i < t.n_jobs; i++) {
        assert_true(t.jobs[i].estimate >= t.jobs[i].duration);
        sum += (double)t.jobs[i].estimate / (double)t.jobs[i].duration;
    }
    assert_true(fabs(sum / t.n_jobs - 4) < 0.1);
    stk_trace_done(&t);
    generate(&t, "jobs=10");
    assert_int_equal(t.jobs[3].estimate, 0);
    stk_trace_done(&t);
}

static void a_sample_mix_has_every_kind_of_work(void **state)
{
    struct stk_trace t;
    uint32_t n[STK_KIND_MAX] = {0};

    (void)state;
    generate(&t, "jobs=10000,mix=sample");
    for (uint32_t i = 0; i < t.n_jobs; i++) {
        n[t.jobs[i].kind]++;
        if (t.jobs[i].kind == STK_KIND_SERVICE)
            assert_true(t.jobs[i].priority == 1000 && t.jobs[i].tier == STK_TIER_CRITICAL);
    }
    assert_true(n[STK_KIND_TRAIN] > 1000 && n[STK_KIND_BATCH] > 5000);
    assert_true(n[STK_KIND_SERVICE] > 200 && n[STK_KIND_SHELL] > 1000);
    stk_trace_done(&t);
}

static void jobs_are_no_larger_than_the_cluster(void **state)
{
    struct stk_trace t;

    (void)state;
    generate(&t, "jobs=5000,gpus=4");
    for (uint32_t i = 0; i < t.n_jobs; i++)
        assert_true(t.jobs[i].gpus <= 4);
    stk_trace_done(&t);
}

static void bad_specifications_are_refused_with_a_sentence(void **state)
{
    static const char *const cases[][2] = {
        {"jobs", "expected key=value, got \"jobs\""},
        {"=1", "expected key=value, got \"=1\""},
        {"jbos=1", "unknown key \"jbos\""},
        {"jobs=0", "jobs must be a whole number (1 to 100000000), got \"0\""},
        {"jobs=1.5", "jobs must be a whole number (1 to 100000000), got \"1.5\""},
        {"jobs=-1", "jobs must be a whole number (1 to 100000000), got \"-1\""},
        {"day=1.1", "day must be a number (0 to 1), got \"1.1\""},
        {"seed=x", "seed must be a whole number, got \"x\""},
        {"load=0.5,rate=3", "load and rate exclude each other"},
        {"sizes=1:70/x", "sizes must be like 1:70/8:30 (GPUs:weight), got \"x\""},
        {"sizes=", "sizes must be like 1:70/8:30 (GPUs:weight), got \"\""},
        {"sizes=1:0", "sizes needs a weight above 0"},
        {"sizes=65:1", "sizes has 65 GPUs, but gpus is 64"},
        {"mix=other", "the only mix is sample, got \"other\""},
        {"mix=sample,sizes=1:1", "mix has its own sizes and durations"},
        {"jobs=1000000,rate=1", "the jobs would arrive over 41667 days"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct stk_trace t = {0};

        assert_int_equal(stk_generate(&t, cases[i][0], 1, &err), -EINVAL);
        assert_memory_equal(err.text, "generate: ", 10);
        assert_non_null(strstr(err.text, cases[i][1]));
        assert_int_equal(t.n_jobs, 0);
        stk_trace_done(&t);
    }
}

static void help_names_every_key(void **state)
{
    static const char *const keys[] = {
        "jobs=",  "seed=",      "gpus=",      "load=",           "rate=",    "days=",
        "hours=", "day=",       "week=",      "sizes=",          "tenants=", "dur_median_s=",
        "mix=",   "dur_sigma=", "dur_max_s=", "estimate_factor="};

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        assert_non_null(strstr(stk_generate_help, keys[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_random_numbers_are_those_of_xoshiro256starstar),
        cmocka_unit_test(random_numbers_below_n_are_below_n_and_even),
        cmocka_unit_test(the_same_seed_gives_the_same_trace),
        cmocka_unit_test(the_default_seed_is_used_when_none_is_given),
        cmocka_unit_test(jobs_are_valid_and_in_order),
        cmocka_unit_test(the_load_asked_for_is_met),
        cmocka_unit_test(rate_days_and_hours_set_the_span),
        cmocka_unit_test(days_are_busier_than_nights_and_weekends_quieter),
        cmocka_unit_test(sizes_and_durations_follow_their_distributions),
        cmocka_unit_test(the_kth_tenant_submits_one_kth_as_much),
        cmocka_unit_test(users_over_estimate_by_the_factor_on_average),
        cmocka_unit_test(a_sample_mix_has_every_kind_of_work),
        cmocka_unit_test(jobs_are_no_larger_than_the_cluster),
        cmocka_unit_test(bad_specifications_are_refused_with_a_sentence),
        cmocka_unit_test(help_names_every_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
