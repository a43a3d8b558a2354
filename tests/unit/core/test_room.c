/* SPDX-License-Identifier: Apache-2.0 */
/* test_room.c - what limits where a job may run: nodes that are down, CPU and memory, GPU types,
 * pools; and that demands which look alike are tried again when they should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/fixture.h"

static void refuse_place(struct fx *f, uint32_t job, const struct stk_piece *p, uint32_t n, int rc)
{
    uint64_t before = fx_digest(f);

    assert_int_equal(fx_place(f, job, p, n), rc);
    assert_true(fx_digest(f) == before);
    assert_int_equal(fx_state(f, job), STK_JOB_WAITING);
    fx_sound(f);
}

static void a_node_that_is_down_takes_no_job_and_gives_its_gpus_back_later(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = fx_run_on(f, 0, 4, 0x0f), next;

    (void)state;
    assert_int_equal(fx_node(f, 0, false), 0);
    assert_int_equal(fx_node(f, 0, false), 0); /* twice is fine */
    assert_int_equal(f->s->pools[0].gpus_free, 8);
    next = fx_submit(f, fx_job(12, 10));
    fx_turn(f);
    assert_int_equal(fx_state(f, next), STK_JOB_WAITING);
    assert_int_equal(fx_exit(f, job, STK_CAUSE_NODE_LOST), 0);
    assert_int_equal(fx_of(f, job)->cause, STK_CAUSE_NODE_LOST);
    assert_int_equal(f->s->pools[0].gpus_free, 8);
    fx_turn(f);
    assert_int_equal(fx_state(f, next), STK_JOB_WAITING);
    assert_int_equal(fx_node(f, 0, true), 0);
    assert_int_equal(f->s->pools[0].gpus_free, 16);
    fx_turn(f);
    assert_int_equal(fx_state(f, next), STK_JOB_RUNNING);
    assert_int_equal(fx_node(f, 2, true), -EINVAL);
    assert_int_equal(fx_node(f, UINT32_MAX, false), -EINVAL);
    fx_finish(f);
}

static void cpu_and_memory_limit_what_a_node_takes(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 8, .cpu_milli = 4000, .mem_mib = 1000}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 1});
    struct stk_job_spec spec = fx_job(1, 10);
    uint32_t a, b, c;

    (void)state;
    spec.demand.cpu_milli = 2500;
    a = fx_submit(f, spec);
    b = fx_submit(f, spec);
    spec.demand.cpu_milli = 0;
    spec.demand.mem_mib = 1000;
    c = fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, c), STK_JOB_RUNNING);
    fx_drain(f);
    assert_int_equal(fx_of(f, b)->started, 10 * STK_SECOND);
    spec.demand.mem_mib = 1001;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    fx_finish(f);
}

static void a_job_takes_only_gpu_types_it_accepts(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 8}, {.gpus = 8, .gpu_type = 63}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 2});
    struct stk_job_spec spec = fx_job(1, 10);
    const struct stk_piece wrong = {{0}, 1, 1, 0, 1};
    uint32_t job;

    (void)state;
    spec.demand.gpu_types = UINT64_C(1) << 63;
    job = fx_submit(f, spec);
    refuse_place(f, job, &wrong, 1, -EINVAL);
    fx_turn(f);
    assert_int_equal(f->s->pieces[fx_of(f, job)->first_piece].node.i, 1);
    spec.demand.gpus = 16;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    fx_finish(f);
}

static void pools_are_independent(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 4, .pool = {1}}, {.gpus = 4, .pool = {0}}};
    struct fx *f =
        fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 2, .n_pools = 3, .backfill = "none"});
    struct stk_job_spec spec = fx_job(4, 10);
    const struct stk_piece wrong = {{0}, 4, 1, 0, 0x0f};
    uint32_t a, b, c;

    (void)state;
    a = fx_submit(f, spec);
    b = fx_submit(f, spec);
    spec.pool.i = 1;
    c = fx_submit(f, spec);
    refuse_place(f, a, &wrong, 1, -EINVAL);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, c), STK_JOB_RUNNING);
    spec.pool.i = 2; /* a pool without nodes */
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    fx_finish(f);
}

/* ---- shapes ---- */

static void a_shape_whose_last_waiting_job_left_is_tried_again(void **state)
{
    struct fx *f = fx_plain();
    uint32_t big = fx_submit(f, fx_job(16, 10)), job = fx_submit(f, fx_job(4, 10));

    (void)state;
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_WAITING);
    assert_int_equal(fx_cancel(f, job), 0);
    fx_run(f, 20 * STK_SECOND);
    assert_int_equal(fx_state(f, big), STK_JOB_DONE);
    job = fx_submit(f, fx_job(4, 10));
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    fx_finish(f);
}

static void thousands_of_different_demands_come_and_go(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.forget = true, .retain = 10});

    (void)state;
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 5000; i++) {
            struct stk_job_spec spec = fx_job(1, 1);

            spec.demand.cpu_milli = 1 + i + round * 2500;
            (void)fx_submit(f, spec);
        }
        fx_sound(f);
        fx_drain(f);
        assert_int_equal(f->s->n_live, 0);
        fx_sound(f);
    }
    assert_true(f->s->n_shapes < 10000); /* rows are used again */
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_is_down_takes_no_job_and_gives_its_gpus_back_later),
        cmocka_unit_test(cpu_and_memory_limit_what_a_node_takes),
        cmocka_unit_test(a_job_takes_only_gpu_types_it_accepts),
        cmocka_unit_test(pools_are_independent),
        cmocka_unit_test(a_shape_whose_last_waiting_job_left_is_tried_again),
        cmocka_unit_test(thousands_of_different_demands_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
