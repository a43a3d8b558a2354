/* SPDX-License-Identifier: Apache-2.0 */
/* test_pace.c - the sim engine where work is counted in steps: speeds by GPU type, spread and
 * company. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/sim/pace.h"
#include "sys/big.h"

/* Two kinds, two types. Kind 0: 10 and 4 steps/s, 5 over several nodes of type 0; kind 1: 2 and 1.
 * Together on type 0: 6 and 1; on type 1 they cannot share. */
static const double alone[] = {10, 5, 4, 4, 2, 2, 1, 1};
static const double beside[] = {-1, -1, 6, 0, 1, 0, -1, -1};
static const struct stk_speeds speeds = {2, 2, alone, beside};
static const struct stk_node_spec nodes[] = {{.gpus = 2}, {.gpus = 2}, {.gpu_type = 1, .gpus = 1}};

static struct stk_pace *make(stk_time steps)
{
    static struct stk_pace p;
    const struct stk_pace_config cfg = {
        .speeds = &speeds, .nodes = nodes, .n_nodes = 3, .steps = steps};

    assert_int_equal(stk_pace_init(&p, &cfg, &stk_big_mem), 0);
    assert_int_equal(stk_pace_work(&p, 0, 0, 100), 0);
    assert_int_equal(stk_pace_work(&p, 1, 1, 100), 0);
    return &p;
}

static void start(struct stk_pace *p, int64_t now, uint32_t job, uint32_t node, uint64_t mask)
{
    const struct stk_piece piece = {.node = {node}, .gpus = 1, .tasks = 1, .mask = mask};
    const struct stk_start s = {.job = {job}, .pieces = &piece, .n_pieces = 1};

    assert_int_equal(stk_pace_start(p, now * STK_SECOND, &s, 0), 0);
}

static void a_job_goes_as_fast_as_where_it_is(void **state)
{
    const struct stk_piece two[] = {{.node = {0}, .gpus = 1, .tasks = 1, .mask = 1},
                                    {.node = {1}, .gpus = 1, .tasks = 1, .mask = 1}};
    const struct stk_start s = {.job = {0}, .pieces = two, .n_pieces = 2};
    struct stk_pace *p = make(0);

    (void)state;
    start(p, 0, 0, 0, 1);
    assert_int_equal(stk_pace_end(p, 0), 10 * STK_SECOND);
    stk_pace_stop(p, 4 * STK_SECOND, 0);
    assert_int_equal(stk_pace_left(p, 0, 9 * STK_SECOND), 60);
    start(p, 20, 0, 2, 1);
    assert_int_equal(stk_pace_end(p, 0), 35 * STK_SECOND);
    stk_pace_stop(p, 25 * STK_SECOND, 0);
    assert_int_equal(stk_pace_start(p, 30 * STK_SECOND, &s, 2 * STK_SECOND), 0);
    assert_int_equal(stk_pace_end(p, 0), (30 + 2 + 8) * STK_SECOND);
    stk_pace_stop(p, 31 * STK_SECOND, 0);
    assert_int_equal(stk_pace_left(p, 0, 50 * STK_SECOND), 40); /* the delay was not over */
    stk_pace_done(p);
}

static void neighbours_come_and_go(void **state)
{
    struct stk_pace *p = make(0);

    (void)state;
    start(p, 0, 0, 0, 1);
    start(p, 1, 1, 0, 2); /* another GPU: no neighbour */
    assert_int_equal(p->n_changed, 1);
    assert_int_equal(stk_pace_end(p, 0), 10 * STK_SECOND);
    stk_pace_stop(p, 5 * STK_SECOND, 1);
    assert_int_equal(p->n_changed, 0);
    start(p, 5, 1, 0, 1); /* the same one, 50 and 92 steps to go */
    assert_int_equal(p->n_changed, 2);
    assert_int_equal(stk_pace_end(p, 0), 5 * STK_SECOND + 8333334);
    assert_int_equal(stk_pace_end(p, 1), (5 + 92) * STK_SECOND);
    stk_pace_stop(p, 10 * STK_SECOND, 1);
    assert_int_equal(stk_pace_end(p, 0), 12 * STK_SECOND); /* 20 steps left, at 10 again */
    stk_pace_done(p);
}

static void who_cannot_share_stands_still(void **state)
{
    struct stk_pace *p = make(0);

    (void)state;
    start(p, 0, 0, 2, 1);
    start(p, 10, 1, 2, 1);
    assert_int_equal(stk_pace_end(p, 0), STK_NEVER_TIME);
    assert_int_equal(stk_pace_end(p, 1), STK_NEVER_TIME);
    stk_pace_stop(p, 20 * STK_SECOND, 1);
    assert_int_equal(stk_pace_end(p, 0), (20 + 15) * STK_SECOND);
    stk_pace_done(p);
}

static void only_whole_steps_per_round_count(void **state)
{
    struct stk_pace *p = make(250 * STK_SECOND / 1000); /* 2 of 2.5 steps */

    (void)state;
    start(p, 0, 0, 0, 1);
    /* 49 rounds of 2 steps, then 2 steps at full speed */
    assert_int_equal(stk_pace_end(p, 0), 49 * 250000 + 200000);
    assert_int_equal(stk_pace_left(p, 0, STK_SECOND), 92);
    stk_pace_done(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_goes_as_fast_as_where_it_is),
        cmocka_unit_test(neighbours_come_and_go),
        cmocka_unit_test(who_cannot_share_stands_still),
        cmocka_unit_test(only_whole_steps_per_round_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
