/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - the scheduler's time.
 *
 * It never goes back and never stands still: between two readings as much of it passes as really
 * has (CLOCK_BOOTTIME), whatever is done to the wall clock.
 *
 * - The wall clock is set forward: the scheduler's time goes on until somebody takes the jump
 *   (stk_clock_skip()), who makes all that was written down as much later. So nobody sees the new
 *   time with the old notes.
 * - The wall clock is set back, or the store's last event lies in the future: the scheduler's time
 *   goes on, and is ahead of the wall clock. That is worked off: until both agree it runs 5%
 * slower.
 */
#ifndef STK_DAEMON_CLOCK_H
#define STK_DAEMON_CLOCK_H

#include <stdbool.h>

#include "model/time.h"

struct stk_clock {
    bool begun;
    stk_time now, elapsed; /* the last answer; and what CLOCK_BOOTTIME was then */
    stk_time wall;         /* and the wall clock */
    stk_time ahead;        /* now - wall, when that is more than 0 */
    stk_time behind;       /* wall - now, when that is more than a correction: a jump to take */
    stk_time set_back;     /* by how much the wall clock was set back, for the log */
};

/* The time, from what both clocks show. */
stk_time stk_clock_read(struct stk_clock *c, stk_time wall, stk_time elapsed);
/* The time follows the wall clock. Returns by how much it jumped. */
stk_time stk_clock_skip(struct stk_clock *c);
/* How long it takes until both agree, if nobody sets the clock. */
stk_time stk_clock_rest(const struct stk_clock *c);
/* The time is at least this: that of the last event. */
void stk_clock_raise(struct stk_clock *c, stk_time least);

#endif
