/* SPDX-License-Identifier: Apache-2.0 */
/* skip.c - backfill: start whatever fits, in order. Keeps GPUs busy; large jobs may starve behind
 * small ones, without bound. The method is in core/backfill.c. */
#include "policy/registry.h"

const struct stk_backfill_ops stk_backfill_skip = {
    .name = "skip",
    .help = "whatever fits starts; nothing is reserved",
    .pass = true,
    .reserve_one = false,
    .reserve_all = false,
};
