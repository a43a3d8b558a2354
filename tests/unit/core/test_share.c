/* SPDX-License-Identifier: Apache-2.0 */
/* test_share.c - guarantees that fit, what tenants are due, and numbers that change later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/share.h"
#include "core/tenant.h"
#include "lib/fixture.h"
#include "policy/registry.h"

enum { DEFAULT, ORG, A, B, C, N };

static struct stk_tenant_spec table[N];

/* default; org over a and b; c. */
static int plant(void **state)
{
    (void)state;
    fx_org(table, N);
    return 0;
}

static struct fx *world(uint32_t nodes)
{
    static struct stk_node_spec node[16];

    for (uint32_t i = 0; i < nodes; i++)
        node[i] = (struct stk_node_spec){.gpus = 8};
    return fx_new(&(struct fx_setup){.preempt = "reclaim",
                                     .params = "reclaim.due=off",
                                     .backfill = "skip",
                                     .nodes = node,
                                     .n_nodes = nodes,
                                     .tenants = table,
                                     .n_tenants = N});
}

static uint32_t submit(struct fx *f, uint32_t tenant, uint32_t gpus)
{
    struct stk_job_spec spec = fx_job(gpus, 100);
    uint32_t job;

    spec.tenant = tenant;
    job = fx_submit(f, spec);
    fx_turn(f);
    return job;
}

static uint64_t due(struct fx *f, uint32_t tenant)
{
    return stk_share_due((struct stk_state *)(uintptr_t)f->s, tenant);
}

static int make(const char *preempt, const struct stk_node_spec *nodes, uint32_t n,
                struct stk_err *err)
{
    struct fx_heap heap = {0};
    const struct stk_mem mem = fx_mem(&heap);
    struct stk_params params = {0};
    const struct stk_core_config cfg = {.nodes = nodes,
                                        .n_nodes = n,
                                        .n_pools = 1,
                                        .tenants = table,
                                        .n_tenants = N,
                                        .order = stk_order_find("fifo"),
                                        .backfill = stk_backfill_find("skip"),
                                        .place = &stk_place_pack,
                                        .preempt = stk_preempt_find(preempt),
                                        .admit = &stk_admit_possible,
                                        .params = &params};
    struct stk_core *core = NULL;
    int rc = stk_core_new(&cfg, &mem, &core, err);

    stk_core_free(core);
    assert_true(heap.live == 0);
    return rc;
}

static void refused(void **state, const char *why)
{
    static const struct stk_node_spec nodes[2] = {{.gpus = 8}, {.gpus = 8, .gpu_type = 1}};
    struct stk_err err;

    assert_int_equal(make("reclaim", nodes, 2, &err), -EINVAL);
    assert_string_equal(err.text, why);
    plant(state);
}

static void guarantees_must_fit(void **state)
{
    struct stk_err err;

    table[A].guarantee = 3000;
    table[B].guarantee = 3000;
    table[ORG].guarantee = 5000;
    refused(state, "tenant org: those below it are guaranteed 6 GPUs together, it has a guarantee "
                   "of 5");
    table[A].guarantee = 3000;
    table[A].limit = 2500;
    refused(state, "tenant a: a guarantee of 3 GPUs is more than its limit of 2.5");
    table[A].guarantee = 3000;
    table[ORG].limit = 2000;
    refused(state, "tenant org: a guarantee of 3 GPUs is more than its limit of 2");
    table[A].guarantee = 10000;
    table[C].guarantee = 7000;
    refused(state, "tenants are guaranteed 17 GPUs together; the cluster has 16");
    table[A].type_guarantee[1] = 5000;
    table[C].type_guarantee[1] = 4000;
    refused(state, "tenants are guaranteed 9 GPUs of type 1 together; the cluster has 8");
    table[A].type_guarantee[1] = 2000;
    table[A].guarantee = 1500;
    refused(state, "tenant a: guarantees by type are 2 GPUs together, its guarantee over all types "
                   "is 1.5");
    table[ORG].type_guarantee[0] = 1000;
    table[B].type_guarantee[0] = 2000;
    refused(state, "tenant org: those below it are guaranteed 2 GPUs of type 0 together, it has a "
                   "guarantee of 1");
    table[B].weight = STK_MAX_WEIGHT + 1000;
    refused(state, "tenant b: a weight is at most 1000000, got 1e+06");
    table[B].guarantee = 1000;
    assert_int_equal(make("tier", &(struct stk_node_spec){.gpus = 8}, 1, &err), -EINVAL);
    assert_string_equal(err.text, "guarantees of tenants are kept by preempt reclaim, and not by "
                                  "preempt tier");
}

static void a_guarantee_that_is_not_stated_is_the_sum_of_those_below(void **state)
{
    struct fx *f;

    (void)state;
    table[A].guarantee = 3000;
    table[B].type_guarantee[0] = 2000;
    f = world(2);
    assert_int_equal(*stk_tenant_guarantee(f->s, ORG, STK_ALL_TYPES), 5000);
    assert_int_equal(*stk_tenant_guarantee(f->s, ORG, STK_OF_TYPE(0)), 2000);
    assert_int_equal(*stk_tenant_guarantee(f->s, C, STK_ALL_TYPES), 0);
    fx_finish(f);
}

static void what_is_wanted_is_shared_by_weight_above_guarantees(void **state)
{
    struct fx *f;

    (void)state;
    table[C].guarantee = 4000;
    table[ORG].weight = 3000;
    f = world(2);
    submit(f, A, 16); /* has all */
    assert_int_equal(due(f, A), 16000);
    assert_int_equal(due(f, C), 0);
    submit(f, C, 16);
    assert_int_equal(due(f, C), 4000 + 12000 / 4);
    assert_int_equal(due(f, ORG), 9000);
    assert_int_equal(due(f, A), 9000);
    submit(f, B, 2); /* wants less than its half */
    assert_int_equal(due(f, B), 2000);
    assert_int_equal(due(f, A), 7000);
    submit(f, B, 16);
    assert_int_equal(due(f, B) + due(f, A), 9000); /* whole GPUs: ties to the first */
    assert_int_equal(due(f, A), 5000);
    fx_drain(f);
    assert_int_equal(due(f, A), 0);
    fx_finish(f);
}

static void nobody_is_due_more_than_its_limit_or_without_weight(void **state)
{
    struct fx *f;

    (void)state;
    table[A].limit = 3000;
    table[C].weight = 0;
    table[C].guarantee = 1000;
    f = world(2);
    for (int i = 0; i < 8; i++) {
        submit(f, A, 2);
        submit(f, B, 2);
        submit(f, C, 2);
    }
    assert_int_equal(due(f, A), 3000);
    assert_int_equal(due(f, B), 12000);
    assert_int_equal(due(f, C), 1000);
    fx_drain(f);
    fx_finish(f);
}

static void what_is_due_follows_the_nodes_that_are_up(void **state)
{
    struct fx *f;

    (void)state;
    table[C].guarantee = 12000;
    table[A].guarantee = 4000;
    f = world(2);
    submit(f, C, 16);
    submit(f, A, 16);
    assert_int_equal(due(f, C), 12000);
    assert_int_equal(fx_node(f, 1, false), 0);
    assert_int_equal(due(f, C), 6000); /* guarantees are cut in proportion */
    assert_int_equal(due(f, A), 2000);
    fx_free(f);
}

static int set(struct fx *f, uint32_t tenant, enum stk_set_kind what, uint64_t value)
{
    const struct stk_set e = {.kind = what, .row = tenant, .value = (int64_t)value};

    return fx_set(f, &e);
}

static void numbers_may_change_later(void **state)
{
    struct fx *f;
    uint32_t a, b;

    (void)state;
    f = fx_new(&(struct fx_setup){
        .backfill = "skip", .preempt = "tier", .tenants = table, .n_tenants = N});
    submit(f, A, 4);
    a = submit(f, A, 16);
    b = submit(f, C, 16);
    assert_int_equal(fx_of(f, a)->shape, fx_of(f, b)->shape); /* nobody has a limit */
    assert_int_equal(*stk_tenant_limit(f->s, ORG, STK_ALL_TYPES), STK_NO_LIMIT);
    assert_int_equal(set(f, ORG, STK_SET_LIMIT, 2000), 0); /* takes nothing away */
    assert_int_equal(*stk_tenant_limit(f->s, ORG, STK_ALL_TYPES), 2000);
    assert_int_not_equal(fx_of(f, a)->shape, fx_of(f, b)->shape);
    assert_true(stk_core_sound(f->core, &f->err));
    assert_int_equal(set(f, A, STK_SET_GUARANTEE, 2000), -EINVAL); /* nobody would keep it */
    assert_int_equal(set(f, C, STK_SET_WEIGHT, 500), 0);
    assert_int_equal(set(f, N, STK_SET_LIMIT, 0), -EINVAL);
    assert_int_equal(set(f, C, STK_SET_KIND_MAX, 0), -EINVAL);
    assert_int_equal(set(f, C, STK_SET_WEIGHT, STK_MAX_WEIGHT + 1), -EINVAL);
    assert_int_equal(set(f, C, STK_SET_LIMIT, STK_MAX_QUOTA + 1), -EINVAL);
    fx_run(f, 100 * STK_SECOND);
    assert_int_equal(fx_state(f, a), STK_JOB_WAITING); /* over the limit now */
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    fx_run(f, 200 * STK_SECOND);
    assert_int_equal(set(f, ORG, STK_SET_LIMIT, STK_NO_LIMIT), 0);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

static void a_guarantee_may_come_later(void **state)
{
    struct fx *f;
    uint32_t a, c;

    (void)state;
    table[ORG].limit = 8000;
    f = world(2);
    c = submit(f, C, 16);
    a = submit(f, A, 4);
    assert_int_equal(set(f, A, STK_SET_GUARANTEE, 9000), -EINVAL);
    assert_string_equal(f->err.text,
                        "tenant org: a guarantee of 9 GPUs is more than its limit of 8");
    assert_int_equal(*stk_tenant_guarantee(f->s, A, STK_ALL_TYPES), 0);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_WAITING);
    assert_int_equal(set(f, A, STK_SET_GUARANTEE, 4000), 0);
    assert_int_equal(*stk_tenant_guarantee(f->s, ORG, STK_ALL_TYPES), 4000);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, c), STK_JOB_WAITING);
    fx_drain(f);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(guarantees_must_fit, plant),
        cmocka_unit_test_setup(a_guarantee_that_is_not_stated_is_the_sum_of_those_below, plant),
        cmocka_unit_test_setup(what_is_wanted_is_shared_by_weight_above_guarantees, plant),
        cmocka_unit_test_setup(nobody_is_due_more_than_its_limit_or_without_weight, plant),
        cmocka_unit_test_setup(what_is_due_follows_the_nodes_that_are_up, plant),
        cmocka_unit_test_setup(numbers_may_change_later, plant),
        cmocka_unit_test_setup(a_guarantee_may_come_later, plant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
