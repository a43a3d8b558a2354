/* SPDX-License-Identifier: Apache-2.0 */
/* mix.h - what the jobs of a trace usually ask for, and what one of them asks for. */
#ifndef STK_SIM_MIX_H
#define STK_SIM_MIX_H

#include "model/mix.h"
#include "sim/cluster.h"

/* For each GPU type of the trace the cluster's types of that name, as bits; 0: it has none. */
void stk_trace_map_types(const struct stk_trace *t, const struct stk_cluster *c,
                         uint64_t types[STK_MAX_GPU_TYPES]);
struct stk_demand stk_trace_demand(const struct stk_trace_job *j,
                                   const uint64_t types[STK_MAX_GPU_TYPES]);

/* The most frequent kinds that together are 95% of the jobs, each weighted by its count. */
int stk_mix_of(const struct stk_trace *t, const uint64_t types[STK_MAX_GPU_TYPES],
               struct stk_mix *ret, struct stk_err *err);

#endif
