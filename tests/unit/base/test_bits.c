/* SPDX-License-Identifier: Apache-2.0 */
/* test_bits.c - the set of small numbers against an array of booleans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/rng.h"

static uint32_t plain_next(const bool *in, uint32_t n, uint32_t i)
{
    for (; i < n; i++)
        if (in[i])
            return i;
    return UINT32_MAX;
}

static uint32_t plain_prev(const bool *in, uint32_t n, uint32_t i)
{
    for (i = i < n ? i : n - 1; n > 0 && i < n; i--)
        if (in[i])
            return i;
    return UINT32_MAX;
}

static void compare(const struct stk_bits_layout *l, const uint64_t *w, const bool *in, uint32_t at)
{
    assert_int_equal(stk_bits_next(l, w, at), plain_next(in, l->n, at));
    assert_int_equal(stk_bits_prev(l, w, at), plain_prev(in, l->n, at));
    if (at < l->n)
        assert_int_equal(stk_bits_test(w, at), in[at]);
}

static void behaves_like_an_array_of_booleans(void **state)
{
    static const uint32_t sizes[] = {1, 2, 63, 64, 65, 127, 128, 4095, 4096, 4097, 5000, 300000};
    struct stk_rng r;

    (void)state;
    stk_rng_init(&r, 1);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
        uint32_t n = sizes[k];
        struct stk_bits_layout l;
        bool *in = calloc(n, sizeof(*in));
        uint64_t *w;

        stk_bits_layout_init(&l, n);
        w = calloc(l.n_words, sizeof(*w));
        for (int i = 0; i < 2000; i++) {
            uint32_t at = (uint32_t)stk_rng_below(&r, i % 3 ? n : n < 70 ? n : 70);

            if (stk_rng_below(&r, i < 1000 ? 3 : 1 + (uint64_t)(i % 2)) == 0) {
                stk_bits_clear(&l, w, at);
                in[at] = false;
            } else {
                stk_bits_set(&l, w, at);
                in[at] = true;
            }
            if (n <= 5000 || i % 50 == 0)
                compare(&l, w, in, (uint32_t)stk_rng_below(&r, n + 3u));
        }
        compare(&l, w, in, 0);
        compare(&l, w, in, n - 1);
        compare(&l, w, in, UINT32_MAX);
        free(in);
        free(w);
    }
}

static void an_empty_or_a_lone_place(void **state)
{
    struct stk_bits_layout l;
    uint64_t w[4] = {0};

    (void)state;
    stk_bits_layout_init(&l, 0);
    assert_int_equal(l.n_words, 1);
    assert_int_equal(stk_bits_next(&l, w, 0), UINT32_MAX);
    assert_int_equal(stk_bits_prev(&l, w, 0), UINT32_MAX);
    stk_bits_layout_init(&l, 1);
    assert_int_equal(stk_bits_prev(&l, w, 7), UINT32_MAX);
    stk_bits_set(&l, w, 0);
    stk_bits_set(&l, w, 0); /* twice is once */
    assert_int_equal(stk_bits_next(&l, w, 0), 0);
    assert_int_equal(stk_bits_next(&l, w, 1), UINT32_MAX);
    assert_int_equal(stk_bits_prev(&l, w, UINT32_MAX), 0);
    stk_bits_clear(&l, w, 0);
    assert_int_equal(stk_bits_next(&l, w, 0), UINT32_MAX);
}

static void layouts_do_not_overlap(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < 20000000; n = n * 3 + 1) {
        struct stk_bits_layout l;
        uint32_t words = (n + 63) / 64, at = 0;

        stk_bits_layout_init(&l, n);
        for (uint32_t k = 0; k < l.levels; k++) {
            assert_int_equal(l.start[k], at);
            at += words;
            words = (words + 63) / 64;
        }
        assert_int_equal(l.n_words, at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behaves_like_an_array_of_booleans),
        cmocka_unit_test(an_empty_or_a_lone_place),
        cmocka_unit_test(layouts_do_not_overlap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
