/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clock.h"

#define SET_US STK_SECOND /* what differs by less is the clock being corrected, not set */
#define SLOWER 20         /* one part in so many is worked off */

stk_time stk_clock_read(struct stk_clock *c, stk_time wall, stk_time elapsed)
{
    const stk_time before = c->ahead;
    stk_time passed = c->begun && elapsed > c->elapsed ? elapsed - c->elapsed : 0;
    stk_time now = c->begun ? c->now + passed : wall;

    c->behind = wall - now > SET_US ? wall - now : 0;
    if (c->behind == 0 && wall >= now) {
        now = wall;
    } else if (wall < now && passed > 0) {
        stk_time less = passed / SLOWER;

        now -= less < now - wall ? less : now - wall;
    }
    c->ahead = now > wall ? now - wall : 0;
    if (c->begun && c->ahead - before > SET_US)
        c->set_back += c->ahead - before;
    c->begun = true;
    c->now = now;
    c->elapsed = elapsed;
    c->wall = wall;
    return now;
}

stk_time stk_clock_skip(struct stk_clock *c)
{
    const stk_time by = c->behind;

    c->now += by;
    c->behind = 0;
    return by;
}

stk_time stk_clock_rest(const struct stk_clock *c)
{
    return c->ahead < STK_MAX_DURATION / SLOWER ? c->ahead * SLOWER : STK_MAX_DURATION;
}

void stk_clock_raise(struct stk_clock *c, stk_time least)
{
    if (c->begun && c->now < least) {
        c->now = least;
        c->ahead = least > c->wall ? least - c->wall : 0;
        c->behind = 0; /* until it is read again */
    }
}
