/* SPDX-License-Identifier: Apache-2.0 */
/* fgd.c - place: where fragmentation grows least (frag.h), as published: the score is a whole
 * number, 100 times the sigmoid of what the fragment shrinks by in GPUs, so many nodes tie and the
 * first of them is taken. */
#include <math.h>

#include "policy/place/frag.h"
#include "policy/registry.h"

static int points(double before, double after)
{
    return (int)(1.0 / (1.0 + exp(-((before - after) / 1000))) * 100.0);
}

static double score(const void *st, const struct stk_state *s, uint32_t node,
                    const struct stk_want *w, uint32_t *io_gpu)
{
    struct stk_frag f;
    double before;
    int best = -1;

    (void)st;
    stk_frag_see(&f, s, node);
    before = stk_frag(&f, s->mix);
    if (!w->gpu_milli) {
        stk_frag_take(&f, w);
        return points(before, stk_frag(&f, s->mix));
    }
    f.cpu -= w->cpu_milli;
    for (uint64_t m = stk_frag_choices(&f, s, node, w); m; m &= m - 1) {
        uint32_t g = (uint32_t)__builtin_ctzll(m);
        int p;

        f.left[g] -= w->gpu_milli;
        p = points(before, stk_frag(&f, s->mix));
        f.left[g] += w->gpu_milli;
        if (p > best) {
            best = p;
            *io_gpu = g;
        }
    }
    return best;
}

const struct stk_place_ops stk_place_fgd = {
    .name = "fgd",
    .help = "least growth of fragmentation (FGD, ATC 2023), as published",
    .mix = true,
    .score = score,
    .pick = stk_place_fullest,
    .pick_rest = stk_place_emptiest,
};
