/* SPDX-License-Identifier: Apache-2.0 */
/* figures.h - what was allocated, active, waited for and preempted in a period: the one definition
 * of each figure (docs/spec/figures.md). Reports, usage, baselines, what-if and metrics all ask
 * here, so they agree to the last digit.
 *
 * GPU time is an integer: thousandths of a GPU times microseconds. Sums are exact, and figures of
 * adjacent periods add up. Numbers are rounded only where they are shown: stk_figures_hours() and
 * stk_figures_ratio(), both monotone, so that what is less is never shown as more.
 *
 *     figures.c   leases of a job and capacity, in a period; pure
 *     amounts.c      the same amounts by interval of time; pure
 *     read.c      a job's leases and the capacity, from the store
 */
#ifndef STK_FIGURES_FIGURES_H
#define STK_FIGURES_FIGURES_H

#include "model/lease.h"
#include "store/store.h"

__extension__ typedef unsigned __int128 stk_gpu_time; /* thousandths of a GPU x microseconds */

struct stk_period { /* [since, until) */
    stk_time since, until;
};

/* ---- amounts by interval of time ---- */

enum stk_amount {
    STK_AMOUNT_KNOWN, /* microseconds in which the capacity was known */
    STK_AMOUNT_CAPACITY,
    STK_AMOUNT_ALLOCATED,
    STK_AMOUNT_ACTIVE,
    STK_AMOUNT_MAX
};

struct stk_gpu_amounts { /* zeroed: none */
    stk_time since, step;
    uint32_t n;
    uint64_t *amount[STK_AMOUNT_MAX]; /* of each interval, GPU time; complete after _finish() */
    int64_t *change[STK_AMOUNT_MAX];  /* of what whole intervals get, from this one on */
};

/* Intervals that cover the period, each a multiple of 'step' since 1970. -ENOMEM. */
int stk_gpu_amounts_init(struct stk_gpu_amounts *b, struct stk_period p, stk_time step);
void stk_gpu_amounts_done(struct stk_gpu_amounts *b);
/* Spreads an amount evenly over [from, to); what lies before the first interval is left out, the
 * rest is there to the last digit. */
void stk_gpu_amounts_add(struct stk_gpu_amounts *b, enum stk_amount which, stk_time from,
                         stk_time to, stk_gpu_time amount);
void stk_gpu_amounts_finish(
    struct stk_gpu_amounts *b); /* more may be added after it, and it be called again */

/* ---- one job ---- */

struct stk_job_past {
    const struct stk_lease *lease; /* in order of time */
    uint32_t n;
    stk_gpu_time sampled, active; /* in its whole life: seen by samples; of which active */
};

struct stk_job_figures {
    stk_gpu_time allocated, measured, active; /* active <= measured <= allocated */
    stk_gpu_time ever, sampled; /* allocated up to now, and seen by samples, in its whole life */
    stk_time run;               /* time it had a lease, in the period */
    stk_time waited;            /* before its starts in the period */
    uint32_t starts, preemptions;
};

/* A lease that has not ended goes on until 'now'. 'bins' may be NULL. */
void stk_figures_of_job(const struct stk_job_past *past, struct stk_period p, stk_time now,
                        struct stk_job_figures *ret, struct stk_gpu_amounts *bins);

/* Value number 'ret' of n > 0 sorted ones has per_mille of them up to it: nearest rank. */
uint32_t stk_figures_rank(uint32_t n, uint32_t per_mille);

/* ---- capacity ---- */

struct stk_capacity_figures { /* zeroed: nothing is known */
    stk_gpu_time sum;
    stk_time known; /* of the period: how long the capacity was known */
    uint32_t gpus;  /* when it ended */
};

/* There were 'gpus' GPUs in the period 'when'. Called in order of time. 'bins' may be NULL. */
void stk_figures_capacity(struct stk_capacity_figures *io, struct stk_period p,
                          struct stk_period when, uint32_t gpus, struct stk_gpu_amounts *bins);

/* ---- as shown ---- */

double stk_figures_hours(stk_gpu_time t);                     /* GPU-hours, to 0.000001 */
double stk_figures_ratio(stk_gpu_time part, stk_gpu_time of); /* to 0.000001; -1: of nothing */

/* ---- from the store (read.c) ---- */

struct stk_leases { /* zeroed: empty */
    struct stk_lease *list;
    uint32_t n, cap;
};
void stk_leases_done(struct stk_leases *l);
/* Those of a job, in order of time, in place of what there was. */
int stk_leases_read(struct stk_leases *l, struct stk_store *st, const struct stk_record *r,
                    struct stk_err *err);
/* GPU time of seconds as measurements have them. */
stk_gpu_time stk_figures_of_seconds(double gpu_s);
int stk_figures_read_capacity(struct stk_store *st, struct stk_period p,
                              struct stk_capacity_figures *ret, struct stk_gpu_amounts *bins,
                              struct stk_err *err);

#endif
