/* SPDX-License-Identifier: Apache-2.0 */
/* test_predict.c - how long jobs run, from how long others ran. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "forecast/predict.h"
#include "lib/fixture.h"

#define S STK_SECOND

struct p {
    struct fx_heap heap;
    struct stk_mem mem;
    struct stk_predict *p;
};

static void start(struct p *x)
{
    *x = (struct p){.heap = {0}};
    x->mem = fx_mem(&x->heap);
    x->p = stk_predict_new(&x->mem);
    assert_non_null(x->p);
}

static void end(struct p *x)
{
    stk_predict_free(x->p);
    stk_predict_free(NULL);
    assert_int_equal(x->heap.live, 0);
}

static void ran(struct p *x, uint32_t user, uint32_t gpus, int64_t estimate_s, int64_t run_s)
{
    stk_predict_ran(x->p, &(struct stk_run_kind){user, gpus, estimate_s * S}, run_s * S);
}

static int64_t ask(struct p *x, uint32_t user, uint32_t gpus, int64_t estimate_s, int64_t so_far_s,
                   uint32_t milli)
{
    return stk_predict_run(x->p, &(struct stk_run_kind){user, gpus, estimate_s * S}, so_far_s * S,
                           milli) /
           S;
}

static void users_own_jobs_of_that_size_come_first(void **state)
{
    struct p x;

    (void)state;
    start(&x);
    for (int64_t i = 1; i <= 9; i++) {
        ran(&x, 1, 8, 0, 100 * i);
        ran(&x, 1, 1, 0, i);
        ran(&x, 2, 8, 0, 10000);
    }
    assert_int_equal(ask(&x, 1, 8, 0, 0, 500), 500);
    assert_int_equal(ask(&x, 1, 8, 0, 0, 900), 900);
    assert_int_equal(ask(&x, 1, 7, 0, 0, 500), 500); /* 5 to 8 are alike */
    assert_int_equal(ask(&x, 1, 1, 0, 0, 500), 5);
    assert_int_equal(ask(&x, 2, 8, 0, 0, 500), 10000);
    end(&x);
}

static void then_the_users_others_then_that_size_then_all(void **state)
{
    struct p x;

    (void)state;
    start(&x);
    for (int i = 0; i < 5; i++) {
        ran(&x, 1, 1, 0, 10);
        ran(&x, 2, 8, 0, 70);
    }
    assert_int_equal(ask(&x, 1, 8, 0, 0, 500), 10);
    assert_int_equal(ask(&x, 3, 8, 0, 0, 500), 70);
    ran(&x, 3, 8, 0, 1); /* one alone says nothing */
    assert_int_equal(ask(&x, 3, 8, 0, 0, 500), 70);
    ran(&x, 2, 2, 0, 70);
    ran(&x, 2, 2, 0, 70);
    assert_int_equal(ask(&x, 4, 64, 0, 0, 999), 70);
    end(&x);
}

static void where_nothing_is_known_the_estimate_holds(void **state)
{
    struct p x;

    (void)state;
    start(&x);
    assert_int_equal(ask(&x, 1, 8, 500, 0, 500), 500);
    assert_int_equal(ask(&x, 1, 8, 500, 100, 900), 500);
    assert_int_equal(ask(&x, 1, 8, 0, 0, 500), 3600);
    assert_true(ask(&x, 1, 8, 500, 50000, 500) == 100000); /* it has outrun it: half over */
    end(&x);
}

static void an_estimate_is_corrected_by_what_was_used_of_earlier_ones(void **state)
{
    struct p x;

    (void)state;
    start(&x);
    for (int64_t i = 0; i < 9; i++)
        ran(&x, 1, 1, 1000, 100 + 10 * i);
    assert_int_equal(ask(&x, 1, 1, 5000, 0, 500), 700);
    assert_int_equal(ask(&x, 1, 1, 0, 0, 500), 140); /* none given now */
    end(&x);
}

static void who_has_survived_is_compared_with_those_who_did(void **state)
{
    struct p x;

    (void)state;
    start(&x);
    for (int64_t i = 1; i <= 10; i++)
        ran(&x, 1, 1, 0, 10 * i);
    assert_int_equal(ask(&x, 1, 1, 0, 0, 500), 60);
    assert_int_equal(ask(&x, 1, 1, 0, 60, 500), 90);
    assert_int_equal(ask(&x, 1, 1, 0, 75, 999), 100);
    assert_int_equal(ask(&x, 1, 1, 0, 4000, 500), 8000); /* nobody did */
    assert_int_equal(ask(&x, 1, 1, 0, 4000, 900), 40000);
    end(&x);
}

static void the_answer_is_always_more_than_it_has_run(void **state)
{
    struct stk_rng r;
    struct p x;

    (void)state;
    start(&x);
    stk_rng_init(&r, 3);
    for (int i = 0; i < 20000; i++) {
        struct stk_run_kind k = {(uint32_t)stk_rng_below(&r, 5), (uint32_t)stk_rng_below(&r, 70),
                                 (stk_time)stk_rng_below(&r, 3) *
                                     (stk_time)stk_rng_below(&r, (uint64_t)STK_MAX_DURATION / 2)};
        stk_time so_far = (stk_time)stk_rng_below(&r, (uint64_t)STK_MAX_DURATION >> i % 40), a, b;

        a = stk_predict_run(x.p, &k, so_far, 1 + (uint32_t)stk_rng_below(&r, 500));
        b = stk_predict_run(x.p, &k, so_far, 501 + (uint32_t)stk_rng_below(&r, 499));
        assert_true(so_far < a && a <= b);
        stk_predict_ran(x.p, &k, so_far);
    }
    end(&x);
}

static void the_latest_count_and_memory_does_not_grow(void **state)
{
    struct p x;
    uint64_t live;

    (void)state;
    start(&x);
    live = x.heap.calls;
    for (uint32_t user = 0; user < 100000; user++)
        for (int i = 0; i < 3; i++)
            ran(&x, user, 1, 0, user);
    assert_int_equal(x.heap.calls, live);
    assert_int_equal(ask(&x, 99999, 1, 0, 0, 500), 99999);
    for (int i = 0; i < 32; i++)
        ran(&x, 99999, 1, 0, 5);
    assert_int_equal(ask(&x, 99999, 1, 0, 0, 999), 5);
    end(&x);
}

static void who_is_stopped_at_the_estimate_runs_no_longer(void **state)
{
    struct p x;
    const struct stk_run_kind k = {1, 1, 100 * S}, none = {1, 1, 0};

    (void)state;
    start(&x);
    for (int i = 0; i < 5; i++)
        ran(&x, 1, 1, 0, 1000);
    assert_true(stk_predict_run(x.p, &k, 0, 500) == 1000 * S);
    assert_true(stk_predict_limited(x.p, &k, 0, 500) == 100 * S);
    assert_true(stk_predict_limited(x.p, &none, 0, 500) == 1000 * S);
    assert_true(stk_predict_limited(x.p, &k, 200 * S, 500) == 1000 * S); /* it was not stopped */
    end(&x);
}

/* ---- what the scheduler is told ---- */

#define USERS 5
#define PAST 400

struct ended { /* all there ever was, to look through from the end */
    uint32_t user, gpus;
    int64_t run;
};

static bool alike(uint32_t a, uint32_t b)
{
    uint32_t up = 1;

    while (up < a)
        up *= 2;
    return a == b || (a > 0 && b > 0 && b <= up && b > up / 2);
}

/* The median of the latest 32 of the user, of that size or (gpus 0) of any; 0: fewer than 3. */
static int64_t latest_median(const struct ended *e, uint32_t n, uint32_t user, uint32_t gpus)
{
    int64_t run[32];
    uint32_t m = 0;

    while (n-- > 0 && m < 32)
        if (e[n].user == user && (gpus == 0 || alike(gpus, e[n].gpus))) {
            uint32_t at = m++;

            for (; at > 0 && run[at - 1] > e[n].run; at--)
                run[at] = run[at - 1];
            run[at] = e[n].run;
        }
    return m < 3 ? 0 : run[m / 2];
}

static int64_t told(const struct ended *e, uint32_t n, uint32_t user, uint32_t gpus, int64_t asked)
{
    int64_t t = latest_median(e, n, user, gpus);

    if (asked > 0)
        return t > 0 && t < asked ? t : asked;
    return t > 0 ? t : latest_median(e, n, user, 0);
}

static void estimates_are_those_of_a_plain_search_through_the_past(void **state)
{
    static struct ended past[PAST];
    uint32_t medians = 0, limits = 0, nothing = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct stk_rng r;
        struct p x;

        start(&x);
        stk_rng_init(&r, seed);
        for (uint32_t n = 0; n < PAST; n++) {
            const uint32_t user = (uint32_t)stk_rng_below(&r, USERS);
            const uint32_t gpus = 1 + (uint32_t)stk_rng_below(&r, 20);
            const int64_t asked = stk_rng_below(&r, 3) ? 1 + (int64_t)stk_rng_below(&r, 1000) : 0;
            const int64_t want = told(past, n, user, gpus, asked) * S;
            const struct stk_run_kind k = {user, gpus, asked * S};

            assert_int_equal(stk_predict_estimate(x.p, &k), want);
            medians += want > 0 && want != asked * S;
            limits += asked > 0 && want == asked * S;
            nothing += want == 0;
            past[n].user = user;
            past[n].gpus = 1 + (uint32_t)stk_rng_below(&r, 20);
            past[n].run = 1 + (int64_t)stk_rng_below(&r, 2000);
            ran(&x, user, past[n].gpus, asked, past[n].run);
        }
        end(&x);
    }
    assert_true(medians > 1000 && limits > 1000 && nothing > 20);
}

static void an_estimate_is_never_above_what_was_asked_for(void **state)
{
    struct p x;

    (void)state;
    start(&x);
    for (int i = 0; i < 40; i++)
        ran(&x, 1, 4, 100, 100);
    for (int64_t asked = 1; asked < 300; asked += 7)
        assert_int_equal(stk_predict_estimate(x.p, &(struct stk_run_kind){1, 4, asked * S}) / S,
                         asked < 100 ? asked : 100);
    assert_int_equal(stk_predict_estimate(x.p, &(struct stk_run_kind){1, 1, 0}) / S, 100);
    assert_int_equal(stk_predict_estimate(x.p, &(struct stk_run_kind){2, 4, 0}), 0);
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimates_are_those_of_a_plain_search_through_the_past),
        cmocka_unit_test(an_estimate_is_never_above_what_was_asked_for),
        cmocka_unit_test(users_own_jobs_of_that_size_come_first),
        cmocka_unit_test(then_the_users_others_then_that_size_then_all),
        cmocka_unit_test(where_nothing_is_known_the_estimate_holds),
        cmocka_unit_test(an_estimate_is_corrected_by_what_was_used_of_earlier_ones),
        cmocka_unit_test(who_has_survived_is_compared_with_those_who_did),
        cmocka_unit_test(the_answer_is_always_more_than_it_has_run),
        cmocka_unit_test(the_latest_count_and_memory_does_not_grow),
        cmocka_unit_test(who_is_stopped_at_the_estimate_runs_no_longer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
