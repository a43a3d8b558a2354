/* SPDX-License-Identifier: Apache-2.0 */
/* test_where.c - nodes by name, and by their features. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/where.h"

static void names_and_numbers_in_brackets(void **state)
{
    (void)state;
    assert_true(stk_where_names("n7", "n7"));
    assert_false(stk_where_names("n7", "n70"));
    assert_false(stk_where_names("n70", "n7"));
    assert_true(stk_where_names("n[1-4,7]", "n3"));
    assert_true(stk_where_names("n[1-4,7]", "n7"));
    assert_false(stk_where_names("n[1-4,7]", "n5"));
    assert_false(stk_where_names("n[1-4]", "n04"));
    assert_true(stk_where_names("n[01-12]", "n04"));
    assert_false(stk_where_names("n[01-12]", "n4"));
    assert_true(stk_where_names("r[1-2]n[3-4]-ib", "r2n3-ib"));
    assert_false(stk_where_names("r[1-2]n[3-4]-ib", "r2n3"));
    assert_false(stk_where_names("n[1-4", "n3"));
    assert_false(stk_where_names("n[]", "n"));
    assert_false(stk_where_names("n[x]", "n1"));
    assert_true(stk_where_names("n[0-3]", "n0"));
    assert_false(stk_where_names("n[1-9]", "n99999999999999999999"));
}

static int meets(const char *constraint, const char *features)
{
    return stk_where_meets(constraint, features, NULL, NULL);
}

static void features_are_names_of_which_all_or_one_are_met(void **state)
{
    (void)state;
    assert_int_equal(meets("a", "a,b"), 1);
    assert_int_equal(meets("a&b", "a,b"), 1);
    assert_int_equal(meets("a & b", "a,b"), 1);
    assert_int_equal(meets("a,c", "a,b"), 0);
    assert_int_equal(meets("c|b", "a,b"), 1);
    assert_int_equal(meets("c|d", "a,b"), 0);
    assert_int_equal(meets("a", "ab"), 0);
    assert_int_equal(meets("a", NULL), 0);
    assert_int_equal(meets("(a|c)&b", "a,b"), 1);
    assert_int_equal(meets("(a&c)|b", "b"), 1);
    assert_int_equal(meets("((a))", "a"), 1);
    assert_int_equal(stk_where_meets("h200&nvme", "nvme", "NVIDIA H200", NULL), 1);
}

static void what_makes_no_sense_has_a_sentence(void **state)
{
    static const char *const bad[] = {"",   "a&b|c", "[a|b]", "a*2", "a&&b", "(a",   "a)",
                                      "&a", "a|",    "()",    "a?",  "a b",  "(a)b", "|"};
    char deep[64];
    struct stk_err err;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        err = (struct stk_err){""};
        assert_int_equal(stk_where_meets(bad[i], "a,b", NULL, &err), -EINVAL);
        assert_true(err.text[0]);
    }
    assert_int_equal(stk_where_meets("(a", "a", NULL, &err), -EINVAL);
    assert_string_equal(err.text, "at the end: a parenthesis is not closed");
    assert_int_equal(stk_where_meets("a)b", "a", NULL, &err), -EINVAL);
    assert_string_equal(err.text, "at \")b\": this is left over");
    memset(deep, '(', sizeof(deep));
    deep[sizeof(deep) - 1] = '\0';
    assert_int_equal(stk_where_meets(deep, "a", NULL, &err), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_numbers_in_brackets),
        cmocka_unit_test(features_are_names_of_which_all_or_one_are_met),
        cmocka_unit_test(what_makes_no_sense_has_a_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
