/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/series.h"

#include <math.h>

uint32_t stk_series_cdf(const stk_time *sorted, size_t n, stk_time *ret_values, uint32_t max)
{
    uint32_t points = n < max ? (uint32_t)n : max;

    for (uint32_t i = 0; i < points; i++)
        ret_values[i] = sorted[points > 1 ? (uint64_t)i * (n - 1) / (points - 1) : 0];
    return points;
}

struct stk_bins stk_series_bins(const struct stk_run_result *runs, uint32_t n_runs, uint32_t max)
{
    stk_time start = STK_NEVER_TIME, end = 0;
    struct stk_bins b = {0};

    for (uint32_t i = 0; i < n_runs; i++) {
        const struct stk_run_result *r = &runs[i];

        if (!r->samples || r->n_samples < 2)
            continue;
        start = r->samples[0].at < start ? r->samples[0].at : start;
        end = r->samples[r->n_samples - 1].at > end ? r->samples[r->n_samples - 1].at : end;
    }
    if (end <= start || max == 0)
        return b;
    max = max < STK_SERIES_MAX_BINS ? max : STK_SERIES_MAX_BINS;
    b.start = start;
    b.width = (end - start + max - 1) / max;
    b.n = (uint32_t)((end - start + b.width - 1) / b.width);
    return b;
}

/* Spreads one state, which lasted from 'from' to 'to', over the intervals it touches. */
static void spread(const struct stk_bins *bins, const struct stk_sample *s, stk_time to,
                   double *busy, double *covered, uint32_t *waiting)
{
    uint32_t i = (uint32_t)((s->at - bins->start) / bins->width);

    for (stk_time from = s->at; from < to && i < bins->n; i++) {
        stk_time end = bins->start + bins->width * ((stk_time)i + 1);
        stk_time stop = to < end ? to : end;

        busy[i] += (double)s->gpus_busy * (double)(stop - from);
        covered[i] += (double)(stop - from);
        if (s->waiting > waiting[i])
            waiting[i] = s->waiting;
        from = stop;
    }
}

uint32_t stk_series_sample(const struct stk_run_result *r, const struct stk_bins *bins,
                           double *ret_busy, uint32_t *ret_waiting)
{
    double covered[STK_SERIES_MAX_BINS] = {0};
    uint32_t used = 0;

    for (uint32_t i = 0; i < bins->n; i++) {
        ret_busy[i] = 0;
        ret_waiting[i] = 0;
    }
    for (uint32_t i = 0; i + 1 < r->n_samples; i++)
        spread(bins, &r->samples[i], r->samples[i + 1].at, ret_busy, covered, ret_waiting);
    for (uint32_t i = 0; i < bins->n; i++) {
        if (covered[i] > 0)
            used = i + 1;
        ret_busy[i] = covered[i] > 0 ? ret_busy[i] / covered[i] : (double)NAN;
    }
    return used;
}
