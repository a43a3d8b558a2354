/* SPDX-License-Identifier: Apache-2.0 */
/* tier.c - preempt: a job that cannot start may take the place of jobs of lower levels.
 *
 * A level is a tier and, inside it, a class of priorities: with the bounds 300 and 800 batch (below
 * 300), training, and inference (800 and above). The tier counts first. Critical jobs are never
 * evicted, so their classes make no difference: they share the highest level.
 *
 * Who goes is the cheapest set of jobs of lower levels with which gone the job provably fits
 * (core/victims.h), lowest levels first. While they stop, the pool is claimed for the job, so that
 * nobody else takes the room.
 *
 * Cost: a look at counters when no eviction could help (core/evictable.h), else that of
 * core/victims.h.
 */
#include "policy/registry.h"

#include "core/evictable.h"
#include "core/victims.h"

enum { P_CLASSES };
static const struct stk_param params[] = {
    [P_CLASSES] = {"tier.classes", STK_PARAM_LIST, "300,800", -STK_MAX_PRIORITY, STK_MAX_PRIORITY,
                   NULL,
                   "priorities from which on a job is of the next class (batch, training, "
                   "inference); empty: only tiers count"},
    {0},
};

#define MAX_BOUNDS 2

_Static_assert(STK_TIER_CRITICAL == STK_TIER_MAX - 1, "the highest tier is the one never evicted");
_Static_assert(STK_TIER_CRITICAL *(MAX_BOUNDS + 1) < STK_LEVEL_MAX, "room for all levels");

struct tier {
    int64_t bound[STK_MAX_PARAM_LIST];
    uint32_t n;
};

static int init(void *st, const struct stk_params *p, struct stk_err *err)
{
    struct tier *t = st;

    t->n = stk_params_list(p, &params[P_CLASSES], t->bound);
    if (t->n > MAX_BOUNDS)
        return stk_err_set(err, -EINVAL, "%s takes at most %d priorities, got %u",
                           params[P_CLASSES].name, MAX_BOUNDS, t->n);
    return 0;
}

static uint32_t levels(const void *st)
{
    const struct tier *t = st;

    return STK_TIER_CRITICAL * (t->n + 1) + 1;
}

static uint32_t level(const void *st, const struct stk_job *j)
{
    const struct tier *t = st;
    uint32_t class = 0;

    if (j->tier == STK_TIER_CRITICAL)
        return levels(st) - 1;
    while (class < t->n && j->priority >= t->bound[class])
        class ++;
    return j->tier * (t->n + 1) + class;
}

static int class_of(void *ctx, const struct stk_state *s, const struct stk_job *j,
                    const struct stk_job *v)
{
    (void)ctx;
    (void)s;
    return v->level < j->level ? v->level : STK_VICTIM_NEVER;
}

static uint32_t room(const void *st, const struct stk_ask *ask, stk_job_id job)
{
    static const struct stk_victim_rule rule = {.class = class_of};
    const struct stk_job *j = &ask->s->jobs[job.i];
    uint64_t below = 0;

    (void)st;
    for (uint32_t l = 0; l < j->level; l++)
        below += ask->s->pools[ask->pool].level_leased[l];
    if (below == 0 || !stk_evictable_could(ask->s, j))
        return 0;
    return stk_victims_room(ask, job.i, &rule);
}

const struct stk_preempt_ops stk_preempt_tier = {
    .name = "tier",
    .help = "a job that cannot start takes the place of jobs of lower tiers, or of lower "
            "classes of priority in its own",
    .params = params,
    .state_size = sizeof(struct tier),
    .init = init,
    .levels = levels,
    .level = level,
    .room = room,
};
