/* SPDX-License-Identifier: Apache-2.0 */
/* test_rng.c - the generator is the published one, and its derived numbers are uniform. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

/* The first outputs of xoshiro256** from the state {1, 2, 3, 4}, as its authors' program prints
 * them. */
static void is_the_published_generator(void **state)
{
    static const uint64_t want[] = {11520,
                                    0,
                                    1509978240,
                                    UINT64_C(1215971899390074240),
                                    UINT64_C(1216172134540287360),
                                    UINT64_C(607988272756665600),
                                    UINT64_C(16172922978634559625),
                                    UINT64_C(8476171486693032832),
                                    UINT64_C(10595114339597558777),
                                    UINT64_C(2904607092377533576)};
    struct stk_rng r = {{1, 2, 3, 4}};

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
        assert_true(stk_rng_next(&r) == want[i]);
}

/* splitmix64 from the seed 1234567: the published test values. */
static void a_seed_fills_the_state_by_splitmix(void **state)
{
    struct stk_rng r;

    (void)state;
    stk_rng_init(&r, 1234567);
    assert_true(r.s[0] == UINT64_C(6457827717110365317));
    assert_true(r.s[1] == UINT64_C(3203168211198807973));
    assert_true(r.s[2] == UINT64_C(9817491932198370423));
    assert_true(r.s[3] == UINT64_C(4593380528125082431));
    stk_rng_init(&r, 0);
    assert_true(r.s[0] | r.s[1] | r.s[2] | r.s[3]);
}

static void below_stays_below_and_is_uniform(void **state)
{
    static const uint64_t bounds[] = {2, 3, 10, 64};
    uint32_t low = 0;
    struct stk_rng r;

    (void)state;
    stk_rng_init(&r, 5);
    assert_int_equal(stk_rng_below(&r, 0), 0);
    assert_int_equal(stk_rng_below(&r, 1), 0);
    for (size_t k = 0; k < 4; k++) {
        uint32_t count[64] = {0}, n = 64000;
        double chi = 0, each = (double)n / (double)bounds[k];

        for (uint32_t i = 0; i < n; i++) {
            uint64_t x = stk_rng_below(&r, bounds[k]);

            assert_true(x < bounds[k]);
            count[x]++;
        }
        for (uint64_t i = 0; i < bounds[k]; i++)
            chi += (count[i] - each) * (count[i] - each) / each;
        assert_true(chi < (double)bounds[k] + 6 * sqrt(2.0 * (double)bounds[k]));
    }
    for (int i = 0; i < 1000; i++)
        assert_true(stk_rng_below(&r, (UINT64_C(1) << 63) + 1) <= UINT64_C(1) << 63);
    /* 3 * 2^62: without rejection the lowest third would come up half of the time */
    for (int i = 0; i < 3000; i++)
        low += stk_rng_below(&r, UINT64_C(3) << 62) < UINT64_C(1) << 62;
    assert_true(low > 850 && low < 1150);
}

static void unit_is_in_zero_to_one(void **state)
{
    struct stk_rng r;
    double sum = 0, least = 1, most = 0;

    (void)state;
    stk_rng_init(&r, 9);
    for (int i = 0; i < 100000; i++) {
        double x = stk_rng_unit(&r);

        assert_true(x >= 0 && x < 1);
        sum += x;
        least = x < least ? x : least;
        most = x > most ? x : most;
    }
    assert_true(fabs(sum / 100000 - 0.5) < 0.01 && least < 0.001 && most > 0.999);
}

static void equal_seeds_are_equal_and_close_ones_are_not(void **state)
{
    struct stk_rng a, b, c;
    uint32_t same = 0;

    (void)state;
    stk_rng_init(&a, 100);
    stk_rng_init(&b, 100);
    stk_rng_init(&c, 101);
    for (int i = 0; i < 1000; i++) {
        uint64_t x = stk_rng_next(&a);

        assert_true(x == stk_rng_next(&b));
        same += (uint32_t)__builtin_popcountll(~(x ^ stk_rng_next(&c)));
    }
    assert_true(same > 31000 && same < 33000); /* of 64000 bits, half */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_published_generator),
        cmocka_unit_test(a_seed_fills_the_state_by_splitmix),
        cmocka_unit_test(below_stays_below_and_is_uniform),
        cmocka_unit_test(unit_is_in_zero_to_one),
        cmocka_unit_test(equal_seeds_are_equal_and_close_ones_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
