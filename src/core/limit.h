/* SPDX-License-Identifier: Apache-2.0 */
/* limit.h - limits of tenants (core/tenant.h) and of queues (core/account.h) together: what those
 * who decide need to know of them. A job over any of them waits, stands in nobody's way, and has
 * nothing reserved. */
#ifndef STK_CORE_LIMIT_H
#define STK_CORE_LIMIT_H

#include "core/state.h"
#include "model/reason.h"

/* What jobs of one shape have in common beside what they ask for. Under whose limits they are: each
 * + 1, 0: under none. */
struct stk_under {
    uint32_t tenant;
    bool firm;  /* they are never evicted, and so may not have what others are guaranteed */
    bool plain; /* they evict others of lower tiers only: a search for others may end otherwise */
    uint32_t account[STK_QUEUE_OF_MAX];
};

static inline bool stk_shape_limited(const struct stk_shape *sh)
{
    return sh->tenant || sh->account[STK_OF_QUEUE];
}

/* A job that comes: its accounts are joined. Needs stk_account_reserve(). */
struct stk_under stk_limit_join(struct stk_state *s, uint32_t job);

/* GPU types open to one more job of the shape now; 0: it is over a limit. */
uint64_t stk_limit_open(const struct stk_state *s, uint32_t shape);
/* Whether they are the same beside this job, which the pool's reservation is for; if not, those
 * who wait for that are remembered. */
bool stk_limit_beside(struct stk_state *s, uint32_t shape, uint32_t job);
/* True: the shape is over a limit, and was parked for it. */
bool stk_limit_park(struct stk_state *s, uint32_t shape);

/* The job got a lease, or gives it back; its pieces are known. Whoever is over a limit now stands
 * in nobody's way; whoever is within all of them again is woken. */
void stk_limit_took(struct stk_state *s, const struct stk_job *j);
void stk_limit_gave(struct stk_state *s, const struct stk_job *j);
/* Some limit has room again: all that wait for room, in any pool, are tried. */
void stk_limit_wake_pools(struct stk_state *s);

/* The limit that is in its way, as a reason; false: none is. */
bool stk_limit_why(struct stk_state *s, const struct stk_job *j, struct stk_reason *r);

/* What a job of this demand counts for. In a pool that only counts, parts are whole GPUs. */
uint64_t stk_limit_milli(const struct stk_state *s, const struct stk_demand *d, uint32_t pool);
/* Limits do not go with every policy. 'whose': "tenants", "queues". */
int stk_limit_policies(const struct stk_state *s, const char *whose, struct stk_err *err);
const char *stk_limit_tenant_name(const struct stk_state *s, uint32_t tenant);

#endif
