/* SPDX-License-Identifier: Apache-2.0 */
/* test_fork.c - a fork is a core of its own, equal at first. That it goes on to decide the same is
 * a property (prop_core.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/world.h"

static void neither_notices_what_happens_to_the_other(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = fx_submit(f, fx_job(4, 10));
    const struct stk_event cancel = {.at = 0, .type = STK_EV_CANCEL, .job = {job}};
    struct stk_core *fork = NULL;
    uint64_t before = fx_digest(f), after;

    (void)state;
    assert_int_equal(stk_core_fork(f->core, &fork, &f->err), 0);
    assert_int_equal(stk_core_apply(fork, &cancel, &f->err), 0);
    after = stk_core_digest(fork);
    assert_true(before == fx_digest(f));
    assert_true(before != after);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    stk_core_free(fork);
    fx_drain(f);
    fx_finish(f);
}

static void a_fork_outlives_its_original(void **state)
{
    struct fx *f = fx_plain();
    struct stk_core *fork = NULL;

    (void)state;
    (void)fx_run_on(f, 0, 8, 0xff);
    (void)fx_submit(f, fx_job(16, 10));
    assert_int_equal(stk_core_fork(f->core, &fork, &f->err), 0);
    stk_core_free(f->core);
    f->core = fork;
    f->s = stk_core_state(fork);
    fx_drain(f);
    fx_finish(f);
}

static void a_fork_that_cannot_be_made_leaves_nothing(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 40; i++) {
        struct world w = {.exact = false};
        struct stk_core *fork = NULL;
        struct stk_rng r;
        uint64_t live, from;
        struct fx *f;
        int rc = -ENOMEM;

        stk_rng_init(&r, i);
        world_policies(&w, &r);
        world_cluster(&w, &r);
        f = fx_new(&w.setup);
        for (int k = 0; k < 20; k++) {
            world_act(&w, f, &r);
            fx_turn(f);
        }
        live = f->heap.live;
        from = f->heap.calls;
        for (uint64_t at = 1; rc < 0; at++) {
            f->heap.fail_at = f->heap.calls + at;
            rc = stk_core_fork(f->core, &fork, NULL);
            assert_true(rc == 0 || rc == -ENOMEM);
            assert_true(rc == 0 || f->heap.live == live);
            f->heap.fail_at = 0;
        }
        assert_true(f->heap.calls > from + 100);
        fx_sound(f);
        stk_core_free(fork);
        assert_true(f->heap.live == live);
        fx_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neither_notices_what_happens_to_the_other),
        cmocka_unit_test(a_fork_outlives_its_original),
        cmocka_unit_test(a_fork_that_cannot_be_made_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
