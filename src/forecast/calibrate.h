/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.h - forecasts corrected by what came of earlier ones.
 *
 *     stk_calibrate_waited(c, pool, gpus, wait);            a job has started, after this wait
 *     stk_calibrate_correct(c, &of, &expected);             what a forecast says, corrected
 *     stk_calibrate_said(c, number, now, wait);             what was said of a job,
 *     stk_calibrate_started(c, number, now);                and when it came true
 *
 * Two things are wrong with a forecast. Single run times are guessed badly, so that its P50 is
 * often far off: it is drawn towards the mean wait of the past, by a quarter, in the logarithm, but
 * not out of what the forecast holds for possible: where it is sure it stays. And
 * what is not foreseen at all (jobs that come later, users who are not as they were) makes P90 too
 * early: so it becomes what nine of ten of the latest forecasts would have needed, those included
 * that are already overdue.
 *
 * Jobs that are said to start at once are left alone: of them much more is known.
 *
 * Memory does not grow. Equal calls give equal answers.
 */
#ifndef STK_FORECAST_CALIBRATE_H
#define STK_FORECAST_CALIBRATE_H

#include "base/mem.h"
#include "forecast/forecast.h"
#include "model/id.h"

struct stk_calibrate;

struct stk_calibrate *stk_calibrate_new(const struct stk_mem *mem, uint32_t n_pools); /* or NULL */
void stk_calibrate_free(struct stk_calibrate *c); /* NULL is a no-op */

void stk_calibrate_waited(struct stk_calibrate *c, uint32_t pool, uint32_t gpus, stk_time wait);
/* The mean wait of the jobs of that pool and size so far; of the pool, or of all, where there are
 * none; 0: no job has started yet. */
stk_time stk_calibrate_mean(const struct stk_calibrate *c, uint32_t pool, uint32_t gpus);

void stk_calibrate_said(struct stk_calibrate *c, stk_job_number number, stk_time now,
                        stk_time wait);
void stk_calibrate_started(struct stk_calibrate *c, stk_job_number number, stk_time now);

struct stk_calibrate_of { /* a job */
    uint32_t pool, gpus;
    stk_time now, submitted;
};
void stk_calibrate_correct(const struct stk_calibrate *c, const struct stk_calibrate_of *of,
                           struct stk_expected *io);
/* What P90 is to P50, in waits, as of now; sorts the latest forecasts. Kept for correct(). */
void stk_calibrate_now(struct stk_calibrate *c, stk_time now);

#endif
