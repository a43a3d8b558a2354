/* SPDX-License-Identifier: Apache-2.0 */
/* delay.h - who would wait longer if a job that has GPUs could run longer.
 *
 * Two copies of the core decide: in one the job runs as long as it may now, in the other as long as
 * it is to. Starts that backfill has promised in the first and that are later, or not promised, in
 * the second are delayed; so are reservations of which GPUs are missing that were not. The same
 * time on other GPUs is no delay.
 *
 * Changes nothing. Costs two forks and their decisions: for a person's request.
 */
#ifndef STK_CORE_DELAY_H
#define STK_CORE_DELAY_H

#include "core/core.h"

struct stk_delay {
    stk_job_number number; /* the first in line that is delayed; 0: none is */
    uint32_t booking;      /* ... or else the reservation; 0: none is */
    stk_time at;           /* when it was to start */
};

struct stk_longer {
    stk_job_id job;        /* it has GPUs */
    stk_time was, longest; /* how long it may run now, and would */
};

/* 0, -EINVAL, -ENOMEM. */
int stk_core_delays(const struct stk_core *core, stk_time now, const struct stk_longer *l,
                    struct stk_delay *ret, struct stk_err *err);

#endif
