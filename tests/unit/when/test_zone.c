/* SPDX-License-Identifier: Apache-2.0 */
/* test_zone.c - rules of time zones, the calendar, and files that are none. That every zone of this
 * system is read as another program reads it: tests/e2e/test_zones.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "when/zone.h"

static struct stk_zone z;

static void rule(const char *text)
{
    struct stk_err err = {{0}};

    stk_zone_utc(&z);
    if (stk_zone_rule(text, strlen(text), &z, &err) < 0)
        fail_msg("%s: %s", text, err.text);
}

static int64_t at(int32_t year, int32_t month, int32_t day, int32_t hour)
{
    return stk_days_from(year, month, day) * 86400 + hour * 3600;
}

static void the_calendar_goes_there_and_back(void **state)
{
    (void)state;
    stk_zone_utc(&z);
    for (int64_t day = -800000; day < 800000; day += 13) {
        const struct stk_date d = stk_zone_date(&z, day * 86400 + 5);

        assert_true(stk_days_from(d.year, d.month, d.mday) == day);
        assert_int_equal(d.seconds, 5);
        assert_in_range(d.weekday, 0, 6);
    }
    assert_int_equal(stk_zone_date(&z, 0).weekday, 4); /* 1970 began on a Thursday */
    assert_int_equal(stk_days_from(2000, 2, 29), 11016);
}

static void rules_say_when_summer_is(void **state)
{
    (void)state;
    rule("CET-1CEST,M3.5.0,M10.5.0/3");
    assert_int_equal(stk_zone_offset(&z, at(2026, 1, 1, 0)), 3600);
    assert_int_equal(stk_zone_offset(&z, at(2026, 3, 29, 1) - 1), 3600);
    assert_int_equal(stk_zone_offset(&z, at(2026, 3, 29, 1)), 7200);
    assert_int_equal(stk_zone_offset(&z, at(2026, 10, 25, 1) - 1), 7200);
    assert_int_equal(stk_zone_offset(&z, at(2026, 10, 25, 1)), 3600);
    rule("AEST-10AEDT,M10.1.0,M4.1.0/3"); /* over the turn of the year */
    assert_int_equal(stk_zone_offset(&z, at(2026, 1, 1, 0)), 39600);
    assert_int_equal(stk_zone_offset(&z, at(2026, 7, 1, 0)), 36000);
    rule("IST-1GMT0,M10.5.0,M3.5.0/1"); /* "summer" is winter */
    assert_int_equal(stk_zone_offset(&z, at(2026, 1, 1, 0)), 0);
    assert_int_equal(stk_zone_offset(&z, at(2026, 7, 1, 0)), 3600);
    rule("<+0545>-5:45");
    assert_int_equal(stk_zone_offset(&z, at(2026, 7, 1, 0)), 20700);
    rule("EST5EDT,0/0,J365/25"); /* summer all year */
    assert_int_equal(stk_zone_offset(&z, at(2026, 1, 1, 5)), -14400);
    assert_int_equal(stk_zone_offset(&z, at(2026, 12, 31, 23)), -14400);
    rule("XXX3YYY,J60/0,J300/0");
    assert_int_equal(stk_zone_offset(&z, at(2028, 3, 1, 3) - 1), -10800); /* not 29 February */
    assert_int_equal(stk_zone_offset(&z, at(2028, 3, 1, 3)), -7200);
}

static void what_is_no_rule_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "C-1",
                                      "CET",
                                      "CET-25",
                                      "CET-1x",
                                      "CET-1CEST",
                                      "CET-1CEST,",
                                      "CET-1CEST,M3.5.0",
                                      "<CET-1",
                                      "CET-1CEST,M13.1.0,M1.1.0",
                                      "CET-1CEST,J0,J1",
                                      "CET-1CEST,M3.5.0/168,M10.5.0",
                                      "CET-1CEST,M3.5.0,M10.5.0,",
                                      "CET-1:60",
                                      "CET-99999"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (stk_zone_rule(bad[i], strlen(bad[i]), &z, NULL) == 0)
            fail_msg("\"%s\" is taken for a rule", bad[i]);
}

static void moments_are_those_the_wall_shows(void **state)
{
    int64_t day = stk_days_from(2026, 3, 29);

    (void)state;
    rule("CET-1CEST,M3.5.0,M10.5.0/3");
    assert_true(stk_zone_moment(&z, day, 3600) == at(2026, 3, 29, 0));
    assert_true(stk_zone_moment(&z, day, 2 * 3600 + 1800) == at(2026, 3, 29, 1)); /* a gap */
    assert_true(stk_zone_moment(&z, day, 3 * 3600) == at(2026, 3, 29, 1));
    day = stk_days_from(2026, 10, 25);
    assert_true(stk_zone_moment(&z, day, 2 * 3600) == at(2026, 10, 25, 0)); /* the first */
    assert_true(stk_zone_moment(&z, day, 3 * 3600) == at(2026, 10, 25, 2));
}

static void names_lead_to_no_other_files(void **state)
{
    static const char *const bad[] = {"",    "/etc/passwd", "../x", "Europe/../x",    ".hidden",
                                      "a b", "Europe/",     "1",    "Europe/Berlin\n"};

    (void)state;
    assert_true(stk_zone_name_ok("Europe/Berlin"));
    assert_true(stk_zone_name_ok("America/Port-au-Prince"));
    assert_true(stk_zone_name_ok("Etc/GMT+12"));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(stk_zone_name_ok(bad[i]));
}

/* A small file of the second version, with one change and a rule. */
static size_t file(unsigned char *b)
{
    static const unsigned char head[44] = {'T', 'Z', 'i', 'f', '2'};
    size_t n = 0;

    memcpy(b, head, 44);
    b[39] = 1; /* one kind of time */
    b[43] = 4;
    memset(b + 44, 0, 10);
    n = 54;
    memcpy(b + n, head, 44);
    b[n + 35] = 1; /* one change */
    b[n + 39] = 2;
    b[n + 43] = 4;
    n += 44;
    memset(b + n, 0, 8 + 1 + 12 + 4);
    b[n + 6] = 1; /* at 256 s */
    b[n + 8] = 1; /* to the second kind, */
    b[n + 17] = 14;
    b[n + 18] = 16; /* 3600 s east */
    n += 25;
    memcpy(b + n, "\nCET-1\n", 7);
    return n + 7;
}

static void files_are_read_and_cut_ones_refused(void **state)
{
    unsigned char b[200];
    size_t n = file(b);

    (void)state;
    assert_int_equal(stk_zone_read(b, n, &z, NULL), 0);
    assert_int_equal(z.n, 1);
    assert_int_equal(stk_zone_offset(&z, 255), 0);
    assert_int_equal(stk_zone_offset(&z, 256), 3600);
    for (size_t k = 0; k < n; k++)
        assert_int_equal(stk_zone_read(b, k, &z, NULL), -EBADMSG);
    b[98 + 8] = 2; /* a kind that is not there */
    assert_int_equal(stk_zone_read(b, n, &z, NULL), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_calendar_goes_there_and_back),
        cmocka_unit_test(rules_say_when_summer_is),
        cmocka_unit_test(what_is_no_rule_is_refused),
        cmocka_unit_test(moments_are_those_the_wall_shows),
        cmocka_unit_test(names_lead_to_no_other_files),
        cmocka_unit_test(files_are_read_and_cut_ones_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
