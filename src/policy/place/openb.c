/* SPDX-License-Identifier: Apache-2.0 */
/* openb.c - place: the rules that FGD was published beside, exactly as in its simulator, scores
 * being whole numbers cut towards zero and the first node of equals taken. Sizes are those of its
 * largest node: 128 cores and 8 GPUs. Where CPU is not limited it counts for nothing.
 *
 * See: Weng et al., ATC 2023, and the artifact of that paper. */
#include "policy/place/frag.h"
#include "policy/registry.h"

#define MOST_CPU 128000.0
#define MOST_GPU 8000.0

static double bestfit(const void *st, const struct stk_state *s, uint32_t node,
                      const struct stk_want *w, uint32_t *io_gpu)
{
    struct stk_frag f;
    double sum = 0;

    (void)st;
    (void)io_gpu;
    stk_frag_see(&f, s, node);
    if (s->nodes[node].cpu_limited)
        sum += ((double)f.cpu - (double)w->cpu_milli) / MOST_CPU * 0.5;
    sum += ((double)stk_frag_free(&f) - (double)w->gpus * stk_want_milli(w)) / MOST_GPU * 0.5;
    return (int)((1.0 - sum) * 100.0);
}

static double dotprod(const void *st, const struct stk_state *s, uint32_t node,
                      const struct stk_want *w, uint32_t *io_gpu)
{
    struct stk_frag f;
    double sum = 0;

    (void)st;
    (void)io_gpu;
    stk_frag_see(&f, s, node);
    if (s->nodes[node].cpu_limited)
        sum += (double)f.cpu / MOST_CPU * ((double)w->cpu_milli / MOST_CPU);
    sum += stk_frag_free(&f) / MOST_GPU * ((double)w->gpus * stk_want_milli(w) / MOST_GPU);
    return (int)(100.0 * (1 - sum / 2.0));
}

/* GPUs in use first, then nodes in use, then empty nodes, the small ones first. */
static double gpupacking(const void *st, const struct stk_state *s, uint32_t node,
                         const struct stk_want *w, uint32_t *io_gpu)
{
    uint32_t milli = stk_want_milli(w), whole = 0, opened = 0, full = 0;
    struct stk_frag f;
    int points;

    (void)st;
    (void)io_gpu;
    if (w->gpus == 0)
        return 0;
    stk_frag_see(&f, s, node);
    for (uint32_t g = 0; g < f.gpus; g++)
        whole += f.left[g] == 1000;
    if (whole == f.gpus)
        return 33 - (int)whole > (int)whole ? 33 - (int)whole : (int)whole;
    for (uint32_t k = 0; k < w->gpus; k++) {
        uint32_t best = stk_frag_least(&f, milli);

        if (best == UINT32_MAX)
            break;
        opened += f.left[best] == 1000;
        full += f.left[best] * 100 / 1000;
        f.left[best] = 0; /* it is chosen */
    }
    points = opened ? 50 - (int)opened : 100 - (int)full / 10;
    return points > (opened ? 33 : 50) ? points : opened ? 33 : 50;
}

/* Like to like: nodes that hold only jobs of this size, then those that hold some. */
static double gpuclustering(const void *st, const struct stk_state *s, uint32_t node,
                            const struct stk_want *w, uint32_t *io_gpu)
{
    const uint16_t *tags = &s->tags[(size_t)node * STK_TAGS];
    uint32_t mine = w->gpu_milli ? 0 : w->gpus < STK_TAGS ? w->gpus : STK_TAGS - 1, kinds = 0;
    struct stk_frag f;
    int base;

    (void)st;
    (void)io_gpu;
    if (w->gpus == 0)
        return 0;
    stk_frag_see(&f, s, node);
    base = 25 * (8000 - (int)stk_frag_free(&f)) / 8000;
    for (uint32_t i = 0; i < STK_TAGS; i++)
        kinds += tags[i] > 0;
    if (tags[mine])
        return base + (kinds == 1 ? 75 : 50);
    return base + (kinds == 0 ? 25 : 0);
}

const struct stk_place_ops stk_place_bestfit = {
    .name = "bestfit",
    .help = "least CPU and GPU left on the node",
    .score = bestfit,
    .pick = stk_place_fullest,
    .pick_rest = stk_place_emptiest,
};

const struct stk_place_ops stk_place_dotprod = {
    .name = "dotprod",
    .help = "smallest product of what is wanted and what is free",
    .score = dotprod,
    .pick = stk_place_fullest,
    .pick_rest = stk_place_emptiest,
};

const struct stk_place_ops stk_place_gpupacking = {
    .name = "gpupacking",
    .help = "GPUs in use first, then nodes in use, then empty ones",
    .score = gpupacking,
    .pick = stk_place_fullest,
    .pick_rest = stk_place_emptiest,
};

const struct stk_place_ops stk_place_gpuclustering = {
    .name = "gpuclustering",
    .help = "nodes that hold jobs of the same size first",
    .tags = true,
    .score = gpuclustering,
    .pick = stk_place_fullest,
    .pick_rest = stk_place_emptiest,
};
