/* SPDX-License-Identifier: Apache-2.0 */
/* test_lending.c - who lends to whom, what a waiting job is entitled to, and what keeps those who
 * have it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/claim.h"
#include "core/lending.h"
#include "core/tenant.h"
#include "lib/fixture.h"
#include "policy/registry.h"

enum { DEFAULT, ORG, A, B, C, D, N };

static struct stk_tenant_spec table[N];

/* default; org over a and b; c; d. Two nodes of eight GPUs. */
static int plant(void **state)
{
    (void)state;
    fx_org(table, N);
    return 0;
}

static struct fx *world(const char *params)
{
    return fx_new(&(struct fx_setup){.order = "priority",
                                     .backfill = "skip",
                                     .preempt = "reclaim",
                                     .params = params,
                                     .tenants = table,
                                     .n_tenants = N});
}

static uint32_t submit_as(struct fx *f, uint32_t tenant, uint32_t gpus, struct stk_terms terms)
{
    struct stk_job_spec spec = fx_job(gpus, 1000);
    uint32_t job;

    spec.tenant = tenant;
    spec.priority = 500;
    spec.terms = terms;
    job = fx_submit(f, spec);
    fx_turn(f);
    return job;
}

static uint32_t submit(struct fx *f, uint32_t tenant, uint32_t gpus)
{
    return submit_as(f, tenant, gpus, (struct stk_terms){0});
}

static void lends(const struct fx *f, const uint64_t lent[N], const uint64_t borrowed[N])
{
    struct stk_lending rows[N];

    stk_lending(f->s, STK_ALL_TYPES, rows);
    for (int i = 0; i < N; i++) {
        assert_int_equal(rows[i].lent, lent[i]);
        assert_int_equal(rows[i].borrowed, borrowed[i]);
    }
}

static void what_is_guaranteed_to_nobody_is_used_first(void **state)
{
    struct fx *f;

    (void)state;
    table[C].guarantee = 8000;
    f = world(NULL);
    submit(f, D, 8); /* there are eight more */
    lends(f, (uint64_t[N]){0}, (uint64_t[N]){0});
    submit(f, D, 3);
    lends(f, (uint64_t[N]){[C] = 3000}, (uint64_t[N]){[D] = 3000});
    submit(f, C, 6); /* takes it back: three go, and two of the five are free */
    lends(f, (uint64_t[N]){0}, (uint64_t[N]){0});
    submit(f, D, 2);
    lends(f, (uint64_t[N]){[C] = 2000}, (uint64_t[N]){[D] = 2000});
    fx_drain(f);
    fx_finish(f);
}

static void borrowers_and_lenders_have_their_part_of_it(void **state)
{
    struct stk_lending rows[N];
    struct fx *f;
    uint64_t all;

    (void)state;
    table[A].guarantee = 4000;
    table[C].guarantee = 12000;
    f = world("reclaim.due=off");
    submit(f, B, 6); /* of a's four, and two of c's */
    submit(f, D, 8);
    /* at the top: d is 8 over, org 2, c leaves 12 idle; all of org's own is in use */
    lends(f, (uint64_t[N]){[A] = 4000, [C] = 10000},
          (uint64_t[N]){[B] = 4000, [ORG] = 2000, [D] = 8000});
    stk_lending(f->s, STK_ALL_TYPES, rows);
    all = stk_lending_all(f->s, rows, f->s->first_tenant);
    assert_int_equal(all, 10000);
    assert_int_equal(stk_lending_between(rows, C, D, all), 8000);
    assert_int_equal(stk_lending_between(rows, C, ORG, all), 2000);
    assert_int_equal(stk_lending_between(rows, D, C, all), 0);
    fx_drain(f);
    fx_finish(f);
}

static void types_are_lent_as_such(void **state)
{
    static const struct stk_node_spec nodes[2] = {{.gpus = 8}, {.gpus = 8, .gpu_type = 1}};
    struct stk_job_spec spec = fx_job(6, 1000);
    struct stk_lending rows[N];
    struct fx *f;

    (void)state;
    table[C].type_guarantee[1] = 8000;
    f = fx_new(&(struct fx_setup){.nodes = nodes,
                                  .n_nodes = 2,
                                  .order = "priority",
                                  .backfill = "skip",
                                  .preempt = "reclaim",
                                  .tenants = table,
                                  .n_tenants = N});
    spec.tenant = D;
    spec.demand.gpu_types = 2;
    fx_submit(f, spec);
    fx_turn(f);
    stk_lending(f->s, STK_OF_TYPE(1), rows);
    assert_int_equal(rows[C].lent, 6000);
    assert_int_equal(rows[D].borrowed, 6000);
    stk_lending(f->s, STK_OF_TYPE(0), rows);
    assert_int_equal(rows[C].lent, 0);
    fx_drain(f);
    fx_finish(f);
}

static void a_job_within_a_guarantee_says_whose(void **state)
{
    const struct stk_terms two_stay = {.group = 7, .group_min = 2};
    struct stk_claim claim;
    struct stk_hold hold;
    struct fx *f;
    uint32_t first, second, mine, other;

    (void)state;
    table[ORG].guarantee = 8000;
    f = world("reclaim.due=off");
    first = submit_as(f, D, 8, two_stay);
    second = submit_as(f, D, 8, two_stay);
    mine = submit(f, A, 4);
    assert_int_equal(fx_state(f, mine), STK_JOB_WAITING);
    stk_core_claim(f->core, (stk_job_id){mine}, &claim);
    assert_int_equal(claim.title, STK_TITLE_GUARANTEE);
    assert_int_equal(claim.tenant, ORG);
    assert_int_equal(claim.used, 0);
    assert_int_equal(claim.amount, 8000);
    stk_core_hold(f->core, (stk_job_id){mine}, (stk_job_id){first}, f->now, &hold);
    assert_true(hold.borrowed);
    assert_int_equal(hold.shield, STK_SHIELD_GROUP);
    assert_string_equal(stk_shield_name(hold.shield), "group");
    other = submit(f, C, 4);
    stk_core_claim(f->core, (stk_job_id){other}, &claim);
    assert_int_equal(claim.title, STK_TITLE_NONE);
    stk_core_claim(f->core, (stk_job_id){second}, &claim); /* it runs */
    assert_int_equal(claim.title, STK_TITLE_NONE);
    fx_drain(f);
    fx_finish(f);
}

static void who_started_a_moment_ago_is_protected_from_what_is_due(void **state)
{
    struct stk_claim claim;
    struct stk_hold hold;
    struct fx *f;
    uint32_t first, mine;

    (void)state;
    f = world("preempt.min_run_s=600 reclaim.due=on");
    first = submit(f, D, 8);
    submit(f, D, 8);
    mine = submit(f, C, 8);
    stk_core_claim(f->core, (stk_job_id){mine}, &claim);
    assert_int_equal(claim.title, STK_TITLE_DUE);
    assert_int_equal(claim.tenant, C);
    assert_int_equal(claim.amount, 8000);
    stk_core_hold(f->core, (stk_job_id){mine}, (stk_job_id){first}, f->now, &hold);
    assert_int_equal(hold.shield, STK_SHIELD_MIN_RUN);
    assert_int_equal(hold.until, 600 * STK_SECOND);
    assert_false(hold.borrowed); /* nobody has guarantees */
    fx_drain(f);
    fx_finish(f);
}

static void what_is_within_a_guarantee_is_not_borrowed(void **state)
{
    struct stk_hold hold;
    struct fx *f;
    uint32_t mine, others;

    (void)state;
    table[C].guarantee = 8000;
    f = world("");
    mine = submit(f, C, 8);
    others = submit(f, D, 8);
    stk_core_hold(f->core, (stk_job_id){others}, (stk_job_id){mine}, f->now, &hold);
    assert_false(hold.borrowed); /* also when nobody has asked since it started */
    assert_int_equal(hold.shield, STK_SHIELD_OWN);
    stk_core_hold(f->core, (stk_job_id){mine}, (stk_job_id){others}, f->now, &hold);
    assert_true(hold.borrowed);
    fx_drain(f);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_guaranteed_to_nobody_is_used_first, plant),
        cmocka_unit_test_setup(borrowers_and_lenders_have_their_part_of_it, plant),
        cmocka_unit_test_setup(types_are_lent_as_such, plant),
        cmocka_unit_test_setup(a_job_within_a_guarantee_says_whose, plant),
        cmocka_unit_test_setup(who_started_a_moment_ago_is_protected_from_what_is_due, plant),
        cmocka_unit_test_setup(what_is_within_a_guarantee_is_not_borrowed, plant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
