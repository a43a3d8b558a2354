/* SPDX-License-Identifier: Apache-2.0 */
/* srsf.c - order: shortest remaining service first: remaining time x GPUs, running jobs included.
 * Tiresias' oracle. Keys are in GPU-milliseconds; a running job's falls by its GPUs each. */
#include "policy/registry.h"

#include "core/state.h"

static struct stk_key key(const void *st, const struct stk_job *j, stk_time now)
{
    int64_t left = stk_job_left(j) / 1000, g = j->gpus;

    (void)st;
    (void)now;
    if (j->lease == 0)
        return (struct stk_key){left * g, 0};
    return (struct stk_key){(left + j->started / 1000) * g, -g};
}

const struct stk_order_ops stk_order_srsf = {
    .name = "srsf",
    .help = "shortest remaining time x GPUs first; preempts",
    .tick = 1000,
    .preemptive = true,
    .key = key,
};
