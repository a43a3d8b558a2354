/* SPDX-License-Identifier: Apache-2.0 */
/* mix.h - what the jobs of a trace usually ask for, and what one of them asks for. */
#ifndef STK_SIM_MIX_H
#define STK_SIM_MIX_H

#include "model/mix.h"
#include "sim/demand.h"

/* The most frequent kinds that together are 95% of the jobs, each weighted by its count; by demand,
 * those that ask for most and together are 98% of it. */
int stk_mix_of(const struct stk_trace *t, const struct stk_trace_map *m, bool by_demand,
               struct stk_mix *ret, struct stk_err *err);

#endif
