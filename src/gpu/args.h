/* SPDX-License-Identifier: Apache-2.0 */
/* args.h - the command line, and the commands. */
#ifndef STK_GPU_ARGS_H
#define STK_GPU_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/guard.h"

#define STK_ARGS_MAX_GPUS 64
#define STK_ARGS_MAX_PIDS 65536

struct stk_gpu_args {
    int64_t interval_ms;      /* watch */
    int64_t count;            /* watch: lines; 0: for ever */
    int64_t lock_timeout_ms;  /* suspend */
    int64_t host_reserve_mib; /* suspend: host memory that must be left */
    int64_t wait_ms;          /* resume: for memory */
    int64_t timeout_ms;       /* how long any one driver call may take; 0: by size */
    struct {                  /* resume */
        const char *uuid;
        int64_t need_mib;
    } need[STK_ARGS_MAX_GPUS];
    struct {
        char from[48];
        const char *to;
    } move[STK_ARGS_MAX_GPUS];
    uint32_t n_needs, n_moves, n_pids;
    int *pids;
};

/* argv[0] is the command. Free the pids. */
int stk_gpu_args_parse(struct stk_gpu_args *a, int argc, char **argv, struct stk_err *err);
void stk_gpu_args_done(struct stk_gpu_args *a);

/* The commands, as workers of a guard: they call the driver. Return the exit code. */
int stk_gpu_list(struct stk_guard *g, void *args);
int stk_gpu_watch(struct stk_guard *g, void *args);
int stk_gpu_suspend(struct stk_guard *g, void *args);
int stk_gpu_resume(struct stk_guard *g, void *args);
int stk_gpu_state(struct stk_guard *g, void *args);

/* After a suspend that hung: unlocks what is locked, and says in one line what came of it.
 * 'undo_of' is a struct stk_gpu_undo. */
struct stk_gpu_undo {
    const struct stk_gpu_args *args;
    const char *why; /* what had hung */
};
int stk_gpu_undo(struct stk_guard *g, void *undo_of);

#endif
