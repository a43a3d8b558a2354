/* SPDX-License-Identifier: Apache-2.0 */
/* reclaim.c - preempt: guarantees of tenants are kept, what is above them is shared, and inside a
 * tenant levels decide.
 *
 * Who gives way to a job that cannot start:
 *
 * - In its own tenant, jobs of lower levels (levels.h: for a plain job, of lower tiers); with
 * reclaim.rank also those of worse rank.
 * - To a job within a guarantee, whatever others have borrowed: jobs of tenants that are over their
 *   guarantees. Two tenants are compared below the one that both belong to.
 * - To a job of a tenant that has less than it is due, jobs of tenants that have more, as long as
 *   after it the first is not further over what it is due than the second (reclaim.due). Not
 *   those of higher levels, where levels count between tenants.
 * - Among those who have all borrowed, jobs of lower levels (reclaim.levels=all), and with
 *   reclaim.rank those of worse rank.
 *
 * Nobody within a guarantee gives way to another tenant; with reclaim.move one may be started
 * elsewhere, for a larger job that is within a guarantee and finds no room otherwise. Best-effort
 * jobs go first, then those of the tenants that are most over what they are due; among these the
 * least is lost (core/victims.h). Critical jobs are never evicted, and so may not borrow.
 *
 * No cycles: an eviction for a guarantee leaves the other tenant at what it is guaranteed, or with
 * a job that does not fit into it. One for what is due makes the larger of the two excesses
 * smaller. Levels and ranks are orders.
 *
 * Cost: a look at counters when nobody could help, else O(running jobs).
 */
#include "policy/preempt/levels.h"
#include "policy/registry.h"

#include "core/evictable.h"
#include "core/fair.h"
#include "core/limit.h"
#include "core/share.h"
#include "core/tenant.h"
#include "core/victims.h"

enum { P_DUE, P_LEVELS, P_CRITICAL, P_CPU, P_RANK, P_MOVE };
static const struct stk_param params[] = {
    [P_DUE] = {"reclaim.due", STK_PARAM_WORD, "guarantees", 0, 0, "on|off|guarantees",
               "a tenant with less than it is due takes from those with more; guarantees: where "
               "some tenant has one (not with reclaim.rank)"},
    [P_LEVELS] = {"reclaim.levels", STK_PARAM_WORD, "all", 0, 0, "all|tenant",
                  "higher tiers and classes take borrowed GPUs of all tenants, or only of their "
                  "own"},
    [P_CRITICAL] = {"reclaim.critical", STK_PARAM_WORD, "own", 0, 0, "own|any",
                    "critical jobs, which are never evicted, stay within what their tenants are "
                    "guaranteed; any: they may take what is guaranteed to others"},
    [P_CPU] = {"reclaim.cpu_jobs", STK_PARAM_WORD, "off", 0, 0, "on|off",
               "jobs without GPUs, too, take the place of what others borrowed: they need CPU and "
               "memory"},
    [P_RANK] = {"reclaim.rank", STK_PARAM_WORD, "off", 0, 0, "on|off",
                "running jobs give way to those that the order ranks before them (order las)"},
    [P_MOVE] = {"reclaim.move", STK_PARAM_WORD, "off", 0, 0, "on|off",
                "smaller jobs within guarantees start elsewhere for one that is within its own and "
                "finds no room otherwise"},
    {0},
};

struct reclaim {
    struct stk_levels levels;
    bool due;    /* what tenants are due is kept, too, where somebody has a guarantee; */
    bool always; /* where nobody has one, too */
    bool across, firm, any, rank, move;
};

static int init(void *st, const struct stk_params *p, struct stk_err *err)
{
    struct reclaim *r = st;

    r->always = stk_params_word(p, &params[P_DUE], "on");
    r->due = r->always || stk_params_word(p, &params[P_DUE], "guarantees");
    r->across = stk_params_word(p, &params[P_LEVELS], "all");
    r->firm = stk_params_word(p, &params[P_CRITICAL], "own");
    r->any = stk_params_word(p, &params[P_CPU], "on");
    r->rank = stk_params_word(p, &params[P_RANK], "on");
    r->move = stk_params_word(p, &params[P_MOVE], "on");
    if (r->rank && r->always)
        return stk_err_set(err, -EINVAL,
                           "with reclaim.rank=on what is above guarantees is shared by rank: leave "
                           "out reclaim.due=on");
    r->due &= !r->rank;
    r->always &= !r->rank;
    return stk_levels_init(&r->levels, p, err);
}

/* ---- the question ---- */

#define N_FIRST 6 /* tenants that are told apart by how much they are over what they are due */
#define PER_TIER (N_FIRST + 1)
#define MOVED (STK_VICTIM_CLASSES - 1)

_Static_assert(2 * PER_TIER <= MOVED, "room for two tiers and those that move");

/* What all jobs of one tenant and level have in common, as long as the same are to go. */
struct side {
    bool known;
    uint32_t tenant, level;
    uint32_t mine, its; /* the two tenants that are compared, below the one both belong to */
    bool safe;          /* a guarantee of some tenant above protects them */
    bool claims;        /* the job is within a guarantee that counts against them */
    int64_t most;       /* jobs of up to so many thousandths go for what the job's side is due; < 0:
                           none does */
    int class;
};

/* What is asked about one job; of each tenant from its own up whether it claims. */
struct question {
    const struct reclaim *r;
    struct stk_state *s;
    const struct stk_job *j;
    uint32_t below; /* levels below this it may evict by level */
    stk_time now;
    uint64_t milli;
    uint32_t chain[STK_MAX_TENANT_DEPTH], depth; /* tenants, its own first */
    uint64_t types;                              /* on which it is within a guarantee */
    bool own;                                    /* on all it accepts */
    bool asks;                                   /* for what tenants are guaranteed or due */
    uint32_t first[N_FIRST], n_first;            /* tenants most over what they are due */
    struct side side;                            /* of who was asked about last */
};

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Use of a tenant without those that are to go. */
static uint64_t use(const struct question *q, uint32_t tenant)
{
    return *stk_tenant_used(q->s, tenant, STK_ALL_TYPES) - q->s->tenant_gone[tenant];
}

static bool more_over(struct stk_state *s, uint32_t a, uint32_t b)
{
    const double used_a = (double)*stk_tenant_used(s, a, STK_ALL_TYPES),
                 used_b = (double)*stk_tenant_used(s, b, STK_ALL_TYPES);

    return used_a * (double)stk_share_due(s, b) > used_b * (double)stk_share_due(s, a);
}

/* The tenants that are most over what they are due, and whether any is. */
static void find_first(struct question *q)
{
    struct stk_state *s = q->s;

    for (uint32_t i = 0; i < s->n_tenants; i++) {
        uint32_t at = q->n_first;

        if (!s->tenants[i].leaf || *stk_tenant_used(s, i, STK_ALL_TYPES) <= stk_share_due(s, i))
            continue;
        while (at > 0 && more_over(s, i, q->first[at - 1]))
            at--;
        if (at == N_FIRST)
            continue;
        q->n_first += q->n_first < N_FIRST;
        for (uint32_t k = q->n_first - 1; k > at; k--)
            q->first[k] = q->first[k - 1];
        q->first[at] = i;
    }
}

/* ---- who may go ---- */

/* With the job the tenant, one of those from its own up, is within its guarantee. */
static bool claims(const struct question *q, uint32_t tenant)
{
    if (!q->asks)
        return false;
    if (q->s->ranked && tenant == q->j->tenant)
        return q->own && *stk_tenant_guarantee(q->s, tenant, STK_ALL_TYPES) >= q->milli;
    return stk_fair_within(q->s, q->j, tenant, q->milli);
}

/* On the GPUs of this type, which is guaranteed to the job's tenants as such. */
static bool claims_type(const struct question *q, const struct stk_job *v)
{
    const uint32_t type = q->s->nodes[q->s->pieces[v->first_piece].node.i].gpu_type;
    const uint32_t of = STK_OF_TYPE(type);

    return (q->types >> type & 1) &&
           *stk_tenant_used(q->s, v->tenant, of) > *stk_tenant_guarantee(q->s, v->tenant, of);
}

/* What is protected of those below the tenant before jobs of lower levels are, at most: those of
 * this level and higher ones, and what each has within its own guarantee, which may be of lower
 * ones. */
static uint64_t guarded(const struct question *q, uint32_t tenant, uint32_t level)
{
    const struct stk_state *s = q->s;
    uint64_t sum = 0;

    for (uint32_t at = s->tenants[tenant].child; at; at = s->tenants[at - 1].sibling) {
        const uint64_t high = less(stk_fair_level(s, at - 1, level), s->tenant_gone[at - 1]);
        const uint64_t g = *stk_tenant_guarantee(s, at - 1, STK_ALL_TYPES), has = use(q, at - 1);
        const uint64_t own = has < g ? has : g;

        sum += high + own < has ? high + own : has;
    }
    return sum;
}

/* The guarantee of some tenant above theirs, up to 'top', is enough for what comes before them, and
 * for them. */
static bool are_safe(const struct question *q, uint32_t tenant, uint32_t level, uint32_t top)
{
    struct stk_state *s = q->s;

    for (uint32_t at = s->tenants[tenant].parent; s->guarantees && at && tenant != top;
         at = s->tenants[at - 1].parent) {
        const uint64_t g = *stk_tenant_guarantee(s, at - 1, STK_ALL_TYPES);

        if (g > 0 && guarded(q, at - 1, level) <= g)
            return true;
        if (at - 1 == top)
            break;
    }
    return false;
}

/* The two tenants that are compared: the job's and the other's, below the one both belong to. */
static void sides(const struct question *q, uint32_t tenant, uint32_t *mine, uint32_t *its)
{
    *its = tenant;
    for (uint32_t at = tenant + 1; at; at = q->s->tenants[at - 1].parent) {
        for (uint32_t i = 1; i < q->depth; i++)
            if (q->chain[i] == at - 1) {
                *mine = q->chain[i - 1];
                return;
            }
        *its = at - 1;
    }
    *mine = q->chain[q->depth - 1];
}

/* Best-effort jobs go first; then those of tenants that are most over what they are due. */
static int class_within(const struct question *q, uint32_t tenant, uint32_t level)
{
    const uint32_t per = q->r->levels.n + 1;
    const int class = level / per == STK_TIER_BEST_EFFORT ? 0 : PER_TIER;
    uint32_t at = 0;

    if (tenant == q->j->tenant)
        return class + (int)(level % per);
    while (at < q->n_first && q->first[at] != tenant)
        at++;
    while (at > 0 && at < q->n_first && !more_over(q->s, q->first[at - 1], q->first[at]))
        at--; /* as much as another */
    return class + (int)(at < N_FIRST ? at : N_FIRST);
}

/* One side has less than it is due, the other more, and after a job of so much went for it the
 * first is not further over that than the other: the most, in thousandths; -1: there is none. */
static int64_t evens_out(const struct question *q, uint32_t mine, uint32_t its)
{
    const int64_t due_mine = (int64_t)stk_share_due(q->s, mine),
                  due_its = (int64_t)stk_share_due(q->s, its);
    const int64_t before = (int64_t)use(q, mine), has = (int64_t)use(q, its);
    const int64_t over = before + (int64_t)q->milli - due_mine;

    if (before >= due_mine || has <= due_its)
        return -1;
    return over <= 0 ? INT64_MAX : has - due_its - over;
}

static const struct side *side_of(struct question *q, uint32_t tenant, uint32_t level)
{
    struct side *d = &q->side;

    if (d->known && d->tenant == tenant && d->level == level)
        return d;
    *d = (struct side){.known = true, .tenant = tenant, .level = level};
    if (!q->s->fair)
        return d;
    d->class = class_within(q, tenant, level);
    if (tenant == q->j->tenant)
        return d;
    sides(q, tenant, &d->mine, &d->its);
    d->safe = are_safe(q, tenant, level, d->its);
    d->claims = claims(q, d->mine);
    d->most = q->s->by_due && q->asks && (!q->r->across || level <= q->j->level)
                  ? evens_out(q, d->mine, d->its)
                  : -1;
    return d;
}

/* Both are of one tenant. */
static bool inside(const struct question *q, const struct stk_job *v)
{
    bool own;

    if (v->level < q->below)
        return true;
    if (!q->r->rank || v->level > q->j->level)
        return false;
    own = stk_fair_own(q->s, v);
    return q->own ? !own : !own && v->rank > q->j->rank;
}

/* It gave way at this very instant and came back at it. Levels, shares and guarantees are orders
 * each, but not all together: so it gives way again to a guarantee only, and no circle closes. */
static bool came_back(const struct question *q, const struct stk_job *v)
{
    return !q->s->ranked && v->preemptions > 0 && v->queued == q->now && v->started == q->now;
}

/* For the same reason nobody who waited gives way for what others are due at the instant at which
 * it starts. */
static bool just_started(const struct question *q, const struct stk_job *v)
{
    return v->started == q->now && (v->queued < q->now || came_back(q, v));
}

/* Of another tenant. */
static bool may_go_outside(const struct question *q, const struct side *d, const struct stk_job *v,
                           uint64_t milli)
{
    if (q->types && !q->own && claims_type(q, v))
        return true;
    if (d->safe ||
        (q->s->guarantees && stk_fair_own_of(q->s, d->tenant, (uint32_t)(v - q->s->jobs))))
        return false;
    if (d->claims)
        return true;
    if ((int64_t)milli <= d->most && !just_started(q, v))
        return true;
    if (q->r->across && d->level < q->below)
        return !came_back(q, v);
    return q->r->rank && d->level == q->j->level && !q->own && v->rank > q->j->rank &&
           !came_back(q, v);
}

/* 'd': its tenant and level. */
static bool may_go(const struct question *q, const struct side *d, const struct stk_job *v,
                   uint64_t milli)
{
    if (!q->s->fair)
        return v->tier != STK_TIER_CRITICAL &&
               (v->level < q->below ||
                (q->r->rank && v->level == q->j->level && v->rank > q->j->rank));
    if (d->level + 1 == q->s->n_levels)
        return false; /* critical */
    if (d->tenant == q->j->tenant)
        return (q->types || !came_back(q, v)) && inside(q, v);
    return may_go_outside(q, d, v, milli);
}

static uint64_t milli_of(const struct stk_state *s, const struct stk_job *v)
{
    return stk_limit_milli(s, &s->shapes[v->shape].demand, v->pool);
}

/* It is its tenant's own, but may be started elsewhere. */
static bool may_move(const struct question *q, const struct stk_job *v)
{
    return q->r->move && q->types && v->tier != STK_TIER_CRITICAL && v->n_pieces == 1 &&
           v->gpus < q->j->gpus;
}

/* Who of them may go for the job. */
static void side(void *ctx, const struct stk_state *s, uint32_t tenant, uint32_t level,
                 struct stk_victim_side *ret)
{
    struct question *q = ctx;
    const struct side *d = side_of(q, tenant, level);
    const bool lower = level < q->below;

    *ret = (struct stk_victim_side){.class = STK_VICTIM_NEVER, .most = UINT64_MAX};
    if (level + 1 == s->n_levels)
        return; /* critical */
    if (!s->fair || q->r->rank || (q->r->move && q->types) || (q->types && !q->own)) {
        ret->class = STK_VICTIM_ASK;
        return;
    }
    ret->own = tenant == q->j->tenant || !s->guarantees;
    ret->fresh = !d->claims && (tenant != q->j->tenant || !q->types);
    if (tenant == q->j->tenant ? !lower : d->safe)
        return;
    if (tenant != q->j->tenant && !d->claims && !(q->r->across && lower)) {
        if (d->most < 0)
            return;
        ret->most = (uint64_t)d->most;
    }
    ret->class = d->class;
}

static int class_of(void *ctx, const struct stk_state *s, const struct stk_job *j,
                    const struct stk_job *v, uint64_t milli)
{
    const struct question *q = ctx;

    (void)j;
    if (!may_go(q, &q->side, v, milli))
        return s->fair && may_move(q, v) ? MOVED : STK_VICTIM_NEVER;
    return s->fair ? q->side.class : class_within(q, q->j->tenant, v->level);
}

static void count(struct question *q, const struct stk_job *v, bool gone)
{
    struct stk_state *s = q->s;
    const uint64_t milli = milli_of(s, v);

    q->side.known = false;
    for (uint32_t at = v->tenant + 1; at; at = s->tenants[at - 1].parent) {
        s->tenant_gone[at - 1] += gone ? milli : -milli;
        if (v->level >= q->below)
            s->tenant_gone[s->n_tenants + at - 1] += gone ? milli : -milli;
    }
}

static bool add(void *ctx, const struct stk_state *s, const struct stk_job *v)
{
    struct question *q = ctx;

    if (!s->fair)
        return true;
    if (!may_go(q, side_of(q, v->tenant, v->level), v, milli_of(s, v)) && !may_move(q, v))
        return false;
    count(q, v, true);
    return true;
}

static void drop(void *ctx, const struct stk_state *s, const struct stk_job *v)
{
    struct question *q = ctx;

    (void)s;
    if (q->s->fair)
        count(q, v, false);
}

/* ---- room ---- */

/* The most that may go, at least: jobs go whole, so one more of each tenant. */
struct most {
    uint64_t borrowed; /* beyond guarantees; and of its own tenant what is of lower levels */
    uint64_t lower;    /* of that, of lower levels */
    uint64_t furthest; /* beyond what a tenant is due */
    bool any_over;
};

static void add_tenant(const struct question *q, uint32_t t, struct most *m)
{
    struct stk_state *s = q->s;
    const uint64_t used = *stk_tenant_used(s, t, STK_ALL_TYPES);
    const uint64_t lower = used - stk_fair_level(s, t, q->below);
    const uint64_t borrowed = less(used, *stk_tenant_guarantee(s, t, STK_ALL_TYPES));
    uint64_t over = 0;

    if (t == q->j->tenant) {
        m->borrowed += lower;
        m->lower += lower;
        return;
    }
    if (q->s->by_due)
        over = less(used, stk_share_due(s, t));
    m->borrowed += s->tenants[t].leaf && borrowed ? used : 0;
    m->lower += s->tenants[t].leaf && borrowed ? lower : 0;
    m->any_over |= over > 0;
    m->furthest = over > m->furthest ? over : m->furthest;
}

/* With so much gone there are GPUs enough, wherever they lie. */
static bool enough(const struct question *q, uint64_t milli)
{
    return q->s->pools[q->j->pool].gpus_free * 1000 + milli >= q->milli;
}

/* Whether there is anybody who could go: a look at counters. */
static bool anybody(const struct question *q)
{
    struct stk_state *s = q->s;
    const struct stk_pool *p = &s->pools[q->j->pool];
    struct most m = {0};
    uint64_t leased = 0, used;
    int64_t over;

    for (uint32_t l = 0; l < q->below; l++)
        leased += p->level_leased[l];
    if (p->n_leased == 0)
        return false;
    if (q->r->rank || (q->types && (q->r->move || !q->own)))
        return true;
    if (!s->fair)
        return leased > 0 && stk_evictable_could(s, q->j);
    for (uint32_t i = 0; i < s->n_tenants; i++)
        add_tenant(q, i, &m);
    if (q->types && enough(q, m.borrowed))
        return true;
    if (leased > 0 && enough(q, m.lower) && stk_evictable_could(s, q->j))
        return true;
    if (!q->s->by_due || !m.any_over)
        return false;
    used = *stk_tenant_used(s, q->j->tenant, STK_ALL_TYPES);
    over = (int64_t)(used + q->milli) - (int64_t)stk_share_due(s, q->j->tenant);
    if (used >= stk_share_due(s, q->j->tenant))
        return false;
    /* of its relatives' jobs some may go, too, so that those above it have less */
    return q->depth > 1 || over <= 0 || (uint64_t)over < m.furthest;
}

static void ask_about(struct question *q)
{
    struct stk_state *s = q->s;

    if (!s->fair)
        return;
    q->milli = stk_limit_milli(s, &s->shapes[q->j->shape].demand, q->j->pool);
    for (uint32_t at = q->j->tenant + 1; at; at = s->tenants[at - 1].parent)
        q->chain[q->depth++] = at - 1;
    q->asks = q->j->gpus > 0 || q->r->any;
    q->types = q->asks ? stk_fair_types(s, q->j) : 0;
    q->own = q->types == s->shapes[q->j->shape].demand.gpu_types;
}

static uint32_t room(const void *st, const struct stk_ask *ask, stk_job_id job)
{
    const struct stk_job *j = &ask->s->jobs[job.i];
    struct question q = {
        .r = st, .s = ask->s, .j = j, .below = stk_evictable_below(ask->s, j), .now = ask->now};
    struct stk_victim_rule rule = {
        .ctx = &q, .side = side, .class = class_of, .add = add, .drop = drop};
    uint32_t n;

    ask_about(&q);
    if (!anybody(&q))
        return 0;
    if (ask->s->fair && !ask->s->ranked)
        find_first(&q);
    rule.reclaims = q.types != 0;
    n = stk_victims_room(ask, job.i, &rule);
    for (uint32_t i = 0; i < n && q.r->move; i++) {
        const struct stk_job *v = &ask->s->jobs[ask->out[i].job.i];

        /* who moves does not wait for the GPUs it had */
        if (!may_go(&q, side_of(&q, v->tenant, v->level), v, milli_of(ask->s, v)))
            ask->out[i].u.evict.suspend = false;
    }
    return n;
}

static bool firm(const void *st)
{
    return ((const struct reclaim *)st)->firm;
}

static bool any(const void *st)
{
    return ((const struct reclaim *)st)->any;
}

static bool by_due(const void *st, bool guarantees)
{
    const struct reclaim *r = st;

    return guarantees ? r->due : r->always;
}

/* Without guarantees, and without shares that are kept, it is as tier. */
static bool plain(const void *st)
{
    const struct reclaim *r = st;

    return !r->always && r->across && !r->rank;
}

static bool ranked(const void *st)
{
    return ((const struct reclaim *)st)->rank;
}

const struct stk_preempt_ops stk_preempt_reclaim = {
    .name = "reclaim",
    .help =
        "guarantees of tenants are kept: what others borrowed is taken back; inside a tenant as "
        "tier",
    .params = params,
    .shared = stk_levels_params,
    .state_size = sizeof(struct reclaim),
    .init = init,
    .levels = stk_levels_n,
    .level = stk_levels_of,
    .below = stk_levels_below,
    .room = room,
    .fair = true,
    .by_due = by_due,
    .plain = plain,
    .firm = firm,
    .any = any,
    .ranked = ranked,
};
