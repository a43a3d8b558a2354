/* SPDX-License-Identifier: Apache-2.0 */
/* test_update.c - a job that has not started asks for something else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/fixture.h"

#define S STK_SECOND

static void it_starts_with_fewer_gpus(void **state)
{
    struct fx *f = fx_plain();
    struct stk_job_spec spec = fx_job(8, 100);
    uint32_t a, b;

    (void)state;
    (void)fx_run_on(f, 0, 8, 0xff);
    (void)fx_run_on(f, 1, 4, 0x0f);
    a = fx_submit(f, spec);
    b = fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    spec.demand.gpus = 4;
    assert_int_equal(fx_change(f, b, &spec), 0);
    fx_sound(f);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    assert_int_equal(fx_of(f, b)->gpus, 4);
    fx_finish(f);
}

static void it_keeps_its_place(void **state)
{
    struct fx *f = fx_plain();
    struct stk_job_spec spec = fx_job(16, 100);
    uint32_t first, second, other;

    (void)state;
    other = fx_run_on(f, 0, 8, 0xff);
    first = fx_submit(f, spec);
    f->now = 2 * S;
    second = fx_submit(f, fx_job(16, 100));
    spec.demand.gpus = 12;
    assert_int_equal(fx_change(f, first, &spec), 0);
    assert_true(fx_of(f, first)->queued == 0 && fx_of(f, first)->number < fx_of(f, second)->number);
    assert_int_equal(fx_exit(f, other, STK_CAUSE_OK), 0);
    fx_turn(f);
    assert_int_equal(fx_state(f, first), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, second), STK_JOB_WAITING);
    fx_finish(f);
}

static void it_goes_to_another_pool(void **state)
{
    static const struct stk_node_spec nodes[2] = {{.gpus = 8}, {.gpus = 8, .pool = {1}}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 2, .n_pools = 2});
    struct stk_job_spec spec = fx_job(8, 100);
    uint32_t a;

    (void)state;
    (void)fx_run_on(f, 0, 8, 0xff);
    a = fx_submit(f, spec);
    fx_turn(f);
    spec.pool.i = 1;
    assert_int_equal(fx_change(f, a, &spec), 0);
    fx_sound(f);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    fx_finish(f);
}

static void its_begin_and_its_terms_change(void **state)
{
    struct fx *f = fx_plain();
    struct stk_job_spec spec = fx_job(8, 100);
    uint32_t a, b;

    (void)state;
    spec.begin = 50 * S;
    a = fx_submit(f, spec);
    b = fx_submit(f, fx_job(8, 100));
    assert_int_equal(fx_state(f, a), STK_JOB_BLOCKED);
    spec.terms.deadline = 500 * S;
    assert_int_equal(fx_change(f, b, &spec), 0);
    assert_int_equal(fx_state(f, b), STK_JOB_BLOCKED);
    spec.begin = 0;
    assert_int_equal(fx_change(f, a, &spec), 0);
    assert_int_equal(fx_state(f, a), STK_JOB_WAITING);
    assert_true(f->s->terms[a].deadline == 500 * S);
    fx_sound(f);
    fx_run(f, 50 * S);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    fx_finish(f);
}

static void what_cannot_be_is_refused(void **state)
{
    static const struct stk_dep dep = {.on = 1, .type = STK_DEP_AFTEROK};
    struct fx *f = fx_plain();
    struct stk_job_spec spec = fx_job(16, 100);
    uint32_t running, a;
    uint64_t before;

    (void)state;
    running = fx_run_on(f, 0, 8, 0xff);
    a = fx_submit(f, spec);
    before = fx_digest(f);
    spec.demand.gpus = 17;
    assert_int_equal(fx_change(f, a, &spec), -ERANGE);
    spec.demand.gpus = 1;
    assert_int_equal(fx_change(f, running, &spec), -EPROTO);
    spec.deps = &dep;
    spec.n_deps = 1;
    assert_int_equal(fx_change(f, a, &spec), -EINVAL);
    assert_true(fx_digest(f) == before);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_starts_with_fewer_gpus),
        cmocka_unit_test(it_keeps_its_place),
        cmocka_unit_test(it_goes_to_another_pool),
        cmocka_unit_test(its_begin_and_its_terms_change),
        cmocka_unit_test(what_cannot_be_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
