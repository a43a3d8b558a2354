/* SPDX-License-Identifier: Apache-2.0 */
/* test_solve.c - shares of time by linear programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "lp/solve.h"

#define NEAR 1e-4

/* One fast and one slow GPU; to the first job both are the same, the second needs the fast one. */
static const double count[] = {1, 1}, gpus[] = {1, 1}, ones[] = {1, 1}, zeros[] = {0, 0};
static const double speed[] = {2, 2, 2, 0};

static void the_least_progress_is_largest(void **state)
{
    const struct stk_lp p = {2, 2, count, gpus, ones, zeros, speed};
    double z, x[4];

    (void)state;
    assert_int_equal(stk_lp_solve(&p, &z, x), 0);
    assert_true(z > 2 - NEAR && z < 2 + NEAR);
    assert_true(x[1] > 1 - NEAR && x[2] > 1 - NEAR && x[0] < NEAR);
}

static void what_cannot_be_is_said(void **state)
{
    const double much[] = {2.1, 0}, half[] = {1, 1};
    struct stk_lp p = {2, 2, count, gpus, zeros, much, speed};
    double z, x[4];

    (void)state;
    assert_int_equal(stk_lp_solve(&p, &z, x), -ERANGE);
    p.need = half;
    assert_int_equal(stk_lp_solve(&p, &z, x), 0);
    assert_true(2 * (x[0] + x[1]) >= 1 - NEAR && 2 * x[2] >= 1 - NEAR);
    assert_true(x[0] + x[2] <= 1 + NEAR && x[1] + x[3] <= 1 + NEAR && x[0] + x[1] <= 1 + NEAR);
}

static void equal_jobs_have_equal_shares(void **state)
{
    const double same[] = {1, 1, 1, 1};
    const struct stk_lp p = {2, 2, count, gpus, ones, zeros, same};
    double z, x[4];

    (void)state;
    assert_int_equal(stk_lp_solve(&p, &z, x), 0);
    for (int i = 0; i < 4; i++) /* the middle, not a corner */
        assert_true(x[i] > 0.4 && x[i] < 0.6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_progress_is_largest),
        cmocka_unit_test(what_cannot_be_is_said),
        cmocka_unit_test(equal_jobs_have_equal_shares),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
