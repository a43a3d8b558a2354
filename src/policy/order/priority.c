/* SPDX-License-Identifier: Apache-2.0 */
/* priority.c - order: higher tier, then higher priority, then first come. The order a user gets who
 * says nothing; with all priorities equal it is fifo. Bad when the top never runs dry: nothing
 * ages. */
#include "policy/registry.h"

#include "core/state.h"

static struct stk_key key(const void *st, const struct stk_job *j, stk_time now)
{
    (void)st;
    (void)now;
    return (struct stk_key){-((int64_t)j->tier * 4 * STK_MAX_PRIORITY + j->priority), 0};
}

const struct stk_order_ops stk_order_priority = {
    .name = "priority",
    .help = "higher tier, then higher priority, then first come",
    .tick = 1,
    .levels = true,
    .key = key,
};
