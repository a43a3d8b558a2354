/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose start has failed rest; gangs that were in each other's way do not rest equally long.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/slurm/inner.h"

#define ROUNDS 16u

static bool differ(stk_job_number a, stk_job_number b, uint32_t from)
{
    for (uint32_t times = from; times < from + ROUNDS; times++)
        if (stk_slurm_odd_ms(a, times) != stk_slurm_odd_ms(b, times))
            return true;
    return false;
}

static void any_two_differ_some_time(void **state)
{
    (void)state;
    for (stk_job_number a = 1; a < 200; a++)
        for (stk_job_number b = a + 1; b < 200; b++) {
            assert_true(differ(a, b, 1));
            assert_true(differ(a, b, 100)); /* also when they have been at it for long */
        }
    assert_true(differ(8, 8 + (1u << 30), 1));
}

static void neighbours_differ_at_once(void **state)
{
    (void)state;
    for (stk_job_number n = 1; n < 100; n++)
        assert_int_not_equal(stk_slurm_odd_ms(n, 1), stk_slurm_odd_ms(n + 1, 1));
}

static void twice_as_long_each_time_up_to_five_minutes(void **state)
{
    (void)state;
    for (stk_job_number n = 1; n < 100; n++)
        for (uint32_t times = 1; times < 100; times++) {
            const int64_t ms = stk_slurm_odd_ms(n, times),
                          least = times < 5 ? 5000 << (times - 1) : 75000;

            assert_in_range(ms, least, 4 * least);
            assert_int_equal(ms % least, 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_two_differ_some_time),
        cmocka_unit_test(neighbours_differ_at_once),
        cmocka_unit_test(twice_as_long_each_time_up_to_five_minutes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
