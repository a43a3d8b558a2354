/* SPDX-License-Identifier: Apache-2.0 */
/* random.c - place: any node with room, and of a part any GPU with room; what the others are
 * measured against. The same seed gives the same choices. */
#include "base/hash.h"
#include "core/part.h"
#include "policy/registry.h"

enum { P_SEED };
static const struct stk_param params[] = {
    [P_SEED] = {"random.seed", STK_PARAM_INT, "1", 0, 1000000000, NULL, "chance starts here"},
    {0},
};

struct chance {
    uint64_t seed;
};

static int init(void *st, const struct stk_params *p, struct stk_err *err)
{
    (void)err;
    ((struct chance *)st)->seed = (uint64_t)stk_params_int(p, &params[P_SEED]);
    return 0;
}

/* A new number for each lease and node: the highest of them is a fair draw. */
static double score(const void *st, const struct stk_state *s, uint32_t node,
                    const struct stk_want *w, uint32_t *io_gpu)
{
    const struct stk_use u = stk_want_use(w);
    uint64_t h = stk_hash_mix(stk_hash_mix(((const struct chance *)st)->seed, s->n_events), node);
    const struct stk_node *n = &s->nodes[node];
    uint64_t most = 0;

    for (uint32_t g = 0; w->gpu_milli && g < n->gpus; g++) {
        uint64_t v = stk_hash_mix(h, g + 1) | 1;

        if (v > most && stk_part_left(s, n, g) >= w->gpu_milli && stk_part_fits(s, node, g, &u)) {
            most = v;
            *io_gpu = g;
        }
    }
    return (double)(h >> 11);
}

const struct stk_place_ops stk_place_random = {
    .name = "random",
    .help = "any node with room, by chance",
    .params = params,
    .state_size = sizeof(struct chance),
    .init = init,
    .fleeting = true,
    .score = score,
    .pick = stk_place_fullest,
    .pick_rest = stk_place_emptiest,
};
