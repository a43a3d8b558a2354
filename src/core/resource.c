/* SPDX-License-Identifier: Apache-2.0 */
#include "core/resource.h"

#include <assert.h>
#include <string.h>

#include "core/blocks.h"
#include "core/sets.h"

static int check(const struct stk_state *s, const struct stk_node_spec *specs, struct stk_err *err)
{
    if (s->n_resources > STK_MAX_RESOURCES || (s->n_resources > 0 && !s->resource_names))
        return stk_err_set(err, -EINVAL, "at most %d resources, each with a name",
                           STK_MAX_RESOURCES);
    for (uint32_t i = 0; i < s->n_nodes; i++)
        for (uint32_t k = s->n_resources; k < STK_MAX_RESOURCES; k++)
            if (specs[i].resource[k])
                return stk_err_set(err, -EINVAL, "node %u: there is no resource %u", i, k);
    return 0;
}

static void *rows(const struct stk_state *s, uint32_t n, size_t each)
{
    return s->mem.resize(s->mem.ctx, NULL, 0, (n + (size_t)1) * s->n_resources * each);
}

int stk_resource_build(struct stk_state *s, const struct stk_node_spec *specs, struct stk_err *err)
{
    if (check(s, specs, err) < 0)
        return -EINVAL;
    if (s->n_resources == 0)
        return 0;
    s->resource_all = rows(s, s->n_nodes, sizeof(*s->resource_all));
    s->resource_free = rows(s, s->n_nodes, sizeof(*s->resource_free));
    s->resource_most = rows(s, s->n_pools, sizeof(*s->resource_most));
    s->resource_tally = rows(s, s->n_nodes, sizeof(*s->resource_tally));
    if (!s->resource_all || !s->resource_free || !s->resource_most || !s->resource_tally)
        return stk_err_set(err, -ENOMEM, "out of memory for %u nodes", s->n_nodes);
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        uint32_t *most = stk_resource_on(s, s->resource_most, specs[i].pool.i);

        for (uint32_t k = 0; k < s->n_resources; k++) {
            uint32_t amount = specs[i].resource[k];

            stk_resource_on(s, s->resource_all, i)[k] = amount;
            stk_resource_on(s, s->resource_free, i)[k] = amount;
            most[k] = amount > most[k] ? amount : most[k];
        }
    }
    return 0;
}

void stk_resource_memory(struct stk_state *s, struct stk_visit *v)
{
    size_t nodes = (s->n_nodes + (size_t)1) * s->n_resources;

    STK_BLOCK(v, s->resource_all, nodes);
    STK_BLOCK(v, s->resource_free, nodes);
    STK_BLOCK(v, s->resource_most, (s->n_pools + (size_t)1) * s->n_resources);
    STK_BLOCK(v, s->resource_tally, nodes);
}

bool stk_resource_covers(const struct stk_state *s, uint32_t *have, uint32_t node,
                         const struct stk_amounts *a)
{
    const uint32_t *on = stk_resource_on(s, have, node);

    for (uint32_t i = 0; i < a->n; i++)
        if (stk_amount(a, i) > on[i])
            return false;
    return true;
}

void stk_resource_take(struct stk_state *s, uint32_t node, const struct stk_amounts *a)
{
    uint32_t *on = stk_resource_on(s, s->resource_free, node);

    for (uint32_t i = 0; i < a->n; i++) {
        assert(stk_amount(a, i) <= on[i]);
        on[i] -= (uint32_t)stk_amount(a, i);
    }
}

void stk_resource_give(struct stk_state *s, uint32_t node, const struct stk_amounts *a)
{
    uint32_t *on = stk_resource_on(s, s->resource_free, node);

    for (uint32_t i = 0; i < a->n; i++)
        on[i] += (uint32_t)stk_amount(a, i);
}

uint64_t stk_resource_times(const struct stk_state *s, uint32_t *have, uint32_t row,
                            const struct stk_amounts *a, uint64_t most)
{
    for (uint32_t i = 0; a->each && i < a->n; i++)
        if (a->each[i] && stk_resource_on(s, have, row)[i] / stk_amount(a, i) < most)
            most = stk_resource_on(s, have, row)[i] / stk_amount(a, i);
    return most;
}

static bool may_use(const struct stk_state *s, const struct stk_demand *d, uint32_t node)
{
    return (d->gpu_types >> s->nodes[node].gpu_type & 1) && stk_sets_allow(s, d, node);
}

uint32_t stk_resource_never(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                            uint32_t *ret_most)
{
    const struct stk_pool *p = &s->pools[pool];

    for (uint32_t k = 0; k < d->n_resources; k++) {
        *ret_most = 0;
        for (uint32_t i = 0; i < p->n_nodes; i++) {
            uint32_t node = s->pool_nodes[p->first_node + i];
            uint32_t all = stk_resource_on(s, s->resource_all, node)[k];

            if (may_use(s, d, node) && all > *ret_most)
                *ret_most = all;
        }
        if (*ret_most < d->resource[k])
            return k;
    }
    return STK_NONE;
}

void stk_resource_put_names(struct stk_bytes *b, const struct stk_state *s)
{
    stk_put_u(b, s->n_resources);
    for (uint32_t i = 0; i < s->n_resources; i++) {
        uint32_t len = (uint32_t)strlen(s->resource_names[i]);

        stk_put_u(b, len);
        stk_put_raw(b, s->resource_names[i], len);
    }
}

void stk_resource_get_names(struct stk_reader *r, const struct stk_state *s,
                            uint32_t ret[STK_MAX_RESOURCES])
{
    uint32_t n = (uint32_t)stk_get_u(r, STK_MAX_RESOURCES);

    for (uint32_t i = 0; i < STK_MAX_RESOURCES; i++)
        ret[i] = STK_NONE;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t len = (uint32_t)stk_get_u(r, (uint64_t)(r->end - r->at));
        const unsigned char *name = stk_get_raw(r, len);

        for (uint32_t k = 0; name && k < s->n_resources; k++)
            if (strlen(s->resource_names[k]) == len && memcmp(s->resource_names[k], name, len) == 0)
                ret[i] = k;
    }
}

void stk_resource_renumber(struct stk_demand *d, const uint32_t here[STK_MAX_RESOURCES])
{
    const struct stk_demand old = *d;

    d->n_resources = 0;
    memset(d->resource, 0, sizeof(d->resource));
    for (uint32_t i = 0; i < old.n_resources; i++)
        if (here[i] != STK_NONE)
            stk_demand_set_resource(d, here[i], old.resource[i]);
}

void stk_resource_add(const struct stk_state *s, uint32_t node, const struct stk_amounts *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        s->resource_tally[(size_t)node * s->n_resources + i] += stk_amount(a, i);
}

bool stk_resource_sound(const struct stk_state *s, uint32_t node, struct stk_err *err)
{
    for (uint32_t k = 0; k < s->n_resources; k++) {
        uint32_t all = stk_resource_on(s, s->resource_all, node)[k];
        uint32_t free = stk_resource_on(s, s->resource_free, node)[k];
        uint64_t used = s->resource_tally[(size_t)node * s->n_resources + k];

        if (used + free != all) {
            (void)stk_err_set(err, -EINVAL, "node %u: %llu of %s used, %u free, %u in all", node,
                              (unsigned long long)used, s->resource_names[k], free, all);
            return false;
        }
    }
    return true;
}
