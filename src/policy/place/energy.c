/* SPDX-License-Identifier: Apache-2.0 */
/* energy.c - place: on few nodes that are on, so that the others can be off; under a power cap.
 *
 * A piece goes to a node that is on, the fullest that fits; a part of a GPU beside others rather
 * than on a GPU of its own. Only when no node that is on has room another is switched on: the one
 * that draws least with the piece on it, then the smallest. Nodes that stay empty for
 * energy.off_after_s are switched off (by the engine). With energy.cap_w no job starts that would
 * bring the sum of all nodes above the cap (core/power.h).
 *
 * Where the power of nodes is not known they are all on, and this is pack.
 *
 * Cost: that of scores (core/score.h). Bad for jobs that wait for a node to boot; and a full node
 * is slower where jobs of a node disturb each other.
 */
#include "policy/registry.h"

#include "core/power.h"

#define ASLEEP 1e9 /* worse than any that is on */
#define BESIDE 1e6 /* a part that needs no GPU of its own */

struct energy {
    uint64_t cap_w;
};

enum { P_OFF_AFTER, P_CAP };
static const struct stk_param params[] = {
    [P_OFF_AFTER] = {"energy.off_after_s", STK_PARAM_SECONDS, "600", 0, 31536000, NULL,
                     "simulator: a node that was empty for so long is switched off"},
    [P_CAP] = {"energy.cap_w", STK_PARAM_INT, "0", 0, 1000000000000, NULL,
               "all nodes together draw no more than this many watts; 0: no cap"},
    {0},
};
const struct stk_param *const stk_energy_off_after = &params[P_OFF_AFTER];

static int init(void *st, const struct stk_params *p, struct stk_err *err)
{
    (void)err;
    ((struct energy *)st)->cap_w = (uint64_t)stk_params_int(p, &params[P_CAP]);
    return 0;
}

static uint64_t cap_w(const void *st)
{
    return ((const struct energy *)st)->cap_w;
}

static double score(const void *st, const struct stk_state *s, uint32_t node,
                    const struct stk_want *w, uint32_t *io_gpu)
{
    const struct stk_node *n = &s->nodes[node];
    bool beside = w->gpu_milli && !(n->mask_free >> *io_gpu & 1);
    uint32_t taken = beside ? 0 : w->gpus;

    (void)st;
    if (stk_power_on(n))
        return (beside ? BESIDE : 0) - (double)(n->gpus_free - taken);
    return -ASLEEP - 100.0 * (n->power.idle_w + (double)n->power.gpu_w * taken - n->power.off_w) -
           n->gpus;
}

const struct stk_place_ops stk_place_energy = {
    .name = "energy",
    .help = "few nodes that are on, the fullest first; empty ones are switched off; a power cap",
    .params = params,
    .state_size = sizeof(struct energy),
    .init = init,
    .saves = true,
    .cap_w = cap_w,
    .score = score,
    .score_rest = true,
    .pick = stk_place_fullest,
    .pick_rest = stk_place_fullest,
};
