/* SPDX-License-Identifier: Apache-2.0 */
/* test_map.c - the hash table against an array over all keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/map.h"
#include "base/rng.h"
#include "lib/fixture.h"

#define KEYS 500

/* Keys that crowd: consecutive, multiples of a power of two, and the largest. */
static uint32_t key_of(uint32_t i)
{
    return i < 200 ? i : i < 400 ? i << 20 : UINT32_MAX - 1 - (i - 400);
}

static void behaves_like_an_array(void **state)
{
    struct fx_heap mem = {0};
    const struct stk_mem m = fx_mem(&mem);
    uint32_t value[KEYS], n = 0;
    bool in[KEYS] = {false};
    struct stk_map map = {0};
    struct stk_rng r;

    (void)state;
    stk_rng_init(&r, 3);
    for (int i = 0; i < 20000; i++) {
        uint32_t k = (uint32_t)stk_rng_below(&r, KEYS);

        if (stk_rng_below(&r, i / 2000 % 2 ? 2 : 5) == 0) {
            stk_map_remove(&map, key_of(k));
            n -= in[k];
            in[k] = false;
        } else {
            assert_int_equal(stk_map_reserve(&map, &m, map.n + 1), 0);
            value[k] = (uint32_t)stk_rng_next(&r) >> 1;
            stk_map_put(&map, key_of(k), value[k]);
            n += !in[k];
            in[k] = true;
        }
        assert_int_equal(map.n, n);
        k = (uint32_t)stk_rng_below(&r, KEYS);
        assert_int_equal(stk_map_get(&map, key_of(k)), in[k] ? value[k] : UINT32_MAX);
    }
    for (uint32_t k = 0; k < KEYS; k++)
        assert_int_equal(stk_map_get(&map, key_of(k)), in[k] ? value[k] : UINT32_MAX);
    stk_map_done(&map, &m);
    assert_int_equal(mem.live, 0);
}

static void an_empty_map_has_nothing(void **state)
{
    struct fx_heap mem = {0};
    const struct stk_mem m = fx_mem(&mem);
    struct stk_map map = {0};

    (void)state;
    assert_int_equal(stk_map_get(&map, 0), UINT32_MAX);
    stk_map_remove(&map, 0);
    assert_int_equal(stk_map_reserve(&map, &m, 0), 0);
    assert_int_equal(stk_map_reserve(&map, &m, 1), 0);
    assert_int_equal(stk_map_get(&map, UINT32_MAX), UINT32_MAX);
    stk_map_remove(&map, UINT32_MAX);
    stk_map_put(&map, 0, 0);
    assert_int_equal(stk_map_get(&map, 0), 0);
    stk_map_done(&map, &m);
    stk_map_done(&map, &m);
}

static void without_memory_it_keeps_what_it_has(void **state)
{
    struct fx_heap mem = {0};
    const struct stk_mem m = fx_mem(&mem);
    struct stk_map map = {0};

    (void)state;
    assert_int_equal(stk_map_reserve(&map, &m, 8), 0);
    for (uint32_t i = 0; i < 8; i++)
        stk_map_put(&map, i, i * i);
    mem.fail_at = 1;
    assert_int_equal(stk_map_reserve(&map, &m, 1000), -ENOMEM);
    assert_int_equal(stk_map_reserve(&map, &m, UINT32_MAX), -ENOMEM);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(stk_map_get(&map, i), i * i);
    stk_map_done(&map, &m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behaves_like_an_array),
        cmocka_unit_test(an_empty_map_has_nothing),
        cmocka_unit_test(without_memory_it_keeps_what_it_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
