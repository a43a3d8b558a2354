/* SPDX-License-Identifier: Apache-2.0 */
/* step.h - the parts of a step: what its tasks see and where their output goes. */
#ifndef STK_SLURMCMD_STEP_H
#define STK_SLURMCMD_STEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "spec/sbatch.h"
#include "sys/jobnodes.h"

#define STK_STEP_MAX_TASKS 4096
#define STK_STEP_MAX_GPUS 64

struct stk_step_task {
    pid_t pid; /* 0: it has ended */
    int code;  /* then: exit code, or 128 + signal */
};

struct stk_step {
    const struct stk_sbatch *b;
    const char *name; /* for messages */
    uint32_t n;
    struct stk_step_task *tasks;
    char gpus[STK_STEP_MAX_GPUS][24]; /* as CUDA_VISIBLE_DEVICES has them */
    uint32_t n_gpus, per_task;        /* per_task 0: every task sees all */
    bool chosen;                      /* CUDA_VISIBLE_DEVICES must be set */
    struct stk_jobnodes nodes;        /* of a job that has several, with the step's tasks; n 0: it
                                         has one */
};

/* The environment of task 't', set in this process. */
int stk_step_env(const struct stk_step *p, uint32_t t, struct stk_err *err);

/* Which GPUs the step has: all of the job, or as many as it asked for, which it then holds until
 * this process ends; waits when other steps have them. */
int stk_step_gpus(struct stk_step *p, struct stk_err *err);

/* Opens standard input, output and error of task 't' as --input, --output and --error ask. -1: it
 * keeps ours. */
int stk_step_open(const struct stk_step *p, uint32_t t, int fds[3], struct stk_err *err);

/* Copies the lines of two pipes per task with the task's number in front. */
struct stk_labels;
struct stk_labels *stk_labels_new(uint32_t n);
int stk_labels_add(struct stk_labels *l, uint32_t task, int fds[3]); /* fills fds[1] and fds[2] */
void stk_labels_parent(struct stk_labels *l, int fds[3]); /* after the fork: closes these ends */
/* Waits for signals at 'signal_fd' or lines for at most so long and copies the lines. */
void stk_labels_wait(struct stk_labels *l, int signal_fd, int timeout_ms);
void stk_labels_free(struct stk_labels *l); /* copies what is left; NULL is fine */

#endif
