/* SPDX-License-Identifier: Apache-2.0 */
/* test_try.c - what would become of a job: the answer, and that asking changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/try.h"
#include "lib/world.h"

#define S STK_SECOND

static struct stk_try ask(struct fx *f, struct stk_job_spec spec)
{
    uint64_t before = fx_digest(f);
    struct stk_try t = {.n_pieces = 0};

    assert_int_equal(stk_core_try(f->core, &spec, f->now, &t, &f->err), 0);
    assert_true(fx_digest(f) == before);
    fx_sound(f);
    return t;
}

static void it_would_start_at_once(void **state)
{
    struct fx *f = fx_plain();
    struct stk_try t;

    (void)state;
    (void)fx_run_on(f, 0, 6, 0x3f);
    t = ask(f, fx_job(2, 10));
    assert_int_equal(t.answer, STK_TRY_NOW);
    assert_int_equal(t.n_pieces, 1);
    assert_int_equal(t.pieces[0].node.i, 0);
    assert_int_equal(t.pieces[0].mask, 0xc0);
    assert_int_equal(t.evicts, 0);
    fx_finish(f);
}

static void it_would_wait_for_others(void **state)
{
    struct fx *f = fx_plain();
    struct stk_try t;

    (void)state;
    (void)fx_run_on(f, 0, 8, 0xff); /* until 10 s */
    f->now = 4 * S;
    (void)fx_run_on(f, 1, 8, 0xff); /* until 14 s */
    t = ask(f, fx_job(8, 10));
    assert_int_equal(t.answer, STK_TRY_LATER);
    assert_true(t.at == 10 * S);
    assert_int_equal(t.why.code, STK_WHY_GPUS);
    (void)fx_submit(f, fx_job(8, 30)); /* that one is first */
    t = ask(f, fx_job(8, 10));
    assert_true(t.at == 14 * S);
    t = ask(f, fx_job(16, 10));
    assert_true(t.at == 40 * S);
    fx_finish(f);
}

static void it_would_take_the_place_of_another(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "priority", .preempt = "tier"});
    struct stk_job_spec spec = fx_job(8, 100);
    struct stk_try t;

    (void)state;
    spec.tier = STK_TIER_BEST_EFFORT;
    (void)fx_submit(f, spec);
    (void)fx_submit(f, spec);
    fx_turn(f);
    t = ask(f, fx_job(4, 10));
    assert_int_equal(t.answer, STK_TRY_NOW);
    assert_int_equal(t.evicts, 1);
    fx_finish(f);
}

static void it_could_never_start(void **state)
{
    const struct stk_dep dep = {1, STK_DEP_AFTERNOTOK, false};
    struct stk_job_spec spec = fx_job(1, 10);

    (void)state;
    for (uint32_t retain = 0; retain < 2; retain++) { /* it may be forgotten at once */
        struct fx *f = fx_new(&(struct fx_setup){.forget = true, .retain = retain});

        spec.n_deps = 0;
        (void)fx_submit(f, spec);
        fx_turn(f);
        spec.deps = &dep;
        spec.n_deps = 1;
        assert_int_equal(ask(f, spec).answer, STK_TRY_NEVER); /* when the other ends well */
        fx_finish(f);
    }
}

static void when_it_cannot_be_foreseen(void **state)
{
    struct fx *f = fx_plain();
    struct stk_job_spec spec = fx_job(1, 10);
    const struct stk_dep deps[2] = {{1, STK_DEP_AFTEROK, false}, {1, STK_DEP_AFTERNOTOK, false}};
    struct stk_try t;

    (void)state;
    (void)fx_submit(f, fx_job(16, 0)); /* has no estimate */
    (void)fx_decide(f);
    t = ask(f, spec);
    assert_int_equal(t.answer, STK_TRY_UNKNOWN);
    assert_int_equal(t.why.code, STK_WHY_GPUS);
    spec.held = true;
    t = ask(f, spec);
    assert_int_equal(t.answer, STK_TRY_UNKNOWN);
    assert_int_equal(t.why.code, STK_WHY_HELD);
    spec.held = false;
    spec.deps = deps;
    spec.n_deps = 1;
    t = ask(f, spec);
    assert_int_equal(t.answer, STK_TRY_UNKNOWN);
    assert_int_equal(t.why.code, STK_WHY_DEPENDENCY);
    assert_int_equal(fx_exit(f, 0, STK_CAUSE_OK), 0);
    spec.deps = &deps[1];
    t = ask(f, spec);
    assert_int_equal(t.answer, STK_TRY_NEVER);
    spec.n_deps = 0;
    spec.begin = f->now + 33 * S;
    t = ask(f, spec);
    assert_int_equal(t.answer, STK_TRY_LATER);
    assert_true(t.at == f->now + 33 * S);
    assert_int_equal(t.why.code, STK_WHY_BEGIN);
    fx_finish(f);
}

static void what_is_refused_is_refused(void **state)
{
    struct fx *f = fx_plain();
    struct stk_job_spec spec = fx_job(17, 10);
    const struct stk_dep dep = {7, STK_DEP_AFTEROK, false};
    struct stk_try t;

    (void)state;
    assert_int_equal(stk_core_try(f->core, &spec, 0, &t, &f->err), -ERANGE);
    spec = fx_job(1, 10);
    spec.deps = &dep;
    spec.n_deps = 1;
    assert_int_equal(stk_core_try(f->core, &spec, 0, &t, &f->err), -ENOENT);
    spec.n_deps = 0;
    spec.pool.i = 9;
    assert_int_equal(stk_core_try(f->core, &spec, 0, &t, &f->err), -EINVAL);
    spec.pool.i = 0;
    f->now = 5 * S;
    (void)fx_submit(f, spec);
    assert_int_equal(stk_core_try(f->core, &spec, 4 * S, &t, &f->err), -EINVAL);
    fx_finish(f);
}

static void without_memory_it_says_so(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "las", .preempt = "afresh"});
    const struct stk_job_spec spec = fx_job(1, 10);
    struct stk_try t;
    int rc = -ENOMEM;

    (void)state;
    (void)fx_submit(f, fx_job(16, 10));
    (void)fx_submit(f, fx_job(16, 10));
    fx_turn(f);
    for (uint64_t at = 1; rc != 0; at++) {
        uint64_t live = f->heap.live;

        f->heap.fail_at = f->heap.calls + at;
        rc = stk_core_try(f->core, &spec, f->now, &t, &f->err);
        f->heap.fail_at = 0;
        assert_true(rc == 0 || rc == -ENOMEM);
        assert_int_equal(f->heap.live, live);
        assert_true(at < 500);
    }
    fx_finish(f);
}

/* Where it says "now", it is now; and the answer of a quiet world comes true. */
static void the_answer_comes_true(void **state)
{
    uint32_t now = 0, later = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct world w = {.exact = true};
        struct stk_rng r;
        struct stk_dep deps[4];
        struct stk_job_spec spec;
        struct stk_try t;
        struct fx *f;
        uint32_t job;

        stk_rng_init(&r, seed);
        world_policies(&w, &r);
        world_cluster(&w, &r);
        w.exact = true;
        w.setup.forget = false;
        f = fx_new(&w.setup);
        for (int i = 0; i < 25; i++) {
            spec = world_job(&w, f, &r, deps);
            (void)fx_try_submit(f, &spec);
            fx_turn(f);
            fx_run(f, f->now + (stk_time)stk_rng_below(&r, 2000000));
        }
        spec = world_job(&w, f, &r, deps);
        if (stk_core_try(f->core, &spec, f->now, &t, &f->err) == 0) {
            job = fx_submit(f, spec);
            fx_turn(f);
            if (t.answer == STK_TRY_NOW) {
                now++;
                fx_must(fx_state(f, job) == STK_JOB_RUNNING, "it starts at once (%s)",
                        world_name(&w));
            } else if (t.answer == STK_TRY_LATER) {
                later++;
                fx_must(fx_state(f, job) != STK_JOB_RUNNING, "not at once (%s)", world_name(&w));
            }
        }
        fx_free(f);
    }
    assert_true(now > 30 && later > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_would_start_at_once),
        cmocka_unit_test(it_would_wait_for_others),
        cmocka_unit_test(it_would_take_the_place_of_another),
        cmocka_unit_test(it_could_never_start),
        cmocka_unit_test(when_it_cannot_be_foreseen),
        cmocka_unit_test(what_is_refused_is_refused),
        cmocka_unit_test(without_memory_it_says_so),
        cmocka_unit_test(the_answer_comes_true),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
