/* SPDX-License-Identifier: Apache-2.0 */
/* foresee.h - how good forecasts are: while a trace is replayed, every so many-th job is asked
 * about when it is submitted (forecast/forecast.h), and what was said is compared with when it
 * started.
 *
 * The forecast knows what a scheduler could know then: jobs that have ended, and since when others
 * run; of run times only those of jobs that ended, and estimates if the trace has them. Beside it,
 * what a plain program says: the mean wait of the jobs of that pool and size that have started so
 * far. */
#ifndef STK_SIM_FORESEE_H
#define STK_SIM_FORESEE_H

#include "core/core.h"
#include "core/state.h"
#include "forecast/predict.h"
#include "sim/trace.h"

struct stk_foresee;

struct stk_foreseen_part { /* errors in seconds, of P50 and of the mean of past waits */
    uint32_t jobs;
    double p90_coverage; /* share that had started by P90 */
    double median_error_s, naive_median_error_s;
    double mean_error_s, naive_mean_error_s;
};

struct stk_foreseen {
    uint32_t every;   /* 0: nobody asked */
    uint32_t unknown; /* jobs of which no start was foreseen; in no other number */
    struct stk_foreseen_part all, waited; /* waited: those that did not start at once */
    /* |predicted - true| / true of run times, median; plain: the trace's estimate, or else the
     * median of the latest jobs of that size, whoever's */
    double run_error, plain_run_error;
};

/* The predictor is borrowed; who owns it tells it of each job that ends. */
int stk_foresee_new(const struct stk_trace *t, uint32_t n_pools, const struct stk_predict *predict,
                    uint32_t every, struct stk_foresee **ret, struct stk_err *err);
void stk_foresee_free(struct stk_foresee *f);

void stk_foresee_submitted(struct stk_foresee *f, uint32_t job);
void stk_foresee_started(struct stk_foresee *f, const struct stk_state *s, uint32_t job,
                         stk_time now); /* for the first time */
/* Asks about those submitted since the last look. Before anything is decided. */
int stk_foresee_look(struct stk_foresee *f, const struct stk_core *core, stk_time now,
                     struct stk_err *err);

struct stk_job_result;
/* By when jobs did start, by index in the trace. */
void stk_foresee_sum(struct stk_foresee *f, const struct stk_job_result *jobs,
                     struct stk_foreseen *ret);

#endif
