/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.h - NVIDIA's management library, loaded and started, with the few readings that take more
 * than one call. Everything else is called directly: STK_NVML(nv, power, dev, &mw). */
#ifndef STK_GPU_NVML_H
#define STK_GPU_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/nvml_abi.h"

#define STK_GPU_MAX 64    /* GPUs of one machine; what is beyond is not looked at */
#define STK_PROC_MAX 1024 /* processes of one GPU, likewise */

struct stk_nvml {
    struct nvml_calls call;
    void *lib;
    unsigned n; /* GPUs */
};

/* True when the library has the function and it succeeded: only then was the output written. */
#define STK_NVML(nv, fn, ...) ((nv)->call.fn != NULL && (nv)->call.fn(__VA_ARGS__) == NVML_SUCCESS)

int stk_nvml_open(struct stk_nvml *nv, struct stk_err *err);

/* The library's words for a code. */
const char *stk_nvml_error(const struct stk_nvml *nv, int rc);

/* Memory in bytes. 'used' leaves out what the driver keeps for itself, where the library can tell.
 * False: not known. */
struct stk_nvml_mem {
    uint64_t total, free, used;
};
bool stk_nvml_memory(const struct stk_nvml *nv, void *dev, struct stk_nvml_mem *ret);

struct stk_nvml_proc {
    unsigned pid;
    bool compute, graphics, mem_known;
    uint64_t mem; /* bytes */
};

/* Processes with a context on the GPU, each once, in no order; up to 'max', at most STK_PROC_MAX.
 * Returns their number, or -1 when the library cannot tell. */
int stk_nvml_processes(const struct stk_nvml *nv, void *dev, struct stk_nvml_proc *ret, int max);

/* A field value as a number; false: not known. */
bool stk_nvml_field(const struct stk_nvml *nv, void *dev, unsigned id, unsigned scope, double *ret);

#endif
