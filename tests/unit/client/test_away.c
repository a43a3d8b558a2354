/* SPDX-License-Identifier: Apache-2.0 */
/* test_away.c - how often a daemon that is away is asked again, and when the user is told. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/away.h"

static void only_a_daemon_that_is_not_there_is_away(void **state)
{
    (void)state;
    assert_true(stk_away_is(-EHOSTDOWN) && stk_away_is(-EPIPE) && stk_away_is(-ETIMEDOUT));
    assert_false(stk_away_is(0) || stk_away_is(1) || stk_away_is(-ENOENT) || stk_away_is(-EPERM) ||
                 stk_away_is(-EINTR));
}

static void the_user_is_told_once_and_after_a_second(void **state)
{
    struct stk_away a = {0};

    (void)state;
    assert_false(stk_away_lost(&a, 100.0));
    assert_false(stk_away_lost(&a, 100.9));
    assert_true(stk_away_lost(&a, 101.0));
    assert_false(stk_away_lost(&a, 500.0));
    stk_away_back(&a);
    assert_false(stk_away_lost(&a, 501.0));
    assert_true(stk_away_lost(&a, 503.0));
}

static void pauses_grow_up_to_a_second(void **state)
{
    struct stk_away a = {0};
    int before = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        (void)stk_away_lost(&a, 1.0);
        assert_true(stk_away_pause_ms(&a) >= before && stk_away_pause_ms(&a) <= 1000);
        before = stk_away_pause_ms(&a);
    }
    assert_int_equal(before, 1000);
    stk_away_back(&a);
    (void)stk_away_lost(&a, 2.0);
    assert_int_equal(stk_away_pause_ms(&a), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_daemon_that_is_not_there_is_away),
        cmocka_unit_test(the_user_is_told_once_and_after_a_second),
        cmocka_unit_test(pauses_grow_up_to_a_second),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
