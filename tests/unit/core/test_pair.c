/* SPDX-License-Identifier: Apache-2.0 */
/* test_pair.c - whole GPUs that two jobs have together, under placement policy share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/pair.h"
#include "lib/fixture.h"

/* Two GPU types. Kinds: 0 and 1 get on well, on type 0 only; 2 disturbs 0 badly; of 3 it was never
 * measured how fast it is beside others. Alone each does 10 steps per second. */
#define ROWS 4
static const double alone[ROWS * 2 * 2] = {10, 10, 10, 10, 10, 10, 10, 10,
                                           10, 10, 10, 10, 10, 10, 10, 10};
static const double beside[ROWS * ROWS * 2] = {
    7,  5,  8,  4,  3,  3,  3,  3,  /* kind 0 beside 0, 1, 2, 3 */
    9,  4,  6,  5,  7,  7,  -1, -1, /* kind 1 */
    10, 9,  8,  8,  6,  5,  -1, -1, /* kind 2 */
    -1, -1, -1, -1, -1, -1, -1, -1,
};
static const struct stk_speeds speeds = {
    .rows = ROWS, .types = 2, .alone = alone, .beside = beside};

static struct fx *world(uint32_t nodes, uint32_t gpus, const char *params)
{
    static struct stk_node_spec specs[8];

    for (uint32_t i = 0; i < nodes; i++)
        specs[i] = (struct stk_node_spec){.gpus = gpus};
    return fx_new(&(struct fx_setup){
        .place = "share", .params = params, .nodes = specs, .n_nodes = nodes, .speeds = &speeds});
}

static struct stk_job_spec job(uint32_t gpus, uint32_t kind, uint32_t slo_milli, int64_t seconds)
{
    struct stk_job_spec spec = fx_job(gpus, seconds);

    spec.demand.share_max = 2;
    spec.demand.row = kind + 1;
    spec.demand.slo_milli = (uint16_t)slo_milli;
    return spec;
}

static bool runs(const struct fx *f, uint32_t j)
{
    return fx_state(f, j) == STK_JOB_RUNNING;
}

static void free_gpus_come_first_then_company(void **state)
{
    struct fx *f = world(1, 2, "");
    uint32_t a = fx_submit(f, job(1, 0, 0, 100)), b, c, d, e;

    (void)state;
    fx_turn(f);
    b = fx_submit(f, job(1, 1, 0, 100));
    fx_turn(f);
    assert_int_equal(stk_pair_mate(f->s, a), STK_NONE); /* a GPU was free */
    assert_int_equal(stk_pair_mate(f->s, b), STK_NONE);
    c = fx_submit(f, job(1, 1, 0, 50));
    d = fx_submit(f, job(1, 1, 0, 50));
    e = fx_submit(f, job(1, 1, 0, 50));
    fx_turn(f);
    assert_int_equal(stk_pair_mate(f->s, c), a); /* 0.8 + 0.9; beside b 0.6 + 0.6 */
    assert_int_equal(stk_pair_mate(f->s, d), b);
    assert_int_equal(fx_state(f, e), STK_JOB_WAITING); /* two at most */
    fx_drain(f);
    fx_finish(f);
}

static void who_is_left_alone_may_get_company_again(void **state)
{
    struct fx *f = world(1, 4, "");
    uint32_t a = fx_submit(f, job(4, 0, 0, 100)), b = fx_submit(f, job(4, 1, 0, 30));
    uint32_t c = fx_submit(f, job(4, 1, 0, 200)), two = fx_submit(f, job(2, 1, 0, 10));

    (void)state;
    fx_turn(f);
    assert_true(runs(f, a) && runs(f, b) && !runs(f, c));
    fx_run(f, 30 * STK_SECOND);
    assert_int_equal(stk_pair_mate(f->s, a), c);
    assert_false(runs(f, two)); /* other sizes share nothing */
    fx_run(f, 100 * STK_SECOND);
    assert_true(runs(f, c)); /* and has the GPUs for itself now */
    assert_int_equal(stk_pair_mate(f->s, c), STK_NONE);
    assert_int_equal(f->s->pools[0].gpus_free, 0);
    fx_drain(f);
    assert_int_equal(f->s->pools[0].gpus_free, 4);
    fx_finish(f);
}

static void nobody_is_slowed_below_the_bounds(void **state)
{
    static const struct {
        uint32_t first, slo_first, second, slo_second;
        const char *params;
        bool together;
    } cases[] = {
        {0, 0, 1, 0, "", true},
        {0, 800, 1, 900, "", true},
        {0, 801, 1, 0, "", false}, /* the first has an SLO */
        {1, 0, 0, 801, "", false}, /* the second has */
        {1, 901, 0, 0, "", false},
        {0, 0, 2, 0, "", false}, /* 0 would keep 0.3 */
        {0, 0, 1, 0, "share.floor=0.8", true},
        {0, 0, 1, 0, "share.floor=0.81", false},
        {0, 0, 1, 0, "share.gain=1.7", true},
        {0, 0, 1, 0, "share.gain=1.701", false},
        {1, 0, 3, 0, "", false}, /* not measured */
        {1, 0, 3, 0, "share.unknown=true", true},
        {1, 1, 3, 0, "share.unknown=true", false}, /* an SLO takes no chances */
        {1, 0, 3, 1, "share.unknown=true", false},
        {0, 0, 3, 0, "share.unknown=true", false}, /* what is known counts: 0 would keep 0.3 */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct fx *f = world(1, 1, cases[i].params);
        uint32_t a = fx_submit(f, job(1, cases[i].first, cases[i].slo_first, 10));
        uint32_t b = fx_submit(f, job(1, cases[i].second, cases[i].slo_second, 10));

        fx_turn(f);
        assert_true(runs(f, a));
        assert_int_equal(runs(f, b), cases[i].together);
        fx_drain(f);
        fx_finish(f);
    }
}

static void who_does_not_ask_has_its_gpus_alone(void **state)
{
    struct fx *f = world(1, 1, "");
    struct stk_job_spec plain = job(1, 1, 0, 10);
    uint32_t a = fx_submit(f, job(1, 0, 0, 10)), b;

    (void)state;
    plain.demand.share_max = 0;
    b = fx_submit(f, plain);
    fx_turn(f);
    assert_true(runs(f, a) && !runs(f, b));
    fx_drain(f);
    fx_finish(f);
    f = world(1, 1, "share.all=true");
    a = fx_submit(f, job(1, 0, 0, 10));
    b = fx_submit(f, plain);
    fx_turn(f);
    assert_true(runs(f, a) && runs(f, b));
    fx_drain(f);
    fx_finish(f);
}

static void company_may_come_before_free_gpus(void **state)
{
    struct fx *f = world(2, 1, "share.first=join");
    uint32_t a = fx_submit(f, job(1, 0, 0, 10)), b = fx_submit(f, job(1, 1, 0, 10));

    (void)state;
    fx_turn(f);
    assert_int_equal(stk_pair_mate(f->s, a), b);
    assert_int_equal(f->s->pools[0].gpus_free, 1);
    fx_drain(f);
    fx_finish(f);
}

static void a_job_over_several_nodes_shares_all_of_them(void **state)
{
    struct fx *f = world(3, 2, "");
    uint32_t a = fx_submit(f, job(6, 0, 0, 10)), b = fx_submit(f, job(6, 1, 0, 10));
    struct stk_piece half = {{0}, 2, 1, 0, 3};

    (void)state;
    fx_turn(f);
    assert_int_equal(stk_pair_mate(f->s, a), b);
    assert_int_equal(fx_of(f, b)->n_pieces, 3);
    fx_drain(f);
    a = fx_submit(f, job(6, 0, 0, 10));
    fx_turn(f);
    b = fx_submit(f, job(2, 1, 0, 10));
    assert_int_equal(fx_place(f, b, &half, 1), -ENOSPC); /* not even when somebody says so */
    (void)a;
    fx_drain(f);
    fx_finish(f);
}

static void cpu_that_comes_back_lets_company_in(void **state)
{
    static const struct stk_node_spec node = {.gpus = 2, .cpu_milli = 8000};
    struct fx *f = fx_new(
        &(struct fx_setup){.place = "share", .nodes = &node, .n_nodes = 1, .speeds = &speeds});
    struct stk_job_spec big = job(1, 2, 0, 20), small = job(1, 0, 0, 100), late = job(1, 1, 0, 10);
    uint32_t a, b, c;

    (void)state;
    big.demand.cpu_milli = 4000;
    small.demand.cpu_milli = late.demand.cpu_milli = 3000;
    a = fx_submit(f, small);
    b = fx_submit(f, big);
    c = fx_submit(f, late);
    fx_turn(f);
    assert_true(runs(f, a) && runs(f, b) && !runs(f, c));
    fx_run(f, 20 * STK_SECOND);
    assert_true(runs(f, c));
    fx_drain(f);
    fx_finish(f);
}

static void who_gives_way_is_not_put_back_beside_the_one_it_gave_way_to(void **state)
{
    static const struct stk_node_spec node = {.gpus = 4};
    struct fx *f = fx_new(&(struct fx_setup){
        .order = "srtf", .preempt = "afresh", .nodes = &node, .n_nodes = 1, .speeds = &speeds});
    uint32_t a = fx_submit(f, job(4, 0, 0, 100)), b;

    (void)state;
    fx_turn(f);
    b = fx_submit(f, job(4, 1, 0, 10));
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_WAITING);
    assert_true(runs(f, b));
    assert_int_equal(stk_pair_mate(f->s, b), STK_NONE);
    fx_drain(f);
    fx_finish(f);
}

static void pairs_are_saved_and_loaded(void **state)
{
    struct fx *f = world(1, 2, "");
    uint32_t a = fx_submit(f, job(2, 0, 0, 10)), b = fx_submit(f, job(2, 1, 0, 10));
    struct stk_core *copy;

    (void)state;
    fx_turn(f);
    copy = fx_reload(f, f->core,
                     &(struct fx_setup){.place = "pack", .nodes = f->setup.nodes, .n_nodes = 1});
    assert_int_equal(stk_pair_mate(stk_core_state(copy), a), b);
    assert_int_equal(stk_core_digest(copy), fx_digest(f));
    stk_core_free(copy);
    fx_drain(f);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_gpus_come_first_then_company),
        cmocka_unit_test(who_is_left_alone_may_get_company_again),
        cmocka_unit_test(nobody_is_slowed_below_the_bounds),
        cmocka_unit_test(who_does_not_ask_has_its_gpus_alone),
        cmocka_unit_test(company_may_come_before_free_gpus),
        cmocka_unit_test(a_job_over_several_nodes_shares_all_of_them),
        cmocka_unit_test(cpu_that_comes_back_lets_company_in),
        cmocka_unit_test(who_gives_way_is_not_put_back_beside_the_one_it_gave_way_to),
        cmocka_unit_test(pairs_are_saved_and_loaded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
