/* SPDX-License-Identifier: Apache-2.0 */
/* proc.h - what /proc says about a process, and about the machine's memory. */
#ifndef STK_GPU_PROC_H
#define STK_GPU_PROC_H

#include <stdbool.h>
#include <stdint.h>

struct stk_proc {
    uint32_t uid;
    int32_t sid;
    char state;    /* as in /proc/PID/stat; 'Z': ended, not yet reaped */
    char name[64]; /* printable: what is not has become '?' */
    double age_s;  /* since its start */
};

/* False when there is no such process (any more). */
bool stk_proc_read(int pid, struct stk_proc *ret);

/* The name of a user; false when it has none. May ask a name service. */
bool stk_proc_user(uint32_t uid, char *ret, unsigned size);

/* Memory that new work can have, without swapping. UINT64_MAX: not known. */
uint64_t stk_proc_mem_available(void);

#endif
