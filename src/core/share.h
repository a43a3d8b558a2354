/* SPDX-License-Identifier: Apache-2.0 */
/* share.h - what each tenant is due of the cluster, given what all of them want.
 *
 * A tenant wants what its jobs have and what its waiting jobs ask for, up to its limit. Down the
 * tree, what there is goes first to guarantees, as far as they are wanted; the rest to those that
 * want more, by weight, until each has what it wants (water filling). Over all GPU types, in
 * thousandths of a GPU.
 *
 * Made only when somebody asks: O(tenants log tenants), and kept while wishes change only of
 * tenants that want more than they are due. Starting and evicting change no wishes.
 */
#ifndef STK_CORE_SHARE_H
#define STK_CORE_SHARE_H

#include "core/blocks.h"
#include "core/state.h"

int stk_share_init(struct stk_state *s); /* 0 or -ENOMEM */
void stk_share_memory(struct stk_state *s, struct stk_visit *v);

/* What the waiting jobs of a tenant, and of all below it, ask for. */
static inline uint64_t stk_share_waiting(const struct stk_state *s, uint32_t tenant)
{
    return s->tenant_waiting[tenant];
}

/* The job starts to wait, or no longer does. */
void stk_share_waits(struct stk_state *s, const struct stk_job *j, bool waits);
/* The use of the tenant, and of all above it, is about to change by so much. */
void stk_share_uses(struct stk_state *s, uint32_t tenant, int64_t milli);
/* There are more GPUs, or fewer; or other guarantees. */
void stk_share_changed(struct stk_state *s);

/* What it is due now. Changes caches only. */
uint64_t stk_share_due(struct stk_state *s, uint32_t tenant);

/* Waiting jobs are counted right. */
bool stk_share_sound(const struct stk_state *s, struct stk_err *err);

#endif
