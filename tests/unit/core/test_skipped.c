/* SPDX-License-Identifier: Apache-2.0 */
/* test_skipped.c - the time of events jumps, and nothing happened in what it jumped over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/growth.h"
#include "core/settings.h"
#include "core/usage.h"
#include "lib/fixture.h"

#define DAY (INT64_C(86400))

/* Time jumps by so many seconds. */
static void jump(struct fx *f, int64_t seconds)
{
    const struct stk_set e = {.kind = STK_SET_SKIP, .value = seconds * STK_SECOND};

    f->now += seconds * STK_SECOND;
    assert_int_equal(fx_set(f, &e), 0);
    assert_int_equal(f->s->now, f->now);
    fx_sound(f);
}

static void at(struct fx *f, int64_t s)
{
    f->now = s * STK_SECOND;
    fx_turn(f);
}

static void what_was_skipped_is_neither_run_time_nor_waiting(void **state)
{
    struct fx *f = fx_plain();
    const struct stk_job *runs, *waits;
    struct stk_job_spec later = fx_job(1, 5);
    uint32_t job[3];

    (void)state;
    at(f, 10);
    later.begin = 5 * DAY * STK_SECOND;
    job[0] = fx_submit(f, fx_job(16, 100));
    job[1] = fx_submit(f, fx_job(16, 100));
    job[2] = fx_submit(f, later);
    at(f, 10);
    at(f, 13);
    jump(f, 2 * DAY);
    runs = &f->s->jobs[job[0]];
    waits = &f->s->jobs[job[1]];
    assert_int_equal(stk_job_served(runs, f->now), 3 * STK_SECOND);
    assert_int_equal(f->now - runs->submitted, 3 * STK_SECOND);
    assert_int_equal(f->now - waits->queued, 3 * STK_SECOND);
    assert_int_equal(f->s->jobs[job[2]].begin, 5 * DAY * STK_SECOND);
    assert_int_equal(stk_settings_ahead(f->s), 0);
    assert_int_equal(fx_state(f, job[0]), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, job[2]), STK_JOB_BLOCKED);
    fx_free(f);
}

static void what_a_tenant_has_had_neither_grows_nor_fades(void **state)
{
    struct stk_tenant_spec org[3];
    struct fx *f;
    stk_u128 before;

    (void)state;
    fx_org(org, 3);
    f = fx_new(&(struct fx_setup){.order = "fairshare",
                                  .params = "fairshare.half_life_s=100",
                                  .tenants = org,
                                  .n_tenants = 3});
    at(f, 1);
    (void)fx_submit(f, fx_job(4, 1000));
    at(f, 1);
    at(f, 50);
    before = f->s->usage->row[0].past +
             (stk_u128)f->s->usage->row[0].rate *
                 stk_growth((uint64_t)(f->now - f->s->usage->epoch), (uint64_t)(100 * STK_SECOND));
    jump(f, 3 * DAY);
    assert_true(before ==
                f->s->usage->row[0].past + (stk_u128)f->s->usage->row[0].rate *
                                               stk_growth((uint64_t)(f->now - f->s->usage->epoch),
                                                          (uint64_t)(100 * STK_SECOND)));
    assert_true(before > 0);
    fx_free(f);
}

static void it_is_refused_out_of_range_and_not_kept(void **state)
{
    struct fx *f = fx_plain();
    struct stk_set e = {.kind = STK_SET_SKIP, .value = -1};

    (void)state;
    at(f, 10);
    assert_int_equal(fx_set(f, &e), -EINVAL);
    e.value = 11 * STK_SECOND;
    assert_int_equal(fx_set(f, &e), -EINVAL);
    e.value = 10 * STK_SECOND;
    e.clear = true;
    assert_int_equal(fx_set(f, &e), -EINVAL);
    jump(f, 5);
    assert_int_equal(f->s->settings->n, 0);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_skipped_is_neither_run_time_nor_waiting),
        cmocka_unit_test(what_a_tenant_has_had_neither_grows_nor_fades),
        cmocka_unit_test(it_is_refused_out_of_range_and_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
