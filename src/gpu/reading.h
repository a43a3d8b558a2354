/* SPDX-License-Identifier: Apache-2.0 */
/* reading.h - what a GPU says of itself at one moment. A value that cannot be had is left out. */
#ifndef STK_GPU_READING_H
#define STK_GPU_READING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/nvml.h"

#define STK_USERS 64

/* One GPU over time: rates need the reading before. */
struct stk_gpu_reader {
    void *dev;
    char uuid[NVML_UUID_SIZE];
    int rc;           /* NVML_SUCCESS, or why there is no device */
    bool mig;         /* then there is no reading of the whole GPU's units */
    bool gpm;         /* the device has hardware counters */
    void *sample[2];  /* of them, this and the one before */
    unsigned current; /* of the two */
    bool has_sample;
    bool has_nvlink;
    double nvlink_kib[2]; /* sent, received since the driver was loaded */
    int64_t nvlink_us;
    unsigned long long procs_us; /* newest sample of a process's activity */
    json_t *xid;                 /* events since the last line; NULL: none */
};

/* User names, so that not every line asks for them again. */
struct stk_users {
    struct {
        uint32_t uid;
        bool known;
        char name[64];
    } user[STK_USERS];
    uint32_t n;
};

/* For as long as the process lives: nothing is given back. */
void stk_gpu_reader_init(struct stk_gpu_reader *r, const struct stk_nvml *nv, unsigned index);

/* The object for one GPU: its values, events and processes. */
json_t *stk_gpu_read(struct stk_gpu_reader *r, const struct stk_nvml *nv, unsigned index,
                     int64_t now_us, struct stk_users *users);

/* The processes on it (holders.c): no member "processes" when the driver cannot tell. */
void stk_gpu_read_processes(struct stk_gpu_reader *r, const struct stk_nvml *nv, int64_t now_us,
                            struct stk_users *users, json_t *gpu);

#endif
