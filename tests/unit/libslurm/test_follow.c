/* SPDX-License-Identifier: Apache-2.0 */
/* Single jobs are asked for until they have come to rest, those that hurry first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libslurm/follow.h"

static int make(void **state)
{
    *state = stk_slurm_follow_new();
    return *state ? 0 : -1;
}

static int unmake(void **state)
{
    stk_slurm_follow_free(*state);
    return 0;
}

/* 0: nobody is due. */
static uint32_t next(struct stk_slurm_follow *f, int64_t now, enum stk_slurm_rest rest)
{
    struct stk_slurm_followed j;

    if (!stk_slurm_follow_take(f, 1000, now, &j))
        return 0;
    stk_slurm_follow_asked(f, j, now, rest);
    return j.id;
}

static void an_end_comes_before_marks_that_are_due_for_longer(void **state)
{
    struct stk_slurm_follow *f = *state;

    for (uint32_t id = 1; id <= 50; id++)
        stk_slurm_follow_job(f, id, 0, 0, false);
    stk_slurm_follow_job(f, 99, 100, 0, true);
    assert_int_equal(next(f, 100, STK_SLURM_RESTS), 99);
    assert_int_equal(next(f, 100, STK_SLURM_RESTS), 1);
    assert_false(stk_slurm_follow_full(f));
}

static void for_many_marks_all_are_asked_for_once(void **state)
{
    struct stk_slurm_follow *f = *state;

    stk_slurm_follow_job(f, 5000, 0, 10, true);
    for (uint32_t id = 1; id <= 65; id++)
        stk_slurm_follow_job(f, id, 0, 0, false);
    assert_true(stk_slurm_follow_full(f));
    assert_false(stk_slurm_follow_full(f));
    assert_int_equal(next(f, 5, STK_SLURM_RESTS), 0);
    assert_int_equal(next(f, 10, STK_SLURM_RESTS), 5000);
}

static void one_is_asked_for_until_it_rests(void **state)
{
    struct stk_slurm_follow *f = *state;
    uint32_t asked = 0;
    int64_t now = 0;

    stk_slurm_follow_job(f, 7, now, 0, true);
    while (now < 3000) {
        now = stk_slurm_follow_next(f);
        assert_int_equal(next(f, now, STK_SLURM_RESTLESS), 7);
        asked++;
    }
    assert_true(asked > 5 && asked < 40);
    assert_int_equal(next(f, stk_slurm_follow_next(f), STK_SLURM_RESTS), 7);
    assert_true(stk_slurm_follow_next(f) == INT64_MAX);
}

static void one_that_slurm_says_nothing_of_is_asked_for_again(void **state)
{
    struct stk_slurm_follow *f = *state;
    uint32_t asked = 0;

    stk_slurm_follow_job(f, 7, 0, 0, true);
    for (; stk_slurm_follow_next(f) < INT64_MAX; asked++)
        (void)next(f, stk_slurm_follow_next(f), STK_SLURM_SILENT);
    assert_true(asked > 10);
    assert_true(stk_slurm_follow_full(f)); /* in the end all are asked for */
    stk_slurm_follow_job(f, 7, 0, 0, true);
    assert_int_equal(next(f, 0, STK_SLURM_UNKNOWN), 7);
    assert_true(stk_slurm_follow_next(f) == INT64_MAX);
}

static void a_new_reason_is_not_lost_while_it_is_asked_for(void **state)
{
    struct stk_slurm_follow *f = *state;
    struct stk_slurm_followed j;

    stk_slurm_follow_job(f, 7, 0, 0, true);
    assert_true(stk_slurm_follow_take(f, 1000, 0, &j));
    stk_slurm_follow_job(f, 7, 0, 0, true);
    stk_slurm_follow_asked(f, j, 1, STK_SLURM_RESTS);
    assert_int_equal(next(f, 1, STK_SLURM_RESTS), 7);
    assert_int_equal(next(f, 1, STK_SLURM_RESTS), 0);
}

static void new_ones_are_found_by_number(void **state)
{
    struct stk_slurm_follow *f = *state;

    stk_slurm_follow_new_jobs(f, 0);
    assert_int_equal(next(f, 1, STK_SLURM_RESTS), 1001);
    while (stk_slurm_follow_next(f) < INT64_MAX)
        assert_int_equal(next(f, stk_slurm_follow_next(f), STK_SLURM_UNKNOWN), 1001);
    assert_false(stk_slurm_follow_full(f));
    stk_slurm_follow_new_jobs(f, 0);
    while (stk_slurm_follow_next(f) < INT64_MAX)
        (void)next(f, stk_slurm_follow_next(f), STK_SLURM_UNKNOWN);
    assert_true(stk_slurm_follow_full(f)); /* a number was left out */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_end_comes_before_marks_that_are_due_for_longer, make,
                                        unmake),
        cmocka_unit_test_setup_teardown(for_many_marks_all_are_asked_for_once, make, unmake),
        cmocka_unit_test_setup_teardown(one_is_asked_for_until_it_rests, make, unmake),
        cmocka_unit_test_setup_teardown(one_that_slurm_says_nothing_of_is_asked_for_again, make,
                                        unmake),
        cmocka_unit_test_setup_teardown(a_new_reason_is_not_lost_while_it_is_asked_for, make,
                                        unmake),
        cmocka_unit_test_setup_teardown(new_ones_are_found_by_number, make, unmake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
