/* SPDX-License-Identifier: Apache-2.0 */
/* cron.c - from words to bits, and from bits to the next time.
 *
 * A time is looked for day by day of the calendar there. Fixed hours: the moments at which the wall
 * shows them, which zone.h knows also where the clock jumps. Stars: the minutes that really pass,
 * and what the wall shows in each. */
#include "when/cron.h"

#include <string.h>

#define DAYS (INT64_C(366) * 9) /* there is no 29 February in 2100 */
#define DAY INT64_C(86400)
#define MINUTES 1440
#define MOST INT64_C(253402300799) /* the year 9999 */

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

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Large ones are all the same here. */
static const char *digits(const char *s, uint32_t *ret)
{
    for (*ret = 0; is_digit(*s); s++)
        *ret = *ret < 1000 ? *ret * 10 + (uint32_t)(*s - '0') : *ret;
    return s;
}

/* Three letters, large or small. */
static bool same_word(const char *s, const char *word)
{
    for (int i = 0; i < 3; i++)
        if ((s[i] >= 'A' && s[i] <= 'Z' ? s[i] + ('a' - 'A') : s[i]) != word[i])
            return false;
    return true;
}

static const char *blanks(const char *s)
{
    while (*s == ' ' || *s == '\t')
        s++;
    return s;
}

/* A number, or a name for one; returns what follows, NULL: neither. */
static const char *value(const struct field *f, const char *s, uint32_t *ret)
{
    if (is_digit(*s)) {
        s = digits(s, ret);
        return *ret >= f->min && *ret <= f->max ? s : NULL;
    }
    for (size_t i = 0; f->words[i * 3]; i++) {
        if (same_word(s, f->words + i * 3)) {
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
        if (!is_digit(s[1]))
            return NULL;
        s = digits(s + 1, &step);
        if (step == 0 || step > f->max)
            return NULL;
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
    return blanks(s);
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
    const char *s = blanks(text);
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

static bool day_fits(const struct stk_cron *c, const struct stk_date *t)
{
    bool day = c->day >> t->mday & 1, weekday = c->weekday >> t->weekday & 1;

    if (!(c->month >> t->month & 1))
        return false;
    return c->any_day || c->any_weekday ? day && weekday : day || weekday;
}

static bool clock_fits(const struct stk_cron *c, int32_t minute)
{
    return (c->hour >> (minute / 60) & 1) && (c->minute >> (minute % 60) & 1);
}

/* A day of the calendar, as if it were at UTC. */
static struct stk_date date_of(int64_t day)
{
    static const struct stk_zone utc = {.ruled = true};

    return stk_zone_date(&utc, day * DAY);
}

/* Whichever comes first of that day in the direction 'step' from the moment on. */
static bool fixed_in_day(const struct stk_cron *c, const struct stk_zone *z, int64_t day,
                         int64_t from, int step, int64_t *ret)
{
    int32_t minute = step > 0 ? 0 : MINUTES - 1;

    for (; minute >= 0 && minute < MINUTES; minute += step) {
        int64_t at;

        if (!clock_fits(c, minute))
            continue;
        at = stk_zone_moment(z, day, minute * 60);
        if (step > 0 ? at < from : at > from)
            continue;
        *ret = at;
        return true;
    }
    return false;
}

/* The same by minutes that pass: all at which it is that day there, and nowhere else. */
static bool star_in_day(const struct stk_cron *c, const struct stk_zone *z, int64_t day,
                        int64_t from, int step, int64_t *ret)
{
    int64_t begin = stk_zone_moment(z, day, 0), end = stk_zone_moment(z, day + 1, 0);
    int64_t at = step > 0 ? (from > begin ? from : begin) : (from < end ? from : end - 1);

    at = step > 0 ? (at + 59) / 60 * 60 : at / 60 * 60;
    for (; at >= begin && at < end; at += 60 * (int64_t)step) {
        const struct stk_date d = stk_zone_date(z, at);

        if (d.day == day && clock_fits(c, d.seconds / 60)) {
            *ret = at;
            return true;
        }
    }
    return false;
}

/* Times before 1970 are nobody's: minutes are not counted there. */
static bool look(const struct stk_cron *c, const struct stk_zone *z, int64_t from, int step,
                 int64_t *ret)
{
    int64_t first = stk_zone_date(z, from).day - step;

    for (int64_t i = 0; i < DAYS; i++) {
        int64_t day = first + i * step;
        const struct stk_date d = date_of(day);

        if (!day_fits(c, &d))
            continue;
        if (c->any_hour ? star_in_day(c, z, day, from, step, ret)
                        : fixed_in_day(c, z, day, from, step, ret))
            return true;
    }
    return false;
}

static bool in_range(int64_t s)
{
    return s >= 0 && s <= MOST;
}

int64_t stk_cron_next(const struct stk_cron *c, const struct stk_zone *z, int64_t after_s)
{
    int64_t at;

    return in_range(after_s) && look(c, z, after_s + 1, 1, &at) ? at : INT64_MAX;
}

int64_t stk_cron_last(const struct stk_cron *c, const struct stk_zone *z, int64_t upto_s)
{
    int64_t at;

    return in_range(upto_s) && look(c, z, upto_s, -1, &at) ? at : INT64_MIN;
}
