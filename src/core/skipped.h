/* SPDX-License-Identifier: Apache-2.0 */
/* skipped.h - the time of events jumps when the wall clock is set forward, and nothing happened in
 * what it jumped over.
 *
 * A SET of the kind SKIP says by how much. All that the core has written down itself about jobs
 * that have not ended, and about what their tenants have had, becomes as much later: it was as long
 * ago as it really was. So run times, waits, checkpoints and fair shares do not count what was
 * skipped, and nothing else in the core knows of it. Times that people named (core/named.h) stay
 * what they are.
 */
#ifndef STK_CORE_SKIPPED_H
#define STK_CORE_SKIPPED_H

#include "core/state.h"

/* A time of the past, after 'by' was skipped; 0 is no time. */
static inline stk_time stk_skipped(stk_time t, stk_time by, stk_time now)
{
    if (t <= 0 || by <= 0)
        return t;
    return t > now - by ? now : t + by;
}

/* Of a state that is being loaded: caches and timers are made afterwards. */
void stk_skipped_move(struct stk_state *s, stk_time by);

#endif
