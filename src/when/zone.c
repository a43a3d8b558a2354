/* SPDX-License-Identifier: Apache-2.0 */
#include "when/zone.h"

#include <string.h>

#define DAY INT64_C(86400)
#define MAX_OFFSET (26 * 3600) /* RFC 8536: from -25:59:59 to 25:59:59 */

/* ---- the calendar ---- */

/* Years begin in March here, so that a leap day is the last; 400 years are an era of 146097 days.
 */
int64_t stk_days_from(int32_t year, int32_t month, int32_t mday)
{
    int64_t y = (int64_t)year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + mday - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void from_days(int64_t days, struct stk_date *ret)
{
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;

    ret->day = days;
    ret->mday = (int32_t)(doy - (153 * mp + 2) / 5 + 1);
    ret->month = (int32_t)(mp < 10 ? mp + 3 : mp - 9);
    ret->year = (int32_t)(yoe + era * 400 + (ret->month <= 2));
    ret->weekday = (int32_t)(((days + 4) % 7 + 7) % 7);
}

static int64_t floor_days(int64_t seconds)
{
    return seconds / DAY - (seconds % DAY < 0);
}

struct stk_date stk_zone_date(const struct stk_zone *z, int64_t unix_s)
{
    int64_t local = unix_s + stk_zone_offset(z, unix_s), days = floor_days(local);
    struct stk_date d = {.seconds = (int32_t)(local - days * DAY)};

    from_days(days, &d);
    return d;
}

/* Whatever the clock was put to, it is that of some moment within a day or so. Of the offsets that
 * hold around there, the one that gives the earliest moment that the wall really shows. */
int64_t stk_zone_moment(const struct stk_zone *z, int64_t day, int32_t seconds)
{
    int64_t local = day * DAY + seconds;
    int32_t early = stk_zone_offset(z, local - 2 * DAY), late = stk_zone_offset(z, local + 2 * DAY);
    int64_t first = local - early, second = local - late, low, high;

    if (first + stk_zone_offset(z, first) == local)
        return first;
    if (second + stk_zone_offset(z, second) == local)
        return second;
    low = first < second ? first : second; /* in a gap: the first moment whose wall is later */
    high = first < second ? second : first;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;

        if (mid + stk_zone_offset(z, mid) >= local)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* ---- rules ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

struct text {
    const char *at, *end;
};

static bool next_is(struct text *t, char c)
{
    if (t->at == t->end || *t->at != c)
        return false;
    t->at++;
    return true;
}

/* A whole number of at most three digits. */
static bool number(struct text *t, int32_t least, int32_t most, int32_t *ret)
{
    int32_t v = 0, digits = 0;

    for (; t->at < t->end && is_digit(*t->at) && digits < 4; t->at++, digits++)
        v = v * 10 + (*t->at - '0');
    *ret = v;
    return digits > 0 && digits < 4 && v >= least && v <= most;
}

/* "CET" or "<+03>". */
static bool zone_name(struct text *t)
{
    const char *from = t->at;

    if (next_is(t, '<')) {
        while (t->at < t->end &&
               (is_letter(*t->at) || is_digit(*t->at) || *t->at == '+' || *t->at == '-'))
            t->at++;
        return t->at - from > 1 && next_is(t, '>');
    }
    while (t->at < t->end && is_letter(*t->at))
        t->at++;
    return t->at - from >= 3;
}

/* "[+-]hh[:mm[:ss]]" in seconds. */
static bool clock_time(struct text *t, int32_t most, int32_t *ret)
{
    bool minus = next_is(t, '-');
    int32_t h, m = 0, s = 0;

    if (!minus)
        (void)next_is(t, '+');
    if (!number(t, 0, most, &h))
        return false;
    if (next_is(t, ':')) {
        if (!number(t, 0, 59, &m))
            return false;
        if (next_is(t, ':') && !number(t, 0, 59, &s))
            return false;
    }
    *ret = (minus ? -1 : 1) * (h * 3600 + m * 60 + s);
    return true;
}

static bool change_day(struct text *t, struct stk_zone_day *ret)
{
    bool ok;

    *ret = (struct stk_zone_day){.seconds = 2 * 3600};
    if (next_is(t, 'M')) {
        ret->kind = 'M';
        ok = number(t, 1, 12, &ret->month) && next_is(t, '.') && number(t, 1, 5, &ret->week) &&
             next_is(t, '.') && number(t, 0, 6, &ret->day);
    } else if (next_is(t, 'J')) {
        ret->kind = 'J';
        ok = number(t, 1, 365, &ret->day);
    } else {
        ret->kind = 'D';
        ok = number(t, 0, 365, &ret->day);
    }
    return ok && (!next_is(t, '/') || clock_time(t, 167, &ret->seconds));
}

static bool parse_rule(struct text *t, struct stk_zone *z)
{
    int32_t west;

    if (!zone_name(t) || !clock_time(t, 24, &west))
        return false;
    z->standard = -west;
    z->summer = t->at < t->end;
    if (!z->summer)
        return true;
    z->daylight = z->standard + 3600;
    if (!zone_name(t))
        return false;
    if (t->at < t->end && *t->at != ',') {
        if (!clock_time(t, 24, &west))
            return false;
        z->daylight = -west;
    }
    return next_is(t, ',') && change_day(t, &z->begin) && next_is(t, ',') &&
           change_day(t, &z->end) && t->at == t->end;
}

int stk_zone_rule(const char *text, size_t len, struct stk_zone *ret, struct stk_err *err)
{
    struct text t = {text, text + len};
    struct stk_zone z = *ret;

    z.ruled = true;
    if (!parse_rule(&t, &z))
        return stk_err_set(err, -EINVAL,
                           "not a rule of a time zone, such as CET-1CEST,M3.5.0,M10.5.0/3");
    *ret = z;
    return 0;
}

static bool leap_year(int32_t y)
{
    return y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
}

/* The change in a year, in seconds by the wall's clock since 1970. */
static int64_t change_in(const struct stk_zone_day *d, int32_t year)
{
    static const int32_t length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t day = stk_days_from(year, 1, 1);

    if (d->kind == 'J') {
        day += d->day - 1 + (leap_year(year) && d->day >= 60);
    } else if (d->kind == 'D') {
        day += d->day;
    } else {
        int64_t first = stk_days_from(year, d->month, 1);
        int32_t weekday = (int32_t)(((first + 4) % 7 + 7) % 7);
        int32_t mday = 1 + (d->day - weekday + 7) % 7 + (d->week - 1) * 7;
        int32_t last = length[d->month - 1] + (d->month == 2 && leap_year(year));

        day = first + (mday > last ? mday - 7 : mday) - 1;
    }
    return day * DAY + d->seconds;
}

static int32_t ruled_offset(const struct stk_zone *z, int64_t unix_s)
{
    struct stk_date d;
    int64_t begin, end;
    bool in;

    if (!z->summer)
        return z->standard;
    from_days(floor_days(unix_s + z->standard), &d);
    begin = change_in(&z->begin, d.year) - z->standard;
    end = change_in(&z->end, d.year) - z->daylight;
    in = begin < end ? unix_s >= begin && unix_s < end : unix_s >= begin || unix_s < end;
    return in ? z->daylight : z->standard;
}

int32_t stk_zone_offset(const struct stk_zone *z, int64_t unix_s)
{
    uint32_t low = 0, high = z->n;

    if (z->ruled && (z->n == 0 || unix_s >= z->at[z->n - 1]))
        return ruled_offset(z, unix_s);
    while (low < high) { /* the first change after that moment */
        uint32_t mid = low + (high - low) / 2;

        if (z->at[mid] <= unix_s)
            low = mid + 1;
        else
            high = mid;
    }
    return low == 0 ? z->before : z->offset[low - 1];
}

/* ---- files ---- */

void stk_zone_utc(struct stk_zone *ret)
{
    *ret = (struct stk_zone){.name = "UTC", .ruled = true};
}

bool stk_zone_name_ok(const char *name)
{
    size_t len = strlen(name);

    if (len == 0 || len >= STK_MAX_ZONE_NAME || !is_letter(name[0]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_letter(name[i]) && !is_digit(name[i]) && !strchr("_+-/", name[i]))
            return false; /* no dots: no way up */
    return name[len - 1] != '/';
}

static uint32_t big32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t big64(const unsigned char *p)
{
    return (int64_t)((uint64_t)big32(p) << 32 | big32(p + 4));
}

struct counts {
    uint32_t isut, isstd, leap, time, type, chars;
};

static int bad(struct stk_err *err, const char *what)
{
    return stk_err_set(err, -EBADMSG, "not a time zone file: %s", what);
}

/* A header, and how many bytes follow it. */
static int get_header(const unsigned char *p, size_t left, size_t time_size, struct counts *ret,
                      size_t *ret_size, struct stk_err *err)
{
    if (left < 44 || memcmp(p, "TZif", 4) != 0)
        return bad(err, "it starts with something else, or is cut short");
    *ret = (struct counts){big32(p + 20), big32(p + 24), big32(p + 28),
                           big32(p + 32), big32(p + 36), big32(p + 40)};
    if (ret->time > STK_MAX_ZONE_CHANGES || ret->type == 0 || ret->type > 256 ||
        ret->chars > 4096 || ret->leap > 4096 || ret->isut > 256 || ret->isstd > 256)
        return bad(err, "more changes or kinds of time than any zone has");
    *ret_size = ret->time * (time_size + 1) + (size_t)ret->type * 6 + ret->chars +
                ret->leap * (time_size + 4) + ret->isstd + ret->isut;
    if (left - 44 < *ret_size)
        return bad(err, "it is cut short");
    return 0;
}

static int get_changes(const unsigned char *p, const struct counts *c, size_t size,
                       struct stk_zone *z, struct stk_err *err)
{
    const unsigned char *kinds = p + c->time * size, *types = kinds + c->time;

    for (uint32_t i = 0; i < c->type; i++) {
        int32_t offset = (int32_t)big32(types + (size_t)i * 6);

        if (offset <= -MAX_OFFSET || offset >= MAX_OFFSET)
            return bad(err, "an offset of more than a day");
    }
    z->before = (int32_t)big32(types);
    z->n = c->time;
    for (uint32_t i = 0; i < c->time; i++) {
        z->at[i] = size == 8 ? big64(p + i * size) : (int32_t)big32(p + i * size);
        if (kinds[i] >= c->type || (i > 0 && z->at[i] <= z->at[i - 1]))
            return bad(err, "its changes are not in order");
        z->offset[i] = (int32_t)big32(types + (size_t)kinds[i] * 6);
    }
    return c->leap > 0 ? bad(err, "it counts leap seconds") : 0;
}

/* The rule between two newlines, at the end. */
static int get_footer(const unsigned char *p, const unsigned char *end, struct stk_zone *z,
                      struct stk_err *err)
{
    const unsigned char *stop;

    if (p == end || *p != '\n')
        return bad(err, "it does not end with a rule");
    p++;
    stop = p == end ? NULL : memchr(p, '\n', (size_t)(end - p));
    if (!stop)
        return bad(err, "it does not end with a rule");
    if (stop == p)
        return 0;
    if (stk_zone_rule((const char *)p, (size_t)(stop - p), z, NULL) < 0)
        return bad(err, "its last rule");
    return 0;
}

int stk_zone_read(const unsigned char *buf, size_t len, struct stk_zone *ret, struct stk_err *err)
{
    const unsigned char *p = buf, *end = buf + len;
    struct counts c = {0};
    size_t size = 0;
    int rc = get_header(p, len, 4, &c, &size, err);

    *ret = (struct stk_zone){.n = 0};
    if (rc < 0)
        return rc;
    if (p[4] < '2') /* nothing but 32 bits */
        return get_changes(p + 44, &c, 4, ret, err);
    p += 44 + size;
    rc = get_header(p, (size_t)(end - p), 8, &c, &size, err);
    rc = rc < 0 ? rc : get_changes(p + 44, &c, 8, ret, err);
    return rc < 0 ? rc : get_footer(p + 44 + size, end, ret, err);
}
