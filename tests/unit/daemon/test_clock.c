/* SPDX-License-Identifier: Apache-2.0 */
/* test_clock.c - the scheduler's time under a wall clock that people set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "daemon/clock.h"

#define T0 (INT64_C(1700000000) * STK_SECOND)
#define HOUR (INT64_C(3600) * STK_SECOND)

static void it_follows_a_clock_that_is_set_forward(void **state)
{
    struct stk_clock c = {0};

    (void)state;
    assert_int_equal(stk_clock_read(&c, T0, 5), T0);
    assert_int_equal(stk_clock_read(&c, T0 + HOUR + STK_SECOND, 5 + STK_SECOND), T0 + STK_SECOND);
    assert_int_equal(c.behind, HOUR);
    assert_int_equal(stk_clock_skip(&c), HOUR);
    assert_int_equal(c.now, T0 + HOUR + STK_SECOND);
    assert_int_equal(stk_clock_skip(&c), 0);
    assert_int_equal(stk_clock_read(&c, T0 + HOUR + 2 * STK_SECOND, 5 + 2 * STK_SECOND),
                     T0 + HOUR + 2 * STK_SECOND);
    assert_int_equal(c.ahead, 0);
}

static void it_does_not_follow_a_jump_that_was_taken_back(void **state)
{
    struct stk_clock c = {0};

    (void)state;
    (void)stk_clock_read(&c, T0, 0);
    assert_int_equal(stk_clock_read(&c, T0 + HOUR + STK_SECOND, STK_SECOND), T0 + STK_SECOND);
    assert_int_equal(stk_clock_read(&c, T0 + 2 * STK_SECOND, 2 * STK_SECOND), T0 + 2 * STK_SECOND);
    assert_int_equal(stk_clock_skip(&c), 0);
    assert_int_equal(c.ahead, 0);
    assert_int_equal(c.set_back, 0);
}

static void it_goes_on_when_the_clock_is_set_back(void **state)
{
    struct stk_clock c = {0};
    stk_time now = T0, wall = T0 - HOUR;

    (void)state;
    (void)stk_clock_read(&c, T0, 0);
    for (int64_t s = 1; c.ahead > 0 || s < 10; s++) {
        stk_time next = stk_clock_read(&c, wall + s * STK_SECOND, s * STK_SECOND);

        assert_in_range(next - now, STK_SECOND * 95 / 100, STK_SECOND);
        now = next;
        assert_true(s < 21 * 3600); /* an hour is worked off in twenty */
    }
    assert_in_range(c.set_back, HOUR - STK_SECOND, HOUR + STK_SECOND);
    assert_int_equal(c.behind, 0);
}

static void it_goes_on_from_the_last_event(void **state)
{
    struct stk_clock c = {0};

    (void)state;
    (void)stk_clock_read(&c, T0, 0);
    stk_clock_raise(&c, T0 - HOUR);
    assert_int_equal(c.now, T0);
    stk_clock_raise(&c, T0 + 9 * 24 * HOUR);
    assert_int_equal(c.ahead, 9 * 24 * HOUR);
    assert_in_range(stk_clock_read(&c, T0 + 4 * STK_SECOND, 4 * STK_SECOND) - T0 - 9 * 24 * HOUR,
                    38 * STK_SECOND / 10, 4 * STK_SECOND);
}

static void it_never_goes_back_and_never_stands_still(void **state)
{
    struct stk_rng r;

    (void)state;
    stk_rng_init(&r, 3);
    for (int round = 0; round < 200; round++) {
        struct stk_clock c = {0};
        stk_time wall = T0, elapsed = 0, now = stk_clock_read(&c, wall, elapsed);

        for (int i = 0; i < 200; i++) {
            stk_time passed = (stk_time)stk_rng_below(&r, 10 * STK_SECOND), next;

            elapsed += passed;
            wall += passed;
            if (stk_rng_below(&r, 10) == 0)
                wall += (stk_time)stk_rng_below(&r, 2 * (uint64_t)HOUR) - HOUR;
            next = stk_clock_read(&c, wall, elapsed) + stk_clock_skip(&c);
            assert_int_equal(next, c.now);
            assert_true(next - now >= passed - passed / 20 && next >= wall);
            assert_int_equal(c.ahead, next - wall);
            now = next;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_follows_a_clock_that_is_set_forward),
        cmocka_unit_test(it_does_not_follow_a_jump_that_was_taken_back),
        cmocka_unit_test(it_goes_on_when_the_clock_is_set_back),
        cmocka_unit_test(it_goes_on_from_the_last_event),
        cmocka_unit_test(it_never_goes_back_and_never_stands_still),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
