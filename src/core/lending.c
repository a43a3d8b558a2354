/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lending.h"

#include "core/tenant.h"

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t over(const struct stk_state *s, uint32_t tenant, uint32_t of)
{
    return less(*stk_tenant_used(s, tenant, of), *stk_tenant_guarantee(s, tenant, of));
}

static uint64_t idle(const struct stk_state *s, uint32_t tenant, uint32_t of)
{
    return less(*stk_tenant_guarantee(s, tenant, of), *stk_tenant_used(s, tenant, of));
}

/* So much of 'part', of 'whole' parts. */
static uint64_t share(uint64_t amount, uint64_t part, uint64_t whole)
{
    return whole ? (uint64_t)((double)amount * (double)part / (double)whole + 0.5) : 0;
}

/* GPUs of nodes that are up. */
static uint64_t capacity(const struct stk_state *s, uint32_t of)
{
    uint64_t gpus = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++)
        if (s->nodes[i].up && (of == STK_ALL_TYPES || STK_OF_TYPE(s->nodes[i].gpu_type) == of))
            gpus += s->nodes[i].gpus;
    return 1000 * gpus;
}

/* Those beside each other, from the first on, who have so much together that they can count on. */
static void settle(const struct stk_state *s, uint32_t of, uint32_t first, uint64_t have,
                   struct stk_lending *ret)
{
    uint64_t own = 0, above = 0, unused = 0, lent;

    for (uint32_t at = first; at; at = s->tenants[at - 1].sibling) {
        own += *stk_tenant_guarantee(s, at - 1, of);
        above += over(s, at - 1, of);
        unused += idle(s, at - 1, of);
    }
    lent = less(above, less(have, own));
    lent = lent < unused ? lent : unused;
    for (uint32_t at = first; at; at = s->tenants[at - 1].sibling)
        ret[at - 1] = (struct stk_lending){share(lent, idle(s, at - 1, of), unused),
                                           share(lent, over(s, at - 1, of), above)};
}

void stk_lending(const struct stk_state *s, uint32_t of, struct stk_lending *ret)
{
    settle(s, of, s->first_tenant, capacity(s, of), ret);
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        const uint64_t sure = *stk_tenant_guarantee(s, i, of), used = *stk_tenant_used(s, i, of);

        if (s->tenants[i].child)
            settle(s, of, s->tenants[i].child, used > sure ? used : sure, ret);
    }
}

uint64_t stk_lending_all(const struct stk_state *s, const struct stk_lending *rows, uint32_t first)
{
    uint64_t sum = 0;

    for (uint32_t at = first; at; at = s->tenants[at - 1].sibling)
        sum += rows[at - 1].lent;
    return sum;
}
