/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt.h - a set of processes and where each stands between running and suspended.
 *
 *     running --lock--> locked --checkpoint--> checkpointed
 *     running <-unlock- locked <---restore---- checkpointed
 *
 * The driver keeps the state, with the process: a caller that dies half way loses nothing, the next
 * one reads it and goes on from there. Every driver call is a step of the guard.
 */
#ifndef STK_GPU_CKPT_H
#define STK_GPU_CKPT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/args.h"
#include "gpu/cuda.h"
#include "gpu/nvml.h"

/* beside enum cuda_state */
#define STK_CKPT_NONE (-1)    /* nothing on a GPU */
#define STK_CKPT_GONE (-2)    /* the process has ended */
#define STK_CKPT_UNKNOWN (-3) /* the driver did not say; see rc */

enum stk_ckpt_step {
    STK_CKPT_LOCK,
    STK_CKPT_CHECKPOINT,
    STK_CKPT_RESTORE,
    STK_CKPT_UNLOCK,
    STK_CKPT_STEPS,
};

struct stk_ckpt_proc {
    int pid;
    int state, was;            /* now, and when the set was read */
    int rc;                    /* CUDA code when the state is unknown */
    double ms[STK_CKPT_STEPS]; /* what each step took */
    bool did[STK_CKPT_STEPS];  /* by us, in this run */
    bool held_known;
    uint64_t held[STK_GPU_MAX]; /* bytes by GPU, before */
    uint64_t held_all;
};

struct stk_ckpt {
    struct stk_guard *g;
    const struct stk_gpu_args *a;
    struct stk_cuda cu;
    struct stk_nvml nv;
    bool has_nvml;
    void *dev[STK_GPU_MAX];     /* NULL: does not answer */
    uint64_t used[STK_GPU_MAX]; /* bytes in use before, by anybody */
    struct cuda_pair *pairs;
    uint32_t n_pairs;
    struct stk_ckpt_proc *p;
    uint32_t n;
};

/* Starts the driver and reads every process's state. -Exxx with a sentence. */
int stk_ckpt_open(struct stk_ckpt *c, struct stk_guard *g, const struct stk_gpu_args *a,
                  struct stk_err *err);

void stk_ckpt_read_state(struct stk_ckpt *c, struct stk_ckpt_proc *p);

/* What each process holds now, into held; and what is in use on each GPU. */
void stk_ckpt_read_held(struct stk_ckpt *c);

/* Bytes the process holds now, on all GPUs; false: not known. */
bool stk_ckpt_held_now(struct stk_ckpt *c, int pid, uint64_t *ret);

/* One step for one process: CUDA_SUCCESS, and the state has moved on; or the driver's code. */
int stk_ckpt_step(struct stk_ckpt *c, struct stk_ckpt_proc *p, enum stk_ckpt_step step);

const char *stk_ckpt_step_name(enum stk_ckpt_step step);
const char *stk_ckpt_state_name(int state);

/* Members code, name, pid, step and why of a refusal. */
void stk_ckpt_put_refusal(const struct stk_ckpt *c, json_t *line, int rc, enum stk_ckpt_step step,
                          int pid);

/* Member "left": the processes that are neither running nor without anything on a GPU. Returns
 * their number. */
uint32_t stk_ckpt_put_left(struct stk_ckpt *c, json_t *line);

/* {"ok": false, "why": ...}; returns the exit code. */
int stk_ckpt_refuse(struct stk_guard *g, const char *why);

#endif
