/* SPDX-License-Identifier: Apache-2.0 */
/* named.h - times that people named: begin and deadline of jobs, windows of reservations.
 *
 * The time of events never goes back, so after the wall clock is set back it is ahead of it. A time
 * that a person named is one of the wall clock. Inside the core it is kept in the time of events,
 * that is, later by as much as that is ahead. A SET of the kind CLOCK says how much that is from
 * now on, and all named times move by the difference. So nothing else in the core knows of two
 * clocks, and replays, forks and saved states need nothing more.
 *
 * What has been reached stays so: jobs in the queue, windows that are open.
 */
#ifndef STK_CORE_NAMED_H
#define STK_CORE_NAMED_H

#include "core/state.h"

/* Of a state that is being loaded: caches and timers are made afterwards. */
void stk_named_move(struct stk_state *s, stk_time later);

#endif
