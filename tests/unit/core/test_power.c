/* SPDX-License-Identifier: Apache-2.0 */
/* test_power.c - nodes that are on or off, what they draw, and a cap on it; placement policy
 * energy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/fixture.h"
#include "policy/registry.h"

#define POWER                                                                                      \
    {                                                                                              \
        .idle_w = 800, .gpu_w = 700, .off_w = 20, .boot_s = 120                                    \
    }
static const struct stk_node_spec four[4] = {{.gpus = 8, .power = POWER},
                                             {.gpus = 8, .power = POWER},
                                             {.gpus = 8, .power = POWER},
                                             {.gpus = 8, .power = POWER}};

static struct fx *world(const char *params, const char *backfill)
{
    return fx_new(&(struct fx_setup){
        .place = "energy", .backfill = backfill, .params = params, .nodes = four, .n_nodes = 4});
}

static uint32_t node_of(const struct fx *f, uint32_t job)
{
    return f->s->pieces[fx_of(f, job)->first_piece].node.i;
}

static uint32_t start(struct fx *f, uint32_t gpus, int64_t seconds)
{
    uint32_t job = fx_submit(f, fx_job(gpus, seconds));

    fx_turn(f);
    return job;
}

static void nodes_are_off_until_they_are_needed(void **state)
{
    struct fx *f = world("", "skip");
    uint32_t a, b, c;

    (void)state;
    assert_int_equal(f->s->n_on, 0);
    assert_int_equal(f->s->watts, 80);
    a = start(f, 2, 10);
    assert_int_equal(f->s->n_on, 1);
    assert_int_equal(f->s->watts, 60 + 800 + 1400);
    b = start(f, 4, 20);
    assert_int_equal(node_of(f, b), node_of(f, a));
    c = start(f, 4, 30); /* does not fit there any more */
    assert_int_equal(f->s->n_on, 2);
    assert_int_equal(node_of(f, c), 1);
    assert_int_equal(node_of(f, start(f, 2, 10)), 0); /* the fullest that is on */
    fx_run(f, 25 * STK_SECOND);
    assert_int_equal(f->s->watts, 40 + 2 * 800 + 2800); /* on, and idle */
    assert_int_equal(fx_node_off(f, 1), -EINVAL);       /* somebody is there */
    assert_int_equal(fx_node_off(f, 0), 0);
    assert_int_equal(f->s->n_on, 1);
    assert_int_equal(f->s->watts, 60 + 800 + 2800);
    assert_int_equal(node_of(f, start(f, 2, 10)), 1);
    fx_drain(f);
    fx_finish(f);
}

static void an_empty_node_that_is_on_comes_before_one_that_is_off(void **state)
{
    static const struct stk_node_spec nodes[3] = {
        {.gpus = 4, .power = POWER}, {.gpus = 8, .power = POWER}, {.gpus = 4}};
    struct fx *f = fx_new(&(struct fx_setup){.place = "energy", .nodes = nodes, .n_nodes = 3});
    uint32_t a;

    (void)state;
    a = start(f, 4, 10);
    assert_int_equal(node_of(f, a), 2); /* always on: what it draws is not known */
    assert_int_equal(node_of(f, start(f, 8, 10)), 1);
    fx_drain(f);
    assert_int_equal(node_of(f, start(f, 4, 10)), 2); /* the fullest of those that are on */
    assert_int_equal(node_of(f, start(f, 3, 10)), 1);
    fx_drain(f);
    fx_finish(f);
}

static void no_job_starts_above_the_cap(void **state)
{
    struct fx *f = world("energy.cap_w=6000", "skip");
    uint32_t a = start(f, 4, 10), b = start(f, 4, 20), c = start(f, 2, 5);
    struct stk_reason why;

    (void)state;
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING); /* 60 + 800 + 2800 = 3660 */
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING); /* 2800 more */
    assert_int_equal(fx_state(f, c), STK_JOB_RUNNING); /* 5060 */
    assert_int_equal(stk_core_why(f->core, (stk_job_id){b}, &why, NULL), 0);
    assert_int_equal(why.code, STK_WHY_POWER);
    assert_int_equal(why.need, 3580); /* on another node, for now */
    assert_int_equal(why.have, 940);
    assert_int_equal(why.missing, 2640);
    fx_run(f, 5 * STK_SECOND);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    fx_run(f, 10 * STK_SECOND); /* freed elsewhere, on the same node */
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

static void power_of_one_pool_wakes_jobs_of_another(void **state)
{
    static const struct stk_node_spec nodes[2] = {{.gpus = 8, .power = POWER},
                                                  {.pool = {1}, .gpus = 8, .power = POWER}};
    struct fx *f = fx_new(&(struct fx_setup){.place = "energy",
                                             .backfill = "none",
                                             .params = "energy.cap_w=7000",
                                             .nodes = nodes,
                                             .n_nodes = 2,
                                             .n_pools = 2});
    struct stk_job_spec other = fx_job(8, 10);
    uint32_t a = start(f, 8, 10), b;

    (void)state;
    other.pool.i = 1;
    b = fx_submit(f, other);
    fx_turn(f);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    fx_run(f, 30 * STK_SECOND);
    assert_int_equal(fx_state(f, a), STK_JOB_DONE);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING); /* the other node is on, and idle */
    assert_int_equal(fx_node_off(f, 0), 0);
    fx_turn(f);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

static void what_the_cap_can_never_admit_is_refused(void **state)
{
    struct fx *f = world("energy.cap_w=6459", "skip");
    struct stk_job_spec spec = fx_job(8, 10);

    (void)state;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE); /* 60 + 800 + 5600 */
    assert_string_equal(f->err.text,
                        "needs 6.5 kW with all other nodes off; the power cap is 6.5 kW");
    spec = fx_job(7, 10);
    assert_int_equal(fx_try_submit(f, &spec), 0);
    spec.demand = (struct stk_demand){.tasks = 7, .gpus = 1, .gpu_types = STK_ANY_GPU_TYPE};
    assert_int_equal(fx_try_submit(f, &spec), 0);
    spec.demand.tasks = 9;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    fx_drain(f);
    fx_finish(f);
}

static void another_type_is_taken_when_the_first_draws_too_much(void **state)
{
    static const struct stk_node_spec nodes[3] = {
        {.gpus = 4, .gpu_type = 0, .power = {.idle_w = 500, .gpu_w = 700}},
        {.gpus = 4, .gpu_type = 1, .power = {.idle_w = 600, .gpu_w = 100}},
        {.gpus = 4, .gpu_type = 1, .power = {.idle_w = 600, .gpu_w = 100}}};
    struct fx *f = fx_new(&(struct fx_setup){
        .place = "energy", .params = "energy.cap_w=2600", .nodes = nodes, .n_nodes = 3});
    uint32_t a = start(f, 1, 10), b, c;

    (void)state;
    b = start(f, 1, 10);
    assert_true(node_of(f, a) == 1 && node_of(f, b) == 1);
    c = start(f, 4, 10); /* off: 500 + 2800 or 600 + 400 */
    assert_int_equal(node_of(f, c), 2);
    assert_int_equal(f->s->watts, 600 + 200 + 600 + 400);
    fx_drain(f);
    fx_finish(f);
}

/* In each of two pools a job could have the power of a lower one and what is left over; for both
 * there is not enough. */
static void power_is_not_promised_twice(void **state)
{
    static const struct stk_node_spec nodes[] = {
        {.gpus = 4, .power = {.idle_w = 100, .gpu_w = 100}},
        {.gpus = 4, .pool = {1}, .power = {.idle_w = 100, .gpu_w = 100}}};
    static const stk_time slow[] = {0, 5 * STK_SECOND};

    (void)state;
    for (uint32_t k = 0; k < 2; k++) {
        struct fx *f = fx_new(&(struct fx_setup){.order = "priority",
                                                 .place = "energy",
                                                 .preempt = "tier",
                                                 .params = "energy.cap_w=700",
                                                 .nodes = nodes,
                                                 .n_nodes = 2,
                                                 .n_pools = 2,
                                                 .slow_stop = slow[k]});
        uint32_t low[2], high[2];

        for (uint32_t i = 0; i < 2; i++) {
            struct stk_job_spec spec = fx_job(2, 100);

            spec.pool.i = i;
            spec.tier = STK_TIER_BEST_EFFORT;
            low[i] = fx_submit(f, spec);
        }
        fx_turn(f);
        for (uint32_t i = 0; i < 2; i++) {
            struct stk_job_spec spec = fx_job(3, 10);

            spec.pool.i = i;
            spec.tier = STK_TIER_CRITICAL;
            high[i] = fx_submit(f, spec);
        }
        fx_turn(f);
        fx_run(f, slow[k]);
        assert_int_equal((fx_state(f, high[0]) == STK_JOB_RUNNING) +
                             (fx_state(f, high[1]) == STK_JOB_RUNNING),
                         1);
        assert_int_equal(fx_of(f, low[0])->preemptions + fx_of(f, low[1])->preemptions, 1);
        fx_drain(f);
        fx_finish(f);
    }
}

/* A node that is switched off must not be what brings the sum above the cap. */
static void a_node_draws_no_more_when_it_is_off(void **state)
{
    const struct stk_node_spec node = {.gpus = 1, .power = {.gpu_w = 100, .off_w = 20}};
    const struct stk_params params = {0};
    const struct stk_core_config cfg = {.nodes = &node,
                                        .n_nodes = 1,
                                        .n_pools = 1,
                                        .order = &stk_order_fifo,
                                        .backfill = &stk_backfill_skip,
                                        .place = &stk_place_energy,
                                        .preempt = &stk_preempt_none,
                                        .admit = &stk_admit_possible,
                                        .params = &params};
    struct fx_heap heap = {0};
    const struct stk_mem mem = fx_mem(&heap);
    struct stk_core *c = NULL;
    struct stk_err err;

    (void)state;
    assert_int_equal(stk_core_new(&cfg, &mem, &c, &err), -EINVAL);
    assert_string_equal(err.text, "node 0: draws more when it is off (20 W) than when it is idle "
                                  "(0 W)");
    assert_true(heap.live == 0);
}

static void power_is_saved_and_loaded(void **state)
{
    struct fx *f = world("energy.cap_w=20000", "skip");
    struct stk_core *copy;

    (void)state;
    (void)start(f, 4, 100);
    (void)start(f, 8, 10);
    fx_run(f, 20 * STK_SECOND);
    copy = fx_reload(f, f->core, NULL);
    assert_int_equal(stk_core_state(copy)->watts, f->s->watts);
    assert_int_equal(stk_core_state(copy)->n_on, 2);
    assert_int_equal(stk_core_digest(copy), fx_digest(f));
    stk_core_free(copy);
    fx_drain(f);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_off_until_they_are_needed),
        cmocka_unit_test(an_empty_node_that_is_on_comes_before_one_that_is_off),
        cmocka_unit_test(no_job_starts_above_the_cap),
        cmocka_unit_test(power_of_one_pool_wakes_jobs_of_another),
        cmocka_unit_test(what_the_cap_can_never_admit_is_refused),
        cmocka_unit_test(another_type_is_taken_when_the_first_draws_too_much),
        cmocka_unit_test(power_is_not_promised_twice),
        cmocka_unit_test(a_node_draws_no_more_when_it_is_off),
        cmocka_unit_test(power_is_saved_and_loaded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
