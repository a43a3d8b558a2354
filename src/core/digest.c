/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c - one number for the whole state: equal events give equal digests, on every machine,
 * compiler and optimisation level. Caches are left out. */
#include "base/hash.h"
#include "core/account.h"
#include "core/booking.h"
#include "core/budget.h"
#include "core/core.h"
#include "core/means.h"
#include "core/sets.h"
#include "core/settings.h"
#include "core/stake.h"
#include "core/state.h"
#include "core/tenant.h"
#include "core/usage.h"

static uint64_t mix_job(uint64_t h, const struct stk_state *s, const struct stk_job *j)
{
    h = stk_hash_mix(h, (uint64_t)j->number << 32 | (uint64_t)j->state << 8 | j->cause);
    h = stk_hash_mix(h, (uint64_t)j->submitted);
    h = stk_hash_mix(h, (uint64_t)j->queued);
    h = stk_hash_mix(h, (uint64_t)j->started);
    h = stk_hash_mix(h, (uint64_t)j->ended);
    h = stk_hash_mix(h, (uint64_t)j->served);
    h = stk_hash_mix(h, (uint64_t)j->lost);
    h = stk_hash_mix(h, (uint64_t)j->word);
    h = stk_hash_mix(h, (uint64_t)j->lease << 32 | j->preemptions);
    h = stk_hash_mix(h, (uint64_t)j->unmet << 3 | (uint64_t)j->suspend_wanted << 2 |
                            (uint64_t)j->cancel_wanted << 1 | j->hold_wanted |
                            (uint64_t)j->by_hand << 40 | (uint64_t)j->moving << 41);
    if (s->terms[j - s->jobs].limit)
        h = stk_hash_mix(h, (uint64_t)j->estimate);
    if (j->slept) {
        h = stk_hash_mix(h, (uint64_t)j->slept << 32 | s->shapes[j->shape].demand.pin);
        h = stk_hash_mix(h, s->shapes[j->shape].demand.pin_mask);
        h ^= s->shapes[j->shape].demand.pin_slot;
    }
    h = stk_stake_digest(s, j, h);
    h = stk_hash_mix(h, (uint64_t)j->restarts << 32 | (uint64_t)j->retry[0] << 24 |
                            (uint64_t)j->retry[1] << 16 | (uint64_t)j->retry[2] << 8 | j->retry[3]);
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];

        h = stk_hash_mix(h, (uint64_t)p->node.i << 32 | (uint64_t)p->slot << 24 | p->gpus);
        h = stk_hash_mix(h, p->mask);
    }
    return h;
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
    for (uint32_t i = 0; i < s->n_jobs; i++)
        if (s->jobs[i].state != STK_JOB_NONE)
            h = mix_job(stk_hash_mix(h, i), s, &s->jobs[i]);
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
