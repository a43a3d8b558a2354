/* SPDX-License-Identifier: Apache-2.0 */
/* conservative.c - backfill: every waiting job is promised a start, and nobody may delay another's.
 * Predictable; fewer holes are filled than with easy. Plans again when a job ends unexpectedly. The
 * method is in core/plan.c. */
#include "policy/registry.h"

const struct stk_backfill_ops stk_backfill_conservative = {
    .name = "conservative",
    .help = "every waiting job has a planned start; nobody may delay another",
    .pass = true,
    .reserve_one = false,
    .reserve_all = true,
};
