/* SPDX-License-Identifier: Apache-2.0 */
/* test_doubt.c - how old things are after the time has jumped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "live/doubt.h"

#define T0 (INT64_C(1700000000) * STK_SECOND)
#define HOUR (INT64_C(3600) * STK_SECOND)
#define DAY (24 * HOUR)

static void a_jump_does_not_count_for_a_day(void **state)
{
    struct stk_doubt d = {0};

    (void)state;
    assert_int_equal(stk_doubt_now(&d, T0), T0);
    stk_doubt_add(&d, 100 * DAY, T0 + 100 * DAY);
    assert_int_equal(stk_doubt_now(&d, T0 + 100 * DAY), T0);
    assert_int_equal(stk_doubt_now(&d, T0 + 101 * DAY - 1), T0 + DAY - 1);
    assert_int_equal(stk_doubt_now(&d, T0 + 101 * DAY), T0 + 101 * DAY);
}

static void jumps_within_a_day_add_up(void **state)
{
    struct stk_doubt d = {0};

    (void)state;
    stk_doubt_add(&d, 100 * DAY, T0 + 100 * DAY);
    stk_doubt_add(&d, 50 * DAY, T0 + 150 * DAY + HOUR); /* an hour later */
    assert_int_equal(stk_doubt_now(&d, T0 + 150 * DAY + HOUR), T0 + HOUR);
    stk_doubt_add(&d, 5 * DAY, T0 + 157 * DAY); /* another day later */
    assert_int_equal(stk_doubt_now(&d, T0 + 157 * DAY), T0 + 152 * DAY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_jump_does_not_count_for_a_day),
        cmocka_unit_test(jumps_within_a_day_add_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
