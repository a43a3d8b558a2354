/* SPDX-License-Identifier: Apache-2.0 */
/* test_sets.c - jobs that are confined to sets of nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/core.h"
#include "lib/fixture.h"

static const struct stk_node_spec four[] = {{.gpus = 8}, {.gpus = 8}, {.gpus = 8}, {.gpus = 4}};

static struct fx *cluster(const char *backfill, const char *place)
{
    return fx_new(
        &(struct fx_setup){.nodes = four, .n_nodes = 4, .backfill = backfill, .place = place});
}

static struct stk_job_spec in_set(uint32_t number, uint32_t gpus, int64_t seconds)
{
    struct stk_job_spec spec = fx_job(gpus, seconds);

    spec.demand.nodes = (uint16_t)number;
    return spec;
}

static uint32_t node_of(const struct fx *f, uint32_t job, uint32_t piece)
{
    return f->s->pieces[fx_of(f, job)->first_piece + piece].node.i;
}

static void jobs_run_on_nodes_of_their_set_alone(void **state)
{
    static const char *const places[] = {"pack",   "spread", "first_fit", "fgd",
                                         "stoker", "random", "topology",  "share"};

    (void)state;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        struct fx *f = cluster("skip", places[i]);
        uint32_t a, b, c;

        assert_int_equal(fx_nodes(f, 1, 0x6), 0);
        a = fx_submit(f, in_set(1, 8, 10));
        b = fx_submit(f, in_set(1, 8, 20));
        c = fx_submit(f, in_set(1, 1, 5));
        fx_turn(f);
        assert_int_equal(node_of(f, a, 0) + node_of(f, b, 0), 3);
        assert_int_equal(fx_state(f, c), STK_JOB_WAITING); /* 12 GPUs are free elsewhere */
        assert_int_equal(fx_why(f, c), STK_WHY_NODES);
        fx_run(f, 10 * STK_SECOND);
        assert_int_equal(fx_state(f, c), STK_JOB_RUNNING);
        fx_drain(f);
        fx_finish(f);
    }
}

static void a_gang_is_whole_on_its_nodes(void **state)
{
    struct fx *f = cluster("skip", "pack");
    struct stk_job_spec spec = in_set(1, 4, 10);
    uint32_t first, gang;

    (void)state;
    assert_int_equal(fx_nodes(f, 1, 0x9), 0);
    first = fx_submit(f, in_set(1, 8, 5));
    fx_turn(f);
    assert_int_equal(node_of(f, first, 0), 0);
    spec.demand.cut = false;
    spec.demand.tasks = 2;
    spec.demand.per_node = 1;
    gang = fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(fx_state(f, gang), STK_JOB_WAITING);
    fx_run(f, 5 * STK_SECOND);
    assert_int_equal(fx_state(f, gang), STK_JOB_RUNNING);
    assert_int_equal(node_of(f, gang, 0) + node_of(f, gang, 1), 3);
    fx_drain(f);
    fx_finish(f);
}

static void what_its_nodes_cannot_hold_is_refused(void **state)
{
    struct fx *f = cluster("skip", "pack");
    struct stk_job_spec spec = in_set(1, 8, 10);

    (void)state;
    assert_int_equal(fx_try_submit(f, &spec), -EINVAL); /* there is no such set */
    assert_int_equal(fx_nodes(f, 1, 0x8), 0);
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    assert_non_null(strstr(f->err.text, "1 node"));
    assert_int_equal(fx_nodes(f, 2, 0), 0);
    spec.demand.nodes = 2;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    assert_non_null(strstr(f->err.text, "no node"));
    spec = in_set(1, 4, 10);
    assert_int_equal(fx_try_submit(f, &spec), 0);
    assert_int_equal(fx_nodes(f, 4, 1), -EINVAL); /* 3 comes first */
    assert_int_equal(fx_nodes(f, 0, 1), -EINVAL);
    assert_int_equal(fx_nodes(f, 3, 0x10), -EINVAL);
    fx_drain(f);
    fx_finish(f);
}

/* The promise is on its own nodes: the others are not kept free for it. */
static void a_promise_keeps_its_nodes_free_and_no_others(void **state)
{
    struct fx *f = cluster("easy", "pack");
    uint32_t big, head, there, elsewhere;

    (void)state;
    assert_int_equal(fx_nodes(f, 1, 0x1), 0);
    big = fx_submit(f, in_set(1, 4, 10));
    fx_turn(f);
    head = fx_submit(f, in_set(1, 8, 10));
    there = fx_submit(f, in_set(1, 4, 100));
    elsewhere = fx_submit(f, fx_job(8, 100));
    fx_turn(f);
    assert_int_equal(fx_state(f, big), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, head), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, there), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, elsewhere), STK_JOB_RUNNING);
    fx_run(f, 10 * STK_SECOND);
    assert_int_equal(fx_state(f, head), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

static void a_set_that_becomes_another_is_looked_at_again(void **state)
{
    struct fx *f = cluster("easy", "pack");
    uint32_t a, b;

    (void)state;
    assert_int_equal(fx_nodes(f, 1, 0x8), 0);
    a = fx_submit(f, in_set(1, 4, 100));
    b = fx_submit(f, in_set(1, 4, 100));
    fx_turn(f);
    assert_int_equal(node_of(f, a, 0), 3);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    assert_int_equal(fx_nodes(f, 1, 0x2), 0);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING); /* it stays */
    assert_int_equal(node_of(f, b, 0), 1);
    fx_drain(f);
    fx_finish(f);
}

static void who_gives_way_is_on_its_nodes(void **state)
{
    struct fx *f = fx_new(
        &(struct fx_setup){.nodes = four, .n_nodes = 4, .backfill = "skip", .preempt = "tier"});
    struct stk_job_spec low = fx_job(8, 100), high = in_set(1, 8, 10);
    uint32_t jobs[3], top;

    (void)state;
    low.tier = STK_TIER_BEST_EFFORT;
    high.tier = STK_TIER_CRITICAL;
    assert_int_equal(fx_nodes(f, 1, 0x2), 0);
    for (uint32_t i = 0; i < 3; i++)
        jobs[i] = fx_submit(f, low);
    fx_turn(f);
    top = fx_submit(f, high);
    fx_turn(f);
    assert_int_equal(fx_state(f, top), STK_JOB_RUNNING);
    assert_int_equal(node_of(f, top, 0), 1);
    assert_int_equal(fx_of(f, jobs[0])->preemptions + fx_of(f, jobs[1])->preemptions +
                         fx_of(f, jobs[2])->preemptions,
                     1);
    fx_drain(f);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_run_on_nodes_of_their_set_alone),
        cmocka_unit_test(a_gang_is_whole_on_its_nodes),
        cmocka_unit_test(what_its_nodes_cannot_hold_is_refused),
        cmocka_unit_test(a_promise_keeps_its_nodes_free_and_no_others),
        cmocka_unit_test(a_set_that_becomes_another_is_looked_at_again),
        cmocka_unit_test(who_gives_way_is_on_its_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
