/* SPDX-License-Identifier: Apache-2.0 */
/* test_plain.c - plain jobs, whose users may not preempt by class: whom they preempt, and who
 * preempts them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/core.h"
#include "lib/fixture.h"
#include "policy/registry.h"

#define BATCH 100
#define TRAINING 500
#define INFERENCE 1000

static uint32_t submit(struct fx *f, uint32_t gpus, enum stk_tier tier, int32_t priority)
{
    struct stk_job_spec spec = fx_job(gpus, 100);

    spec.tier = tier;
    spec.priority = priority;
    return fx_submit(f, spec);
}

static struct fx *one_node(const char *params)
{
    static const struct stk_node_spec node = {.gpus = 8};

    return fx_new(&(struct fx_setup){.nodes = &node,
                                     .n_nodes = 1,
                                     .order = "priority",
                                     .backfill = "easy",
                                     .preempt = "tier",
                                     .params = params});
}

static uint32_t submit_plain(struct fx *f, enum stk_tier tier, int32_t priority)
{
    struct stk_job_spec spec = fx_job(8, 100);

    spec.tier = tier;
    spec.priority = priority;
    spec.terms.plain = true;
    return fx_submit(f, spec);
}

/* A plain job runs on all there is, another comes: whether the first gives way. */
static bool plain_gives_way(const char *params, int32_t priority, bool other_plain, int32_t other)
{
    struct fx *f = one_node(params);
    uint32_t first = submit_plain(f, STK_TIER_STANDARD, priority);
    bool gone;

    fx_turn(f);
    if (other_plain)
        (void)submit_plain(f, STK_TIER_STANDARD, other);
    else
        (void)submit(f, 8, STK_TIER_STANDARD, other);
    fx_turn(f);
    gone = fx_of(f, first)->preemptions > 0;
    fx_sound(f);
    fx_drain(f);
    fx_finish(f);
    return gone;
}

static void plain_jobs_share_one_class_whatever_their_priorities(void **state)
{
    static const int32_t some[] = {-1000, BATCH, TRAINING, INFERENCE, 100000};

    (void)state;
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++)
            assert_false(plain_gives_way(NULL, some[i], true, some[k]));
    assert_true(plain_gives_way(NULL, INFERENCE, false, INFERENCE)); /* whose class counts */
    assert_false(plain_gives_way(NULL, BATCH, false, TRAINING));
    assert_false(plain_gives_way("tier.plain=900", BATCH, false, INFERENCE));
    assert_true(plain_gives_way("tier.plain=0", INFERENCE, false, TRAINING));
}

/* ---- plain jobs take nothing inside their tier ---- */

struct rules {
    const char *order, *preempt, *params;
};

/* Every choice of policies that preempts by level. */
static const struct rules all_rules[] = {
    {"priority", "tier", NULL},
    {"fairshare", "tier", NULL},
    {"drf", "tier", NULL},
    {"ftf", "tier", NULL},
    {"edf", "tier", NULL},
    {"priority", "reclaim", NULL},
    {"fairshare", "reclaim", NULL},
    {"las", "reclaim", "las.thresholds=1000,10000"},
    {"las", "reclaim", "las.round_s=1"},
};

#define N_RULES (sizeof(all_rules) / sizeof(*all_rules))

static struct fx *by_rules(const struct rules *rules, const char *backfill, bool tenants)
{
    static const struct stk_node_spec node = {.gpus = 8};
    static struct stk_tenant_spec two[2];

    stk_tenant_spec_init(&two[0], "red", STK_NONE);
    stk_tenant_spec_init(&two[1], "blue", STK_NONE);
    return fx_new(&(struct fx_setup){.nodes = &node,
                                     .n_nodes = 1,
                                     .order = rules->order,
                                     .backfill = backfill,
                                     .preempt = rules->preempt,
                                     .params = rules->params,
                                     .tenants = two,
                                     .n_tenants = tenants ? 2 : 0});
}

static uint32_t submit_as(struct fx *f, bool plain, enum stk_tier tier, int32_t priority,
                          uint32_t tenant)
{
    struct stk_job_spec spec = fx_job(8, 100);

    spec.tier = tier;
    spec.priority = priority;
    spec.terms.plain = plain;
    spec.tenant = tenant;
    return fx_submit(f, spec);
}

/* With rounds, the next one, too. */
static void decide_now(struct fx *f)
{
    fx_turn(f);
    fx_run(f, f->now + 5 * STK_SECOND);
    fx_turn(f);
}

static void a_plain_job_takes_the_place_of_lower_tiers_only(void **state)
{
    static const int32_t some[] = {-1000, BATCH, TRAINING, INFERENCE};

    (void)state;
    for (size_t i = 0; i < N_RULES * 2 * 4 * 4; i++) {
        const uint32_t tenant = i / N_RULES % 2;
        const int32_t its = some[i / N_RULES / 2 % 4], mine = some[i / N_RULES / 8];
        struct fx *f = by_rules(&all_rules[i % N_RULES], "easy", tenant);
        const uint32_t victim = submit_as(f, false, STK_TIER_STANDARD, its, 0);
        uint32_t low, plain;

        fx_turn(f);
        assert_int_equal(fx_state(f, victim), STK_JOB_RUNNING);
        (void)submit_as(f, true, STK_TIER_STANDARD, mine, tenant);
        decide_now(f);
        assert_int_equal(fx_of(f, victim)->preemptions, 0);
        fx_drain(f);
        low = submit_as(f, false, STK_TIER_BEST_EFFORT, its, 0);
        fx_turn(f);
        plain = submit_as(f, true, STK_TIER_STANDARD, mine, tenant);
        decide_now(f);
        assert_int_equal(fx_of(f, low)->preemptions, 1);
        assert_int_equal(fx_state(f, plain), STK_JOB_RUNNING);
        fx_drain(f);
        fx_finish(f);
    }
}

/* A plain job of a high priority waits, and came first: it stands in the way of nobody who may
 * preempt by class. Order las does not rank by class: there those behind are tried, too. */
static void a_higher_class_preempts_though_a_plain_job_waits(void **state)
{
    static const char *const backfill[] = {"none", "skip", "easy"};

    (void)state;
    for (size_t i = 0; i < N_RULES * 3 * 2; i++) {
        const struct rules *rules = &all_rules[i % N_RULES];
        const bool tenants = i / N_RULES / 3, las = stk_order_find(rules->order) == &stk_order_las;
        struct fx *f = by_rules(rules, las ? "skip" : backfill[i / N_RULES % 3], tenants);
        const uint32_t victim = submit_as(f, true, STK_TIER_STANDARD, TRAINING, 0);
        uint32_t waits, express;

        fx_turn(f);
        assert_int_equal(fx_state(f, victim), STK_JOB_RUNNING);
        waits = submit_as(f, true, STK_TIER_STANDARD, 100 * INFERENCE, 0);
        fx_turn(f);
        express = submit_as(f, false, STK_TIER_STANDARD, INFERENCE, tenants);
        decide_now(f);
        assert_int_equal(fx_state(f, express), STK_JOB_RUNNING);
        assert_int_equal(fx_of(f, victim)->preemptions, 1);
        assert_int_equal(fx_state(f, waits), STK_JOB_WAITING);
        fx_sound(f);
        fx_drain(f);
        assert_int_equal(fx_of(f, victim)->preemptions, 1);
        assert_int_equal(fx_of(f, express)->preemptions, 0);
        fx_finish(f);
    }
}

/* The same job, asked for again by somebody who may, and back. */
static void a_job_that_is_no_longer_plain_preempts(void **state)
{
    static const char *const backfill[] = {"none", "skip", "easy"};

    (void)state;
    for (size_t i = 0; i < N_RULES * 3; i++) {
        struct fx *f = by_rules(&all_rules[i % N_RULES], backfill[i / N_RULES], false);
        const uint32_t victim = submit_as(f, false, STK_TIER_STANDARD, BATCH, 0);
        struct stk_event ev = {
            .type = STK_EV_UPDATE,
            .u.update = {.priority = INFERENCE, .estimate = 100 * STK_SECOND, .plain = false}};
        uint32_t job;

        decide_now(f);
        job = submit_as(f, true, STK_TIER_STANDARD, INFERENCE, 0);
        decide_now(f);
        ev.at = f->now;
        ev.job.i = job;
        assert_int_equal(fx_state(f, job), STK_JOB_WAITING);
        for (int k = 0; k < 3; k++) {
            ev.u.update.plain = k % 2;
            assert_int_equal(fx_apply(f, &ev), 0);
            fx_sound(f);
        }
        decide_now(f);
        assert_int_equal(fx_of(f, victim)->preemptions, 1);
        assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
        fx_drain(f);
        fx_finish(f);
    }
}

static void plain_jobs_are_ordered_by_priority(void **state)
{
    struct fx *f = one_node(NULL);
    uint32_t low, high;

    (void)state;
    (void)submit_plain(f, STK_TIER_STANDARD, 0);
    fx_turn(f);
    low = submit_plain(f, STK_TIER_STANDARD, BATCH);
    high = submit_plain(f, STK_TIER_STANDARD, INFERENCE);
    fx_drain(f);
    assert_true(fx_of(f, high)->started < fx_of(f, low)->started);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_jobs_share_one_class_whatever_their_priorities),
        cmocka_unit_test(a_plain_job_takes_the_place_of_lower_tiers_only),
        cmocka_unit_test(a_higher_class_preempts_though_a_plain_job_waits),
        cmocka_unit_test(a_job_that_is_no_longer_plain_preempts),
        cmocka_unit_test(plain_jobs_are_ordered_by_priority),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
