/* SPDX-License-Identifier: Apache-2.0 */
/* zone.h - time zones: how late it is there, at any moment.
 *
 * The C library knows one zone at a time, for the whole process. Here a zone is a value: it is read
 * from a TZif file (RFC 8536), or from a rule as the variable TZ has it
 * ("CET-1CEST,M3.5.0,M10.5.0/3"), which also ends such files and says what holds after their last
 * change. Nothing is believed: files are somebody else's. Leap seconds are not known: files that
 * count them are refused.
 */
#ifndef STK_WHEN_ZONE_H
#define STK_WHEN_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define STK_MAX_ZONE_CHANGES 2000
#define STK_MAX_ZONE_NAME 64     /* bytes, with the end */
#define STK_MAX_ZONE_FILE 262144 /* bytes */

struct stk_zone_day { /* when summer time begins or ends */
    char kind;        /* 'M': the week's day; 'J': 1 to 365, never 29 February; 'D': 0 to 365 */
    int32_t month, week, day;
    int32_t seconds; /* of that day, by the clock until then; may be outside it */
};

struct stk_zone {
    char name[STK_MAX_ZONE_NAME];
    uint32_t n;                           /* changes */
    int64_t at[STK_MAX_ZONE_CHANGES];     /* from then on, Unix seconds, ascending */
    int32_t offset[STK_MAX_ZONE_CHANGES]; /* seconds east of UTC */
    int32_t before;                       /* until the first */
    bool ruled;                           /* the rest holds after the last change */
    bool summer;                          /* it has summer time */
    int32_t standard, daylight;           /* offsets */
    struct stk_zone_day begin, end;
};

/* UTC. */
void stk_zone_utc(struct stk_zone *ret);
/* -EBADMSG with what is wrong with the file. */
int stk_zone_read(const unsigned char *buf, size_t len, struct stk_zone *ret, struct stk_err *err);
/* -EINVAL: not a rule. */
int stk_zone_rule(const char *text, size_t len, struct stk_zone *ret, struct stk_err *err);
/* Whether it may be the name of a zone: "Europe/Berlin". It says nothing about files. */
bool stk_zone_name_ok(const char *name);

/* Seconds east of UTC at that moment. */
int32_t stk_zone_offset(const struct stk_zone *z, int64_t unix_s);

/* ---- the calendar ---- */

struct stk_date {
    int64_t day;               /* since 1970-01-01 */
    int32_t year, month, mday; /* month and day from 1 */
    int32_t weekday;           /* 0: Sunday */
    int32_t seconds;           /* of the day */
};

/* The clock on the wall there. */
struct stk_date stk_zone_date(const struct stk_zone *z, int64_t unix_s);
int64_t stk_days_from(int32_t year, int32_t month, int32_t mday); /* since 1970-01-01 */
/* The moment at which the wall shows so many seconds of the day for the first time; in a gap, the
 * moment after it. */
int64_t stk_zone_moment(const struct stk_zone *z, int64_t day, int32_t seconds);

#endif
