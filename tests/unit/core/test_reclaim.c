/* SPDX-License-Identifier: Apache-2.0 */
/* test_reclaim.c - idle guarantees are lent out and taken back; what is above them is shared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/fair.h"
#include "core/share.h"
#include "core/tenant.h"
#include "lib/fixture.h"
#include "policy/registry.h"

enum { DEFAULT, ORG, A, B, C, D, N };

static struct stk_tenant_spec table[N];

/* default; org over a and b; c; d. */
static int plant(void **state)
{
    (void)state;
    fx_org(table, N);
    return 0;
}

static struct fx *world(const char *backfill, const char *params)
{
    return fx_new(&(struct fx_setup){.order = "priority",
                                     .backfill = backfill,
                                     .preempt = "reclaim",
                                     .params = params,
                                     .tenants = table,
                                     .n_tenants = N});
}

static uint32_t submit_as(struct fx *f, uint32_t tenant, uint32_t gpus, enum stk_tier tier,
                          int32_t priority)
{
    struct stk_job_spec spec = fx_job(gpus, 1000);
    uint32_t job;

    spec.tenant = tenant;
    spec.tier = tier;
    spec.priority = priority;
    job = fx_submit(f, spec);
    fx_turn(f);
    return job;
}

static uint32_t submit(struct fx *f, uint32_t tenant, uint32_t gpus)
{
    return submit_as(f, tenant, gpus, STK_TIER_STANDARD, 500);
}

static bool runs(struct fx *f, uint32_t job)
{
    return fx_state(f, job) == STK_JOB_RUNNING;
}

/* Sixteen GPUs, eight of them a's, which has nothing to do. */
static void what_was_borrowed_is_given_back(const char *backfill)
{
    struct fx *f;
    uint32_t own, borrowed, mine, more;

    table[A].guarantee = 8000;
    table[C].guarantee = 8000;
    f = world(backfill, NULL);
    own = submit(f, C, 8);
    borrowed = submit(f, C, 8);
    assert_true(runs(f, own) && runs(f, borrowed));
    mine = submit(f, A, 4);
    assert_true(runs(f, mine) && runs(f, own));
    assert_false(runs(f, borrowed)); /* the later one goes */
    more = submit(f, A, 4);
    assert_true(runs(f, more));
    assert_int_equal(fx_of(f, borrowed)->preemptions, 1);
    fx_drain(f);
    fx_finish(f);
}

static void guarantees_hold_under_every_backfill_that_goes_with_them(void **state)
{
    static const char *const backfill[] = {"none", "skip", "easy"};

    for (int i = 0; i < 3; i++) {
        plant(state);
        what_was_borrowed_is_given_back(backfill[i]);
    }
}

static void a_borrower_takes_nothing_from_who_is_within_a_guarantee(void **state)
{
    struct fx *f;
    uint32_t own, high;

    (void)state;
    table[A].guarantee = 8000;
    f = world("skip", NULL);
    submit(f, C, 8);
    own = submit_as(f, A, 8, STK_TIER_BEST_EFFORT, 0);
    high = submit_as(f, D, 8, STK_TIER_STANDARD, 1000);
    assert_true(runs(f, own));
    assert_true(
        runs(f, high)); /* in the place of c's, which has borrowed and is of a lower class */
    fx_drain(f);
    fx_finish(f);
}

static void best_effort_goes_first_then_who_is_most_over(void **state)
{
    struct fx *f;
    uint32_t c, d, d2, low, mine;

    (void)state;
    table[A].guarantee = 8000;
    f = world("skip", "reclaim.due=off");
    c = submit(f, C, 4);
    low = submit_as(f, C, 2, STK_TIER_BEST_EFFORT, 500);
    d = submit(f, D, 8);
    d2 = submit(f, D, 2);
    mine = submit(f, A, 2);
    assert_true(runs(f, mine));
    assert_false(runs(f, low));
    mine = submit(f, A, 2); /* d has ten of sixteen, c four */
    assert_true(runs(f, mine) && runs(f, c) && runs(f, d));
    assert_false(runs(f, d2));
    fx_drain(f);
    fx_finish(f);
}

static void a_guarantee_of_the_one_above_serves_all_below(void **state)
{
    struct fx *f;
    uint32_t c, a, b, b2;

    (void)state;
    table[ORG].guarantee = 12000;
    table[B].guarantee = 4000;
    f = world("skip", "reclaim.due=off");
    c = submit(f, C, 16);
    a = submit(f, A, 8); /* no guarantee of its own */
    assert_true(runs(f, a));
    assert_false(runs(f, c));
    a = submit(f, A, 8);     /* beyond what org has */
    assert_true(runs(f, a)); /* borrowed */
    b = submit(f, B, 4);
    assert_true(runs(f, b));
    assert_false(runs(f, a));
    b2 = submit(f, B, 8);
    assert_false(runs(f, b2)); /* org has 12 of 12 */
    fx_drain(f);
    fx_finish(f);
}

static void what_is_above_guarantees_is_shared_by_weight(void **state)
{
    struct fx *f;
    uint32_t used = 0;

    (void)state;
    table[C].weight = 3000;
    f = world("skip", "reclaim.due=on");
    for (int i = 0; i < 16; i++)
        submit(f, D, 1);
    for (int i = 0; i < 16; i++)
        submit(f, C, 1);
    used = (uint32_t)*stk_tenant_used(f->s, C, STK_ALL_TYPES);
    assert_int_equal(used, 12000);
    for (int i = 0; i < 4; i++)
        submit(f, A, 1);                                              /* weight 1 of 5 */
    assert_int_equal(*stk_tenant_used(f->s, A, STK_ALL_TYPES), 3000); /* 3.2 are due */
    assert_int_equal(*stk_tenant_used(f->s, D, STK_ALL_TYPES), 3000);
    fx_drain(f);
    fx_finish(f);
}

static void shares_may_be_left_as_they_are(void **state)
{
    struct fx *f;

    (void)state;
    f = world("skip", "reclaim.due=off");
    for (int i = 0; i < 16; i++)
        submit(f, D, 1);
    for (int i = 0; i < 4; i++)
        submit(f, C, 1);
    assert_int_equal(*stk_tenant_used(f->s, C, STK_ALL_TYPES), 0);
    fx_drain(f);
    fx_finish(f);
}

/* Where nobody has a guarantee tenants make no difference to who gives way. */
static void without_guarantees_it_is_as_tier(void **state)
{
    struct fx *f;
    uint32_t low, high;

    (void)state;
    f = world("skip", NULL);
    assert_false(f->s->fair);
    low = submit_as(f, D, 16, STK_TIER_STANDARD, 500);
    submit(f, C, 4);
    assert_int_equal(fx_state(f, low), STK_JOB_RUNNING);
    high = submit_as(f, C, 4, STK_TIER_STANDARD, 900);
    assert_int_equal(fx_state(f, high), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, low), STK_JOB_WAITING);
    fx_drain(f);
    fx_finish(f);
    table[C].guarantee = 1000;
    f = world("skip", NULL);
    assert_true(f->s->fair && f->s->by_due);
    fx_finish(f);
}

static void levels_count_inside_a_tenant(void **state)
{
    struct fx *f;
    uint32_t low, high, other;

    (void)state;
    table[A].guarantee = 8000;
    f = world("skip", "reclaim.levels=tenant reclaim.due=off");
    other = submit_as(f, C, 8, STK_TIER_BEST_EFFORT, 0);
    low = submit_as(f, A, 8, STK_TIER_STANDARD, 100);
    high = submit_as(f, A, 8, STK_TIER_STANDARD, 900);
    assert_true(runs(f, high)); /* within the guarantee before the other: c gives way */
    assert_false(runs(f, other));
    assert_true(runs(f, low)); /* borrowed now */
    other = submit_as(f, D, 4, STK_TIER_STANDARD, 1000);
    assert_false(runs(f, other)); /* levels of tenants do not meet */
    high = submit_as(f, A, 4, STK_TIER_STANDARD, 1000);
    assert_true(runs(f, high)); /* but do in one */
    assert_false(runs(f, low));
    fx_drain(f);
    fx_finish(f);
}

static void a_type_may_be_guaranteed(void **state)
{
    static const struct stk_node_spec nodes[2] = {{.gpus = 8}, {.gpus = 8, .gpu_type = 1}};
    struct stk_job_spec spec = fx_job(4, 1000);
    struct fx *f;
    uint32_t c[4], mine;

    (void)state;
    table[A].type_guarantee[1] = 4000;
    table[C].guarantee = 12000;
    f = fx_new(&(struct fx_setup){.backfill = "skip",
                                  .preempt = "reclaim",
                                  .nodes = nodes,
                                  .n_nodes = 2,
                                  .tenants = table,
                                  .n_tenants = N});
    for (int i = 0; i < 4; i++)
        c[i] = submit(f, C, 4);
    spec.tenant = A;
    spec.demand.gpu_types = 2;
    mine = fx_submit(f, spec);
    fx_turn(f);
    assert_true(runs(f, mine));
    assert_int_equal(*stk_tenant_used(f->s, A, STK_OF_TYPE(1)), 4000);
    assert_int_equal(runs(f, c[0]) + runs(f, c[1]) + runs(f, c[2]) + runs(f, c[3]), 3);
    fx_drain(f);
    fx_finish(f);
}

/* Two singles of b within its guarantee lie on the two nodes; a's eight need a whole one. */
static void a_smaller_one_is_started_elsewhere(const char *params, bool moves)
{
    struct fx *f;
    uint32_t b[4], mine;

    table[A].guarantee = 8000;
    table[B].guarantee = 4000;
    f = world("skip", params);
    for (int i = 0; i < 2; i++) { /* two on each node */
        uint32_t seven = submit(f, C, 6);

        b[2 * i] = submit(f, B, 1);
        b[2 * i + 1] = submit(f, B, 1);
        (void)seven;
    }
    for (int i = 0; i < 4; i++)
        assert_true(runs(f, b[i]));
    mine = submit(f, A, 8);
    assert_int_equal(runs(f, mine), moves);
    for (int i = 0; i < 4; i++)
        assert_true(runs(f, b[i]));
    fx_drain(f);
    fx_finish(f);
}

static void who_is_within_a_guarantee_may_move_for_another(void **state)
{
    a_smaller_one_is_started_elsewhere("reclaim.move=on", true);
    plant(state);
    a_smaller_one_is_started_elsewhere("reclaim.move=off", false);
}

static void ranks_need_an_order_that_has_them(void **state)
{
    static const struct stk_node_spec node = {.gpus = 8};
    struct fx_heap heap = {0};
    const struct stk_mem mem = fx_mem(&heap);
    struct stk_params params = {0};
    const struct stk_core_config cfg = {.nodes = &node,
                                        .n_nodes = 1,
                                        .n_pools = 1,
                                        .order = stk_order_find("fifo"),
                                        .backfill = stk_backfill_find("skip"),
                                        .place = &stk_place_pack,
                                        .preempt = stk_preempt_find("reclaim"),
                                        .admit = &stk_admit_possible,
                                        .params = &params};
    struct stk_core *core = NULL;
    struct stk_err err;

    (void)state;
    assert_int_equal(stk_params_set(&params, stk_param_find("reclaim.rank", NULL), "on", &err), 0);
    assert_int_equal(stk_core_new(&cfg, &mem, &core, &err), -EINVAL);
    assert_string_equal(err.text, "order fifo does not rank running jobs in levels, so they do not "
                                  "give way by rank; take order las");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(guarantees_hold_under_every_backfill_that_goes_with_them, plant),
        cmocka_unit_test_setup(a_borrower_takes_nothing_from_who_is_within_a_guarantee, plant),
        cmocka_unit_test_setup(best_effort_goes_first_then_who_is_most_over, plant),
        cmocka_unit_test_setup(a_guarantee_of_the_one_above_serves_all_below, plant),
        cmocka_unit_test_setup(what_is_above_guarantees_is_shared_by_weight, plant),
        cmocka_unit_test_setup(shares_may_be_left_as_they_are, plant),
        cmocka_unit_test_setup(without_guarantees_it_is_as_tier, plant),
        cmocka_unit_test_setup(levels_count_inside_a_tenant, plant),
        cmocka_unit_test_setup(a_type_may_be_guaranteed, plant),
        cmocka_unit_test_setup(who_is_within_a_guarantee_may_move_for_another, plant),
        cmocka_unit_test_setup(ranks_need_an_order_that_has_them, plant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
