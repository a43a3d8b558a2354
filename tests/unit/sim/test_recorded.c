/* SPDX-License-Identifier: Apache-2.0 */
/* test_recorded.c - what really happened, as a result and as a guess at the machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "sim/recorded.h"

/* Two jobs one after the other on the same GPUs, one beside them, one of which nothing is known. */
static const char past[] =
    "{\"id\":1,\"submit_s\":0,\"duration_s\":100,\"waited_s\":0,\"gpus\":4,\"tasks\":1,"
    "\"gpu_types\":[\"a100\"],\"tenant\":\"x\"}\n"
    "{\"id\":2,\"submit_s\":10,\"duration_s\":100,\"waited_s\":90,\"gpus\":3,\"tasks\":1,"
    "\"gpu_types\":[\"a100\"],\"tenant\":\"y\"}\n"
    "{\"id\":3,\"submit_s\":20,\"duration_s\":50,\"waited_s\":0,\"gpus\":1,\"gpu_milli\":500,"
    "\"tasks\":1,\"tenant\":\"y\"}\n"
    "{\"id\":4,\"submit_s\":30,\"duration_s\":50,\"gpus\":1,\"tasks\":1}\n";

static void read_past(struct stk_trace *t)
{
    assert_int_equal(stk_trace_parse(t, "past", past, strlen(past), NULL, NULL), 0);
}

static void the_cluster_is_as_large_as_it_must_have_been(void **state)
{
    char words[STK_RECORDED_WORDS];
    struct stk_trace t = {0};
    struct stk_err err;

    (void)state;
    read_past(&t);
    assert_int_equal(stk_recorded_cluster(&t, words, &err), 0);
    assert_string_equal(words, "1x4:a100+1x1");
    stk_trace_done(&t);
    t = (struct stk_trace){0};
    assert_int_equal(stk_recorded_cluster(&t, words, &err), -EINVAL);
}

static void what_happened_is_summed_up_like_a_run(void **state)
{
    struct stk_run_options o = {.last_id = UINT32_MAX, .samples = true};
    struct stk_run_result r = {0};
    struct stk_cluster c = {0};
    struct stk_trace t = {0};
    struct stk_flat_tenants flat = {0};
    struct stk_err err;

    (void)state;
    read_past(&t);
    assert_int_equal(stk_cluster_parse(&c, "1x4:a100+1x1", &err), 0);
    assert_int_equal(stk_flat_tenants_make(&flat, &t, &err), 0);
    o.flat = &flat;
    assert_int_equal(stk_recorded_run(&t, &c, &o, &r, &err), 0);
    assert_string_equal(r.bundle, "recorded");
    assert_int_equal(r.n_jobs, 3);
    assert_int_equal(r.finished, 3);
    assert_true(r.avg_wait_s == 30);
    assert_true(r.p50_wait_s == 0);
    assert_true(r.p99_wait_s == 90);
    assert_true(r.p50_jct_s == 100);
    assert_true(r.makespan_s == 200);
    assert_true(r.utilization > 0.7249 && r.utilization < 0.7251); /* 725 of 1000 GPU-seconds */
    assert_int_equal(r.max_waiting, 2); /* at 20 s the third comes, and starts at once */
    assert_int_equal(r.samples[r.n_samples - 1].gpus_busy, 0);
    assert_true(r.fair.known);
    assert_int_equal(r.fair.windows, 1);
    stk_run_result_done(&r);
    stk_flat_tenants_free(&flat);
    stk_cluster_done(&c);
    stk_trace_done(&t);
}

static void a_workload_that_says_nothing_is_refused(void **state)
{
    const char *text = "{\"id\":1,\"submit_s\":0,\"duration_s\":100}\n";
    struct stk_run_options o = {.last_id = UINT32_MAX};
    struct stk_run_result r = {0};
    struct stk_cluster c = {0};
    struct stk_trace t = {0};
    struct stk_err err;

    (void)state;
    assert_int_equal(stk_trace_parse(&t, "t", text, strlen(text), NULL, NULL), 0);
    assert_int_equal(stk_recorded_run(&t, &c, &o, &r, &err), -EINVAL);
    assert_string_equal(err.text, "no job of the workload says how long it waited (waited_s)");
    stk_trace_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cluster_is_as_large_as_it_must_have_been),
        cmocka_unit_test(what_happened_is_summed_up_like_a_run),
        cmocka_unit_test(a_workload_that_says_nothing_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
