/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - find room for a whole job: which pieces on which nodes. */
#ifndef STK_CORE_PLACE_H
#define STK_CORE_PLACE_H

#include "core/state.h"

/* Looks for room for one job of the shape now. 'avoid' (may be NULL) has a bit per node not to be
 * used. True: the pieces are in s->try_pieces, *ret_n of them, valid until the next call. Changes
 * nothing (a gang is tried inside a transaction that is rolled back).
 * One-node jobs: a few looks at the index. Gangs: that much per piece. */
bool stk_place_try(struct stk_state *s, uint32_t shape, const uint64_t *avoid, uint32_t *ret_n);

/* The same on GPUs of these types only. */
bool stk_place_try_types(struct stk_state *s, uint32_t shape, uint64_t types, uint32_t *ret_n);

/* The one place of a pinned demand. */
static inline struct stk_piece stk_place_pin(const struct stk_demand *d)
{
    return (struct stk_piece){{d->pin - 1}, d->gpus * d->tasks, d->tasks, d->pin_slot, d->pin_mask};
}

/* Tasks of the demand, of so many GPUs each, that the node holds when it is empty; of MIG instances
 * one on each GPU. Subgroups and the like do not matter here. */
uint64_t stk_place_holds(const struct stk_state *s, const struct stk_demand *d, uint32_t node,
                         uint32_t gpus);

/* Whether it could be placed on an empty cluster; a reason for a person when not. O(nodes). */
int stk_place_possible(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                       struct stk_err *err);

/* The same if all nodes were in one pool; it looks at sizes and numbers only. */
bool stk_place_anywhere(const struct stk_state *s, const struct stk_demand *d);

/* How a demand that may be cut is cut in this pool: *ret_whole nodes of *ret_size GPUs and a rest.
 * A job that fits one node is 0 whole nodes and all rest. */
void stk_place_cut(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                   uint32_t *ret_whole, uint32_t *ret_size, uint32_t *ret_rest);

#endif
