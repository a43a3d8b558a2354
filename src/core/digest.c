/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c - one number for the whole state: equal events give equal digests, on every machine,
 * compiler and optimisation level. Caches are left out. */
#include "base/hash.h"
#include "core/account.h"
#include "core/booking.h"
#include "core/budget.h"
#include "core/core.h"
#include "core/means.h"
#include "core/save.h"
#include "core/sets.h"
#include "core/settings.h"
#include "core/state.h"
#include "core/tenant.h"
#include "core/usage.h"

#define BUFFER 512

/* Everything that a saved state has of jobs and arrays: a member that is saved is in the digest.
 * Rows of arrays may lie in another order after a load, so their hashes are added up. */
static uint64_t mix_jobs(uint64_t h, const struct stk_state *s)
{
    unsigned char buf[BUFFER];
    uint64_t one, arrays = 0;
    struct stk_bytes b = {.data = buf, .cap = sizeof(buf), .hash = &h};

    for (uint32_t i = 0; i < s->n_jobs; i++)
        if (s->jobs[i].state != STK_JOB_NONE) {
            stk_put_u(&b, i);
            stk_save_put_job(&b, s, i);
            stk_put_s(&b, s->jobs[i].priority); /* with what was set for its kind or queue */
        }
    stk_bytes_hash(&b);
    b.hash = &one;
    for (uint32_t i = 0; i < s->n_arrays; i++)
        if (s->arrays[i].open > 0) {
            one = 0;
            stk_save_put_array(&b, s, i);
            stk_bytes_hash(&b);
            arrays += one;
        }
    return stk_hash_mix(h, arrays);
}

static uint64_t mix_seen(uint64_t h, const struct stk_seen *e)
{
    h = stk_hash_mix(h, e->jobs);
    for (uint32_t i = 0; i < e->n; i++) {
        const struct stk_seen_kind *k = &e->kind[i];

        h = stk_hash_mix(h, (uint64_t)k->cpu_milli << 32 | (uint64_t)k->gpus << 16 | k->gpu_milli);
        h = stk_hash_mix(h, k->gpu_types);
        h = stk_hash_mix(h, (uint64_t)k->n << 32 | k->told);
    }
    return h;
}

uint64_t stk_core_digest(const struct stk_core *c)
{
    const struct stk_state *s = stk_core_state(c);
    uint64_t h = stk_hash_mix(s->history, s->n_events);

    h = stk_hash_mix(h, (uint64_t)s->next_number << 32 | s->next_lease);
    h = mix_jobs(stk_hash_mix(h, s->next_queue_seq), s);
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        const struct stk_node *n = &s->nodes[i];

        h = stk_hash_mix(h, (uint64_t)n->gpus_free << 1 | n->said_up);
        h = stk_hash_mix(h, n->mask_free);
        h = stk_hash_mix(h, n->mask_off);
        h = n->closed ? stk_hash_mix(h, n->closed) : h;
        h = stk_hash_mix(h, n->cpu_free);
        h = stk_hash_mix(h, n->mem_free);
        for (uint32_t k = 0; k < s->n_resources; k++)
            h = stk_hash_mix(h, s->resource_free[(size_t)i * s->n_resources + k]);
        h = n->off ? stk_hash_mix(h, 1) : h;
    }
    for (uint32_t i = 0; i < s->n_pools; i++)
        h = stk_hash_mix(h, s->pools[i].claim);
    for (size_t i = 0; i < (size_t)s->n_tenants * s->n_tenant_cols; i++)
        h = stk_hash_mix(stk_hash_mix(stk_hash_mix(h, s->tenant_used[i]), s->tenant_limits[i]),
                         s->tenant_guarantees[i]);
    for (uint32_t i = 0; i < s->n_tenants; i++)
        h = stk_hash_mix(h, s->tenants[i].weight);
    h = stk_means_digest(s, h);
    h = stk_account_digest(s, h);
    h = stk_budgets_digest(s, h);
    h = stk_settings_digest(s, h);
    h = stk_usage_digest(s, h);
    if (s->n_moved > 0)
        h = stk_hash_mix(h, s->n_moved);
    if (s->seen)
        h = mix_seen(h, s->seen);
    return stk_booking_digest(s, stk_sets_digest(s, h));
}
