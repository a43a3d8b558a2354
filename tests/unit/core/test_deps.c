/* SPDX-License-Identifier: Apache-2.0 */
/* test_deps.c - jobs that wait for others or for a time, and finished jobs that are forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/fixture.h"

static uint32_t after(struct fx *f, uint32_t on, enum stk_dep_type type)
{
    struct stk_job_spec spec = fx_job(1, 10);
    const struct stk_dep dep = {fx_of(f, on)->number, type, false};

    spec.deps = &dep;
    spec.n_deps = 1;
    return fx_submit(f, spec);
}

static uint32_t ended(struct fx *f, enum stk_cause cause)
{
    uint32_t job = fx_submit(f, fx_job(1, 10));

    if (cause == STK_CAUSE_CANCELLED) {
        assert_int_equal(fx_cancel(f, job), 0);
        return job;
    }
    (void)fx_decide(f);
    assert_int_equal(fx_exit(f, job, cause), 0);
    return job;
}

/* What a dependent becomes when the other ends in each way, before and after the submit. */
static void each_dependency_is_met_by_the_right_ends(void **state)
{
    (void)state;
    for (unsigned c = STK_CAUSE_OK; c < STK_CAUSE_MAX; c++) {
        for (unsigned t = 0; t < STK_DEP_TYPE_MAX; t++) {
            enum stk_cause cause = (enum stk_cause)c;
            bool met = t == STK_DEP_AFTERANY || (t == STK_DEP_AFTEROK) == (c == STK_CAUSE_OK);
            struct fx *f = fx_new(&(struct fx_setup){.order = "fifo"});
            uint32_t on, dep;

            if (cause == STK_CAUSE_EVICTED) { /* not an end */
                fx_free(f);
                continue;
            }
            on = fx_submit(f, fx_job(1, 10));
            dep = after(f, on, (enum stk_dep_type)t);
            assert_int_equal(fx_state(f, dep), STK_JOB_BLOCKED);
            (void)fx_decide(f);
            assert_int_equal(fx_state(f, dep), STK_JOB_BLOCKED);
            assert_int_equal(fx_exit(f, on, cause), 0);
            assert_int_equal(fx_state(f, dep), met ? STK_JOB_WAITING : STK_JOB_DONE);
            assert_int_equal(fx_of(f, dep)->cause, met ? STK_CAUSE_NONE : STK_CAUSE_DEPENDENCY);
            dep = after(f, ended(f, cause), (enum stk_dep_type)t);
            assert_int_equal(fx_state(f, dep), met ? STK_JOB_WAITING : STK_JOB_DONE);
            assert_int_equal(stk_dep_met((enum stk_dep_type)t, cause), met);
            fx_finish(f);
        }
    }
}

static void an_eviction_is_not_an_end(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "fifo"});
    uint32_t on = fx_submit(f, fx_job(1, 10)), dep = after(f, on, STK_DEP_AFTERANY);

    (void)state;
    (void)fx_decide(f);
    assert_int_equal(fx_job_event(f, STK_EV_EVICT, on), 0);
    assert_int_equal(fx_exit(f, on, STK_CAUSE_EVICTED), 0);
    assert_int_equal(fx_state(f, dep), STK_JOB_BLOCKED);
    fx_finish(f);
}

static void a_failure_runs_down_a_chain_and_stops_at_afterany(void **state)
{
    enum { N = 2000 };
    struct fx *f = fx_new(&(struct fx_setup){.order = "fifo"});
    uint32_t first = fx_submit(f, fx_job(1, 10)), last = first, any, notok;

    (void)state;
    for (int i = 0; i < N; i++)
        last = after(f, last, STK_DEP_AFTEROK);
    any = after(f, last, STK_DEP_AFTERANY);
    notok = after(f, first, STK_DEP_AFTERNOTOK);
    assert_int_equal(f->s->n_blocked, N + 2);
    (void)fx_decide(f);
    assert_int_equal(fx_exit(f, first, STK_CAUSE_FAILED), 0);
    assert_int_equal(f->s->n_done, N + 1);
    assert_int_equal(fx_of(f, last)->cause, STK_CAUSE_DEPENDENCY);
    assert_int_equal(fx_state(f, any), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, notok), STK_JOB_WAITING);
    assert_int_equal(f->s->n_blocked, 0);
    fx_finish(f);
}

static void all_dependencies_must_be_met(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "fifo"});
    uint32_t a = fx_submit(f, fx_job(1, 10)), b = fx_submit(f, fx_job(1, 10)), c, d;
    struct stk_dep deps[3] = {
        {1, STK_DEP_AFTEROK, false}, {2, STK_DEP_AFTERANY, false}, {1, STK_DEP_AFTERANY, false}};
    struct stk_job_spec spec = fx_job(1, 10);

    (void)state;
    spec.deps = deps;
    spec.n_deps = 3; /* the same job twice is fine */
    c = fx_submit(f, spec);
    spec.held = true;
    d = fx_submit(f, spec);
    (void)fx_decide(f);
    assert_int_equal(fx_exit(f, a, STK_CAUSE_OK), 0);
    assert_int_equal(fx_of(f, c)->unmet, 1);
    assert_int_equal(fx_exit(f, b, STK_CAUSE_SIGNAL), 0);
    assert_int_equal(fx_state(f, c), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, d), STK_JOB_HELD);
    assert_int_equal(fx_job_event(f, STK_EV_RELEASE, d), 0);
    assert_int_equal(fx_state(f, d), STK_JOB_WAITING);
    fx_finish(f);
}

static void a_cancelled_dependent_is_not_told(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.forget = true});
    uint32_t on = fx_submit(f, fx_job(1, 10)), dep = after(f, on, STK_DEP_AFTEROK), other;

    (void)state;
    assert_int_equal(fx_cancel(f, dep), 0); /* forgotten at once; its slot is used again */
    other = fx_submit(f, fx_job(1, 10));
    assert_int_equal(other, dep);
    (void)fx_decide(f);
    assert_int_equal(fx_exit(f, on, STK_CAUSE_FAILED), 0);
    assert_int_equal(fx_state(f, other), STK_JOB_PLACED);
    fx_finish(f);
}

static void dependents_in_another_pool_are_woken(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 1}, {.gpus = 1, .pool = {1}}};
    static const char *const backfill[] = {"skip", "none", "easy", "conservative"};

    (void)state;
    for (int k = 0; k < 8; k++) {
        struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes,
                                                 .n_nodes = 2,
                                                 .n_pools = 2,
                                                 .backfill = backfill[k % 4],
                                                 .order = k < 4 ? "fifo" : "las",
                                                 .preempt = k < 4 ? "none" : "afresh"});
        struct stk_job_spec spec = fx_job(1, 10);
        const struct stk_dep dep = {1, STK_DEP_AFTEROK, false};
        uint32_t on = fx_submit(f, spec), last = on;

        spec.pool.i = 1;
        spec.deps = &dep;
        spec.n_deps = 1;
        for (int i = 0; i < 40; i++)
            last = fx_submit(f, spec);
        fx_drain(f);
        assert_int_equal(fx_of(f, last)->ended, 410 * STK_SECOND);
        fx_finish(f);
    }
}

static void a_job_begins_at_its_time_not_before(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "fifo"});
    struct stk_job_spec spec = fx_job(1, 10);
    uint32_t on = fx_submit(f, fx_job(1, 30)), job, dep;
    const struct stk_dep after_on = {1, STK_DEP_AFTERANY, false};

    (void)state;
    spec.begin = 20 * STK_SECOND;
    job = fx_submit(f, spec);
    spec.deps = &after_on;
    spec.n_deps = 1;
    dep = fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(stk_core_wake(f->core, f->now), 20 * STK_SECOND);
    fx_drain(f);
    assert_int_equal(fx_of(f, on)->ended, 30 * STK_SECOND);
    assert_int_equal(fx_of(f, job)->started, 20 * STK_SECOND);
    assert_int_equal(fx_of(f, dep)->started, 30 * STK_SECOND);
    fx_finish(f);
}

static void finished_jobs_are_forgotten_oldest_first(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.forget = true, .retain = 3});
    struct stk_job_spec spec = fx_job(1, 10);
    struct stk_dep dep = {1, STK_DEP_AFTERANY, false};

    (void)state;
    for (int i = 0; i < 10; i++)
        (void)ended(f, STK_CAUSE_OK);
    for (stk_job_number n = 1; n <= 10; n++)
        assert_int_equal(stk_core_find(f->core, n) != STK_NONE, n > 7);
    assert_true(f->s->n_jobs <= 4);
    spec.deps = &dep;
    spec.n_deps = 1;
    dep.on = 7;
    assert_int_equal(fx_try_submit(f, &spec), -ENOENT);
    dep.on = 8;
    assert_int_equal(fx_try_submit(f, &spec), 0);
    assert_int_equal(f->s->next_number, 12);
    fx_finish(f);
}

static void with_nothing_retained_a_chain_still_ends_whole(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.forget = true});
    uint32_t last = fx_submit(f, fx_job(1, 10));

    (void)state;
    for (int i = 0; i < 20; i++)
        last = after(f, last, STK_DEP_AFTEROK);
    assert_int_equal(fx_cancel(f, 0), 0);
    assert_int_equal(f->s->n_live, 0);
    for (uint32_t i = 0; i < f->s->n_jobs; i++)
        assert_int_equal(fx_state(f, i), STK_JOB_NONE);
    fx_finish(f);
}

static void all_jobs_that_one_event_ended_are_known_until_another_job_ends(void **state)
{
    enum { N = 20, RETAIN = 3 };
    struct fx *f = fx_new(&(struct fx_setup){.forget = true, .retain = RETAIN});
    uint32_t jobs[N + 1];

    (void)state;
    for (int i = 0; i < RETAIN; i++)
        (void)ended(f, STK_CAUSE_OK);
    jobs[0] = fx_submit(f, fx_job(1, 10));
    for (int i = 1; i <= N; i++)
        jobs[i] = after(f, jobs[i - 1], STK_DEP_AFTEROK);
    assert_int_equal(fx_cancel(f, jobs[0]), 0);
    assert_int_equal(f->s->n_done, N + 1);
    for (int i = 0; i <= N; i++) {
        assert_int_equal(fx_state(f, jobs[i]), STK_JOB_DONE);
        assert_int_equal(fx_of(f, jobs[i])->cause,
                         i == 0 ? STK_CAUSE_CANCELLED : STK_CAUSE_DEPENDENCY);
    }
    (void)ended(f, STK_CAUSE_OK);
    assert_int_equal(f->s->n_done, RETAIN);
    fx_finish(f);
}

/* Elements of an array of 'n', of one GPU each; the first one's slot. */
static uint32_t submit_array(struct fx *f, uint32_t n)
{
    stk_job_number first = f->s->next_number;
    uint32_t slot = 0;

    for (uint32_t i = 0; i < n; i++) {
        struct stk_job_spec spec = fx_job(1, 10);
        uint32_t at;

        spec.array = first;
        spec.array_index = i;
        at = fx_submit(f, spec);
        slot = i == 0 ? at : slot;
    }
    return slot;
}

static uint32_t after_all(struct fx *f, uint32_t first, enum stk_dep_type type)
{
    struct stk_job_spec spec = fx_job(1, 10);
    const struct stk_dep dep = {fx_of(f, first)->number, type, true};

    spec.deps = &dep;
    spec.n_deps = 1;
    return fx_submit(f, spec);
}

static void an_array_is_one_dependency(void **state)
{
    struct fx *f = fx_plain();
    uint32_t first = submit_array(f, 3);
    uint32_t ok = after_all(f, first, STK_DEP_AFTEROK), any = after_all(f, first, STK_DEP_AFTERANY),
             bad = after_all(f, first, STK_DEP_AFTERNOTOK);

    (void)state;
    assert_int_equal(fx_of(f, ok)->unmet, 1);
    (void)fx_decide(f);
    assert_int_equal(fx_exit(f, first + 1, STK_CAUSE_OK), 0);
    assert_int_equal(fx_state(f, bad), STK_JOB_DONE); /* at once: it cannot be met any more */
    assert_int_equal(fx_of(f, bad)->cause, STK_CAUSE_DEPENDENCY);
    assert_int_equal(fx_exit(f, first, STK_CAUSE_OK), 0);
    assert_int_equal(fx_state(f, ok), STK_JOB_BLOCKED);
    assert_int_equal(fx_exit(f, first + 2, STK_CAUSE_OK), 0);
    assert_int_equal(fx_state(f, ok), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, any), STK_JOB_WAITING);
    assert_int_equal(f->s->by_array.n, 0); /* and is forgotten */
    fx_finish(f);
}

/* Room is made ready for all of them, whether they wait for one job or for all of an array. */
static void one_end_may_queue_very_many(void **state)
{
    enum { N = 5000 };

    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct fx *f = fx_new(&(struct fx_setup){.order = "fifo"});
        uint32_t on = submit_array(f, 1);
        const struct stk_dep dep = {fx_of(f, on)->number, STK_DEP_AFTERANY, whole != 0};

        for (int i = 0; i < N; i++) {
            struct stk_job_spec spec = fx_job(1, 10);

            spec.deps = &dep;
            spec.n_deps = 1;
            (void)fx_submit(f, spec);
        }
        assert_int_equal(fx_cancel(f, on), 0);
        assert_int_equal(f->s->n_waiting, N);
        assert_true(f->s->trees.n <= f->s->trees.cap);
        assert_true(f->s->trees.cap < 5 * N);
        fx_finish(f);
    }
}

static void one_bad_end_settles_an_array(void **state)
{
    struct fx *f = fx_plain();
    uint32_t first = submit_array(f, 3), ok = after_all(f, first, STK_DEP_AFTEROK),
             any = after_all(f, first, STK_DEP_AFTERANY), on = after(f, ok, STK_DEP_AFTEROK);
    struct stk_job_spec spec = fx_job(1, 10);
    const struct stk_dep gone = {99, STK_DEP_AFTEROK, true};

    (void)state;
    (void)fx_decide(f);
    assert_int_equal(fx_exit(f, first + 2, STK_CAUSE_FAILED), 0);
    assert_int_equal(fx_state(f, ok), STK_JOB_DONE);
    assert_int_equal(fx_state(f, on), STK_JOB_DONE); /* and those that wait for it */
    assert_int_equal(fx_state(f, any), STK_JOB_BLOCKED);
    assert_int_equal(fx_exit(f, first, STK_CAUSE_OK), 0);
    assert_int_equal(fx_exit(f, first + 1, STK_CAUSE_OK), 0);
    assert_int_equal(fx_state(f, any), STK_JOB_WAITING);
    spec.deps = &gone;
    spec.n_deps = 1;
    assert_int_equal(fx_try_submit(f, &spec), -ENOENT);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_dependency_is_met_by_the_right_ends),
        cmocka_unit_test(an_eviction_is_not_an_end),
        cmocka_unit_test(a_failure_runs_down_a_chain_and_stops_at_afterany),
        cmocka_unit_test(all_dependencies_must_be_met),
        cmocka_unit_test(a_cancelled_dependent_is_not_told),
        cmocka_unit_test(dependents_in_another_pool_are_woken),
        cmocka_unit_test(a_job_begins_at_its_time_not_before),
        cmocka_unit_test(finished_jobs_are_forgotten_oldest_first),
        cmocka_unit_test(with_nothing_retained_a_chain_still_ends_whole),
        cmocka_unit_test(all_jobs_that_one_event_ended_are_known_until_another_job_ends),
        cmocka_unit_test(an_array_is_one_dependency),
        cmocka_unit_test(one_end_may_queue_very_many),
        cmocka_unit_test(one_bad_end_settles_an_array),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
