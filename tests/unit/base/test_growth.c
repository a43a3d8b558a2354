/* SPDX-License-Identifier: Apache-2.0 */
/* test_growth.c - a number that doubles in every half-life. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/growth.h"
#include "base/rng.h"

static void doubles_in_every_half_life(void **state)
{
    (void)state;
    for (uint64_t half = 1; half < UINT64_C(1) << 50; half = half * 7 + 3)
        for (uint64_t n = 0; n <= STK_GROWTH_MOST; n++)
            assert_int_equal(stk_growth(n * half, half), STK_GROWTH_ONE << n);
}

static void roots_are_right(void **state)
{
    (void)state;
    /* 2^(1/2), 2^(1/4), 2^(3/4), 2^(1/10), 2^(9/10) */
    assert_int_equal(stk_growth(1, 2), 1554944255987);
    assert_int_equal(stk_growth(1, 4), 1307547050779);
    assert_int_equal(stk_growth(3, 4), 1849150772653);
    assert_in_range(stk_growth(1, 10), 1178427384399, 1178427384400);
    assert_in_range(stk_growth(9, 10), 2051761246584, 2051761246586);
}

static void never_falls(void **state)
{
    struct stk_rng r;

    (void)state;
    stk_rng_init(&r, 7);
    for (int i = 0; i < 20000; i++) {
        uint64_t half = 1 + stk_rng_below(&r, UINT64_C(1) << 44);
        uint64_t t = stk_rng_below(&r, 25 * half), more = stk_rng_below(&r, 3);

        assert_true(stk_growth(t, half) <= stk_growth(t + more, half));
    }
}

static void stands_still_when_it_is_large(void **state)
{
    (void)state;
    assert_int_equal(stk_growth(UINT64_MAX, 1), STK_GROWTH_ONE << STK_GROWTH_MOST);
    assert_int_equal(stk_growth(1000, 10), STK_GROWTH_ONE << STK_GROWTH_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_in_every_half_life),
        cmocka_unit_test(roots_are_right),
        cmocka_unit_test(never_falls),
        cmocka_unit_test(stands_still_when_it_is_large),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
