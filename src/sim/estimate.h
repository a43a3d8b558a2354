/* SPDX-License-Identifier: Apache-2.0 */
/* estimate.h - how long the scheduler is told that jobs of a trace take (sim.estimate):
 *
 *     given       what the trace says; where it says nothing, the truth
 *     limit       what the user asked for; where nobody did, sim.limit says what stands in for it
 *     predicted   the same, corrected by what the user's own jobs took that have ended by then
 *                 (forecast/predict.h)
 *     exact       the truth
 *
 * The predictor learns from each job as it ends, and knows no other run time. */
#ifndef STK_SIM_ESTIMATE_H
#define STK_SIM_ESTIMATE_H

#include "forecast/predict.h"
#include "model/job.h"
#include "model/params.h"
#include "sim/trace.h"

enum stk_told { STK_TOLD_GIVEN, STK_TOLD_LIMIT, STK_TOLD_PREDICTED, STK_TOLD_EXACT };

struct stk_sim_estimate {
    enum stk_told told;
    bool rounded;                /* who asked for nothing asks for a round time */
    struct stk_predict *predict; /* NULL: nobody needs it */
};

/* 'forecast': somebody else wants to predict, too. -ENOMEM. */
int stk_sim_estimate_init(struct stk_sim_estimate *e, const struct stk_params *p, bool forecast);
void stk_sim_estimate_done(struct stk_sim_estimate *e);

/* The job's estimate, and what it may grow to. */
void stk_sim_estimate_set(const struct stk_sim_estimate *e, const struct stk_trace_job *j,
                          struct stk_job_spec *io);
void stk_sim_estimate_ended(struct stk_sim_estimate *e, const struct stk_trace_job *j,
                            uint32_t gpus, stk_time run);

#endif
