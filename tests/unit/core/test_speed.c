/* SPDX-License-Identifier: Apache-2.0 */
/* test_speed.c - jobs that are faster on some GPU types: they get the fastest that has room, under
 * every placement policy, and end when their speed says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/save.h"
#include "core/speed.h"
#include "lib/fixture.h"
#include "model/mig.h"
#include "policy/registry.h"

static uint32_t node_of(const struct fx *f, uint32_t job)
{
    return f->s->pieces[fx_of(f, job)->first_piece].node.i;
}

static const struct stk_node_spec three[] = {
    {.gpus = 8, .gpu_type = 0}, {.gpus = 8, .gpu_type = 1}, {.gpus = 8, .gpu_type = 2}};

/* Speeds 0.5, 1 and 0.25 on the three types. */
static struct stk_job_spec job(uint32_t gpus, int64_t seconds)
{
    struct stk_job_spec spec = fx_job(gpus, seconds);

    assert_int_equal(stk_demand_set_speed(&spec.demand, 2, 250), 0);
    assert_int_equal(stk_demand_set_speed(&spec.demand, 0, 500), 0);
    assert_int_equal(stk_demand_set_speed(&spec.demand, 1, STK_SPEED), 0);
    return spec;
}

static void speeds_are_kept_in_one_order(void **state)
{
    struct stk_demand d = {.gpus = 1, .gpu_types = STK_ANY_GPU_TYPE};

    (void)state;
    for (uint32_t i = STK_MAX_SPEEDS; i-- > 0;)
        assert_int_equal(stk_demand_set_speed(&d, i * 3, 100 + i), 0);
    assert_int_equal(stk_demand_set_speed(&d, 1, 7), -E2BIG);
    assert_int_equal(stk_demand_set_speed(&d, 1, STK_SPEED), 0);
    for (uint32_t i = 0; i < STK_MAX_SPEEDS; i++) {
        assert_int_equal(d.speed_type[i], i * 3);
        assert_int_equal(stk_demand_speed(&d, i * 3), 100 + i);
    }
    assert_int_equal(stk_demand_set_speed(&d, 6, STK_SPEED), 0);
    assert_int_equal(d.n_speeds, STK_MAX_SPEEDS - 1);
    assert_int_equal(stk_demand_speed(&d, 6), STK_SPEED);
    assert_int_equal(stk_demand_speed(&d, 9), 103);
}

static void the_fastest_that_has_room_and_an_end_to_match(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.nodes = three, .n_nodes = 3, .backfill = "easy"});
    uint32_t a = fx_submit(f, job(8, 100)), b = fx_submit(f, job(8, 100)),
             c = fx_submit(f, job(8, 100)), d = fx_submit(f, job(8, 100));

    (void)state;
    fx_turn(f);
    assert_int_equal(node_of(f, a), 1);
    assert_int_equal(node_of(f, b), 0);
    assert_int_equal(node_of(f, c), 2);
    assert_int_equal(fx_of(f, a)->expected_end, 100 * STK_SECOND);
    assert_int_equal(fx_of(f, b)->expected_end, 200 * STK_SECOND);
    assert_int_equal(fx_of(f, c)->expected_end, 400 * STK_SECOND);
    fx_run(f, 100 * STK_SECOND);
    assert_int_equal(node_of(f, d), 1);
    fx_drain(f);
    assert_int_equal(fx_of(f, b)->ended, 200 * STK_SECOND);
    assert_int_equal(fx_of(f, c)->ended, 400 * STK_SECOND);
    fx_free(f);
}

static void a_gang_is_as_fast_as_its_slowest_gpu(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.nodes = three, .n_nodes = 3, .backfill = "easy"});
    struct stk_job_spec spec = job(4, 100);
    uint32_t a;

    (void)state;
    spec.demand.cut = false;
    spec.demand.tasks = 4; /* fast and middle */
    a = fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(stk_job_speed(f->s, fx_of(f, a)), 500);
    assert_int_equal(fx_of(f, a)->expected_end, 200 * STK_SECOND);
    fx_free(f);
}

/* What was done at one speed counts when the job goes on at another. */
static void work_is_kept_over_a_preemption(void **state)
{
    struct fx *f = fx_new(
        &(struct fx_setup){.nodes = three, .n_nodes = 1, .preempt = "tier", .order = "priority"});
    struct stk_job_spec spec = job(8, 100), first = fx_job(8, 10);
    uint32_t a = fx_submit(f, spec);

    (void)state;
    fx_turn(f); /* at half speed */
    fx_run(f, 60 * STK_SECOND);
    first.tier = STK_TIER_CRITICAL;
    first.priority = 1000;
    (void)fx_submit(f, first);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_WAITING);
    assert_int_equal(stk_job_remaining(fx_of(f, a), f->now), 70 * STK_SECOND);
    fx_drain(f);
    assert_int_equal(fx_of(f, a)->ended, (60 + 10 + 140) * STK_SECOND);
    fx_free(f);
}

/* A job that is ahead of its time stays so when the GPUs on which it was fast are given in MIG
 * instances from now on, and it has no speed but 1. */
static void work_is_kept_when_gpus_change(void **state)
{
    struct stk_node_spec nodes[] = {{.gpus = 8, .gpu_type = 0}, {.gpus = 8, .gpu_type = 1}};
    struct fx_setup setup = {.nodes = nodes, .n_nodes = 2, .preempt = "tier", .order = "priority"};
    struct stk_job_spec spec = fx_job(8, 100), first = fx_job(16, 10);
    struct fx *f = fx_new(&setup);
    struct stk_core *again, *third;
    uint32_t a;

    (void)state;
    assert_int_equal(stk_demand_set_speed(&spec.demand, 1, 2000), 0);
    a = fx_submit(f, spec);
    fx_turn(f);
    fx_run(f, 20 * STK_SECOND);
    first.tier = STK_TIER_CRITICAL;
    first.priority = 1000;
    (void)fx_submit(f, first);
    (void)fx_decide(f);
    fx_must(fx_exit(f, a, STK_CAUSE_EVICTED) == 0, "it gives way");
    assert_int_equal(fx_of(f, a)->lost, -20 * STK_SECOND);
    nodes[1].mig = stk_mig_model("A100-80GB", strlen("A100-80GB"), 0);
    again = fx_reload(f, f->core, &setup);
    third = fx_reload(f, again, &setup);
    assert_int_equal(stk_core_state(third)->jobs[a].lost, -20 * STK_SECOND);
    stk_core_free(third);
    stk_core_free(again);
    fx_free(f);
}

/* Easy: on a slow GPU the short job would delay the large one, on a fast one it does not. */
static void backfill_knows_how_long_a_job_takes_where(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 8, .gpu_type = 0}, {.gpus = 8, .gpu_type = 1}};

    (void)state;
    for (uint32_t fast = 0; fast < 2; fast++) {
        struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 2, .backfill = "easy"});
        struct stk_job_spec spec = fx_job(8, 100);
        uint32_t a, big, small;

        spec.demand.gpu_types = fast ? 1 : 2;
        a = fx_submit(f, spec); /* the other node is free */
        fx_turn(f);
        big = fx_submit(f, fx_job(16, 100));
        small = fx_submit(f, job(8, 80));
        fx_turn(f);
        assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
        assert_int_equal(fx_state(f, big), STK_JOB_WAITING);
        assert_int_equal(fx_state(f, small), fast ? STK_JOB_RUNNING : STK_JOB_WAITING);
        fx_run(f, 100 * STK_SECOND);
        assert_int_equal(fx_state(f, big), STK_JOB_RUNNING);
        fx_drain(f);
        fx_free(f);
    }
}

/* ---- random clusters, brute force ---- */

/* Tasks that fit on free GPUs of types at least this fast. */
static uint32_t count(const struct fx *f, const struct stk_demand *d, uint32_t least)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < f->s->n_nodes; i++)
        if ((d->gpu_types >> f->s->nodes[i].gpu_type & 1) &&
            stk_demand_speed(d, f->s->nodes[i].gpu_type) >= least)
            n += f->s->nodes[i].gpus_free / d->gpus;
    return n;
}

static uint32_t below(struct fx *f, uint32_t n)
{
    return (uint32_t)stk_rng_below(&f->rng, n);
}

static struct stk_job_spec random_job(struct fx *f)
{
    struct stk_job_spec spec = fx_job(1 + below(f, 4), 1 + below(f, 40));

    spec.demand.cut = false;
    spec.demand.tasks = 1 + below(f, 3);
    spec.demand.gpu_types = 1 + below(f, 15);
    for (uint32_t t = 0; t < 4; t++)
        if (spec.demand.gpu_types >> t & 1)
            (void)stk_demand_set_speed(&spec.demand, t, 250 * (1 + below(f, 5)));
    return spec;
}

static void one_random_cluster(const char *place, uint64_t seed)
{
    struct stk_node_spec nodes[6];
    struct stk_rng r;
    struct fx *f;

    stk_rng_init(&r, seed);
    for (uint32_t i = 0; i < 6; i++)
        nodes[i] = (struct stk_node_spec){.gpus = 1 + (uint32_t)stk_rng_below(&r, 8),
                                          .gpu_type = (uint32_t)stk_rng_below(&r, 4)};
    f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 6, .place = place, .seed = seed});
    for (int i = 0; i < 40; i++) {
        const struct stk_job_spec spec = random_job(f);
        uint32_t slot = stk_core_next_job(f->core).i, best = 0, before;

        fx_run(f, f->now + below(f, 20) * STK_SECOND);
        for (uint32_t milli = 250; milli <= 1250; milli += 250)
            if (count(f, &spec.demand, milli) >= spec.demand.tasks)
                best = milli;
        before = f->s->n_waiting;
        if (fx_try_submit(f, &spec) < 0)
            continue;
        fx_turn(f);
        assert_true(before > 0 || (best > 0) == (fx_state(f, slot) == STK_JOB_RUNNING));
        if (fx_state(f, slot) == STK_JOB_RUNNING)
            assert_int_equal(stk_job_speed(f->s, fx_of(f, slot)), best);
        fx_sound(f);
    }
    fx_drain(f);
    fx_free(f);
}

static void never_a_slower_type_while_a_faster_one_has_room(void **state)
{
    (void)state;
    for (size_t p = 0; stk_places[p]; p++)
        for (uint64_t seed = 1; !stk_places[p]->aggregate && seed <= 30; seed++)
            one_random_cluster(stk_places[p]->name, seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speeds_are_kept_in_one_order),
        cmocka_unit_test(the_fastest_that_has_room_and_an_end_to_match),
        cmocka_unit_test(a_gang_is_as_fast_as_its_slowest_gpu),
        cmocka_unit_test(work_is_kept_over_a_preemption),
        cmocka_unit_test(work_is_kept_when_gpus_change),
        cmocka_unit_test(backfill_knows_how_long_a_job_takes_where),
        cmocka_unit_test(never_a_slower_type_while_a_faster_one_has_room),
    };

    return cmocka_run_group_tests_name("core/speed", tests, NULL, NULL);
}
