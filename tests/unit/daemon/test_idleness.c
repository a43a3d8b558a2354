/* SPDX-License-Identifier: Apache-2.0 */
/* Idle jobs: readings in, steps out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/idleness.h"

#define S STK_SECOND

static const struct stk_idle_rule rule = {.warn_s = 10, .suspend_s = 20, .end_s = 40};

static void see_gpu(struct stk_idle *i, double pct, stk_time now)
{
    stk_idle_see(i, &rule,
                 &(struct stk_idle_reading){.on_gpus = true, .gpu_known = true, .gpu_pct = pct},
                 now);
}

static void see_cpu(struct stk_idle *i, double used, stk_time now)
{
    stk_idle_see(i, &rule, &(struct stk_idle_reading){.cpu_known = true, .cpu_s = used}, now);
}

static void a_gpu_at_work_is_activity(void **state)
{
    struct stk_idle_rule some = {.below_pct = 5};
    struct stk_idle i;

    (void)state;
    stk_idle_begin(&i, 0);
    see_gpu(&i, 0, 5 * S);
    assert_int_equal(i.since, 0);
    see_gpu(&i, 1, 6 * S);
    assert_int_equal(i.since, 6 * S);
    stk_idle_see(&i, &some,
                 &(struct stk_idle_reading){.on_gpus = true, .gpu_known = true, .gpu_pct = 5},
                 9 * S);
    assert_int_equal(i.since, 6 * S);
}

static void power_counts_where_nothing_else_is_known(void **state)
{
    struct stk_idle_reading r = {.on_gpus = true, .power_known = true, .power_w = 90};
    struct stk_idle i;

    (void)state;
    stk_idle_begin(&i, 0);
    stk_idle_see(&i, &rule, &r, 1 * S);
    assert_int_equal(i.since, 0); /* the lowest so far is taken for idle */
    r.power_w = 70;
    stk_idle_see(&i, &rule, &r, 2 * S);
    assert_int_equal(i.since, 0);
    r.power_w = 100;
    stk_idle_see(&i, &rule, &r, 3 * S);
    assert_int_equal(i.since, 3 * S);
}

static void what_is_not_known_is_no_idleness(void **state)
{
    struct stk_idle i;

    (void)state;
    stk_idle_begin(&i, 0);
    stk_idle_see(&i, &rule, &(struct stk_idle_reading){.on_gpus = true}, 7 * S);
    assert_int_equal(i.since, 7 * S);
    stk_idle_see(&i, &rule, &(struct stk_idle_reading){.cpu_known = false}, 8 * S);
    assert_int_equal(i.since, 8 * S);
}

static void cpu_time_counts_without_gpus(void **state)
{
    struct stk_idle i;

    (void)state;
    stk_idle_begin(&i, 0);
    see_cpu(&i, 100, 1 * S); /* used before we looked */
    assert_int_equal(i.since, 0);
    see_cpu(&i, 100.005, 2 * S); /* half a percent: a heartbeat */
    assert_int_equal(i.since, 0);
    see_cpu(&i, 100.105, 3 * S);
    assert_int_equal(i.since, 3 * S);
    see_cpu(&i, 50, 4 * S); /* a process has gone, and its time with it */
    assert_int_equal(i.since, 3 * S);
}

static void typing_counts_beside_the_rest(void **state)
{
    struct stk_idle_reading r = {
        .on_gpus = true, .gpu_known = true, .pty_known = true, .pty_idle_s = 3};
    struct stk_idle i;

    (void)state;
    stk_idle_begin(&i, 0);
    stk_idle_see(&i, &rule, &r, 10 * S);
    assert_int_equal(i.since, 7 * S);
    r.pty_idle_s = 100;
    stk_idle_see(&i, &rule, &r, 11 * S);
    assert_int_equal(i.since, 7 * S);
    r.gpu_pct = 50; /* a training in a session that says nothing */
    stk_idle_see(&i, &rule, &r, 12 * S);
    assert_int_equal(i.since, 12 * S);
}

static void a_warning_comes_first_and_goes_with_activity(void **state)
{
    const struct stk_idle_around wanted = {.wanted = true, .may_suspend = true};
    struct stk_idle i;

    (void)state;
    stk_idle_begin(&i, 0);
    assert_int_equal(stk_idle_next(&i, &rule, &wanted, 9 * S), STK_IDLE_NOTHING);
    assert_int_equal(stk_idle_next(&i, &rule, &wanted, 10 * S), STK_IDLE_WARN);
    assert_int_equal(stk_idle_next(&i, &rule, &wanted, 11 * S), STK_IDLE_NOTHING);
    see_gpu(&i, 50, 12 * S);
    assert_int_equal(stk_idle_next(&i, &rule, &wanted, 12 * S), STK_IDLE_CLEAR);
    assert_int_equal(stk_idle_next(&i, &rule, &wanted, 13 * S), STK_IDLE_NOTHING);
    assert_int_equal(stk_idle_next(&i, &rule, &wanted, 60 * S), STK_IDLE_WARN); /* even if late */
    assert_int_equal(stk_idle_next(&i, &rule, &wanted, 60 * S), STK_IDLE_END);
}

static void it_is_suspended_only_for_others(void **state)
{
    struct stk_idle_around a = {.may_suspend = true};
    struct stk_idle i;

    (void)state;
    stk_idle_begin(&i, 0);
    assert_int_equal(stk_idle_next(&i, &rule, &a, 20 * S), STK_IDLE_WARN);
    assert_int_equal(stk_idle_next(&i, &rule, &a, 21 * S), STK_IDLE_NOTHING);
    assert_true(stk_idle_due(&i, &rule, 21 * S));
    a.wanted = true;
    a.may_suspend = false;
    assert_int_equal(stk_idle_next(&i, &rule, &a, 22 * S), STK_IDLE_NOTHING);
    a.may_suspend = true;
    assert_int_equal(stk_idle_next(&i, &rule, &a, 23 * S), STK_IDLE_SUSPEND);
}

static void asleep_it_is_woken_when_nobody_waits(void **state)
{
    struct stk_idle_around a = {.asleep = true, .wanted = true, .gpus_free = true};
    struct stk_idle i;

    (void)state;
    stk_idle_begin(&i, 0);
    assert_int_equal(stk_idle_next(&i, &rule, &a, 25 * S), STK_IDLE_NOTHING);
    a.wanted = false;
    assert_int_equal(stk_idle_next(&i, &rule, &a, 26 * S), STK_IDLE_NOTHING);
    a.gpus_free = false; /* somebody was quicker */
    assert_int_equal(stk_idle_next(&i, &rule, &a, 27 * S), STK_IDLE_NOTHING);
    a.gpus_free = true;
    assert_int_equal(stk_idle_next(&i, &rule, &a, 28 * S), STK_IDLE_NOTHING);
    assert_int_equal(stk_idle_next(&i, &rule, &a, 30 * S), STK_IDLE_WAKE);
    a.wanted = true;
    a.typed = true;
    assert_int_equal(stk_idle_next(&i, &rule, &a, 31 * S), STK_IDLE_WAKE);
    a.typed = false;
    assert_int_equal(stk_idle_next(&i, &rule, &a, 40 * S), STK_IDLE_END);
}

static void without_rules_nothing_happens(void **state)
{
    const struct stk_idle_rule none = {0};
    const struct stk_idle_around a = {.wanted = true, .may_suspend = true};
    struct stk_idle i;

    (void)state;
    stk_idle_begin(&i, 0);
    assert_int_equal(stk_idle_next(&i, &none, &a, 1000000 * S), STK_IDLE_NOTHING);
    assert_false(stk_idle_due(&i, &none, 1000000 * S));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_at_work_is_activity),
        cmocka_unit_test(power_counts_where_nothing_else_is_known),
        cmocka_unit_test(what_is_not_known_is_no_idleness),
        cmocka_unit_test(cpu_time_counts_without_gpus),
        cmocka_unit_test(typing_counts_beside_the_rest),
        cmocka_unit_test(a_warning_comes_first_and_goes_with_activity),
        cmocka_unit_test(it_is_suspended_only_for_others),
        cmocka_unit_test(asleep_it_is_woken_when_nobody_waits),
        cmocka_unit_test(without_rules_nothing_happens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
