/* SPDX-License-Identifier: Apache-2.0 */
/* foresee.h - expectations about what is not there yet: whether a deadline will be kept, what would
 * start a job now, what it is entitled to, and who lends to whom. Each says whether it is as
 * expected, and in 'got' how it is. */
#ifndef STK_TESTS_SCENARIO_FORESEE_H
#define STK_TESTS_SCENARIO_FORESEE_H

#include "forecast/predict.h"
#include "scenario.h"
#include "sim/cluster.h"

struct scn_look {
    struct stk_core *core;
    const struct stk_cluster *cluster;
    const struct stk_predict *predict;
    uint32_t slot; /* the job; STK_NONE: it is not there */
    stk_time now;
};

bool scn_look(const struct scn_look *l, const struct scn_step *step, char *got, size_t size);

#endif
