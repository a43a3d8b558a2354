/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/place/frag.h"

#include "core/part.h"

void stk_frag_see(struct stk_frag *f, const struct stk_state *s, uint32_t node)
{
    const struct stk_node *n = &s->nodes[node];

    f->gpus = n->aggregate ? 0 : n->gpus;
    f->type = n->gpu_type;
    f->cpu = n->cpu_limited ? n->cpu_free : UINT64_MAX / 2;
    for (uint32_t i = 0; i < f->gpus; i++)
        f->left[i] = stk_part_left(s, n, i);
}

/* The sums are kept apart by reason and added in this order, so that the last bit is that of the
 * published simulator: lacks both, lacks GPU, lacks CPU, asks for no GPU and fits, or does not, and
 * another type of GPU. */
enum { LACKS_BOTH, LACKS_GPU, LACKS_CPU, NO_GPU, NO_GPU_NO_CPU, OTHER_TYPE, N_SUMS };

double stk_frag(const struct stk_frag *f, const struct stk_mix *mix)
{
    double sum[N_SUMS] = {0}, all = 0;
    uint32_t milli = UINT32_MAX, fit = 0, rest = 0, total = stk_frag_free(f);

    for (uint32_t i = 0; i < mix->n; i++) {
        const struct stk_kind *k = &mix->kind[i];
        bool cpu = f->cpu >= k->cpu_milli;

        if (k->gpus == 0) {
            sum[cpu ? NO_GPU : NO_GPU_NO_CPU] += k->share * total;
            continue;
        }
        if (!((k->gpu_types >> f->type) & 1)) {
            sum[OTHER_TYPE] += k->share * total;
            continue;
        }
        if (k->gpu_milli != milli) { /* kinds that ask for as much come together often */
            milli = k->gpu_milli;
            fit = rest = 0;
            for (uint32_t g = 0; g < f->gpus; g++) {
                bool room = f->left[g] >= milli;

                fit += room;
                rest += room ? 0 : f->left[g];
            }
        }
        if (fit < k->gpus)
            sum[cpu ? LACKS_GPU : LACKS_BOTH] += k->share * total;
        else if (cpu)
            sum[LACKS_GPU] += k->share * rest;
        else
            sum[LACKS_CPU] += k->share * total;
    }
    for (int i = 0; i < N_SUMS; i++)
        all += sum[i];
    return all;
}

void stk_frag_take(struct stk_frag *f, const struct stk_want *w)
{
    uint32_t milli = stk_want_milli(w);

    f->cpu -= w->cpu_milli;
    for (uint32_t k = 0; k < w->gpus; k++) {
        uint32_t best = stk_frag_least(f, milli);

        if (best != UINT32_MAX)
            f->left[best] -= milli;
    }
}

uint64_t stk_frag_choices(const struct stk_frag *f, const struct stk_state *s, uint32_t node,
                          const struct stk_want *w)
{
    const struct stk_use u = stk_want_use(w);
    uint64_t all = 0;

    for (uint32_t g = 0; g < f->gpus; g++) {
        bool known = f->left[g] < w->gpu_milli || !stk_part_fits(s, node, g, &u);

        for (uint64_t m = all; m && !known; m &= m - 1)
            known = f->left[__builtin_ctzll(m)] == f->left[g];
        all |= known ? 0 : UINT64_C(1) << g;
    }
    return all;
}
