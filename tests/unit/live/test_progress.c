/* SPDX-License-Identifier: Apache-2.0 */
#include "live/progress.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define S STK_SECOND

static void a_first_report_of_some_steps_says_how_long_it_will_take(void **state)
{
    struct stk_progress p = {0};

    (void)state;
    assert_true(stk_progress_step(&p, 40 * S, 40, 600, true));
    assert_int_equal(p.total, 600 * S); /* 560 s more, not "nearly done" */
    assert_true(stk_progress_due(&p, 40 * S, 20 * S));
}

static void what_comes_before_the_first_step_is_no_work(void **state)
{
    struct stk_progress p = {0};

    (void)state;
    assert_false(stk_progress_step(&p, 300 * S, 0, 600, true)); /* five minutes of start-up */
    assert_false(stk_progress_due(&p, 300 * S, 0));
    assert_true(stk_progress_step(&p, 340 * S, 40, 600, true));
    assert_int_equal(p.total, 900 * S);
    assert_true(stk_progress_step(&p, 600 * S, 300, 600, true));
    assert_int_equal(p.total, 900 * S);
}

static void few_steps_alone_say_nothing(void **state)
{
    struct stk_progress p = {0};

    (void)state;
    assert_false(stk_progress_step(&p, 61 * S, 1, 600, true)); /* most of it was the start */
    assert_true(stk_progress_step(&p, 63 * S, 3, 600, true));
    assert_int_equal(p.total, (63 + 597) * S);
}

static void who_was_started_before_is_measured_between_two_reports(void **state)
{
    struct stk_progress p = {0};

    (void)state;
    assert_false(stk_progress_step(&p, 100 * S, 400, 600, false)); /* from a checkpoint */
    assert_true(stk_progress_step(&p, 110 * S, 405, 600, false));
    assert_int_equal(p.total, (110 + 390) * S);
}

static void who_goes_back_or_counts_otherwise_is_measured_anew(void **state)
{
    struct stk_progress p = {0};

    (void)state;
    assert_true(stk_progress_step(&p, 100 * S, 100, 200, true));
    assert_int_equal(p.total, 200 * S);
    assert_false(stk_progress_step(&p, 110 * S, 50, 200, true)); /* back to a checkpoint */
    assert_int_equal(p.total, 200 * S);                          /* until more is known */
    assert_true(stk_progress_step(&p, 120 * S, 55, 200, true));
    assert_int_equal(p.total, (120 + 290) * S);
    assert_false(stk_progress_step(&p, 130 * S, 60, 1000, true)); /* another number of steps */
    assert_true(stk_progress_step(&p, 140 * S, 70, 1000, true));
    assert_int_equal(p.total, (140 + 930) * S);
}

static void the_scheduler_is_told_rarely_and_only_of_news(void **state)
{
    struct stk_progress p = {0};
    int told = 0;

    (void)state;
    for (int i = 1; i <= 60000; i++) { /* a hundred times a second, for ten minutes */
        stk_time ran = i * (S / 100);

        if (stk_progress_step(&p, ran, i % 2 ? 0.2 * i : 0.1 * i, 1e6, true) &&
            stk_progress_due(&p, ran, p.told ? 1 : 3600 * S)) {
            p.told = true;
            p.told_at = ran;
            told++;
        }
    }
    assert_in_range(told, 1, 10);
    p = (struct stk_progress){0};
    assert_true(stk_progress_step(&p, 100 * S, 100, 200, true));
    assert_false(stk_progress_due(&p, 100 * S, 105 * S)); /* as expected, nearly */
    assert_true(stk_progress_due(&p, 100 * S, 120 * S));
    p.told = true;
    p.told_at = 100 * S;
    assert_false(stk_progress_due(&p, 159 * S, 500 * S));
    assert_true(stk_progress_due(&p, 160 * S, 500 * S));
}

static void what_makes_no_sense_is_not_heeded(void **state)
{
    static const double bad[][2] = {{-1, 10},  {11, 10},   {1, 0},    {1, -5},
                                    {1, 1e16}, {5, 1e308}, {0.5, 0.9}};
    struct stk_progress p = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(stk_progress_step(&p, 100 * S, bad[i][0], bad[i][1], true));
    assert_false(stk_progress_step(&p, 100 * S, NAN, 10, true));
    assert_false(stk_progress_step(&p, 100 * S, 1, NAN, true));
    assert_false(stk_progress_step(&p, 100 * S, INFINITY, INFINITY, true));
    assert_false(stk_progress_step(&p, -1, 5, 10, true));
    assert_int_equal(p.total, 0);
    assert_false(stk_progress_step(&p, 0, 0, 1e15, true));
    assert_true(stk_progress_step(&p, 1000 * S, 1e-300, 1e15, true)); /* it will never end */
    assert_int_equal(p.total, STK_MAX_DURATION);
    assert_int_equal(stk_progress_chance(&p, 1000 * S, 999), STK_MAX_DURATION);
}

static void chances_lie_around_what_is_left(void **state)
{
    struct stk_progress p = {0};
    stk_time before = 0;

    (void)state;
    assert_true(stk_progress_step(&p, 100 * S, 100, 300, true));
    assert_int_equal(stk_progress_chance(&p, 100 * S, 500), 300 * S);
    assert_in_range(stk_progress_chance(&p, 100 * S, 900), 329 * S, 331 * S);
    for (uint32_t milli = 1; milli < 1000; milli++) {
        stk_time t = stk_progress_chance(&p, 100 * S, milli);

        assert_true(t > 100 * S && t >= before);
        before = t;
    }
    assert_true(stk_progress_chance(&p, 400 * S, 1) > 400 * S); /* later than it said */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_report_of_some_steps_says_how_long_it_will_take),
        cmocka_unit_test(what_comes_before_the_first_step_is_no_work),
        cmocka_unit_test(few_steps_alone_say_nothing),
        cmocka_unit_test(who_was_started_before_is_measured_between_two_reports),
        cmocka_unit_test(who_goes_back_or_counts_otherwise_is_measured_anew),
        cmocka_unit_test(the_scheduler_is_told_rarely_and_only_of_news),
        cmocka_unit_test(what_makes_no_sense_is_not_heeded),
        cmocka_unit_test(chances_lie_around_what_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
