/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - one simulated run: a trace through the loop, the core and the sim engine. Runs share
 * nothing but the trace and the cluster, which they only read, so several may go on at once. */
#ifndef STK_SIM_RUN_H
#define STK_SIM_RUN_H

#include "drive/setup.h"
#include "sim/cluster.h"
#include "sim/progress.h"
#include "sim/result.h"
#include "sim/tenants.h"

struct stk_loop;
struct stk_core;
struct stk_run_rules;

/* Somebody who takes part in a run and looks on: scenarios. Every member may be NULL. */
struct stk_run_guest {
    void *ctx;
    stk_time (*next)(void *ctx); /* when it has something to say; STK_NEVER_TIME: no more */
    int (*feed)(void *ctx, struct stk_loop *loop, struct stk_core *core, stk_time now,
                struct stk_err *err); /* says it */
    void (*event)(void *ctx, const struct stk_event *ev, const struct stk_core *core);
    void (*refused)(void *ctx, uint32_t job, const char *why); /* a job of the trace, by index */
    void (*refused_window)(void *ctx, uint32_t i, const char *why); /* of a reservation, likewise */
    /* The turn is over. > 0: enough, the run ends. */
    int (*after)(void *ctx, struct stk_core *core, stk_time now, struct stk_err *err);
};

struct stk_run_options {
    bool paranoid;     /* check every invariant after every turn, and replay into a second core */
    bool samples;      /* keep samples over time, for the report */
    bool fragments;    /* measure what waits although enough is free (sim/blocked.h) */
    uint32_t forecast; /* every so many-th job is asked about (sim/foresee.h); 0: none */
    bool lenient;      /* leave out jobs that can never run, instead of failing */
    bool recorded;     /* totals are over jobs whose real wait is known (sim/recorded.h) */
    bool split;        /* a job's pool is the one named like its group */
    uint32_t first_id, last_id; /* the run ends when the jobs with these ids have; 0 to UINT32_MAX:
                                   when all have */
    const struct stk_tenants *tenants;        /* matched with the trace; NULL: no limits */
    const struct stk_flat_tenants *flat;      /* for orders that ask for tenants; may be NULL */
    struct stk_progress *progress;            /* NULL: none */
    const struct stk_run_guest *guest;        /* NULL: none */
    const struct stk_run_rules *rules;        /* NULL: none (sim/ruled.h) */
    const struct stk_run_rules *reservations; /* NULL: none (rules/booked.h) */
    const char *solver; /* path of stoker-lp, for objectives that need it; may be NULL */
};

/* Fills everything in 'ret' but the totals that stk_run_result_sum() makes, and cpu_s and rss_mib.
 * On failure 'ret' is empty. */
int stk_sim_run(const struct stk_trace *t, const struct stk_cluster *c,
                const struct stk_setup *setup, const struct stk_run_options *o,
                struct stk_run_result *ret, struct stk_err *err);

#endif
