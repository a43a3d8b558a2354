/* SPDX-License-Identifier: Apache-2.0 */
/* test_empty.c - a node is emptied when all that runs on it may move and finds room; what it costs
 * and brings is known before; nothing changes by asking. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/defrag.h"
#include "core/stake.h"
#include "lib/world.h"

static const struct stk_node_spec nodes[] = {{.gpus = 4}, {.gpus = 4}, {.gpus = 4}};

static struct fx *start(const char *params, stk_time slow)
{
    return fx_new(&(struct fx_setup){.nodes = nodes,
                                     .n_nodes = 3,
                                     .order = "priority",
                                     .backfill = "skip",
                                     .preempt = "tier",
                                     .params = params,
                                     .slow_stop = slow});
}

static uint32_t node_of(const struct fx *f, uint32_t job)
{
    return f->s->pieces[fx_of(f, job)->first_piece].node.i;
}

static bool plan(struct fx *f, uint32_t node, struct stk_empty_plan *p)
{
    uint64_t digest = fx_digest(f), calls = f->heap.calls;
    bool any = stk_core_empty(f->core, f->now, node, p);

    fx_must(fx_digest(f) == digest && f->heap.calls == calls, "asking changes nothing");
    fx_sound(f);
    return any;
}

/* As the daemon does it. */
static void do_it(struct fx *f, const struct stk_empty_plan *p)
{
    assert_int_equal(fx_gpus_off(f, p->node, f->s->nodes[p->node].mask_all), 0);
    for (uint32_t i = 0; i < p->n; i++)
        assert_int_equal(fx_move(f, p->move[i]), 0);
}

static void all_find_a_place_and_the_node_is_whole(void **state)
{
    struct fx *f = start("defrag.jobs=all restart_s=10", 0);
    uint32_t a = fx_run_on(f, 0, 1, 1), b = fx_run_on(f, 0, 2, 6), c = fx_run_on(f, 1, 2, 3);
    uint32_t d = fx_run_on(f, 2, 3, 7), x;
    struct stk_empty_plan p;

    (void)state;
    x = fx_submit(f, fx_job(4, 100));
    fx_turn(f);
    assert_int_equal(fx_state(f, x), STK_JOB_WAITING);
    assert_true(plan(f, 0, &p));
    assert_true(p.possible);
    assert_int_equal(p.n, 2);
    assert_int_equal(p.move[0], b); /* the largest first */
    assert_int_equal(p.to[0], 1);
    assert_int_equal(p.to[1], 2);
    assert_int_equal(p.cost, stk_stake_units(f->s, fx_of(f, a), f->now) +
                                 stk_stake_units(f->s, fx_of(f, b), f->now));
    assert_int_equal(p.before.whole, 0);
    assert_int_equal(p.after.whole, 4);
    assert_int_equal(p.before.free, p.after.free);
    assert_int_equal(p.n_starts, 1);
    assert_int_equal(p.starts[0], x);
    do_it(f, &p);
    fx_turn(f);
    assert_int_equal(f->s->nodes[0].n_uses, 0);
    assert_int_equal(node_of(f, b), 1);
    assert_int_equal(node_of(f, a), 2);
    assert_int_equal(f->s->n_moving, 0);
    assert_int_equal(fx_of(f, a)->preemptions + fx_of(f, b)->preemptions, 0);
    assert_int_equal(fx_of(f, c)->restarts + fx_of(f, d)->restarts, 0);
    assert_int_equal(fx_state(f, x), STK_JOB_WAITING); /* the node is closed */
    assert_int_equal(fx_gpus_off(f, 0, 0), 0);
    fx_turn(f);
    assert_int_equal(fx_state(f, x), STK_JOB_RUNNING);
    fx_finish(f);
}

static void who_stays_is_said(void **state)
{
    struct fx *f = start("preempt.min_run_s=60", 0);
    struct stk_job_spec spec = fx_job(1, 1000);
    struct stk_empty_plan p;

    (void)state;
    spec.terms.movable = true;
    (void)fx_submit(f, fx_job(1, 1000));
    spec.tier = STK_TIER_CRITICAL;
    (void)fx_submit(f, spec);
    spec.tier = STK_TIER_STANDARD;
    (void)fx_submit(f, spec);
    spec.terms.group = spec.terms.group_min = 1;
    (void)fx_submit(f, spec);
    fx_turn(f);
    assert_true(plan(f, 0, &p));
    assert_false(p.possible);
    assert_int_equal(p.n, 4);
    assert_int_equal(p.stay[0], STK_STAY_UNASKED);
    assert_int_equal(p.stay[1], STK_STAY_CRITICAL);
    assert_int_equal(p.stay[2], STK_STAY_PROTECTED);
    f->now = 60 * STK_SECOND;
    assert_true(plan(f, 0, &p));
    assert_int_equal(p.stay[2], STK_STAY_MAX);
    assert_int_equal(p.stay[3], STK_STAY_NEEDED);
    assert_string_equal(stk_stay_name(STK_STAY_NEEDED), "needed");
    assert_false(plan(f, 1, &p)); /* empty */
    assert_false(plan(f, 3, &p)); /* none such */
    fx_finish(f);
}

static void without_room_nobody_moves(void **state)
{
    struct fx *f = start("defrag.jobs=all", 0);
    struct stk_empty_plan p;

    (void)state;
    (void)fx_run_on(f, 0, 3, 7);
    (void)fx_run_on(f, 1, 2, 3);
    (void)fx_run_on(f, 2, 2, 3);
    assert_true(plan(f, 0, &p));
    assert_false(p.possible);
    assert_int_equal(p.stay[0], STK_STAY_ROOM);
    assert_true(plan(f, STK_NONE, &p)); /* another can be */
    assert_true(p.possible && p.node != 0);
    fx_finish(f);
}

static void a_gang_moves_whole(void **state)
{
    struct fx *f = start("defrag.jobs=all", 0);
    struct stk_job_spec spec = fx_job(2, 1000);
    struct stk_empty_plan p;
    uint32_t gang;

    (void)state;
    spec.demand.tasks = 2;
    spec.demand.per_node = 1;
    spec.demand.cut = false;
    gang = fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(fx_of(f, gang)->n_pieces, 2);
    assert_true(plan(f, node_of(f, gang), &p));
    assert_true(p.possible);
    do_it(f, &p);
    fx_turn(f);
    assert_int_equal(fx_state(f, gang), STK_JOB_RUNNING);
    assert_int_equal(fx_of(f, gang)->n_pieces, 2);
    assert_int_equal(f->s->nodes[p.node].n_uses, 0);
    fx_finish(f);
}

/* While they are being stopped nobody else takes the places that they were promised. */
static void places_are_kept_while_they_stop(void **state)
{
    struct fx *f = start("defrag.jobs=all", 30 * STK_SECOND);
    uint32_t a = fx_run_on(f, 0, 2, 3), x;
    struct stk_empty_plan p;

    (void)state;
    (void)fx_run_on(f, 1, 2, 3);
    (void)fx_run_on(f, 2, 4, 15);
    f->work[a].left = 1000 * STK_SECOND;
    assert_true(plan(f, 0, &p));
    assert_true(p.possible);
    do_it(f, &p);
    x = fx_submit(f, fx_job(2, 100));
    fx_turn(f);
    assert_int_equal(fx_state(f, x), STK_JOB_WAITING);
    fx_run(f, f->now + 60 * STK_SECOND);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(node_of(f, a), 1);
    assert_int_equal(fx_state(f, x), STK_JOB_WAITING);
    assert_int_equal(f->s->nodes[0].n_uses, 0);
    fx_finish(f);
}

/* Random worlds: a plan that is possible can be done, and then the node is empty and all run. */
static void plans_hold(void **state)
{
    uint32_t done = 0, moved = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        static const char *const place[] = {"pack", "spread", "first_fit", "stoker", "topology"};
        struct world w = {.setup = {.order = "priority",
                                    .backfill = seed % 2 ? "easy" : "skip",
                                    .place = place[seed % 5],
                                    .preempt = "tier",
                                    .params = "defrag.jobs=all"}};
        struct stk_empty_plan p;
        struct stk_rng r;
        struct fx *f;

        stk_rng_init(&r, seed);
        world_cluster(&w, &r);
        w.booked = false;
        w.setup.slow_stop = 0;
        f = fx_new(&w.setup);
        for (int i = 0; i < 30; i++) {
            world_act(&w, f, &r);
            fx_turn(f);
            fx_run(f, f->now + (stk_time)stk_rng_below(&r, 3000000));
        }
        if (plan(f, seed % 3 ? STK_NONE : (uint32_t)stk_rng_below(&r, f->s->n_nodes), &p) &&
            p.possible) {
            do_it(f, &p);
            fx_turn(f);
            fx_must(f->s->nodes[p.node].n_uses == 0, "seed %llu: the node is empty",
                    (unsigned long long)seed);
            for (uint32_t i = 0; i < p.n; i++)
                fx_must(fx_of(f, p.move[i])->lease != 0, "seed %llu: job %u runs again",
                        (unsigned long long)seed, fx_of(f, p.move[i])->number);
            done++;
            moved += p.n;
        }
        fx_sound(f);
        fx_free(f);
    }
    print_message("%u nodes emptied, %u jobs moved\n", done, moved);
    assert_true(done > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_find_a_place_and_the_node_is_whole),
        cmocka_unit_test(who_stays_is_said),
        cmocka_unit_test(without_room_nobody_moves),
        cmocka_unit_test(a_gang_moves_whole),
        cmocka_unit_test(places_are_kept_while_they_stop),
        cmocka_unit_test(plans_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
