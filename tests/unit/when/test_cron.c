/* SPDX-License-Identifier: Apache-2.0 */
/* test_cron.c - times that come again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "when/cron.h"

#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3" /* forward 2026-03-29 02:00, back 2026-10-25 03:00 */

static struct stk_cron parse(const char *text)
{
    struct stk_cron c = {0};
    struct stk_err err = {{0}};

    if (stk_cron_parse(text, &c, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return c;
}

static int64_t at(const char *utc)
{
    struct tm t = {0};

    assert_int_equal(sscanf(utc, "%d-%d-%d %d:%d:%d", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour,
                            &t.tm_min, &t.tm_sec),
                     6);
    t.tm_year -= 1900;
    t.tm_mon--;
    return (int64_t)timegm(&t);
}

/* Each line of 'want' is the next time after the one before, in UTC. */
static void expect(const char *tz, const char *text, const char *after, const char *const *want)
{
    const struct stk_cron c = parse(text);
    static struct stk_zone z;
    int64_t t = at(after);

    stk_zone_utc(&z);
    if (strcmp(tz, "UTC") != 0)
        assert_int_equal(stk_zone_rule(tz, strlen(tz), &z, NULL), 0);
    for (size_t i = 0; want[i]; i++) {
        char got[32];
        struct tm tm;
        time_t as;

        t = stk_cron_next(&c, &z, t);
        assert_true(stk_cron_last(&c, &z, t) == t);
        assert_true(stk_cron_last(&c, &z, t + 59) >= t);
        assert_true(stk_cron_last(&c, &z, t - 1) < t);
        as = (time_t)t;
        assert_non_null(gmtime_r(&as, &tm));
        assert_true(strftime(got, sizeof(got), "%Y-%m-%d %H:%M", &tm) > 0);
        assert_string_equal(got, want[i]);
    }
}

#define EXPECT(tz, text, after, ...) expect(tz, text, after, (const char *[]){__VA_ARGS__, NULL})

static void fields_say_when(void **state)
{
    (void)state;
    EXPECT("UTC", "* * * * *", "2026-01-01 10:00:00", "2026-01-01 10:01", "2026-01-01 10:02");
    EXPECT("UTC", "* * * * *", "2026-01-01 10:00:59", "2026-01-01 10:01");
    EXPECT("UTC", "*/15 * * * *", "2026-01-01 10:44:59", "2026-01-01 10:45", "2026-01-01 11:00");
    EXPECT("UTC", "5/20 8-9 * * *", "2026-01-01 08:30:00", "2026-01-01 08:45", "2026-01-01 09:05");
    EXPECT("UTC", "30 3 * * mon-fri", "2026-01-02 04:00:00", "2026-01-05 03:30");
    EXPECT("UTC", "0 0 1 jan,JUL *", "2026-01-01 00:00:00", "2026-07-01 00:00", "2027-01-01 00:00");
    EXPECT("UTC", "0 12 * * 7", "2026-01-01 00:00:00", "2026-01-04 12:00", "2026-01-11 12:00");
    EXPECT("UTC", " 0\t12  * * 0 ", "2026-01-01 00:00:00", "2026-01-04 12:00");
    EXPECT("UTC", "@daily", "2026-01-31 00:00:00", "2026-02-01 00:00", "2026-02-02 00:00");
    EXPECT("UTC", "@weekly", "2026-01-01 00:00:00", "2026-01-04 00:00");
    EXPECT("UTC", "@monthly", "2026-01-31 00:00:00", "2026-02-01 00:00");
    EXPECT("UTC", "@yearly", "2026-01-31 00:00:00", "2027-01-01 00:00");
    EXPECT("UTC", "@hourly", "2026-01-31 23:30:00", "2026-02-01 00:00");
}

static void either_day_will_do_when_both_are_given(void **state)
{
    (void)state;
    EXPECT("UTC", "0 0 13 * fri", "2026-01-01 00:00:00", "2026-01-02 00:00", "2026-01-09 00:00",
           "2026-01-13 00:00", "2026-01-16 00:00");
    EXPECT("UTC", "0 0 30 2 mon", "2026-01-01 00:00:00", "2026-02-02 00:00");
}

static void leap_days_come_when_they_do(void **state)
{
    (void)state;
    EXPECT("UTC", "0 0 29 2 *", "2026-01-01 00:00:00", "2028-02-29 00:00", "2032-02-29 00:00");
    EXPECT("UTC", "0 0 29 feb *", "2096-03-01 00:00:00", "2104-02-29 00:00");
    EXPECT("UTC", "0 0 31 * *", "2026-01-31 00:00:00", "2026-03-31 00:00", "2026-05-31 00:00");
}

static void a_time_in_the_gap_comes_right_after_it(void **state)
{
    (void)state;
    EXPECT(BERLIN, "30 2 * * *", "2026-03-28 00:00:00", "2026-03-28 01:30", "2026-03-29 01:00",
           "2026-03-30 00:30");
    EXPECT(BERLIN, "*/30 * * * *", "2026-03-29 00:30:00", "2026-03-29 01:00", "2026-03-29 01:30");
    EXPECT(BERLIN, "10,50 2 * * *", "2026-03-29 00:00:00", "2026-03-29 01:00", "2026-03-30 00:10");
    EXPECT(BERLIN, "30 * * * *", "2026-03-29 00:00:00", "2026-03-29 00:30", "2026-03-29 01:30");
    EXPECT("<-03>3<-02>,M3.2.0/0,M11.1.0/0", "0 0 * * *", "2026-03-07 12:00:00", "2026-03-08 03:00",
           "2026-03-09 02:00"); /* midnight is in the gap */
    EXPECT(BERLIN, "0 3 * * *", "2026-03-28 12:00:00", "2026-03-29 01:00", "2026-03-30 01:00");
}

static void an_hour_that_comes_twice_counts_once_unless_every_hour_does(void **state)
{
    (void)state;
    EXPECT(BERLIN, "30 2 * * *", "2026-10-24 12:00:00", "2026-10-25 00:30", "2026-10-26 01:30");
    EXPECT(BERLIN, "30 * * * *", "2026-10-24 23:45:00", "2026-10-25 00:30", "2026-10-25 01:30",
           "2026-10-25 02:30");
    EXPECT(BERLIN, "30 2 * * *", "2026-10-25 00:30:00", "2026-10-26 01:30");
    EXPECT(BERLIN, "0 4 * * *", "2026-10-24 12:00:00", "2026-10-25 03:00", "2026-10-26 03:00");
}

static void what_is_no_time_is_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {{"", "needs five fields"},
               {"* * * *", "got 4"},
               {"* * * * * *", "more than five"},
               {"60 * * * *", "minute must be numbers from 0 to 59"},
               {"* 24 * * *", "hour"},
               {"* * 0 * *", "day of the month"},
               {"* * * 13 *", "month must be numbers from 1 to 12"},
               {"* * * * 8", "day of the week"},
               {"*/0 * * * *", "minute"},
               {"*/x * * * *", "minute"},
               {"5-1 * * * *", "minute"},
               {"1, * * * *", "minute"},
               {"1;2 * * * *", "minute"},
               {"* * * foo *", "month"},
               {"99999999999999999999 * * * *", "minute"},
               {"@reboot", "knows @hourly"},
               {"0 0 30 2 *", "never comes"},
               {"0 0 31 apr,jun *", "never comes"}};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct stk_cron c;
        struct stk_err err = {{0}};

        assert_int_equal(stk_cron_parse(bad[i].text, &c, &err), -EINVAL);
        if (!strstr(err.text, bad[i].why))
            fail_msg("%s: %s", bad[i].text, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_say_when),
        cmocka_unit_test(either_day_will_do_when_both_are_given),
        cmocka_unit_test(leap_days_come_when_they_do),
        cmocka_unit_test(a_time_in_the_gap_comes_right_after_it),
        cmocka_unit_test(an_hour_that_comes_twice_counts_once_unless_every_hour_does),
        cmocka_unit_test(what_is_no_time_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
