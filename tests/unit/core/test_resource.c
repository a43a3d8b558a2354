/* SPDX-License-Identifier: Apache-2.0 */
/* test_resource.c - named countable things of nodes: given, counted, refused, saved and loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/save.h"
#include "lib/fixture.h"

static uint32_t node_of(const struct fx *f, uint32_t job)
{
    return f->s->pieces[fx_of(f, job)->first_piece].node.i;
}

/* 'gpus' GPUs and so much of resource 0, for 10 seconds. */
static struct stk_job_spec wants(uint32_t gpus, uint32_t amount)
{
    struct stk_job_spec spec = fx_job(gpus, 10);

    spec.demand.cut = false;
    stk_demand_set_resource(&spec.demand, 0, amount);
    return spec;
}

static void two_jobs_with_one_licence_run_one_after_the_other(void **state)
{
    const struct stk_node_spec node = {.gpus = 8, .resource = {1}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = &node, .n_nodes = 1, .n_resources = 1});
    uint32_t a = fx_submit(f, wants(1, 1)), b = fx_submit(f, wants(1, 1));
    uint32_t c = fx_submit(f, wants(1, 0));

    (void)state;
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, c), STK_JOB_RUNNING);
    assert_int_equal(f->s->resource_free[0], 0);
    fx_run(f, 10 * STK_SECOND);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    fx_drain(f);
    assert_int_equal(f->s->resource_free[0], 1);
    fx_sound(f);
    fx_free(f);
}

static void a_task_goes_where_its_resources_are(void **state)
{
    static const char *const places[] = {"pack", "spread", "first_fit", "stoker", "bestfit", "fgd"};
    const struct stk_node_spec nodes[] = {
        {.gpus = 8}, {.gpus = 8, .resource = {4}}, {.gpus = 8, .resource = {9, 1}}};

    (void)state;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        struct fx *f = fx_new(
            &(struct fx_setup){.nodes = nodes, .n_nodes = 3, .n_resources = 2, .place = places[i]});
        struct stk_job_spec part = wants(1, 3);
        uint32_t a, b, c;

        part.demand.gpu_milli = 500;
        a = fx_submit(f, wants(1, 9));
        b = fx_submit(f, part);
        fx_turn(f);
        assert_int_equal(node_of(f, a), 2);
        assert_int_equal(node_of(f, b), 1);
        c = fx_submit(f, part); /* 1 is left there */
        fx_turn(f);
        assert_int_equal(fx_state(f, c), STK_JOB_WAITING);
        fx_sound(f);
        fx_free(f);
    }
}

static void a_gang_counts_every_task(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 8, .resource = {5}},
                                          {.gpus = 8, .resource = {3}}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 2, .n_resources = 1});
    struct stk_job_spec spec = wants(1, 2);
    struct stk_job_spec cut = fx_job(16, 10);
    uint32_t a;

    (void)state;
    spec.demand.tasks = 3; /* two there, one here */
    a = fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(f->s->resource_free[0], 1);
    assert_int_equal(f->s->resource_free[1], 1);
    spec.demand.tasks = 4;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    fx_drain(f);
    stk_demand_set_resource(&cut.demand, 0, 6); /* half of it on each */
    a = fx_submit(f, cut);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(f->s->resource_free[0], 2);
    assert_int_equal(f->s->resource_free[1], 0);
    fx_sound(f);
    fx_free(f);
}

static void what_no_node_has_is_refused_by_name(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 8, .resource = {2}}, {.gpus = 4}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 2, .n_resources = 1});
    struct stk_job_spec spec = wants(1, 4);

    (void)state;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    assert_string_equal(f->err.text,
                        "asks for 4 of r0 on one node; the most that a node it may use has is 2");
    spec = wants(1, 1);
    stk_demand_set_resource(&spec.demand, 1, 1);
    assert_int_equal(fx_try_submit(f, &spec), -EINVAL); /* there is no second resource */
    spec = wants(1, 1);
    spec.demand.resource[1] = 1; /* beyond its count: never looked at */
    spec.demand.n_resources = 9;
    assert_int_equal(fx_try_submit(f, &spec), -EINVAL);
    fx_free(f);
}

static void resources_are_saved_by_name(void **state)
{
    static const char *const before[] = {"disk", "licence"}, *const after[] = {"licence", "nic"};
    const struct stk_node_spec old = {.gpus = 8, .resource = {100, 2}};
    const struct stk_node_spec new = {.gpus = 8, .resource = {2, 5}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = &old, .n_nodes = 1, .n_resources = 2});
    struct stk_job_spec spec = wants(1, 60);
    const struct stk_mem mem = fx_mem(&f->heap);
    struct stk_bytes bytes = {.mem = &mem};
    struct stk_core *again;
    struct stk_core_config cfg;
    struct stk_params params = {.n = 0};

    (void)state;
    stk_demand_set_resource(&spec.demand, 1, 1);
    ((struct stk_state *)(uintptr_t)f->s)->resource_names = before;
    (void)fx_submit(f, spec);
    fx_turn(f);
    (void)fx_submit(f, spec);
    assert_int_equal(stk_core_save(f->core, &bytes, NULL), 0);
    cfg = (struct stk_core_config){.nodes = &new,
                                   .n_nodes = 1,
                                   .n_pools = 1,
                                   .n_resources = 2,
                                   .resource_names = after,
                                   .order = f->s->order,
                                   .backfill = f->s->backfill,
                                   .place = f->s->place,
                                   .preempt = f->s->preempt,
                                   .admit = f->s->admit,
                                   .params = &params,
                                   .retain_done = 5};
    assert_int_equal(stk_core_new(&cfg, &mem, &again, NULL), 0);
    assert_int_equal(stk_core_load(again, bytes.data, bytes.n, NULL), 0);
    assert_true(stk_core_sound(again, NULL));
    assert_int_equal(stk_core_state(again)->resource_free[0], 1); /* the disk is forgotten */
    assert_int_equal(stk_core_state(again)->resource_free[1], 5);
    stk_core_free(again);
    stk_bytes_done(&bytes);
    fx_free(f);
}

static void a_sleeping_job_waits_for_its_resource(void **state)
{
    const struct stk_node_spec node = {.gpus = 8, .resource = {1}};
    struct fx *f = fx_new(
        &(struct fx_setup){.nodes = &node, .n_nodes = 1, .n_resources = 1, .sleep_pct = 100});
    uint32_t a = fx_submit(f, wants(2, 1)), b;
    struct stk_reason r;

    (void)state;
    fx_turn(f);
    assert_int_equal(fx_suspend(f, a), 0);
    fx_turn(f);
    assert_int_equal(f->s->resource_free[0], 1); /* asleep, it holds none */
    b = fx_submit(f, wants(1, 1));
    fx_turn(f);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    assert_int_equal(fx_job_event(f, STK_EV_RELEASE, a), 0);
    fx_turn(f);
    assert_int_equal(stk_core_why(f->core, (stk_job_id){a}, &r, NULL), 0);
    assert_int_equal(r.code, STK_WHY_RESOURCE);
    fx_drain(f);
    assert_int_equal(fx_state(f, a), STK_JOB_DONE);
    fx_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_jobs_with_one_licence_run_one_after_the_other),
        cmocka_unit_test(a_task_goes_where_its_resources_are),
        cmocka_unit_test(a_gang_counts_every_task),
        cmocka_unit_test(what_no_node_has_is_refused_by_name),
        cmocka_unit_test(resources_are_saved_by_name),
        cmocka_unit_test(a_sleeping_job_waits_for_its_resource),
    };

    return cmocka_run_group_tests_name("core/resource", tests, NULL, NULL);
}
