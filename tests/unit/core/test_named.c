/* SPDX-License-Identifier: Apache-2.0 */
/* test_named.c - times that people named follow the wall clock when the scheduler's time is ahead
 * of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/booking.h"
#include "core/settings.h"
#include "lib/fixture.h"

static void set_ahead(struct fx *f, int64_t seconds)
{
    const struct stk_set e = {.kind = STK_SET_CLOCK, .value = seconds * STK_SECOND};

    assert_int_equal(fx_set(f, &e), 0);
    assert_int_equal(stk_settings_ahead(f->s), seconds * STK_SECOND);
    fx_sound(f);
}

static void run(struct fx *f, int64_t s)
{
    fx_run(f, s * STK_SECOND);
    f->now = s * STK_SECOND;
    fx_turn(f);
    fx_sound(f);
}

static void a_begin_moves_until_it_is_reached(void **state)
{
    struct fx *f = fx_plain();
    struct stk_job_spec spec = fx_job(1, 5);
    uint32_t job;

    (void)state;
    spec.begin = 100 * STK_SECOND;
    job = fx_submit(f, spec);
    set_ahead(f, 50);
    run(f, 149);
    assert_int_equal(fx_state(f, job), STK_JOB_BLOCKED);
    set_ahead(f, 40); /* later than it should be, and due at once */
    run(f, 149);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    set_ahead(f, 90);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

static void a_window_moves_and_one_that_is_open_ends_later(void **state)
{
    struct fx *f = fx_plain();
    const struct stk_booking *b;

    (void)state;
    assert_int_equal(fx_reserve(f, fx_booking(4, 100, 200)), 0);
    set_ahead(f, 50);
    run(f, 149);
    b = &f->s->book.row[0];
    assert_false(b->open);
    run(f, 150);
    b = &f->s->book.row[0];
    assert_true(b->open);
    set_ahead(f, 80);
    b = &f->s->book.row[0];
    assert_true(b->open);
    assert_int_equal(b->start, 150 * STK_SECOND);
    assert_int_equal(b->end, 280 * STK_SECOND);
    run(f, 279);
    assert_int_equal(f->s->book.n, 1);
    set_ahead(f, 0); /* its end was long ago */
    run(f, 279);
    assert_int_equal(f->s->book.n, 0);
    fx_finish(f);
}

static void jobs_are_ranked_by_their_moved_deadlines(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "edf"});
    struct stk_job_spec spec = fx_job(16, 50);
    uint32_t runs = fx_submit(f, spec), plain, urgent;

    (void)state;
    fx_turn(f);
    assert_int_equal(fx_state(f, runs), STK_JOB_RUNNING);
    spec.estimate = 10 * STK_SECOND;
    plain = fx_submit(f, spec);
    spec.terms.deadline = 40 * STK_SECOND; /* over when the first ends, but for the clock */
    urgent = fx_submit(f, spec);
    set_ahead(f, 3600);
    assert_int_equal(f->s->terms[urgent].deadline, 3640 * STK_SECOND);
    run(f, 50);
    assert_int_equal(fx_state(f, urgent), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, plain), STK_JOB_WAITING);
    fx_drain(f);
    fx_finish(f);
}

static void it_is_saved_and_refused_out_of_range(void **state)
{
    struct fx *f = fx_plain();
    struct stk_set e = {.kind = STK_SET_CLOCK, .value = -1};
    struct stk_core *again;

    (void)state;
    assert_int_equal(fx_reserve(f, fx_booking(4, 100, 200)), 0);
    assert_int_equal(fx_set(f, &e), -EINVAL);
    e.value = STK_MAX_DURATION + 1;
    assert_int_equal(fx_set(f, &e), -EINVAL);
    set_ahead(f, 50);
    again = fx_reload(f, f->core, NULL);
    assert_int_equal(stk_settings_ahead(stk_core_state(again)), 50 * STK_SECOND);
    assert_int_equal(stk_core_state(again)->book.row[0].start, 150 * STK_SECOND);
    stk_core_free(again);
    e.value = STK_MAX_DURATION; /* clamped, and still a window */
    assert_int_equal(fx_set(f, &e), 0);
    fx_sound(f);
    again = fx_reload(f, f->core, NULL);
    stk_core_free(again);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_begin_moves_until_it_is_reached),
        cmocka_unit_test(a_window_moves_and_one_that_is_open_ends_later),
        cmocka_unit_test(jobs_are_ranked_by_their_moved_deadlines),
        cmocka_unit_test(it_is_saved_and_refused_out_of_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
