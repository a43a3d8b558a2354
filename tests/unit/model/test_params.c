/* SPDX-License-Identifier: Apache-2.0 */
/* test_params.c - what a user may write for a parameter, and what becomes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/core.h"
#include "model/params.h"
#include "policy/registry.h"

static const struct stk_param number = {"n", STK_PARAM_INT, "5", -10, 100, NULL, "a number"};
static const struct stk_param secs = {"s", STK_PARAM_SECONDS, "1.5", 0, 3600, NULL, "seconds"};
static const struct stk_param list = {"l", STK_PARAM_LIST, "1,2", 1, 1000, NULL, "a list"};
static const struct stk_param sizes = {"z", STK_PARAM_SIZES, "30", 0, 3600, NULL, "by size"};
static const struct stk_param word = {"w", STK_PARAM_WORD, "a", 0, 0, "a|bc|def", "a word"};

static void taken(const struct stk_param *d, const char *text)
{
    struct stk_params p = {.n = 0};
    struct stk_err err = {{0}};

    if (stk_params_set(&p, d, text, &err) < 0)
        fail_msg("%s=%s is refused: %s", d->name, text, err.text);
    assert_int_equal(p.n, 1);
    assert_true(stk_params_has(&p, d));
}

static void refused(const struct stk_param *d, const char *text)
{
    struct stk_params p = {.n = 0};
    struct stk_err err = {{0}};

    if (stk_params_set(&p, d, text, &err) == 0)
        fail_msg("%s=%s is taken", d->name, text);
    assert_int_equal(p.n, 0);
    assert_false(stk_params_has(&p, d));
    assert_true(strstr(err.text, d->name) == err.text); /* says which */
    assert_int_equal(stk_params_set(&p, d, text, NULL), -EINVAL);
}

static void numbers_are_whole_and_in_range(void **state)
{
    static const char *const good[] = {"0", "-10", "100", "007", "-0"};
    static const char *const bad[] = {"",
                                      "-",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1.0",
                                      "1e3",
                                      "0x1",
                                      "101",
                                      "-11",
                                      "--1",
                                      "abc",
                                      "1,2",
                                      "9223372036854775808",
                                      "99999999999999999999999999"};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        taken(&number, good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        refused(&number, bad[i]);
}

static void seconds_have_at_most_six_decimals(void **state)
{
    static const char *const good[] = {"0", "3600", "0.5", "1.000001", "3600.000000", "7."};
    static const char *const bad[] = {"",          ".",     ".5", "-1", "3600.000001",
                                      "1.0000001", "1.2.3", "1s", "1e2"};
    struct stk_params p = {.n = 0};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        taken(&secs, good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        refused(&secs, bad[i]);
    assert_int_equal(stk_params_seconds(&p, &secs), 1500000); /* the default */
    assert_int_equal(stk_params_set(&p, &secs, "2.000001", NULL), 0);
    assert_int_equal(stk_params_seconds(&p, &secs), 2000001);
}

static void thousandths_have_at_most_three_decimals(void **state)
{
    static const struct stk_param share = {"r", STK_PARAM_MILLI, "0.6", 1, 1000, NULL, "a share"};
    static const char *const good[] = {"1", "0.001", "0.5", "1.000", "1."};
    static const char *const bad[] = {"", "0", "1.001", "0.0001", ".5", "-1", "0,5"};
    struct stk_params p = {.n = 0};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        taken(&share, good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        refused(&share, bad[i]);
    assert_int_equal(stk_params_milli(&p, &share), 600); /* the default */
}

static void lists_ascend(void **state)
{
    static const char *const good[] = {"", "1", "1,2,1000",
                                       "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"};
    static const char *const bad[] = {
        "0",    "2,1", "1,1",    "1,", ",1",
        "1,,2", "1 2", "1,1001", "a",  "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
        "1.5"};
    int64_t v[STK_MAX_PARAM_LIST];
    struct stk_params p = {.n = 0};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        taken(&list, good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        refused(&list, bad[i]);
    assert_int_equal(stk_params_list(&p, &list, v), 2);
    assert_int_equal(stk_params_set(&p, &list, good[3], NULL), 0);
    assert_int_equal(stk_params_list(&p, &list, v), 16);
    for (int i = 0; i < 16; i++)
        assert_int_equal(v[i], i + 1);
    assert_int_equal(stk_params_set(&p, &list, "", NULL), 0);
    assert_int_equal(stk_params_list(&p, &list, v), 0);
}

static void sizes_end_with_one_for_the_rest(void **state)
{
    static const char *const good[] = {"0", "30", "8:40,*:60", "1:0.5,2:1,*:3600", "*:5", "8:1,60"};
    static const char *const bad[] = {
        "",        "8:40",   "8:40,",      "*:60,8:40", "8:40,4:1,*:2", "8:40,8:1,*:2", "0:1,*:2",
        "x:1,*:2", "8:,*:2", "8:3601,*:1", "-1:4,*:5",  "8 :40,*:60",   "30,8:40"};
    struct stk_params p = {.n = 0};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        taken(&sizes, good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        refused(&sizes, bad[i]);
    assert_int_equal(stk_params_size(&p, &sizes, 1000000), 30 * STK_SECOND);
    assert_int_equal(stk_params_set(&p, &sizes, "1:0.5,8:40,*:60", NULL), 0);
    assert_int_equal(stk_params_size(&p, &sizes, 0), STK_SECOND / 2);
    assert_int_equal(stk_params_size(&p, &sizes, 1), STK_SECOND / 2);
    assert_int_equal(stk_params_size(&p, &sizes, 2), 40 * STK_SECOND);
    assert_int_equal(stk_params_size(&p, &sizes, 8), 40 * STK_SECOND);
    assert_int_equal(stk_params_size(&p, &sizes, 9), 60 * STK_SECOND);
    assert_int_equal(stk_params_size(&p, &sizes, UINT64_MAX), 60 * STK_SECOND);
}

static void words_are_whole_words(void **state)
{
    static const char *const bad[] = {"", "b", "bcd", "a|bc", "def ", "A", "|"};
    struct stk_params p = {.n = 0};

    (void)state;
    taken(&word, "a");
    taken(&word, "bc");
    taken(&word, "def");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        refused(&word, bad[i]);
    assert_true(stk_params_word(&p, &word, "a"));
    assert_int_equal(stk_params_set(&p, &word, "bc", NULL), 0);
    assert_true(stk_params_word(&p, &word, "bc"));
    assert_false(stk_params_word(&p, &word, "a"));
}

static void a_later_value_replaces_and_a_bad_one_does_not(void **state)
{
    struct stk_params p = {.n = 0};
    char long_text[STK_MAX_PARAM_TEXT + 1];

    (void)state;
    memset(long_text, '1', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    assert_int_equal(stk_params_int(&p, &number), 5);
    assert_int_equal(stk_params_set(&p, &number, "7", NULL), 0);
    assert_int_equal(stk_params_set(&p, &number, "-8", NULL), 0);
    assert_int_equal(stk_params_set(&p, &number, "800", NULL), -EINVAL);
    assert_int_equal(stk_params_set(&p, &number, long_text, NULL), -EINVAL);
    assert_int_equal(p.n, 1);
    assert_int_equal(stk_params_int(&p, &number), -8);
}

static void there_is_an_end_to_them(void **state)
{
    static char names[STK_MAX_PARAMS + 1][8];
    static struct stk_param decls[STK_MAX_PARAMS + 1];
    struct stk_params p = {.n = 0};

    (void)state;
    for (int i = 0; i <= STK_MAX_PARAMS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "p%d", i);
        decls[i] = number;
        decls[i].name = names[i];
        assert_int_equal(stk_params_set(&p, &decls[i], "1", NULL), i < STK_MAX_PARAMS ? 0 : -E2BIG);
    }
    assert_int_equal(stk_params_set(&p, &decls[3], "2", NULL), 0); /* known ones can change */
}

/* Defaults are what a user could have written. */
static void check_table(const struct stk_param *t)
{
    for (; t && t->name; t++) {
        assert_true(t->help && t->help[0]);
        taken(t, t->def);
        assert_ptr_equal(stk_param_find(t->name, NULL), t);
    }
}

static void declared_defaults_are_valid_and_names_unique(void **state)
{
    (void)state;
    check_table(stk_core_params);
    for (size_t i = 0; stk_orders[i]; i++)
        check_table(stk_orders[i]->params);
    for (size_t i = 0; stk_backfills[i]; i++)
        check_table(stk_backfills[i]->params);
    for (size_t i = 0; stk_places[i]; i++)
        check_table(stk_places[i]->params);
    for (size_t i = 0; stk_preempts[i]; i++)
        check_table(stk_preempts[i]->params);
    assert_null(stk_param_find("no such", NULL));
    assert_ptr_equal(
        stk_param_find("n", (const struct stk_param[]){{.name = "x"}, number, {0}})->help,
        number.help);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_whole_and_in_range),
        cmocka_unit_test(seconds_have_at_most_six_decimals),
        cmocka_unit_test(thousandths_have_at_most_three_decimals),
        cmocka_unit_test(lists_ascend),
        cmocka_unit_test(sizes_end_with_one_for_the_rest),
        cmocka_unit_test(words_are_whole_words),
        cmocka_unit_test(a_later_value_replaces_and_a_bad_one_does_not),
        cmocka_unit_test(there_is_an_end_to_them),
        cmocka_unit_test(declared_defaults_are_valid_and_names_unique),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
