/* SPDX-License-Identifier: Apache-2.0 */
/* leave.h - nodes that go from one pool to another (the setting POOL, core/settings.h).
 *
 * A node moves when nothing is on it: no lease, and nobody asleep. Until then it is leaving, and as
 * good as down: it takes no new jobs. What runs there ends, or, when the setting says so, gives
 * way: jobs that may be preempted are evicted, and critical ones are waited for, as are those that
 * are protected (core/stake.h) or needed (core/budget.h). Jobs that sleep
 * there are ended in any case, and start again elsewhere: they could not be woken. Both are
 * decisions; so is the move itself, the setting MOVE, which takes all nodes that are ready.
 */
#ifndef STK_CORE_LEAVE_H
#define STK_CORE_LEAVE_H

#include "core/state.h"

/* Where the node should be. */
uint32_t stk_leave_target(const struct stk_state *s, uint32_t node);
/* Whether it may go now: nothing runs there, and nobody sleeps there. O(shapes) where nothing runs.
 */
bool stk_leave_ready(const struct stk_state *s, uint32_t node);

/* Marks those that leave; leases are there already. */
void stk_leave_mark(struct stk_state *s);
/* Evictions and the move; 0: nothing to do. */
uint32_t stk_leave_decide(struct stk_state *s, stk_time now, struct stk_event *out, uint32_t cap);
bool stk_leave_sound(const struct stk_state *s, struct stk_err *err);

#endif
