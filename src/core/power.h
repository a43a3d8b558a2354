/* SPDX-License-Identifier: Apache-2.0 */
/* power.h - what the nodes draw, and a cap on it.
 *
 * A node whose power is known (stk_power_known()) is on or off. Off, it can be given all the same:
 * a start there switches it on, and the engine reports STARTED when it is ready. The engine
 * switches empty nodes off and says so (NODE_OFF). The sum of what all nodes draw is kept as pieces
 * are taken and given, tentatively too, so that a job can be asked for what it would add.
 *
 * Under a cap a job that would exceed it does not fit. Its pool is then marked, and tried again
 * whenever the sum falls; that costs as much as the shapes that wait in such pools. While jobs are
 * being stopped to make room for one, no other pool takes more power: what they draw is for that
 * job, and so is what was left over when they were chosen.
 */
#ifndef STK_CORE_POWER_H
#define STK_CORE_POWER_H

#include "base/err.h"
#include "core/state.h"

static inline bool stk_power_on(const struct stk_node *n)
{
    return !n->off || n->n_uses > 0;
}

/* What the node draws now. */
static inline uint64_t stk_power_of(const struct stk_node *n)
{
    uint32_t busy = n->aggregate
                        ? n->gpus - n->gpus_free
                        : (uint32_t)__builtin_popcountll(n->held ? n->mask_own : n->mask_used);

    return stk_power_on(n) ? n->power.idle_w + (uint64_t)n->power.gpu_w * busy : n->power.off_w;
}

/* Adds everything up; nodes are off where the placement policy likes that. -EINVAL: there is a cap
 * and no node whose power is known. */
int stk_power_init(struct stk_state *s, struct stk_err *err);

/* A node is on or off from now on, as 'off' says, if it has no pieces. */
void stk_power_set(struct stk_state *s, uint32_t node, bool off);

/* What a lease of these pieces would add. */
int64_t stk_power_added(const struct stk_state *s, const struct stk_piece *pieces, uint32_t n);

/* Whether the cap allows that, and nobody else was promised it. Where there is a cap: O(pools). */
bool stk_power_fits(const struct stk_state *s, const struct stk_piece *pieces, uint32_t n);

/* Whether it could be had with nothing else there; else -ERANGE and a sentence. */
int stk_power_check(const struct stk_state *s, const struct stk_job_spec *spec,
                    struct stk_err *err);

/* Less is drawn than before: who waited for that is tried again. */
void stk_power_freed(struct stk_state *s);

#endif
