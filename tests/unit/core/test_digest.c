/* SPDX-License-Identifier: Apache-2.0 */
/* test_digest.c - the digest tells every two submissions apart, whatever they differ in, and is the
 * same after a replay and after the state was saved and loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/core.h"
#include "lib/fixture.h"

#define MAX_CASES 64

/* Two nodes of each of two pools on which everything is counted. */
static const struct stk_node_spec nodes[] = {
    {.gpus = 8, .cpu_milli = 64000, .mem_mib = 65536, .gpu_mem_mib = 81920, .resource = {4, 4}},
    {.gpus = 8, .cpu_milli = 64000, .mem_mib = 65536, .gpu_mem_mib = 81920, .resource = {4, 4}},
    {.gpus = 8, .cpu_milli = 64000, .mem_mib = 65536, .gpu_type = 1, .pool = {1}},
};

static struct fx *world(void)
{
    static struct stk_tenant_spec tenants[3];
    struct stk_job_spec spec = fx_job(1, 50);
    struct fx *f;

    fx_org(tenants, 3);
    f = fx_new(&(struct fx_setup){.nodes = nodes,
                                  .n_nodes = 3,
                                  .n_pools = 2,
                                  .n_resources = 2,
                                  .tenants = tenants,
                                  .n_tenants = 3,
                                  .queues = stk_default_queues,
                                  .n_queues = stk_n_default_queues});
    f->now = STK_SECOND;
    assert_int_equal(fx_nodes(f, 1, 0x1), 0);
    assert_int_equal(fx_nodes(f, 2, 0x2), 0);
    spec.held = true;
    (void)fx_submit(f, spec); /* jobs 1 and 2, for those that depend on one */
    spec.array = 2;
    (void)fx_submit(f, spec);
    return f;
}

/* The digest after one more submission. */
static uint64_t digest_with(const struct stk_job_spec *spec)
{
    struct fx *f = world();
    struct stk_core *loaded, *replayed;
    uint64_t digest;

    if (fx_try_submit(f, spec) < 0)
        fail_msg("refused: %s", f->err.text);
    digest = fx_digest(f);
    loaded = fx_reload(f, f->core, NULL);
    replayed = fx_replay(f);
    assert_true(stk_core_digest(loaded) == digest);
    assert_true(stk_core_digest(replayed) == digest);
    stk_core_free(loaded);
    stk_core_free(replayed);
    fx_free(f);
    return digest;
}

struct cases {
    struct stk_job_spec spec[MAX_CASES];
    const char *what[MAX_CASES];
    uint32_t n;
};

static struct stk_job_spec *next_case(struct cases *c, const struct stk_job_spec *base,
                                      const char *what)
{
    assert_true(c->n < MAX_CASES);
    c->what[c->n] = what;
    c->spec[c->n] = *base;
    return &c->spec[c->n++];
}

/* A copy of 'base' with one member set. */
#define CASE(base, member, value) next_case(c, base, #member)->member = (value)

static void add_demands(struct cases *c, const struct stk_job_spec *base)
{
    struct stk_job_spec gang = *base, part = *base;

    gang.demand.cut = false;
    gang.demand.tasks = 4;
    CASE(&gang, demand.tasks, 2);
    CASE(&gang, demand.level_required, STK_AT_NODE);
    CASE(&gang, demand.level_preferred, STK_AT_NODE);
    CASE(&gang, demand.per_node, 2);
    CASE(&gang, demand.exclusive, true);
    gang.demand.group = 2;
    CASE(&gang, demand.group_level, STK_AT_NODE);
    gang.demand.group_level = STK_AT_NODE;
    CASE(&gang, demand.group, 1);
    CASE(base, demand.gpus, 2);
    CASE(base, demand.cut, false);
    CASE(base, demand.gpu_types, 1);
    CASE(base, demand.cpu_milli, 1000);
    CASE(base, demand.mem_mib, 1024);
    CASE(base, demand.gpu_mem_mib, 1024);
    CASE(base, demand.share_max, 2);
    CASE(base, demand.nodes, 1);
    CASE(base, demand.nodes, 2);
    stk_demand_set_resource(&next_case(c, base, "resource 0")->demand, 0, 1);
    stk_demand_set_resource(&next_case(c, base, "resource 1")->demand, 1, 1);
    assert_int_equal(stk_demand_set_speed(&next_case(c, base, "speed 0")->demand, 0, 500), 0);
    assert_int_equal(stk_demand_set_speed(&next_case(c, base, "speed 1")->demand, 1, 500), 0);
    part.demand.share_max = 2;
    CASE(&part, demand.slo_milli, 800);
    part.demand.share_max = 0;
    part.demand.cut = false;
    part.demand.gpu_milli = 500;
    CASE(&part, demand.gpu_milli, 250);
    CASE(&part, demand.share, STK_SHARE_MPS);
    CASE(&part, demand.share_max, 3);
    CASE(&part, demand.share_with, 7);
}

static void add_terms(struct cases *c, const struct stk_job_spec *base)
{
    CASE(base, terms.deadline, 900 * STK_SECOND);
    CASE(base, terms.asked, 200 * STK_SECOND);
    CASE(base, terms.limit, 200 * STK_SECOND);
    CASE(base, terms.min_run, STK_SECOND);
    CASE(base, terms.queue, 1);
    CASE(base, terms.user, 5);
    CASE(base, terms.group, 6);
    CASE(base, terms.movable, true);
    next_case(c, base, "group_min")->terms = (struct stk_terms){.group = 6, .group_min = 1};
    CASE(base, terms.signals, true);
    CASE(base, terms.no_sleep, true);
}

static void add_rest(struct cases *c, const struct stk_job_spec *base)
{
    static const struct stk_dep deps[] = {{1, STK_DEP_AFTEROK, false},
                                          {2, STK_DEP_AFTEROK, false},
                                          {1, STK_DEP_AFTERANY, false},
                                          {2, STK_DEP_AFTEROK, true},
                                          {2, STK_DEP_AFTERANY, true}};

    (void)next_case(c, base, "nothing");
    CASE(base, kind, STK_KIND_SHELL);
    CASE(base, tier, STK_TIER_CRITICAL);
    CASE(base, priority, 5);
    CASE(base, pool.i, 1);
    CASE(base, tenant, 2);
    CASE(base, tag, 9);
    CASE(base, estimate, 99 * STK_SECOND);
    CASE(base, begin, 500 * STK_SECOND);
    CASE(base, begin, 600 * STK_SECOND);
    CASE(base, array, 3);
    CASE(base, array_index, 1);
    CASE(base, held, true);
    for (uint32_t i = 0; i < STK_RETRY_MAX; i++)
        next_case(c, base, "retry")->retry[i] = 3;
    for (uint32_t i = 0; i < sizeof(deps) / sizeof(*deps); i++) {
        struct stk_job_spec *spec = next_case(c, base, "dependency");

        spec->deps = &deps[i];
        spec->n_deps = 1;
    }
}

static void any_two_submissions_have_different_digests(void **state)
{
    struct stk_job_spec base = fx_job(1, 100);
    static struct cases c;
    uint64_t digest[MAX_CASES];

    (void)state;
    c.n = 0;
    add_rest(&c, &base);
    add_terms(&c, &base);
    add_demands(&c, &base);
    for (uint32_t i = 0; i < c.n; i++) {
        digest[i] = digest_with(&c.spec[i]);
        for (uint32_t k = 0; k < i; k++)
            if (digest[k] == digest[i])
                fail_msg("%s and %s give one digest", c.what[k], c.what[i]);
    }
}

static void an_update_of_any_member_changes_the_digest(void **state)
{
    static const struct {
        int32_t priority;
        int64_t estimate_s;
    } to[] = {{0, 100}, {5, 100}, {0, 101}};
    uint64_t digest[3];

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct fx *f = world();
        uint32_t job = fx_submit(f, fx_job(1, 100));

        assert_int_equal(fx_update(f, job, to[i].priority, to[i].estimate_s * STK_SECOND), 0);
        digest[i] = fx_digest(f);
        for (uint32_t k = 0; k < i; k++)
            assert_true(digest[k] != digest[i]);
        fx_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_two_submissions_have_different_digests),
        cmocka_unit_test(an_update_of_any_member_changes_the_digest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
