/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/span.h"

static void spans_are_as_long_as_they_need_to_be(void **state)
{
    static const struct {
        int64_t s;
        const char *text;
    } all[] = {{0, "0:00"},
               {7, "0:07"},
               {3599, "59:59"},
               {3600, "1:00:00"},
               {86399, "23:59:59"},
               {86400, "1-00:00:00"},
               {3723, "1:02:03"},
               {183845, "2-03:04:05"},
               {-1, "-"},
               {INT64_MIN, "-"},
               {INT64_MAX, "106751991167300-15:30:07"}};
    char buf[STK_SPAN_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        assert_string_equal(stk_span(all[i].s, buf, sizeof(buf)), all[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(spans_are_as_long_as_they_need_to_be)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
