/* SPDX-License-Identifier: Apache-2.0 */
/* fifo.c - order: first come, first served. Cost: none. Bad when one long job stands before many
 * short ones. */
#include "policy/registry.h"

#include "core/state.h"

static struct stk_key key(const void *st, const struct stk_job *j, stk_time now)
{
    (void)st;
    (void)j;
    (void)now;
    return (struct stk_key){0, 0}; /* the core breaks ties by number */
}

const struct stk_order_ops stk_order_fifo = {
    .name = "fifo",
    .help = "first come, first served",
    .tick = 1,
    .key = key,
};
