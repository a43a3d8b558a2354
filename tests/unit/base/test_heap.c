/* SPDX-License-Identifier: Apache-2.0 */
/* test_heap.c - the priority queue against a plain array that is searched each time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/heap.h"
#include "base/rng.h"
#include "lib/fixture.h"

#define IDS 300

struct plain {
    int64_t key[IDS];
    uint32_t tie[IDS];
    bool in[IDS];
    uint32_t n;
};

static uint32_t plain_top(const struct plain *p)
{
    uint32_t best = UINT32_MAX;

    for (uint32_t i = 0; i < IDS; i++)
        if (p->in[i] && (best == UINT32_MAX || p->key[i] < p->key[best] ||
                         (p->key[i] == p->key[best] && p->tie[i] < p->tie[best])))
            best = i;
    return best;
}

static void check(const struct stk_heap *h, const uint32_t *pos, const struct plain *p)
{
    assert_int_equal(h->n, p->n);
    for (uint32_t i = 0; i < IDS; i++) {
        assert_int_equal(stk_heap_has(pos, i), p->in[i]);
        if (p->in[i])
            assert_int_equal(h->item[pos[i] - 1].id, i);
    }
    if (h->n > 0)
        assert_int_equal(h->item[0].id, plain_top(p));
}

static uint32_t plain_count(const struct plain *p, int64_t key)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < IDS; i++)
        n += p->in[i] && p->key[i] <= key;
    return n;
}

static void behaves_like_a_searched_array(void **state)
{
    struct fx_heap mem = {0};
    const struct stk_mem m = fx_mem(&mem);
    struct stk_heap h = {0};
    uint32_t pos[IDS] = {0};
    struct plain p = {.n = 0};
    struct stk_rng r;
    uint64_t calls;

    (void)state;
    stk_rng_init(&r, 7);
    assert_int_equal(stk_heap_reserve(&h, &m, IDS), 0);
    calls = mem.calls;
    for (int i = 0; i < 6000; i++) {
        uint32_t id = (uint32_t)stk_rng_below(&r, IDS);

        if (stk_rng_below(&r, i / 1000 % 2 ? 2 : 4) == 0) {
            stk_heap_remove(&h, pos, id); /* also when it is not in */
            p.n -= p.in[id];
            p.in[id] = false;
        } else {
            p.n += !p.in[id];
            p.in[id] = true;
            p.key[id] = (int64_t)stk_rng_below(&r, 20) - 10;
            p.tie[id] = (uint32_t)stk_rng_below(&r, 5) * IDS + id; /* total order */
            stk_heap_put(&h, pos, id, p.key[id], p.tie[id]);
        }
        check(&h, pos, &p);
        assert_int_equal(stk_heap_count(&h, i % 25 - 12), plain_count(&p, i % 25 - 12));
    }
    assert_int_equal(calls, mem.calls);
    while (h.n > 0) { /* in order to the end */
        uint32_t id = plain_top(&p);

        assert_int_equal(h.item[0].id, id);
        stk_heap_remove(&h, pos, id);
        p.in[id] = false;
        p.n--;
    }
    stk_heap_done(&h, &m);
    stk_heap_done(&h, &m);
    assert_int_equal(mem.live, 0);
}

static void two_heaps_share_the_positions_of_different_ids(void **state)
{
    struct fx_heap mem = {0};
    const struct stk_mem m = fx_mem(&mem);
    struct stk_heap a = {0}, b = {0};
    uint32_t pos[4] = {0};

    (void)state;
    assert_int_equal(stk_heap_reserve(&a, &m, 4) | stk_heap_reserve(&b, &m, 4), 0);
    stk_heap_put(&a, pos, 0, INT64_MAX, 0);
    stk_heap_put(&a, pos, 1, INT64_MIN, UINT32_MAX);
    stk_heap_put(&b, pos, 2, 0, 1);
    stk_heap_put(&b, pos, 3, 0, 0);
    assert_int_equal(a.item[0].id, 1);
    assert_int_equal(b.item[0].id, 3);
    stk_heap_remove(&a, pos, 1);
    assert_int_equal(a.item[0].id, 0);
    assert_int_equal(b.n, 2);
    stk_heap_done(&a, &m);
    stk_heap_done(&b, &m);
}

static void a_heap_without_memory_stays_as_it_was(void **state)
{
    struct fx_heap mem = {0};
    const struct stk_mem m = fx_mem(&mem);
    struct stk_heap h = {0};

    (void)state;
    assert_int_equal(stk_heap_reserve(&h, &m, 4), 0);
    mem.fail_at = 1;
    assert_int_equal(stk_heap_reserve(&h, &m, 4), 0); /* there is room */
    assert_int_equal(stk_heap_reserve(&h, &m, h.cap + 1), -ENOMEM);
    assert_non_null(h.item);
    stk_heap_done(&h, &m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behaves_like_a_searched_array),
        cmocka_unit_test(two_heaps_share_the_positions_of_different_ids),
        cmocka_unit_test(a_heap_without_memory_stays_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
