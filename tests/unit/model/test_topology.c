/* SPDX-License-Identifier: Apache-2.0 */
/* test_topology.c - how near GPUs are, and the nearest of those that are free. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "model/topology.h"

/* Two islands of four; NUMA nodes of two GPUs across them, so that both count. */
static const struct stk_layout two = {
    .gpus = 8, .n_islands = 2, .n_numa = 2, .island = {0x0f, 0xf0}, .numa = {0x33, 0xcc}};

static void levels_have_names(void **state)
{
    (void)state;
    for (unsigned i = STK_AT_LINK; i < STK_AT_FAR; i++) {
        const char *name = stk_level_name((enum stk_level)i);

        assert_int_equal(stk_level_of(name, strlen(name)), i);
    }
    assert_int_equal(stk_level_of("gpu", 3), 0);
    assert_int_equal(stk_level_of("far", 3), 0);
    assert_int_equal(stk_level_of("rac", 3), 0);
}

static void nonsense_is_refused(void **state)
{
    struct stk_layout l = two;
    struct stk_err err;

    (void)state;
    assert_int_equal(stk_layout_check(&two, &err), 0);
    l.island[1] = 0xf8;
    assert_int_equal(stk_layout_check(&l, &err), -EINVAL);
    assert_string_equal(err.text, "GPU 3 is in two islands");
    l = two;
    l.numa[0] = 0x133;
    assert_int_equal(stk_layout_check(&l, &err), -EINVAL);
    assert_string_equal(err.text, "NUMA node 0 has GPU 8; the node has GPUs 0 to 7");
    l = two;
    l.island[0] = 0;
    assert_int_equal(stk_layout_check(&l, &err), -EINVAL);
    l.gpus = 65;
    assert_int_equal(stk_layout_check(&l, &err), -EINVAL);
}

static void the_nearest_level_counts(void **state)
{
    const struct stk_node_spec nodes[] = {
        {.gpus = 8, .layout = 1, .rack = 1, .zone = 1, .region = 1},
        {.gpus = 8, .layout = 1, .rack = 1, .zone = 1, .region = 1},
        {.gpus = 8, .rack = 2, .zone = 1, .region = 1},
        {.gpus = 4, .rack = 3, .zone = 2, .region = 1, .domain = 7},
        {.gpus = 4, .rack = 3, .zone = 2, .region = 1, .domain = 7},
        {.gpus = 4},
        {.gpus = 4},
    };
    static const struct {
        struct stk_gpu_at a, b;
        enum stk_level level;
    } cases[] = {
        {{0, 1}, {0, 1}, STK_AT_GPU},    {{0, 1}, {0, 3}, STK_AT_LINK},
        {{0, 1}, {0, 4}, STK_AT_NODE},   {{2, 1}, {2, 2}, STK_AT_NODE},
        {{0, 1}, {1, 1}, STK_AT_RACK},   {{0, 1}, {2, 1}, STK_AT_ZONE},
        {{0, 1}, {3, 1}, STK_AT_REGION}, {{3, 0}, {4, 3}, STK_AT_LINK},
        {{3, 0}, {3, 3}, STK_AT_LINK},   {{5, 0}, {6, 0}, STK_AT_FAR},
        {{0, 0}, {6, 0}, STK_AT_FAR},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(stk_level_between(nodes, &two, cases[i].a, cases[i].b), cases[i].level);
        assert_int_equal(stk_level_between(nodes, &two, cases[i].b, cases[i].a), cases[i].level);
    }
}

static void a_set_lies_in_one_island_and_numa_node_if_it_can(void **state)
{
    (void)state;
    assert_int_equal(stk_layout_choose(&two, 0xff, 0, 4), 0x0f);
    assert_int_equal(stk_layout_choose(&two, 0xf7, 0, 3), 0x07); /* the tighter island */
    assert_int_equal(stk_layout_choose(&two, 0xf7, 0, 4), 0xf0);
    assert_int_equal(stk_layout_choose(&two, 0xfd, 0, 2), 0x0c);         /* one NUMA node */
    assert_int_equal(stk_layout_choose(&two, 0x3b, 0, 5), 0x3b);         /* all there are */
    assert_int_equal(stk_layout_choose(&two, 0x7b, 0, 5), 0x7b & ~0x40); /* few islands */
    assert_int_equal(stk_layout_choose(NULL, 0xfa, 0, 2), 0x0a);
    assert_int_equal(stk_layout_choose(&two, 0xff, 0x01, 4), 0xf0); /* 0 is given last */
    assert_int_equal(stk_layout_choose(&two, 0xff, 0xfe, 2), 0x03);
}

static void units_lie_in_islands(void **state)
{
    (void)state;
    assert_int_equal(stk_layout_units(&two, 0xff, 3), 2);
    assert_int_equal(stk_layout_units(&two, 0xff, 2), 4);
    assert_int_equal(stk_layout_units(&two, 0x77, 2), 2);
    assert_int_equal(stk_layout_units(&two, 0x77, 4), 0);
    assert_int_equal(stk_layout_units(NULL, 0x77, 2), 0);
    assert_int_equal(stk_layout_units(NULL, 0x77, 1), 6);
    assert_int_equal(stk_layout_choose_units(&two, 0x77, 0, 2, 3), 0);
    assert_int_equal(stk_layout_choose_units(&two, 0x77, 0, 3, 2), 0x77);
    assert_int_equal(stk_layout_choose_units(&two, 0x3f, 0, 2, 1), 0x30);
}

/* Any layout, any free GPUs. */
static void every_choice_is_whole_and_none_is_missed(void **state)
{
    struct stk_rng r;

    (void)state;
    stk_rng_init(&r, 5);
    for (int round = 0; round < 20000; round++) {
        struct stk_layout l = {.gpus = 1 + (uint32_t)stk_rng_below(&r, 12)};
        uint64_t all = (UINT64_C(1) << l.gpus) - 1, free = stk_rng_next(&r) & all;
        uint64_t last = stk_rng_next(&r) & stk_rng_next(&r) & all, got;
        uint32_t n = (uint32_t)stk_rng_below(&r, l.gpus + 1), unit, can;
        bool fits = false;

        for (uint32_t g = 0; g < l.gpus; g++) {
            uint32_t i = (uint32_t)stk_rng_below(&r, 4), k = (uint32_t)stk_rng_below(&r, 3);

            if (i < 3)
                l.island[i] |= UINT64_C(1) << g;
            l.numa[k] |= UINT64_C(1) << g;
        }
        for (uint32_t i = 0; i < 3; i++) { /* without empty ones */
            if (l.island[i])
                l.island[l.n_islands++] = l.island[i];
            if (l.numa[i])
                l.numa[l.n_numa++] = l.numa[i];
        }
        assert_int_equal(stk_layout_check(&l, NULL), 0);
        got = stk_layout_choose(&l, free, last, n);
        assert_int_equal(got & ~free, 0);
        assert_int_equal(__builtin_popcountll(got), n < (uint32_t)__builtin_popcountll(free)
                                                        ? (int)n
                                                        : __builtin_popcountll(free));
        if ((uint32_t)__builtin_popcountll(free & ~last) >= n) {
            assert_int_equal(got & last, 0);
            for (uint32_t i = 0; i < l.n_islands; i++)
                fits |= (uint32_t)__builtin_popcountll(l.island[i] & free & ~last) >= n;
            if (fits && n > 0)
                assert_int_equal(got & ~stk_layout_island(&l, (uint32_t)__builtin_ctzll(got)), 0);
        }
        unit = 1 + (uint32_t)stk_rng_below(&r, 4);
        can = stk_layout_units(&l, free, unit);
        got = stk_layout_choose_units(&l, free, last, unit, can);
        assert_int_equal(__builtin_popcountll(got), can * unit);
        assert_int_equal(got & ~free, 0);
        assert_true(stk_layout_units(&l, got, unit) == can);
        assert_int_equal(stk_layout_choose_units(&l, free, last, unit, can + 1), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_have_names),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(the_nearest_level_counts),
        cmocka_unit_test(a_set_lies_in_one_island_and_numa_node_if_it_can),
        cmocka_unit_test(units_lie_in_islands),
        cmocka_unit_test(every_choice_is_whole_and_none_is_missed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
