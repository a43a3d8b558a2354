/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.h - the CUDA driver library, loaded and started, for suspending other processes. */
#ifndef STK_GPU_CUDA_H
#define STK_GPU_CUDA_H

#include <stdbool.h>

#include "base/err.h"
#include "gpu/cuda_abi.h"

struct stk_cuda {
    struct cuda_calls call;
    void *lib;
    int version; /* 13000: CUDA 13.0 */
};

/* Fails when there is no driver, when it is older than suspending (570), or does not start. */
int stk_cuda_open(struct stk_cuda *cu, struct stk_err *err);

/* CUDA_ERROR_NOT_SUPPORTED and the like; "?" where the driver knows no name. */
const char *stk_cuda_error(const struct stk_cuda *cu, int rc);

/* What a code means when it is the answer to this step (state, lock, checkpoint, restore, unlock),
 * in words for a person. */
const char *stk_cuda_why(int rc, const char *step);

/* running, locked, checkpointed, failed, ... */
const char *stk_cuda_state_name(int state);

/* "GPU-8-4-4-4-12" to 16 bytes. */
bool stk_cuda_uuid(const char *text, struct cuda_uuid *ret);

#endif
