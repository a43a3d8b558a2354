/* SPDX-License-Identifier: Apache-2.0 */
#include "core/usage.h"

#include <string.h>

#include "base/growth.h"
#include "base/hash.h"
#include "core/index.h"
#include "core/lane.h"
#include "core/shape.h"
#include "core/tenant.h"

#define REBASE 16 /* half-lives after which all is divided */

/* ---- memory ---- */

static size_t words(const struct stk_state *s)
{
    return s->n_tenants / 64 + (size_t)1;
}

void stk_usage_memory(struct stk_state *s, struct stk_visit *v)
{
    STK_BLOCK(v, s->label, s->n_tenants);
    if (v->copies)
        STK_BLOCK(v, s->usage, 1);
    if (s->usage) {
        STK_BLOCK(v, s->usage->row, 2 * (size_t)s->n_tenants);
        STK_BLOCK(v, s->usage->active, words(s));
        STK_BLOCK(v, s->usage->sort, s->n_tenants);
        STK_BLOCK(v, s->usage->sort_tmp, s->n_tenants);
    }
    if (!v->copies)
        STK_BLOCK(v, s->usage, 1);
}

static void *zeroed(const struct stk_state *s, size_t n, size_t size)
{
    return s->mem.resize(s->mem.ctx, NULL, 0, n * size);
}

int stk_usage_init(struct stk_state *s)
{
    struct stk_usages *x;

    if ((!s->order->share && !s->order->backlog) || s->n_tenants == 0)
        return 0;
    s->usage = x = zeroed(s, 1, sizeof(*x));
    if (!x)
        return -ENOMEM;
    x->row = zeroed(s, 2 * (size_t)s->n_tenants, sizeof(*x->row));
    x->active = zeroed(s, words(s), sizeof(*x->active));
    x->sort = zeroed(s, s->n_tenants, sizeof(*x->sort));
    x->sort_tmp = zeroed(s, s->n_tenants, sizeof(*x->sort_tmp));
    if (s->order->share)
        s->label = zeroed(s, s->n_tenants, sizeof(*s->label));
    if (!x->row || !x->active || !x->sort || !x->sort_tmp || (s->order->share && !s->label))
        return -ENOMEM;
    x->rule = (struct stk_usage_rule){.half_life = STK_MAX_DURATION};
    if (s->order->rule)
        s->order->rule(s->order_st, &x->rule);
    x->paid = STK_USAGE_PAYS;
    x->made = -1;
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        const struct stk_node *n = &s->nodes[i];

        x->all_gpu += UINT64_C(1000) * n->gpus;
        x->all_cpu += n->cpu_limited ? n->cpu_milli : 0;
        x->all_mem += n->mem_limited ? n->mem_mib : 0;
    }
    return 0;
}

/* ---- leases ---- */

/* Rounds down, also what is below 0. */
static stk_u128 shift(stk_u128 v, uint64_t by)
{
    bool negative = v >> 127;

    if (by > 127)
        return negative ? ~(stk_u128)0 : 0;
    return negative ? ~(~v >> by) : v >> by;
}

/* So many half-lives have passed that numbers would become too large. Above leaves are sums. */
static void rebase(struct stk_state *s)
{
    struct stk_usages *x = s->usage;
    uint64_t by = (uint64_t)((s->now - x->epoch) / x->rule.half_life);

    x->epoch += (stk_time)by * x->rule.half_life;
    for (uint32_t i = 0; i < s->n_tenants; i++)
        x->row[i].past = s->tenants[i].leaf ? shift(x->row[i].past, by) : 0;
    for (uint32_t i = s->n_tenants; i-- > 0;)
        if (s->tenants[i].parent)
            x->row[s->tenants[i].parent - 1].past += x->row[i].past;
}

static uint64_t growth_at(const struct stk_state *s, stk_time t)
{
    const struct stk_usages *x = s->usage;

    return t <= x->epoch ? STK_GROWTH_ONE
                         : stk_growth((uint64_t)(t - x->epoch), (uint64_t)x->rule.half_life);
}

/* What the job's lease holds. */
static struct stk_usage held(const struct stk_state *s, const struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    uint64_t each = stk_demand_asked_milli(d);
    struct stk_usage h = {0};

    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];
        const struct stk_use u = stk_use_of(d, p);
        uint32_t type = s->nodes[p->node.i].gpu_type;

        h.gpu_milli += each * p->gpus;
        h.rate += each * p->gpus * (s->type_speed ? s->type_speed[type] : 1000);
        h.cpu_milli += u.cpu;
        h.mem_mib += u.mem;
    }
    return h;
}

void stk_usage_lease(struct stk_state *s, const struct stk_job *j, bool took)
{
    struct stk_usages *x = s->usage;
    struct stk_usage h;
    stk_u128 by;

    if (!x || !s->order->share)
        return;
    h = held(s, j);
    if (s->now - x->epoch >= REBASE * x->rule.half_life)
        rebase(s);
    by = (stk_u128)h.rate * growth_at(s, s->now);
    for (uint32_t at = j->tenant + 1; at; at = s->tenants[at - 1].parent) {
        struct stk_usage *row = &x->row[at - 1];

        row->past = took ? row->past - by : row->past + by;
        row->rate = took ? row->rate + h.rate : row->rate - h.rate;
        row->gpu_milli = took ? row->gpu_milli + h.gpu_milli : row->gpu_milli - h.gpu_milli;
        row->cpu_milli = took ? row->cpu_milli + h.cpu_milli : row->cpu_milli - h.cpu_milli;
        row->mem_mib = took ? row->mem_mib + h.mem_mib : row->mem_mib - h.mem_mib;
    }
    x->paid += STK_USAGE_PAYS;
}

stk_time stk_usage_skip(struct stk_state *s, stk_time by)
{
    struct stk_usages *x = s->usage;

    if (!x)
        return 0;
    by = by < s->now - x->epoch ? by : s->now - x->epoch;
    x->epoch += by;
    return by;
}

stk_u128 stk_usage_of(const struct stk_state *s, uint32_t tenant, uint64_t growth)
{
    const struct stk_usage *row = &s->usage->row[tenant];
    stk_u128 v = row->past + (stk_u128)row->rate * growth;

    return v >> 127 ? 0 : v; /* rounded below 0 */
}

/* ---- what live jobs ask for ---- */

static stk_u128 work_of(const struct stk_state *s, const struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;

    return (stk_u128)stk_demand_asked_milli(d) * j->gpus * (uint64_t)j->estimate;
}

void stk_usage_live(struct stk_state *s, const struct stk_job *j, bool live)
{
    struct stk_usages *x = s->usage;
    stk_u128 work;

    if (!x || !s->order->backlog)
        return;
    work = work_of(s, j);
    for (uint32_t at = j->tenant + 1, up; at; at = up) {
        struct stk_usage *row = &x->row[at - 1];
        uint64_t *busy, was = row->weight;

        up = s->tenants[at - 1].parent;
        busy = up ? &x->row[up - 1].busy : &x->busy;
        row->work = live ? row->work + work : row->work - work;
        row->live += live ? 1 : UINT32_MAX;
        row->weight = row->live ? stk_tenant_weight(s, at - 1) : 0;
        *busy += row->weight - was;
    }
}

stk_time stk_usage_isolated(const struct stk_state *s, uint32_t tenant)
{
    const struct stk_usages *x = s->usage;
    stk_u128 t;

    if (!x || x->all_gpu == 0)
        return 0;
    t = x->row[tenant].work / x->all_gpu;
    for (uint32_t at = tenant + 1; at; at = s->tenants[at - 1].parent) {
        uint32_t up = s->tenants[at - 1].parent;
        uint64_t all = up ? x->row[up - 1].busy : x->busy;

        t = t > (stk_u128)STK_MAX_DURATION ? (stk_u128)STK_MAX_DURATION : t;
        t = x->row[at - 1].weight ? t * all / x->row[at - 1].weight : t;
    }
    return t > (stk_u128)STK_MAX_DURATION ? STK_MAX_DURATION : (stk_time)t;
}

#define KEY_BITS 55

int64_t stk_usage_key(stk_u128 v)
{
    uint64_t e = 0;

    while (v >> (KEY_BITS + e))
        e++;
    return (int64_t)(e << KEY_BITS | (uint64_t)(v >> e));
}

/* ---- places ---- */

uint32_t *stk_usage_lanes(struct stk_state *s, uint32_t tenant)
{
    return &s->usage->row[tenant].lanes;
}

void stk_usage_waits(struct stk_state *s, uint32_t tenant, bool waits)
{
    struct stk_usages *x = s->usage;
    struct stk_usage *row = &x->row[tenant];

    row->waiting += waits ? 1 : UINT32_MAX;
    if (row->waiting > waits) /* it is no news */
        return;
    x->active[tenant / 64] ^= UINT64_C(1) << (tenant % 64);
    x->n_active += waits ? 1 : UINT32_MAX;
    x->paid += waits ? STK_USAGE_PAYS : 0;
}

/* Leaves with waiting jobs and all above them, with what they have, into x->sort. */
static uint32_t gather(struct stk_state *s, uint64_t growth)
{
    struct stk_usages *x = s->usage;
    uint32_t n = 0;

    x->stamp++;
    for (size_t w = 0; w < words(s); w++)
        for (uint64_t m = x->active[w]; m; m &= m - 1) {
            uint32_t at = (uint32_t)w * 64 + (uint32_t)__builtin_ctzll(m) + 1;

            for (; at && x->row[at - 1].stamp != x->stamp; at = s->tenants[at - 1].parent) {
                x->row[at - 1].stamp = x->stamp;
                x->row[at - 1].first = x->row[at - 1].next = 0;
                x->sort[n++] = (struct stk_sort_item){
                    s->order->share(s->order_st, s, at - 1, growth), at - 1, 0};
            }
        }
    return n;
}

/* Below each, and at the top, children in order. Returns the first at the top; tenant + 1. */
static uint32_t line_up(struct stk_state *s, uint32_t n)
{
    struct stk_usages *x = s->usage;
    uint32_t top = 0;

    stk_sort(x->sort, n, x->sort_tmp);
    while (n-- > 0) {
        uint32_t at = x->sort[n].id, up = s->tenants[at].parent;
        uint32_t *first = up ? &x->row[up - 1].first : &top;

        x->row[at].next = *first;
        *first = at + 1;
    }
    return top;
}

/* Leaves in order of the tree, into x->sort with their labels. */
static uint32_t walk(struct stk_state *s, uint32_t top)
{
    struct stk_usages *x = s->usage;
    uint32_t n = 0;

    for (uint32_t at = top; at;) {
        struct stk_usage *row = &x->row[at - 1];

        if (row->first) {
            at = row->first;
            continue;
        }
        x->sort[n++] = (struct stk_sort_item){s->label[at - 1] >> STK_RANK_LABEL, at - 1, 0};
        while (at && !x->row[at - 1].next)
            at = s->tenants[at - 1].parent;
        at = at ? x->row[at - 1].next : 0;
    }
    return n;
}

static bool set_label(struct stk_state *s, uint32_t tenant, int64_t label)
{
    if (s->label[tenant] == label << STK_RANK_LABEL)
        return false;
    s->label[tenant] = label << STK_RANK_LABEL;
    stk_lane_moved(s, tenant);
    return true;
}

/* Labels ascend along x->sort: those that do are kept, one that does not gets another between its
 * neighbours. False: there is none left; all are made anew. */
static bool mend(struct stk_state *s, uint32_t n, bool *ret_changed)
{
    const struct stk_sort_item *a = s->usage->sort;
    const int64_t gap = STK_LABELS / (2 * ((int64_t)n + 1));
    int64_t last = 0;

    for (uint32_t i = 0; i < n; i++) {
        int64_t after = i + 1 < n ? a[i + 1].key : STK_LABELS, label = a[i].key;

        if (label <= last || (label >= after && after > last)) {
            if (after <= last) /* the next is out of order, too */
                after = STK_LABELS;
            label = after - last > 2 * gap ? last + gap : last + (after - last) / 2;
        }
        if (label <= last || label >= STK_LABELS)
            return false;
        *ret_changed |= set_label(s, a[i].id, label);
        last = label;
    }
    return true;
}

static bool relabel(struct stk_state *s, uint32_t n)
{
    const int64_t gap = STK_LABELS / ((int64_t)n + 1);
    bool changed = false;

    for (uint32_t i = 0; i < n; i++)
        changed |= set_label(s, s->usage->sort[i].id, gap * ((int64_t)i + 1));
    return changed;
}

static bool due(const struct stk_usages *x, stk_time now)
{
    if (x->paid > 0 && x->paid >= x->n_active)
        return true;
    return now - x->made >= x->rule.period && (x->paid > 0 || now > x->made);
}

void stk_usage_places(struct stk_state *s, stk_time now)
{
    struct stk_usages *x = s->usage;
    bool changed = false;
    uint32_t n;

    if (!x || s->n_dirty == 0 || x->n_active == 0 || !due(x, now))
        return;
    n = walk(s, line_up(s, gather(s, growth_at(s, now + x->rule.ahead))));
    if (!mend(s, n, &changed))
        changed |= relabel(s, n);
    x->paid = 0;
    x->made = now;
    for (uint32_t i = 0; changed && i < s->n_pools; i++)
        if (s->pools[i].blocked) { /* another may be the first of a strict queue */
            s->pools[i].blocked = false;
            stk_shape_mark_dirty(s, i);
        }
}

/* ---- save, load, digest, sound ---- */

void stk_usage_put(struct stk_bytes *b, const struct stk_state *s)
{
    const struct stk_usages *x = s->usage;
    uint64_t growth;

    if (!s->order->share)
        x = NULL;
    stk_put_u(b, x ? (uint64_t)x->rule.half_life : 0);
    if (!x)
        return;
    stk_put_s(b, x->epoch);
    growth = growth_at(s, s->now);
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        stk_u128 v = x->row[i].past + (stk_u128)x->row[i].rate * growth;

        if (!s->tenants[i].leaf)
            v = 0;
        stk_put_u(b, (uint64_t)v);
        stk_put_u(b, (uint64_t)(v >> 64));
    }
}

/* What was used, counted with another half-life from now on, from 'epoch' of today. */
static stk_u128 convert(stk_u128 v, uint64_t growth, uint64_t before, uint64_t today)
{
    v = v >> 127 ? 0 : v;
    if (v >> 100) /* nobody has had so much */
        v = (stk_u128)1 << 100;
    return v / growth * before / today * STK_GROWTH_ONE;
}

int stk_usage_get(struct stk_reader *r, struct stk_state *s, const uint32_t *here, uint32_t n)
{
    struct stk_usages *x = s->order->share ? s->usage : NULL;
    uint64_t half_life = stk_get_u(r, STK_MAX_DURATION), growth = 0;
    stk_time epoch;
    bool same;

    if (half_life == 0)
        return 0;
    epoch = stk_get_i(r, 0, s->now);
    if (r->bad)
        return -EBADMSG;
    same = x && (uint64_t)x->rule.half_life == half_life;
    growth = stk_growth((uint64_t)(s->now - epoch), half_life);
    if (x)
        x->epoch = same ? epoch : s->now;
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        uint64_t low = stk_get_u(r, UINT64_MAX);
        stk_u128 v = (stk_u128)stk_get_u(r, UINT64_MAX) << 64 | low;

        if (x && !same)
            v = convert(v, growth, half_life, (uint64_t)x->rule.half_life);
        for (uint32_t at = x ? here[i] + 1 : 0; at; at = s->tenants[at - 1].parent)
            x->row[at - 1].past += v;
    }
    return r->bad ? -EBADMSG : 0;
}

uint64_t stk_usage_digest(const struct stk_state *s, uint64_t h)
{
    if (!s->usage)
        return h;
    h = stk_hash_mix(h, (uint64_t)s->usage->epoch);
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        h = stk_hash_mix(h, (uint64_t)s->usage->row[i].past);
        h = stk_hash_mix(h, (uint64_t)(s->usage->row[i].past >> 64));
        h = stk_hash_mix(h, s->usage->row[i].rate);
    }
    return h;
}

/* From leases and waiting jobs, into the second half of the rows. */
static void tally(const struct stk_state *s, struct stk_usage *sum)
{
    memset(sum, 0, s->n_tenants * sizeof(*sum));
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];
        const struct stk_usage h = j->lease ? held(s, j) : (struct stk_usage){0};

        if (j->state == STK_JOB_NONE)
            continue;
        if (j->state == STK_JOB_WAITING && s->order->share)
            sum[j->tenant].waiting++;
        for (uint32_t at = j->tenant + 1; at && s->order->backlog && j->state != STK_JOB_DONE;
             at = s->tenants[at - 1].parent) {
            sum[at - 1].work += work_of(s, j);
            sum[at - 1].live++;
        }
        for (uint32_t at = j->lease && s->order->share ? j->tenant + 1 : 0; at;
             at = s->tenants[at - 1].parent) {
            sum[at - 1].rate += h.rate;
            sum[at - 1].gpu_milli += h.gpu_milli;
            sum[at - 1].cpu_milli += h.cpu_milli;
            sum[at - 1].mem_mib += h.mem_mib;
        }
    }
    for (uint32_t i = 0; i < s->n_tenants; i++)
        if (s->tenants[i].parent)
            sum[s->tenants[i].parent - 1].past += s->usage->row[i].past;
}

bool stk_usages_sound(const struct stk_state *s, struct stk_err *err)
{
    struct stk_usage *row, *sum;

    if (!s->usage)
        return true;
    row = s->usage->row;
    sum = row + s->n_tenants;
    tally(s, sum);
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        bool active = s->usage->active[i / 64] >> (i % 64) & 1;

        if (row[i].rate != sum[i].rate || row[i].gpu_milli != sum[i].gpu_milli ||
            row[i].cpu_milli != sum[i].cpu_milli || row[i].mem_mib != sum[i].mem_mib ||
            row[i].waiting != sum[i].waiting || row[i].work != sum[i].work ||
            row[i].live != sum[i].live || active != (row[i].waiting > 0) ||
            (!s->tenants[i].leaf && row[i].past != sum[i].past)) {
            (void)stk_err_set(err, -EINVAL, "tenant %.60s: what it has or had is not the sum",
                              s->tenants[i].name);
            return false;
        }
    }
    return stk_lanes_sound(s, err);
}
