/* SPDX-License-Identifier: Apache-2.0 */
/* tenant_table.c - the table of tenants: made with the core, checked, and changed later.
 *
 * Guarantees are promises, so they must fit into each other: those of the tenants below one into
 * its own, those at the top into the cluster, each into the limit beside it. One that is not stated
 * is the sum of those below it. The table as it is stated and what follows from it are kept apart,
 * so that a change is tried on a copy first. O(tenants x types).
 */
#include "core/tenant.h"

#include <string.h>

#include "core/fair.h"
#include "core/limit.h"
#include "core/queue.h"
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
    s->tenant_stated = m->resize(m->ctx, NULL, 0, size);
    s->tenant_guarantees = m->resize(m->ctx, NULL, 0, 2 * size);
    return s->tenants && s->tenant_limits && s->tenant_used && s->tenant_stated &&
                   s->tenant_guarantees && stk_share_init(s) == 0 && stk_fair_init(s) == 0
               ? 0
               : -ENOMEM;
}

void stk_tenants_memory(struct stk_state *s, struct stk_visit *v)
{
    STK_BLOCK(v, s->tenants, s->n_tenants);
    STK_BLOCK(v, s->tenant_limits, cells(s));
    STK_BLOCK(v, s->tenant_used, 2 * cells(s));
    STK_BLOCK(v, s->tenant_stated, cells(s));
    STK_BLOCK(v, s->tenant_guarantees, 2 * cells(s));
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
    uint64_t *stated = &s->tenant_stated[(size_t)i * s->n_tenant_cols];

    if (spec->parent != STK_NONE && spec->parent >= i)
        return stk_err_set(err, -EINVAL, "tenant %.60s: the one above it must come before it",
                           spec->name);
    *t = (struct stk_tenant){
        .name = spec->name, .parent = spec->parent + 1, .leaf = true, .weight = spec->weight};
    if (depth_of(s, i) > STK_MAX_TENANT_DEPTH)
        return stk_err_set(err, -EINVAL, "tenant %.60s: at most %d levels of tenants", spec->name,
                           STK_MAX_TENANT_DEPTH);
    if (spec->weight > STK_MAX_WEIGHT)
        return stk_err_set(err, -EINVAL, "tenant %.60s: a weight is at most %d, got %g", spec->name,
                           STK_MAX_WEIGHT / STK_WEIGHT, (double)spec->weight / STK_WEIGHT);
    limit[STK_ALL_TYPES] = spec->limit;
    stated[STK_ALL_TYPES] = spec->guarantee;
    for (uint32_t k = 0; STK_OF_TYPE(k) < s->n_tenant_cols; k++) {
        limit[STK_OF_TYPE(k)] = spec->type_limit[k];
        stated[STK_OF_TYPE(k)] = spec->type_guarantee[k];
    }
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

/* One tenant's row of 'sums', which has the sums of those below it. */
static int settle_row(const struct stk_state *s, uint32_t i, uint64_t *sums, struct stk_err *err)
{
    const uint64_t *stated = &s->tenant_stated[(size_t)i * s->n_tenant_cols];
    uint64_t *row = &sums[(size_t)i * s->n_tenant_cols], types = 0;

    for (uint32_t of = STK_OF_TYPE(0); of < s->n_tenant_cols; of++) {
        int rc = settle(s, i, of, stated[of], &row[of], err);

        if (rc < 0)
            return rc;
        types += row[of];
    }
    if (stated[STK_ALL_TYPES] != STK_GUARANTEE_SUM && types > stated[STK_ALL_TYPES])
        return stk_err_set(err, -EINVAL,
                           "tenant %.60s: guarantees by type are %g GPUs together, its guarantee "
                           "over all types is %g",
                           s->tenants[i].name, gpus_of(types), gpus_of(stated[STK_ALL_TYPES]));
    if (types > row[STK_ALL_TYPES])
        row[STK_ALL_TYPES] = types;
    return settle(s, i, STK_ALL_TYPES, stated[STK_ALL_TYPES], &row[STK_ALL_TYPES], err);
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

static int fits_cluster(const struct stk_state *s, const uint64_t *sums, struct stk_err *err)
{
    uint64_t have[STK_MAX_GPU_TYPES + 1];
    char kind[24];

    capacity(s, have);
    for (uint32_t of = 0; of < s->n_tenant_cols; of++) {
        uint64_t sum = 0;

        for (uint32_t at = s->first_tenant; at; at = s->tenants[at - 1].sibling)
            sum += sums[(size_t)(at - 1) * s->n_tenant_cols + of];
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
    if (s->fair && s->backfill->reserve_all)
        return stk_err_set(err, -EINVAL,
                           "preempt %s does not go with backfill %s; take none, skip or easy",
                           s->preempt->name, s->backfill->name);
    return s->any_limits ? stk_limit_policies(s, "tenants", err) : 0;
}

/* What is guaranteed, from what is stated: tried beside the table, then taken over. */
static int settle_all(struct stk_state *s, struct stk_err *err)
{
    uint64_t *sums = s->tenant_guarantees + cells(s);
    int rc = 0;

    memset(sums, 0, cells(s) * sizeof(*sums));
    for (uint32_t i = s->n_tenants; i-- > 0 && rc == 0;) {
        const uint64_t *row = &sums[(size_t)i * s->n_tenant_cols];
        uint32_t parent = s->tenants[i].parent;

        rc = settle_row(s, i, sums, err);
        for (uint32_t of = 0; parent && of < s->n_tenant_cols; of++)
            sums[(size_t)(parent - 1) * s->n_tenant_cols + of] += row[of];
    }
    rc = rc < 0 ? rc : fits_cluster(s, sums, err);
    if (rc < 0)
        return rc;
    s->guarantees = false;
    for (size_t i = 0; i < cells(s); i++)
        s->guarantees |= sums[i] > 0;
    rc = check_policies(s, err);
    if (rc == 0)
        memcpy(s->tenant_guarantees, sums, cells(s) * sizeof(*sums));
    return rc;
}

/* ---- what a tenant's shapes carry ---- */

static bool has_limit(const struct stk_state *s, uint32_t tenant)
{
    for (uint32_t of = 0; of < s->n_tenant_cols; of++)
        if (*stk_tenant_limit(s, tenant, of) != STK_NO_LIMIT)
            return true;
    return false;
}

/* Who is under which limits; true: somebody under others than before. */
static bool find_limited(struct stk_state *s)
{
    bool changed = false;

    s->any_limits = false;
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        struct stk_tenant *t = &s->tenants[i];
        const uint32_t before = t->limited;
        const bool own = has_limit(s, i);

        s->any_limits |= own;
        t->limited = own || s->fair ? i + 1 : t->parent ? s->tenants[t->parent - 1].limited : 0;
        changed |= t->limited != before;
    }
    return changed;
}

int stk_tenants_init(struct stk_state *s, const struct stk_tenant_spec *specs, uint32_t n,
                     struct stk_err *err)
{
    int rc = 0;

    if (n == 0)
        return 0;
    if (n > STK_MAX_TENANTS)
        return stk_err_set(err, -EINVAL, "at most %d tenants, got %u", STK_MAX_TENANTS, n);
    if (make(s, n) < 0)
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
    (void)find_limited(s);
    return settle_all(s, err);
}

/* ---- changes ---- */

/* Jobs whose limits are another tenant's from now on get shapes of their own. */
static void reshape(struct stk_state *s)
{
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        struct stk_job *j = &s->jobs[i];
        const bool waits = j->state == STK_JOB_WAITING;

        if (j->state == STK_JOB_NONE || j->state == STK_JOB_DONE ||
            s->shapes[j->shape].tenant == stk_tenant_limited(s, j->tenant))
            continue;
        if (waits)
            stk_queue_leave(s, i, false);
        stk_shape_change(s, j, stk_tenant_limited(s, j->tenant));
        if (waits)
            stk_queue_enter(s, i);
    }
}

/* The number as it is stated. */
static uint64_t stated(const struct stk_state *s, const struct stk_quota_set *q)
{
    const size_t at = (size_t)q->tenant * s->n_tenant_cols + q->gpu_type;

    if (q->what == STK_QUOTA_WEIGHT)
        return s->tenants[q->tenant].weight;
    return q->what == STK_QUOTA_LIMIT ? s->tenant_limits[at] : s->tenant_stated[at];
}

static void state_it(struct stk_state *s, const struct stk_quota_set *q, uint64_t value)
{
    const size_t at = (size_t)q->tenant * s->n_tenant_cols + q->gpu_type;

    if (q->what == STK_QUOTA_WEIGHT)
        s->tenants[q->tenant].weight = (uint32_t)value;
    else if (q->what == STK_QUOTA_LIMIT)
        s->tenant_limits[at] = value;
    else
        s->tenant_stated[at] = value;
}

static int check_set(const struct stk_state *s, const struct stk_quota_set *q, struct stk_err *err)
{
    if (q->tenant >= s->n_tenants)
        return stk_err_set(err, -EINVAL, "there is no tenant %u", q->tenant);
    if ((unsigned)q->what >= STK_QUOTA_MAX ||
        q->gpu_type >= (q->what == STK_QUOTA_WEIGHT ? 1 : s->n_tenant_cols))
        return stk_err_set(err, -EINVAL, "tenant %.60s has no such %s", s->tenants[q->tenant].name,
                           stk_quota_name(q->what));
    if (q->what == STK_QUOTA_WEIGHT && q->value > STK_MAX_WEIGHT)
        return stk_err_set(err, -EINVAL, "tenant %.60s: a weight is at most %d",
                           s->tenants[q->tenant].name, STK_MAX_WEIGHT / STK_WEIGHT);
    if (q->what != STK_QUOTA_WEIGHT && q->value > STK_MAX_QUOTA && q->value != STK_NO_LIMIT)
        return stk_err_set(err, -EINVAL, "tenant %.60s: %g GPUs are too many",
                           s->tenants[q->tenant].name, gpus_of(q->value));
    return 0;
}

uint64_t stk_tenant_stated(const struct stk_state *s, const struct stk_quota_set *q)
{
    return check_set(s, q, NULL) < 0 ? STK_NO_LIMIT : stated(s, q);
}

int stk_tenant_set(struct stk_state *s, const struct stk_quota_set *q, struct stk_err *err)
{
    int rc = check_set(s, q, err);
    uint64_t before;

    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < s->n_pools && rc == 0; i++)
        rc = stk_queue_reserve_all(s, i);
    if (rc < 0)
        return no_memory(err);
    before = stated(s, q);
    state_it(s, q, q->value);
    (void)find_limited(s);
    rc = settle_all(s, err); /* the last that may fail */
    if (rc < 0) {
        state_it(s, q, before);
        (void)find_limited(s);
        (void)settle_all(s, NULL);
        return rc;
    }
    reshape(s);
    stk_share_changed(s);
    stk_tenant_wake_all(s);
    return 0;
}
