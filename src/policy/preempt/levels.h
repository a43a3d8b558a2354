/* SPDX-License-Identifier: Apache-2.0 */
/* levels.h - what counts when jobs take the place of others: a tier and, inside it, a class of
 * priorities. With the bounds 300 and 800: batch (below 300), training, and inference (800 and
 * above). The tier counts first. Critical jobs are never evicted, so their classes make no
 * difference: they share the highest level. Plain jobs, whose users may not preempt by class, share
 * one class: their priorities order them and nothing else.
 *
 * A job evicts others of levels below its own. A plain job evicts others of lower tiers only: all
 * levels below the lowest of its tier. So plain jobs give way to higher classes, and take nothing
 * from lower ones. No circle can close: whoever evicts another is of a higher level.
 *
 * Waiting jobs are ordered by level first. So a job stands before all that it could evict if they
 * ran, and no plain job, whatever its priority, stands before a job of a higher class. */
#ifndef STK_POLICY_PREEMPT_LEVELS_H
#define STK_POLICY_PREEMPT_LEVELS_H

#include "core/state.h"

extern const struct stk_param stk_levels_params[]; /* tier.classes, tier.plain */

struct stk_levels { /* the first member of the state of a policy that has levels */
    int64_t bound[STK_MAX_PARAM_LIST];
    uint32_t n;
    int64_t plain; /* the priority that plain jobs have their class from */
};

int stk_levels_init(void *st, const struct stk_params *p, struct stk_err *err);
uint32_t stk_levels_n(const void *st);
uint32_t stk_levels_of(const void *st, const struct stk_job *j);
uint32_t stk_levels_below(const void *st, const struct stk_job *j);

/* For orders: the level as the top of a rank (core/lane.h), highest first; and the priority as the
 * end of one. */
int64_t stk_levels_rank(const struct stk_levels *t, const struct stk_job *j);
int64_t stk_priority_rank(const struct stk_job *j);

#endif
