/* SPDX-License-Identifier: Apache-2.0 */
#include "core/speed.h"

#include "core/index.h"

uint32_t stk_speed_on(const struct stk_state *s, const struct stk_demand *d,
                      const struct stk_piece *pieces, uint32_t n)
{
    uint32_t least = UINT32_MAX;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t milli = stk_demand_speed(d, s->nodes[pieces[i].node.i].gpu_type);

        least = milli < least ? milli : least;
    }
    return least;
}

uint64_t stk_speed_class(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                         uint32_t *io_below)
{
    const struct stk_pool *p = &s->pools[pool];
    uint64_t faster = 0, types = 0;
    uint32_t best = 0;

    for (uint32_t i = 0; i < p->n_groups; i++) {
        const struct stk_group *g = &s->groups[p->first_group + i];
        uint32_t milli = stk_demand_speed(d, g->gpu_type);

        if (!stk_group_accepts(g, d->gpu_types))
            continue;
        if (milli >= *io_below) {
            faster |= UINT64_C(1) << g->gpu_type;
            continue;
        }
        if (milli > best) {
            best = milli;
            types = 0;
        }
        if (milli == best)
            types |= UINT64_C(1) << g->gpu_type;
    }
    *io_below = best;
    return types ? types | faster : 0;
}

stk_time stk_speed_slowest(const struct stk_state *s, const struct stk_job *j, stk_time work)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    uint32_t below = UINT32_MAX, least = STK_SPEED;

    while (d->n_speeds && stk_speed_class(s, d, j->pool, &below))
        least = below;
    return stk_speed_time(work, least);
}

stk_time stk_speed_longest(const struct stk_state *s, const struct stk_job *j, stk_time now)
{
    return stk_speed_slowest(s, j, stk_job_remaining(j, now));
}
