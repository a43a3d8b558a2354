/* SPDX-License-Identifier: Apache-2.0 */
/* ssf.c - order: smallest service first: estimated run time x GPUs. Like sjf, but a short job on
 * very many GPUs is not small. Keys are in GPU-milliseconds, so that the product fits. */
#include "policy/registry.h"

#include "core/state.h"

static struct stk_key key(const void *st, const struct stk_job *j, stk_time now)
{
    (void)st;
    (void)now;
    return (struct stk_key){j->estimate / 1000 * j->gpus, 0};
}

const struct stk_order_ops stk_order_ssf = {
    .name = "ssf",
    .help = "smallest estimated run time x GPUs first",
    .tick = 1000,
    .key = key,
};
