/* SPDX-License-Identifier: Apache-2.0 */
/* test_retry.c - a job whose lease ended badly is queued again while its budget lasts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/fixture.h"

static uint32_t submit_retry(struct fx *f, enum stk_retry r, uint8_t n)
{
    struct stk_job_spec spec = fx_job(1, 10);

    spec.retry[r] = n;
    return fx_submit(f, spec);
}

static void start(struct fx *f, uint32_t job)
{
    const struct stk_piece piece = {{0}, 1, 1, 0, 1};

    assert_int_equal(fx_place(f, job, &piece, 1), 0);
    assert_int_equal(fx_job_event(f, STK_EV_STARTED, job), 0);
}

static int exit_final(struct fx *f, uint32_t job, enum stk_cause cause)
{
    const struct stk_event ev = {.at = f->now,
                                 .type = STK_EV_EXITED,
                                 .job = {job},
                                 .lease = fx_of(f, job)->lease,
                                 .u.exit = {.cause = cause, .final = true}};

    return fx_apply(f, &ev);
}

static void a_budget_is_used_up(void **state)
{
    static const struct {
        enum stk_cause cause;
        enum stk_retry budget;
    } by[] = {{STK_CAUSE_FAILED, STK_RETRY_ERROR},      {STK_CAUSE_SIGNAL, STK_RETRY_ERROR},
              {STK_CAUSE_NOT_STARTED, STK_RETRY_ERROR}, {STK_CAUSE_OOM, STK_RETRY_OOM},
              {STK_CAUSE_TIMEOUT, STK_RETRY_TIMEOUT},   {STK_CAUSE_NODE_LOST, STK_RETRY_NODE},
              {STK_CAUSE_GPU, STK_RETRY_NODE},          {STK_CAUSE_UNKNOWN, STK_RETRY_NODE}};

    (void)state;
    for (size_t i = 0; i < sizeof(by) / sizeof(*by); i++) {
        struct fx *f = fx_plain();
        uint32_t job = submit_retry(f, by[i].budget, 2);

        for (uint32_t k = 0; k < 2; k++) {
            start(f, job);
            assert_int_equal(fx_exit(f, job, by[i].cause), 0);
            assert_int_equal(fx_state(f, job), STK_JOB_WAITING);
            assert_int_equal(fx_of(f, job)->restarts, k + 1);
            assert_int_equal(fx_of(f, job)->retry[by[i].budget], 1 - k);
        }
        start(f, job);
        assert_int_equal(fx_exit(f, job, by[i].cause), 0);
        assert_int_equal(fx_state(f, job), STK_JOB_DONE);
        assert_int_equal(fx_of(f, job)->cause, by[i].cause);
        assert_int_equal(fx_of(f, job)->restarts, 2);
        fx_finish(f);
    }
}

static void a_budget_is_for_its_own_causes(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = submit_retry(f, STK_RETRY_OOM, 1), good = submit_retry(f, STK_RETRY_ERROR, 1);

    (void)state;
    start(f, job);
    assert_int_equal(fx_exit(f, job, STK_CAUSE_FAILED), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_DONE);
    start(f, good);
    assert_int_equal(fx_exit(f, good, STK_CAUSE_OK), 0);
    assert_int_equal(fx_state(f, good), STK_JOB_DONE);
    fx_finish(f);
}

static void always_is_never_counted_down(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = submit_retry(f, STK_RETRY_ERROR, STK_RETRY_ALWAYS);

    (void)state;
    for (int i = 0; i < 300; i++) {
        start(f, job);
        assert_int_equal(fx_exit(f, job, STK_CAUSE_FAILED), 0);
    }
    assert_int_equal(fx_state(f, job), STK_JOB_WAITING);
    assert_int_equal(fx_of(f, job)->restarts, 300);
    assert_int_equal(fx_of(f, job)->retry[STK_RETRY_ERROR], STK_RETRY_ALWAYS);
    fx_finish(f);
}

static void a_cancelled_job_is_not_retried(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = submit_retry(f, STK_RETRY_ERROR, 5), again = submit_retry(f, 0, 5);

    (void)state;
    start(f, job);
    assert_int_equal(fx_job_event(f, STK_EV_CANCEL, job), 0);
    assert_int_equal(fx_exit(f, job, STK_CAUSE_FAILED), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_DONE);
    assert_int_equal(fx_of(f, job)->cause, STK_CAUSE_CANCELLED);
    start(f, again);
    assert_int_equal(fx_job_event(f, STK_EV_CANCEL, again), 0);
    assert_int_equal(exit_final(f, again, STK_CAUSE_FAILED), 0);
    assert_int_equal(fx_state(f, again), STK_JOB_DONE);
    fx_finish(f);
}

static void a_hold_that_came_meanwhile_is_honoured(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = submit_retry(f, STK_RETRY_ERROR, 5);

    (void)state;
    start(f, job);
    assert_int_equal(fx_job_event(f, STK_EV_EVICT, job), 0);
    assert_int_equal(fx_job_event(f, STK_EV_HOLD, job), 0);
    assert_int_equal(fx_exit(f, job, STK_CAUSE_FAILED), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_HELD);
    assert_int_equal(fx_of(f, job)->retry[STK_RETRY_ERROR], 4);
    assert_int_equal(fx_of(f, job)->preemptions, 0);
    fx_finish(f);
}

static void a_final_end_uses_no_budget_and_an_eviction_neither(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = submit_retry(f, STK_RETRY_ERROR, 1);

    (void)state;
    start(f, job);
    assert_int_equal(fx_job_event(f, STK_EV_EVICT, job), 0);
    assert_int_equal(exit_final(f, job, STK_CAUSE_EVICTED), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_WAITING);
    assert_int_equal(fx_of(f, job)->retry[STK_RETRY_ERROR], 1);
    assert_int_equal(fx_of(f, job)->restarts, 1);
    assert_int_equal(fx_of(f, job)->preemptions, 1);
    start(f, job);
    assert_int_equal(exit_final(f, job, STK_CAUSE_FAILED), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_DONE);
    assert_int_equal(fx_of(f, job)->cause, STK_CAUSE_FAILED);
    assert_int_equal(fx_of(f, job)->retry[STK_RETRY_ERROR], 1);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_budget_is_used_up),
        cmocka_unit_test(a_budget_is_for_its_own_causes),
        cmocka_unit_test(always_is_never_counted_down),
        cmocka_unit_test(a_cancelled_job_is_not_retried),
        cmocka_unit_test(a_hold_that_came_meanwhile_is_honoured),
        cmocka_unit_test(a_final_end_uses_no_budget_and_an_eviction_neither),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
