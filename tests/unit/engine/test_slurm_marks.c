/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in the administrator's comment of users' jobs in Slurm, and lists of elements. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/slurm/marks.h"

static int join(void *ctx, uint32_t task)
{
    char one[16];

    (void)snprintf(one, sizeof(one), " %u", task);
    (void)strncat(ctx, one, 200 - strlen(ctx));
    return 0;
}

static void elements_are_told_in_order(void **state)
{
    char text[256] = "";

    (void)state;
    assert_int_equal(stk_slurm_tasks("0-8:3,11,20-21%4", 100, join, text), 0);
    assert_string_equal(text, " 0 3 6 11 20 21");
    assert_int_equal(stk_slurm_task_count("0-8:3,11,20-21%4"), 6);
    assert_int_equal(stk_slurm_task_rank("0-8:3,11,20-21", 6), 2);
    assert_int_equal(stk_slurm_task_rank("0-8:3,11,20-21", 11), 3);
    assert_int_equal(stk_slurm_task_rank("0-8:3,11,20-21", 21), 5);
    assert_int_equal(stk_slurm_task_rank("0-8:3,11,20-21", 7), UINT32_MAX);
    assert_int_equal(stk_slurm_task_rank("0-8:3,11,20-21", 12), UINT32_MAX);
    assert_int_equal(stk_slurm_task_at("0-8:3,11,20-21", 2), 6);
    assert_int_equal(stk_slurm_task_at("0-8:3,11,20-21", 5), 21);
    assert_int_equal(stk_slurm_task_at("0-8:3,11,20-21", 6), UINT32_MAX);
}

struct counting {
    struct stk_slurm_ranks now;
    uint32_t there, gone;
};

static int count(void *ctx, uint32_t task)
{
    struct counting *c = ctx;

    if (stk_slurm_next_rank(&c->now, task) == UINT32_MAX)
        c->gone++;
    else
        c->there++;
    return 0;
}

/* A hundred thousand elements of which every third was cancelled: looked up one by one in the list
 * that is left, this takes a minute. */
static void an_array_full_of_holes_is_walked_once(void **state)
{
    char *list = malloc(16 * 33400), *p = list;
    struct counting c = {.there = 0};

    (void)state;
    for (uint32_t i = 0; i + 2 < 100000; i += 3)
        p += sprintf(p, "%s%u-%u", i ? "," : "", i, i + 1);
    c.now = stk_slurm_ranks(list);
    assert_int_equal(stk_slurm_tasks("0-99998", 100000, count, &c), 0);
    assert_true(c.there == 66666 && c.gone == 33333);
    assert_int_equal(stk_slurm_task_rank(list, 99997), 66665);
    free(list);
}

static void ranks_are_told_in_order(void **state)
{
    struct stk_slurm_ranks k = stk_slurm_ranks("0-8:3,11,20-21%4");

    (void)state;
    assert_int_equal(stk_slurm_next_rank(&k, 0), 0);
    assert_int_equal(stk_slurm_next_rank(&k, 1), UINT32_MAX);
    assert_int_equal(stk_slurm_next_rank(&k, 6), 2);
    assert_int_equal(stk_slurm_next_rank(&k, 10), UINT32_MAX);
    assert_int_equal(stk_slurm_next_rank(&k, 11), 3);
    assert_int_equal(stk_slurm_next_rank(&k, 21), 5);
    assert_int_equal(stk_slurm_next_rank(&k, 22), UINT32_MAX);
    assert_int_equal(stk_slurm_next_rank(&k, 23), UINT32_MAX);
    k = stk_slurm_ranks("0-8:30,1-1"); /* that ends before it says */
    assert_int_equal(stk_slurm_next_rank(&k, 0), 0);
    assert_int_equal(stk_slurm_next_rank(&k, 1), 1);
}

static void what_is_no_list_is_refused(void **state)
{
    static const char *const bad[] = {"",    "a",    "1-",         "3-1", "1-9:0", "1,,2",
                                      "5,3", "1-3x", "4294967295", "-1",  "1-5,5", "..."};
    char text[256] = "";

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(stk_slurm_task_count(bad[i]), 0);
        assert_int_equal(stk_slurm_tasks(bad[i], 100, join, text), -EINVAL);
    }
    assert_int_equal(stk_slurm_tasks("0-999", 100, join, text), -E2BIG);
}

static void a_mark_comes_back_as_it_was_written(void **state)
{
    struct stk_slurm_mark m = {.first = 7, .held = true, .pinned = 45}, r;
    char text[1200];

    (void)state;
    (void)snprintf(m.tasks, sizeof(m.tasks), "0-8:2");
    stk_slurm_mark_write(&m, "abc", text, sizeof(text));
    assert_string_equal(text, "stoker abc 7 hp45 0-8:2");
    assert_true(stk_slurm_mark_read(text, "abc", &r));
    assert_true(r.first == 7 && r.held && r.pinned == 45 && !r.by_user);
    assert_string_equal(r.tasks, "0-8:2");
    m = (struct stk_slurm_mark){.first = 12};
    stk_slurm_mark_write(&m, "abc", text, sizeof(text));
    assert_string_equal(text, "stoker abc 12 -");
    assert_true(stk_slurm_mark_read(text, "abc", &r));
    assert_true(r.first == 12 && !r.held && !r.tasks[0]);
}

static void others_marks_are_not_ours(void **state)
{
    static const char *const bad[] = {"",
                                      "stoker",
                                      "stoker abcd 7 -",
                                      "stoker abc",
                                      "stoker abc 0 -",
                                      "stoker abc 7",
                                      "stoker abc 7 x",
                                      "stoker abc 7 - 3-1",
                                      "stoker abc 99999999999 -"};
    struct stk_slurm_mark r;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(stk_slurm_mark_read(bad[i], "abc", &r));
    assert_false(stk_slurm_mark_read(NULL, "abc", &r));
}

static void a_job_that_was_sent_has_number_and_lease(void **state)
{
    static const char *const bad[] = {"",
                                      "stoker",
                                      "stoker abc 7",
                                      "stoker abc 7 -",
                                      "stoker abc 7 p12",
                                      "x",
                                      "stoker abc",
                                      "stoker abc 7 ",
                                      "stoker abc 0 12",
                                      "stoker abc 7 12 1-3",
                                      "stokers abc 7 12",
                                      "stoker abcd 7 12",
                                      "stoker abc 7 12x",
                                      "stoker abc 7 99999999999"};
    uint32_t number = 0, lease = 0;
    struct stk_slurm_mark r;

    (void)state;
    assert_true(stk_slurm_sent_read("stoker abc 7 12", "abc", &number, &lease));
    assert_true(number == 7 && lease == 12);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(stk_slurm_sent_read(bad[i], "abc", &number, &lease));
    assert_false(stk_slurm_sent_read(NULL, "abc", &number, &lease));
    assert_false(stk_slurm_mark_read("stoker abc 7 12", "abc", &r));
}

static void a_claim_has_a_signal_and_a_sentence(void **state)
{
    struct stk_slurm_claim c;
    char text[128];

    (void)state;
    assert_true(stk_slurm_claim_read("stoker", &c));
    assert_true(!c.signal && !c.refused);
    assert_true(stk_slurm_claim_read("stoker signal=10@30B", &c));
    assert_true(c.signal == 10 && c.seconds == 30 && c.batch && !c.refused);
    stk_slurm_claim_write(&c, "no such tenant", text, sizeof(text));
    assert_string_equal(text, "stoker signal=10@30B: no such tenant");
    assert_true(stk_slurm_claim_read(text, &c));
    assert_true(c.signal == 10 && c.refused);
    assert_false(stk_slurm_claim_read("stokers", &c));
    assert_false(stk_slurm_claim_read("stoker abc 7 -", &c));
    assert_false(stk_slurm_claim_read("stoker signal=99@1", &c));
    assert_false(stk_slurm_claim_read("stoker signal=9", &c));
    assert_false(stk_slurm_claim_read(NULL, &c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_told_in_order),
        cmocka_unit_test(ranks_are_told_in_order),
        cmocka_unit_test(an_array_full_of_holes_is_walked_once),
        cmocka_unit_test(what_is_no_list_is_refused),
        cmocka_unit_test(a_mark_comes_back_as_it_was_written),
        cmocka_unit_test(others_marks_are_not_ours),
        cmocka_unit_test(a_job_that_was_sent_has_number_and_lease),
        cmocka_unit_test(a_claim_has_a_signal_and_a_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
