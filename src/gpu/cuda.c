/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cuda.h"

#include <string.h>

#include "gpu/lib.h"

#define CALL(member, symbol, need)                                                                 \
    {                                                                                              \
        offsetof(struct cuda_calls, member), symbol, NULL, need                                    \
    }
static const struct stk_lib_call calls[] = {
    CALL(init, "cuInit", true),
    CALL(version, "cuDriverGetVersion", true),
    CALL(error_name, "cuGetErrorName", false),
    CALL(error_string, "cuGetErrorString", false),
    CALL(state, "cuCheckpointProcessGetState", true),
    CALL(lock, "cuCheckpointProcessLock", true),
    CALL(checkpoint, "cuCheckpointProcessCheckpoint", true),
    CALL(restore, "cuCheckpointProcessRestore", true),
    CALL(unlock, "cuCheckpointProcessUnlock", true),
};

static const struct {
    int rc;
    const char *step; /* NULL: any */
    const char *why;
} reasons[] = {
    {CUDA_NOT_SUPPORTED, "lock",
     "the driver cannot suspend this process; clients of MPS cannot be"},
    {CUDA_NOT_SUPPORTED, "checkpoint",
     "the process uses what the driver cannot save: managed (UVM) memory, CUDA IPC or MIG"},
    {CUDA_NOT_SUPPORTED, NULL, "the driver does not support this for the process or this machine"},
    {CUDA_NOT_READY, "lock",
     "the process did not come to rest in time: its GPU work goes on, or waits for another "
     "process (NCCL)"},
    {CUDA_NOT_READY, NULL, "the driver is not ready for this"},
    {CUDA_OUT_OF_MEMORY, "checkpoint", "there is not enough host memory for the GPU's contents"},
    {CUDA_OUT_OF_MEMORY, "restore", "there is not enough GPU memory for the process"},
    {CUDA_ILLEGAL_STATE, NULL, "the process is not in a state that allows this"},
    {CUDA_NOT_PERMITTED, NULL, "the driver does not permit this: run as root"},
    {CUDA_OPERATING_SYSTEM, NULL, "the operating system refused: run as root"},
    {CUDA_NOT_INITIALIZED, NULL, "the process has nothing on a GPU"},
    {CUDA_INVALID_VALUE, "restore", "the GPUs named do not fit those the process was on"},
    {CUDA_INVALID_VALUE, NULL, "the driver knows no such process"},
    {CUDA_NO_DEVICE, NULL, "there is no GPU that CUDA can use"},
    {CUDA_STUB_LIBRARY, NULL, "libcuda.so.1 is the stub for building, not the driver"},
    {CUDA_SYSTEM_NOT_READY, NULL, "the system is not ready: is the fabric manager running?"},
    {CUDA_DRIVER_MISMATCH, NULL, "the kernel module and libcuda.so.1 are of different releases"},
};

const char *stk_cuda_why(int rc, const char *step)
{
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
        if (reasons[i].rc == rc && (!reasons[i].step || strcmp(reasons[i].step, step) == 0))
            return reasons[i].why;
    return "the driver refused";
}

const char *stk_cuda_error(const struct stk_cuda *cu, int rc)
{
    const char *name = NULL;

    if (!cu->call.error_name || cu->call.error_name(rc, &name) != CUDA_SUCCESS || !name)
        return "?";
    return name;
}

const char *stk_cuda_state_name(int state)
{
    static const char *const names[] = {"running", "locked",        "checkpointed",
                                        "failed",  "checkpointing", "restoring"};

    return state >= 0 && (size_t)state < sizeof(names) / sizeof(*names) ? names[state] : "unknown";
}

int stk_cuda_open(struct stk_cuda *cu, struct stk_err *err)
{
    int rc;

    *cu = (struct stk_cuda){.version = 0};
    rc = stk_lib_open("libcuda.so.1", calls, sizeof(calls) / sizeof(*calls), &cu->call, &cu->lib,
                      err);
    if (rc < 0)
        return rc;
    rc = cu->call.init(0);
    if (rc == CUDA_SUCCESS) {
        if (cu->call.version(&cu->version) != CUDA_SUCCESS)
            cu->version = 0;
        return 0;
    }
    /* not closed: a driver that failed half way is better left alone, and the program ends soon */
    return stk_err_set(err, -EIO, "CUDA does not start: %.60s (%d): %.100s", stk_cuda_error(cu, rc),
                       rc, stk_cuda_why(rc, "init"));
}

/* -1: no hexadecimal digit */
static int digit(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) % 16 : -1;
}

bool stk_cuda_uuid(const char *text, struct cuda_uuid *ret)
{
    struct cuda_uuid u;
    const char *s = text;

    if (strncmp(s, "GPU-", 4) != 0)
        return false;
    s += 4;
    for (unsigned i = 0; i < sizeof(u.byte); i++) {
        int high, low;

        if ((i == 4 || i == 6 || i == 8 || i == 10) && *s++ != '-')
            return false;
        high = digit(s[0]);
        low = high >= 0 ? digit(s[1]) : -1;
        if (low < 0)
            return false;
        u.byte[i] = (unsigned char)(high * 16 + low);
        s += 2;
    }
    if (*s != '\0')
        return false;
    *ret = u;
    return true;
}
