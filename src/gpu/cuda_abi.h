/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_abi.h - the part of the CUDA driver API that is used here, declared by hand from the public
 * documentation (see nvml_abi.h for why). The caller is another process than the one that is
 * suspended, and makes no context of its own.
 */
#ifndef STK_GPU_CUDA_ABI_H
#define STK_GPU_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#define CUDA_SUCCESS 0
#define CUDA_INVALID_VALUE 1
#define CUDA_OUT_OF_MEMORY 2
#define CUDA_NOT_INITIALIZED 3
#define CUDA_STUB_LIBRARY 34
#define CUDA_NO_DEVICE 100
#define CUDA_OPERATING_SYSTEM 304
#define CUDA_ILLEGAL_STATE 401
#define CUDA_NOT_READY 600
#define CUDA_NOT_PERMITTED 800
#define CUDA_NOT_SUPPORTED 801
#define CUDA_SYSTEM_NOT_READY 802
#define CUDA_DRIVER_MISMATCH 803
#define CUDA_UNKNOWN 999

#define CUDA_VERSION_MOVE 13000 /* from here on a restore takes pairs of GPUs */

enum cuda_state {
    CUDA_RUNNING,
    CUDA_LOCKED,
    CUDA_CHECKPOINTED,
    CUDA_FAILED,
    CUDA_CHECKPOINTING, /* from 13.4, where the contents go elsewhere than to host memory */
    CUDA_RESTORING,
};

struct cuda_uuid {
    unsigned char byte[16];
};

struct cuda_lock {
    unsigned timeout_ms; /* 0: for ever */
    unsigned reserved0;
    uint64_t reserved1[7];
};
_Static_assert(sizeof(struct cuda_lock) == 64, "CUcheckpointLockArgs");

struct cuda_pair {
    struct cuda_uuid from, to;
};
_Static_assert(sizeof(struct cuda_pair) == 32, "CUcheckpointGpuPair");

/* Before CUDA 13 all of it is reserved and must be zero. */
struct cuda_restore {
    struct cuda_pair *pairs;
    unsigned n_pairs;
    char reserved[44];
    uint64_t reserved1;
};
_Static_assert(sizeof(struct cuda_restore) == 64, "CUcheckpointRestoreArgs");
_Static_assert(offsetof(struct cuda_restore, n_pairs) == 8, "CUcheckpointRestoreArgs");

/* Arguments for checkpoint and unlock are 64 reserved bytes; NULL is as good. */
struct cuda_calls {
    int (*init)(unsigned flags);
    int (*version)(int *version);
    int (*error_name)(int rc, const char **name);
    int (*error_string)(int rc, const char **text);
    int (*state)(int pid, int *state);
    int (*lock)(int pid, struct cuda_lock *args);
    int (*checkpoint)(int pid, void *args);
    int (*restore)(int pid, struct cuda_restore *args);
    int (*unlock)(int pid, void *args);
};

#endif
