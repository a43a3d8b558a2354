/* SPDX-License-Identifier: Apache-2.0 */
/* test_advised.c - jobs run where an adviser says, and nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/fixture.h"

static const struct stk_node_spec nodes[] = {
    {.gpu_type = 0, .gpus = 1}, {.gpu_type = 0, .gpus = 1}, {.gpu_type = 1, .gpus = 4}};
static const struct fx_setup setup = {.order = "advised",
                                      .preempt = "advised",
                                      .params = "hetero.round_s=10",
                                      .nodes = nodes,
                                      .n_nodes = 3};

static int advise(struct fx *f, uint32_t job, uint32_t where, int32_t rank)
{
    const struct stk_event ev = {
        .at = f->now, .type = STK_EV_ADVISE, .job = {job}, .u.advice = {where, rank}};

    return fx_apply(f, &ev);
}

static uint32_t node_of(const struct fx *f, uint32_t job)
{
    return f->s->pieces[fx_of(f, job)->first_piece].node.i;
}

static void round_at(struct fx *f, int64_t seconds)
{
    f->now = seconds * STK_SECOND;
    fx_turn(f);
}

static void nothing_runs_that_was_not_advised(void **state)
{
    struct fx *f = fx_new(&setup);
    uint32_t a = fx_submit(f, fx_job(1, 100)), b = fx_submit(f, fx_job(1, 100));

    (void)state;
    assert_int_equal(advise(f, b, 2, 0), 0);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    assert_int_equal(node_of(f, b), 2);
    assert_int_equal(fx_cancel(f, a), 0);
    fx_drain(f);
    fx_finish(f);
}

static void a_job_moves_at_the_next_round(void **state)
{
    struct fx *f = fx_new(&setup);
    uint32_t a = fx_submit(f, fx_job(2, 100));

    (void)state;
    assert_int_equal(advise(f, a, 1, 0), 0);
    fx_turn(f);
    assert_int_equal(fx_of(f, a)->n_pieces, 2); /* cut as the nodes of that type want it */
    f->now = 5 * STK_SECOND;
    assert_int_equal(advise(f, a, 2, 0), 0);
    fx_turn(f);
    assert_int_equal(fx_of(f, a)->n_pieces, 2); /* not between rounds */
    round_at(f, 10);
    assert_int_equal(fx_of(f, a)->n_pieces, 1);
    assert_int_equal(node_of(f, a), 2);
    assert_int_equal(fx_of(f, a)->preemptions, 1);
    round_at(f, 20);
    assert_int_equal(fx_of(f, a)->preemptions, 1);
    assert_int_equal(advise(f, a, 0, 0), 0);
    round_at(f, 30);
    assert_int_equal(fx_state(f, a), STK_JOB_WAITING);
    assert_int_equal(fx_cancel(f, a), 0);
    fx_drain(f);
    fx_finish(f);
}

static void the_first_in_line_get_what_there_is(void **state)
{
    struct fx *f = fx_new(&setup);
    uint32_t job[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        job[i] = fx_submit(f, fx_job(1, 100));
        assert_int_equal(advise(f, job[i], 1, -i), 0);
    }
    fx_turn(f);
    assert_int_equal(fx_state(f, job[0]), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, job[1]), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, job[2]), STK_JOB_RUNNING);
    fx_drain(f);
    assert_int_equal(fx_state(f, job[0]), STK_JOB_DONE);
    fx_finish(f);
}

static void advice_that_makes_no_sense_is_refused(void **state)
{
    struct fx *f = fx_new(&setup), *g = fx_plain();
    uint32_t a = fx_submit(f, fx_job(1, 10)), b = fx_submit(g, fx_job(1, 10));

    (void)state;
    assert_int_equal(advise(f, a, STK_MAX_GPU_TYPES + 1, 0), -EINVAL);
    assert_int_equal(advise(f, a, STK_MAX_GPU_TYPES, INT32_MIN), 0);
    assert_int_equal(advise(g, b, 1, 0), -EINVAL); /* its order takes none */
    assert_int_equal(fx_cancel(f, a), 0);
    fx_finish(f);
    fx_drain(g);
    fx_finish(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_runs_that_was_not_advised),
        cmocka_unit_test(a_job_moves_at_the_next_round),
        cmocka_unit_test(the_first_in_line_get_what_there_is),
        cmocka_unit_test(advice_that_makes_no_sense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
