/* SPDX-License-Identifier: Apache-2.0 */
/* test_cycles.c - jobs that give way to each other in a circle are seen, and others are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/cycles.h"
#include "lib/fixture.h"

static struct stk_cycles c;

/* 'who' gives way to 'to' at this time; nobody has to believe it. */
static bool gives_way(const struct fx *f, uint32_t who, uint32_t to, stk_time at)
{
    const struct stk_event ev = {
        .at = at, .type = STK_EV_EVICT, .job = {who}, .u.evict = {.for_job = {to}}};

    return stk_cycles_see(&c, f->s, &ev);
}

static struct fx *three_jobs(uint32_t job[3])
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "fifo"});

    c = (struct stk_cycles){.n = 0};
    for (int i = 0; i < 3; i++)
        job[i] = fx_submit(f, fx_job(1, 10));
    return f;
}

static void two_that_take_turns_are_seen(void **state)
{
    uint32_t j[3];
    struct fx *f = three_jobs(j);

    (void)state;
    assert_false(gives_way(f, j[0], j[1], 5));
    assert_true(gives_way(f, j[1], j[0], 7));
    assert_int_equal(c.found, 1);
    assert_int_equal(c.last[0], fx_of(f, j[1])->number);
    assert_int_equal(c.last[1], fx_of(f, j[0])->number);
    fx_finish(f);
}

static void a_longer_circle_is_seen(void **state)
{
    uint32_t j[3];
    struct fx *f = three_jobs(j);

    (void)state;
    assert_false(gives_way(f, j[0], j[1], 5));
    assert_false(gives_way(f, j[1], j[2], 5));
    assert_true(gives_way(f, j[2], j[0], 9));
    fx_finish(f);
}

static void a_chain_is_no_circle(void **state)
{
    uint32_t j[3];
    struct fx *f = three_jobs(j);

    (void)state;
    assert_false(gives_way(f, j[0], j[1], 5));
    assert_false(gives_way(f, j[0], j[2], 6));
    assert_false(gives_way(f, j[1], j[2], 7));
    assert_int_equal(c.found, 0);
    fx_finish(f);
}

static void what_comes_from_outside_begins_anew(void **state)
{
    const struct stk_event end = {
        .at = 6, .type = STK_EV_EXITED, .u.exit = {.cause = STK_CAUSE_OK}};
    uint32_t j[3];
    struct fx *f = three_jobs(j);

    (void)state;
    assert_false(gives_way(f, j[0], j[1], 5));
    assert_false(stk_cycles_see(&c, f->s, &end));
    assert_false(gives_way(f, j[1], j[0], 7));
    fx_finish(f);
}

static void without_a_name_nobody_goes_twice_at_one_time(void **state)
{
    uint32_t j[3];
    struct fx *f = three_jobs(j);

    (void)state;
    assert_false(gives_way(f, j[0], STK_NONE, 5));
    assert_false(gives_way(f, j[1], STK_NONE, 5));
    assert_true(gives_way(f, j[0], STK_NONE, 5));
    assert_false(gives_way(f, j[0], STK_NONE, 6));
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_that_take_turns_are_seen),
        cmocka_unit_test(a_longer_circle_is_seen),
        cmocka_unit_test(a_chain_is_no_circle),
        cmocka_unit_test(what_comes_from_outside_begins_anew),
        cmocka_unit_test(without_a_name_nobody_goes_twice_at_one_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
