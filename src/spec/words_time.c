/* SPDX-License-Identifier: Apache-2.0 */
/* words_time.c - points in time as sbatch's --begin takes them; see words.h.
 *
 * A time is a date, a time of day, or both joined by 'T'. Without a date it is the next time the
 * clock shows it; without a time of day it is the day's midnight. A day that the calendar does not
 * have, and a time that the clock skips on the day that was named, are refused.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "spec/words.h"

#define MAX_UNIX_S INT64_C(253402300799) /* the end of the year 9999 */

static int now_plus(const char *s, int64_t now_s, int64_t *ret_s)
{
    static const struct {
        const char *words;
        int64_t seconds;
    } units[] = {{"|s|sec|secs|second|seconds", 1},
                 {"m|min|mins|minute|minutes", 60},
                 {"h|hour|hours", 3600},
                 {"d|day|days", 86400},
                 {"w|week|weeks", 604800}};
    char number[24];
    size_t n = strspn(s, "0123456789");
    int64_t count;

    if (n == 0 || n >= sizeof(number))
        return -EINVAL;
    memcpy(number, s, n);
    number[n] = '\0';
    if (stk_words_whole(number, STK_MAX_SECONDS, &count) < 0)
        return -EINVAL;
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        if (s[n] != '\0' ? stk_words_among(s + n, units[i].words) : i == 0) {
            if (count > STK_MAX_SECONDS / units[i].seconds)
                return -EINVAL;
            *ret_s = now_s + count * units[i].seconds;
            return 0;
        }
    }
    return -EINVAL;
}

/* The number of two digits at s; -1: there are none. */
static int two(const char *s)
{
    if (s[0] < '0' || s[0] > '9' || s[1] < '0' || s[1] > '9')
        return -1;
    return (s[0] - '0') * 10 + (s[1] - '0');
}

/* 's' is what was said, of which a part is out of range. */
static int set_date(const char *s, struct tm *tm, int year, int month, int day, struct stk_err *err)
{
    static const char *const names[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    int most;

    if (month < 0 || day < 0)
        return -EINVAL;
    if (year < 1970)
        return stk_err_set(err, -ERANGE, "%s: years begin with 1970", s);
    if (month < 1 || month > 12)
        return stk_err_set(err, -ERANGE, "%s: there is no month %d", s, month);
    most = days[month - 1] + (month == 2 && leap);
    if (day > most)
        return stk_err_set(err, -ERANGE, "%s: %s %d has %d days", s, names[month - 1], year, most);
    if (day < 1)
        return stk_err_set(err, -ERANGE, "%s: days begin with 1", s);
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    return 0;
}

/* "2024-01-02", "01/02/24", "01/02", "010224", "01.02.24" */
static int read_date(const char *s, struct tm *tm, struct stk_err *err)
{
    size_t n = strlen(s);

    if (n == 10 && s[4] == '-' && s[7] == '-' && two(s) >= 0 && two(s + 2) >= 0)
        return set_date(s, tm, two(s) * 100 + two(s + 2), two(s + 5), two(s + 8), err);
    if (n == 6 && strspn(s, "0123456789") == 6)
        return set_date(s, tm, 2000 + two(s + 4), two(s), two(s + 2), err);
    if ((n == 8 || n == 5) && (s[2] == '/' || s[2] == '.') &&
        (n == 5 || (s[5] == s[2] && two(s + 6) >= 0)))
        return set_date(s, tm, n == 8 ? 2000 + two(s + 6) : tm->tm_year + 1900, two(s), two(s + 3),
                        err);
    return -EINVAL;
}

static int check_clock(const char *s, int hour, int minute, int second, bool half,
                       struct stk_err *err)
{
    if (half && (hour < 1 || hour > 12))
        return stk_err_set(err, -ERANGE, "%s: hours with am and pm are 1 to 12", s);
    if (hour > 23)
        return stk_err_set(err, -ERANGE, "%s: hours are 0 to 23", s);
    if (minute > 59)
        return stk_err_set(err, -ERANGE, "%s: minutes are 0 to 59", s);
    if (second > 59)
        return stk_err_set(err, -ERANGE, "%s: seconds are 0 to 59", s);
    return 0;
}

/* "16:30", "16:30:15", "4:30pm", "midnight", "noon", "teatime" */
static int read_clock(const char *s, struct tm *tm, struct stk_err *err)
{
    static const struct {
        const char *name;
        int hour;
    } names[] = {{"midnight", 0}, {"noon", 12}, {"teatime", 16}, {"fika", 15}, {"elevenses", 11}};
    char digits[12];
    size_t n = strspn(s, "0123456789:");
    int hour = 0, minute = 0, second = 0, end = 0;
    bool pm, half;
    int rc;

    tm->tm_min = tm->tm_sec = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (strcasecmp(s, names[i].name) == 0) {
            tm->tm_hour = names[i].hour;
            return 0;
        }
    }
    if (n < 4 || n > 8)
        return -EINVAL;
    memcpy(digits, s, n);
    digits[n] = '\0';
    pm = strcasecmp(s + n, "pm") == 0;
    half = pm || strcasecmp(s + n, "am") == 0;
    // NOLINTNEXTLINE(cert-err34-c): at most eight digits and colons
    if ((s[n] != '\0' && !half) || sscanf(digits, "%2d:%2d%n", &hour, &minute, &end) != 2)
        return -EINVAL;
    if (digits[end] == ':') {
        second = two(digits + end + 1);
        end += 3;
    }
    if ((size_t)end != n || second < 0)
        return -EINVAL;
    rc = check_clock(s, hour, minute, second, half, err);
    if (rc < 0)
        return rc;
    tm->tm_hour = half ? hour % 12 + (pm ? 12 : 0) : hour;
    tm->tm_min = minute;
    tm->tm_sec = second;
    return 0;
}

/* Into 'tm', which is now; *ret_clock: a time of day alone; *ret_both: a day and a time. */
static int read_parts(const char *s, struct tm *tm, bool *ret_clock, bool *ret_both,
                      struct stk_err *err)
{
    const char *t = strchr(s, 'T');
    char date[16];
    int rc;

    if (strcasecmp(s, "today") == 0 || strcasecmp(s, "tomorrow") == 0) {
        tm->tm_mday += strcasecmp(s, "tomorrow") == 0;
        tm->tm_hour = tm->tm_min = tm->tm_sec = 0;
        return 0;
    }
    if (t && t != s && (size_t)(t - s) < sizeof(date)) {
        memcpy(date, s, (size_t)(t - s));
        date[t - s] = '\0';
        *ret_both = true;
        rc = read_date(date, tm, err);
        return rc < 0 ? rc : read_clock(t + 1, tm, err);
    }
    rc = read_date(s, tm, err);
    if (rc == 0)
        tm->tm_hour = tm->tm_min = tm->tm_sec = 0;
    if (rc != -EINVAL)
        return rc;
    *ret_clock = true;
    return read_clock(s, tm, err);
}

static int local_time(const char *s, int64_t now_s, int64_t *ret_s, struct stk_err *err)
{
    time_t now = (time_t)now_s, at;
    bool clock_only = false, both = false;
    struct tm tm;
    int hour, minute, rc;

    if (!localtime_r(&now, &tm))
        return -EINVAL;
    tm.tm_isdst = -1;
    rc = read_parts(s, &tm, &clock_only, &both, err);
    if (rc < 0)
        return rc;
    hour = tm.tm_hour;
    minute = tm.tm_min;
    at = mktime(&tm);
    if (both && (tm.tm_hour != hour || tm.tm_min != minute))
        return stk_err_set(err, -ERANGE, "%s: summer time begins then, and the clock skips it", s);
    if (clock_only && at != (time_t)-1 && at <= now) {
        tm.tm_mday++;
        tm.tm_isdst = -1;
        at = mktime(&tm);
    }
    if (at == (time_t)-1 || (int64_t)at < 0 || (int64_t)at > MAX_UNIX_S)
        return -EINVAL;
    *ret_s = (int64_t)at;
    return 0;
}

int stk_words_time(const char *s, int64_t now_s, int64_t *ret_s, struct stk_err *err)
{
    if (strlen(s) > 40)
        return -EINVAL;
    if (strcasecmp(s, "now") == 0) {
        *ret_s = now_s;
        return 0;
    }
    if (s[0] == '+' && stk_words_duration(s + 1, 60, ret_s) == 0) {
        *ret_s += now_s;
        return 0;
    }
    if (strncasecmp(s, "now+", 4) == 0)
        return now_plus(s + 4, now_s, ret_s);
    if (strlen(s) >= 9 && strspn(s, "0123456789") == strlen(s))
        return stk_words_whole(s, MAX_UNIX_S, ret_s);
    return local_time(s, now_s, ret_s, err);
}
