/* SPDX-License-Identifier: Apache-2.0 */
/* memwatch.h - what jobs with part of a GPU hold of its memory. */
#ifndef STK_DAEMON_MEMWATCH_H
#define STK_DAEMON_MEMWATCH_H

#include "daemon/daemon.h"

#define STK_MEMWATCH_MAX 64 /* jobs over their part that are known at a time */

enum { STK_MEM_STOP, STK_MEM_WARN }; /* gpus.mem_action */

struct stk_over {
    stk_job_number job;
    stk_lease_id lease;
};

struct stk_memwatch { /* zeroed: nothing is known */
    struct stk_over before[STK_MEMWATCH_MAX], now[STK_MEMWATCH_MAX];
    uint32_t n_before, n_now;
};

/* After each reading. */
void stk_memwatch_look(struct stk_memwatch *w, struct stk_daemon *d);

#endif
