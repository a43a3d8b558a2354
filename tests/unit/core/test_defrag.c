/* SPDX-License-Identifier: Apache-2.0 */
/* test_defrag.c - running jobs move so that one that fragments keep waiting can start; nobody loses
 * a place, and not more move than may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/defrag.h"
#include "core/part.h"
#include "lib/world.h"
#include "policy/registry.h"

static const struct stk_node_spec nodes[] = {{.gpus = 4}, {.gpus = 4}, {.gpus = 4}};

static struct fx *start(const char *place, const char *params, stk_time slow)
{
    return fx_new(&(struct fx_setup){.nodes = nodes,
                                     .n_nodes = 3,
                                     .order = "priority",
                                     .backfill = "skip",
                                     .place = place,
                                     .params = params,
                                     .slow_stop = slow});
}

static uint32_t node_of(const struct fx *f, uint32_t job)
{
    assert_int_equal(fx_of(f, job)->n_pieces, 1);
    return f->s->pieces[fx_of(f, job)->first_piece].node.i;
}

static void one_moves_and_both_run(void **state)
{
    struct fx *f = start("pack", "defrag.most=1000 defrag.jobs=all", 0);
    uint32_t a = fx_run_on(f, 0, 3, 7), b = fx_run_on(f, 1, 1, 1), c = fx_run_on(f, 2, 3, 7), x;

    (void)state;
    x = fx_submit(f, fx_job(4, 50));
    fx_turn(f);
    assert_int_equal(fx_state(f, x), STK_JOB_RUNNING);
    assert_int_equal(node_of(f, x), 1);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    assert_int_equal(node_of(f, b), 0);
    assert_int_equal(fx_of(f, b)->preemptions, 0);
    assert_int_equal(f->s->n_moved, 1);
    assert_int_equal(f->s->n_moving, 0);
    assert_int_equal(fx_of(f, a)->restarts + fx_of(f, c)->restarts, 0);
    fx_finish(f);
}

static void two_move_where_one_does_not_do(void **state)
{
    struct fx *f = start("pack", "defrag.most=1000 defrag.jobs=all", 0);
    uint32_t a = fx_run_on(f, 1, 1, 1), b = fx_run_on(f, 1, 1, 2), x;

    (void)state;
    (void)fx_run_on(f, 0, 3, 7);
    (void)fx_run_on(f, 2, 3, 7);
    x = fx_submit(f, fx_job(4, 50));
    fx_turn(f);
    assert_int_equal(fx_state(f, x), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    assert_int_equal(f->s->n_moved, 2);
    fx_finish(f);
}

static void nobody_moves(void **state)
{
    static const char *const params[] = {"", "defrag.most=300 defrag.jobs=all",
                                         "defrag.most=1000 defrag.jobs=all",
                                         "defrag.most=1000 defrag.jobs=all"};

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct fx *f = start("pack", params[i], 0);
        uint32_t x;

        (void)fx_run_on(f, 0, i == 2 ? 4 : 3, i == 2 ? 15 : 7); /* then there is no room for it */
        (void)fx_run_on(f, 1, 1, 1);
        (void)fx_run_on(f, 2, i == 2 ? 4 : 3, i == 2 ? 15 : 7);
        x = fx_submit(f, fx_job(i == 3 ? 8 : 4, 50)); /* for 8, not enough is free */
        fx_turn(f);
        assert_int_equal(fx_state(f, x), STK_JOB_WAITING);
        assert_int_equal(f->s->n_moved, 0);
        fx_finish(f);
    }
}

static void parts_move_together(void **state)
{
    struct fx *f = start("spread", "defrag.most=1000 defrag.jobs=all", 0);
    struct stk_job_spec part = fx_job(1, 500);
    uint32_t job[12], x;

    (void)state;
    part.demand.cut = false;
    part.demand.gpu_milli = 300;
    for (int i = 0; i < 12; i++)
        job[i] = fx_submit(f, part);
    fx_turn(f);
    assert_int_equal(f->s->pools[0].gpus_free, 0);
    x = fx_submit(f, fx_job(1, 50));
    fx_turn(f);
    assert_int_equal(fx_state(f, x), STK_JOB_RUNNING);
    for (int i = 0; i < 12; i++)
        assert_int_equal(fx_state(f, job[i]), STK_JOB_RUNNING);
    assert_int_equal(f->s->n_moved, 1);
    fx_finish(f);
}

/* While it stops, nobody takes either place; held or cancelled, it just stops. */
/* Jobs that may have company have whole GPUs: they move, and others move for them. */
static void who_may_have_company_moves(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 3; k++) { /* it moves; it waits; both */
        struct fx *f = start("pack", "defrag.most=1000 defrag.jobs=all", 0);
        struct stk_job_spec small = fx_job(2, 100), large = fx_job(4, 50);
        const struct stk_piece at = {{1}, 2, 1, 0, 3};
        uint32_t b, x;

        (void)fx_run_on(f, 0, 2, 3);
        (void)fx_run_on(f, 2, 3, 7);
        small.demand.share_max = k == 1 ? 0 : 2;
        large.demand.share_max = k == 0 ? 0 : 2;
        b = fx_submit(f, small);
        assert_int_equal(fx_place(f, b, &at, 1), 0);
        x = fx_submit(f, large);
        fx_turn(f);
        assert_int_equal(fx_state(f, x), STK_JOB_RUNNING);
        assert_int_equal(fx_of(f, b)->lease != 0, true);
        assert_int_equal(f->s->n_moved, 1);
        fx_finish(f);
    }
}

static void they_have_time(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct fx *f = start("pack", "defrag.most=1000 defrag.jobs=all", 5 * STK_SECOND);
        struct stk_core *again;
        uint32_t b, x, later[3];

        (void)fx_run_on(f, 0, 3, 7);
        b = fx_run_on(f, 1, 1, 1);
        (void)fx_run_on(f, 2, 3, 7);
        x = fx_submit(f, fx_job(4, 50));
        fx_turn(f);
        assert_int_equal(fx_state(f, b), STK_JOB_STOPPING);
        assert_true(fx_of(f, b)->moving);
        for (int k = 0; k < 3; k++)
            later[k] = fx_submit(f, fx_job(1, 50));
        again = fx_reload(f, f->core, NULL);
        assert_true(stk_core_digest(again) == fx_digest(f));
        assert_int_equal(stk_core_state(again)->n_moving, 1);
        stk_core_free(again);
        if (i == 1)
            assert_int_equal(fx_job_event(f, STK_EV_HOLD, b), 0);
        if (i == 2)
            assert_int_equal(fx_cancel(f, b), 0);
        if (i == 3)
            assert_int_equal(fx_cancel(f, x), 0);
        fx_run(f, f->now + 6 * STK_SECOND);
        assert_int_equal(fx_state(f, b), i == 1   ? STK_JOB_HELD
                                         : i == 2 ? STK_JOB_DONE
                                                  : STK_JOB_RUNNING);
        assert_int_equal(fx_state(f, x), i == 3 ? STK_JOB_DONE : STK_JOB_RUNNING);
        assert_int_equal(fx_state(f, later[2]), i == 0 ? STK_JOB_WAITING : fx_state(f, later[2]));
        assert_int_equal(f->s->n_moving, 0);
        fx_finish(f);
    }
}

static void it_is_refused_where_it_cannot_work(void **state)
{
    static const struct {
        const struct stk_order_ops *order;
        const struct stk_backfill_ops *backfill;
        const struct stk_preempt_ops *preempt;
    } bad[] = {{&stk_order_srtf, &stk_backfill_skip, &stk_preempt_lucid},
               {&stk_order_fifo, &stk_backfill_conservative, &stk_preempt_none}};
    struct fx_heap heap = {0};
    const struct stk_mem mem = fx_mem(&heap);
    struct stk_params params = {0};
    struct stk_err err;

    (void)state;
    assert_int_equal(stk_params_set(&params, stk_param_find("defrag.most", NULL), "20", &err), 0);
    for (int i = 0; i < 2; i++) {
        const struct stk_core_config cfg = {.nodes = nodes,
                                            .n_nodes = 3,
                                            .n_pools = 1,
                                            .order = bad[i].order,
                                            .backfill = bad[i].backfill,
                                            .place = &stk_place_pack,
                                            .preempt = bad[i].preempt,
                                            .admit = &stk_admit_possible,
                                            .params = &params};
        struct stk_core *c = NULL;

        assert_int_equal(stk_core_new(&cfg, &mem, &c, &err), -EINVAL);
        assert_true(heap.live == 0);
    }
}

/* In worlds made at random, with engines that act at once: who has a place keeps one, nobody who
 * was moved waits when an instant is over, and no more move than may. */
static void nobody_loses_a_place(void **state)
{
    uint64_t moved = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct world w = {.setup = {.order = "priority",
                                    .backfill = seed % 2 ? "skip" : "easy",
                                    .place = seed % 3 ? "stoker" : "pack",
                                    .preempt = "none",
                                    .params = "defrag.most=500 defrag.jobs=all"}};
        struct stk_rng r;
        struct fx *f;

        stk_rng_init(&r, seed);
        world_cluster(&w, &r);
        f = fx_new(&w.setup);
        for (int i = 0; i < 80; i++) {
            struct stk_dep deps[4];
            struct stk_job_spec spec = world_job(&w, f, &r, deps);

            spec.n_deps = 0;
            spec.held = false;
            spec.begin = 0;
            (void)fx_try_submit(f, &spec);
            f->now += (stk_time)stk_rng_below(&r, 400000);
            fx_run(f, f->now);
            fx_turn(f);
            fx_sound(f);
            assert_int_equal(f->s->n_moving, 0);
            assert_true(f->s->n_moved * 2 <= f->s->next_lease - 1 - f->s->n_moved);
            for (uint32_t k = 0; k < f->s->n_jobs; k++)
                if (fx_state(f, k) == STK_JOB_WAITING)
                    assert_int_equal(fx_of(f, k)->restarts, 0);
        }
        moved += f->s->n_moved;
        fx_free(f);
    }
    assert_true(moved > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_moves_and_both_run),
        cmocka_unit_test(two_move_where_one_does_not_do),
        cmocka_unit_test(nobody_moves),
        cmocka_unit_test(parts_move_together),
        cmocka_unit_test(who_may_have_company_moves),
        cmocka_unit_test(they_have_time),
        cmocka_unit_test(it_is_refused_where_it_cannot_work),
        cmocka_unit_test(nobody_loses_a_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
