/* SPDX-License-Identifier: Apache-2.0 */
/* test_swap.c - the engine took other GPUs than were decided, and the books have that. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/fixture.h"

/* 'ev' says what was swapped. */
static int swapped(struct fx *f, uint32_t job, struct stk_event ev)
{
    ev.at = f->now;
    ev.type = STK_EV_SWAPPED;
    ev.job.i = job;
    ev.lease = fx_of(f, job)->lease;
    return fx_apply(f, &ev);
}

static int swap(struct fx *f, uint32_t job, uint32_t had, uint32_t has, uint32_t with)
{
    return swapped(
        f, job,
        (struct stk_event){
            .u.swap = {.had = UINT64_C(1) << had, .has = UINT64_C(1) << has, .with = {with}}});
}

static uint64_t mask_of(const struct fx *f, uint32_t job)
{
    return f->s->pieces[fx_of(f, job)->first_piece].mask;
}

static uint32_t placed(struct fx *f, uint64_t mask)
{
    uint32_t n = (uint32_t)__builtin_popcountll(mask), job = fx_submit(f, fx_job(n, 100));

    assert_int_equal(fx_place(f, job, &(struct stk_piece){{0}, n, 1, 0, mask}, 1), 0);
    return job;
}

static void a_gpu_that_was_free_is_had_in_place_of_another(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = placed(f, 0x03);

    (void)state;
    assert_int_equal(swap(f, job, 1, 6, STK_NONE), 0);
    assert_int_equal(mask_of(f, job), 0x41);
    assert_int_equal(f->s->nodes[0].mask_free, 0xbe);
    assert_int_equal(f->s->nodes[0].gpus_free, 6);
    assert_int_equal(swap(f, job, 1, 2, STK_NONE), -ESTALE); /* it does not have it any more */
    fx_finish(f);
}

static void two_jobs_change_places(void **state)
{
    struct fx *f = fx_plain();
    uint32_t a = placed(f, 0x03), b = placed(f, 0x0c);

    (void)state;
    assert_int_equal(swap(f, a, 0, 2, STK_NONE), -ESTALE); /* it is somebody's */
    assert_int_equal(swap(f, a, 0, 2, b), 0);
    assert_int_equal(mask_of(f, a), 0x06);
    assert_int_equal(mask_of(f, b), 0x09);
    assert_int_equal(swap(f, a, 1, 7, b), -ESTALE); /* it is not the other's */
    assert_int_equal(swap(f, a, 1, 9, STK_NONE), -EINVAL);
    assert_int_equal(f->s->nodes[0].mask_free, 0xf0);
    fx_finish(f);
}

static void one_that_is_off_can_be_had(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = placed(f, 0x01);

    (void)state;
    assert_int_equal(fx_gpus_off(f, 0, 0xf0), 0);
    assert_int_equal(swap(f, job, 0, 7, STK_NONE), 0);
    assert_int_equal(f->s->nodes[0].mask_free, 0x0f);
    assert_int_equal(f->s->nodes[0].gpus_free, 4);
    assert_int_equal(fx_exit(f, job, STK_CAUSE_OK), 0);
    assert_int_equal(f->s->nodes[0].mask_free, 0x0f);
    fx_finish(f);
}

static void parts_are_not_swapped(void **state)
{
    struct fx *f = fx_plain();
    struct stk_job_spec half = fx_job(1, 100);
    uint32_t job;

    (void)state;
    half.demand.gpu_milli = 500;
    half.demand.cut = false;
    job = fx_submit(f, half);
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(swap(f, job, 0, 1, STK_NONE), -ESTALE);
    fx_finish(f);
}

/* Three tasks of two GPUs: two on node 0, one on node 1. */
static uint32_t gang(struct fx *f)
{
    struct stk_job_spec spec = fx_job(2, 100);
    uint32_t job;

    spec.demand.tasks = 3;
    spec.demand.cut = false;
    job = fx_submit(f, spec);
    assert_int_equal(
        fx_place(f, job, (struct stk_piece[]){{{0}, 4, 2, 0, 0x0f}, {{1}, 2, 1, 0, 0x03}}, 2), 0);
    return job;
}

static int shift(struct fx *f, uint32_t job, uint32_t from, uint64_t had, uint64_t has)
{
    return swapped(
        f, job,
        (struct stk_event){
            .u.swap = {
                .node = {from}, .to = {1 - from}, .had = had, .has = has, .with = {STK_NONE}}});
}

static void tasks_lie_on_another_of_its_nodes(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = gang(f);
    const struct stk_piece *p = &f->s->pieces[fx_of(f, job)->first_piece];

    (void)state;
    assert_int_equal(shift(f, job, 0, 0x03, 0x30), 0);
    assert_true(p[0].tasks == 1 && p[0].gpus == 2 && p[0].mask == 0x0c);
    assert_true(p[1].tasks == 2 && p[1].gpus == 4 && p[1].mask == 0x33);
    assert_int_equal(f->s->nodes[0].mask_free, 0xf3);
    assert_int_equal(f->s->nodes[1].mask_free, 0xcc);
    assert_int_equal(shift(f, job, 1, 0x03, 0x03), 0);
    assert_int_equal(fx_exit(f, job, STK_CAUSE_OK), 0);
    assert_int_equal(f->s->nodes[0].gpus_free + f->s->nodes[1].gpus_free, 16);
    fx_finish(f);
}

static void half_a_task_does_not_nor_do_all_of_a_node(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = gang(f), other = placed(f, 0x80);

    (void)state;
    (void)other;
    assert_int_equal(shift(f, job, 0, 0x01, 0x10), -ESTALE);
    assert_int_equal(shift(f, job, 0, 0x0f, 0xf0), -ESTALE);
    assert_int_equal(shift(f, job, 0, 0x03, 0x10), -EINVAL);
    assert_int_equal(shift(f, job, 0, 0x30, 0x30), -ESTALE); /* it does not have them */
    assert_int_equal(shift(f, job, 0, 0x03, 0x03), -ESTALE); /* it has these */
    assert_int_equal(shift(f, job, 1, 0x03, 0xc0), -ESTALE); /* all of a node, and another's */
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_that_was_free_is_had_in_place_of_another),
        cmocka_unit_test(two_jobs_change_places),
        cmocka_unit_test(one_that_is_off_can_be_had),
        cmocka_unit_test(parts_are_not_swapped),
        cmocka_unit_test(tasks_lie_on_another_of_its_nodes),
        cmocka_unit_test(half_a_task_does_not_nor_do_all_of_a_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
