/* SPDX-License-Identifier: Apache-2.0 */
/* test_suspend.c - jobs whose processes sleep: they hold nothing, wake on their own GPUs only, and
 * end when their processes do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/fixture.h"

#define S STK_SECOND

static int evict(struct fx *f, uint32_t job, bool suspend)
{
    const struct stk_job *j = fx_of(f, job);
    const struct stk_event ev = {.at = f->now,
                                 .type = STK_EV_EVICT,
                                 .job = {job},
                                 .lease = j->lease ? j->lease : j->slept,
                                 .u.evict = {.for_job = {STK_NONE}, .suspend = suspend}};

    return fx_apply(f, &ev);
}

/* Runs on these GPUs of node 0 for 3 seconds, then sleeps. */
static uint32_t put_to_sleep(struct fx *f, uint32_t gpus, uint64_t mask)
{
    uint32_t job = fx_run_on(f, 0, gpus, mask);

    f->now += 3 * S;
    assert_int_equal(evict(f, job, true), 0);
    assert_int_equal(fx_job_event(f, STK_EV_SUSPENDED, job), 0);
    return job;
}

static void a_sleeping_job_holds_nothing_and_loses_nothing(void **state)
{
    const struct stk_node_spec node = {.gpus = 8, .cpu_milli = 8000, .mem_mib = 1000};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = &node, .n_nodes = 1});
    struct stk_job_spec spec = fx_job(2, 10);
    const struct stk_piece at = {{0}, 2, 1, 0, 0x30};
    uint32_t job;

    (void)state;
    spec.demand.cpu_milli = 3000;
    spec.demand.mem_mib = 700;
    job = fx_submit(f, spec);
    assert_int_equal(fx_place(f, job, &at, 1), 0);
    f->now += 1 * S;
    assert_int_equal(fx_job_event(f, STK_EV_STARTED, job), 0);
    f->now += 4 * S;
    assert_int_equal(evict(f, job, true), 0);
    f->now += 1 * S;
    assert_int_equal(fx_job_event(f, STK_EV_SUSPENDED, job), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_WAITING);
    assert_int_equal(fx_of(f, job)->slept, 1);
    assert_int_equal(fx_of(f, job)->lease, 0);
    assert_true(fx_of(f, job)->served == 5 * S && fx_of(f, job)->lost == 0);
    assert_int_equal(fx_of(f, job)->restarts, 0);
    assert_int_equal(fx_of(f, job)->preemptions, 1);
    assert_int_equal(f->s->nodes[0].gpus_free, 8);
    assert_int_equal(f->s->nodes[0].cpu_free, 8000);
    assert_int_equal(f->s->nodes[0].mem_free, 1000);
    f->now += 100 * S; /* asleep it is not served */
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(fx_state(f, job), STK_JOB_PLACED);
    assert_int_equal(fx_of(f, job)->slept, 1);
    assert_int_equal(fx_of(f, job)->lease, 2);
    assert_int_equal(f->s->nodes[0].mask_free, 0xcf);
    assert_int_equal(fx_job_event(f, STK_EV_STARTED, job), 0);
    assert_int_equal(fx_of(f, job)->slept, 0);
    f->now += 5 * S;
    assert_int_equal(fx_exit(f, job, STK_CAUSE_OK), 0);
    assert_true(fx_of(f, job)->served == 10 * S);
    fx_finish(f);
}

static void it_wakes_on_its_own_gpus_only(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = put_to_sleep(f, 2, 0x0c), other = fx_run_on(f, 0, 1, 0x08);
    const struct stk_piece wrong[] = {
        {{1}, 2, 1, 0, 0x0c}, {{0}, 2, 1, 0, 0x30}, {{0}, 2, 1, 0, 0x0c}};
    struct stk_reason why;

    (void)state;
    assert_int_equal(fx_decide(f), 0); /* 15 GPUs are free, but not its own */
    assert_int_equal(fx_place(f, job, &wrong[0], 1), -EINVAL);
    assert_int_equal(fx_place(f, job, &wrong[1], 1), -EINVAL);
    assert_int_equal(fx_place(f, job, &wrong[2], 1), -ENOSPC);
    assert_int_equal(stk_core_why(f->core, (stk_job_id){job}, &why, NULL), 0);
    assert_int_equal(why.code, STK_WHY_PINNED);
    assert_int_equal(why.other, fx_of(f, other)->number);
    assert_true(why.until == f->now + 10 * S);
    assert_int_equal(why.have, 1);
    assert_int_equal(why.missing, 1);
    assert_int_equal(fx_exit(f, other, STK_CAUSE_OK), 0);
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(f->s->pieces[fx_of(f, job)->first_piece].mask, 0x0c);
    fx_finish(f);
}

static void others_get_gpus_on_which_nobody_sleeps(void **state)
{
    struct fx *f = fx_plain();
    uint32_t a = put_to_sleep(f, 2, 0x03), b = put_to_sleep(f, 1, 0x02), job;

    (void)state;
    assert_int_equal(fx_job_event(f, STK_EV_HOLD, a), 0);
    assert_int_equal(fx_job_event(f, STK_EV_HOLD, b), 0);
    (void)fx_run_on(f, 1, 8, 0xff);
    job = fx_submit(f, fx_job(3, 10));
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(f->s->pieces[fx_of(f, job)->first_piece].mask, 0x1c);
    assert_int_equal(fx_exit(f, a, STK_CAUSE_SIGNAL), 0);
    assert_int_equal(f->s->nodes[0].mask_wake, 0x02); /* the other one still sleeps */
    job = fx_submit(f, fx_job(4, 10));
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(f->s->pieces[fx_of(f, job)->first_piece].mask, 0xe1);
    job = fx_submit(f, fx_job(1, 10)); /* where there is no other, it is given */
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(f->s->pieces[fx_of(f, job)->first_piece].mask, 0x02);
    fx_finish(f);
}

static void gone_from_its_lease_it_is_an_ordinary_job_again(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = put_to_sleep(f, 2, 0x0c);
    const struct stk_piece elsewhere = {{1}, 2, 1, 0, 0x03};

    (void)state;
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(evict(f, job, false), 0);
    assert_int_equal(fx_exit(f, job, STK_CAUSE_EVICTED), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_WAITING);
    assert_int_equal(fx_of(f, job)->slept, 0);
    assert_int_equal(fx_of(f, job)->restarts, 1);
    assert_int_equal(fx_place(f, job, &elsewhere, 1), 0);
    fx_finish(f);
}

static void it_may_be_put_to_sleep_again_before_it_woke(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = put_to_sleep(f, 2, 0x0c);

    (void)state;
    for (uint32_t lease = 2; lease < 5; lease++) {
        assert_int_equal(fx_decide(f), 1);
        assert_int_equal(evict(f, job, true), 0);
        assert_int_equal(fx_job_event(f, STK_EV_SUSPENDED, job), 0);
        assert_int_equal(fx_of(f, job)->slept, lease);
        assert_int_equal(f->s->nodes[0].gpus_free, 8);
    }
    assert_int_equal(f->s->pools[0].n_asleep, 1);
    fx_finish(f);
}

static void a_person_suspends_and_resumes(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = fx_run_on(f, 0, 2, 0x0c);

    (void)state;
    assert_int_equal(evict(f, job, true), 0);
    assert_int_equal(fx_job_event(f, STK_EV_HOLD, job), 0);
    assert_int_equal(fx_job_event(f, STK_EV_SUSPENDED, job), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_HELD);
    assert_int_equal(fx_of(f, job)->preemptions, 0);
    assert_int_equal(fx_why(f, job), STK_WHY_HELD);
    assert_int_equal(fx_decide(f), 0);
    assert_int_equal(fx_job_event(f, STK_EV_RELEASE, job), 0);
    assert_int_equal(fx_job_event(f, STK_EV_HOLD, job), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_HELD);
    assert_int_equal(fx_job_event(f, STK_EV_RELEASE, job), 0);
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(fx_job_event(f, STK_EV_STARTED, job), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    fx_finish(f);
}

static void a_sleeping_job_that_is_cancelled_ends_when_its_processes_do(void **state)
{
    (void)state;
    for (int held = 0; held < 2; held++) {
        struct fx *f = fx_plain();
        uint32_t job = put_to_sleep(f, 2, 0x0c);

        if (held)
            assert_int_equal(fx_job_event(f, STK_EV_HOLD, job), 0);
        assert_int_equal(fx_job_event(f, STK_EV_CANCEL, job), 0);
        assert_int_equal(fx_state(f, job), STK_JOB_STOPPING);
        assert_int_equal(f->s->pools[0].n_stopping, 0); /* nobody waits for its room */
        assert_int_equal(fx_job_event(f, STK_EV_STARTED, job), -EPROTO);
        assert_int_equal(fx_job_event(f, STK_EV_SUSPENDED, job), -EPROTO);
        fx_sound(f);
        assert_int_equal(fx_exit(f, job, STK_CAUSE_SIGNAL), 0);
        assert_int_equal(fx_state(f, job), STK_JOB_DONE);
        assert_int_equal(fx_of(f, job)->cause, STK_CAUSE_CANCELLED);
        fx_finish(f);
    }
}

static void a_cancel_that_crosses_the_news(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = fx_run_on(f, 0, 2, 0x0c);

    (void)state;
    assert_int_equal(evict(f, job, true), 0);
    assert_int_equal(fx_job_event(f, STK_EV_CANCEL, job), 0);
    assert_int_equal(fx_job_event(f, STK_EV_SUSPENDED, job), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_STOPPING);
    assert_int_equal(f->s->nodes[0].gpus_free, 8); /* its GPUs are free though */
    assert_int_equal(fx_exit(f, job, STK_CAUSE_CANCELLED), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_DONE);
    fx_finish(f);
}

static void somebody_kills_the_sleeping_processes(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = put_to_sleep(f, 2, 0x0c), again, held;

    (void)state;
    assert_int_equal(fx_exit(f, job, STK_CAUSE_SIGNAL), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_DONE);
    again = put_to_sleep(f, 2, 0x0c);
    held = put_to_sleep(f, 1, 0x01);
    fx_of(f, again)->retry[STK_RETRY_ERROR] = fx_of(f, held)->retry[STK_RETRY_ERROR] = 1;
    assert_int_equal(fx_exit(f, again, STK_CAUSE_SIGNAL), 0);
    assert_int_equal(fx_state(f, again), STK_JOB_WAITING);
    assert_int_equal(fx_job_event(f, STK_EV_HOLD, held), 0);
    assert_int_equal(fx_exit(f, held, STK_CAUSE_SIGNAL), 0);
    assert_int_equal(fx_state(f, held), STK_JOB_HELD); /* nobody released it */
    assert_int_equal(f->s->pools[0].n_asleep, 0);
    assert_int_equal(fx_exit(f, again, STK_CAUSE_SIGNAL), -EPROTO); /* it has none any more */
    fx_sound(f);
    fx_free(f);
}

static void a_sleeping_job_is_queued_anew(void **state)
{
    struct fx *f = fx_plain();
    uint32_t job = put_to_sleep(f, 2, 0x0c);

    (void)state;
    assert_int_equal(evict(f, job, true), -EINVAL);
    assert_int_equal(evict(f, job, false), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_STOPPING);
    assert_int_equal(fx_decide(f), 0);
    assert_int_equal(fx_exit(f, job, STK_CAUSE_EVICTED), 0);
    assert_int_equal(fx_state(f, job), STK_JOB_WAITING);
    assert_int_equal(fx_of(f, job)->slept, 0);
    assert_int_equal(fx_of(f, job)->restarts, 1);
    fx_finish(f);
}

static void who_may_not_sleep(void **state)
{
    struct fx *f = fx_plain();
    uint32_t wide = fx_submit(f, fx_job(16, 10)), job, sleeper;
    struct stk_job_spec spec = fx_job(1, 1);
    struct stk_event late;

    (void)state;
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(fx_of(f, wide)->n_pieces, 2);
    assert_int_equal(evict(f, wide, true), 0); /* it may be asked for, and is not heard */
    assert_int_equal(fx_job_event(f, STK_EV_SUSPENDED, wide), -EINVAL);
    assert_int_equal(fx_exit(f, wide, STK_CAUSE_EVICTED), 0);
    job = fx_run_on(f, 0, 1, 1);
    assert_int_equal(evict(f, job, false), 0);
    assert_int_equal(fx_job_event(f, STK_EV_SUSPENDED, job), -EINVAL);
    assert_int_equal(fx_exit(f, job, STK_CAUSE_EVICTED), 0);
    spec.demand.pin = 1;
    assert_int_equal(fx_try_submit(f, &spec), -EINVAL);
    sleeper = put_to_sleep(f, 2, 0x0c);
    late = (struct stk_event){.at = f->now,
                              .type = STK_EV_EXITED,
                              .job = {sleeper},
                              .lease = fx_of(f, sleeper)->slept - 1,
                              .u.exit = {.cause = STK_CAUSE_OK}};
    assert_int_equal(fx_apply(f, &late), -ESTALE);
    fx_finish(f);
}

static void easy_keeps_the_gpus_of_one_that_sleeps(void **state)
{
    const struct stk_node_spec node = {.gpus = 4};
    struct fx *f = fx_new(&(struct fx_setup){.backfill = "easy", .nodes = &node, .n_nodes = 1});
    uint32_t sleeper = put_to_sleep(f, 2, 0x3), busy = fx_run_on(f, 0, 1, 0x1), late, brief;

    (void)state;
    /* GPUs 1, 2 and 3 are free; the sleeper is promised 0 and 1 when 'busy' ends, in 10 seconds */
    late = fx_submit(f, fx_job(3, 100)); /* would fit, and be in the way then */
    brief = fx_submit(f, fx_job(3, 5));
    assert_int_equal(fx_decide(f), 1); /* the brief one may have GPU 1: it is gone by then */
    assert_int_equal(f->s->pieces[fx_of(f, brief)->first_piece].mask, 0xe);
    (void)busy;
    assert_int_equal(f->s->pools[0].resv_job, sleeper);
    assert_true(f->s->pools[0].resv_at == f->now + 10 * S);
    assert_int_equal(fx_state(f, late), STK_JOB_WAITING);
    fx_finish(f);
}

static void easy_leaves_the_other_gpus_to_long_jobs(void **state)
{
    const struct stk_node_spec node = {.gpus = 4};
    struct fx *f = fx_new(&(struct fx_setup){.backfill = "easy", .nodes = &node, .n_nodes = 1});
    uint32_t sleeper = put_to_sleep(f, 2, 0x3), late;

    (void)state;
    (void)fx_run_on(f, 0, 1, 0x1);
    late = fx_submit(f, fx_job(2, 100));
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(fx_state(f, sleeper), STK_JOB_WAITING);
    assert_int_equal(f->s->pieces[fx_of(f, late)->first_piece].mask, 0xc);
    fx_finish(f);
}

static void conservative_plans_its_own_gpus(void **state)
{
    const struct stk_node_spec node = {.gpus = 4};
    struct fx *f =
        fx_new(&(struct fx_setup){.backfill = "conservative", .nodes = &node, .n_nodes = 1});
    uint32_t sleeper = put_to_sleep(f, 2, 0x3);

    (void)state;
    (void)fx_run_on(f, 0, 1, 0x1);
    (void)fx_decide(f);
    assert_true(fx_of(f, sleeper)->planned == f->now + 10 * S);
    fx_finish(f);
}

static void a_higher_tier_wakes_in_the_place_of_a_lower_one(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "priority", .preempt = "tier"});
    uint32_t sleeper = put_to_sleep(f, 2, 0x3), low, beside;
    struct stk_job_spec spec = fx_job(1, 10);
    struct stk_event out[4];

    (void)state;
    spec.tier = STK_TIER_BEST_EFFORT;
    low = fx_submit(f, spec);
    assert_int_equal(fx_place(f, low, &(struct stk_piece){{0}, 1, 1, 0, 0x2}, 1), 0);
    beside = fx_submit(f, spec);
    assert_int_equal(fx_place(f, beside, &(struct stk_piece){{0}, 1, 1, 0, 0x4}, 1), 0);
    assert_int_equal(stk_core_decide(f->core, f->now, out, 4), 1);
    assert_int_equal(out[0].type, STK_EV_EVICT);
    assert_int_equal(out[0].job.i, low);
    assert_true(out[0].u.evict.suspend);
    assert_int_equal(out[0].u.evict.for_job.i, sleeper);
    assert_int_equal(fx_apply(f, &out[0]), 0);
    assert_int_equal(fx_job_event(f, STK_EV_SUSPENDED, low), 0);
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(fx_state(f, sleeper), STK_JOB_PLACED);
    assert_int_equal(fx_state(f, low), STK_JOB_WAITING);
    fx_finish(f);
}

static void by_rank_the_better_one_wakes(void **state)
{
    const struct stk_node_spec node = {.gpus = 4};
    struct fx *f = fx_new(&(struct fx_setup){
        .order = "srtf", .preempt = "afresh", .nodes = &node, .n_nodes = 1, .sleep_pct = 100});
    uint32_t longer = fx_submit(f, fx_job(4, 50)), brief;

    (void)state;
    fx_turn(f);
    f->now += 5 * S;
    brief = fx_submit(f, fx_job(2, 10));
    fx_turn(f);
    assert_int_equal(fx_state(f, longer), STK_JOB_WAITING);
    assert_true(fx_of(f, longer)->slept != 0);
    assert_int_equal(fx_state(f, brief), STK_JOB_RUNNING);
    fx_run(f, f->now + 20 * S);
    assert_int_equal(fx_state(f, longer), STK_JOB_RUNNING);
    assert_int_equal(fx_of(f, longer)->restarts, 0);
    fx_drain(f);
    assert_true(fx_of(f, longer)->ended == 60 * S);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sleeping_job_holds_nothing_and_loses_nothing),
        cmocka_unit_test(it_wakes_on_its_own_gpus_only),
        cmocka_unit_test(others_get_gpus_on_which_nobody_sleeps),
        cmocka_unit_test(gone_from_its_lease_it_is_an_ordinary_job_again),
        cmocka_unit_test(it_may_be_put_to_sleep_again_before_it_woke),
        cmocka_unit_test(a_person_suspends_and_resumes),
        cmocka_unit_test(a_sleeping_job_that_is_cancelled_ends_when_its_processes_do),
        cmocka_unit_test(a_cancel_that_crosses_the_news),
        cmocka_unit_test(somebody_kills_the_sleeping_processes),
        cmocka_unit_test(a_sleeping_job_is_queued_anew),
        cmocka_unit_test(who_may_not_sleep),
        cmocka_unit_test(easy_keeps_the_gpus_of_one_that_sleeps),
        cmocka_unit_test(easy_leaves_the_other_gpus_to_long_jobs),
        cmocka_unit_test(conservative_plans_its_own_gpus),
        cmocka_unit_test(a_higher_tier_wakes_in_the_place_of_a_lower_one),
        cmocka_unit_test(by_rank_the_better_one_wakes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
