/* SPDX-License-Identifier: Apache-2.0 */
#include "core/stake.h"

#define UNREPORTED (900 * STK_SECOND)
#define MOST (INT64_C(2592000) * STK_SECOND) /* what is more is as bad */

int64_t stk_stake_units(const struct stk_state *s, const struct stk_job *j, stk_time now)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    int64_t size = (int64_t)j->gpus * (d->gpu_milli ? d->gpu_milli : 1000);
    stk_time t = UNREPORTED;

    (void)now;
    t = t > MOST ? MOST : t;
    t = t < STK_SECOND ? STK_SECOND : t;
    return (size ? size : 1) * (t / STK_SECOND);
}
