/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/timeline.h"

struct heap {
    uint32_t calls;
    size_t limit; /* larger blocks are refused; 0: none are */
};

static void *heap_resize(void *ctx, void *p, size_t old, size_t size)
{
    struct heap *h = ctx;
    char *q;

    h->calls++;
    if (!size) {
        free(p);
        return NULL;
    }
    if (h->limit && size > h->limit)
        return NULL;
    q = realloc(p, size);
    if (q && size > old)
        memset(q + old, 0, size - old);
    return q;
}

static struct heap heap;

static int set_up(void **state)
{
    static struct stk_timeline t;
    const struct stk_mem mem = {heap_resize, &heap};

    heap = (struct heap){0};
    stk_timeline_init(&t, &mem);
    *state = &t;
    return 0;
}

static int tear_down(void **state)
{
    stk_timeline_done(*state);
    stk_timeline_done(*state); /* twice is fine */
    return 0;
}

static struct stk_timeline *timeline(void **state, uint32_t intervals, stk_time now,
                                     int64_t free_now)
{
    struct stk_timeline *t = *state;

    assert_int_equal(stk_timeline_reserve(t, intervals), 0);
    stk_timeline_reset(t, now, free_now);
    return t;
}

static void constant_pool_fits_now_or_never(void **state)
{
    struct stk_timeline *t = timeline(state, 0, 100, 8);

    assert_int_equal(stk_timeline_at(t, 100), 8);
    assert_int_equal(stk_timeline_at(t, STK_NEVER_TIME), 8);
    assert_int_equal(stk_timeline_earliest(t, 100, 8, 5), 100);
    assert_int_equal(stk_timeline_earliest(t, 250, 8, STK_NEVER_TIME), 250);
    assert_int_equal(stk_timeline_earliest(t, 100, 9, 0), STK_NEVER_TIME);
    assert_int_equal(stk_timeline_earliest(t, STK_NEVER_TIME, 1, 1), STK_NEVER_TIME);
}

static void a_timeline_without_memory_answers(void **state)
{
    const struct stk_timeline *t = *state;

    assert_int_equal(stk_timeline_at(t, 5), 0);
    assert_int_equal(stk_timeline_earliest(t, -7, 0, 3), 0);
    assert_int_equal(stk_timeline_earliest(t, 0, 1, 3), STK_NEVER_TIME);
    assert_int_equal(heap.calls, 0);
}

static void job_waits_until_enough_jobs_have_ended(void **state)
{
    struct stk_timeline *t = timeline(state, 3, 0, 8);

    stk_timeline_add(t, 0, 10, -4);
    stk_timeline_add(t, 0, 20, -2);
    assert_int_equal(stk_timeline_earliest(t, 0, 2, 100), 0);
    assert_int_equal(stk_timeline_earliest(t, 0, 3, 100), 10);
    assert_int_equal(stk_timeline_earliest(t, 0, 7, 100), 20);
}

static void gap_must_be_long_enough_to_the_microsecond(void **state)
{
    struct stk_timeline *t = timeline(state, 2, 0, 4);

    stk_timeline_add(t, 0, 10, -4);
    stk_timeline_add(t, 30, 40, -4);
    assert_int_equal(stk_timeline_earliest(t, 0, 4, 20), 10);
    assert_int_equal(stk_timeline_earliest(t, 0, 4, 21), 40);
    assert_int_equal(stk_timeline_earliest(t, 11, 4, 20), 40);
    assert_int_equal(stk_timeline_earliest(t, 29, 4, 0), 29);
    assert_int_equal(stk_timeline_earliest(t, 30, 4, 0), 40);
}

static void interval_ends_before_its_last_time(void **state)
{
    struct stk_timeline *t = timeline(state, 1, 0, 4);

    stk_timeline_add(t, 10, 20, -1);
    assert_int_equal(stk_timeline_at(t, 9), 4);
    assert_int_equal(stk_timeline_at(t, 10), 3);
    assert_int_equal(stk_timeline_at(t, 19), 3);
    assert_int_equal(stk_timeline_at(t, 20), 4);
}

static void change_for_good_never_comes_back(void **state)
{
    struct stk_timeline *t = timeline(state, 1, 0, 4);

    stk_timeline_add(t, 10, STK_NEVER_TIME, -3);
    assert_int_equal(stk_timeline_at(t, STK_NEVER_TIME), 1);
    assert_int_equal(stk_timeline_earliest(t, 0, 2, 10), 0);
    assert_int_equal(stk_timeline_earliest(t, 0, 2, 11), STK_NEVER_TIME);
    assert_int_equal(stk_timeline_earliest(t, 0, 2, STK_NEVER_TIME), STK_NEVER_TIME);
    assert_int_equal(stk_timeline_earliest(t, 0, 1, STK_NEVER_TIME), 0);
}

static void what_lies_before_the_start_is_ignored(void **state)
{
    struct stk_timeline *t = timeline(state, 3, 100, 4);

    stk_timeline_add(t, 0, 100, -1);
    assert_int_equal(stk_timeline_at(t, 100), 4);
    stk_timeline_add(t, 0, 110, -1);
    assert_int_equal(stk_timeline_at(t, 100), 3);
    assert_int_equal(stk_timeline_at(t, 0), 3);
    stk_timeline_add(t, 120, 110, -1);
    assert_int_equal(stk_timeline_at(t, 115), 4);
    assert_int_equal(stk_timeline_earliest(t, 0, 3, 1), 100);
}

static void opposite_changes_leave_no_breakpoint(void **state)
{
    struct stk_timeline *t = timeline(state, 2, 0, 4);

    stk_timeline_add(t, 10, 20, -1);
    assert_int_not_equal(t->root, 0);
    stk_timeline_add(t, 10, 20, 1);
    assert_int_equal(t->root, 0);
}

static void touching_intervals_share_one_breakpoint_or_none(void **state)
{
    struct stk_timeline *t = timeline(state, 2, 0, 4);

    stk_timeline_add(t, 10, 20, -2);
    stk_timeline_add(t, 20, 30, -2);
    assert_int_equal(t->nodes[t->root].height, 2); /* 10 and 30; nothing changes at 20 */
    assert_int_equal(stk_timeline_earliest(t, 15, 3, 1), 30);
}

static void trim_keeps_the_future_and_recycles_the_past(void **state)
{
    struct stk_timeline *t = timeline(state, 4, 0, 8);
    uint32_t calls = heap.calls;

    for (stk_time now = 0; now < 10000; now += 10) {
        stk_timeline_trim(t, now);
        assert_int_equal(stk_timeline_at(t, now), now ? 7 : 8);
        stk_timeline_add(t, now + 5, now + 15, -1);
        assert_true(t->used <= 5);
    }
    stk_timeline_trim(t, 5); /* backwards: nothing */
    assert_int_equal(t->start, 9990);
    assert_int_equal(heap.calls, calls);
}

static void reserve_that_fails_changes_nothing(void **state)
{
    struct stk_timeline *t = timeline(state, 2, 0, 4);

    stk_timeline_add(t, 10, 20, -1);
    heap.limit = 4096;
    assert_int_equal(stk_timeline_reserve(t, 100000), -ENOMEM);
    assert_int_equal(stk_timeline_reserve(t, UINT32_MAX), -ENOMEM);
    assert_int_equal(stk_timeline_at(t, 15), 3);
    assert_int_equal(stk_timeline_earliest(t, 12, 4, 1), 20);
}

static void breakpoints_in_order_keep_the_tree_low(void **state)
{
    enum { N = 32768 };
    struct stk_timeline *t = timeline(state, N, 0, N);
    uint32_t calls = heap.calls;

    for (stk_time i = 1; i <= N; i++)
        stk_timeline_add(t, i, STK_NEVER_TIME, -1);
    assert_true(t->nodes[t->root].height <= 22); /* 1.44 * log2(N) */
    for (stk_time i = 1; i <= N; i += 97)
        assert_int_equal(stk_timeline_at(t, i), N - i);
    assert_int_equal(stk_timeline_earliest(t, 0, N - 5, 6), 0);
    assert_int_equal(stk_timeline_earliest(t, 0, N - 5, 7), STK_NEVER_TIME);
    stk_timeline_trim(t, N);
    assert_int_equal(t->root, 0);
    assert_int_equal(heap.calls, calls);
}

/* The same function, one number per microsecond; the last one holds for ever after. */
enum { SPAN = 160 };
struct plain {
    int64_t free[SPAN];
    stk_time start;
};

static int64_t plain_at(const struct plain *p, stk_time at)
{
    if (at < p->start)
        at = p->start;
    return p->free[at < SPAN ? at : SPAN - 1];
}

static stk_time plain_earliest(const struct plain *p, stk_time from, int64_t need, stk_time dur)
{
    stk_time run = 0;

    if (from < p->start)
        from = p->start;
    for (stk_time at = from; at < SPAN || at == from; at++) {
        run = plain_at(p, at) >= need ? run + 1 : 0;
        if (run >= dur)
            return at - run + 1;
    }
    return run ? (from > SPAN - run ? from : SPAN - run) : STK_NEVER_TIME;
}

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % below;
}

static void add_to_both(struct stk_timeline *t, struct plain *p, uint64_t *seed)
{
    stk_time from = draw(seed, SPAN), to = from + draw(seed, 50);
    int64_t delta = (int64_t)draw(seed, 9) - 4;

    if (to >= SPAN)
        to = STK_NEVER_TIME;
    stk_timeline_add(t, from, to, delta);
    for (stk_time at = from < p->start ? p->start : from; at < SPAN && at < to; at++)
        p->free[at] += delta;
}

static uint32_t subtree_height(const struct stk_timeline *t, uint32_t x, stk_time low,
                               stk_time high)
{
    const struct stk_timeline_node *n = &t->nodes[x];
    uint32_t l, r;

    if (!x)
        return 0;
    assert_true(low < n->at && n->at < high && n->delta != 0);
    l = subtree_height(t, n->left, low, n->at);
    r = subtree_height(t, n->right, n->at, high);
    assert_true(l <= r + 1 && r <= l + 1);
    assert_int_equal(n->height, 1 + (l > r ? l : r));
    return n->height;
}

static void compare_once(struct stk_timeline *t, struct plain *p, uint64_t *seed)
{
    stk_time from = draw(seed, SPAN + 10), dur = 1 + draw(seed, 60), at = draw(seed, SPAN + 10);
    int64_t need = (int64_t)draw(seed, 30) - 12;

    assert_int_equal(stk_timeline_at(t, at), plain_at(p, at));
    assert_int_equal(stk_timeline_earliest(t, from, need, dur), plain_earliest(p, from, need, dur));
    (void)subtree_height(t, t->root, t->start, STK_NEVER_TIME);
}

static void random_calls_agree_with_a_plain_array(void **state)
{
    enum { ROUNDS = 3000, ADDS = 60 };
    uint64_t seed = 42;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct stk_timeline *t = timeline(state, ADDS, 0, 10);
        uint32_t calls = heap.calls, adds = draw(&seed, ADDS + 1);
        struct plain p = {.start = 0};

        for (uint32_t i = 0; i < SPAN; i++)
            p.free[i] = 10;
        for (uint32_t i = 0; i < adds; i++) {
            add_to_both(t, &p, &seed);
            if (!draw(&seed, 8)) {
                stk_time now = p.start + draw(&seed, 12);

                p.start = now < SPAN ? now : SPAN - 1;
                stk_timeline_trim(t, p.start);
            }
            compare_once(t, &p, &seed);
            compare_once(t, &p, &seed);
        }
        assert_int_equal(heap.calls, calls);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(constant_pool_fits_now_or_never),
        TEST(a_timeline_without_memory_answers),
        TEST(job_waits_until_enough_jobs_have_ended),
        TEST(gap_must_be_long_enough_to_the_microsecond),
        TEST(interval_ends_before_its_last_time),
        TEST(change_for_good_never_comes_back),
        TEST(what_lies_before_the_start_is_ignored),
        TEST(opposite_changes_leave_no_breakpoint),
        TEST(touching_intervals_share_one_breakpoint_or_none),
        TEST(trim_keeps_the_future_and_recycles_the_past),
        TEST(reserve_that_fails_changes_nothing),
        TEST(breakpoints_in_order_keep_the_tree_low),
        TEST(random_calls_agree_with_a_plain_array),
    };

    return cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
}
