/* SPDX-License-Identifier: Apache-2.0 */
/* result.h - what one simulated run yields: a row per job, samples over time, and totals. Filled by
 * sim/run.c, read by the writers (table, JSON, CSV, HTML). */
#ifndef STK_SIM_RESULT_H
#define STK_SIM_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/time.h"
#include "sim/blocked.h"
#include "sim/fairness.h"
#include "sim/foresee.h"
#include "sim/trace.h"

struct stk_booked;

struct stk_job_result {   /* index = index in trace->jobs */
    stk_time first_start; /* -1: never started */
    stk_time end;         /* -1: never ended */
    stk_time done;        /* where 'turns': its work was */
    stk_time wait;        /* time in the system that it was not running: end - submit - time run */
    uint32_t preemptions;
    uint32_t nodes; /* most nodes it ever ran on at once */
    double gpu_kwh; /* what its GPUs drew for it, where that is known */
};

struct stk_sample { /* state of the cluster from 'at' to the next sample */
    stk_time at;
    uint32_t gpus_busy;
    uint32_t waiting;
    uint32_t running;
};

struct stk_run_result {
    char bundle[64];    /* name shown, for example "srtf" */
    char policies[160]; /* "order=srtf backfill=skip place=pack preempt=afresh" and parameters */
    uint64_t gpus;      /* of the cluster */
    uint32_t nodes, pools;
    struct stk_job_result *jobs; /* trace->n_jobs of them; NULL after a child process run without
                                    per-job output */
    struct stk_sample *samples;
    uint32_t n_samples, cap_samples;

    bool recorded_only; /* totals are over jobs whose real wait is known */

    /* totals; *_s are seconds */
    uint32_t n_jobs, finished;
    int64_t sum_jct_us;
    double avg_jct_s, p50_jct_s, p90_jct_s, p99_jct_s;
    double avg_wait_s, p50_wait_s, p90_wait_s, p99_wait_s, p999_wait_s, avg_bounded_slowdown;
    double makespan_s, utilization, gpu_hours;
    uint64_t preemptions;
    uint64_t cycles; /* times that jobs gave way to each other in a circle (core/cycles.h) */
    uint64_t migrations, migrated_gpus; /* running jobs moved to make room, and their GPUs */
    double restarts_cost_gpu_s;
    bool turns; /* starts and ends were dealt with one after the other (sim.each_s) */
    uint32_t max_waiting;
    uint64_t events, decisions;
    struct stk_blocked blocked; /* from the first measured job on, while jobs come; if asked for */
    struct stk_foreseen foreseen; /* if asked for */
    bool power;                   /* what some nodes draw is known; then: */
    double energy_kwh, node_hours_on;
    uint64_t peak_w;
    bool shares;          /* jobs may have had company on whole GPUs; then: */
    uint64_t colocations; /* starts beside another job */
    double least_speed;   /* the least share of its speed alone that company ever left a job */
    uint32_t deadlines, deadlines_met; /* jobs that had one, and those that ended by it */
    double avg_late_s, worst_late_s;   /* of the others that ended */
    struct stk_fair_result fair;
    uint64_t drains, drains_started, drains_given_up; /* GPUs kept free for single jobs */
    struct stk_booked *booked; /* what became of reservations (rules/booked.h); NULL: none asked */
    uint64_t rounds;           /* from time 0 to the end; 0: it did not decide in rounds */
    double cpu_s, rss_mib;
    uint64_t digest;
};

void stk_run_result_done(struct stk_run_result *r);

#endif
