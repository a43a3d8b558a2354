/* SPDX-License-Identifier: Apache-2.0 */
/* test_drain.c - GPUs are kept free for a gang that has waited long, and not for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/booking.h"
#include "core/drain.h"
#include "lib/world.h"

static void sound_turn(struct fx *f, void *ctx)
{
    (void)ctx;
    fx_sound(f);
}

static struct fx *world(const char *backfill, const char *params)
{
    struct fx *f = fx_new(&(struct fx_setup){.backfill = backfill, .params = params});

    f->on_turn = sound_turn;
    return f;
}

static void run(struct fx *f, int64_t s)
{
    fx_run(f, s * STK_SECOND);
    f->now = s * STK_SECOND;
    fx_turn(f);
}

static bool runs(const struct fx *f, uint32_t job)
{
    return fx_of(f, job)->lease != 0;
}

/* Four jobs of 4 GPUs fill both nodes; they end at 50, 100, 150 and 200 s, and as each ends another
 * one that runs for 'each' comes, until 'until'. */
static void small_jobs(struct fx *f, int64_t from, int64_t until, int64_t each)
{
    for (int64_t t = from; t < until; t += 50) {
        run(f, t);
        (void)fx_submit(f, fx_job(4, each));
        fx_turn(f);
    }
}

static uint32_t begin(struct fx *f)
{
    uint32_t gang;

    for (int64_t t = 50; t <= 200; t += 50)
        (void)fx_submit(f, fx_job(4, t));
    fx_turn(f);
    gang = fx_submit(f, fx_job(8, 100));
    fx_turn(f);
    return gang;
}

static void without_it_small_jobs_starve_a_gang(void **st)
{
    struct fx *f = world("skip", "");
    uint32_t gang = begin(f);

    (void)st;
    small_jobs(f, 40, 3000, 220);
    assert_false(runs(f, gang));
    fx_finish(f);
}

static void it_starts_when_all_it_needs_is_expected_to_be_free(void **st)
{
    struct fx *f = world("skip", "drain.after_s=300");
    uint32_t gang = begin(f);
    const struct stk_booking *b;

    (void)st;
    small_jobs(f, 40, 300, 220);
    run(f, 310);
    assert_int_equal(f->s->book.n, 1);
    b = stk_drain_of(f->s, fx_of(f, gang));
    assert_non_null(b);
    assert_true(b->start > f->now && b->start <= f->now + 220 * STK_SECOND);
    assert_int_equal(fx_why(f, gang), STK_WHY_DRAINS);
    small_jobs(f, 340, 600, 220);
    assert_true(runs(f, gang) || fx_of(f, gang)->state == STK_JOB_DONE);
    assert_true(fx_of(f, gang)->started <= 520 * STK_SECOND);
    assert_int_equal(f->s->book.n, 0);
    fx_finish(f);
}

static void others_wait_for_it_and_those_that_end_before_do_not(void **st)
{
    struct fx *f = world("skip", "drain.after_s=300");
    uint32_t gang = begin(f), long_one, short_one;

    (void)st;
    small_jobs(f, 40, 300, 220);
    run(f, 310);
    assert_non_null(stk_drain_of(f->s, fx_of(f, gang)));
    for (uint32_t i = 0; i < 3; i++) /* beside its node there is room for two */
        long_one = fx_submit(f, fx_job(4, 400));
    run(f, 380);
    assert_int_equal(fx_why(f, long_one), STK_WHY_BOOKED);
    short_one = fx_submit(f, fx_job(1, 30));
    fx_turn(f);
    assert_false(runs(f, long_one));
    assert_true(runs(f, short_one));
    run(f, 500);
    assert_true(runs(f, gang));
    fx_finish(f);
}

/* The estimate says 100 s, the job runs for 10000. */
static void it_is_given_up_and_not_tried_again_for_a_while(void **st)
{
    struct fx *f = world("skip", "drain.after_s=100 drain.limit_s=200");
    uint32_t gang, other;

    (void)st;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t job = fx_submit(f, fx_job(4, 100));

        f->work[job].left = 10000 * STK_SECOND;
        fx_turn(f);
    }
    gang = fx_submit(f, fx_job(16, 100));
    (void)fx_submit(f, fx_job(1, 50));
    fx_turn(f);
    run(f, 40);
    (void)fx_submit(f, fx_job(1, 100));
    run(f, 101);
    assert_non_null(stk_drain_of(f->s, fx_of(f, gang)));
    other = fx_submit(f, fx_job(1, 1000));
    run(f, 299);
    assert_false(runs(f, other));
    run(f, 301);
    assert_true(runs(f, other));
    assert_int_equal(f->s->book.n, 0);
    assert_int_equal(f->s->book.drain.n_tired, 1);
    run(f, 390);
    assert_int_equal(f->s->book.n, 0);
    run(f, 1100);
    fx_turn(f);
    (void)fx_submit(f, fx_job(1, 10));
    run(f, 1105);
    stk_core_free(fx_reload(f, f->core, &f->setup));
    fx_finish(f);
}

static void a_lost_node_and_a_reservation_take_it_elsewhere(void **st)
{
    struct stk_node_spec nodes[3];
    struct fx_setup setup = {.backfill = "skip", .params = "drain.after_s=50", .n_nodes = 3};
    struct fx *f;
    uint32_t gang, first;

    (void)st;
    memset(nodes, 0, sizeof(nodes));
    for (uint32_t i = 0; i < 3; i++)
        nodes[i] = (struct stk_node_spec){.gpus = 8};
    setup.nodes = nodes;
    f = fx_new(&setup);
    f->on_turn = sound_turn;
    for (uint32_t i = 0; i < 6; i++)
        (void)fx_submit(f, fx_job(4, 200 + 100 * i));
    fx_turn(f);
    gang = fx_submit(f, fx_job(8, 100));
    run(f, 10);
    for (uint32_t i = 0; i < 6; i++) /* something passes it */
        (void)fx_submit(f, fx_job(1, 2));
    run(f, 205);
    (void)fx_submit(f, fx_job(1, 300));
    fx_turn(f);
    run(f, 260);
    assert_non_null(stk_drain_of(f->s, fx_of(f, gang)));
    first = f->s->book.fence[0].node;
    assert_int_equal(fx_reserve(f, fx_booking(8, 300, 5000)), 0);
    assert_int_equal(fx_node(f, first, false), 0);
    run(f, 261);
    assert_non_null(stk_drain_of(f->s, fx_of(f, gang)));
    for (uint32_t i = 0; i < f->s->book.n_fences; i++)
        assert_true(f->s->nodes[f->s->book.fence[i].node].up || !f->s->book.row[0].drain);
    fx_finish(f);
}

static void a_cancelled_job_needs_none(void **st)
{
    struct fx *f = world("skip", "drain.after_s=300");
    uint32_t gang = begin(f);

    (void)st;
    small_jobs(f, 40, 300, 220);
    run(f, 310);
    assert_int_equal(f->s->book.n, 1);
    assert_int_equal(fx_cancel(f, gang), 0);
    fx_turn(f);
    assert_int_equal(f->s->book.n, 0);
    fx_finish(f);
}

static void bounds_hold(void **st)
{
    struct fx *f = world("skip", "drain.after_s=300 drain.share=0.5");
    uint32_t gang, big;

    (void)st;
    for (int64_t t = 50; t <= 200; t += 50)
        (void)fx_submit(f, fx_job(4, t));
    fx_turn(f);
    big = fx_submit(f, fx_job(9, 100)); /* more than half of 16 */
    gang = fx_submit(f, fx_job(8, 100));
    (void)fx_submit(f, fx_job(8, 100)); /* drain.most is 1 */
    small_jobs(f, 40, 400, 220);
    assert_null(stk_drain_of(f->s, fx_of(f, big)));
    assert_non_null(stk_drain_of(f->s, fx_of(f, gang)));
    assert_int_equal(f->s->book.n, 1);
    fx_finish(f);
}

static void it_works_with_every_backfill(void **st)
{
    static const char *const all[] = {"none", "skip", "easy", "conservative"};

    (void)st;
    for (uint32_t i = 0; i < 4; i++) {
        struct fx_setup setup = {.order = "sjf", .backfill = all[i], .params = "drain.after_s=300"};
        struct fx *f = fx_new(&setup);
        uint32_t gang;

        f->on_turn = sound_turn;
        for (int64_t t = 50; t <= 200; t += 50)
            (void)fx_submit(f, fx_job(4, t));
        fx_turn(f);
        gang = fx_submit(f, fx_job(8, 1000));
        fx_turn(f);
        for (int64_t t = 30; t < 1100; t += 50) { /* two wait at any time */
            run(f, t);
            (void)fx_submit(f, fx_job(4, 220));
            if (t < 40)
                (void)fx_submit(f, fx_job(4, 220));
            fx_turn(f);
        }
        assert_true(runs(f, gang));
        assert_true(fx_of(f, gang)->started <= 700 * STK_SECOND);
        fx_finish(f);
    }
}

static void policies_that_decide_by_counts_do_not_go_with_it(void **st)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "srtf", .preempt = "afresh"});
    const struct stk_set set = {.kind = STK_SET_PARAM, .name = "drain.after_s", .text = "300"};

    (void)st;
    assert_true(fx_set(f, &set) < 0);
    assert_non_null(strstr(f->err.text, "drain.after_s"));
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_it_small_jobs_starve_a_gang),
        cmocka_unit_test(it_starts_when_all_it_needs_is_expected_to_be_free),
        cmocka_unit_test(others_wait_for_it_and_those_that_end_before_do_not),
        cmocka_unit_test(it_is_given_up_and_not_tried_again_for_a_while),
        cmocka_unit_test(a_lost_node_and_a_reservation_take_it_elsewhere),
        cmocka_unit_test(a_cancelled_job_needs_none),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(it_works_with_every_backfill),
        cmocka_unit_test(policies_that_decide_by_counts_do_not_go_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
