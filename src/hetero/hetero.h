/* SPDX-License-Identifier: Apache-2.0 */
/* hetero.h - the adviser for unlike GPUs: once a round it says which job belongs on which GPU type
 * (the event ADVISE, policy "advised").
 *
 * It knows the speeds of each kind of job and how far jobs are; how much a job has to do in all is
 * known to some objectives only, those of Gavel that need it. What it says is applied as events, so
 * that neither it nor its solver is needed to replay them.
 */
#ifndef STK_HETERO_HETERO_H
#define STK_HETERO_HETERO_H

#include "drive/loop.h"
#include "model/params.h"
#include "model/speed.h"

struct stk_adviser;

struct stk_adviser_config { /* all borrowed while it lives */
    const struct stk_core *core;
    const struct stk_params *params;
    const struct stk_speeds *speeds; /* by the GPU types of the core's nodes */
    const char *solver;              /* path of stoker-lp; may be NULL where it is not needed */
    /* Steps that a job still has to do. */
    uint64_t (*left)(void *ctx, stk_job_id job, stk_time now);
    void *ctx;
};

/* Whether the objective takes a solver. */
bool stk_adviser_solves(const struct stk_params *params);

int stk_adviser_new(const struct stk_adviser_config *cfg, struct stk_adviser **ret,
                    struct stk_err *err);
void stk_adviser_free(struct stk_adviser *a); /* NULL is a no-op */

/* The job that was just submitted: its kind, and its steps. */
int stk_adviser_job(struct stk_adviser *a, stk_job_id job, uint32_t row, uint64_t steps);
/* A round begins: gives advice to all whose advice has changed. */
int stk_adviser_round(struct stk_adviser *a, struct stk_loop *loop, stk_time now,
                      struct stk_err *err);

#endif
