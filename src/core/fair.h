/* SPDX-License-Identifier: Apache-2.0 */
/* fair.h - who is entitled to GPUs, and who has borrowed them. For preempt policies that keep
 * guarantees and shares (core/policy.h: fair); with others nothing here costs anything.
 *
 * A tenant's jobs with a lease lie in a tree, in the order in which they are its own: higher levels
 * first, then older leases. Walked in this order, those that fit into its guarantee are *own*, the
 * others are *borrowed*: they run on what is guaranteed to somebody else, or to nobody. Where
 * running jobs have ranks (ranked), all the tenant's jobs are walked in order of rank, waiting ones
 * among the others, so that a waiting job may take the place of a running one in what is the
 * tenant's own. A walk is made when somebody asks, for tenants that have something new: O(own jobs
 * log jobs).
 *
 * A waiting job is entitled by a guarantee if with it some tenant from its own up is within it; or
 * by what it is due (core/share.h), while every tenant from its own up has less than that. Entitled
 * shapes are tried before all others, so that nobody is started only to give way again.
 */
#ifndef STK_CORE_FAIR_H
#define STK_CORE_FAIR_H

#include "core/blocks.h"
#include "core/state.h"
#include "model/reason.h"

enum stk_title { STK_TITLE_NONE, STK_TITLE_GUARANTEE, STK_TITLE_DUE };

int stk_fair_init(struct stk_state *s);
int stk_fair_reserve(struct stk_state *s, uint32_t jobs); /* in apply() */
void stk_fair_memory(struct stk_state *s, struct stk_visit *v);

/* The job waits, has a lease, or no longer does; its rank is known. */
void stk_fair_add(struct stk_state *s, uint32_t job);
void stk_fair_remove(struct stk_state *s, uint32_t job);
/* The use of its tenants by level has changed; they have less: whoever is entitled now is tried. */
void stk_fair_count(struct stk_state *s, const struct stk_job *j, uint64_t milli, bool add);
void stk_fair_fell(struct stk_state *s, uint32_t tenant);

/* What a waiting job may claim. */
enum stk_title stk_fair_title(struct stk_state *s, uint32_t job);
/* GPU types on which some tenant from its own up to 'top' (tenant + 1) is within its guarantee with
 * the job. */
uint64_t stk_fair_types(struct stk_state *s, const struct stk_job *j);
/* With the job, which asks for so much, the tenant, one of those from its own up, is within its
 * guarantee over all types. Of the job's own tenant jobs count that it may not evict by level.
 * Of others below the tenant all count; but only what they have within their own guarantees while
 * the job is within that of its branch: what they borrowed it can have back, too. Those that a plan
 * takes away (s->tenant_gone) do not count. O(tenants below it), O(1) for the job's own. */
bool stk_fair_within(const struct stk_state *s, const struct stk_job *j, uint32_t tenant,
                     uint64_t milli);
/* A job that has a lease is one of its tenant's own. */
bool stk_fair_own(struct stk_state *s, const struct stk_job *j);
bool stk_fair_own_of(struct stk_state *s, uint32_t tenant,
                     uint32_t job); /* the tenant is its own */
/* What s->own[].stamp is of those. */
uint32_t stk_fair_stamp(struct stk_state *s, uint32_t tenant);

/* What the tenant's jobs of this level and higher ones have. */
uint64_t stk_fair_level(const struct stk_state *s, uint32_t tenant, uint32_t level);

/* Others may be due something since demand has changed: they are tried. For decide(). */
void stk_fair_refresh(struct stk_state *s);

bool stk_fair_sound(const struct stk_state *s, struct stk_err *err);

#endif
