/* SPDX-License-Identifier: Apache-2.0 */
/* submit.h - what sbatch and srun share when they submit. */
#ifndef STK_SLURMCMD_SUBMIT_H
#define STK_SLURMCMD_SUBMIT_H

#include "slurmcmd/slurm.h"
#include "spec/sbatch.h"

/* Adds environment, folder and umask to the description and checks the whole. */
int stk_slurm_context(const struct stk_sbatch *b, json_t *job, struct stk_err *err);

int stk_slurm_submit(struct stk_slurm *s, const json_t *job, bool dry, json_t **ret,
                     struct stk_err *err);

/* Says what was accepted and will not be done. */
void stk_slurm_notes(const char *name, const struct stk_sbatch *b);

/* srun inside a job: starts the tasks here and waits for them. The exit code. */
int stk_slurm_step(const struct stk_sbatch *b, const char *name, char **command);

#endif
