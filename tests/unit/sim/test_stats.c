/* SPDX-License-Identifier: Apache-2.0 */
/* Totals of a run against figures worked out by hand, and the pieces they are made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/series.h"
#include "sim/stats.h"

#define S STK_SECOND

/* n jobs with ids 1..n, submitted at 0, of one GPU; job i runs i seconds and ends at i seconds. */
static void fill(struct stk_trace *t, struct stk_run_result *r, uint32_t n)
{
    *t = (struct stk_trace){.jobs = calloc(n, sizeof(*t->jobs)), .n_jobs = n};
    *r = (struct stk_run_result){.jobs = calloc(n, sizeof(*r->jobs))};
    assert_non_null(t->jobs);
    assert_non_null(r->jobs);
    for (uint32_t i = 0; i < n; i++) {
        t->jobs[i] = (struct stk_trace_job){.id = i + 1, .gpus = 1, .duration = (i + 1) * S};
        r->jobs[i] = (struct stk_job_result){.end = (i + 1) * S, .wait = i * S};
    }
}

static void drop(struct stk_trace *t, struct stk_run_result *r)
{
    stk_run_result_done(r);
    free(t->jobs);
}

static void near(double a, double b)
{
    assert_true(fabs(a - b) <= 1e-9 * (1 + fabs(b)));
}

static void percentiles_are_values_at_index_n_q_over_100(void **state)
{
    struct stk_trace t;
    struct stk_run_result r;

    (void)state;
    fill(&t, &r, 200);
    stk_run_result_sum(&r, &t, 0, UINT32_MAX);
    near(r.p50_jct_s, 101); /* sorted[100] */
    near(r.p90_jct_s, 181);
    near(r.p99_jct_s, 199);
    near(r.p999_wait_s, 199); /* sorted[199] */
    assert_int_equal(r.sum_jct_us, 20100 * S);
    near(r.avg_jct_s, 100.5);
    near(r.avg_wait_s, 99.5);
    near(r.makespan_s, 200);
    near(r.gpu_hours, 20100.0 / 3600);
    drop(&t, &r);
}

static void slowdown_is_bounded_for_short_jobs(void **state)
{
    struct stk_trace t;
    struct stk_run_result r;

    (void)state;
    fill(&t, &r, 3);
    t.jobs[0].duration = 1 * S; /* 40 s for a 1 s job counts as 40 / 10 */
    r.jobs[0].end = 40 * S;
    t.jobs[1].duration = 20 * S; /* 60 / 20 */
    r.jobs[1].end = 60 * S;
    t.jobs[2].duration = 5 * S; /* 5 / 10, but never below 1 */
    r.jobs[2].end = 5 * S;
    stk_run_result_sum(&r, &t, 0, UINT32_MAX);
    near(r.avg_bounded_slowdown, (4.0 + 3.0 + 1.0) / 3);
    drop(&t, &r);
}

static void jobs_that_never_ended_count_only_as_jobs(void **state)
{
    struct stk_trace t;
    struct stk_run_result r;

    (void)state;
    fill(&t, &r, 4);
    r.jobs[0].end = r.jobs[3].end = -1;
    t.jobs[1].submit = t.jobs[2].submit = 1 * S;
    stk_run_result_sum(&r, &t, 0, UINT32_MAX);
    assert_int_equal(r.n_jobs, 4);
    assert_int_equal(r.finished, 2);
    assert_int_equal(r.sum_jct_us, 3 * S);
    near(r.makespan_s, 2);
    drop(&t, &r);
}

static void a_run_without_finished_jobs_has_zero_totals(void **state)
{
    struct stk_trace t;
    struct stk_run_result r;

    (void)state;
    fill(&t, &r, 1);
    r.jobs[0].end = -1;
    stk_run_result_sum(&r, &t, 0, UINT32_MAX);
    assert_int_equal(r.finished, 0);
    near(r.avg_jct_s, 0);
    near(r.p99_jct_s, 0);
    near(r.makespan_s, 0);
    drop(&t, &r);
}

static void an_id_range_leaves_out_other_jobs_and_names(void **state)
{
    struct stk_trace t;
    struct stk_run_result r;

    (void)state;
    fill(&t, &r, 10);
    t.jobs[4].id = STK_TRACE_ID_NAME | 5; /* was id 5 */
    stk_run_result_sum(&r, &t, 4, 6);
    assert_int_equal(r.n_jobs, 2);
    assert_int_equal(r.sum_jct_us, 10 * S);
    stk_run_result_sum(&r, &t, 0, UINT32_MAX);
    assert_int_equal(r.n_jobs, 10);
    drop(&t, &r);
}

static void totals_of_a_run_without_rows_stay(void **state)
{
    struct stk_trace t = {0};
    struct stk_run_result r = {.n_jobs = 7, .avg_jct_s = 3};

    (void)state;
    stk_run_result_sum(&r, &t, 0, UINT32_MAX);
    assert_int_equal(r.n_jobs, 7);
    near(r.avg_jct_s, 3);
    stk_run_result_done(&r);
    stk_run_result_done(NULL);
}

static void tasks_of_a_gang_count_in_gpu_hours(void **state)
{
    struct stk_trace t;
    struct stk_run_result r;

    (void)state;
    fill(&t, &r, 1);
    t.jobs[0].gpus = 8;
    t.jobs[0].tasks = 4;
    t.jobs[0].duration = 3600 * S;
    stk_run_result_sum(&r, &t, 0, UINT32_MAX);
    near(r.gpu_hours, 32);
    drop(&t, &r);
}

static void a_sum_over_64_bits_saturates(void **state)
{
    struct stk_trace t;
    struct stk_run_result r;

    (void)state;
    fill(&t, &r, 5000);
    for (uint32_t i = 0; i < t.n_jobs; i++)
        r.jobs[i].end = STK_MAX_DURATION;
    stk_run_result_sum(&r, &t, 0, UINT32_MAX);
    assert_true(r.sum_jct_us == INT64_MAX);
    near(r.avg_jct_s, (double)STK_MAX_DURATION / 1e6);
    drop(&t, &r);
}

static int by_value(const void *a, const void *b)
{
    stk_time x = *(const stk_time *)a, y = *(const stk_time *)b;

    return x < y ? -1 : x > y;
}

static void sorting_agrees_with_qsort_on_any_values(void **state)
{
    stk_time v[1000], want[1000], scratch[1000];
    uint64_t seed = 42;

    (void)state;
    for (unsigned bits = 1; bits <= 64; bits++) {
        for (size_t i = 0; i < 1000; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            v[i] = want[i] = (stk_time)(seed >> (64 - bits)) - (bits < 60 ? 1000 : 0);
        }
        qsort(want, 1000, sizeof(*want), by_value);
        stk_times_sort(v, scratch, 1000);
        assert_memory_equal(v, want, sizeof(v));
    }
    stk_times_sort(v, scratch, 0);
    stk_times_sort(v, scratch, 1);
}

static void the_largest_tenants_come_first_and_ties_go_to_the_smaller_number(void **state)
{
    static const uint32_t tenant[] = {0, 1, 2, 3, 1};
    struct stk_trace t;
    struct stk_run_result r;
    uint32_t top[3];

    (void)state;
    fill(&t, &r, 5);
    t.tenants.n = 6; /* 4 and 5 have no jobs */
    for (uint32_t i = 0; i < 5; i++) {
        t.jobs[i].tenant = tenant[i];
        t.jobs[i].duration = 10 * S;
    }
    assert_int_equal(stk_tenants_top(&t, top, 3), 3);
    assert_int_equal(top[0], 1);
    assert_int_equal(top[1], 0);
    assert_int_equal(top[2], 2);
    assert_int_equal(stk_tenants_top(&t, top, 0), 0);
    drop(&t, &r);
}

static void waits_are_kept_apart_by_tenant(void **state)
{
    static const uint32_t asked[] = {1, 0};
    struct stk_tenant_wait rows[2];
    struct stk_trace t;
    struct stk_run_result r;

    (void)state;
    fill(&t, &r, 20); /* waits 0..19 s */
    t.tenants.n = 3;
    for (uint32_t i = 0; i < 20; i++)
        t.jobs[i].tenant = i < 10 ? 0 : i < 18 ? 1 : 2;
    r.jobs[0].end = -1;
    assert_int_equal(stk_tenant_waits(&r, &t, asked, 2, rows), 0);
    assert_int_equal(rows[0].tenant, 1);
    assert_int_equal(rows[0].jobs, 8);
    near(rows[0].avg_wait_s, 13.5);
    near(rows[0].p50_wait_s, 14);
    near(rows[0].p90_wait_s, 17);
    near(rows[0].gpu_hours, (11 + 18) * 4 / 3600.0);
    assert_int_equal(rows[1].jobs, 9);
    near(rows[1].avg_wait_s, 5);
    near(rows[1].p50_wait_s, 5);
    drop(&t, &r);
}

static void a_distribution_keeps_its_ends(void **state)
{
    stk_time v[1000], out[400];

    (void)state;
    for (int i = 0; i < 1000; i++)
        v[i] = i;
    assert_int_equal(stk_series_cdf(v, 1000, out, 400), 400);
    assert_int_equal(out[0], 0);
    assert_int_equal(out[399], 999);
    assert_int_equal(stk_series_cdf(v, 1, out, 400), 1);
    assert_int_equal(stk_series_cdf(v, 0, out, 400), 0);
}

static void utilization_is_averaged_and_the_queue_keeps_its_peak(void **state)
{
    struct stk_sample s[] = {{.at = 100, .gpus_busy = 10, .waiting = 1},
                             {.at = 105, .gpus_busy = 20, .waiting = 9},
                             {.at = 106, .gpus_busy = 0, .waiting = 0},
                             {.at = 120, .gpus_busy = 7, .waiting = 7}};
    struct stk_run_result r = {.samples = s, .n_samples = 4};
    struct stk_bins b = stk_series_bins(&r, 1, 2);
    double busy[2];
    uint32_t waiting[2];

    (void)state;
    assert_int_equal(b.start, 100);
    assert_int_equal(b.width, 10);
    assert_int_equal(b.n, 2);
    assert_int_equal(stk_series_sample(&r, &b, busy, waiting), 2);
    near(busy[0], 7); /* 5 * 10 + 1 * 20 + 4 * 0, over 10 */
    near(busy[1], 0);
    assert_int_equal(waiting[0], 9);
    assert_int_equal(waiting[1], 0);
}

static void runs_without_samples_have_no_intervals(void **state)
{
    struct stk_sample s[] = {{.at = 5}, {.at = 5}};
    struct stk_run_result r = {.samples = s, .n_samples = 2};

    (void)state;
    assert_int_equal(stk_series_bins(&r, 1, 10).n, 0);
    r.samples = NULL;
    assert_int_equal(stk_series_bins(&r, 1, 10).n, 0);
    assert_int_equal(stk_series_bins(NULL, 0, 10).n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_values_at_index_n_q_over_100),
        cmocka_unit_test(slowdown_is_bounded_for_short_jobs),
        cmocka_unit_test(jobs_that_never_ended_count_only_as_jobs),
        cmocka_unit_test(a_run_without_finished_jobs_has_zero_totals),
        cmocka_unit_test(an_id_range_leaves_out_other_jobs_and_names),
        cmocka_unit_test(totals_of_a_run_without_rows_stay),
        cmocka_unit_test(tasks_of_a_gang_count_in_gpu_hours),
        cmocka_unit_test(a_sum_over_64_bits_saturates),
        cmocka_unit_test(sorting_agrees_with_qsort_on_any_values),
        cmocka_unit_test(the_largest_tenants_come_first_and_ties_go_to_the_smaller_number),
        cmocka_unit_test(waits_are_kept_apart_by_tenant),
        cmocka_unit_test(a_distribution_keeps_its_ends),
        cmocka_unit_test(utilization_is_averaged_and_the_queue_keeps_its_peak),
        cmocka_unit_test(runs_without_samples_have_no_intervals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
