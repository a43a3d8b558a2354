/* SPDX-License-Identifier: Apache-2.0 */
/* What is missing, or is something else than is asked for, is nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sys/json.h"

static json_t *sample(void)
{
    json_t *o = json_loads("{\"word\":\"run\",\"n\":9007199254740993,\"part\":2.75,\"on\":true,"
                           "\"off\":false,\"none\":null,\"empty\":\"\"}",
                           0, NULL);

    assert_non_null(o);
    return o;
}

static void what_is_there_is_read(void **state)
{
    json_t *o = sample();

    (void)state;
    assert_string_equal(stk_str(o, "word"), "run");
    assert_string_equal(stk_str_or(o, "empty", "other"), "");
    assert_true(stk_str_is(o, "word", "run"));
    assert_false(stk_str_is(o, "word", "runs"));
    assert_true(stk_int(o, "n", 0) == INT64_C(9007199254740993)); /* no double holds it */
    assert_true(stk_whole(o, "n") == INT64_C(9007199254740993));
    assert_true(stk_num(o, "part", 0) == 2.75);
    assert_true(stk_yes(o, "on"));
    json_decref(o);
}

static void a_number_with_a_point_is_cut_or_is_none(void **state)
{
    json_t *o = sample();

    (void)state;
    assert_int_equal(stk_int(o, "part", 7), 2);
    assert_int_equal(stk_whole(o, "part"), 0);
    json_decref(o);
}

static void what_is_something_else_is_nothing(void **state)
{
    static const char *const names[] = {"none", "off", "absent"};
    json_t *o = sample();

    (void)state;
    for (int i = 0; i < 6; i++) {
        const json_t *of = i < 3 ? o : NULL;
        const char *name = names[i % 3];

        assert_string_equal(stk_str(of, name), "");
        assert_string_equal(stk_str_or(of, name, "other"), "other");
        assert_null(stk_str_or(of, name, NULL));
        assert_false(stk_str_is(of, name, ""));
        assert_int_equal(stk_int(of, name, -5), -5);
        assert_int_equal(stk_whole(of, name), 0);
        assert_true(stk_num(of, name, 0.5) == 0.5);
        assert_false(stk_yes(of, name));
    }
    assert_int_equal(stk_int(o, "word", -5), -5);
    assert_string_equal(stk_str(o, "n"), "");
    assert_false(stk_yes(o, "n"));
    json_decref(o);
}

static void numbers_without_a_fraction_are_whole(void **state)
{
    json_t *v =
        json_loads("{\"a\":4.0,\"b\":[1e3,0.5,\"2.0\",{\"c\":-7.0}],\"d\":1e300,\"e\":3}", 0, NULL);
    json_t *is =
        json_loads("{\"a\":4,\"b\":[1000,0.5,\"2.0\",{\"c\":-7}],\"d\":1e300,\"e\":3}", 0, NULL);

    (void)state;
    stk_json_make_whole(v);
    assert_true(json_equal(v, is));
    json_decref(v);
    json_decref(is);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_without_a_fraction_are_whole),
        cmocka_unit_test(what_is_there_is_read),
        cmocka_unit_test(a_number_with_a_point_is_cut_or_is_none),
        cmocka_unit_test(what_is_something_else_is_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
