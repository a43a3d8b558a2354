/* SPDX-License-Identifier: Apache-2.0 */
#include "core/shape.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "core/account.h"
#include "core/fair.h"
#include "core/gang.h"
#include "core/index.h"
#include "core/lane.h"
#include "core/limit.h"
#include "core/pair.h"
#include "core/place.h"
#include "core/tenant.h"
#include "model/mig.h"

/* Rows of shapes nobody uses are kept up to this many: they come back often. */
#define KEEP_SHAPES 4096

static uint32_t shape_hash(const struct stk_demand *d, uint32_t pool, const struct stk_under *u)
{
    uint64_t h = stk_hash_mix(pool, d->gpu_types);

    h = stk_hash_mix(h, (uint64_t)d->tasks << 32 | d->gpus);
    h = stk_hash_mix(h, (uint64_t)d->cpu_milli << 32 | d->mem_mib);
    h = stk_hash_mix(h, (uint64_t)d->gpu_mem_mib << 32 | d->gpu_milli);
    h = stk_hash_mix(h, (uint64_t)d->mig << 32 | (uint64_t)d->share << 16 |
                            (uint64_t)d->share_max << 8 | d->cut);
    if (d->share_with)
        h = stk_hash_mix(h, d->share_with);
    for (uint32_t i = 0; i < d->n_resources; i++)
        h = stk_hash_mix(h, (uint64_t)i << 32 | d->resource[i]);
    for (uint32_t i = 0; i < d->n_speeds; i++)
        h = stk_hash_mix(h, (uint64_t)d->speed_type[i] << 32 | d->speed_milli[i]);
    if (stk_demand_near(d)) {
        h = stk_hash_mix(h, (uint64_t)d->per_node << 32 | d->group);
        h = stk_hash_mix(h, (uint64_t)d->level_required << 24 | (uint64_t)d->level_preferred << 16 |
                                (uint64_t)d->group_level << 8 | d->exclusive);
    }
    if (d->nodes)
        h = stk_hash_mix(h, d->nodes);
    if (d->row || d->slo_milli)
        h = stk_hash_mix(h, (uint64_t)d->row << 16 | d->slo_milli);
    if (u->tenant)
        h = stk_hash_mix(h, (uint64_t)u->firm << 32 | u->tenant);
    if (u->plain)
        h = stk_hash_mix(h, 1);
    if (u->account[STK_OF_QUEUE])
        h = stk_hash_mix(
            stk_hash_mix(h, (uint64_t)u->account[STK_OF_QUEUE] << 32 | u->account[STK_OF_TENANT]),
            u->account[STK_OF_USER]);
    if (d->holders)
        h = stk_hash_mix(h, d->holders);
    if (d->pin)
        h = stk_hash_mix(stk_hash_mix(h, (uint64_t)d->pin_slot << 32 | d->pin), d->pin_mask);
    return (uint32_t)(h >> 33); /* 31 bits: never UINT32_MAX */
}

static bool same_lists(const struct stk_demand *a, const struct stk_demand *b)
{
    if (a->n_resources != b->n_resources || a->n_speeds != b->n_speeds)
        return false;
    for (uint32_t i = 0; i < a->n_resources; i++)
        if (a->resource[i] != b->resource[i])
            return false;
    for (uint32_t i = 0; i < a->n_speeds; i++)
        if (a->speed_type[i] != b->speed_type[i] || a->speed_milli[i] != b->speed_milli[i])
            return false;
    return true;
}

static bool same_demand(const struct stk_demand *a, const struct stk_demand *b)
{
    return a->tasks == b->tasks && a->gpus == b->gpus && a->gpu_types == b->gpu_types &&
           a->cpu_milli == b->cpu_milli && a->mem_mib == b->mem_mib && a->cut == b->cut &&
           a->gpu_mem_mib == b->gpu_mem_mib && a->gpu_milli == b->gpu_milli &&
           a->share == b->share && a->share_max == b->share_max && a->share_with == b->share_with &&
           a->mig == b->mig && a->level_required == b->level_required &&
           a->level_preferred == b->level_preferred && a->exclusive == b->exclusive &&
           a->per_node == b->per_node && a->group == b->group && a->group_level == b->group_level &&
           a->pin == b->pin && a->pin_mask == b->pin_mask && a->pin_slot == b->pin_slot &&
           a->row == b->row && a->nodes == b->nodes && a->slo_milli == b->slo_milli &&
           a->holders == b->holders && same_lists(a, b);
}

bool stk_shape_same(const struct stk_state *s, uint32_t a, uint32_t b)
{
    const struct stk_shape *x = &s->shapes[a], *y = &s->shapes[b];

    return a == b ||
           (x->kin == y->kin && x->pool == y->pool && same_demand(&x->demand, &y->demand));
}

/* Tasks that a node has at least, if it has any. */
static uint32_t tasks_together(const struct stk_state *s, const struct stk_demand *d)
{
    bool domains = s->topo->built[STK_TIER_DOMAIN];

    if (d->level_required && d->level_required <= STK_AT_NODE &&
        (d->level_required == STK_AT_NODE || !domains))
        return d->tasks;
    if (d->per_node)
        return d->per_node;
    return d->group &&
                   (d->group_level == STK_AT_NODE || (d->group_level == STK_AT_LINK && !domains))
               ? d->group
               : 1;
}

/* Wishes that make a difference: those of one GPU, or of one node's, are granted anyhow. */
static void relevant_near(const struct stk_state *s, struct stk_demand *d, uint32_t pool)
{
    uint32_t whole, size, rest;

    if (s->pools[pool].aggregate) {
        d->level_required = d->level_preferred = d->group_level = 0;
        d->group = d->per_node = 0;
        d->exclusive = false;
        return;
    }
    stk_place_cut(s, d, pool, &whole, &size, &rest);
    if (d->tasks > 1 || whole > 0)
        return;
    if (d->group_level == STK_AT_LINK)
        d->level_required = STK_AT_LINK; /* one task is one subgroup */
    if (d->level_required == STK_AT_LINK)
        d->level_preferred = 0;
    d->group = d->group_level = 0;
    d->per_node = 0;
    if (d->gpus <= 1 || d->level_required != STK_AT_LINK)
        d->level_required = 0;
    if (d->gpus <= 1 || d->level_preferred != STK_AT_LINK)
        d->level_preferred = 0;
}

/* GPUs on one node without which no piece can start. */
static uint32_t piece_need(const struct stk_state *s, const struct stk_demand *d, uint32_t pool)
{
    uint32_t whole, size, rest, need, most = s->pools[pool].max_gpus;

    if (d->gpu_milli || (d->cut && (d->n_speeds || d->nodes)))
        return 0; /* it may fit beside others; or be cut in other ways on other types or nodes */
    stk_place_cut(s, d, pool, &whole, &size, &rest);
    need = d->pin ? d->gpus * d->tasks : whole > 0 ? (rest > 0 ? rest : size) : d->gpus;
    if (!d->pin && whole == 0)
        need *= tasks_together(s, d);
    return need < most ? need : most; /* more: it came from other nodes and can never run here */
}

uint64_t stk_shape_types(const struct stk_state *s, const struct stk_demand *d, uint32_t pool)
{
    uint64_t types = d->gpu_types;

    if (!d->gpus || s->pools[pool].aggregate || (!s->any_mig && !d->mig))
        return types;
    for (uint32_t t = 0; t < STK_MAX_GPU_TYPES; t++)
        if (d->mig ? stk_mig_starts(s->mig[t], d->mig, 0) == 0 : s->mig[t] != 0)
            types &= ~(UINT64_C(1) << t);
    return types;
}

struct stk_demand stk_shape_relevant(const struct stk_state *s, const struct stk_demand *d,
                                     uint32_t pool)
{
    const bool all = s->pools_change || s->tenant_means; /* it matters though nodes say nothing */
    struct stk_demand r = *d;

    r.cpu_milli = s->pools[pool].cpu_limited || all ? d->cpu_milli : 0;
    r.mem_mib = s->pools[pool].mem_limited || all ? d->mem_mib : 0;
    r.gpu_types = stk_shape_types(s, d, pool);
    for (uint32_t i = 0; i < d->n_speeds; i++)
        if (!(r.gpu_types >> d->speed_type[i] & 1))
            (void)stk_demand_set_speed(&r, d->speed_type[i], STK_SPEED);
    if (s->share.all && r.gpus > 0 && !r.gpu_milli && !r.exclusive && (r.row || s->share.unknown))
        r.share_max = 2;
    if (s->pools[pool].aggregate)
        r.gpu_milli = r.mig = r.share = r.share_max = 0, r.share_with = 0;
    if (stk_demand_near(&r))
        relevant_near(s, &r, pool);
    if (!stk_demand_pairs(&r))
        r.row = r.slo_milli = 0; /* it has no company */
    return r;
}

static bool same_limits(const struct stk_shape *sh, const struct stk_under *u)
{
    return sh->tenant == u->tenant && sh->firm == u->firm && sh->plain == u->plain &&
           memcmp(sh->account, u->account, sizeof(sh->account)) == 0;
}

/* The shape among those with this hash, or STK_NONE. */
static uint32_t shape_find(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                           const struct stk_under *u, uint32_t head)
{
    for (uint32_t at = head; at != STK_NONE; at = s->shapes[at].next - 1)
        if (s->shapes[at].pool == pool && same_limits(&s->shapes[at], u) &&
            same_demand(&s->shapes[at].demand, d))
            return at;
    return STK_NONE;
}

bool stk_shape_known(const struct stk_state *s, const struct stk_job_spec *spec)
{
    const uint32_t pool = spec->pool.i;
    struct stk_under u = {.tenant = stk_tenant_limited(s, spec->tenant),
                          .firm = stk_tenant_firm(s, spec->tier),
                          .plain = s->preempt->room && spec->terms.plain};
    const struct stk_demand r = stk_shape_relevant(s, &spec->demand, pool);

    stk_account_find(s, &spec->terms, spec->tenant, u.account);
    return shape_find(s, &r, pool, &u, stk_map_get(&s->shape_by_hash, shape_hash(&r, pool, &u))) !=
           STK_NONE;
}

static void list_add(struct stk_state *s, uint32_t shape)
{
    struct stk_pool *p = &s->pools[s->shapes[shape].pool];

    s->shapes[shape].pool_next = p->first_shape;
    if (p->first_shape)
        s->shapes[p->first_shape - 1].pool_prev = shape + 1;
    p->first_shape = shape + 1;
    p->n_shapes++;
}

static void list_remove(struct stk_state *s, uint32_t shape)
{
    const struct stk_shape *sh = &s->shapes[shape];
    struct stk_pool *p = &s->pools[sh->pool];

    if (sh->pool_next)
        s->shapes[sh->pool_next - 1].pool_prev = sh->pool_prev;
    if (sh->pool_prev)
        s->shapes[sh->pool_prev - 1].pool_next = sh->pool_next;
    else
        p->first_shape = sh->pool_next;
    p->n_shapes--;
}

static void tenant_add(struct stk_state *s, uint32_t shape)
{
    struct stk_shape *sh = &s->shapes[shape];
    uint32_t *list = &s->tenants[sh->tenant - 1].shapes;

    sh->tenant_next = *list;
    if (*list)
        s->shapes[*list - 1].tenant_prev = shape + 1;
    *list = shape + 1;
}

static void tenant_remove(struct stk_state *s, uint32_t shape)
{
    const struct stk_shape *sh = &s->shapes[shape];

    if (sh->tenant_next)
        s->shapes[sh->tenant_next - 1].tenant_prev = sh->tenant_prev;
    if (sh->tenant_prev)
        s->shapes[sh->tenant_prev - 1].tenant_next = sh->tenant_next;
    else
        s->tenants[sh->tenant - 1].shapes = sh->tenant_next;
}

uint32_t stk_shape_get(struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                       const struct stk_under *u)
{
    const struct stk_demand r = stk_shape_relevant(s, d, pool);
    uint32_t hash = shape_hash(&r, pool, u), head = stk_map_get(&s->shape_by_hash, hash);
    uint32_t at = shape_find(s, &r, pool, u, head);

    if (at != STK_NONE) {
        s->shapes[at].refs++;
        return at;
    }
    if (s->free_shape) {
        at = s->free_shape - 1;
        s->free_shape = s->shapes[at].next;
    } else {
        at = s->n_shapes++;
    }
    s->shapes[at] = (struct stk_shape){.demand = r,
                                       .pool = pool,
                                       .kin = shape_hash(&r, pool, &(struct stk_under){0}),
                                       .tenant = u->tenant,
                                       .firm = u->firm,
                                       .plain = u->plain,
                                       .gpus = r.gpus * r.tasks,
                                       .refs = 1,
                                       .need = piece_need(s, &r, pool),
                                       .next = head + 1};
    memcpy(s->shapes[at].account, u->account, sizeof(u->account));
    s->shape_pos[at] = STK_HEAP_OUT;
    list_add(s, at);
    if (s->fair)
        tenant_add(s, at);
    stk_map_put(&s->shape_by_hash, hash, at);
    return at;
}

static struct stk_under under(const struct stk_shape *sh)
{
    struct stk_under u = {.tenant = sh->tenant, .firm = sh->firm, .plain = sh->plain};

    memcpy(u.account, sh->account, sizeof(u.account));
    return u;
}

void stk_shape_drop(struct stk_state *s, uint32_t shape)
{
    struct stk_shape *sh = &s->shapes[shape];
    struct stk_under u;
    uint32_t hash, at;

    if (--sh->refs > 0 || s->n_shapes < KEEP_SHAPES)
        return;
    if (sh->parked != STK_READY)
        stk_shape_unpark(s, shape);
    list_remove(s, shape);
    if (s->fair)
        tenant_remove(s, shape);
    u = under(sh);
    hash = shape_hash(&sh->demand, sh->pool, &u);
    at = stk_map_get(&s->shape_by_hash, hash);
    if (at == shape && sh->next == 0) {
        stk_map_remove(&s->shape_by_hash, hash);
    } else if (at == shape) {
        stk_map_put(&s->shape_by_hash, hash, sh->next - 1);
    } else {
        while (s->shapes[at].next - 1 != shape)
            at = s->shapes[at].next - 1;
        s->shapes[at].next = sh->next;
    }
    sh->next = s->free_shape;
    s->free_shape = shape + 1;
}

/* Another shape for the job. */
static void swap(struct stk_state *s, struct stk_job *j, const struct stk_demand *d,
                 const struct stk_under *u)
{
    const bool alone = stk_pair_hide(s, (uint32_t)(j - s->jobs));
    const uint32_t old = j->shape;

    j->shape = stk_shape_get(s, d, j->pool, u);
    stk_shape_drop(s, old);
    if (alone)
        stk_pair_show(s, (uint32_t)(j - s->jobs));
}

void stk_shape_pin(struct stk_state *s, struct stk_job *j, const struct stk_piece *at)
{
    struct stk_demand d = s->shapes[j->shape].demand;
    uint32_t old = j->shape, pin = at ? at->node.i + 1 : 0;
    uint64_t mask = at ? at->mask : 0;
    struct stk_under u = under(&s->shapes[old]);

    if (d.pin == pin && d.pin_mask == mask && d.pin_slot == (at ? at->slot : 0))
        return;
    if (d.pin) { /* others may sleep there, too */
        s->shapes[old].refs--;
        s->nodes[d.pin - 1].mask_wake = stk_shape_pinned(s, d.pin - 1);
        s->leave_look |= s->nodes[d.pin - 1].leaving;
        s->shapes[old].refs++;
    }
    if (pin)
        s->nodes[pin - 1].mask_wake |= mask;
    d.pin = pin;
    d.pin_mask = mask;
    d.pin_slot = at ? (uint8_t)at->slot : 0;
    swap(s, j, &d, &u);
}

void stk_shape_belongs(struct stk_state *s, struct stk_job *j, uint64_t holders)
{
    struct stk_demand d = s->shapes[j->shape].demand;
    struct stk_under u = under(&s->shapes[j->shape]);

    d.holders = holders;
    swap(s, j, &d, &u);
}

void stk_shape_rights(struct stk_state *s, struct stk_job *j)
{
    const struct stk_demand d = s->shapes[j->shape].demand;
    struct stk_under u = under(&s->shapes[j->shape]);

    u.plain = s->preempt->room && j->plain;
    if (u.plain != s->shapes[j->shape].plain)
        swap(s, j, &d, &u);
}

uint64_t stk_shape_pinned(const struct stk_state *s, uint32_t node)
{
    uint64_t mask = 0;

    for (uint32_t i = s->pools[s->nodes[node].pool].first_shape; i; i = s->shapes[i - 1].pool_next)
        if (s->shapes[i - 1].demand.pin == node + 1 && s->shapes[i - 1].refs > 0)
            mask |= s->shapes[i - 1].demand.pin_mask;
    return mask;
}
