/* SPDX-License-Identifier: Apache-2.0 */
/* cron.h - times that come again: the five fields of cron, in some time zone.
 *
 *     30 3 * * mon-fri      half past three on working days
 *     0,15,30,45 * * * *    every quarter of an hour
 *     @daily                as hourly, daily, weekly, monthly, yearly
 *
 * Fields are minute, hour, day of the month, month, day of the week (0 and 7 are Sunday); each a
 * list of numbers, names and ranges, with steps. When both days are given either will do.
 *
 * Where the clock is put forward or back: what has a fixed hour comes once on each of its days;
 * right after the gap when it falls into it, and the first time when the hour comes twice. What has
 * a star for the hour comes whenever the wall's clock shows it: not in the gap, and twice in the
 * hour that comes twice. */
#ifndef STK_WHEN_CRON_H
#define STK_WHEN_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "when/zone.h"

#define STK_MAX_CRON 128 /* bytes of the text */

struct stk_cron { /* a bit for each number */
    uint64_t minute;
    uint32_t hour, day, month, weekday;
    bool any_hour, any_day, any_weekday; /* the field begins with a star */
};

/* -EINVAL with a sentence; also for dates that never come, such as 30 February. */
int stk_cron_parse(const char *text, struct stk_cron *ret, struct stk_err *err);

/* The first time after that moment, Unix seconds; INT64_MAX: none within nine years. */
int64_t stk_cron_next(const struct stk_cron *c, const struct stk_zone *z, int64_t after_s);
/* The last time up to that moment; INT64_MIN: none within nine years. */
int64_t stk_cron_last(const struct stk_cron *c, const struct stk_zone *z, int64_t upto_s);

#endif
