/* SPDX-License-Identifier: Apache-2.0 */
/* fairness.h - how fair a run was to its tenants (docs/spec/simulator.md, "Fairness").
 *
 * As the run goes on, each tenant's GPU-time is summed up by windows: what its jobs had, and what
 * they wanted. Only the window at hand is kept: O(tenants) memory, O(tenants log tenants) a window.
 * Finish-time fairness follows from the rows of the jobs, at the end.
 */
#ifndef STK_SIM_FAIRNESS_H
#define STK_SIM_FAIRNESS_H

#include "core/state.h"
#include "model/tenant.h"
#include "sim/trace.h"

#define STK_FAIR_SHOWN 64

struct stk_job_result;
struct stk_fairness; /* of a run at hand */

struct stk_fair_tenant {
    char name[64];
    uint32_t jobs; /* that ended */
    double gpu_hours, rho, rho_worst;
    double share, part;        /* of all GPU-time; of the cluster, by its weight */
    double borrowed_h, idle_h; /* GPU-hours above its guarantee; below it */
};

struct stk_fair_result {
    bool known; /* two tenants or more have jobs */
    bool asked; /* there is a file of tenants, or the order goes by them */
    double window_s;
    uint32_t windows; /* that count */
    double jain, jain_worst, ratio, ratio_worst;
    double rho, rho_worst;
    bool guarantees;                               /* some tenant has one */
    struct stk_fair_tenant tenant[STK_FAIR_SHOWN]; /* with the most GPU-time, in order of rows */
    uint32_t n_tenants;
};

/* 'of_trace': row of each of the trace's tenants. Both tables are borrowed. 0 or -ENOMEM. */
int stk_fairness_new(const struct stk_trace *t, const struct stk_tenant_spec *rows, uint32_t n_rows,
                     const uint32_t *of_trace, stk_time window, struct stk_fairness **ret);
void stk_fairness_free(struct stk_fairness *f);

/* The event was applied. 0 or -ENOMEM. */
int stk_fairness_event(struct stk_fairness *f, const struct stk_state *s,
                       const struct stk_event *ev);
/* The same without a core: from then on the trace's job of that number has GPUs, or wants some. */
int stk_fairness_say(struct stk_fairness *f, uint32_t job, stk_time at, bool holds, bool wants);
/* The run is over. */
void stk_fairness_sum(struct stk_fairness *f, stk_time end, uint64_t gpus,
                      const struct stk_job_result *jobs, struct stk_fair_result *ret);

#endif
