/* SPDX-License-Identifier: Apache-2.0 */
/* decide.h - the walk over a pool's queue, and the answers policies give as events. */
#ifndef STK_CORE_DECIDE_H
#define STK_CORE_DECIDE_H

#include "core/state.h"

uint32_t stk_decide(struct stk_state *s, stk_time now, struct stk_event *out, uint32_t cap);

/* A PLACE of the job on the pieces stk_place_try() just found. */
struct stk_event stk_decide_place(const struct stk_state *s, stk_time now, uint32_t job,
                                  uint32_t n);
/* An EVICT of it; one on a single node may sleep meanwhile. */
struct stk_event stk_decide_evict(const struct stk_state *s, stk_time now, uint32_t job,
                                  uint32_t for_job);

#endif
