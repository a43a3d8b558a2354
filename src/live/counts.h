/* SPDX-License-Identifier: Apache-2.0 */
/* counts.h - what has happened since the daemon was started, counted as it happens: for /metrics
 * and for measurements over time. */
#ifndef STK_LIVE_COUNTS_H
#define STK_LIVE_COUNTS_H

#include <stdint.h>

#include "figures/figures.h"
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

/* Why a job had to go. Only the first are preemptions: another job needed its GPUs. */
enum stk_why_evicted {
    STK_EVICTED_PRIORITY, /* for another job, of its own tenant or where there are none */
    STK_EVICTED_RECLAIM,  /* for a job of another tenant */
    STK_EVICTED_OTHER,    /* to make room, and it is not known for whom */
    STK_PREEMPTED_MAX,
    STK_EVICTED_MOVE = STK_PREEMPTED_MAX, /* to be placed elsewhere */
    STK_EVICTED_HAND,                     /* asked for by a user, or by a rule of idleness */
    STK_EVICTED_MAX
};
const char *stk_evicted_name(enum stk_why_evicted w);

struct stk_tenant_counts {
    uint64_t started, starts; /* first starts; restarts included */
    stk_time waited;          /* before all starts, together */
    uint64_t preempted;
};

struct stk_live_counts {
    stk_time since;                               /* when the daemon was started */
    uint64_t submitted, placed, started, decided; /* started: first starts */
    uint64_t ended[STK_CAUSE_MAX];
    uint64_t evicted[STK_EVICTED_MAX]; /* counted when the GPUs are given back */
    stk_gpu_time allocated;            /* by leases that are over, since then */
    double lost_gpu_s;                 /* work that has to be done again */
    struct stk_histogram wait;         /* seconds waited before each start */
    struct stk_histogram turn;         /* seconds of a turn, without writing */
    struct stk_histogram commit;       /* seconds of writing */
    uint64_t failed;                   /* turns that could not be written */
    struct stk_tenant_counts *tenant;
    uint32_t n_tenants;
};

uint64_t stk_preemptions(const struct stk_live_counts *c);

#endif
