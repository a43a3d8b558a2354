/* SPDX-License-Identifier: Apache-2.0 */
/* mix.h - what jobs usually ask for: kinds of tasks, each with its share of all. Placement that
 * looks ahead judges what it leaves by who could still use it. */
#ifndef STK_MODEL_MIX_H
#define STK_MODEL_MIX_H

#include <stdbool.h>
#include <stdint.h>

#define STK_MAX_MIX 256

struct stk_kind {
    uint32_t cpu_milli;
    uint32_t gpus;      /* 0: none */
    uint32_t gpu_milli; /* of each: 1 to 1000 */
    uint64_t gpu_types; /* as in stk_demand */
    double share;       /* all kinds together: 1 */
};

#define STK_MIX_COVER_PCT 95        /* of all tasks are in a mix by count */
#define STK_MIX_COVER_DEMAND_PCT 98 /* of the demand, in a mix by demand */

/* What a kind that came 'n' times counts: by demand, rare tasks of many GPUs weigh as much as
 * frequent ones of few, and CPU alone weighs little. */
static inline uint64_t stk_kind_weight(const struct stk_kind *k, uint64_t n, bool by_demand)
{
    return by_demand ? n * ((uint64_t)k->gpus * k->gpu_milli + 10) : n;
}

struct stk_mix {
    struct stk_kind kind[STK_MAX_MIX];
    uint32_t n;
};

#endif
