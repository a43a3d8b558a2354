/* SPDX-License-Identifier: Apache-2.0 */
/* budget.h - disruption budgets: of a group of jobs (model/terms.h) so many stay up, whoever needs
 * room; and so many of the jobs of a tenant and of all below it (model/tenant.h).
 *
 * A job is up while it has a lease and is not being stopped. Each member of a group may say how
 * many must stay up; the most that one of them has said counts, until the last has ended. A tenant
 * has a number. A set of victims takes no more from a group or a tenant than it has above that, and
 * nothing from one that is below. Whoever makes somebody go asks here first: preemption, moves,
 * reservations that evict, nodes that are cleared. What a person stops by hand is not asked about.
 *
 * Cost: O(1) for groups, O(depth) for tenants, and nothing where no tenant has such a number.
 */
#ifndef STK_CORE_BUDGET_H
#define STK_CORE_BUDGET_H

#include "base/bytes.h"
#include "core/blocks.h"
#include "core/state.h"

struct stk_budget {
    uint32_t group;
    uint32_t members; /* that have not ended; 0: the row is free */
    uint32_t up, least;
    uint32_t next;  /* free list; row + 1 */
    uint32_t taken; /* scratch: of a set that is being tried */
    uint32_t seen;  /* scratch of sound() */
    bool spared;    /* cache: one of them would have gone, and is needed */
};

int stk_budget_reserve(struct stk_state *s);                      /* for one more */
void stk_budget_memory(struct stk_state *s, struct stk_visit *v); /* core/blocks.h */

/* A job comes, or has ended. */
void stk_budget_join(struct stk_state *s, uint32_t job);
void stk_budget_leave(struct stk_state *s, uint32_t job);
/* It is up; no longer. */
void stk_budget_up(struct stk_state *s, uint32_t job, bool up);

/* It goes beside those that were taken already, if that leaves enough; and comes back. */
bool stk_budget_take(struct stk_state *s, uint32_t job);
void stk_budget_give(struct stk_state *s, uint32_t job);

/* With so many more gone there are still enough up. If not, whoever wants it to go looks again when
 * more are. */
bool stk_budget_spares(struct stk_state *s, uint32_t job, uint32_t n);

/* What members that have ended said. */
void stk_budgets_put(struct stk_bytes *b, const struct stk_state *s);
void stk_budgets_get(struct stk_reader *r, struct stk_state *s, uint64_t version);
uint64_t stk_budgets_digest(const struct stk_state *s, uint64_t h);

bool stk_budgets_sound(const struct stk_state *s, struct stk_err *err);

#endif
