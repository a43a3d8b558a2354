/* SPDX-License-Identifier: Apache-2.0 */
/* test_settings.c - parameters, limits and priorities that change while jobs wait and run. That
 * any of it is replayed, forked and saved is a property (prop_core.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/settings.h"
#include "core/tenant.h"
#include "lib/fixture.h"

static struct stk_tenant_spec table[2];

static int plant(void **state)
{
    (void)state;
    for (uint32_t t = 0; t < 2; t++)
        stk_tenant_spec_init(&table[t], t ? "vision" : "default", STK_NONE);
    return 0;
}

static struct stk_set limit(uint32_t tenant, int64_t milli)
{
    return (struct stk_set){.kind = STK_SET_LIMIT, .row = tenant, .value = milli};
}

static struct stk_set param(const char *name, const char *text)
{
    struct stk_set e = {.kind = STK_SET_PARAM};

    (void)snprintf(e.name, sizeof(e.name), "%s", name);
    (void)snprintf(e.text, sizeof(e.text), "%s", text);
    return e;
}

static uint32_t submit(struct fx *f, uint32_t gpus, uint32_t tenant)
{
    struct stk_job_spec spec = fx_job(gpus, 100);
    uint32_t job;

    spec.tenant = tenant;
    job = fx_submit(f, spec);
    fx_turn(f);
    return job;
}

static void a_limit_that_comes_holds_for_those_that_wait(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.tenants = table, .n_tenants = 2});
    uint32_t a = submit(f, 8, 1), b, c;
    struct stk_set e = limit(1, 10000);

    (void)state;
    assert_int_equal(fx_set(f, &e), 0);
    fx_sound(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    b = submit(f, 4, 1);
    c = submit(f, 2, 1);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    assert_int_equal(fx_why(f, b), STK_WHY_LIMIT);
    assert_int_equal(fx_state(f, c), STK_JOB_RUNNING);
    e.value = 4000; /* whoever is over it goes on */
    assert_int_equal(fx_set(f, &e), 0);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    e.clear = true;
    assert_int_equal(fx_set(f, &e), 0);
    assert_int_equal(f->s->settings->n, 0);
    fx_turn(f);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    fx_drain(f);
    stk_core_free(fx_replay(f));
    fx_free(f);
}

static void cpus_and_memory_are_set_as_limits(void **state)
{
    struct stk_set e = limit(1, 8000);
    struct stk_job_spec spec = fx_job(1, 100);
    static const struct stk_node_spec node = {.gpus = 8, .cpu_milli = 64000};
    struct fx *f =
        fx_new(&(struct fx_setup){.nodes = &node, .n_nodes = 1, .tenants = table, .n_tenants = 2});
    uint32_t a, b;

    (void)state;
    spec.tenant = 1;
    spec.demand.cpu_milli = 6000;
    a = fx_submit(f, spec);
    fx_turn(f);
    e.column = STK_SET_CPUS;
    assert_int_equal(fx_set(f, &e), 0);
    fx_sound(f);
    b = fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_why(f, b), STK_WHY_LIMIT);
    e.kind = STK_SET_GUARANTEE;
    assert_int_equal(fx_set(f, &e), -EINVAL);
    e.kind = STK_SET_LIMIT;
    e.column = STK_SET_MEM + 1;
    assert_int_equal(fx_set(f, &e), -EINVAL);
    e.column = STK_SET_CPUS;
    e.clear = true;
    assert_int_equal(fx_set(f, &e), 0);
    assert_null(f->s->tenant_means);
    fx_turn(f);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    fx_drain(f);
    stk_core_free(fx_replay(f));
    fx_free(f);
}

static void a_limit_that_is_cleared_is_that_of_the_start(void **state)
{
    struct stk_set e = limit(1, -1);
    struct fx *f;
    uint32_t a;

    (void)state;
    table[1].limit = 4000;
    f = fx_new(&(struct fx_setup){.tenants = table, .n_tenants = 2});
    assert_int_equal(fx_set(f, &e), 0);
    a = submit(f, 8, 1);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    e.clear = true;
    assert_int_equal(fx_set(f, &e), 0);
    assert_int_equal(*stk_tenant_limit(f->s, 1, STK_ALL_TYPES), 4000);
    fx_drain(f);
    fx_free(f);
}

static void a_priority_shift_reorders_the_queue(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "priority"});
    struct stk_job_spec train = fx_job(16, 10), batch = fx_job(16, 10);
    struct stk_set e = {.kind = STK_SET_PRIORITY, .row = STK_KIND_BATCH, .value = 450};
    uint32_t first, t, b;

    (void)state;
    train.priority = 500;
    batch.priority = 100;
    batch.kind = STK_KIND_BATCH;
    first = fx_submit(f, train);
    fx_turn(f);
    t = fx_submit(f, train);
    b = fx_submit(f, batch);
    assert_int_equal(fx_set(f, &e), 0);
    assert_int_equal(fx_of(f, b)->priority, 550);
    assert_int_equal(fx_of(f, t)->priority, 500);
    fx_run(f, 10 * STK_SECOND);
    assert_int_equal(fx_state(f, first), STK_JOB_DONE);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, t), STK_JOB_WAITING);
    b = fx_submit(f, batch); /* one that comes has it, too */
    assert_int_equal(fx_of(f, b)->priority, 550);
    assert_int_equal(fx_update(f, b, 200, 10 * STK_SECOND), 0);
    assert_int_equal(fx_of(f, b)->priority, 650);
    e.clear = true;
    assert_int_equal(fx_set(f, &e), 0);
    assert_int_equal(fx_of(f, b)->priority, 200);
    fx_drain(f);
    stk_core_free(fx_replay(f));
    fx_free(f);
}

static void a_parameter_changes_levels_and_who_gives_way(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "priority", .preempt = "tier"});
    struct stk_job_spec low = fx_job(16, 1000), high = fx_job(16, 10);
    struct stk_set e = param("tier.classes", "");
    uint32_t a, b;

    (void)state;
    low.priority = 500;
    high.priority = 1000;
    a = fx_submit(f, low);
    fx_turn(f);
    assert_int_equal(fx_set(f, &e), 0);
    b = fx_submit(f, high); /* of the same tier, and classes do not count */
    fx_turn(f);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    e.clear = true;
    assert_int_equal(fx_set(f, &e), 0);
    fx_turn(f);
    fx_run(f, f->now + STK_SECOND);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, a), STK_JOB_WAITING);
    fx_drain(f);
    stk_core_free(fx_replay(f));
    fx_free(f);
}

static const struct stk_node_spec two_pools[4] = {
    {.gpus = 8}, {.gpus = 8}, {.gpus = 8, .pool = {1}}, {.gpus = 8, .pool = {1}}};

static struct fx *pools(const char *preempt)
{
    return fx_new(&(struct fx_setup){
        .nodes = two_pools, .n_nodes = 4, .n_pools = 2, .preempt = preempt, .order = "priority"});
}

static uint32_t submit_to(struct fx *f, uint32_t pool, uint32_t gpus, enum stk_tier tier)
{
    struct stk_job_spec spec = fx_job(gpus, 100);
    uint32_t job;

    spec.pool.i = pool;
    spec.tier = tier;
    job = fx_submit(f, spec);
    fx_turn(f);
    return job;
}

static struct stk_set to_pool(uint32_t node, uint32_t pool, bool evict)
{
    return (struct stk_set){.kind = STK_SET_POOL, .row = node, .value = pool, .evict = evict};
}

static void an_empty_node_goes_to_another_pool_at_once(void **state)
{
    struct fx *f = pools("none");
    struct stk_set e = to_pool(3, 0, false);
    uint32_t a, b;

    (void)state;
    a = submit_to(f, 0, 16, STK_TIER_STANDARD);
    b = submit_to(f, 0, 8, STK_TIER_STANDARD);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    assert_int_equal(fx_set(f, &e), 0);
    assert_int_equal(f->s->nodes[3].pool, 0);
    assert_int_equal(f->s->pools[1].gpus, 8);
    fx_turn(f);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    fx_sound(f);
    e.clear = true; /* it is used: it goes back when that ends */
    assert_int_equal(fx_set(f, &e), 0);
    assert_true(f->s->nodes[3].leaving);
    fx_sound(f);
    fx_drain(f);
    assert_int_equal(f->s->nodes[3].pool, 1);
    assert_int_equal(fx_of(f, b)->preemptions, 0); /* back as it came */
    assert_int_equal(f->s->settings->n, 0);
    stk_core_free(fx_replay(f));
    fx_free(f);
}

static void a_node_that_is_used_drains_first(void **state)
{
    struct fx *f = pools("none");
    struct stk_set e = to_pool(0, 1, false);
    uint32_t a = submit_to(f, 0, 12, STK_TIER_STANDARD), b;

    (void)state;
    assert_int_equal(fx_set(f, &e), 0);
    b = submit_to(f, 0, 4, STK_TIER_STANDARD); /* on the other one, where there is room */
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    assert_int_equal(f->s->pieces[fx_of(f, b)->first_piece].node.i, 1);
    assert_int_equal(f->s->nodes[0].pool, 0);
    assert_int_equal(f->s->pools[0].gpus_free, 0);
    fx_run(f, 100 * STK_SECOND);
    assert_int_equal(fx_state(f, a), STK_JOB_DONE);
    assert_int_equal(fx_of(f, a)->preemptions, 0);
    assert_int_equal(f->s->nodes[0].pool, 1);
    assert_int_equal(f->s->pools[1].gpus_free, 24);
    fx_drain(f);
    stk_core_free(fx_replay(f));
    fx_free(f);
}

static void who_may_be_preempted_gives_way_to_the_move(void **state)
{
    struct fx *f = pools("none");
    struct stk_set e = to_pool(0, 1, true), g = to_pool(1, 1, true);
    uint32_t a = submit_to(f, 0, 8, STK_TIER_STANDARD);
    uint32_t c = submit_to(f, 0, 8, STK_TIER_CRITICAL);

    (void)state;
    assert_int_equal(fx_set(f, &e), 0);
    assert_int_equal(fx_set(f, &g), 0);
    fx_turn(f);
    assert_int_equal(fx_of(f, a)->preemptions, 1);
    assert_int_equal(fx_state(f, a), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, c), STK_JOB_RUNNING); /* that one is waited for */
    assert_int_equal(f->s->nodes[0].pool, 1);
    assert_int_equal(f->s->nodes[1].pool, 0);
    fx_run(f, 100 * STK_SECOND);
    assert_int_equal(f->s->nodes[1].pool, 1);
    assert_int_equal(fx_state(f, a), STK_JOB_WAITING); /* its pool has no nodes now */
    e.clear = true;
    assert_int_equal(fx_set(f, &e), 0);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    fx_drain(f);
    stk_core_free(fx_replay(f));
    fx_free(f);
}

static void refuse(struct fx *f, const struct stk_set *e, const char *says)
{
    uint64_t before = fx_digest(f);

    assert_int_equal(fx_set(f, e), -EINVAL);
    if (!strstr(f->err.text, says))
        fail_msg("\"%s\" does not say \"%s\"", f->err.text, says);
    assert_true(fx_digest(f) == before);
    fx_sound(f);
}

static void what_cannot_be_is_refused_and_changes_nothing(void **state)
{
    struct fx *f =
        fx_new(&(struct fx_setup){.tenants = table, .n_tenants = 2, .backfill = "conservative"});
    struct stk_set e;

    (void)state;
    submit(f, 4, 1);
    e = limit(2, 1000);
    refuse(f, &e, "there is no tenant 2");
    e = limit(1, 1000);
    e.column = 5;
    refuse(f, &e, "no GPUs of type 4");
    e = limit(1, 1000);
    refuse(f, &e, "do not go with preempt");
    e = limit(1, -2);
    refuse(f, &e, "a tenant's limit of -2 is out of range");
    e = param("backfill.depht", "1");
    refuse(f, &e, "no policy in use has a parameter \"backfill.depht\"");
    e = param("backfill.depth", "0");
    refuse(f, &e, "backfill.depth");
    e = param("defrag.most", "5");
    refuse(f, &e, "jobs do not move (defrag)");
    e = (struct stk_set){.kind = STK_SET_PRIORITY, .row = STK_KIND_MAX};
    refuse(f, &e, "there is no kind of jobs");
    e = (struct stk_set){.kind = STK_SET_KIND_MAX};
    refuse(f, &e, "there is no setting");
    fx_drain(f);
    fx_free(f);
}

static void without_memory_nothing_changes(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.tenants = table, .n_tenants = 2});
    struct stk_set e = limit(1, 6000);
    uint64_t before, live;
    uint32_t n = 0;

    (void)state;
    submit(f, 8, 1);
    submit(f, 16, 1);
    before = fx_digest(f);
    live = f->heap.live;
    for (;; n++) {
        f->heap.fail_at = f->heap.calls + 1 + n;
        if (fx_set(f, &e) == 0)
            break;
        assert_true(fx_digest(f) == before);
        assert_int_equal(f->heap.live, live);
    }
    f->heap.fail_at = 0;
    assert_true(n > 20);
    fx_sound(f);
    e.clear = true;
    assert_int_equal(fx_set(f, &e), 0);
    fx_drain(f);
    fx_free(f);
}

static void what_is_in_force_is_saved_by_name(void **state)
{
    struct stk_tenant_spec other[3] = {table[0], table[0], table[1]};
    struct fx_setup setup = {
        .order = "priority", .preempt = "tier", .tenants = table, .n_tenants = 2};
    struct fx_setup later = {.tenants = other, .n_tenants = 3};
    struct fx *f = fx_new(&setup);
    struct stk_set e = limit(1, 6000), p = param("tier.classes", "400");
    struct stk_core *loaded;

    (void)state;
    other[1].name = "speech";
    assert_int_equal(fx_set(f, &e), 0);
    assert_int_equal(fx_set(f, &p), 0);
    loaded = fx_reload(f, f->core, NULL);
    assert_true(stk_core_digest(loaded) == fx_digest(f));
    assert_int_equal(stk_core_state(loaded)->settings->n, 2);
    stk_core_free(loaded);
    loaded = fx_reload(f, f->core, &later); /* no tiers there: that one is forgotten */
    assert_int_equal(stk_core_state(loaded)->settings->n, 1);
    assert_int_equal(*stk_tenant_limit(stk_core_state(loaded), 2, STK_ALL_TYPES), 6000);
    assert_true(*stk_tenant_limit(stk_core_state(loaded), 1, STK_ALL_TYPES) == STK_NO_LIMIT);
    stk_core_free(loaded);
    fx_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_limit_that_comes_holds_for_those_that_wait, plant),
        cmocka_unit_test_setup(cpus_and_memory_are_set_as_limits, plant),
        cmocka_unit_test_setup(a_limit_that_is_cleared_is_that_of_the_start, plant),
        cmocka_unit_test(a_priority_shift_reorders_the_queue),
        cmocka_unit_test(a_parameter_changes_levels_and_who_gives_way),
        cmocka_unit_test(an_empty_node_goes_to_another_pool_at_once),
        cmocka_unit_test(a_node_that_is_used_drains_first),
        cmocka_unit_test(who_may_be_preempted_gives_way_to_the_move),
        cmocka_unit_test_setup(what_cannot_be_is_refused_and_changes_nothing, plant),
        cmocka_unit_test_setup(without_memory_nothing_changes, plant),
        cmocka_unit_test_setup(what_is_in_force_is_saved_by_name, plant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
