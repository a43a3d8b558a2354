/* SPDX-License-Identifier: Apache-2.0 */
/* test_account.c - queues with limits of users, of tenants and in all: who is let in, who waits,
 * who is woken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/account.h"
#include "core/save.h"
#include "lib/fixture.h"
#include "policy/registry.h"

enum { STANDARD, EXPRESS, N };
enum { ANN = 1, BOB };

static struct stk_queue_spec table[N];

static int plant(void **state)
{
    (void)state;
    table[STANDARD] = stk_default_queues[0];
    table[EXPRESS] = stk_default_queues[1];
    return 0;
}

static struct fx *world(const char *backfill)
{
    return fx_new(&(struct fx_setup){.backfill = backfill, .queues = table, .n_queues = N});
}

static struct stk_job_spec job_of(uint32_t queue, uint32_t user, uint32_t gpus, int64_t seconds)
{
    struct stk_job_spec spec = fx_job(gpus, seconds);

    spec.terms.queue = queue;
    spec.terms.user = user;
    return spec;
}

static uint32_t submit(struct fx *f, uint32_t queue, uint32_t user, uint32_t gpus, int64_t seconds)
{
    uint32_t job = fx_submit(f, job_of(queue, user, gpus, seconds));

    fx_turn(f);
    return job;
}

static void the_defaults_are_the_five_queues_and_three_classes(void **state)
{
    static const struct {
        const char *name;
        int32_t priority;
        enum stk_tier tier;
    } want[] = {{"express", 1000, STK_TIER_STANDARD},
                {"standard", 500, STK_TIER_STANDARD},
                {"batch", 100, STK_TIER_STANDARD},
                {"preemptible", 100, STK_TIER_BEST_EFFORT},
                {"reserved", 500, STK_TIER_CRITICAL}};

    (void)state;
    assert_int_equal(stk_n_default_queues, 5);
    assert_string_equal(stk_default_queues[0].name, "standard");
    for (size_t i = 0; i < 5; i++) {
        uint32_t q = stk_queue_find(stk_default_queues, stk_n_default_queues, want[i].name);

        assert_int_not_equal(q, STK_NONE);
        assert_int_equal(stk_default_queues[q].priority, want[i].priority);
        assert_int_equal(stk_default_queues[q].tier, want[i].tier);
        assert_false(stk_queue_limited(&stk_default_queues[q]));
    }
    assert_int_equal(stk_queue_find(stk_default_queues, stk_n_default_queues, "fast"), STK_NONE);
    assert_int_equal(stk_default_classes[0].priority, 1000);
}

static void refused(struct fx *f, const struct stk_job_spec *spec, int rc, const char *sentence)
{
    struct stk_event ev = {
        .at = f->now, .type = STK_EV_SUBMIT, .job = stk_core_next_job(f->core), .u.spec = spec};
    struct stk_err err = {{0}};

    assert_int_equal(stk_core_apply(f->core, &ev, &err), rc);
    assert_string_equal(err.text, sentence);
}

static void what_can_never_be_within_is_refused(void **state)
{
    struct stk_job_spec spec = job_of(EXPRESS, ANN, 5, 10);
    struct fx *f;

    (void)state;
    table[EXPRESS].lowest = 500;
    table[EXPRESS].most = 1000;
    table[EXPRESS].job_milli = 4000;
    table[EXPRESS].job_time = 60 * STK_SECOND;
    table[STANDARD].limit[STK_OF_TENANT].milli = 6000;
    f = world("skip");
    spec.priority = 499;
    refused(f, &spec, -EINVAL, "priority in queue express must be 500 to 1000, got 499");
    spec.priority = 1000;
    refused(f, &spec, -ERANGE, "needs 5 GPUs; a job in queue express may have at most 4");
    spec.demand.gpus = 4;
    spec.estimate = 61 * STK_SECOND;
    refused(f, &spec, -ERANGE, "takes 61 s; a job in queue express may run for at most 60 s");
    spec.estimate = 60 * STK_SECOND;
    (void)fx_submit(f, spec);
    spec = job_of(STANDARD, ANN, 7, 10);
    refused(f, &spec, -ERANGE, "needs 7 GPUs; a job in queue standard may have at most 6");
    spec.terms.queue = N;
    refused(f, &spec, -EINVAL, "there is no queue 2 (0 to 1)");
    fx_drain(f);
    fx_finish(f);
}

/* Whoever is over a limit waits, says which, and stands in nobody's way. */
static void who_is_over_a_limit_waits(const char *backfill)
{
    struct stk_reason why;
    struct fx *f;
    uint32_t a, b, c, d;

    table[STANDARD].limit[STK_OF_USER].milli = 6000;
    f = world(backfill);
    a = submit(f, STANDARD, ANN, 4, 10);
    b = submit(f, STANDARD, ANN, 4, 10);
    c = submit(f, STANDARD, ANN, 2, 30);
    d = submit(f, STANDARD, BOB, 6, 10);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, c), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, d), STK_JOB_RUNNING);
    assert_int_equal(stk_core_why(f->core, (stk_job_id){b}, &why, NULL), 0);
    assert_int_equal(why.code, STK_WHY_QUEUE);
    assert_string_equal(stk_reason_name(why.code), "queue_limit");
    assert_string_equal(why.queue, "standard");
    assert_int_equal(why.of, STK_OF_USER);
    assert_int_equal(why.unit, STK_UNIT_GPUS);
    assert_int_equal(why.need, 4000);
    assert_int_equal(why.used, 6000);
    assert_int_equal(why.limit, 6000);
    assert_int_equal(why.missing, 4000);
    fx_run(f, 10 * STK_SECOND); /* a has ended */
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

static void who_is_over_a_limit_waits_in_a_strict_queue(void **state)
{
    (void)state;
    who_is_over_a_limit_waits("none");
}

static void who_is_over_a_limit_waits_in_a_loose_queue(void **state)
{
    (void)state;
    who_is_over_a_limit_waits("skip");
}

static void who_is_over_a_limit_waits_with_easy(void **state)
{
    (void)state;
    who_is_over_a_limit_waits("easy");
}

static void jobs_are_counted_too(void **state)
{
    struct stk_reason why;
    struct fx *f;
    uint32_t a, b;

    (void)state;
    table[EXPRESS].limit[STK_OF_QUEUE].jobs = 2;
    f = world("none");
    a = submit(f, EXPRESS, ANN, 1, 10);
    (void)submit(f, EXPRESS, BOB, 0, 20); /* also without GPUs */
    b = submit(f, EXPRESS, BOB, 1, 10);
    assert_int_equal(fx_state(f, submit(f, STANDARD, BOB, 8, 10)), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    assert_int_equal(stk_core_why(f->core, (stk_job_id){b}, &why, NULL), 0);
    assert_int_equal(why.code, STK_WHY_QUEUE);
    assert_int_equal(why.of, STK_OF_QUEUE);
    assert_int_equal(why.unit, STK_UNIT_JOBS);
    assert_int_equal(why.used, 2);
    assert_int_equal(why.limit, 2);
    (void)fx_cancel(f, a);
    fx_turn(f);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

/* Each tenant, and each user, has a limit of its own; both hold. */
static void limits_are_of_each_user_and_each_tenant(void **state)
{
    struct stk_job_spec spec = job_of(STANDARD, ANN, 2, 10);
    struct stk_reason why;
    struct fx *f;
    uint32_t a, b, c;

    (void)state;
    table[STANDARD].limit[STK_OF_USER].milli = 4000;
    table[STANDARD].limit[STK_OF_TENANT].milli = 6000;
    f = world("skip");
    spec.tenant = 7;
    (void)fx_submit(f, spec);
    (void)fx_submit(f, spec);
    a = fx_submit(f, spec); /* ann has 4 */
    spec.terms.user = BOB;
    (void)fx_submit(f, spec);
    b = fx_submit(f, spec); /* tenant 7 has 6 */
    spec.tenant = 8;
    c = fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, c), STK_JOB_RUNNING);
    assert_int_equal(stk_core_why(f->core, (stk_job_id){b}, &why, NULL), 0);
    assert_int_equal(why.of, STK_OF_TENANT);
    assert_null(why.tenant); /* there is no table of tenants */
    fx_drain(f);
    fx_finish(f);
}

/* Rows of accounts are used again, and nobody inherits what another had. */
static void accounts_go_with_their_last_job(void **state)
{
    struct fx *f;

    (void)state;
    table[STANDARD].limit[STK_OF_USER].milli = 2000;
    f = world("skip");
    for (uint32_t user = 1; user < 40; user++) {
        (void)submit(f, STANDARD, user, 2, 5);
        (void)submit(f, STANDARD, user, 2, 5);
        fx_run(f, f->now + 20 * STK_SECOND);
        assert_int_equal(f->s->n_live, 0);
    }
    assert_int_equal(f->s->n_accounts, N + 1);
    fx_finish(f);
}

/* Behind a reservation: who would use up what the reserved job may have must end before it. */
static void a_backfill_leaves_the_reserved_job_its_limit(void **state)
{
    struct fx *f;
    uint32_t big, small;

    (void)state;
    table[EXPRESS].limit[STK_OF_QUEUE].milli = 10000;
    f = world("easy");
    (void)submit(f, STANDARD, BOB, 8, 100);
    big = submit(f, EXPRESS, ANN, 9, 100);
    assert_int_equal(fx_state(f, big), STK_JOB_WAITING);
    small = submit(f, EXPRESS, ANN, 2, 500);
    assert_int_equal(fx_state(f, small), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, submit(f, EXPRESS, ANN, 2, 50)), STK_JOB_RUNNING);
    fx_run(f, 101 * STK_SECOND);
    assert_int_equal(fx_state(f, big), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

static void nobody_is_evicted_for_a_job_over_a_limit(void **state)
{
    struct stk_job_spec spec = job_of(EXPRESS, ANN, 8, 10);
    struct fx *f;
    uint32_t low;

    (void)state;
    table[EXPRESS].limit[STK_OF_USER].jobs = 1;
    f = fx_new(
        &(struct fx_setup){.order = "priority", .preempt = "tier", .queues = table, .n_queues = N});
    spec.priority = 1000;
    (void)fx_submit(f, spec);
    fx_turn(f);
    low = submit(f, STANDARD, BOB, 8, 1000);
    assert_int_equal(fx_state(f, low), STK_JOB_RUNNING);
    (void)fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(fx_of(f, low)->preemptions, 0);
    assert_int_equal(fx_state(f, low), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

/* A state is loaded under other rows of the same names; what is not there goes to the first. */
static void saved_jobs_find_their_queue_by_its_name(void **state)
{
    struct stk_queue_spec other[2];
    struct stk_core *c;
    struct fx *f;
    uint32_t a, b;

    (void)state;
    table[EXPRESS].limit[STK_OF_USER].milli = 4000;
    f = world("skip");
    a = submit(f, EXPRESS, ANN, 3, 100);
    b = submit(f, STANDARD, ANN, 3, 100);
    other[0] = stk_default_queues[2]; /* batch: standard is gone */
    other[1] = table[EXPRESS];
    c = fx_reload(f, f->core,
                  &(struct fx_setup){.backfill = "skip", .queues = other, .n_queues = 2});
    assert_int_equal(stk_core_state(c)->terms[a].queue, 1);
    assert_int_equal(stk_core_state(c)->terms[b].queue, 0);
    assert_int_equal(stk_core_state(c)->accounts[1].milli, 3000);
    stk_core_free(c);
    fx_drain(f);
    fx_finish(f);
}

static void limits_do_not_go_with_every_policy(void **state)
{
    const struct stk_node_spec node = {.gpus = 8};
    const struct stk_params params = {0};
    struct stk_core_config cfg = {.nodes = &node,
                                  .n_nodes = 1,
                                  .n_pools = 1,
                                  .order = stk_order_find("fifo"),
                                  .backfill = stk_backfill_find("conservative"),
                                  .place = stk_place_find("pack"),
                                  .preempt = stk_preempt_find("none"),
                                  .admit = &stk_admit_possible,
                                  .params = &params,
                                  .queues = table,
                                  .n_queues = N};
    struct fx_heap heap = {0};
    const struct stk_mem mem = fx_mem(&heap);
    struct stk_core *core = NULL;
    struct stk_err err;

    (void)state;
    assert_int_equal(stk_core_new(&cfg, &mem, &core, &err), 0);
    stk_core_free(core);
    table[EXPRESS].limit[STK_OF_QUEUE].jobs = 3;
    assert_int_equal(stk_core_new(&cfg, &mem, &core, &err), -EINVAL);
    assert_non_null(strstr(err.text, "limits of queues do not go with"));
    table[EXPRESS] = stk_default_queues[1];
    table[EXPRESS].lowest = 2000;
    assert_int_equal(stk_core_new(&cfg, &mem, &core, &err), -EINVAL);
    assert_string_equal(err.text, "queue express: priority 1000 is not within 2000 to 1000000000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_defaults_are_the_five_queues_and_three_classes, plant),
        cmocka_unit_test_setup(what_can_never_be_within_is_refused, plant),
        cmocka_unit_test_setup(who_is_over_a_limit_waits_in_a_strict_queue, plant),
        cmocka_unit_test_setup(who_is_over_a_limit_waits_in_a_loose_queue, plant),
        cmocka_unit_test_setup(who_is_over_a_limit_waits_with_easy, plant),
        cmocka_unit_test_setup(jobs_are_counted_too, plant),
        cmocka_unit_test_setup(limits_are_of_each_user_and_each_tenant, plant),
        cmocka_unit_test_setup(accounts_go_with_their_last_job, plant),
        cmocka_unit_test_setup(a_backfill_leaves_the_reserved_job_its_limit, plant),
        cmocka_unit_test_setup(nobody_is_evicted_for_a_job_over_a_limit, plant),
        cmocka_unit_test_setup(saved_jobs_find_their_queue_by_its_name, plant),
        cmocka_unit_test_setup(limits_do_not_go_with_every_policy, plant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
