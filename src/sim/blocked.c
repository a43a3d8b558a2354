/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/blocked.h"

#include "core/index.h"
#include "core/part.h"

/* What is free of each type in the pool, in GPUs. */
static double count_free(const struct stk_state *s, const struct stk_pool *p, double *by_type)
{
    double all = 0;

    for (uint32_t i = 0; i < p->n_groups; i++) {
        const struct stk_group *g = &s->groups[p->first_group + i];
        uint64_t gpus = 0;

        for (uint32_t b = stk_index_bucket_up(s, g, 1); b != STK_NONE;
             b = stk_index_bucket_up(s, g, b + 1))
            gpus += (uint64_t)b * stk_index_count(s, g, b);
        by_type[g->gpu_type] = (double)gpus + (double)stk_part_left_in(s, g) / 1000;
        all += by_type[g->gpu_type];
    }
    return all;
}

static void look_at_pool(struct stk_blocked *b, const struct stk_state *s, const struct stk_pool *p)
{
    double by_type[STK_MAX_GPU_TYPES] = {0}, left = count_free(s, p, by_type);

    b->all += (double)p->gpus_up;
    b->used += (double)p->gpus_up - left;
    for (uint32_t at = p->first_shape; at; at = s->shapes[at - 1].pool_next) {
        const struct stk_shape *sh = &s->shapes[at - 1];
        double want = sh->gpus * (stk_demand_asked_milli(&sh->demand) / 1000.0);
        double have = 0;

        if (sh->waiting.count == 0)
            continue;
        for (uint32_t y = 0; y < STK_MAX_GPU_TYPES; y++)
            have += (sh->demand.gpu_types >> y) & 1 ? by_type[y] : 0;
        b->waiting += want * sh->waiting.count;
        b->blocked += have >= want ? want * sh->waiting.count : 0;
    }
}

void stk_blocked_look(struct stk_blocked *b, const struct stk_state *s, stk_time now)
{
    double span = b->looked ? (double)(now - b->at) / (double)STK_SECOND : 0;

    b->waiting_gpu_s += span * b->waiting;
    b->blocked_gpu_s += span * b->blocked;
    b->used_gpu_s += span * b->used;
    b->all_gpu_s += span * b->all;
    b->at = now;
    b->looked = true;
    b->waiting = b->blocked = b->used = b->all = 0;
    for (uint32_t p = 0; p < s->n_pools; p++)
        look_at_pool(b, s, &s->pools[p]);
}
