/* SPDX-License-Identifier: Apache-2.0 */
/* lease.h - one time that a job had GPUs: from the start of its processes until the GPUs were given
 * back. A job that is suspended, preempted or restarted has several, one after the other. */
#ifndef STK_MODEL_LEASE_H
#define STK_MODEL_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/time.h"

struct stk_lease {
    stk_time from, to; /* [from, to); from 0: there is none; to 0: the job still has it */
    stk_time waited;   /* what the job had waited in all when it started, earlier waits included */
    uint32_t milli;    /* allocated, thousandths of a GPU, all tasks together */
    bool preempted;    /* it ended because another job needed the GPUs */
};

#endif
