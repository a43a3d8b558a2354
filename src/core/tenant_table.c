/* SPDX-License-Identifier: Apache-2.0 */
/* tenant_table.c - the table of tenants: made with the core, and checked.
 *
 * Guarantees are promises, so they must fit into each other: those of the tenants below one into
 * its own, those at the top into the cluster, each into the limit beside it. One that is not stated
 * is the sum of those below it. O(tenants x types). Numbers that change later make another core
 * (core/settings.h).
 */
#include "core/tenant.h"

#include <string.h>

#include "core/fair.h"
#include "core/limit.h"
#include "core/means.h"
#include "core/share.h"

static int no_memory(struct stk_err *err)
{
    return stk_err_set(err, -ENOMEM, "out of memory for tenants");
}

static size_t cells(const struct stk_state *s)
{
    return (size_t)s->n_tenants * s->n_tenant_cols;
}

/* Zeroed memory for so many tenants; the columns follow from the nodes. */
static int make(struct stk_state *s, uint32_t n)
{
    const struct stk_mem *m = &s->mem;
    uint32_t types = 0;
    size_t size;

    for (uint32_t i = 0; i < s->n_nodes; i++)
        types = s->nodes[i].gpu_type >= types ? s->nodes[i].gpu_type + 1 : types;
    s->n_tenant_cols = STK_OF_TYPE(types);
    s->n_tenants = n;
    size = cells(s) * sizeof(uint64_t);
    s->tenants = m->resize(m->ctx, NULL, 0, n * sizeof(*s->tenants));
    s->tenant_limits = m->resize(m->ctx, NULL, 0, size);
    s->tenant_used = m->resize(m->ctx, NULL, 0, 2 * size);
    s->tenant_guarantees = m->resize(m->ctx, NULL, 0, size);
    return s->tenants && s->tenant_limits && s->tenant_used && s->tenant_guarantees &&
                   stk_share_init(s) == 0 && stk_fair_init(s) == 0
               ? 0
               : -ENOMEM;
}

void stk_tenants_memory(struct stk_state *s, struct stk_visit *v)
{
    STK_BLOCK(v, s->tenants, s->n_tenants);
    STK_BLOCK(v, s->tenant_limits, cells(s));
    STK_BLOCK(v, s->tenant_used, 2 * cells(s));
    STK_BLOCK(v, s->tenant_guarantees, cells(s));
    stk_means_memory(s, v);
    stk_share_memory(s, v);
}

static uint32_t depth_of(const struct stk_state *s, uint32_t tenant)
{
    uint32_t n = 0;

    for (uint32_t at = tenant + 1; at; at = s->tenants[at - 1].parent)
        n++;
    return n;
}

static int fill_row(struct stk_state *s, const struct stk_tenant_spec *spec, uint32_t i,
                    struct stk_err *err)
{
    struct stk_tenant *t = &s->tenants[i];
    uint64_t *limit = stk_tenant_limit(s, i, STK_ALL_TYPES);

    if (spec->parent != STK_NONE && spec->parent >= i)
        return stk_err_set(err, -EINVAL, "tenant %.60s: the one above it must come before it",
                           spec->name);
    *t = (struct stk_tenant){.name = spec->name,
                             .was = spec->was,
                             .parent = spec->parent + 1,
                             .leaf = true,
                             .weight = spec->weight,
                             .keep_up = spec->keep_up};
    s->keep_up |= spec->keep_up > 0;
    if (depth_of(s, i) > STK_MAX_TENANT_DEPTH)
        return stk_err_set(err, -EINVAL, "tenant %.60s: at most %d levels of tenants", spec->name,
                           STK_MAX_TENANT_DEPTH);
    if (spec->weight > STK_MAX_WEIGHT)
        return stk_err_set(err, -EINVAL, "tenant %.60s: a weight is at most %d, got %g", spec->name,
                           STK_MAX_WEIGHT / STK_WEIGHT, (double)spec->weight / STK_WEIGHT);
    if (spec->keep_up > STK_MAX_KEEP_UP)
        return stk_err_set(err, -EINVAL, "tenant %.60s: keep_up is at most %d jobs, got %u",
                           spec->name, STK_MAX_KEEP_UP, spec->keep_up);
    limit[STK_ALL_TYPES] = spec->limit;
    for (uint32_t k = 0; STK_OF_TYPE(k) < s->n_tenant_cols; k++)
        limit[STK_OF_TYPE(k)] = spec->type_limit[k];
    if (t->parent)
        s->tenants[t->parent - 1].leaf = false;
    return 0;
}

static void link_children(struct stk_state *s)
{
    for (uint32_t i = s->n_tenants; i-- > 0;) {
        struct stk_tenant *t = &s->tenants[i];
        uint32_t *list = t->parent ? &s->tenants[t->parent - 1].child : &s->first_tenant;

        t->sibling = *list;
        *list = i + 1;
    }
}

/* ---- guarantees ---- */

static double gpus_of(uint64_t milli)
{
    return (double)milli / 1000;
}

/* "of type 2": which GPUs a column is about. */
static const char *kind_of(uint32_t of, char text[24])
{
    static const char lead[] = " of type ";
    size_t at = sizeof(lead) - 1;
    uint32_t type = of - 1;

    text[0] = '\0';
    if (of == STK_ALL_TYPES)
        return text;
    memcpy(text, lead, at);
    if (type >= 10)
        text[at++] = (char)('0' + type / 10);
    text[at++] = (char)('0' + type % 10);
    text[at] = '\0';
    return text;
}

/* What follows for one number of a tenant; 'below' has the sum over those below it. */
static int settle(const struct stk_state *s, uint32_t i, uint32_t of, uint64_t stated,
                  uint64_t *below, struct stk_err *err)
{
    const char *name = s->tenants[i].name;
    const uint64_t limit = *stk_tenant_limit(s, i, of);
    char kind[24];

    if (stated != STK_GUARANTEE_SUM && *below > stated)
        return stk_err_set(err, -EINVAL,
                           "tenant %.60s: those below it are guaranteed %g GPUs%s together, "
                           "it has a guarantee of %g",
                           name, gpus_of(*below), kind_of(of, kind), gpus_of(stated));
    if (stated != STK_GUARANTEE_SUM)
        *below = stated;
    if (limit != STK_NO_LIMIT && *below > limit)
        return stk_err_set(err, -EINVAL,
                           "tenant %.60s: a guarantee of %g GPUs%s is more than its limit of %g",
                           name, gpus_of(*below), kind_of(of, kind), gpus_of(limit));
    return 0;
}

/* One tenant's guarantees, which are the sums of those below it so far. */
static int settle_row(const struct stk_state *s, const struct stk_tenant_spec *spec, uint32_t i,
                      struct stk_err *err)
{
    uint64_t *row = &s->tenant_guarantees[(size_t)i * s->n_tenant_cols], types = 0;

    for (uint32_t of = STK_OF_TYPE(0); of < s->n_tenant_cols; of++) {
        int rc = settle(s, i, of, spec->type_guarantee[of - 1], &row[of], err);

        if (rc < 0)
            return rc;
        types += row[of];
    }
    if (spec->guarantee != STK_GUARANTEE_SUM && types > spec->guarantee)
        return stk_err_set(err, -EINVAL,
                           "tenant %.60s: guarantees by type are %g GPUs together, its guarantee "
                           "over all types is %g",
                           s->tenants[i].name, gpus_of(types), gpus_of(spec->guarantee));
    if (types > row[STK_ALL_TYPES])
        row[STK_ALL_TYPES] = types;
    return settle(s, i, STK_ALL_TYPES, spec->guarantee, &row[STK_ALL_TYPES], err);
}

/* GPUs of the cluster, by column. */
static void capacity(const struct stk_state *s, uint64_t *ret)
{
    memset(ret, 0, s->n_tenant_cols * sizeof(*ret));
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        ret[STK_ALL_TYPES] += 1000 * (uint64_t)s->nodes[i].gpus;
        ret[STK_OF_TYPE(s->nodes[i].gpu_type)] += 1000 * (uint64_t)s->nodes[i].gpus;
    }
}

static int fits_cluster(const struct stk_state *s, struct stk_err *err)
{
    uint64_t have[STK_MAX_GPU_TYPES + 1] = {0};
    char kind[24];

    capacity(s, have);
    for (uint32_t of = 0; of < s->n_tenant_cols; of++) {
        uint64_t sum = 0;

        for (uint32_t at = s->first_tenant; at; at = s->tenants[at - 1].sibling)
            sum += *stk_tenant_guarantee(s, at - 1, of);
        if (sum > have[of])
            return stk_err_set(err, -EINVAL,
                               "tenants are guaranteed %g GPUs%s together; the cluster has %g",
                               gpus_of(sum), kind_of(of, kind), gpus_of(have[of]));
    }
    return 0;
}

static int check_policies(const struct stk_state *s, struct stk_err *err)
{
    if (s->guarantees && !s->fair)
        return stk_err_set(
            err, -EINVAL,
            "guarantees of tenants are kept by preempt reclaim, and not by preempt %s",
            s->preempt->name);
    if (s->keep_up && s->preempt->pass)
        return stk_err_set(err, -EINVAL,
                           "preempt policy %s decides all anew and keeps no jobs of tenants up: "
                           "keep_up goes with tier and reclaim",
                           s->preempt->name);
    if (s->fair && s->backfill->reserve_all)
        return stk_err_set(err, -EINVAL,
                           "preempt %s does not go with backfill %s; take none, skip or easy",
                           s->preempt->name, s->backfill->name);
    return s->any_limits ? stk_limit_policies(s, "tenants", err) : 0;
}

/* What is guaranteed, from what is stated. */
static int settle_all(struct stk_state *s, const struct stk_tenant_spec *specs, struct stk_err *err)
{
    int rc = 0;

    for (uint32_t i = s->n_tenants; i-- > 0 && rc == 0;) {
        uint32_t parent = s->tenants[i].parent;

        rc = settle_row(s, &specs[i], i, err);
        for (uint32_t of = 0; parent && of < s->n_tenant_cols; of++)
            s->tenant_guarantees[(size_t)(parent - 1) * s->n_tenant_cols + of] +=
                *stk_tenant_guarantee(s, i, of);
    }
    rc = rc < 0 ? rc : fits_cluster(s, err);
    for (size_t i = 0; i < cells(s); i++)
        s->guarantees |= s->tenant_guarantees[i] > 0;
    return rc < 0 ? rc : check_policies(s, err);
}

/* ---- what a tenant's shapes carry ---- */

static bool has_limit(const struct stk_state *s, uint32_t tenant)
{
    for (uint32_t of = 0; of < s->n_tenant_cols; of++)
        if (*stk_tenant_limit(s, tenant, of) != STK_NO_LIMIT)
            return true;
    return stk_means_limited(s, tenant);
}

/* Who is under which limits. */
static void find_limited(struct stk_state *s)
{
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        struct stk_tenant *t = &s->tenants[i];
        const bool own = has_limit(s, i);

        s->any_limits |= own;
        t->limited = own || s->fair ? i + 1 : t->parent ? s->tenants[t->parent - 1].limited : 0;
    }
}

int stk_tenants_init(struct stk_state *s, const struct stk_tenant_spec *specs, uint32_t n,
                     struct stk_err *err)
{
    int rc = 0;

    if (n == 0)
        return 0;
    if (n > STK_MAX_TENANTS)
        return stk_err_set(err, -EINVAL, "at most %d tenants, got %u", STK_MAX_TENANTS, n);
    if (make(s, n) < 0 || stk_means_init(s, specs) < 0)
        return no_memory(err);
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = fill_row(s, &specs[i], i, err);
    if (rc == 0 && !s->tenants[0].leaf)
        rc = stk_err_set(err, -EINVAL,
                         "tenant %.60s takes jobs of unknown tenants: none may be below it",
                         specs[0].name);
    if (rc < 0)
        return rc;
    link_children(s);
    find_limited(s);
    return settle_all(s, specs, err);
}
