/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

static void characters_are_read(void **state)
{
    static const struct {
        const char *s;
        size_t n;
        uint32_t code;
    } all[] = {{"", 1, 0},
               {"a", 1, 'a'},
               {"\xc2\x80", 2, 0x80},
               {"\xdf\xbf", 2, 0x7ff},
               {"\xe0\xa0\x80", 3, 0x800},
               {"\xed\x9f\xbf", 3, 0xd7ff},
               {"\xee\x80\x80", 3, 0xe000},
               {"\xf0\x90\x80\x80", 4, 0x10000},
               {"\xf4\x8f\xbf\xbf", 4, 0x10ffff}};
    uint32_t code = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        assert_int_equal(stk_utf8(all[i].s, SIZE_MAX, &code), all[i].n);
        assert_int_equal(code, all[i].code);
    }
}

static void what_is_none_is_refused(void **state)
{
    static const char *const all[] = {"\x80",         "\xbf",     "\xc0\x80",
                                      "\xc1\xbf", /* too long for what they say */
                                      "\xe0\x9f\xbf", "\xc2",     "\xc2z",
                                      "\xe0\xa0", /* cut */
                                      "\xed\xa0\x80", "\xf5\x80", "\xf4\x90\x80\x80",
                                      "\xff"};
    uint32_t code;

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        assert_int_equal(stk_utf8(all[i], SIZE_MAX, &code), 0);
    assert_int_equal(stk_utf8("\xf0\x8f\xbf\xbf", SIZE_MAX, &code), 0);
}

static void nothing_beyond_what_is_left_is_read(void **state)
{
    uint32_t code;

    (void)state;
    assert_int_equal(stk_utf8("\xe2\x82\xac", 2, &code), 0);
    assert_int_equal(stk_utf8("\xe2\x82\xac", 3, &code), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_read),
        cmocka_unit_test(what_is_none_is_refused),
        cmocka_unit_test(nothing_beyond_what_is_left_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
