/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/preempt/levels.h"

#include "core/lane.h"

#define MAX_BOUNDS 2

_Static_assert(STK_TIER_CRITICAL == STK_TIER_MAX - 1, "the highest tier is the one never evicted");
_Static_assert(STK_TIER_CRITICAL *(MAX_BOUNDS + 1) < STK_LEVEL_MAX, "room for all levels");
_Static_assert(2 * (int64_t)STK_MAX_PRIORITY < INT64_C(1) << STK_RANK_LABEL,
               "priorities stay below labels");

const struct stk_param stk_levels_params[] = {
    {"tier.classes", STK_PARAM_LIST, "300,800", -STK_MAX_PRIORITY, STK_MAX_PRIORITY, NULL,
     "priorities from which on a job is of the next class (batch, training, inference); empty: "
     "only tiers count"},
    {"tier.plain", STK_PARAM_INT, "500", -STK_MAX_PRIORITY, STK_MAX_PRIORITY, NULL,
     "jobs whose users may not preempt by class are of the class of this priority; a daemon takes "
     "that of the default queue"},
    {0},
};

int stk_levels_init(void *st, const struct stk_params *p, struct stk_err *err)
{
    struct stk_levels *t = st;

    t->n = stk_params_list(p, stk_levels_params, t->bound);
    if (t->n > MAX_BOUNDS)
        return stk_err_set(err, -EINVAL, "%s takes at most %d priorities, got %u",
                           stk_levels_params[0].name, MAX_BOUNDS, t->n);
    t->plain = stk_params_int(p, &stk_levels_params[1]);
    return 0;
}

uint32_t stk_levels_n(const void *st)
{
    const struct stk_levels *t = st;

    return STK_TIER_CRITICAL * (t->n + 1) + 1;
}

uint32_t stk_levels_of(const void *st, const struct stk_job *j)
{
    const struct stk_levels *t = st;
    const int64_t priority = j->plain ? t->plain : j->priority;
    uint32_t class = 0;

    if (j->tier == STK_TIER_CRITICAL)
        return stk_levels_n(st) - 1;
    while (class < t->n && priority >= t->bound[class])
        class ++;
    return j->tier * (t->n + 1) + class;
}

uint32_t stk_levels_below(const void *st, const struct stk_job *j)
{
    const struct stk_levels *t = st;

    return j->plain ? j->tier * (t->n + 1) : stk_levels_of(st, j);
}

int64_t stk_levels_rank(const struct stk_levels *t, const struct stk_job *j)
{
    return (int64_t)(stk_levels_n(t) - 1 - stk_levels_of(t, j)) << STK_RANK_LEVEL;
}

int64_t stk_priority_rank(const struct stk_job *j)
{
    return (int64_t)STK_MAX_PRIORITY - j->priority;
}
