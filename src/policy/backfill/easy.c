/* SPDX-License-Identifier: Apache-2.0 */
/* easy.c - backfill: EASY (Lifka 1995). The first job that cannot start is promised the earliest
 * time at which it will fit; others may start if they end before that or use what it leaves. Needs
 * estimates. The method is in core/backfill.c. */
#include "policy/registry.h"

const struct stk_backfill_ops stk_backfill_easy = {
    .name = "easy",
    .help =
        "the first that cannot start has a reservation; others may start if they do not delay it",
    .pass = true,
    .reserve_one = true,
    .reserve_all = false,
};
