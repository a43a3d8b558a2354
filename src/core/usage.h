/* SPDX-License-Identifier: Apache-2.0 */
/* usage.h - who has had how much, and who is next: for orders that rank by tenant.
 *
 * Per tenant and all above it: what its leases hold now, and what they have had, faded with a
 * half-life. Fading is turned round (base/growth.h): with g(t) doubling in every half-life, a lease
 * of rate r that runs from a to b counts r * (g(b) - g(a)), and a tenant's usage at t is
 *
 *     past + rate * g(t)
 *
 * where a start takes r * g off 'past' and an end adds it. That is exact, in 128 bits that wrap,
 * costs O(depth) for a start or an end, and nothing as time goes by. Every 16 half-lives all is
 * divided so that it fits.
 *
 * Places. The order policy says of a tenant what it has (share()); siblings come in the order of
 * that, from the top of the tree down. Leaves with waiting jobs get labels in this order, which the
 * ranks of their jobs contain (core/lane.h). They are made anew in decide(), after leases began or
 * ended or the rule's period has passed: O(leaves with waiting jobs x depth), which begins and ends
 * pay for: with more than STK_USAGE_PAYS such leaves it is done at every second, third... one. Only
 * leaves that are out of order get other labels. Labels are caches.
 */
#ifndef STK_CORE_USAGE_H
#define STK_CORE_USAGE_H

#include "base/bytes.h"
#include "core/blocks.h"
#include "core/state.h"

__extension__ typedef unsigned __int128 stk_u128;

#define STK_USAGE_PAYS 128

struct stk_usage {
    stk_u128 past; /* see above */
    uint64_t rate; /* thousandths of GPUs, by their speed in thousandths, that its leases hold */
    uint64_t gpu_milli, cpu_milli, mem_mib; /* likewise, not weighted */
    /* what its live jobs ask for: thousandths of GPUs x estimated microseconds; where an order asks
     * for it, as all up to 'busy' */
    stk_u128 work;
    uint32_t live;   /* those jobs */
    uint64_t weight; /* as counted above; 0: it has no live jobs */
    uint64_t busy;   /* sum of weights of those below it that have live jobs */
    /* caches */
    uint32_t waiting; /* jobs, of a leaf */
    uint32_t lanes;   /* first; lane + 1 */
    /* scratch of making places */
    uint32_t stamp, first, next; /* children in order; tenant + 1 */
};

struct stk_usages {
    struct stk_usage *row; /* by tenant; twice, see sound() */
    struct stk_usage_rule rule;
    stk_time epoch;                     /* g(epoch) is one */
    uint64_t all_gpu, all_cpu, all_mem; /* of the cluster, thousandths, thousandths, MiB */
    uint64_t busy;                      /* as of a row: of those at the top */
    /* caches */
    uint64_t *active; /* bit per leaf with waiting jobs */
    uint32_t n_active, stamp;
    uint64_t paid; /* since labels were made */
    stk_time made;
    struct stk_sort_item *sort, *sort_tmp;
};

/* If the order asks for it and there are tenants. 0, or -ENOMEM. */
int stk_usage_init(struct stk_state *s);
void stk_usage_memory(struct stk_state *s, struct stk_visit *v); /* core/blocks.h */

/* The job got a lease (at the time of the event), or gives it back; its pieces are known. */
void stk_usage_lease(struct stk_state *s, const struct stk_job *j, bool took);
/* The job is live from now on, or not any more; before and after it is changed. */
void stk_usage_live(struct stk_state *s, const struct stk_job *j, bool live);
/* What was had fades as if so much had not passed, as far as it has. Returns how much
 * that is; called with the opposite, all is as before. */
stk_time stk_usage_skip(struct stk_state *s, stk_time by);
/* A job of the tenant waits, or no longer. */
void stk_usage_waits(struct stk_state *s, uint32_t tenant, bool waits);
uint32_t *stk_usage_lanes(struct stk_state *s, uint32_t tenant);

/* Makes places anew if it is time. Called by decide(): changes caches only. */
void stk_usage_places(struct stk_state *s, stk_time now);

/* For policies. What a tenant has had, in units in which a thousandth of a GPU of speed 1 for one
 * half-life / ln 2, ending now, is STK_GROWTH_ONE * 1000; 'growth' is what share() was given. */
stk_u128 stk_usage_of(const struct stk_state *s, uint32_t tenant, uint64_t growth);
/* In which time the live jobs of the tenant would be done on its part of the cluster: that of its
 * weight among those that have live jobs, at each level. 0 where nothing is counted. */
stk_time stk_usage_isolated(const struct stk_state *s, uint32_t tenant);
/* The same order as 'v' in 63 bits, to 2^-54 of it. */
int64_t stk_usage_key(stk_u128 v);

/* What was used, by leaf; the names are core/tenant.h's. get: 'here' is the tenant of today. */
void stk_usage_put(struct stk_bytes *b, const struct stk_state *s);
int stk_usage_get(struct stk_reader *r, struct stk_state *s, const uint32_t *here, uint32_t n);

uint64_t stk_usage_digest(const struct stk_state *s, uint64_t h);
bool stk_usages_sound(const struct stk_state *s, struct stk_err *err);

#endif
