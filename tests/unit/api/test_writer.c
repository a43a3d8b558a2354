/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/writer.h"

static void assert_written(struct stk_writer *w, const char *text)
{
    assert_false(w->starved);
    assert_int_equal(w->len, strlen(text));
    assert_memory_equal(w->text, text, w->len);
    stk_writer_done(w);
}

static void commas_come_by_themselves(void **state)
{
    struct stk_writer w = {0};

    (void)state;
    stk_write_open(&w, NULL, '{');
    stk_write_null(&w, "a");
    stk_write_open(&w, "list", '[');
    stk_write_number(&w, NULL, 1);
    stk_write_number(&w, NULL, 2);
    stk_write_close(&w, ']');
    stk_write_open(&w, "empty", '{');
    stk_write_close(&w, '}');
    stk_write_bool(&w, "b", true);
    stk_write_close(&w, '}');
    assert_written(&w, "{\"a\":null,\"list\":[1,2],\"empty\":{},\"b\":true}");
}

static void numbers_are_exact(void **state)
{
    static const struct {
        int64_t value;
        const char *text;
    } millionths[] = {{0, "0.0"},         {1, "0.000001"},
                      {1500000, "1.5"},   {1731823069123456, "1731823069.123456"},
                      {-250000, "-0.25"}, {INT64_MIN, "-9223372036854.775808"}};
    struct stk_writer w = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(millionths) / sizeof(*millionths); i++) {
        stk_write_millionths(&w, NULL, millionths[i].value);
        assert_written(&w, millionths[i].text);
    }
    stk_write_number(&w, NULL, INT64_MIN);
    assert_written(&w, "-9223372036854775808");
    stk_write_number(&w, NULL, INT64_MAX);
    assert_written(&w, "9223372036854775807");
}

static void texts_are_escaped_and_bad_bytes_replaced(void **state)
{
    struct stk_writer w = {0};

    (void)state;
    stk_write_text(&w, NULL, "a\"b\\c\nd\te\x01\x7f");
    assert_written(&w, "\"a\\\"b\\\\c\\nd\\te\\u0001\x7f\"");
    stk_write_text(&w, NULL, "gr\xc3\xbcn \xff\xc3");
    assert_written(&w, "\"gr\xc3\xbcn ??\"");
    stk_write_text(&w, NULL, NULL);
    assert_written(&w, "\"\"");
}

/* Every character, read back by another reader, is what it was. */
static void what_is_written_can_be_read(void **state)
{
    struct stk_writer w = {0};
    char all[0x80];
    json_t *back;

    (void)state;
    for (int c = 1; c < 0x80; c++)
        all[c - 1] = (char)c;
    all[0x7f] = '\0';
    stk_write_open(&w, NULL, '{');
    stk_write_text(&w, "all", all);
    stk_write_close(&w, '}');
    back = json_loadb(w.text, w.len, 0, NULL);
    assert_string_equal(stk_str(back, "all"), all);
    json_decref(back);
    stk_writer_done(&w);
}

static void trees_and_texts_of_others_fit_in(void **state)
{
    struct stk_writer w = {0}, other = {0};

    (void)state;
    stk_write_text(&other, NULL, "x");
    stk_write_open(&w, NULL, '{');
    stk_write_members(&w, json_pack("{s:i,s:[s]}", "one", 1, "two", "z"));
    stk_write_json(&w, "three", json_real(1.5));
    stk_write_written(&w, "four", &other);
    stk_write_close(&w, '}');
    assert_null(other.text);
    assert_written(&w, "{\"one\":1,\"two\":[\"z\"],\"three\":1.5,\"four\":\"x\"}");
    stk_write_json(&w, NULL, NULL); /* there was no memory for it */
    assert_true(w.starved);
    stk_writer_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_come_by_themselves),
        cmocka_unit_test(numbers_are_exact),
        cmocka_unit_test(texts_are_escaped_and_bad_bytes_replaced),
        cmocka_unit_test(what_is_written_can_be_read),
        cmocka_unit_test(trees_and_texts_of_others_fit_in),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
