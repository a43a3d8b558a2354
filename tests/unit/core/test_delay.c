/* SPDX-License-Identifier: Apache-2.0 */
/* test_delay.c - a job that runs may run longer, or shorter: its expected end moves, promises and
 * reservations follow, and whom a longer run would make wait is known before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/delay.h"
#include "lib/fixture.h"

#define S STK_SECOND

static const struct stk_node_spec one[1] = {{.gpus = 8}}, two[2] = {{.gpus = 8}, {.gpus = 8}};

static struct fx *world(const char *backfill, const struct stk_node_spec *nodes, uint32_t n)
{
    return fx_new(&(struct fx_setup){.backfill = backfill, .nodes = nodes, .n_nodes = n});
}

static void lasts(struct fx *f, uint32_t job, int64_t seconds)
{
    assert_int_equal(fx_lasts(f, job, seconds * S), 0);
    fx_sound(f);
}

static struct stk_delay delays(struct fx *f, uint32_t job, int64_t was, int64_t seconds)
{
    struct stk_delay d;
    uint64_t before = stk_core_digest(f->core);

    assert_int_equal(stk_core_delays(f->core, f->now,
                                     &(struct stk_longer){{job}, was * S, seconds * S}, &d,
                                     &f->err),
                     0);
    assert_int_equal(stk_core_digest(f->core), before);
    return d;
}

static void a_promise_follows(void **state)
{
    struct fx *f = world("easy", one, 1);
    uint32_t a = fx_submit(f, fx_job(6, 100)), head = fx_submit(f, fx_job(8, 50)),
             small = fx_submit(f, fx_job(2, 150));

    (void)state;
    fx_turn(f);
    assert_int_equal(f->s->pools[0].resv_at, 100 * S);
    assert_int_equal(fx_state(f, small), STK_JOB_WAITING);
    f->now = 10 * S;
    assert_int_equal(delays(f, a, 100, 200).number, fx_of(f, head)->number);
    assert_int_equal(delays(f, a, 100, 200).at, 100 * S);
    assert_int_equal(delays(f, a, 100, 50).number, 0);
    lasts(f, a, 200); /* as an operator may */
    fx_turn(f);
    assert_int_equal(fx_of(f, a)->expected_end, 200 * S);
    assert_int_equal(f->s->pools[0].resv_at, 200 * S);
    assert_int_equal(fx_state(f, small), STK_JOB_RUNNING); /* it ends before that now */
    lasts(f, a, 60);
    fx_turn(f);
    assert_int_equal(fx_of(f, a)->expected_end, 60 * S);
    assert_int_equal(f->s->pools[0].resv_at, 160 * S); /* the small one is there until then */
    fx_finish(f);
}

static void a_plan_follows(void **state)
{
    struct fx *f = world("conservative", one, 1);
    uint32_t a = fx_submit(f, fx_job(8, 100)), b = fx_submit(f, fx_job(8, 50)),
             c = fx_submit(f, fx_job(8, 50));

    (void)state;
    fx_turn(f);
    assert_int_equal(fx_of(f, c)->planned, 150 * S);
    assert_int_equal(delays(f, a, 100, 101).number, fx_of(f, b)->number);
    lasts(f, a, 200);
    fx_turn(f);
    assert_int_equal(fx_of(f, b)->planned, 200 * S);
    assert_int_equal(fx_of(f, c)->planned, 250 * S);
    lasts(f, a, 20);
    fx_turn(f);
    assert_int_equal(fx_of(f, b)->planned, 20 * S);
    fx_finish(f);
}

static void who_finds_room_elsewhere_in_time_is_not_delayed(void **state)
{
    struct fx *f = world("easy", two, 2);
    uint32_t a = fx_submit(f, fx_job(8, 100)), b = fx_submit(f, fx_job(8, 100)),
             head = fx_submit(f, fx_job(8, 50));

    (void)state;
    fx_turn(f);
    assert_int_equal(f->s->pools[0].resv_job, head);
    assert_int_equal(delays(f, a, 100, 1000).number, 0);
    lasts(f, a, 1000);
    fx_turn(f);
    assert_int_equal(f->s->pools[0].resv_at, 100 * S);
    assert_int_equal(delays(f, b, 100, 1000).number, fx_of(f, head)->number);
    fx_run(f, 100 * S);
    assert_int_equal(fx_state(f, head), STK_JOB_RUNNING);
    fx_finish(f);
}

static void a_reservation_is_not_run_into(void **state)
{
    struct fx *f = world("easy", one, 1);
    uint32_t a = fx_submit(f, fx_job(4, 100)), b;

    (void)state;
    fx_turn(f);
    assert_int_equal(fx_reserve(f, fx_booking(8, 200, 300)), 0);
    assert_int_equal(delays(f, a, 100, 200).booking, 0);
    assert_int_equal(delays(f, a, 100, 201).booking, 1);
    assert_int_equal(delays(f, a, 100, 201).at, 200 * S);
    lasts(f, a, 250);
    fx_turn(f);
    f->now = 10 * S;
    b = fx_submit(f,
                  fx_job(4, 195)); /* it would run into the reservation, which lacks the others */
    fx_turn(f);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    f->now = 210 * S;
    fx_turn(f);
    assert_int_equal(delays(f, a, 250, 260).booking, 1); /* it has begun, and waits for these */
    fx_finish(f);
}

static void room_that_a_reservation_no_longer_needs_is_used(void **state)
{
    static const struct stk_node_spec nodes[1] = {{.gpus = 4}};
    struct fx *f = world("skip", nodes, 1);
    uint32_t a = fx_submit(f, fx_job(2, 300)), b;

    (void)state;
    fx_turn(f);
    assert_int_equal(fx_reserve(f, fx_booking(2, 200, 300)), 0);
    b = fx_submit(f, fx_job(2, 250));
    fx_turn(f);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    lasts(f, a, 150);
    fx_turn(f);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    fx_finish(f);
}

static void one_that_is_being_stopped_has_it_for_its_next_start(void **state)
{
    struct fx *f = world("easy", one, 1);
    uint32_t a = fx_submit(f, fx_job(8, 100));

    (void)state;
    fx_turn(f);
    assert_int_equal(fx_job_event(f, STK_EV_EVICT, a), 0);
    lasts(f, a, 500);
    assert_int_equal(fx_exit(f, a, STK_CAUSE_EVICTED), 0);
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(fx_of(f, a)->expected_end, 500 * S);
    fx_free(f);
}

static void a_guess_grows_to_the_new_limit(void **state)
{
    struct fx *f = world("easy", one, 1);
    struct stk_job_spec spec = fx_job(8, 10);
    struct stk_event ev = {.type = STK_EV_UPDATE, .u.update = {.estimate = 10 * S}};
    uint32_t a;

    (void)state;
    spec.terms.limit = 20 * S;
    a = fx_submit(f, spec);
    f->work[a].left = 1000 * S;
    fx_turn(f);
    fx_run(f, 15 * S);
    assert_int_equal(fx_of(f, a)->expected_end, 20 * S);
    ev.job.i = a;
    ev.at = f->now;
    ev.u.update.limit = 65 * S;
    assert_int_equal(fx_apply(f, &ev), 0); /* what was expected at first has passed already */
    fx_sound(f);
    fx_turn(f);
    assert_int_equal(fx_of(f, a)->expected_end, 20 * S);
    fx_run(f, 45 * S);
    assert_int_equal(fx_of(f, a)->expected_end, 65 * S);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_promise_follows),
        cmocka_unit_test(a_plan_follows),
        cmocka_unit_test(who_finds_room_elsewhere_in_time_is_not_delayed),
        cmocka_unit_test(a_reservation_is_not_run_into),
        cmocka_unit_test(room_that_a_reservation_no_longer_needs_is_used),
        cmocka_unit_test(one_that_is_being_stopped_has_it_for_its_next_start),
        cmocka_unit_test(a_guess_grows_to_the_new_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
