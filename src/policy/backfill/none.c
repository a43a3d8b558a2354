/* SPDX-License-Identifier: Apache-2.0 */
/* none.c - backfill: nobody passes a job that cannot start. Fair and easily explained; leaves GPUs
 * idle while a large job waits. The method is in core/backfill.c. */
#include "policy/registry.h"

const struct stk_backfill_ops stk_backfill_none = {
    .name = "none",
    .help = "nobody passes a job that cannot start",
    .pass = false,
    .reserve_one = false,
    .reserve_all = false,
};
