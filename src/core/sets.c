/* SPDX-License-Identifier: Apache-2.0 */
/* sets.c - see sets.h.
 *
 * Numbers are given out by whoever feeds the core, and used again: a set that no job names any more
 * becomes another. So rows are never removed; there are as many as were ever needed at a time.
 *
 * A set may become another while jobs wait that name it (a node came, a feature went): their shapes
 * get ready, and promises in their pools are made anew. Jobs that run stay where they are.
 */
#include "core/sets.h"

#include "base/hash.h"
#include "core/backfill.h"
#include "core/blocks.h"
#include "core/shape.h"

static uint64_t *row_of(const struct stk_state *s, uint32_t number)
{
    return s->set_bits + (size_t)(number - 1) * stk_sets_words(s);
}

static void fill(uint64_t *row, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i <= last; i++)
        row[i / 64] |= UINT64_C(1) << (i % 64);
}

/* One more row, of no nodes. */
static int add_row(struct stk_state *s)
{
    uint64_t *row;

    if (stk_mem_grow(&s->mem, &s->set_bits, &s->cap_set_bits, (s->n_sets + 1) * stk_sets_words(s),
                     sizeof(*s->set_bits)) < 0)
        return -ENOMEM;
    row = row_of(s, ++s->n_sets);
    for (uint32_t i = 0; i < stk_sets_words(s); i++)
        row[i] = 0;
    return 0;
}

static int check(const struct stk_state *s, const struct stk_node_set *set, struct stk_err *err)
{
    if (set->number == 0 || set->number > STK_MAX_NODE_SETS || set->number > s->n_sets + 1)
        return stk_err_set(err, -EINVAL, "there is no set of nodes %u (1 to %u)", set->number,
                           s->n_sets < STK_MAX_NODE_SETS ? s->n_sets + 1 : STK_MAX_NODE_SETS);
    for (uint32_t i = 0; i < set->n; i++)
        if (set->range[i].first > set->range[i].last || set->range[i].last >= s->n_nodes ||
            (i > 0 && set->range[i].first <= set->range[i - 1].last))
            return stk_err_set(err, -EINVAL, "nodes of a set are ranges in order, of nodes 0 to %u",
                               s->n_nodes - 1);
    return 0;
}

/* Jobs of the set may fit where they did not, and not where they did. */
static void tell_pool(struct stk_state *s, uint32_t pool, uint32_t number)
{
    bool any = false;

    for (uint32_t at = s->pools[pool].first_shape, next; at; at = next) {
        next = s->shapes[at - 1].pool_next;
        if (s->shapes[at - 1].demand.nodes != number || s->shapes[at - 1].refs == 0)
            continue;
        any = true;
        stk_shape_ready(s, at - 1);
    }
    if (!any)
        return;
    s->pools[pool].blocked = false;
    stk_plan_drop(&s->pools[pool]);
    stk_shape_unreserve(s, pool);
}

int stk_sets_define(struct stk_state *s, const struct stk_node_set *set, struct stk_err *err)
{
    int rc = check(s, set, err);
    uint64_t *row;

    if (rc == 0 && set->number > s->n_sets && add_row(s) < 0)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    if (rc < 0)
        return rc;
    row = row_of(s, set->number);
    for (uint32_t i = 0; i < stk_sets_words(s); i++)
        row[i] = 0;
    for (uint32_t i = 0; i < set->n; i++)
        fill(row, set->range[i].first, set->range[i].last);
    for (uint32_t i = 0; i < s->n_pools; i++)
        tell_pool(s, i, set->number);
    return 0;
}

bool stk_sets_room(const struct stk_state *s, uint32_t shape)
{
    const struct stk_shape *sh = &s->shapes[shape];
    const uint64_t *row = stk_sets_of(s, &sh->demand);
    uint64_t have = 0;

    if (!row || sh->gpus == 0 || stk_demand_shares(&sh->demand) || sh->demand.pin)
        return true;
    for (uint32_t i = 0; i < stk_sets_words(s); i++)
        for (uint64_t w = row[i]; w; w &= w - 1) {
            const struct stk_node *n = &s->nodes[i * 64 + (uint32_t)__builtin_ctzll(w)];

            have += n->up && n->pool == sh->pool ? n->gpus_free : 0;
            if (have >= sh->gpus)
                return true;
        }
    return false;
}

uint64_t stk_sets_free(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                       uint32_t *ret_nodes)
{
    const struct stk_pool *p = &s->pools[pool];
    uint64_t have = 0;

    *ret_nodes = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const uint32_t node = s->pool_nodes[p->first_node + i];
        const struct stk_node *n = &s->nodes[node];

        if (!(d->gpu_types >> n->gpu_type & 1) || !stk_sets_allow(s, d, node))
            continue;
        ++*ret_nodes;
        have += n->up ? n->gpus_free : 0;
    }
    return have;
}

void stk_sets_shut(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                   uint32_t *ret_drained, uint32_t *ret_down)
{
    const struct stk_pool *p = &s->pools[pool];

    *ret_drained = *ret_down = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const uint32_t node = s->pool_nodes[p->first_node + i];
        const struct stk_node *n = &s->nodes[node];

        if (!(d->gpu_types >> n->gpu_type & 1) || !stk_sets_allow(s, d, node))
            continue;
        *ret_drained += n->up && n->closed;
        *ret_down += !n->up;
    }
}

void stk_sets_memory(struct stk_state *s, struct stk_visit *v)
{
    STK_BLOCK(v, s->set_bits, s->cap_set_bits);
}

uint64_t stk_sets_digest(const struct stk_state *s, uint64_t h)
{
    for (size_t i = 0; i < (size_t)s->n_sets * stk_sets_words(s); i++)
        h = stk_hash_mix(h, s->set_bits[i]);
    return h;
}

/* From this node on, the next run of nodes that are in the set, or are not. */
static uint32_t run_end(const struct stk_state *s, const uint64_t *row, uint32_t from)
{
    uint32_t to = from;

    while (to < s->n_nodes && stk_bits_test(row, to) == stk_bits_test(row, from))
        to++;
    return to;
}

/* Lengths of runs, in turn outside and inside; then 0. */
void stk_sets_put(struct stk_bytes *out, const struct stk_state *s)
{
    stk_put_u(out, s->n_sets);
    for (uint32_t k = 1; k <= s->n_sets; k++) {
        const uint64_t *row = row_of(s, k);
        uint32_t at = 0;

        stk_put_u(out, s->n_nodes);
        if (stk_bits_test(row, 0)) /* the first run is one outside */
            stk_put_u(out, 0);
        while (at < s->n_nodes) {
            uint32_t end = run_end(s, row, at);

            stk_put_u(out, end - at);
            at = end;
        }
    }
}

int stk_sets_get(struct stk_reader *r, struct stk_state *s, uint64_t version)
{
    uint32_t n = version < 6 ? 0 : (uint32_t)stk_get_u(r, STK_MAX_NODE_SETS);

    for (uint32_t k = 1; k <= n && !r->bad; k++) {
        uint32_t all = stk_get_u32(r), at = 0;
        bool in = false;

        if (add_row(s) < 0)
            return -ENOMEM;
        for (; at < all && !r->bad; in = !in) {
            uint32_t run = (uint32_t)stk_get_u(r, all - at);

            r->bad |= run == 0 && (at > 0 || in); /* there is one way to say it */
            for (uint32_t i = at; in && i < at + run && i < s->n_nodes; i++)
                fill(row_of(s, k), i, i);
            at += run;
        }
    }
    return 0;
}
