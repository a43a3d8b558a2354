/* SPDX-License-Identifier: Apache-2.0 */
/* test_sort.c - sorted, stable, complete; against insertion one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/sort.h"

#define MOST 2000

static void plain_sort(struct stk_sort_item *a, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0 && a[k].key < a[k - 1].key; k--) {
            struct stk_sort_item t = a[k];

            a[k] = a[k - 1];
            a[k - 1] = t;
        }
}

static void try_one(uint32_t n, uint64_t kinds, struct stk_rng *r)
{
    static struct stk_sort_item a[MOST], b[MOST], scratch[MOST + 1];

    for (uint32_t i = 0; i < n; i++)
        a[i] =
            (struct stk_sort_item){(int64_t)stk_rng_below(r, kinds) - (int64_t)(kinds / 2), i, ~i};
    if (kinds == 1 && n > 1) {
        a[0].key = INT64_MAX;
        a[n - 1].key = INT64_MIN;
    }
    memcpy(b, a, n * sizeof(*a));
    scratch[n] = (struct stk_sort_item){42, 42, 42};
    stk_sort(a, n, scratch);
    plain_sort(b, n);
    assert_memory_equal(a, b, n * sizeof(*a) + (n == 0));
    assert_int_equal(scratch[n].key, 42); /* no more scratch than was given */
}

static void sorts_stably(void **state)
{
    struct stk_rng r;

    (void)state;
    stk_rng_init(&r, 11);
    for (uint32_t n = 0; n < 70; n++)
        for (uint64_t kinds = 1; kinds < 100; kinds += 24)
            try_one(n, kinds, &r);
    for (uint32_t n = 255; n < MOST; n = n * 3 / 2)
        for (uint64_t kinds = 1; kinds <= 1000000; kinds *= 1000)
            try_one(n, kinds, &r);
}

static void sorted_and_reversed_input(void **state)
{
    struct stk_sort_item a[100], scratch[100];

    (void)state;
    for (int reversed = 0; reversed < 2; reversed++) {
        for (uint32_t i = 0; i < 100; i++)
            a[i] = (struct stk_sort_item){reversed ? 99 - (int64_t)i : (int64_t)i, i, 0};
        stk_sort(a, 100, scratch);
        for (uint32_t i = 0; i < 100; i++)
            assert_int_equal(a[i].key, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorts_stably),
        cmocka_unit_test(sorted_and_reversed_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
