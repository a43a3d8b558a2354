/* SPDX-License-Identifier: Apache-2.0 */
/* pinned.h - jobs that sleep, and can wake on their own GPUs only: when these are expected to be
 * free. */
#ifndef STK_CORE_PINNED_H
#define STK_CORE_PINNED_H

#include "core/state.h"

struct stk_pinned {
    uint32_t node;
    uint64_t busy;  /* GPUs it waits for */
    uint32_t lacks; /* how many; on a node that only counts, all there is to know */
    uint32_t back;  /* GPUs of the node given back on the way */
};

/* When the GPUs on which a sleeping job must wake are expected to be free: now, later, or
 * STK_NEVER_TIME: cannot be foreseen. O(leases that end before that). */
stk_time stk_pinned_when(const struct stk_state *s, const struct stk_job *j, stk_time now,
                         struct stk_pinned *ret);

#endif
