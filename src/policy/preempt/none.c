/* SPDX-License-Identifier: Apache-2.0 */
/* none.c - preempt: nobody gives way. */
#include "policy/registry.h"

const struct stk_preempt_ops stk_preempt_none = {
    .name = "none",
    .help = "running jobs are left alone",
};
