/* SPDX-License-Identifier: Apache-2.0 */
/* test_otree.c - the ordered tree against a sorted array, with its inside checked on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/otree.h"
#include "base/rng.h"
#include "lib/fixture.h"

#define MOST 6000

struct plain {
    struct stk_oent e[MOST];
    uint32_t n;
};

static bool before(const struct stk_oent *a, int64_t key, uint32_t tie)
{
    return a->key != key ? a->key < key : a->tie < tie;
}

static uint32_t place(const struct plain *p, int64_t key, uint32_t tie)
{
    uint32_t at = 0;

    while (at < p->n && before(&p->e[at], key, tie))
        at++;
    return at;
}

static bool has(const struct plain *p, uint32_t at, int64_t key, uint32_t tie)
{
    return at < p->n && p->e[at].key == key && p->e[at].tie == tie;
}

static const struct stk_oent *plain_first(const struct plain *p, uint32_t from, int64_t max_aux)
{
    for (uint32_t i = from; i < p->n; i++)
        if (p->e[i].aux <= max_aux)
            return &p->e[i];
    return NULL;
}

static void same(const struct stk_oent *a, const struct stk_oent *b)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a)
        assert_memory_equal(a, b, sizeof(*a));
}

/* Every branch repeats its child's first key and smallest aux, and all leaves have one depth. */
static int64_t check_block(const struct stk_opool *p, uint32_t b, bool root)
{
    const struct stk_oblock *k = &p->block[b];
    int64_t least = INT64_MAX;

    assert_true(k->n > 0 && k->n <= STK_OTREE_FANOUT && (!root || k->level == 0 || k->n > 1));
    for (uint32_t i = 0; i < k->n; i++) {
        assert_true(i == 0 || before(&k->e[i - 1], k->e[i].key, k->e[i].tie));
        if (k->level > 0) {
            const struct stk_oblock *c = &p->block[k->e[i].id];

            assert_int_equal(c->level, k->level - 1);
            assert_true(c->e[0].key == k->e[i].key && c->e[0].tie == k->e[i].tie);
            assert_true(check_block(p, k->e[i].id, false) == k->e[i].aux);
        }
        least = k->e[i].aux < least ? k->e[i].aux : least;
    }
    return least;
}

static void check(const struct stk_opool *p, const struct stk_otree *t, const struct plain *want)
{
    struct stk_ocursor c = stk_otree_begin(p, t);

    assert_int_equal(t->count, want->n);
    assert_int_equal(t->root == 0, want->n == 0);
    if (t->root)
        (void)check_block(p, t->root - 1, true);
    for (uint32_t i = 0; i < want->n; i++, stk_ocursor_next(p, &c))
        same(stk_ocursor_get(p, c), &want->e[i]);
    assert_null(stk_ocursor_get(p, c));
}

static void ask(const struct stk_opool *p, const struct stk_otree *t, const struct plain *want,
                struct stk_rng *r)
{
    int64_t key = (int64_t)stk_rng_below(r, 60) - 30, most = (int64_t)stk_rng_below(r, 1000) - 5;
    uint32_t tie = (uint32_t)stk_rng_below(r, 400), at = place(want, key, tie);
    struct stk_ocursor c = stk_otree_seek(p, t, key, tie);

    same(stk_otree_first(p, t, most), plain_first(want, 0, most));
    same(stk_otree_first(p, t, INT64_MAX), want->n ? &want->e[0] : NULL);
    same(stk_ocursor_get(p, c), at < want->n ? &want->e[at] : NULL);
    if (at < want->n)
        same(stk_ocursor_get(p, stk_otree_skip(p, t, c, most)), plain_first(want, at, most));
}

struct world {
    struct fx_heap mem;
    struct stk_opool pool;
    struct stk_otree tree[2]; /* of one pool */
    struct plain want[2];
};

static void change(struct world *w, struct stk_rng *r, uint64_t grow)
{
    const struct stk_mem m = fx_mem(&w->mem);
    uint32_t k = (uint32_t)stk_rng_below(r, 2);
    struct plain *p = &w->want[k];
    struct stk_oent e = {(int64_t)stk_rng_below(r, 60) - 30, (uint32_t)stk_rng_below(r, 400),
                         (uint32_t)stk_rng_next(r), (int64_t)stk_rng_below(r, 1000)};
    uint32_t at = place(p, e.key, e.tie);

    if (stk_rng_below(r, 10) >= grow) {
        if (p->n > 0 && stk_rng_below(r, 4)) /* mostly one that is there */
            e = p->e[at = (uint32_t)stk_rng_below(r, p->n)];
        assert_int_equal(stk_otree_remove(&w->pool, &w->tree[k], e.key, e.tie),
                         has(p, at, e.key, e.tie));
        if (has(p, at, e.key, e.tie))
            memmove(&p->e[at], &p->e[at + 1], (--p->n - at) * sizeof(e));
    } else if (has(p, at, e.key, e.tie)) {
        p->e[at].aux = e.aux;
        stk_otree_set_aux(&w->pool, &w->tree[k], e.key, e.tie, e.aux);
    } else if (p->n < MOST) {
        assert_int_equal(stk_opool_reserve(&w->pool, &m, 1), 0);
        memmove(&p->e[at + 1], &p->e[at], (p->n++ - at) * sizeof(e));
        p->e[at] = e;
        stk_otree_insert(&w->pool, &w->tree[k], e);
    }
    ask(&w->pool, &w->tree[k], p, r);
}

static void empty(struct world *w, int k)
{
    for (uint32_t i = 0; i < w->want[k].n; i++)
        assert_true(
            stk_otree_remove(&w->pool, &w->tree[k], w->want[k].e[i].key, w->want[k].e[i].tie));
    assert_int_equal(w->tree[k].count, 0);
}

static void behaves_like_a_sorted_array(void **state)
{
    static const uint64_t grow[] = {9, 3, 7, 1, 8, 0};
    struct world *w = calloc(1, sizeof(*w));
    const struct stk_mem m = fx_mem(&w->mem);
    struct stk_rng r;

    (void)state;
    stk_rng_init(&r, 17);
    for (int i = 0; i < 30000; i++) {
        change(w, &r, grow[i / 5000]);
        if (i % 500 == 0)
            for (int k = 0; k < 2; k++)
                check(&w->pool, &w->tree[k], &w->want[k]);
    }
    empty(w, 0);
    check(&w->pool, &w->tree[1], &w->want[1]); /* the other one is whole */
    empty(w, 1);
    assert_int_equal(w->pool.n_free, w->pool.n); /* every block came back */
    stk_opool_done(&w->pool, &m);
    assert_int_equal(w->mem.live, 0);
    free(w);
}

/* A queue: in at the end, out at the front, many times its size. Blocks must not pile up. */
static void a_queue_uses_its_blocks_again(void **state)
{
    struct fx_heap mem = {0};
    const struct stk_mem m = fx_mem(&mem);
    struct stk_opool p = {0};
    struct stk_otree t = {0};

    (void)state;
    for (uint32_t i = 0; i < 50000; i++) {
        assert_int_equal(stk_opool_reserve(&p, &m, 1), 0);
        stk_otree_insert(&p, &t, (struct stk_oent){i, 0, i, -(int64_t)i});
        if (i >= 1000)
            assert_true(stk_otree_remove(&p, &t, i - 1000, 0));
    }
    assert_int_equal(t.count, 1000);
    assert_true(p.n < 200);
    assert_int_equal(stk_otree_first(&p, &t, -49999)->id, 49999);
    assert_false(stk_otree_remove(&p, &t, 0, 0));
    stk_opool_done(&p, &m);
}

/* What was reserved is enough for that many insertions in any order. */
static void a_reservation_is_enough(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < 20000; n *= 3) {
        for (int kind = 0; kind < 3; kind++) {
            struct fx_heap mem = {0};
            const struct stk_mem m = fx_mem(&mem);
            struct stk_opool p = {0};
            struct stk_otree t = {0};
            struct stk_rng r;
            uint64_t calls;

            stk_rng_init(&r, n);
            assert_int_equal(stk_opool_reserve(&p, &m, n), 0);
            calls = mem.calls;
            for (uint32_t i = 0; i < n; i++) {
                int64_t key = kind == 0   ? (int64_t)i
                              : kind == 1 ? -(int64_t)i
                                          : (int64_t)(stk_rng_next(&r) >> 8);

                stk_otree_insert(&p, &t, (struct stk_oent){key, i, i, 0});
            }
            assert_int_equal(calls, mem.calls);
            stk_opool_done(&p, &m);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behaves_like_a_sorted_array),
        cmocka_unit_test(a_queue_uses_its_blocks_again),
        cmocka_unit_test(a_reservation_is_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
