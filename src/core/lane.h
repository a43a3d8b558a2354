/* SPDX-License-Identifier: Apache-2.0 */
/* lane.h - where jobs are ranked by tenant, those of one tenant in one shape wait in a lane.
 *
 * A tenant's place among others moves all the time. In a lane it makes no difference: jobs lie
 * there by what is their own. The rank of a job is that plus the label of its tenant (s->label),
 * and a shape orders its lanes by the rank of the first job of each. So a tenant that moves costs
 * its lanes, not its jobs, and jobs of all tenants still share the verdict of their shape.
 *
 * Ranks are laid out as below. Lanes of a shape are a pairing heap linked through the rows; those
 * of a tenant are a list. Everything but a search costs O(log lanes).
 */
#ifndef STK_CORE_LANE_H
#define STK_CORE_LANE_H

#include "core/blocks.h"
#include "core/state.h"

/* level, from the top | label of the tenant | what is the job's own */
#define STK_RANK_LABEL 31
#define STK_RANK_LEVEL 56
#define STK_LABELS (INT64_C(1) << (STK_RANK_LEVEL - STK_RANK_LABEL))

static inline bool stk_lanes_on(const struct stk_state *s)
{
    return s->label != NULL;
}

/* The rank of a job now. */
static inline int64_t stk_rank(const struct stk_state *s, const struct stk_job *j)
{
    return s->label ? j->rank + s->label[j->tenant] : j->rank;
}

/* Memory for so many jobs more that enter the queue. */
int stk_lane_reserve(struct stk_state *s, uint32_t n);
void stk_lane_memory(struct stk_state *s, struct stk_visit *v); /* core/blocks.h */

/* The tree in which the job lies while it waits. */
struct stk_otree *stk_lane_tree(struct stk_state *s, const struct stk_job *j);
/* R: it waits from now on, as 'e'; no longer, false: it did not. */
void stk_lane_add(struct stk_state *s, const struct stk_job *j, struct stk_oent e);
bool stk_lane_remove(struct stk_state *s, const struct stk_job *j);

/* The first waiting job of the shape whose aux is at most this, with its rank as key; false: there
 * is none. Of INT64_MAX O(1), else O(lanes that come before it). */
bool stk_shape_first(const struct stk_state *s, uint32_t shape, int64_t max_aux,
                     struct stk_oent *ret);

/* The tenant has another label: its lanes are put in order again. Changes caches only. */
void stk_lane_moved(struct stk_state *s, uint32_t tenant);

/* The trees of a shape, one after the other: 0, then what was returned, until STK_NONE. */
uint32_t stk_lane_next(const struct stk_state *s, uint32_t shape, uint32_t at,
                       const struct stk_otree **ret);

bool stk_lanes_sound(const struct stk_state *s, struct stk_err *err);

#endif
