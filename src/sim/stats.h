/* SPDX-License-Identifier: Apache-2.0 */
/* stats.h - the totals of a run, and what the report shows about its tenants. Only jobs that ended
 * count. A percentile q of N sorted values is the one at index N*q/100: a value that occurred, no
 * interpolation. */
#ifndef STK_SIM_STATS_H
#define STK_SIM_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "sim/result.h"
#include "sim/trace.h"

/* Fills n_jobs, finished and all totals about completion times, waits, slowdown, makespan and
 * GPU-hours from r->jobs, over the jobs whose numeric trace id is within [first, last];
 * 0..UINT32_MAX means all jobs, those with names as ids too. The other totals are the caller's.
 * Without r->jobs nothing changes. Out of memory: the percentiles become NaN, which writers show
 * as "no value". */
void stk_run_result_sum(struct stk_run_result *r, const struct stk_trace *t, uint32_t first,
                        uint32_t last);

/* Ascending order; 'scratch' holds n values too. Linear time, stable, never fails. */
void stk_times_sort(stk_time *v, stk_time *scratch, size_t n);

struct stk_tenant_wait {
    uint32_t tenant; /* in trace->tenants */
    uint32_t jobs;   /* that ended */
    double avg_wait_s, p50_wait_s, p90_wait_s, avg_jct_s;
    double gpu_hours; /* of those jobs */
};

/* The tenants with the most GPU-hours in the trace, largest first, ties to the smaller number; the
 * same for every run of the trace. Returns how many were written (<= max) or -ENOMEM. */
int stk_tenants_top(const struct stk_trace *t, uint32_t *ret_tenants, uint32_t max);

/* One row for each of the 'n' given, distinct tenants. 0, or -ENOMEM; without r->jobs the rows
 * are zero. */
int stk_tenant_waits(const struct stk_run_result *r, const struct stk_trace *t,
                     const uint32_t *tenants, uint32_t n, struct stk_tenant_wait *ret_rows);

#endif
