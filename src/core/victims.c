/* SPDX-License-Identifier: Apache-2.0 */
#include "core/victims.h"

#include "core/budget.h"
#include "core/decide.h"
#include "core/place.h"
#include "core/queue.h"
#include "core/tenant.h"
#include "core/txn.h"

#define BOTH_WAYS 1024 /* so many leases, and for a gang candidates also go in order */

/* ---- memory ---- */

int stk_victims_init(struct stk_state *s)
{
    const size_t n = s->n_nodes + (size_t)1;
    struct stk_victims *v = &s->victims;

    v->nodes = s->mem.resize(s->mem.ctx, NULL, 0, n * sizeof(*v->nodes));
    v->have = s->mem.resize(s->mem.ctx, NULL, 0, n * sizeof(*v->have));
    v->most = s->mem.resize(s->mem.ctx, NULL, 0, n * sizeof(*v->most));
    v->price = s->mem.resize(s->mem.ctx, NULL, 0, n * sizeof(*v->price));
    v->order = s->mem.resize(s->mem.ctx, NULL, 0, n * sizeof(*v->order));
    v->order_tmp = s->mem.resize(s->mem.ctx, NULL, 0, n * sizeof(*v->order_tmp));
    return v->nodes && v->have && v->most && v->price && v->order && v->order_tmp ? 0 : -ENOMEM;
}

int stk_victims_reserve(struct stk_state *s)
{
    struct stk_victims *v = &s->victims;

    if (!v->nodes)
        return 0;
    if (stk_mem_grow(&s->mem, &v->of, &v->cap_of, s->cap_jobs, sizeof(*v->of)) < 0)
        return -ENOMEM;
    return stk_mem_grow(&s->mem, &v->at, &v->cap_at, s->cap_pieces, sizeof(*v->at));
}

void stk_victims_memory(struct stk_state *s, struct stk_visit *v)
{
    const size_t n = s->n_nodes + (size_t)1;

    STK_BLOCK(v, s->victims.of, s->victims.cap_of);
    STK_BLOCK(v, s->victims.at, s->victims.cap_at);
    STK_BLOCK(v, s->victims.nodes, n);
    STK_BLOCK(v, s->victims.have, n);
    STK_BLOCK(v, s->victims.most, n);
    STK_BLOCK(v, s->victims.price, n);
    STK_BLOCK(v, s->victims.order, n);
    STK_BLOCK(v, s->victims.order_tmp, n);
}

/* ---- sets that are tried ---- */

bool stk_victims_add(struct stk_victim_search *x, uint32_t victim)
{
    struct stk_victim *v = &x->v->of[victim];
    const struct stk_job *j = &x->s->jobs[v->job];

    if (v->in)
        return true;
    if (!stk_budget_take(x->s, v->job))
        return false;
    if (x->rule->add && !x->rule->add(x->rule->ctx, x->s, j)) {
        stk_budget_give(x->s, v->job);
        return false;
    }
    v->in = true;
    x->s->list_a[x->n_set++] = victim;
    stk_txn_give_job(x->s, j);
    stk_tenant_going(x->s, j, true);
    return true;
}

static void forget(struct stk_victim_search *x, uint32_t victim)
{
    struct stk_victim *v = &x->v->of[victim];

    v->in = false;
    stk_tenant_going(x->s, &x->s->jobs[v->job], false);
    stk_budget_give(x->s, v->job);
    if (x->rule->drop)
        x->rule->drop(x->rule->ctx, x->s, &x->s->jobs[v->job]);
}

/* Those that were added last come back, until so many are gone. */
static void go_back(struct stk_victim_search *x, uint32_t n, stk_txn_mark mark)
{
    while (x->n_set > n)
        forget(x, x->s->list_a[--x->n_set]);
    stk_txn_rollback(x->s, mark);
}

void stk_victims_reset(struct stk_victim_search *x)
{
    go_back(x, 0, x->mark);
}

bool stk_victims_fit(struct stk_victim_search *x)
{
    uint32_t pieces;

    return stk_place_try(x->s, x->j->shape, NULL, &pieces);
}

/* The dearest first; or those that are the last to go. */
static void sort_set(struct stk_victim_search *x)
{
    struct stk_state *s = x->s;

    for (uint32_t i = 0; i < x->n_set; i++) {
        const struct stk_victim *v = &x->v->of[s->list_a[i]];

        int64_t key = s->stake_rule.latest ? s->list_a[i] : (int64_t)v->class << 52 | v->units;

        s->sort[i] = (struct stk_sort_item){-key, s->list_a[i], 0};
    }
    stk_sort(s->sort, x->n_set, s->sort_tmp);
    for (uint32_t i = 0; i < x->n_set; i++)
        s->list_a[i] = s->sort[i].id;
}

/* Each that is not needed comes back. False: there was none. */
static bool reduce(struct stk_victim_search *x)
{
    struct stk_state *s = x->s;
    uint32_t k = 0, n = x->n_set;

    for (uint32_t i = 0; i < n; i++) {
        stk_txn_mark one = stk_txn_begin(s);
        uint32_t victim = s->list_a[i];
        const struct stk_job *j = &s->jobs[x->v->of[victim].job];
        bool fits;

        stk_txn_retake_job(s, j);
        stk_tenant_going(s, j, false);
        fits = stk_victims_fit(x);
        stk_tenant_going(s, j, true);
        if (fits) {
            forget(x, victim);
            continue;
        }
        stk_txn_rollback(s, one);
        s->list_a[k++] = victim;
    }
    x->n_set = k;
    return k < n;
}

void stk_victims_keep(struct stk_victim_search *x)
{
    double cost = 0;

    sort_set(x);
    while (x->n_set > 1 && reduce(x))
        ; /* where room is not simply a sum, one that was needed may be needed no more */
    for (uint32_t i = 0; i < x->n_set; i++)
        cost += x->v->of[x->s->list_a[i]].cost;
    if (x->n_best == 0 || cost < x->best_cost || (cost <= x->best_cost && x->n_set < x->n_best)) {
        x->best_cost = cost;
        x->n_best = x->n_set;
        for (uint32_t i = 0; i < x->n_set; i++)
            x->s->list_b[i] = x->v->of[x->s->list_a[i]].job;
    }
    stk_victims_reset(x);
}

/* ---- in the order of candidates ---- */

/* All from 'from' up to 'to' go too. */
static void add_some(struct stk_victim_search *x, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        (void)stk_victims_add(x, i);
}

/* They go in order until the job fits: twice as many each time, then the last step is halved. */
static void in_order(struct stk_victim_search *x)
{
    uint32_t low = 0, high = 1, gone = 0;
    stk_txn_mark mark;

    stk_victims_order(x);
    for (;; high = high > x->n / 2 ? x->n : 2 * high) {
        gone = x->n_set;
        mark = stk_txn_begin(x->s);
        add_some(x, low, high);
        if (stk_victims_fit(x))
            break;
        low = high;
        if (high == x->n) {
            stk_victims_reset(x);
            return;
        }
    }
    while (high - low > 1) { /* without those from 'low' on it does not fit, up to 'high' it does */
        uint32_t middle = low + (high - low) / 2;

        go_back(x, gone, mark);
        add_some(x, low, middle);
        if (stk_victims_fit(x)) {
            high = middle;
            continue;
        }
        gone = x->n_set;
        mark = stk_txn_begin(x->s);
        low = middle;
        add_some(x, low, high);
    }
    stk_victims_keep(x);
}

/* ---- room ---- */

/* Takes off what is being stopped already: that room is on its way, and below limits, too. */
static void give_stopping(struct stk_state *s, uint32_t pool)
{
    for (uint32_t i = 0; (i = stk_queue_stopping(s, pool, i)) != STK_NONE; i++) {
        stk_txn_give_job(s, &s->jobs[i]);
        stk_tenant_going(s, &s->jobs[i], true);
    }
}

static void count_stopping(struct stk_state *s, uint32_t pool)
{
    for (uint32_t i = 0; (i = stk_queue_stopping(s, pool, i)) != STK_NONE; i++)
        stk_tenant_going(s, &s->jobs[i], false);
}

/* Whether counting GPUs can tell that it does not fit: it asks for whole ones, is cut in one way
 * only, and sees as free what is. */
static bool countable(const struct stk_victim_search *x)
{
    const struct stk_pool *p = &x->s->pools[x->ask->pool];

    return x->d->gpus > 0 && !x->d->gpu_milli && (!x->d->cut || p->n_groups == 1) &&
           p->n_booked == 0 && x->s->cap_w == 0;
}

/* Sets by where they are: of candidates of low classes, if some node or place could have enough
 * without the others, then of all. True: there is none that is cheaper. */
static bool near(struct stk_victim_search *x, bool *ret_hopeless)
{
    bool left = true, all = !x->sure;

    while (left) {
        bool cheapest = false;

        left = stk_victims_gather(x, all);
        stk_victims_rows(x);
        *ret_hopeless = x->sure && !(x->need > 0 ? x->reached : stk_victims_could(x));
        if (*ret_hopeless)
            continue;
        if (x->need > 0)
            cheapest = stk_victims_by_node(x);
        else
            stk_victims_by_place(x);
        if (x->n_best > 0)
            return cheapest;
        all = true;
    }
    return false;
}

/* By where they are, and, where that does not suffice, in the order of candidates. */
static void search(struct stk_victim_search *x)
{
    bool hopeless = false, cheapest;

    if (x->s->stake_rule.latest) {
        (void)stk_victims_gather(x, true);
        if (x->n > 0)
            in_order(x);
        if (x->n == 0 || x->n_best > 0)
            return;
    }
    cheapest = near(x, &hopeless);
    if (hopeless || x->n == 0)
        return;
    if (!cheapest && (x->n_best == 0 || x->s->pools[x->ask->pool].n_leased <= BOTH_WAYS))
        in_order(x);
    if (!x->s->stake_rule.latest)
        stk_victims_exact(x);
}

uint32_t stk_victims_room(const struct stk_ask *ask, uint32_t job,
                          const struct stk_victim_rule *rule)
{
    struct stk_state *s = ask->s;
    const struct stk_job *j = &s->jobs[job];
    struct stk_victim_search x = {.ask = ask,
                                  .s = s,
                                  .v = &s->victims,
                                  .rule = rule,
                                  .j = j,
                                  .d = &s->shapes[j->shape].demand};
    stk_txn_mark mark = stk_txn_begin(s);

    x.need = stk_victims_need(&x);
    x.sure = countable(&x);
    give_stopping(s, ask->pool);
    x.mark = stk_txn_begin(s);
    if (!stk_victims_fit(&x))
        search(&x);
    stk_txn_rollback(s, mark);
    count_stopping(s, ask->pool);
    if (x.n_best > ask->cap)
        x.n_best = ask->cap; /* the pool is claimed for the job, which asks again for the rest */
    for (uint32_t i = 0; i < x.n_best; i++)
        ask->out[i] = stk_decide_evict(s, ask->now, s->list_b[i], job);
    return x.n_best;
}
