/* SPDX-License-Identifier: Apache-2.0 */
#include "core/walk.h"

#include <string.h>

#include "core/decide.h"
#include "core/place.h"
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

static void load(const struct stk_state *s, struct stk_rated *r, stk_time now)
{
    r->e = stk_ocursor_get(&s->trees, r->at);
    if (r->e)
        r->value = r->e->key + r->rate * (now / s->order->tick);
}

void stk_walk_begin(const struct stk_state *s, struct stk_pool *p, stk_time now)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_rated; i++) {
        struct stk_rated *r = &p->rated[i];

        r->at = stk_otree_begin(&s->trees, &r->tree);
        load(s, r, now);
        if (r->e)
            p->walk[n++] = i;
    }
    p->n_walk = n;
    for (uint32_t i = n / 2; i-- > 0;)
        sift(p, n, i);
}

const struct stk_oent *stk_walk_get(const struct stk_pool *p)
{
    return p->n_walk > 0 ? p->rated[p->walk[0]].e : NULL;
}

void stk_walk_next(const struct stk_state *s, struct stk_pool *p, stk_time now)
{
    struct stk_rated *r = &p->rated[p->walk[0]];

    stk_ocursor_next(&s->trees, &r->at);
    load(s, r, now);
    if (!r->e)
        p->walk[0] = p->walk[--p->n_walk];
    if (p->n_walk > 1)
        sift(p, p->n_walk, 0);
}

uint32_t stk_walk_least(const struct stk_state *s, const struct stk_pool *p)
{
    int64_t least = INT64_MAX;

    for (uint32_t i = 0; i < p->n_rated; i++) {
        const struct stk_otree *t = &p->rated[i].tree;
        const struct stk_oblock *root = t->root ? &s->trees.block[t->root - 1] : NULL;

        for (uint32_t k = 0; root && k < root->n; k++)
            if (root->e[k].aux < least)
                least = root->e[k].aux;
    }
    return (uint32_t)(least / 2);
}

uint32_t stk_walk_place(struct stk_ask *ask, const uint32_t *jobs, uint32_t n)
{
    struct stk_state *s = ask->s;
    stk_txn_mark mark = stk_txn_begin(s);
    uint32_t n_out = 0, used = 0, i;

    for (i = 0; i < n && n_out < ask->cap; i++) {
        const struct stk_job *j = &s->jobs[jobs[i]];
        uint32_t k;

        if (!stk_place_try(s, j->shape, NULL, &k))
            continue;
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
    ask->done = i == n;
    return n_out;
}
