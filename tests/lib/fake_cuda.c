/* SPDX-License-Identifier: Apache-2.0 */
/* fake_cuda.c - a libcuda.so.1 without a GPU: processes are as the files of fake.h say. */
#include <stdlib.h>
#include <unistd.h>

#include "fake.h"
#include "gpu/cuda_abi.h"

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetErrorName(int rc, const char **name);
int cuGetErrorString(int rc, const char **text);
int cuCheckpointProcessGetState(int pid, int *state);
int cuCheckpointProcessLock(int pid, struct cuda_lock *args);
int cuCheckpointProcessCheckpoint(int pid, void *args);
int cuCheckpointProcessRestore(int pid, struct cuda_restore *args);
int cuCheckpointProcessUnlock(int pid, void *args);

static void note(const char *step, int pid, unsigned extra)
{
    FILE *f = fake_open("log", "ae");

    if (f) {
        (void)fprintf(f, "%s %d %u\n", step, pid, extra);
        (void)fclose(f);
    }
}

static int move(const char *step, int pid, int from, int to)
{
    int rc = fake_fail(step, pid), state = fake_state(pid);

    if (state < 0)
        return CUDA_NOT_INITIALIZED;
    if (rc != 0)
        return rc;
    if (state != from)
        return CUDA_ILLEGAL_STATE;
    fake_set_state(pid, to);
    return CUDA_SUCCESS;
}

int cuInit(unsigned flags)
{
    const char *pipes = getenv("CUDA_MPS_PIPE_DIRECTORY");
    int rc = fake_fail("init", 0);

    if (getenv("CUDA_VISIBLE_DEVICES") || (pipes && access(pipes, F_OK) == 0))
        return CUDA_NO_DEVICE; /* hidden, or a client of MPS */
    return flags != 0 ? CUDA_INVALID_VALUE : rc;
}

int cuDriverGetVersion(int *version)
{
    const char *text = getenv("STOKER_FAKE_CUDA");

    *version = text ? atoi(text) : 13000;
    return CUDA_SUCCESS;
}

int cuGetErrorName(int rc, const char **name)
{
    *name = rc == CUDA_NOT_SUPPORTED   ? "CUDA_ERROR_NOT_SUPPORTED"
            : rc == CUDA_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : rc == CUDA_NOT_READY     ? "CUDA_ERROR_NOT_READY"
            : rc == CUDA_ILLEGAL_STATE ? "CUDA_ERROR_ILLEGAL_STATE"
                                       : NULL;
    return *name ? CUDA_SUCCESS : CUDA_INVALID_VALUE;
}

int cuGetErrorString(int rc, const char **text)
{
    return cuGetErrorName(rc, text);
}

int cuCheckpointProcessGetState(int pid, int *state)
{
    int rc = fake_fail("state", pid), is = fake_state(pid);

    if (rc != 0)
        return rc;
    if (is < 0)
        return CUDA_NOT_INITIALIZED;
    *state = is;
    return CUDA_SUCCESS;
}

int cuCheckpointProcessLock(int pid, struct cuda_lock *args)
{
    note("lock", pid, args->timeout_ms);
    return move("lock", pid, CUDA_RUNNING, CUDA_LOCKED);
}

int cuCheckpointProcessCheckpoint(int pid, void *args)
{
    note("checkpoint", pid, args != NULL);
    return move("checkpoint", pid, CUDA_LOCKED, CUDA_CHECKPOINTED);
}

/* As the real one: without room the process is stuck for ever. */
int cuCheckpointProcessRestore(int pid, struct cuda_restore *args)
{
    int rc;

    note("restore", pid, args ? args->n_pairs : 0);
    rc = move("restore", pid, CUDA_CHECKPOINTED, CUDA_LOCKED);
    for (int g = 0; rc == CUDA_SUCCESS && g < FAKE_GPUS; g++) {
        if (fake_held(g, pid) > 0 && fake_used(g) > FAKE_MIB) {
            fake_set_state(pid, CUDA_FAILED);
            return CUDA_OUT_OF_MEMORY;
        }
    }
    return rc;
}

int cuCheckpointProcessUnlock(int pid, void *args)
{
    note("unlock", pid, args != NULL);
    return move("unlock", pid, CUDA_LOCKED, CUDA_RUNNING);
}
