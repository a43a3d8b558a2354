/* SPDX-License-Identifier: Apache-2.0 */
/* test_linked.c - the best connected set of GPUs, on machines that exist and against one that tries
 * every set there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "model/linked.h"
#include "model/topology.h"

static uint64_t among(const stk_weight *w, uint32_t gpus, uint64_t a, uint64_t b)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < gpus; i++)
        for (uint32_t j = 0; j < gpus; j++)
            if ((a >> i & 1) && (b >> j & 1))
                sum += w[i * gpus + j];
    return sum;
}

/* True when 'a' comes before 'b' in order: at the lowest GPU that only one has, it has it. */
static int is_lower(uint64_t a, uint64_t b)
{
    uint64_t differ = a ^ b;

    return differ != 0 && (a & (differ & (~differ + 1))) != 0;
}

static uint64_t brute(const stk_weight *w, uint32_t gpus, uint64_t with, uint64_t free, uint32_t n)
{
    uint64_t best = 0, best_value = 0, best_rest = 0;
    int any = 0;

    for (uint64_t m = 0; m < UINT64_C(1) << gpus; m++) {
        uint64_t value, rest;

        if ((m & ~free) || (uint32_t)__builtin_popcountll(m) != n)
            continue;
        value = among(w, gpus, m, m) + 2 * among(w, gpus, m, with);
        rest = among(w, gpus, free & ~m, free & ~m);
        if (any && (value < best_value || (value == best_value && rest < best_rest) ||
                    (value == best_value && rest == best_rest && !is_lower(m, best))))
            continue;
        any = 1;
        best = m;
        best_value = value;
        best_rest = rest;
    }
    return best;
}

static void any_machine_is_as_brute_force_has_it(void **state)
{
    struct stk_rng r = {0};

    (void)state;
    stk_rng_init(&r, 7);
    for (int round = 0; round < 3000; round++) {
        stk_weight w[10 * 10] = {0};
        uint32_t gpus = 1 + (uint32_t)stk_rng_below(&r, 10);
        uint32_t kinds = 1 + (uint32_t)stk_rng_below(&r, 4);
        uint64_t all = (UINT64_C(1) << gpus) - 1, with = stk_rng_below(&r, all + 1);
        uint64_t free = stk_rng_below(&r, all + 1);
        uint32_t n = 1 + (uint32_t)stk_rng_below(&r, gpus);

        if (round % 2 == 0)
            with = 0;
        free &= ~with;
        for (uint32_t i = 0; i < gpus; i++)
            for (uint32_t j = 0; j < i; j++)
                w[i * gpus + j] = w[j * gpus + i] = (stk_weight)(100 * stk_rng_below(&r, kinds));
        if ((uint32_t)__builtin_popcountll(free) <= n)
            assert_int_equal(stk_linked_choose(w, gpus, with, free, n), free);
        else
            assert_int_equal(stk_linked_choose(w, gpus, with, free, n),
                             brute(w, gpus, with, free, n));
    }
}

/* DGX-1 with V100: a hybrid cube mesh, one or two links between some pairs. */
static void mesh(stk_weight *w)
{
    static const uint8_t links[][3] = {
        {0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1}, {1, 5, 2}, {2, 3, 2},
        {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};

    for (uint32_t i = 0; i < 8; i++)
        for (uint32_t j = 0; j < 8; j++)
            w[i * 8 + j] = i == j ? 0 : i / 2 == j / 2 ? 50 : i / 4 == j / 4 ? 30 : 10;
    for (size_t k = 0; k < sizeof(links) / sizeof(*links); k++) {
        w[links[k][0] * 8 + links[k][1]] += (stk_weight)(100 * links[k][2]);
        w[links[k][1] * 8 + links[k][0]] += (stk_weight)(100 * links[k][2]);
    }
}

static void in_a_mesh_pairs_have_two_links_and_fours_are_a_quad(void **state)
{
    stk_weight w[64] = {0};

    (void)state;
    mesh(w);
    assert_int_equal(stk_linked_choose(w, 8, 0, 0xff, 4), 0x0f);
    assert_int_equal(stk_linked_choose(w, 8, 0, 0xf0, 4), 0xf0);
    assert_int_equal(stk_linked_choose(w, 8, 0, 0xff, 2), 0x0c); /* two links, one PCIe switch */
    assert_int_equal(stk_linked_choose(w, 8, 0, 0x17, 2), 0x06); /* not 0 and 1 */
    assert_int_equal(stk_linked_choose(w, 8, 0x01, 0x06, 1), 0x02);
}

static void one_gpu_is_taken_where_it_breaks_least(void **state)
{
    stk_weight w[36] = {0};

    (void)state;
    for (uint32_t i = 0; i < 6; i++)
        for (uint32_t j = 0; j < 6; j++)
            w[i * 6 + j] = i == j ? 0 : i / 3 == j / 3 ? 20 : 10;
    assert_int_equal(stk_linked_choose(w, 6, 0, 0x37, 1), 0x10); /* 0, 1, 2 stay together */
    assert_int_equal(stk_linked_choose(w, 6, 0, 0x3f, 1), 0x01);
    assert_int_equal(stk_linked_choose(w, 6, 0, 0x3e, 2), 0x06); /* the rest of a broken three */
}

static void many_gpus_are_chosen_in_islands(void **state)
{
    static stk_weight w[64 * 64];
    uint64_t got;

    (void)state;
    for (uint32_t i = 0; i < 64; i++)
        for (uint32_t j = 0; j < 64; j++)
            w[i * 64 + j] = i == j ? 0 : i % 4 == j % 4 ? 1800 : 10;
    got = stk_linked_choose(w, 64, 0, UINT64_MAX, 16);
    assert_int_equal(got, UINT64_C(0x1111111111111111));
    got = stk_linked_choose(w, 64, 0, ~UINT64_C(0x1111), 16);
    assert_int_equal(got, UINT64_C(0x2222222222222222));
    assert_int_equal(stk_linked_choose(w, 64, 0, UINT64_MAX, 64), UINT64_MAX);
    assert_int_equal(stk_linked_choose(w, 64, 0, 5, 0), 0);
}

static void a_layout_with_weights_is_chosen_by_them(void **state)
{
    struct stk_layout l = {.gpus = 8, .n_islands = 1, .island = {0xff}};
    stk_weight w[64] = {0};

    (void)state;
    mesh(w);
    assert_int_equal(stk_layout_choose(&l, 0x17, 0, 2), 0x03); /* linked, all the same */
    l.weight = w;
    assert_int_equal(stk_layout_choose(&l, 0x17, 0, 2), 0x06);
    assert_int_equal(stk_layout_choose(&l, 0x17, 0x04, 2), 0x11); /* 2 is for later; 0-4 has two */
    assert_int_equal(stk_layout_choose(&l, 0x07, 0x06, 2), 0x03); /* 0 and what suits it */
    assert_int_equal(stk_layout_choose(&l, 0x07, 0x06, 3), 0x07);
    assert_int_equal(stk_layout_choose_units(&l, 0xff, 0, 4, 1), 0x0f);
    assert_int_equal(stk_layout_choose_units(&l, 0xf7, 0, 4, 1), 0xf0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_machine_is_as_brute_force_has_it),
        cmocka_unit_test(in_a_mesh_pairs_have_two_links_and_fours_are_a_quad),
        cmocka_unit_test(one_gpu_is_taken_where_it_breaks_least),
        cmocka_unit_test(many_gpus_are_chosen_in_islands),
        cmocka_unit_test(a_layout_with_weights_is_chosen_by_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
