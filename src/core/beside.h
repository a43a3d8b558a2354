/* SPDX-License-Identifier: Apache-2.0 */
/* beside.h - a promise to a job whose GPUs are free, but whose named resource is not. Reserved GPUs
 * would say nothing about it. So its start is found, and kept, by trial: the leases that end before
 * it are given back, and the job is placed. Others may start meanwhile if it still fits then with
 * them there. O(leases that end before) a trial. */
#ifndef STK_CORE_BESIDE_H
#define STK_CORE_BESIDE_H

#include "core/state.h"

/* When the job fits if running jobs end as expected, later than now; STK_NEVER_TIME: that cannot be
 * foreseen. */
stk_time stk_beside_when(struct stk_state *s, uint32_t job, stk_time now);

/* Room now for a job of this shape, with which the pool's promise is kept although it outlives it.
 * As stk_place_try(). */
bool stk_beside_try(struct stk_state *s, uint32_t shape, uint32_t *ret_n);

#endif
