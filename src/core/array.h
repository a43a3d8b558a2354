/* SPDX-License-Identifier: Apache-2.0 */
/* array.h - an array as one thing to depend on. How many of its elements have not ended is counted,
 * so that a dependency on all of them is one edge, however many they are: kept with the array, by
 * type, until an end that does not meet it, or the last end of all.
 *
 * An array is known while one of its elements has not ended. */
#ifndef STK_CORE_ARRAY_H
#define STK_CORE_ARRAY_H

#include "core/state.h"

int stk_array_reserve(struct stk_state *s); /* room for one more */
/* One of its jobs was submitted, or loaded. Room must be reserved. */
void stk_array_join(struct stk_state *s, stk_job_number array);
struct stk_array *stk_array_find(const struct stk_state *s, stk_job_number array); /* or NULL */

/* One of its jobs has ended this way. Returns the first edge (+ 1) of a list of those that can no
 * longer be met (*ret_met false), or that are met; 0: none. Call it again until there is none; then
 * stk_array_leave(). */
uint32_t stk_array_take(struct stk_array *a, enum stk_cause cause, bool *ret_met);
void stk_array_leave(struct stk_state *s, struct stk_array *a);

#endif
