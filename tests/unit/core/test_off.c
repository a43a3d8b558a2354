/* SPDX-License-Identifier: Apache-2.0 */
/* test_off.c - GPUs that take no new jobs: a fault, foreign use, an administrator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/fixture.h"

static void gpus_that_are_off_take_no_jobs(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job;

    (void)state;
    assert_int_equal(fx_gpus_off(f, 0, 0x0f), 0);
    assert_int_equal(fx_gpus_off(f, 1, 0xff), 0);
    assert_int_equal(f->s->nodes[0].gpus_free, 4);
    assert_int_equal(f->s->pools[0].gpus_free, 4);
    assert_int_equal(f->s->pools[0].gpus_off, 12);
    job = fx_submit(f, fx_job(4, 10));
    assert_int_equal(fx_place(f, job, &(struct stk_piece){{0}, 4, 1, 0, 0x1e}, 1), -ENOSPC);
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(f->s->pieces[fx_of(f, job)->first_piece].mask, 0xf0);
    job = fx_submit(f, fx_job(1, 10));
    assert_int_equal(fx_decide(f), 0);
    assert_int_equal(fx_gpus_off(f, 0, 0x0d), 0); /* a smaller mask frees the others */
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(f->s->pieces[fx_of(f, job)->first_piece].mask, 0x02);
    fx_finish(f);
}

static void gpus_to_be_used_last_are(void **state)
{
    struct fx *f = fx_plain();
    const struct stk_event ev = {
        .at = f->now, .type = STK_EV_GPUS_OFF, .u.off = {{0}, 0, 0x33, false}};
    uint32_t one, two, all;

    (void)state;
    assert_int_equal(fx_gpus_off(f, 1, 0xff), 0);
    assert_int_equal(fx_apply(f, &ev), 0);
    one = fx_submit(f, fx_job(1, 10));
    two = fx_submit(f, fx_job(2, 10));
    assert_int_equal(fx_decide(f), 2);
    assert_int_equal(f->s->pieces[fx_of(f, one)->first_piece].mask, 0x04);
    assert_int_equal(f->s->pieces[fx_of(f, two)->first_piece].mask, 0x48);
    all = fx_submit(f, fx_job(3, 10));
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(f->s->pieces[fx_of(f, all)->first_piece].mask, 0x83);
    fx_finish(f);
}

static void leases_go_on_and_their_gpus_stay_off(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = fx_run_on(f, 0, 4, 0x0f), next;

    (void)state;
    assert_int_equal(fx_gpus_off(f, 1, 0xff), 0);
    assert_int_equal(fx_gpus_off(f, 0, 0xf3), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    assert_int_equal(f->s->pools[0].gpus_free, 0);
    fx_sound(f);
    next = fx_submit(f, fx_job(2, 10));
    assert_int_equal(fx_decide(f), 0);
    assert_int_equal(fx_exit(f, job, STK_CAUSE_OK), 0);
    assert_int_equal(f->s->pools[0].gpus_free, 2);
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(f->s->pieces[fx_of(f, next)->first_piece].mask, 0x0c);
    assert_int_equal(fx_gpus_off(f, 0, 0), 0);
    assert_int_equal(f->s->pools[0].gpus_free, 6);
    fx_finish(f);
}

static void what_cannot_be_off(void **state)
{
    const struct stk_node_spec nodes[2] = {{.gpus = 4}, {.gpus = 80, .aggregate = true}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 2, .place = "count"});
    uint64_t before = fx_digest(f);

    (void)state;
    assert_int_equal(fx_gpus_off(f, 1, 1), -EINVAL);
    assert_int_equal(fx_gpus_off(f, 0, 0x10), -EINVAL);
    assert_int_equal(fx_gpus_off(f, 2, 0), -EINVAL);
    assert_true(fx_digest(f) == before);
    fx_finish(f);
}

static void admission_counts_them_and_why_tells(void **state)
{
    struct fx *f = fx_plain();
    struct stk_reason r;
    uint32_t job;

    (void)state;
    assert_int_equal(fx_gpus_off(f, 0, 0xff), 0);
    assert_int_equal(fx_gpus_off(f, 1, 0x01), 0);
    job = fx_submit(f, fx_job(16, 10));
    assert_int_equal(stk_core_why(f->core, (stk_job_id){job}, &r, NULL), 0);
    assert_int_equal(r.code, STK_WHY_GPUS);
    assert_int_equal(r.have, 7);
    assert_int_equal(r.off, 9);
    fx_finish(f);
}

static void a_node_that_goes_and_comes_keeps_them_off(void **state)
{
    struct fx *f = fx_plain();

    (void)state;
    assert_int_equal(fx_gpus_off(f, 0, 0x0f), 0);
    assert_int_equal(fx_node(f, 0, false), 0);
    assert_int_equal(fx_gpus_off(f, 0, 0x07), 0);
    fx_sound(f);
    assert_int_equal(fx_node(f, 0, true), 0);
    assert_int_equal(f->s->pools[0].gpus_free, 13);
    fx_finish(f);
}

static void nobody_is_evicted_for_gpus_that_are_off(void **state)
{
    static const struct fx_setup setups[] = {{.order = "priority", .preempt = "tier"},
                                             {.order = "srtf", .preempt = "afresh"}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct fx *f = fx_new(&setups[i]);
        struct stk_job_spec spec = fx_job(8, 1000);
        uint32_t low;

        spec.tier = STK_TIER_BEST_EFFORT;
        low = fx_submit(f, spec);
        fx_turn(f);
        assert_int_equal(fx_gpus_off(f, f->s->pieces[fx_of(f, low)->first_piece].node.i, 0xff), 0);
        spec = fx_job(16, 10);
        spec.tier = STK_TIER_CRITICAL;
        (void)fx_submit(f, spec);
        assert_int_equal(fx_decide(f), 0);
        assert_int_equal(fx_state(f, low), STK_JOB_RUNNING);
        spec = fx_job(8, 10); /* the other node is free all the same */
        (void)fx_submit(f, spec);
        assert_int_equal(fx_decide(f), 1);
        fx_finish(f);
    }
}

static void easy_promises_nothing_on_them(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.backfill = "easy"});
    uint32_t head;

    (void)state;
    (void)fx_run_on(f, 0, 8, 0xff);            /* ends at 10 s */
    assert_int_equal(fx_gpus_off(f, 0, 1), 0); /* and then leaves 7 */
    f->now += 5 * STK_SECOND;
    (void)fx_run_on(f, 1, 1, 1); /* ends at 15 s */
    head = fx_submit(f, fx_job(8, 10));
    assert_int_equal(fx_decide(f), 0);
    assert_int_equal(f->s->pools[0].resv_job, head);
    assert_true(f->s->pools[0].resv_at == 15 * STK_SECOND);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_that_are_off_take_no_jobs),
        cmocka_unit_test(gpus_to_be_used_last_are),
        cmocka_unit_test(leases_go_on_and_their_gpus_stay_off),
        cmocka_unit_test(what_cannot_be_off),
        cmocka_unit_test(admission_counts_them_and_why_tells),
        cmocka_unit_test(a_node_that_goes_and_comes_keeps_them_off),
        cmocka_unit_test(nobody_is_evicted_for_gpus_that_are_off),
        cmocka_unit_test(easy_promises_nothing_on_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
