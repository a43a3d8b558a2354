/* SPDX-License-Identifier: Apache-2.0 */
/* demand.h - what a job of a trace asks of a cluster: its names as numbers of the cluster's. */
#ifndef STK_SIM_DEMAND_H
#define STK_SIM_DEMAND_H

#include "sim/cluster.h"
#include "sim/trace.h"

struct stk_trace_map {
    uint64_t types[STK_MAX_GPU_TYPES];    /* of the trace: the cluster's of that name, as bits */
    uint64_t mig;                         /* the cluster's that are in MIG mode */
    uint32_t resource[STK_MAX_RESOURCES]; /* of the trace: number in 'names' */
    /* the cluster's resources, then those of the trace that no node has; they live as long as both
     */
    const char *names[STK_MAX_RESOURCES];
    uint32_t n_resources;
};

int stk_trace_map(const struct stk_trace *t, const struct stk_cluster *c, struct stk_trace_map *ret,
                  struct stk_err *err);
struct stk_demand stk_trace_demand(const struct stk_trace *t, const struct stk_trace_job *j,
                                   const struct stk_trace_map *m);

/* The same as far as the job says it itself: types as the trace has them, no resources, no speeds.
 */
struct stk_demand stk_trace_plain(const struct stk_trace_job *j);

/* What it says about giving way, and its deadline. 'saves': jobs do when they are warned, unless
 * they say that they do not. */
void stk_trace_terms(const struct stk_trace *t, const struct stk_trace_job *j, bool saves,
                     struct stk_terms *terms);

#endif
