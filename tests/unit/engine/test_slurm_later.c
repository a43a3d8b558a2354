/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that can wait do not keep others waiting, and what is asked of one job stays in order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/slurm/inner.h"
#include "sys/big.h"

static char asked[256]; /* names of requests, in the order in which Slurm was asked */

/* In place of the link to stoker-libslurm. */
int stk_slurm_ask_now(struct stk_slurm *m, json_t *take_request, const struct stk_slurm_job *j,
                      stk_slurm_answer_fn fn, bool later)
{
    (void)m;
    (void)j;
    (void)fn;
    assert_true(later);
    (void)strncat(asked, json_string_value(json_object_get(take_request, "name")),
                  sizeof(asked) - strlen(asked) - 1);
    json_decref(take_request);
    return 0;
}

static int make(void **state)
{
    static struct stk_slurm m;

    m = (struct stk_slurm){.mem = stk_big_mem};
    asked[0] = '\0';
    *state = &m;
    return 0;
}

static int unmake(void **state)
{
    struct stk_slurm *m = *state;

    stk_slurm_later_drop(m);
    stk_mem_drop(&m->mem, &m->later, &m->cap_later, sizeof(*m->later));
    return 0;
}

static json_t *request(json_t *take_job, const char *name)
{
    return json_pack("{s:o,s:s}", "job", take_job, "name", name);
}

static void ask_seven(struct stk_slurm *m)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};

    for (uint32_t i = 0; i < 7; i++)
        stk_slurm_ask_later(m, request(json_integer(i + 1), names[i]));
}

static void a_few_are_under_way_at_a_time(void **state)
{
    struct stk_slurm *m = *state;

    ask_seven(m);
    assert_string_equal(asked, "abcd");
    stk_slurm_later_answered(m);
    assert_string_equal(asked, "abcde");
    for (int i = 0; i < 6; i++)
        stk_slurm_later_answered(m);
    assert_string_equal(asked, "abcdefg");
    stk_slurm_ask_later(m, request(json_integer(9), "h"));
    assert_string_equal(asked, "abcdefgh");
}

static void what_is_asked_of_one_job_stays_in_order(void **state)
{
    struct stk_slurm *m = *state;
    json_t *start = request(json_integer(7), "start");

    ask_seven(m);
    stk_slurm_later_first(m, start);
    assert_string_equal(asked, "abcdg");
    stk_slurm_later_first(m, start);
    assert_string_equal(asked, "abcdg");
    for (int i = 0; i < 3; i++)
        stk_slurm_later_answered(m);
    assert_string_equal(asked, "abcdgef");
    json_decref(start);
}

static void an_element_is_of_its_array(void **state)
{
    struct stk_slurm *m = *state;
    json_t *start = request(json_string("12_3"), "start");

    ask_seven(m);
    stk_slurm_ask_later(m, request(json_integer(12), "x"));
    stk_slurm_ask_later(m, request(json_string("12_5"), "y"));
    stk_slurm_later_first(m, start);
    assert_string_equal(asked, "abcdxy");
    json_decref(start);
}

static void what_waits_is_dropped_with_the_program(void **state)
{
    struct stk_slurm *m = *state;

    ask_seven(m);
    stk_slurm_later_drop(m);
    stk_slurm_later_answered(m);
    assert_string_equal(asked, "abcd");
    ask_seven(m);
    assert_string_equal(asked, "abcdabcd");
}

static void what_waits_is_dropped_and_what_is_under_way_goes_on(void **state)
{
    struct stk_slurm *m = *state;

    ask_seven(m);
    stk_slurm_later_forget(m);
    ask_seven(m);
    assert_string_equal(asked, "abcd");
    stk_slurm_later_answered(m);
    assert_string_equal(asked, "abcda");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_few_are_under_way_at_a_time, make, unmake),
        cmocka_unit_test_setup_teardown(what_is_asked_of_one_job_stays_in_order, make, unmake),
        cmocka_unit_test_setup_teardown(an_element_is_of_its_array, make, unmake),
        cmocka_unit_test_setup_teardown(what_waits_is_dropped_with_the_program, make, unmake),
        cmocka_unit_test_setup_teardown(what_waits_is_dropped_and_what_is_under_way_goes_on, make,
                                        unmake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
