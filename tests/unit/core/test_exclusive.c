/* SPDX-License-Identifier: Apache-2.0 */
/* test_exclusive.c - jobs that share no node with others: what is promised to them is kept, and
 * plans know that all of their nodes is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/fixture.h"

static const struct stk_node_spec node = {.gpus = 4};

static struct fx *one_node(const char *backfill)
{
    return fx_new(&(struct fx_setup){.nodes = &node,
                                     .n_nodes = 1,
                                     .order = "fifo",
                                     .backfill = backfill,
                                     .place = "pack",
                                     .sleep_pct = 100});
}

static struct stk_job_spec alone(uint32_t gpus, int64_t seconds)
{
    struct stk_job_spec spec = fx_job(gpus, seconds);

    spec.demand.exclusive = true;
    return spec;
}

/* A job without GPUs takes none of those that are reserved, but the node would not be empty. */
static void nobody_is_put_on_a_node_that_will_be_exclusive(void **state)
{
    struct fx *f = one_node("easy");
    uint32_t a = fx_submit(f, fx_job(1, 10)), x, cpu, wide, brief;

    (void)state;
    fx_turn(f);
    x = fx_submit(f, alone(2, 10));
    cpu = fx_submit(f, fx_job(0, 100));
    wide = fx_submit(f, fx_job(1, 100));
    brief = fx_submit(f, fx_job(0, 5));
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, x), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, cpu), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, wide), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, brief), STK_JOB_RUNNING); /* it has gone by then */
    fx_run(f, 10 * STK_SECOND);
    assert_int_equal(fx_state(f, x), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

/* The same of one that sleeps: it needs its own GPUs, and nobody else on the node. */
static void nobody_is_put_beside_one_that_will_wake(void **state)
{
    struct fx *f = one_node("easy");
    uint32_t x = fx_submit(f, alone(2, 10)), a, wide, cpu;

    (void)state;
    fx_turn(f);
    assert_int_equal(fx_suspend(f, x), 0);
    fx_turn(f);
    a = fx_submit(f, fx_job(1, 10));
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_job_event(f, STK_EV_RELEASE, x), 0);
    assert_int_equal(fx_update(f, x, 1000, 10 * STK_SECOND), 0);
    fx_turn(f);
    wide = fx_submit(f, fx_job(1, 100));
    cpu = fx_submit(f, fx_job(0, 100));
    fx_turn(f);
    assert_int_equal(fx_state(f, x), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, wide), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, cpu), STK_JOB_WAITING);
    fx_run(f, f->now + 10 * STK_SECOND);
    assert_int_equal(fx_state(f, x), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

static void a_plan_knows_that_the_node_is_taken(void **state)
{
    struct fx *f = one_node("conservative");
    uint32_t x = fx_submit(f, alone(1, 100)), b = fx_submit(f, fx_job(3, 10));

    (void)state;
    fx_turn(f);
    assert_int_equal(fx_state(f, x), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    assert_int_equal(fx_of(f, b)->planned, 100 * STK_SECOND);
    fx_drain(f);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_put_on_a_node_that_will_be_exclusive),
        cmocka_unit_test(nobody_is_put_beside_one_that_will_wake),
        cmocka_unit_test(a_plan_knows_that_the_node_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
