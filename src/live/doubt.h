/* SPDX-License-Identifier: Apache-2.0 */
/* doubt.h - a time that jumped may be wrong: somebody may set the clock right again.
 *
 * What is old is deleted for ever, so for a day after a jump ages are counted as if there had been
 * none. */
#ifndef STK_LIVE_DOUBT_H
#define STK_LIVE_DOUBT_H

#include "model/time.h"

#define STK_DOUBT (86400 * STK_SECOND)

struct stk_doubt {
    stk_time by, since; /* how far the time jumped; when it last did */
};

static inline stk_time stk_doubt_now(const struct stk_doubt *d, stk_time now)
{
    return now - d->since < STK_DOUBT ? now - d->by : now;
}

/* It has jumped by so much, to 'now'. */
static inline void stk_doubt_add(struct stk_doubt *d, stk_time by, stk_time now)
{
    const stk_time before = now - d->since - by < STK_DOUBT ? d->by : 0;

    *d = (struct stk_doubt){before + by, now};
}

#endif
