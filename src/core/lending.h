/* SPDX-License-Identifier: Apache-2.0 */
/* lending.h - who lends to whom: what tenants are guaranteed and do not use, and others do.
 *
 * GPUs have no names on them, so this is a matter of counting. Among the tenants below one (or at
 * the top), those over their guarantees first have what is guaranteed to nobody: what the one above
 * them has beyond their guarantees. What they have beyond that is borrowed from those that use less
 * than they are guaranteed. It is divided in proportion: a borrower has of it as much as it is over
 * its guarantee, a lender gives of it as much as it leaves idle.
 *
 * Over all GPU types, or of one (core/tenant.h: columns), in thousandths of a GPU. For those who
 * look on; nothing is decided by it. O(tenants).
 */
#ifndef STK_CORE_LENDING_H
#define STK_CORE_LENDING_H

#include "core/state.h"

struct stk_lending {
    uint64_t lent;     /* of its guarantee, to those beside it */
    uint64_t borrowed; /* from those beside it */
};

/* 'ret' has a row for each tenant. */
void stk_lending(const struct stk_state *s, uint32_t of, struct stk_lending *ret);

/* What 'from' lends 'to', which is beside it; 'all' is what all of them lend (stk_lending_all). */
static inline uint64_t stk_lending_between(const struct stk_lending *rows, uint32_t from,
                                           uint32_t to, uint64_t all)
{
    return all ? (uint64_t)((double)rows[from].lent * (double)rows[to].borrowed / (double)all + 0.5)
               : 0;
}

/* What those beside each other lend, from the first on (tenant + 1). */
uint64_t stk_lending_all(const struct stk_state *s, const struct stk_lending *rows, uint32_t first);

#endif
