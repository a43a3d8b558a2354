/* SPDX-License-Identifier: Apache-2.0 */
/* test_calibrate.c - forecasts corrected by what came of earlier ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "forecast/calibrate.h"
#include "lib/fixture.h"

#define S STK_SECOND

struct c {
    struct fx_heap heap;
    struct stk_mem mem;
    struct stk_calibrate *c;
};

static void start(struct c *x)
{
    *x = (struct c){.heap = {0}};
    x->mem = fx_mem(&x->heap);
    x->c = stk_calibrate_new(&x->mem, 2);
    assert_non_null(x->c);
}

static void end(struct c *x)
{
    stk_calibrate_free(x->c);
    stk_calibrate_free(NULL);
    assert_int_equal(x->heap.live, 0);
}

static struct stk_expected correct(struct c *x, stk_time now, stk_time p50, stk_time p90)
{
    const struct stk_calibrate_of of = {0, 1, now, now};
    const stk_time end_p50 = p50 == STK_NEVER_TIME ? p50 : p50 + 10 * S;
    const stk_time end_p90 = p90 == STK_NEVER_TIME ? p90 : p90 + 10 * S;
    struct stk_expected e = {now, p50, p90, end_p50, end_p90};

    stk_calibrate_now(x->c, now);
    stk_calibrate_correct(x->c, &of, &e);
    return e;
}

static void the_mean_of_its_pool_and_size_comes_first(void **state)
{
    struct c x;

    (void)state;
    start(&x);
    assert_true(stk_calibrate_mean(x.c, 0, 1) == 0);
    stk_calibrate_waited(x.c, 0, 1, 10 * S);
    stk_calibrate_waited(x.c, 0, 1, 30 * S);
    stk_calibrate_waited(x.c, 0, 8, 50 * S);
    stk_calibrate_waited(x.c, 9, 8, 990 * S); /* a pool that is not known */
    assert_true(stk_calibrate_mean(x.c, 0, 1) == 20 * S);
    assert_true(stk_calibrate_mean(x.c, 0, 7) == 50 * S); /* sizes 5 to 8 are alike */
    assert_true(stk_calibrate_mean(x.c, 0, 2) == 30 * S);
    assert_true(stk_calibrate_mean(x.c, 1, 1) == 270 * S);
    end(&x);
}

static void p50_is_drawn_towards_the_mean_but_not_when_it_starts_at_once(void **state)
{
    struct c x;
    struct stk_expected e;

    (void)state;
    start(&x);
    e = correct(&x, 100 * S, 200 * S, 300 * S);
    assert_true(e.p50 == 200 * S && e.p90 == 300 * S && e.end_p50 == 210 * S); /* nothing known */
    stk_calibrate_waited(x.c, 0, 1, (16 * 400 - 300) * S);
    e = correct(&x, 100 * S, 200 * S, 300 * S);
    assert_true(e.p50 == 300 * S);               /* no later than its own P90 */
    e = correct(&x, 100 * S, 200 * S, 9000 * S); /* (100 + 300) * 16^(1/4) - 300 = 500 s */
    assert_in_range((uint64_t)(e.p50 / S), 599, 601);
    assert_true(e.p90 >= e.p50 && e.end_p50 - e.p50 == 10 * S && e.end_p90 >= e.end_p50);
    e = correct(&x, 100 * S, 100 * S, 100 * S);
    assert_true(e.p50 == 100 * S && e.p90 == 100 * S);
    e = correct(&x, 100 * S, STK_NEVER_TIME, STK_NEVER_TIME);
    assert_true(e.p50 == STK_NEVER_TIME && e.p90 == STK_NEVER_TIME);
    end(&x);
}

static void p90_is_what_nine_of_ten_would_have_needed(void **state)
{
    struct c x;
    struct stk_expected e;

    (void)state;
    start(&x);
    for (uint32_t i = 1; i <= 100; i++) { /* said 700 s, came after 800, 900, ... 1700 s */
        stk_calibrate_said(x.c, i, 0, 700 * S);
        stk_calibrate_started(x.c, i, (700 + (i + 9) / 10 * 100) * S);
    }
    e = correct(&x, 5000 * S, 5700 * S, 5701 * S);
    assert_true(e.p50 == 5700 * S);
    assert_in_range((uint64_t)(e.p90 / S), 6599, 6701);
    for (uint32_t i = 101; i <= 300; i++) /* and now jobs wait that should have started */
        stk_calibrate_said(x.c, i, 0, 100 * S);
    e = correct(&x, 5000 * S, 5700 * S, 5701 * S);
    assert_true(e.p90 > 10000 * S);
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_of_its_pool_and_size_comes_first),
        cmocka_unit_test(p50_is_drawn_towards_the_mean_but_not_when_it_starts_at_once),
        cmocka_unit_test(p90_is_what_nine_of_ten_would_have_needed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
