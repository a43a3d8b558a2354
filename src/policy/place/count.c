/* SPDX-License-Identifier: Apache-2.0 */
/* count.c - place: no placement at all. Each pool counts its GPUs of a type as if they were on one
 * node; for comparison with programs that do the same. The simulator joins the nodes; finding the
 * one node is then like first_fit. */
#include "policy/registry.h"

static uint32_t pick(const struct stk_state *s, const struct stk_want *w)
{
    return stk_place_first_fit.pick(s, w);
}

const struct stk_place_ops stk_place_count = {
    .name = "count",
    .help = "count GPUs only, no placement (simulator; for cross-checks)",
    .aggregate = true,
    .pick = pick,
    .pick_rest = pick,
};
