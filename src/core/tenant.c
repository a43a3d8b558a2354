/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tenant.h"

#include <string.h>

#include "base/hash.h"
#include "core/fair.h"
#include "core/lane.h"
#include "core/limit.h"
#include "core/means.h"
#include "core/settings.h"
#include "core/shape.h"
#include "core/share.h"
#include "core/usage.h"

/* ---- limits ---- */

static bool within(uint64_t limit, uint64_t used, uint64_t more)
{
    return limit == STK_NO_LIMIT || more == 0 || (used <= limit && more <= limit - used);
}

/* What the tenant has; while a plan is made (core/victims.h), without those who go by it and those
 * who are being stopped. */
static uint64_t use_of(const struct stk_state *s, uint32_t tenant)
{
    const uint64_t used = *stk_tenant_used(s, tenant, STK_ALL_TYPES);

    return s->fair ? used - s->tenant_gone[2 * (size_t)s->n_tenants + tenant] : used;
}

/* Of these GPU types, those of which the tenant may have so much more; 0: it may not in all. */
static uint64_t open_at(const struct stk_state *s, uint32_t tenant, uint64_t types, uint64_t more)
{
    const uint64_t *limit = stk_tenant_limit(s, tenant, STK_ALL_TYPES);
    const uint64_t *used = stk_tenant_used(s, tenant, STK_ALL_TYPES);
    uint64_t open = types;

    if (!within(*limit, use_of(s, tenant), more))
        return 0;
    for (uint32_t k = STK_OF_TYPE(0); k < s->n_tenant_cols; k++)
        if (!within(limit[k], used[k], more))
            open &= ~(UINT64_C(1) << (k - 1));
    return open;
}

/* The same if it had nothing, and the limits were those of now, or those that the core was made
 * with: one that was set is not there for ever. */
static uint64_t ever_open_at(const struct stk_state *s, uint32_t tenant, uint64_t types,
                             uint64_t more)
{
    const uint64_t *limit = stk_tenant_limit(s, tenant, STK_ALL_TYPES);
    const struct stk_tenant_spec *made = &s->settings->tenants[tenant];
    uint64_t open = types;

    if (!within(*limit, 0, more) && !within(made->limit, 0, more))
        return 0;
    for (uint32_t k = STK_OF_TYPE(0); k < s->n_tenant_cols; k++)
        if (!within(limit[k], 0, more) && !within(made->type_limit[k - 1], 0, more))
            open &= ~(UINT64_C(1) << (k - 1));
    return open;
}

/* Types that some node of the pool has, of those. */
static uint64_t types_in(const struct stk_state *s, uint32_t pool, uint64_t types)
{
    const struct stk_pool *p = &s->pools[pool];
    uint64_t have = 0;

    for (uint32_t i = 0; i < p->n_groups; i++)
        have |= UINT64_C(1) << s->groups[p->first_group + i].gpu_type;
    return types & have;
}

/* Types that a job of the shape might get. One that sleeps wakes where it is. */
static uint64_t wanted(const struct stk_state *s, const struct stk_shape *sh)
{
    if (sh->demand.pin)
        return UINT64_C(1) << s->nodes[sh->demand.pin - 1].gpu_type;
    return types_in(s, sh->pool, sh->demand.gpu_types);
}

/* Critical jobs of the tenant have no more than its guarantee with so much more. */
static bool firm_fits(const struct stk_state *s, uint32_t tenant, uint64_t more)
{
    return within(*stk_tenant_guarantee(s, tenant, STK_ALL_TYPES),
                  stk_fair_level(s, tenant, s->n_levels - 1), more);
}

/* What a job counts for. */
struct more {
    uint64_t milli;
    struct stk_wants means;
};

static struct more more_of(const struct stk_state *s, const struct stk_shape *sh)
{
    return (struct more){stk_limit_milli(s, &sh->demand, sh->pool), stk_wants_of(&sh->demand)};
}

/* Of these types, those of which one more job of the shape is within the limits of the tenant. */
static uint64_t open_to(const struct stk_state *s, const struct stk_shape *sh, uint32_t tenant,
                        uint64_t types, const struct more *more)
{
    if (sh->firm && !firm_fits(s, tenant, stk_limit_milli(s, &sh->demand, sh->pool)))
        return 0;
    if (s->tenant_means && !stk_means_within(s, tenant, &more->means))
        return 0;
    return open_at(s, tenant, types, more->milli);
}

uint64_t stk_tenant_open(const struct stk_state *s, uint32_t shape)
{
    const struct stk_shape *sh = &s->shapes[shape];
    const struct more more = more_of(s, sh);
    uint64_t types = wanted(s, sh);

    for (uint32_t at = sh->tenant; at && types; at = s->tenants[at - 1].parent)
        types = open_to(s, sh, at - 1, types, &more);
    return types;
}

bool stk_tenant_beside(const struct stk_state *s, uint32_t shape, uint32_t job)
{
    const struct stk_shape *sh = &s->shapes[shape], *other = &s->shapes[s->jobs[job].shape];
    const struct more more = more_of(s, sh);
    struct more both = more_of(s, other);
    uint64_t types = wanted(s, sh);

    both.milli += more.milli;
    for (int of = 0; of < STK_MEANS; of++)
        both.means.of[of] += more.means.of[of];
    for (uint32_t at = sh->tenant; at && types; at = s->tenants[at - 1].parent) {
        uint32_t up = other->tenant;

        while (up && up != at)
            up = s->tenants[up - 1].parent;
        types = open_to(s, sh, at - 1, types, up ? &both : &more);
    }
    return types != 0 && types == stk_tenant_open(s, shape); /* it may get any of these */
}

uint32_t stk_tenant_in_the_way(const struct stk_state *s, uint32_t shape)
{
    const struct stk_shape *sh = &s->shapes[shape];
    const struct more more = more_of(s, sh);
    const uint64_t types = wanted(s, sh);
    uint32_t found = STK_NONE;

    for (uint32_t at = sh->tenant; at; at = s->tenants[at - 1].parent)
        if (open_to(s, sh, at - 1, types, &more) != types)
            found = at - 1;
    return found;
}

void stk_tenant_note(struct stk_state *s, uint32_t shape, bool beside)
{
    uint32_t at = s->shapes[shape].tenant ? stk_tenant_in_the_way(s, shape) : STK_NONE;

    if (at != STK_NONE)
        s->tenants[at].closed = true;
    for (at = s->shapes[shape].tenant; at && beside; at = s->tenants[at - 1].parent)
        s->tenants[at - 1].closed = true;
}

/* ---- jobs that come ---- */

static double gpus_of(uint64_t milli)
{
    return (double)milli / 1000;
}

int stk_tenant_check(const struct stk_state *s, const struct stk_job_spec *spec,
                     uint64_t *ret_types, struct stk_err *err)
{
    const struct stk_demand *d = &spec->demand;
    uint64_t types = types_in(s, spec->pool.i, d->gpu_types), more, open = types;
    int rc;

    *ret_types = d->gpu_types;
    if (s->n_tenants == 0)
        return 0;
    if (spec->tenant >= s->n_tenants)
        return stk_err_set(err, -EINVAL, "there is no tenant %u (0 to %u)", spec->tenant,
                           s->n_tenants - 1);
    if (!s->tenants[spec->tenant].leaf)
        return stk_err_set(err, -EINVAL,
                           "tenant %.60s has others below it; jobs belong to one of those",
                           s->tenants[spec->tenant].name);
    more = stk_limit_milli(s, d, spec->pool.i);
    for (uint32_t at = s->tenants[spec->tenant].limited; at && types;
         at = s->tenants[at - 1].parent) {
        const uint64_t own = *stk_tenant_guarantee(s, at - 1, STK_ALL_TYPES);

        if (stk_tenant_firm(s, spec->tier) && more > own)
            return stk_err_set(err, -ERANGE,
                               "needs %g GPUs and is critical: such jobs stay within what their "
                               "tenant is guaranteed, %.60s %g",
                               gpus_of(more), s->tenants[at - 1].name, gpus_of(own));
        open = ever_open_at(s, at - 1, open, more);
        if (!open)
            return stk_err_set(err, -ERANGE, "needs %g GPUs; the limit of tenant %.60s is less%s",
                               gpus_of(more), s->tenants[at - 1].name,
                               within(*stk_tenant_limit(s, at - 1, STK_ALL_TYPES), 0, more)
                                   ? " on every GPU type"
                                   : "");
        rc = stk_means_ever(s, at - 1, d, err);
        if (rc < 0)
            return rc;
    }
    if (open != types)
        *ret_types = open;
    return 0;
}

/* ---- leases ---- */

static uint64_t leased(const struct stk_state *s, const struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    uint64_t gpus = 0;

    for (uint32_t i = 0; i < j->n_pieces; i++)
        gpus += s->pieces[j->first_piece + i].gpus;
    return gpus * stk_demand_asked_milli(d);
}

/* Adds what the job's pieces are to a table like 'used', or takes it off. */
static void count(const struct stk_state *s, const struct stk_job *j, uint64_t *table, bool add)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    uint64_t each = stk_demand_asked_milli(d);

    for (uint32_t at = j->tenant + 1; at; at = s->tenants[at - 1].parent) {
        uint64_t *row = &table[(size_t)(at - 1) * s->n_tenant_cols];

        for (uint32_t i = 0; i < j->n_pieces; i++) {
            const struct stk_piece *p = &s->pieces[j->first_piece + i];
            uint64_t milli = add ? each * p->gpus : -(each * p->gpus);

            row[STK_ALL_TYPES] += milli;
            row[STK_OF_TYPE(s->nodes[p->node.i].gpu_type)] += milli;
        }
    }
}

void stk_tenant_took(struct stk_state *s, const struct stk_job *j)
{
    if (s->n_tenants == 0)
        return;
    stk_share_uses(s, j->tenant, (int64_t)leased(s, j));
    stk_fair_count(s, j, leased(s, j), true);
    count(s, j, s->tenant_used, true);
    stk_means_count(s, j, true);
    stk_usage_lease(s, j, true);
}

/* The shape, parked with one tenant, is tried again if it is within limits now; else it is parked
 * where the way is blocked now. */
static void look_again(struct stk_state *s, uint32_t shape)
{
    struct stk_oent first;
    uint32_t tenant;

    if (stk_tenant_open(s, shape) ||
        (s->fair && s->guarantees && stk_shape_first(s, shape, INT64_MAX, &first) &&
         stk_fair_types(s, &s->jobs[first.id]))) { /* others may go for that one */
        s->pools[s->shapes[shape].pool].blocked = false;
        stk_shape_ready(s, shape);
        return;
    }
    tenant = stk_tenant_in_the_way(s, shape);
    if (tenant == s->shapes[shape].park_at)
        return;
    stk_shape_unpark(s, shape);
    stk_shape_park_at(s, shape, STK_PARKED_LIMIT, tenant);
}

/* The use of the tenant fell. */
static void wake(struct stk_state *s, uint32_t tenant)
{
    struct stk_tenant *t = &s->tenants[tenant];

    for (uint32_t at = t->parked; at;) {
        uint32_t shape = at - 1;

        at = s->shapes[shape].park_next;
        look_again(s, shape);
    }
    if (t->closed)
        stk_limit_wake_pools(s);
    t->closed = false;
}

void stk_tenant_gave(struct stk_state *s, const struct stk_job *j)
{
    if (s->n_tenants == 0)
        return;
    stk_share_uses(s, j->tenant, -(int64_t)leased(s, j));
    stk_fair_count(s, j, leased(s, j), false);
    count(s, j, s->tenant_used, false);
    stk_means_count(s, j, false);
    stk_usage_lease(s, j, false);
    for (uint32_t at = s->tenants[j->tenant].limited; at; at = s->tenants[at - 1].parent)
        wake(s, at - 1);
    stk_fair_fell(s, j->tenant);
}

/* The limit on GPUs that is in the way of so many more. */
static void gpus_why(const struct stk_state *s, const struct stk_shape *sh, uint32_t at,
                     uint64_t more, struct stk_reason *r)
{
    const uint64_t types = wanted(s, sh);
    uint32_t of = STK_ALL_TYPES;

    if (within(*stk_tenant_limit(s, at, of), *stk_tenant_used(s, at, of), more))
        for (of = STK_OF_TYPE(0); of + 1 < s->n_tenant_cols; of++)
            if ((types >> (of - 1) & 1) &&
                !within(*stk_tenant_limit(s, at, of), *stk_tenant_used(s, at, of), more))
                break;
    r->unit = STK_UNIT_GPUS;
    r->need = more;
    r->used = *stk_tenant_used(s, at, of);
    r->limit = *stk_tenant_limit(s, at, of);
    if (sh->firm && !firm_fits(s, at, more)) {
        r->used = stk_fair_level(s, at, s->n_levels - 1);
        r->limit = *stk_tenant_guarantee(s, at, of = STK_ALL_TYPES);
    }
    r->gpu_type = of;
}

bool stk_tenant_why(const struct stk_state *s, const struct stk_job *j, struct stk_reason *r)
{
    const struct stk_shape *sh = &s->shapes[j->shape];
    const struct more more = more_of(s, sh);
    const uint32_t at = stk_tenant_in_the_way(s, j->shape);
    const uint64_t types = wanted(s, sh);

    if (at == STK_NONE)
        return false;
    if (open_at(s, at, types, more.milli) != types || !stk_means_why(s, at, &more.means, r))
        gpus_why(s, sh, at, more.milli, r);
    r->code = STK_WHY_LIMIT;
    r->have = r->limit > r->used ? r->limit - r->used : 0;
    r->missing = r->need > r->have ? r->need - r->have : 0;
    r->tenant = s->tenants[at].name;
    return true;
}

void stk_tenant_going(struct stk_state *s, const struct stk_job *j, bool going)
{
    const uint64_t milli = s->fair ? leased(s, j) : 0;

    for (uint32_t at = j->tenant + 1; s->fair && at; at = s->tenants[at - 1].parent)
        s->tenant_gone[2 * (size_t)s->n_tenants + at - 1] += going ? milli : -milli;
}

/* ---- save, load, sound ---- */

void stk_tenant_put_names(struct stk_bytes *b, const struct stk_state *s)
{
    stk_put_u(b, s->n_tenants);
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        uint32_t len = (uint32_t)strlen(s->tenants[i].name);

        stk_put_u(b, len);
        stk_put_raw(b, s->tenants[i].name, len);
    }
}

static bool equals(const char *text, const unsigned char *name, uint32_t len)
{
    return text && strlen(text) == len && memcmp(text, name, len) == 0;
}

uint32_t stk_tenant_named(const struct stk_state *s, const unsigned char *name, uint32_t len)
{
    for (uint32_t i = 0; i < s->n_tenants; i++)
        if (equals(s->tenants[i].name, name, len))
            return i;
    for (uint32_t i = 0; i < s->n_tenants; i++)
        if (equals(s->tenants[i].was, name, len))
            return i;
    return STK_NONE;
}

int stk_tenant_get_names(struct stk_reader *r, const struct stk_state *s, uint32_t **ret_here,
                         uint32_t *ret_n, uint32_t *ret_cap)
{
    uint32_t n = (uint32_t)stk_get_u(r, (uint64_t)(r->end - r->at));

    if (n > STK_MAX_TENANTS)
        r->bad = true;
    if (r->bad)
        return 0;
    if (stk_mem_grow(&s->mem, ret_here, ret_cap, n, sizeof(**ret_here)) < 0)
        return -ENOMEM;
    *ret_n = n;
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        uint32_t len = (uint32_t)stk_get_u(r, (uint64_t)(r->end - r->at)), at;
        const unsigned char *name = stk_get_raw(r, len);

        if (!name)
            break;
        if (i < s->n_tenants && equals(s->tenants[i].name, name, len))
            at = i; /* nearly always */
        else
            at = stk_tenant_named(s, name, len);
        (*ret_here)[i] = at != STK_NONE && s->tenants[at].leaf ? at : 0;
    }
    return 0;
}

bool stk_tenants_sound(const struct stk_state *s, struct stk_err *err)
{
    size_t cells = (size_t)s->n_tenants * s->n_tenant_cols;
    uint64_t *sum;

    if (s->n_tenants == 0)
        return true;
    if (!stk_share_sound(s, err) || !stk_fair_sound(s, err) || !stk_means_sound(s, err))
        return false;
    sum = s->tenant_used + cells; /* scratch */
    memset(sum, 0, cells * sizeof(*sum));
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (j->state == STK_JOB_NONE || j->state == STK_JOB_DONE)
            continue;
        if (j->tenant >= s->n_tenants ||
            s->shapes[j->shape].tenant != stk_tenant_limited(s, j->tenant)) {
            (void)stk_err_set(err, -EINVAL, "job %u is of tenant %u, its shape of another",
                              j->number, j->tenant);
            return false;
        }
        if (j->lease)
            count(s, j, sum, true);
    }
    for (size_t k = 0; k < cells; k++)
        if (sum[k] != s->tenant_used[k]) {
            (void)stk_err_set(err, -EINVAL, "tenant %.60s: leases of %llu milli-GPU, counted %llu",
                              s->tenants[k / s->n_tenant_cols].name, (unsigned long long)sum[k],
                              (unsigned long long)s->tenant_used[k]);
            return false;
        }
    return true;
}
