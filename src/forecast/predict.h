/* SPDX-License-Identifier: Apache-2.0 */
/* predict.h - how long jobs run, from how long others ran.
 *
 *     stk_predict_ran(p, &kind, run);                        a job has ended well
 *     t = stk_predict_run(p, &kind, ran_so_far, 500);        the median of what one will run in all
 *
 * What a user asks for says little about how long it takes; what the same user's jobs of the same
 * size took lately says more. So the latest run times are kept: of each user and size, of each
 * user, of each size, and of all. The first of these that has enough to say is asked. Where a user
 * gave an estimate, what is kept is which part of it was used, and that is applied to the new one.
 *
 * A job that has run for a while is compared with those that ran longer than that. One that has
 * outrun all of them is taken to be half over, in the median: the longer it has run, the longer it
 * will.
 *
 * Memory does not grow: users not seen for longest are forgotten. Equal calls give equal answers.
 */
#ifndef STK_FORECAST_PREDICT_H
#define STK_FORECAST_PREDICT_H

#include "base/mem.h"
#include "model/time.h"

struct stk_predict;

struct stk_run_kind {
    uint32_t user;
    uint32_t gpus;     /* of all tasks */
    stk_time estimate; /* the user's own; 0: none was given */
};

struct stk_predict *stk_predict_new(const struct stk_mem *mem); /* NULL: out of memory */
void stk_predict_free(struct stk_predict *p);                   /* NULL is a no-op */

void stk_predict_ran(struct stk_predict *p, const struct stk_run_kind *k, stk_time run);

/* What a job that has run so far, >= 0, and goes on will run in all: the time that it stays below
 * with this chance, in thousandths (1 to 999). Always more than 'so_far'. */
stk_time stk_predict_run(const struct stk_predict *p, const struct stk_run_kind *k, stk_time so_far,
                         uint32_t milli);
/* What the scheduler is told of a job that is submitted: how long its user asked for
 * (kind.estimate), corrected by what that user's own jobs of that size took.
 *
 * - At least 3 of the latest 32 of these are known: their median (of an even number the larger of
 *   the two in the middle), but no more than was asked for.
 * - Else what was asked for.
 * - Nothing was: the same median over the user's latest 32 jobs of any size.
 *
 * 0: nobody knows. O(1): 32 numbers are sorted. */
stk_time stk_predict_estimate(const struct stk_predict *p, const struct stk_run_kind *k);

/* As stk_predict_run() where jobs are stopped when they have run as long as their estimate. */
stk_time stk_predict_limited(const struct stk_predict *p, const struct stk_run_kind *k,
                             stk_time so_far, uint32_t milli);

#endif
