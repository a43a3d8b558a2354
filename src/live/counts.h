/* SPDX-License-Identifier: Apache-2.0 */
/* counts.h - what has happened since the daemon was started, counted as it happens: for /metrics
 * and for measurements over time. */
#ifndef STK_LIVE_COUNTS_H
#define STK_LIVE_COUNTS_H

#include <stdint.h>

#include "model/job.h"
#include "model/time.h"

#define STK_HISTOGRAM_BINS 20u

struct stk_histogram {
    const double *le;                /* upper bounds, ending with 0 */
    uint64_t in[STK_HISTOGRAM_BINS]; /* not above the bound, and above the one before; the last
                                        one used has what is above all */
    uint64_t count;
    double sum;
};
void stk_histogram_add(struct stk_histogram *h, double v);

enum stk_why_evicted {                       /* why a job had to go */
                       STK_EVICTED_PRIORITY, /* for another job, of its own tenant or where there
                                                are none */
                       STK_EVICTED_RECLAIM,  /* for a job of another tenant */
                       STK_EVICTED_MOVE,     /* to be placed elsewhere */
                       STK_EVICTED_HAND,     /* somebody said so, or a rule of idleness */
                       STK_EVICTED_OTHER,
                       STK_EVICTED_MAX
};
const char *stk_evicted_name(enum stk_why_evicted w);

struct stk_tenant_counts {
    uint64_t started;
    double waited_s; /* of those that started, together */
    uint64_t preempted;
};

struct stk_live_counts {
    uint64_t submitted, placed, started, decided;
    uint64_t ended[STK_CAUSE_MAX];
    uint64_t evicted[STK_EVICTED_MAX];
    double lost_gpu_s;           /* work that has to be done again */
    struct stk_histogram wait;   /* seconds from entering the queue to the first start */
    struct stk_histogram turn;   /* seconds of a turn, without writing */
    struct stk_histogram commit; /* seconds of writing */
    uint64_t failed;             /* turns that could not be written */
    struct stk_tenant_counts *tenant;
    uint32_t n_tenants;
};

#endif
