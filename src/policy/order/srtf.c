/* SPDX-License-Identifier: Apache-2.0 */
/* srtf.c - order: shortest remaining time first, running jobs included. A running job's rank falls
 * by one microsecond per microsecond. Needs estimates; long jobs may starve. */
#include "policy/registry.h"

#include "core/state.h"

static struct stk_key key(const void *st, const struct stk_job *j, stk_time now)
{
    stk_time left = stk_job_left(j);

    (void)st;
    (void)now;
    if (j->lease == 0)
        return (struct stk_key){left, 0};
    return (struct stk_key){left + j->started, -1};
}

const struct stk_order_ops stk_order_srtf = {
    .name = "srtf",
    .help = "shortest remaining time first; preempts",
    .tick = 1,
    .preemptive = true,
    .key = key,
};
