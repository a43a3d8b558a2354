/* SPDX-License-Identifier: Apache-2.0 */
/* gang.h - jobs that say where their tasks may lie to each other (model/demand.h): finding a place
 * for all of them, and checking one. Not for parts of GPUs: core/place.c does those. */
#ifndef STK_CORE_GANG_H
#define STK_CORE_GANG_H

#include "core/topo.h"

/* The levels to be tried, one after the other. */
static inline enum stk_level stk_gang_first(const struct stk_state *s, const struct stk_demand *d)
{
    if (d->level_preferred)
        return (enum stk_level)d->level_preferred;
    if (s->place->near)
        return STK_AT_LINK;
    return d->level_required ? (enum stk_level)d->level_required : STK_AT_FAR;
}

static inline enum stk_level stk_gang_last(const struct stk_demand *d)
{
    return d->level_required ? (enum stk_level)d->level_required : STK_AT_FAR;
}

/* Room for the whole job now, at the first level that has any; as stk_place_try(). Complete: if
 * there is room at all it is found.
 *
 * A job inside one rack (or zone, ...): a few looks at buckets, then at the nodes it gets and those
 * of their racks. Racks that have enough GPUs but lack CPU or memory, or are to be avoided, are
 * looked at one after the other. Over several GPU types: linear in racks when no one type has room.
 */
bool stk_gang_try(struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                  const uint64_t *avoid, uint32_t *ret_n);

/* 0, or -EINVAL: these pieces are not where the job asked for. 'd' is of whole GPUs or parts. */
int stk_gang_check(const struct stk_state *s, const struct stk_demand *d,
                   const struct stk_piece *pieces, uint32_t n, struct stk_err *err);

/* The most tasks that one place of the job's required level could take if all were free;
 * *ret_enough says whether the job could run. A job that may be cut is counted in pieces. O(nodes).
 */
uint64_t stk_gang_most(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                       bool *ret_enough);

/* The most GPUs that are free in one place of this level, of types the job takes. O(places). */
uint64_t stk_gang_most_free(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                            enum stk_level level);

#endif
