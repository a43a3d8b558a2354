/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h - the daemon's measurements over time: what each look at jobs and GPUs has seen. */
#ifndef STK_DAEMON_SAMPLE_H
#define STK_DAEMON_SAMPLE_H

#include "core/state.h"
#include "daemon/daemon.h"
#include "series/series.h"
#include "sys/procs.h"

struct stk_sampled { /* a job that has GPUs or processes */
    stk_job_number number;
    bool here;                     /* seen at this look */
    bool known;                    /* looked at before: its CPU time can be compared */
    uint64_t ticks;                /* CPU time up to the last look */
    double cpus, rss_mib;          /* since then; now */
    double active[STK_USAGE_GPUS]; /* share of the time at work, of its first GPUs */
    double gpus, at_work;          /* GPUs it has, and those at work, parts as parts */
    double measured;               /* of its GPUs, those of which activity is known */
    uint32_t n_gpus;               /* whole, or parts of so many */
    bool unknown;                  /* one of its GPUs was not read */
    stk_time idle_since;    /* it has GPUs and does nothing; 0: it works, or that is not known */
    bool worked;            /* it was seen to work since this daemon started */
    struct stk_usage usage; /* not written yet */
};

struct stk_sampler {
    struct stk_daemon *d;
    uv_timer_t timer, again;
    struct stk_series *series;
    struct stk_mem mem;
    struct stk_sampled *list;
    uint32_t n, cap;
    struct stk_map by_number;
    stk_time looked, looked_by; /* at jobs, last; and CLOCK_BOOTTIME then */
    stk_time oldest;            /* since when the job that waits longest does; 0: none */
    stk_job_number oldest_job;
    struct stk_gpu_use {
        float alloc, at_work;
    } * gpus; /* at this look; node * STK_MAX_NODE_GPUS + GPU */
    struct stk_live_counts_seen {
        uint64_t starts, ended, preempted;
        double waited_s;
        struct {
            uint64_t starts;
            stk_time waited;
        } * tenant;
        uint32_t n_tenants;
    } seen; /* counters as they were at the last look */
};

/* sample_jobs.c: looks at every job that has GPUs or processes; 'dt' is the time since the last
 * look in seconds. */
void stk_sample_jobs(struct stk_sampler *w, double dt);
/* Puts what was seen into the series, and adds it up. */
void stk_sample_put_jobs(struct stk_sampler *w, double dt);

/* sample_all.c: GPUs, tenants, the whole. */
void stk_sample_put_gpus(struct stk_sampler *w);
void stk_sample_put_tenants(struct stk_sampler *w);
void stk_sample_put_cluster(struct stk_sampler *w);
void stk_sample_count(struct stk_sampler *w); /* the counters are as they are now */

/* A reading that is not too old; NULL: there is none. Only node 0 has GPUs that can be read. */
const struct stk_gpu_sample *stk_sample_reading(const struct stk_daemon *d, uint32_t node,
                                                uint32_t gpu);
struct stk_gpu_use *stk_sample_use(const struct stk_sampler *w, uint32_t node, uint32_t gpu);

#endif
