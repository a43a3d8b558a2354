/* SPDX-License-Identifier: Apache-2.0 */
#include "core/walk.h"

#include <string.h>

#include "core/decide.h"
#include "core/part.h"
#include "core/place.h"
#include "core/queue.h"
#include "core/resource.h"
#include "core/txn.h"

static bool less(const struct stk_rated *a, const struct stk_rated *b)
{
    return a->value != b->value ? a->value < b->value : a->e->tie < b->e->tie;
}

static void sift(struct stk_pool *p, uint32_t n, uint32_t at)
{
    uint32_t v = p->walk[at];

    for (;;) {
        uint32_t k = 2 * at + 1;

        if (k >= n)
            break;
        if (k + 1 < n && less(&p->rated[p->walk[k + 1]], &p->rated[p->walk[k]]))
            k++;
        if (!less(&p->rated[p->walk[k]], &p->rated[v]))
            break;
        p->walk[at] = p->walk[k];
        at = k;
    }
    p->walk[at] = v;
}

static void heapify(struct stk_pool *p)
{
    for (uint32_t i = p->n_walk / 2; i-- > 0;)
        sift(p, p->n_walk, i);
}

static void load(const struct stk_state *s, struct stk_rated *r)
{
    r->e = stk_ocursor_get(&s->trees, r->at);
    if (r->e)
        r->value = r->e->key + r->shift;
}

/* Builds the heap over the cursors that are set. */
static void start(const struct stk_state *s, struct stk_pool *p)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_rated; i++) {
        load(s, &p->rated[i]);
        if (p->rated[i].e)
            p->walk[n++] = i;
    }
    p->n_walk = n;
    heapify(p);
}

void stk_walk_begin(const struct stk_state *s, struct stk_pool *p, stk_time now)
{
    for (uint32_t i = 0; i < p->n_rated; i++) {
        p->rated[i].shift = p->rated[i].rate * (now / s->order->tick);
        p->rated[i].at = stk_otree_begin(&s->trees, &p->rated[i].tree);
    }
    start(s, p);
}

uint64_t stk_walk_begin_waiting(const struct stk_state *s, struct stk_pool *p, stk_time now,
                                uint32_t *ret_leases)
{
    const struct stk_oent *w;
    uint64_t gpus = 0;
    uint32_t leases = 0;

    p->rated[0].shift = 0;
    p->rated[0].at = stk_otree_begin(&s->trees, &p->rated[0].tree);
    w = stk_ocursor_get(&s->trees, p->rated[0].at);
    for (uint32_t i = 1; w && i < p->n_rated; i++) {
        struct stk_rated *r = &p->rated[i];
        struct stk_ocursor c;

        r->shift = r->rate * (now / s->order->tick);
        r->at = c = stk_otree_seek(&s->trees, &r->tree, w->key - r->shift, w->tie);
        for (; c.block != UINT32_MAX; c = (struct stk_ocursor){s->trees.block[c.block].next, 0}) {
            const struct stk_oblock *b = &s->trees.block[c.block];

            leases += b->n - c.at;
            for (uint32_t k = c.at; k < b->n; k++)
                gpus += (uint64_t)b->e[k].aux / 2;
        }
    }
    *ret_leases = leases;
    start(s, p);
    return gpus;
}

/* The cursor of 'r', at this place of the heap, has moved on. */
static void resettle(const struct stk_state *s, struct stk_pool *p, struct stk_rated *r,
                     uint32_t at)
{
    load(s, r);
    if (r->e || at == 0) { /* ranks only grow along a tree, so it never moves up */
        if (!r->e)
            p->walk[0] = p->walk[--p->n_walk];
        if (p->n_walk > 1)
            sift(p, p->n_walk, at);
        return;
    }
    p->walk[at] = p->walk[--p->n_walk];
    heapify(p);
}

/* The best of the other trees, NULL when there is none. */
static const struct stk_rated *second(const struct stk_pool *p)
{
    const struct stk_rated *a, *b;

    if (p->n_walk < 2)
        return NULL;
    a = &p->rated[p->walk[1]];
    if (p->n_walk < 3)
        return a;
    b = &p->rated[p->walk[2]];
    return less(b, a) ? b : a;
}

uint32_t stk_walk_run(const struct stk_state *s, struct stk_pool *p,
                      const struct stk_oent **ret_run)
{
    struct stk_rated *r;
    const struct stk_rated *other = second(p);
    const struct stk_oblock *b;
    uint32_t from, to;

    if (p->n_walk == 0)
        return 0;
    r = &p->rated[p->walk[0]];
    b = &s->trees.block[r->at.block];
    from = r->at.at;
    to = from + 1;
    if (r == &p->rated[0]) {
        /* one by one: the caller may want to skip */
    } else if (other) {
        const int64_t key = other->value - r->shift;
        const uint32_t tie = other->e->tie;

        while (to < b->n && (b->e[to].key != key ? b->e[to].key < key : b->e[to].tie < tie))
            to++;
    } else {
        to = b->n;
    }
    *ret_run = &b->e[from];
    r->at = to < b->n ? (struct stk_ocursor){r->at.block, to} : (struct stk_ocursor){b->next, 0};
    resettle(s, p, r, 0);
    return to - from;
}

void stk_walk_skip(const struct stk_state *s, struct stk_pool *p, uint64_t gpus)
{
    struct stk_rated *r = &p->rated[0];
    uint32_t at = 0;

    while (at < p->n_walk && p->walk[at] != 0)
        at++;
    if (at == p->n_walk)
        return; /* no waiting job is left */
    r->at = stk_otree_skip(&s->trees, &r->tree, r->at, (int64_t)gpus * 2 + 1);
    resettle(s, p, r, at);
}

uint32_t stk_walk_least(const struct stk_state *s, const struct stk_pool *p)
{
    const struct stk_otree *t = &p->rated[0].tree;
    const struct stk_oblock *root = t->root ? &s->trees.block[t->root - 1] : NULL;
    int64_t least = INT64_MAX;

    for (uint32_t k = 0; root && k < root->n; k++)
        if (root->e[k].aux < least)
            least = root->e[k].aux;
    return (uint32_t)(least / 2);
}

static bool fits_when_gone(struct stk_state *s, const struct stk_job *j)
{
    stk_txn_mark mark = stk_txn_begin(s);
    uint32_t n;
    bool fits;

    for (uint32_t i = 0; (i = stk_queue_stopping(s, j->pool, i)) != STK_NONE; i++)
        stk_txn_give_job(s, &s->jobs[i]);
    fits = stk_place_try(s, j->shape, NULL, &n);
    stk_txn_rollback(s, mark);
    return fits;
}

/* The same of GPUs that others share. How many. */
static uint32_t hold_shared(struct stk_state *s, const struct stk_demand *d, uint32_t node)
{
    uint64_t m = d->gpu_milli ? d->pin_mask & s->nodes[node].mask_part : 0;
    uint32_t n = 0;

    for (; m; m &= m - 1) {
        const struct stk_use u = stk_part_keep(s, node, (uint32_t)__builtin_ctzll(m), d);

        if (u.milli == 0)
            continue;
        stk_txn_take(s, node, &u);
        n++;
    }
    return n;
}

uint32_t stk_walk_hold(struct stk_state *s, const struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    const struct stk_node *n;
    struct stk_piece at;
    struct stk_use u;
    uint32_t shared;

    if (!d->pin || d->gpus == 0 || s->pools[j->pool].n_stopping == 0 || !fits_when_gone(s, j))
        return 0;
    at = stk_place_pin(d);
    u = stk_use_of(d, &at);
    n = &s->nodes[at.node.i];
    shared = hold_shared(s, d, at.node.i);
    u.whole = false;
    u.mask &= n->mask_free;
    u.gpus = n->aggregate ? (u.gpus < n->gpus_free ? u.gpus : n->gpus_free)
                          : (uint32_t)__builtin_popcountll(u.mask);
    u.cpu = n->cpu_limited && u.cpu > n->cpu_free ? n->cpu_free : u.cpu;
    u.mem = n->mem_limited && u.mem > n->mem_free ? n->mem_free : u.mem;
    if (!stk_resource_fits(s, at.node.i, &u.resources))
        u.resources.each = NULL;
    stk_txn_take(s, at.node.i, &u);
    return shared + 1;
}

uint32_t stk_walk_place(struct stk_ask *ask, const uint32_t *jobs, uint32_t n)
{
    struct stk_state *s = ask->s;
    stk_txn_mark mark = stk_txn_begin(s);
    bool passed_over = false;
    uint32_t n_out = 0, used = 0, held = 0, i;

    for (i = 0; i < n && n_out < ask->cap; i++) {
        const struct stk_job *j = &s->jobs[jobs[i]];
        uint32_t k;

        if (!stk_place_try_types(s, j->shape, s->order->types ? s->order->types(j) : UINT64_MAX,
                                 &k)) {
            passed_over = true;
            held += held < STK_BATCH ? stk_walk_hold(s, j) : 0;
            continue;
        }
        if (used + k > s->cap_batch)
            break;
        memcpy(&s->batch[used], s->try_pieces, k * sizeof(*s->batch));
        ask->out[n_out] = stk_decide_place(s, ask->now, jobs[i], k);
        ask->out[n_out].u.place.pieces = &s->batch[used];
        ask->out[n_out].lease = s->next_lease + n_out;
        n_out++;
        for (uint32_t m = 0; m < k; m++) {
            const struct stk_use u = stk_use_of(&s->shapes[j->shape].demand, &s->batch[used + m]);

            stk_txn_take(s, s->batch[used + m].node.i, &u);
        }
        used += k;
    }
    stk_txn_rollback(s, mark);
    /* where jobs sleep, others may get what one leaves that cannot wake: look again */
    ask->done = i == n && !(passed_over && s->pools[ask->pool].n_asleep > 0);
    return n_out;
}
