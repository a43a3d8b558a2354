/* SPDX-License-Identifier: Apache-2.0 */
#include "core/fair.h"

#include <string.h>

#include "core/evictable.h"
#include "core/lane.h"
#include "core/limit.h"
#include "core/shape.h"
#include "core/share.h"
#include "core/tenant.h"

int stk_fair_init(struct stk_state *s)
{
    const size_t n = (size_t)s->n_tenants * STK_LEVEL_MAX * sizeof(uint64_t);

    if (!s->fair)
        return 0;
    s->tenant_levels = s->mem.resize(s->mem.ctx, NULL, 0, 2 * n);
    s->tenant_gone =
        s->mem.resize(s->mem.ctx, NULL, 0, 3 * (size_t)s->n_tenants * sizeof(uint64_t));
    return s->tenant_levels && s->tenant_gone ? 0 : -ENOMEM;
}

int stk_fair_reserve(struct stk_state *s, uint32_t jobs)
{
    return s->fair ? stk_mem_grow(&s->mem, &s->own, &s->cap_own, jobs, sizeof(*s->own)) : 0;
}

void stk_fair_memory(struct stk_state *s, struct stk_visit *v)
{
    STK_BLOCK(v, s->own, s->cap_own);
    STK_BLOCK(v, s->tenant_gone, 3 * (size_t)s->n_tenants);
    STK_BLOCK(v, s->tenant_levels, 2 * (size_t)s->n_tenants * STK_LEVEL_MAX);
}

/* ---- what is whose ---- */

/* Where the job lies in its tenant's tree. */
static int64_t key_of(const struct stk_state *s, const struct stk_job *j)
{
    return s->ranked ? j->rank : (int64_t)(STK_LEVEL_MAX - j->level) << 32 | j->lease;
}

/* Where it is, if that is simple. */
static void note_place(struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    struct stk_own *o = &s->own[job];

    o->node = STK_NONE;
    if (j->lease == 0 || j->n_pieces != 1 || d->exclusive || stk_demand_shares(d))
        return;
    o->node = s->pieces[j->first_piece].node.i;
    o->gpus = s->pieces[j->first_piece].gpus;
}

void stk_fair_add(struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];
    struct stk_tenant *t;

    if (!s->fair || (!s->ranked && j->lease == 0))
        return;
    note_place(s, job);
    t = &s->tenants[j->tenant];
    stk_otree_insert(
        &s->trees, &t->jobs,
        (struct stk_oent){key_of(s, j), j->number, job,
                          (int64_t)stk_limit_milli(s, &s->shapes[j->shape].demand, j->pool)});
    t->walked = false;
}

void stk_fair_remove(struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];

    if (!s->fair || (!s->ranked && j->lease == 0))
        return;
    (void)stk_otree_remove(&s->trees, &s->tenants[j->tenant].jobs, key_of(s, j), j->number);
    s->tenants[j->tenant].walked = false;
}

/* Marks those that fit into the guarantee, one after the other. */
static void walk(struct stk_state *s, uint32_t tenant)
{
    struct stk_tenant *t = &s->tenants[tenant];
    uint64_t left = *stk_tenant_guarantee(s, tenant, STK_ALL_TYPES);
    struct stk_ocursor c;

    t->walked = true;
    t->stamp = ++s->own_stamp;
    if (left == 0 || t->jobs.count == 0)
        return;
    c = stk_otree_skip(&s->trees, &t->jobs, stk_otree_begin(&s->trees, &t->jobs), (int64_t)left);
    while (c.block != UINT32_MAX) {
        const struct stk_oent *e = stk_ocursor_get(&s->trees, c);

        s->own[e->id].stamp = t->stamp;
        left -= (uint64_t)e->aux;
        if (left == 0)
            return;
        stk_ocursor_next(&s->trees, &c);
        if (c.block != UINT32_MAX)
            c = stk_otree_skip(&s->trees, &t->jobs, c, (int64_t)left);
    }
}

static bool marked(struct stk_state *s, uint32_t tenant, uint32_t job)
{
    struct stk_tenant *t = &s->tenants[tenant];

    if (!t->walked)
        walk(s, tenant);
    return s->own[job].stamp == t->stamp;
}

uint32_t stk_fair_stamp(struct stk_state *s, uint32_t tenant)
{
    struct stk_tenant *t = &s->tenants[tenant];

    if (*stk_tenant_guarantee(s, tenant, STK_ALL_TYPES) == 0)
        return UINT32_MAX;
    if (!t->walked)
        walk(s, tenant);
    return t->stamp;
}

bool stk_fair_own_of(struct stk_state *s, uint32_t tenant, uint32_t job)
{
    const uint32_t stamp = stk_fair_stamp(s, tenant); /* first: it may mark the job */

    return s->own[job].stamp == stamp;
}

bool stk_fair_own(struct stk_state *s, const struct stk_job *j)
{
    return stk_fair_own_of(s, j->tenant, (uint32_t)(j - s->jobs));
}

/* ---- who is entitled ---- */

void stk_fair_count(struct stk_state *s, const struct stk_job *j, uint64_t milli, bool add)
{
    for (uint32_t at = s->fair ? j->tenant + 1 : 0; at; at = s->tenants[at - 1].parent)
        s->tenant_levels[(size_t)(at - 1) * STK_LEVEL_MAX + j->level] += add ? milli : -milli;
}

uint64_t stk_fair_level(const struct stk_state *s, uint32_t tenant, uint32_t level)
{
    const uint64_t *row = &s->tenant_levels[(size_t)tenant * STK_LEVEL_MAX];
    uint64_t sum = 0;

    for (uint32_t l = level; l < s->n_levels; l++)
        sum += row[l];
    return sum;
}

/* What those below the tenant have, but for one; or only what they have within guarantees. */
static uint64_t others(const struct stk_state *s, uint32_t tenant, uint32_t but, bool own)
{
    uint64_t sum = 0;

    for (uint32_t at = s->tenants[tenant].child; at; at = s->tenants[at - 1].sibling) {
        const uint64_t used = *stk_tenant_used(s, at - 1, STK_ALL_TYPES) - s->tenant_gone[at - 1];
        const uint64_t g = *stk_tenant_guarantee(s, at - 1, STK_ALL_TYPES);

        if (at - 1 != but)
            sum += own && g < used ? g : used;
    }
    return sum;
}

bool stk_fair_within(const struct stk_state *s, const struct stk_job *j, uint32_t tenant,
                     uint64_t milli)
{
    uint32_t at = j->tenant;
    uint64_t sum =
        stk_fair_level(s, at, stk_evictable_below(s, j)) - s->tenant_gone[s->n_tenants + at];

    if (*stk_tenant_guarantee(s, tenant, STK_ALL_TYPES) < milli)
        return false;
    while (at != tenant) {
        const uint32_t above = s->tenants[at].parent - 1;

        sum += others(s, above, at, sum + milli <= *stk_tenant_guarantee(s, at, STK_ALL_TYPES));
        at = above;
    }
    return sum <= *stk_tenant_guarantee(s, tenant, STK_ALL_TYPES) - milli;
}

/* The same without a plan. */
static bool within_all(struct stk_state *s, const struct stk_job *j, uint32_t tenant,
                       uint64_t milli)
{
    if (s->ranked && tenant == j->tenant)
        return *stk_tenant_guarantee(s, tenant, STK_ALL_TYPES) >= milli &&
               marked(s, tenant, (uint32_t)(j - s->jobs));
    return stk_fair_within(s, j, tenant, milli);
}

uint64_t stk_fair_types(struct stk_state *s, const struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    const uint64_t milli = stk_limit_milli(s, d, j->pool);
    uint64_t types = 0;

    for (uint32_t at = s->guarantees ? j->tenant + 1 : 0; at; at = s->tenants[at - 1].parent) {
        if (within_all(s, j, at - 1, milli))
            return d->gpu_types;
        for (uint32_t of = STK_OF_TYPE(0); of < s->n_tenant_cols; of++) {
            const uint64_t g = *stk_tenant_guarantee(s, at - 1, of);

            if (g >= milli && *stk_tenant_used(s, at - 1, of) <= g - milli)
                types |= d->gpu_types & UINT64_C(1) << (of - 1);
        }
    }
    return types;
}

static bool under_due(struct stk_state *s, uint32_t tenant)
{
    for (uint32_t at = tenant + 1; at; at = s->tenants[at - 1].parent)
        if (*stk_tenant_used(s, at - 1, STK_ALL_TYPES) >= stk_share_due(s, at - 1))
            return false;
    return true;
}

enum stk_title stk_fair_title(struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];

    if (!s->fair || (j->gpus == 0 && !s->fair_any))
        return STK_TITLE_NONE;
    if (stk_fair_types(s, j))
        return STK_TITLE_GUARANTEE;
    return s->by_due && under_due(s, j->tenant) ? STK_TITLE_DUE : STK_TITLE_NONE;
}

/* ---- who is tried again ---- */

/* The tenant's waiting shapes, if they may claim more than when they were looked at. */
static void look(struct stk_state *s, uint32_t tenant)
{
    if (s->tenant_waiting[tenant] == 0)
        return;
    for (uint32_t at = s->tenants[tenant].shapes; at; at = s->shapes[at - 1].tenant_next) {
        const struct stk_shape *sh = &s->shapes[at - 1];
        enum stk_title title;
        struct stk_oent first;

        if (!stk_shape_first(s, at - 1, INT64_MAX, &first) || sh->parked == STK_PARKED_LIMIT ||
            sh->parked == STK_PARKED_QUEUE)
            continue;
        title = stk_fair_title(s, first.id);
        if (title == STK_TITLE_NONE || (sh->parked == STK_READY && sh->title))
            continue;
        if (!sh->behind || !sh->title || title < sh->title)
            stk_shape_ready(s, at - 1);
    }
}

/* All below it, too. At most STK_MAX_TENANT_DEPTH deep. */
static void look_below(struct stk_state *s, uint32_t tenant)
{
    uint32_t at = tenant;

    for (;;) {
        if (s->tenants[at].child) {
            at = s->tenants[at].child - 1;
            continue;
        }
        look(s, at);
        while (at != tenant && !s->tenants[at].sibling)
            at = s->tenants[at].parent - 1;
        if (at == tenant)
            return;
        at = s->tenants[at].sibling - 1;
    }
}

void stk_fair_fell(struct stk_state *s, uint32_t tenant)
{
    uint32_t top = tenant;

    if (!s->fair)
        return;
    for (uint32_t at = tenant + 1; at; at = s->tenants[at - 1].parent)
        if (*stk_tenant_guarantee(s, at - 1, STK_ALL_TYPES) > 0)
            top = at - 1; /* those below it share this */
    look_below(s, top);
}

void stk_fair_refresh(struct stk_state *s)
{
    if (!s->fair || !s->by_due || s->n_waiting == 0)
        return;
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        bool under;

        if (!s->tenants[i].leaf || s->tenant_waiting[i] == 0)
            continue;
        under = under_due(s, i);
        if (under && !s->tenants[i].under)
            look(s, i);
        s->tenants[i].under = under;
    }
    for (uint32_t i = 0; s->due_looked != s->due_made && i < s->n_pools; i++)
        stk_shape_wake_titles(s, &s->pools[i]); /* others may have to give way to them now */
    s->due_looked = s->due_made;
}

bool stk_fair_sound(const struct stk_state *s, struct stk_err *err)
{
    const size_t n = (size_t)s->n_tenants * STK_LEVEL_MAX;
    uint64_t *sum;
    uint32_t jobs = 0, in_trees = 0;

    if (!s->fair)
        return true;
    sum = s->tenant_levels + n; /* scratch */
    memset(sum, 0, n * sizeof(*sum));
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];
        const struct stk_demand *d;

        if (j->state == STK_JOB_NONE || s->n_shapes == 0)
            continue;
        d = &s->shapes[j->shape].demand;
        jobs += j->state == STK_JOB_PLACED || j->state == STK_JOB_RUNNING ||
                (s->ranked && j->state == STK_JOB_WAITING);
        for (uint32_t at = j->lease ? j->tenant + 1 : 0; at; at = s->tenants[at - 1].parent)
            sum[(size_t)(at - 1) * STK_LEVEL_MAX + j->level] +=
                (uint64_t)j->gpus * stk_demand_asked_milli(d);
    }
    for (uint32_t i = 0; i < s->n_tenants; i++)
        in_trees += s->tenants[i].jobs.count;
    if (jobs == in_trees && memcmp(sum, s->tenant_levels, n * sizeof(*sum)) == 0)
        return true;
    (void)stk_err_set(err, -EINVAL, "tenants have %u jobs in order, %u are there; or use by level",
                      in_trees, jobs);
    return false;
}
