/* SPDX-License-Identifier: Apache-2.0 */
/* claim.h - for those who look on: what a waiting job is entitled to (core/fair.h), and what keeps
 * those who have it. Nothing is decided here; the preempt policy has the last word. */
#ifndef STK_CORE_CLAIM_H
#define STK_CORE_CLAIM_H

#include "core/core.h"
#include "core/fair.h"

struct stk_claim {
    enum stk_title title;
    uint32_t tenant;       /* whose guarantee it is within; or its own, with what it is due */
    uint32_t gpu_type;     /* the guarantee is of this type, + 1; 0: over all */
    uint64_t used, amount; /* of what it is guaranteed, or due; milli-GPU */
};

/* Why a job need not give way. */
enum stk_shield {
    STK_SHIELD_NONE,
    STK_SHIELD_OWN,         /* it is within its tenant's guarantee, or of the same tenant */
    STK_SHIELD_CRITICAL,    /* its tier is never evicted */
    STK_SHIELD_RESERVATION, /* it runs on a reservation of its own */
    STK_SHIELD_GROUP,       /* of its group so many must stay up */
    STK_SHIELD_MIN_RUN,     /* it started a short time ago, until 'until' */
    STK_SHIELD_PER_DAY,     /* it gave way often enough today, likewise */
    STK_SHIELD_DEADLINE,    /* it would miss its deadline, likewise */
    STK_SHIELDS
};

struct stk_hold { /* a job that has GPUs, as the one with the claim sees it */
    bool borrowed, stopping;
    enum stk_shield shield;
    stk_time until;
};

/* Not between decide() and applying what it returned. */
void stk_core_claim(struct stk_core *core, stk_job_id job, struct stk_claim *ret);
void stk_core_hold(struct stk_core *core, stk_job_id job, stk_job_id other, stk_time now,
                   struct stk_hold *ret);
const char *stk_shield_name(enum stk_shield s);

#endif
