/* SPDX-License-Identifier: Apache-2.0 */
/* compare.h - several runs of one workload side by side, as many at a time as there are cores. */
#ifndef STK_SIM_COMPARE_H
#define STK_SIM_COMPARE_H

#include "sim/run.h"

struct stk_compare {
    const struct stk_trace *trace;
    const struct stk_cluster *cluster;
    const struct stk_setup *setups;
    uint32_t n;
    uint32_t plain;                 /* the first so many run without rules */
    struct stk_run_options options; /* its progress is made here */
    bool progress;
};

/* Fills 'results' (n of them, zeroed) with totals, in the order of the setups. On failure, the
 * first one's error; results are then empty. */
int stk_compare_run(const struct stk_compare *c, struct stk_run_result *results,
                    struct stk_err *err);

#endif
