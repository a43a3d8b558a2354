/* SPDX-License-Identifier: Apache-2.0 */
/* series.h - a run boiled down to as many points as a chart can show, so that the report of ten
 * million jobs is as small as that of a thousand. */
#ifndef STK_SIM_SERIES_H
#define STK_SIM_SERIES_H

#include <stddef.h>
#include <stdint.h>

#include "sim/result.h"

/* Picks at most 'max' (>= 2) of 'n' sorted values, evenly spaced, first and last included: the
 * points of a cumulative distribution. Returns how many. */
uint32_t stk_series_cdf(const stk_time *sorted, size_t n, stk_time *ret_values, uint32_t max);

#define STK_SERIES_MAX_BINS 1000

/* Equal intervals of time, the same for all runs so that they can be compared. */
struct stk_bins {
    stk_time start, width;
    uint32_t n; /* <= STK_SERIES_MAX_BINS; 0: no run has samples that last */
};

/* At most 'max' of them, which is at most STK_SERIES_MAX_BINS. */
struct stk_bins stk_series_bins(const struct stk_run_result *runs, uint32_t n_runs, uint32_t max);

/* Of each interval: the average of GPUs in use over time (NaN where there is no sample), and the
 * most jobs that waited. Both have room for bins->n. Returns the number of intervals up to the end
 * of this run. */
uint32_t stk_series_sample(const struct stk_run_result *r, const struct stk_bins *bins,
                           double *ret_busy, uint32_t *ret_waiting);

#endif
