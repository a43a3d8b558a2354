/* SPDX-License-Identifier: Apache-2.0 */
/* test_core.c - events one by one: what is refused and changes nothing, what each verb does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/fixture.h"

/* ---- submit ---- */

#define REFUSED(code, change)                                                                      \
    do {                                                                                           \
        struct stk_job_spec spec = fx_job(1, 10);                                                  \
        uint64_t before_ = fx_digest(f);                                                           \
        change;                                                                                    \
        f->err.text[0] = '\0';                                                                     \
        assert_int_equal(fx_try_submit(f, &spec), code);                                           \
        assert_true(fx_digest(f) == before_);                                                      \
        assert_true(f->err.text[0] != '\0');                                                       \
        fx_sound(f);                                                                               \
    } while (0)

static void a_bad_submit_is_refused_with_a_sentence_and_changes_nothing(void **state)
{
    struct fx *f = fx_plain();
    static struct stk_dep many[STK_MAX_DEPS + 1];
    const struct stk_dep unknown = {77, STK_DEP_AFTERANY, false},
                         zero = {0, STK_DEP_AFTERANY, false};
    const struct stk_dep odd = {1, (enum stk_dep_type)9, false};

    (void)state;
    (void)fx_submit(f, fx_job(1, 10));
    REFUSED(-EINVAL, spec.pool.i = 1);
    REFUSED(-EINVAL, spec.pool.i = UINT32_MAX);
    REFUSED(-EINVAL, spec.kind = STK_KIND_MAX);
    REFUSED(-EINVAL, spec.tier = STK_TIER_MAX);
    REFUSED(-EINVAL, spec.tier = (enum stk_tier) - 1);
    REFUSED(-EINVAL, spec.priority = STK_MAX_PRIORITY + 1);
    REFUSED(-EINVAL, spec.priority = -STK_MAX_PRIORITY - 1);
    REFUSED(-EINVAL, spec.estimate = -1);
    REFUSED(-EINVAL, spec.estimate = STK_MAX_DURATION + 1);
    REFUSED(-EINVAL, spec.begin = -1);
    REFUSED(-EINVAL, spec.begin = STK_MAX_DURATION + 1);
    REFUSED(-EINVAL, spec.demand.tasks = 0);
    REFUSED(-EINVAL, (spec.demand.cut = false, spec.demand.tasks = STK_MAX_TASKS + 1));
    REFUSED(-EINVAL, spec.demand.tasks = 2);
    REFUSED(-EINVAL, spec.demand.gpus = STK_MAX_GPUS + 1);
    REFUSED(-EINVAL,
            (spec.demand.cut = false, spec.demand.tasks = 65536, spec.demand.gpus = 65536));
    REFUSED(-EINVAL, (spec.deps = many, spec.n_deps = STK_MAX_DEPS + 1));
    REFUSED(-EINVAL, (spec.deps = &odd, spec.n_deps = 1));
    REFUSED(-ENOENT, (spec.deps = &unknown, spec.n_deps = 1));
    REFUSED(-ENOENT, (spec.deps = &zero, spec.n_deps = 1));
    REFUSED(-ERANGE, spec.demand.gpus = 17);
    REFUSED(-ERANGE, (spec.demand.gpus = 9, spec.demand.cut = false));
    REFUSED(-ERANGE, (spec.demand.gpus = 8, spec.demand.cut = false, spec.demand.tasks = 3));
    REFUSED(-ERANGE, spec.demand.gpu_types = 2);
    REFUSED(-ERANGE, spec.demand.gpu_types = 0);
    fx_finish(f);
}

static void the_largest_values_are_taken(void **state)
{
    struct fx *f = fx_plain();
    struct stk_job_spec spec = fx_job(16, 10);

    (void)state;
    spec.priority = -STK_MAX_PRIORITY;
    spec.estimate = STK_MAX_DURATION;
    spec.begin = STK_MAX_DURATION;
    assert_int_equal(fx_state(f, fx_submit(f, spec)), STK_JOB_BLOCKED);
    spec.begin = 0;
    spec.priority = STK_MAX_PRIORITY;
    assert_int_equal(fx_state(f, fx_submit(f, spec)), STK_JOB_WAITING);
    fx_finish(f);
}

static void a_submit_must_carry_the_next_slot(void **state)
{
    struct fx *f = fx_plain();
    const struct stk_job_spec spec = fx_job(1, 10);
    struct stk_event ev = {.type = STK_EV_SUBMIT, .job = {1}, .u.spec = &spec};
    uint64_t before = fx_digest(f);

    (void)state;
    assert_int_equal(fx_apply(f, &ev), -EINVAL);
    ev.job.i = UINT32_MAX;
    assert_int_equal(fx_apply(f, &ev), -EINVAL);
    assert_true(fx_digest(f) == before);
    fx_finish(f);
}

static void time_never_runs_backwards(void **state)
{
    struct fx *f = fx_plain();
    struct stk_event tick = {.at = 100, .type = STK_EV_TICK};

    (void)state;
    assert_int_equal(fx_apply(f, &tick), 0);
    tick.at = 99;
    assert_int_equal(fx_apply(f, &tick), -EINVAL);
    tick.at = STK_MAX_DURATION + 1;
    assert_int_equal(fx_apply(f, &tick), -EINVAL);
    tick.at = 100;
    tick.type = STK_EV_TYPE_MAX;
    assert_int_equal(fx_apply(f, &tick), -EINVAL);
    tick.type = (enum stk_event_type) - 1;
    assert_int_equal(fx_apply(f, &tick), -EINVAL);
    fx_finish(f);
}

static void array_fields_tag_and_tenant_are_kept(void **state)
{
    struct fx *f = fx_plain();
    struct stk_job_spec spec = fx_job(1, 10);
    const struct stk_job *j;

    (void)state;
    spec.array = 41;
    spec.array_index = 7;
    spec.tag = 1234;
    spec.tenant = 5;
    spec.kind = STK_KIND_SWEEP;
    j = fx_of(f, fx_submit(f, spec));
    assert_int_equal(j->array, 41);
    assert_int_equal(j->array_index, 7);
    assert_int_equal(j->tag, 1234);
    assert_int_equal(j->tenant, 5);
    assert_int_equal(j->kind, STK_KIND_SWEEP);
    fx_finish(f);
}

/* ---- place ---- */

static void refuse_place(struct fx *f, uint32_t job, const struct stk_piece *p, uint32_t n, int rc)
{
    uint64_t before = fx_digest(f);

    assert_int_equal(fx_place(f, job, p, n), rc);
    assert_true(fx_digest(f) == before);
    assert_int_equal(fx_state(f, job), STK_JOB_WAITING);
    fx_sound(f);
}

static void a_gang_starts_whole_or_not_at_all(void **state)
{
    struct fx *f = fx_plain();
    struct stk_job_spec spec = fx_job(4, 10);
    const struct stk_piece good[2] = {{{0}, 4, 1, 0, 0x0f}, {{1}, 8, 2, 0, 0xff}};
    const struct stk_piece twice[2] = {{{0}, 4, 1, 0, 0x0f}, {{0}, 8, 2, 0, 0xff}};
    const struct stk_piece more[2] = {{{0}, 8, 2, 0, 0xff}, {{1}, 8, 2, 0, 0xff}};
    const struct stk_piece none[2] = {{{1}, 8, 2, 0, 0xff}, {{0}, 0, 0, 0, 0}};
    uint32_t job;

    (void)state;
    spec.demand.cut = false;
    spec.demand.tasks = 3;
    job = fx_submit(f, spec);
    refuse_place(f, job, good, 0, -EINVAL);
    refuse_place(f, job, good, 1, -EINVAL);
    refuse_place(f, job, good + 1, 1, -EINVAL);
    refuse_place(f, job, twice, 2, -ENOSPC);
    refuse_place(f, job, more, 2, -EINVAL);
    refuse_place(f, job, none, 2, -EINVAL);
    assert_int_equal(fx_place(f, job, good, 2), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_PLACED);
    assert_int_equal(f->s->nodes[0].gpus_free, 4);
    assert_int_equal(f->s->nodes[1].gpus_free, 0);
    fx_finish(f);
}

static void a_piece_must_name_free_gpus_of_a_node_that_is_up(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = (fx_run_on(f, 0, 2, 0x03), fx_submit(f, fx_job(2, 10)));
    const struct stk_piece bad[] = {
        {{0}, 2, 1, 0, 0x06}, {{0}, 2, 1, 0, 0x300},         {{0}, 2, 1, 0, 0x04},
        {{0}, 2, 1, 0, 0},    {{2}, 2, 1, 0, 0x0c},          {{0}, 2, 2, 0, 0x0c},
        {{0}, 2, 0, 0, 0x0c}, {{UINT32_MAX}, 2, 1, 0, 0x0c}, {{0}, 3, 1, 0, 0x1c},
        {{0}, 1, 1, 0, 0x04},
    };
    const struct stk_piece good = {{0}, 2, 1, 0, 0x0c};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        refuse_place(f, job, &bad[i], 1, i < 2 ? -ENOSPC : -EINVAL);
    assert_int_equal(fx_node(f, 0, false), 0);
    refuse_place(f, job, &good, 1, -ENOSPC);
    assert_int_equal(fx_node(f, 0, true), 0);
    assert_int_equal(fx_place(f, job, &good, 1), 0);
    fx_finish(f);
}

static void empty_pieces_are_refused(void **state)
{
    struct fx *f = fx_plain();
    const struct stk_piece p[2] = {{{0}, 2, 1, 0, 0x03}, {{1}, 0, 1, 0, 0}};
    const struct stk_piece cpu[2] = {{{0}, 0, 1, 0, 0}, {{1}, 0, 1, 0, 0}};
    uint32_t job = fx_submit(f, fx_job(2, 10)), no_gpu = fx_submit(f, fx_job(0, 10));

    (void)state;
    refuse_place(f, job, p, 2, -EINVAL);
    refuse_place(f, no_gpu, cpu, 2, -EINVAL);
    assert_int_equal(fx_place(f, no_gpu, cpu, 1), 0);
    fx_finish(f);
}

static void a_lease_is_new_and_an_older_one_is_stale(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = fx_submit(f, fx_job(1, 10));
    const struct stk_piece p = {{0}, 1, 1, 0, 1};
    struct stk_event ev = {.type = STK_EV_PLACE, .job = {job}, .u.place = {&p, 1}};
    static const enum stk_event_type of_lease[] = {STK_EV_STARTED, STK_EV_EXITED, STK_EV_EVICT};

    (void)state;
    for (uint32_t lease = 0; lease < 4; lease += 2) {
        ev.lease = lease;
        assert_int_equal(fx_apply(f, &ev), -ESTALE);
    }
    ev.lease = 1;
    assert_int_equal(fx_apply(f, &ev), 0);
    assert_int_equal(fx_job_event(f, STK_EV_EVICT, job), 0);
    assert_int_equal(fx_exit(f, job, STK_CAUSE_EVICTED), 0);
    assert_int_equal(fx_place(f, job, &p, 1), 0);
    for (size_t i = 0; i < 3; i++) { /* about lease 1; it has lease 2 */
        struct stk_event old = {.type = of_lease[i], .job = {job}, .lease = 1};
        uint64_t before = fx_digest(f);

        old.u.exit.cause = STK_CAUSE_OK;
        assert_int_equal(fx_apply(f, &old), -ESTALE);
        assert_true(fx_digest(f) == before);
    }
    fx_finish(f);
}

static void an_exit_without_a_cause_is_refused(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = fx_run_on(f, 0, 1, 1);
    struct stk_event ev = {.type = STK_EV_EXITED, .job = {job}, .lease = 1};

    (void)state;
    assert_int_equal(fx_apply(f, &ev), -EINVAL);
    ev.u.exit.cause = STK_CAUSE_MAX;
    assert_int_equal(fx_apply(f, &ev), -EINVAL);
    ev.u.exit.cause = STK_CAUSE_EVICTED;
    ev.u.exit.lost = -1;
    assert_int_equal(fx_apply(f, &ev), -EINVAL);
    ev.u.exit.lost = STK_MAX_DURATION + 1;
    assert_int_equal(fx_apply(f, &ev), -EINVAL);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    fx_finish(f);
}

/* ---- hold, release, cancel ---- */

static void a_held_job_does_not_start_until_it_is_released(void **state)
{
    struct fx *f = fx_plain();
    struct stk_job_spec spec = fx_job(1, 10);
    uint32_t job;

    (void)state;
    spec.held = true;
    job = fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_HELD);
    assert_int_equal(fx_job_event(f, STK_EV_RELEASE, job), 0);
    assert_int_equal(fx_job_event(f, STK_EV_HOLD, job), 0);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_HELD);
    assert_int_equal(fx_job_event(f, STK_EV_RELEASE, job), 0);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    fx_finish(f);
}

static void a_cancelled_job_frees_its_gpus_when_it_is_gone_not_before(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = fx_run_on(f, 0, 8, 0xff);

    (void)state;
    assert_int_equal(fx_job_event(f, STK_EV_CANCEL, job), 0);
    assert_int_equal(f->s->nodes[0].gpus_free, 0);
    assert_int_equal(fx_exit(f, job, STK_CAUSE_EVICTED), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_DONE);
    assert_int_equal(fx_of(f, job)->cause, STK_CAUSE_CANCELLED);
    assert_int_equal(f->s->nodes[0].gpus_free, 8);
    job = fx_run_on(f, 0, 8, 0xff);
    assert_int_equal(fx_job_event(f, STK_EV_CANCEL, job), 0);
    assert_int_equal(fx_exit(f, job, STK_CAUSE_OK), 0); /* it was faster */
    assert_int_equal(fx_of(f, job)->cause, STK_CAUSE_OK);
    fx_finish(f);
}

static void wishes_about_a_stopping_job_are_remembered(void **state)
{
    struct fx *f = fx_plain();
    uint32_t held = fx_run_on(f, 0, 1, 1), back = fx_run_on(f, 0, 1, 2),
             gone = fx_run_on(f, 0, 1, 4);

    (void)state;
    assert_int_equal(fx_job_event(f, STK_EV_EVICT, held), 0);
    assert_int_equal(fx_job_event(f, STK_EV_EVICT, back), 0);
    assert_int_equal(fx_job_event(f, STK_EV_EVICT, gone), 0);
    assert_int_equal(fx_job_event(f, STK_EV_HOLD, held), 0);
    assert_int_equal(fx_job_event(f, STK_EV_HOLD, back), 0);
    assert_int_equal(fx_job_event(f, STK_EV_RELEASE, back), 0);
    assert_int_equal(fx_job_event(f, STK_EV_CANCEL, gone), 0);
    assert_int_equal(fx_exit(f, held, STK_CAUSE_EVICTED), 0);
    assert_int_equal(fx_exit(f, back, STK_CAUSE_EVICTED), 0);
    assert_int_equal(fx_exit(f, gone, STK_CAUSE_EVICTED), 0);
    assert_int_equal(fx_state(f, held), STK_JOB_HELD);
    assert_int_equal(fx_state(f, back), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, gone), STK_JOB_DONE);
    assert_int_equal(fx_of(f, held)->preemptions, 1);
    fx_finish(f);
}

static void time_served_counts_from_started_not_from_placed(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = fx_submit(f, fx_job(1, 10));
    const struct stk_piece p = {{0}, 1, 1, 0, 1};
    struct stk_event ev = {.type = STK_EV_EXITED, .job = {job}, .lease = 1};

    (void)state;
    assert_int_equal(fx_place(f, job, &p, 1), 0);
    f->now = 3 * STK_SECOND;
    assert_int_equal(fx_job_event(f, STK_EV_STARTED, job), 0);
    assert_int_equal(fx_of(f, job)->expected_end, 13 * STK_SECOND);
    ev.at = 7 * STK_SECOND;
    ev.u.exit.cause = STK_CAUSE_EVICTED;
    ev.u.exit.lost = STK_SECOND;
    assert_int_equal(fx_apply(f, &ev), 0);
    assert_int_equal(fx_of(f, job)->served, 4 * STK_SECOND);
    assert_int_equal(stk_job_remaining(fx_of(f, job), f->now), 7 * STK_SECOND);
    fx_finish(f);
}

static void lost_work_never_makes_a_job_longer_than_is_allowed(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "srsf", .preempt = "afresh"});
    struct stk_job_spec spec = fx_job(1, 10);
    const struct stk_piece p = {{0}, 1, 1, 0, 1};
    uint32_t job;

    (void)state;
    spec.estimate = STK_MAX_DURATION;
    job = fx_submit(f, spec);
    for (int i = 0; i < 4000; i++) {
        struct stk_event ev = {.type = STK_EV_EXITED, .job = {job}};

        assert_int_equal(fx_place(f, job, &p, 1), 0);
        ev.lease = fx_of(f, job)->lease;
        ev.u.exit.cause = STK_CAUSE_EVICTED;
        ev.u.exit.lost = STK_MAX_DURATION;
        assert_int_equal(fx_apply(f, &ev), 0);
    }
    assert_true(fx_of(f, job)->lost >= 0);
    assert_true(stk_job_remaining(fx_of(f, job), 0) <= STK_MAX_DURATION);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_submit_is_refused_with_a_sentence_and_changes_nothing),
        cmocka_unit_test(the_largest_values_are_taken),
        cmocka_unit_test(a_submit_must_carry_the_next_slot),
        cmocka_unit_test(time_never_runs_backwards),
        cmocka_unit_test(array_fields_tag_and_tenant_are_kept),
        cmocka_unit_test(a_gang_starts_whole_or_not_at_all),
        cmocka_unit_test(a_piece_must_name_free_gpus_of_a_node_that_is_up),
        cmocka_unit_test(empty_pieces_are_refused),
        cmocka_unit_test(a_lease_is_new_and_an_older_one_is_stale),
        cmocka_unit_test(an_exit_without_a_cause_is_refused),
        cmocka_unit_test(a_held_job_does_not_start_until_it_is_released),
        cmocka_unit_test(a_cancelled_job_frees_its_gpus_when_it_is_gone_not_before),
        cmocka_unit_test(wishes_about_a_stopping_job_are_remembered),
        cmocka_unit_test(time_served_counts_from_started_not_from_placed),
        cmocka_unit_test(lost_work_never_makes_a_job_longer_than_is_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
