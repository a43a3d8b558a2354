/* SPDX-License-Identifier: Apache-2.0 */
/* topology.c - place: as near as can be, then few fragments. Every job of several GPUs prefers one
 * link island, then one node, one rack and so on, up to what it requires; at each level it gets the
 * tightest place that has room (core/gang.c, which honours what jobs themselves ask for under every
 * policy). Jobs of one GPU go to the fullest node that fits, as with pack.
 * Bad where links do not matter: a job that could start at once in GPUs that happen to be free is
 * still put together where it fits best, which costs a look at each level. */
#include "policy/registry.h"

const struct stk_place_ops stk_place_topology = {
    .name = "topology",
    .help = "nearest GPUs first (link, node, rack, zone, region), then fewest fragments",
    .near = true,
    .pick = stk_place_fullest,
    .pick_rest = stk_place_emptiest,
};
