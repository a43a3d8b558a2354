/* SPDX-License-Identifier: Apache-2.0 */
/* cycles.h - looks on and says when jobs give way to each other in a circle.
 *
 * That a job gave way to another is an edge between them. While nothing comes from outside - no job
 * comes, ends, is changed or taken away, no node changes, no time that the core waits for comes -
 * these edges must not close a circle: else jobs would take turns for ever and get nothing done.
 * Where a policy decides a pool whole and does not say for whom, no job may give way twice at one
 * time. An event costs O(edges since the last one from outside); of more than STK_CYCLE_EDGES the
 * first are forgotten.
 */
#ifndef STK_CORE_CYCLES_H
#define STK_CORE_CYCLES_H

#include "core/state.h"

#define STK_CYCLE_EDGES 512

struct stk_cycles { /* zeroed */
    struct {
        stk_job_number to, who; /* to 0: nobody in particular */
    } edge[STK_CYCLE_EDGES];
    uint32_t n;
    stk_time at;
    uint64_t found;
    stk_job_number last[2]; /* of the last that was found: who gave way, and to whom */
};

/* The event was applied. True: it closes a circle. */
bool stk_cycles_see(struct stk_cycles *c, const struct stk_state *s, const struct stk_event *ev);

#endif
