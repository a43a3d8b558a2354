/* SPDX-License-Identifier: Apache-2.0 */
/* sjf.c - order: shortest job first, by estimated run time. Best average completion time of those
 * that never preempt, as far as estimates are right; long jobs may starve. */
#include "policy/registry.h"

#include "core/state.h"

static struct stk_key key(const void *st, const struct stk_job *j, stk_time now)
{
    (void)st;
    (void)now;
    return (struct stk_key){j->estimate, 0};
}

const struct stk_order_ops stk_order_sjf = {
    .name = "sjf",
    .help = "shortest estimated run time first",
    .tick = 1,
    .key = key,
};
