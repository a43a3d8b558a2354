/* SPDX-License-Identifier: Apache-2.0 */
/* cron.c - from words to bits, and from bits to the next time.
 *
 * The next time is looked for day by day, then minute by minute of a day that fits. Minutes are
 * those that really pass, and the C library says how late it is in each of them: so there is no
 * arithmetic on the clock of the wall, which jumps. */
#include "spec/cron.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define DAYS (366 * 9) /* there is no 29 February in 2100 */

struct field {
    const char *name;
    uint32_t min, max;
    const char *words; /* names of the numbers from 'min' on, three letters each */
};

static const struct field fields[] = {{"minute", 0, 59, ""},
                                      {"hour", 0, 23, ""},
                                      {"day of the month", 1, 31, ""},
                                      {"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
                                      {"day of the week", 0, 7, "sunmontuewedthufrisat"}};

static const char *const nicknames[][2] = {{"@hourly", "0 * * * *"},   {"@daily", "0 0 * * *"},
                                           {"@midnight", "0 0 * * *"}, {"@weekly", "0 0 * * 0"},
                                           {"@monthly", "0 0 1 * *"},  {"@yearly", "0 0 1 1 *"},
                                           {"@annually", "0 0 1 1 *"}};

/* A number, or a name for one; returns what follows, NULL: neither. */
static const char *value(const struct field *f, const char *s, uint32_t *ret)
{
    char *end;
    unsigned long n;

    if (isdigit((unsigned char)*s)) {
        n = strtoul(s, &end, 10);
        *ret = (uint32_t)n;
        return n >= f->min && n <= f->max ? end : NULL;
    }
    for (size_t i = 0; f->words[i * 3]; i++) {
        if (strncasecmp(s, f->words + i * 3, 3) == 0) {
            *ret = f->min + (uint32_t)i;
            return s + 3;
        }
    }
    return NULL;
}

static const char *range(const struct field *f, const char *s, uint64_t *bits)
{
    uint32_t first = f->min, last = f->max, step = 1;
    bool star = *s == '*';
    char *end;

    s = star ? s + 1 : value(f, s, &first);
    if (!s)
        return NULL;
    if (!star)
        last = first;
    if (!star && *s == '-')
        s = value(f, s + 1, &last);
    else if (!star && *s == '/')
        last = f->max; /* "5/10": from 5 on */
    if (!s || last < first)
        return NULL;
    if (*s == '/') {
        step = (uint32_t)strtoul(s + 1, &end, 10);
        if (!isdigit((unsigned char)s[1]) || step == 0 || step > f->max)
            return NULL;
        s = end;
    }
    for (uint32_t i = first; i <= last; i += step)
        *bits |= UINT64_C(1) << i;
    return s;
}

/* One field; returns what follows it. */
static const char *field(const struct field *f, const char *s, uint64_t *ret)
{
    *ret = 0;
    do {
        s = range(f, s, ret);
    } while (s && *s++ == ',');
    if (!s || (s[-1] != ' ' && s[-1] != '\t' && s[-1] != '\0'))
        return NULL;
    s--;
    return s + strspn(s, " \t");
}

static bool ever(const struct stk_cron *c)
{
    static const uint32_t longest[] = {0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    if (c->any_day || !c->any_weekday)
        return true;
    for (uint32_t m = 1; m <= 12; m++)
        if ((c->month >> m & 1) && (c->day & ((UINT64_C(2) << longest[m]) - 1)))
            return true;
    return false;
}

int stk_cron_parse(const char *text, struct stk_cron *ret, struct stk_err *err)
{
    const char *s = text + strspn(text, " \t");
    uint64_t bits[5] = {0};
    bool star[5] = {false};

    for (size_t i = 0; i < sizeof(nicknames) / sizeof(*nicknames); i++)
        if (strcmp(s, nicknames[i][0]) == 0)
            s = nicknames[i][1];
    if (*s == '@')
        return stk_err_set(
            err, -EINVAL, "knows @hourly, @daily, @weekly, @monthly and @yearly, got \"%.20s\"", s);
    for (size_t i = 0; i < 5; i++) {
        if (*s == '\0')
            return stk_err_set(err, -EINVAL,
                               "needs five fields: minute, hour, day of the month, month, day of "
                               "the week; got %zu",
                               i);
        star[i] = *s == '*';
        s = field(&fields[i], s, &bits[i]);
        if (!s)
            return stk_err_set(err, -EINVAL,
                               "its %s must be numbers from %u to %u, ranges or steps (1,5 1-5 "
                               "*/15)",
                               fields[i].name, fields[i].min, fields[i].max);
    }
    if (*s != '\0')
        return stk_err_set(err, -EINVAL, "has more than five fields");
    *ret = (struct stk_cron){.minute = bits[0],
                             .hour = (uint32_t)bits[1],
                             .day = (uint32_t)bits[2],
                             .month = (uint32_t)bits[3],
                             .weekday = (uint32_t)((bits[4] | bits[4] >> 7) & 127),
                             .any_hour = star[1],
                             .any_day = star[2],
                             .any_weekday = star[4]};
    return ever(ret) ? 0 : stk_err_set(err, -EINVAL, "names a day that never comes");
}

static bool day_fits(const struct stk_cron *c, const struct tm *t)
{
    bool day = c->day >> t->tm_mday & 1, weekday = c->weekday >> t->tm_wday & 1;

    if (!(c->month >> (t->tm_mon + 1) & 1))
        return false;
    return c->any_day || c->any_weekday ? day && weekday : day || weekday;
}

static bool clock_fits(const struct stk_cron *c, int hour, int minute)
{
    return (c->hour >> hour & 1) && (c->minute >> minute & 1);
}

static int of_day(const struct tm *t)
{
    return t->tm_hour * 60 + t->tm_min;
}

/* Whether it is due in the minute 't' begins; 'before' is the wall clock a minute earlier. */
static bool due(const struct stk_cron *c, time_t t, const struct tm *now, const struct tm *before)
{
    time_t earlier;
    struct tm then;
    bool same_day = now->tm_yday == before->tm_yday;

    if (same_day) /* what the clock jumped over */
        for (int m = of_day(before) + 1; m < of_day(now); m++)
            if (clock_fits(c, m / 60, m % 60))
                return true;
    if (!clock_fits(c, now->tm_hour, now->tm_min))
        return false;
    earlier = t - 3600; /* the same hour for the second time? */
    return c->any_hour || !localtime_r(&earlier, &then) || then.tm_hour != now->tm_hour ||
           then.tm_yday != now->tm_yday;
}

/* The first due time in the minutes from 'from' up to 'to'; -1: none. */
static time_t in_day(const struct stk_cron *c, time_t from, time_t to)
{
    struct tm before, now;
    time_t at = from - 60;

    if (!localtime_r(&at, &before))
        return -1;
    for (at = from; at < to; at += 60) {
        if (!localtime_r(&at, &now))
            return -1;
        if (due(c, at, &now, &before))
            return at;
        before = now;
    }
    return -1;
}

/* The first moment of a day: midnight, or later where midnight is jumped over. */
static time_t begin_of(const struct tm *day, int plus)
{
    struct tm t = {.tm_year = day->tm_year,
                   .tm_mon = day->tm_mon,
                   .tm_mday = day->tm_mday + plus,
                   .tm_isdst = -1};

    return mktime(&t);
}

int64_t stk_cron_next(const struct stk_cron *c, int64_t after_s)
{
    time_t from = (time_t)(after_s / 60 * 60 + 60);
    struct tm day;

    tzset();
    if (!localtime_r(&from, &day))
        return INT64_MAX;
    for (int i = 0; i < DAYS; i++) {
        time_t end = begin_of(&day, 1);
        time_t found = day_fits(c, &day) ? in_day(c, from, end) : -1;

        if (found >= 0)
            return found;
        from = end;
        if (end < 0 || !localtime_r(&end, &day))
            return INT64_MAX;
    }
    return INT64_MAX;
}
