/* SPDX-License-Identifier: Apache-2.0 */
/* test_lack.c - GPUs are free, and something else is short: gangs, parts of GPUs and jobs that say
 * where their tasks lie are told what, and how much of it they need where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/fixture.h"

static struct stk_reason why(struct fx *f, const struct stk_demand *d)
{
    struct stk_job_spec spec = fx_job(1, 10);
    struct stk_reason r;
    uint64_t before;
    uint32_t job;

    spec.demand = *d;
    job = fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_WAITING);
    before = fx_digest(f);
    assert_int_equal(stk_core_why(f->core, (stk_job_id){job}, &r, NULL), 0);
    assert_true(fx_digest(f) == before); /* asking changes nothing */
    fx_sound(f);
    assert_int_equal(fx_cancel(f, job), 0);
    return r;
}

static void lacks(struct fx *f, const struct stk_demand *d, enum stk_unit unit, uint64_t need,
                  uint64_t have, enum stk_level level)
{
    const struct stk_reason r = why(f, d);

    assert_int_equal(r.code, STK_WHY_CPU_MEM);
    assert_int_equal(r.unit, unit);
    assert_int_equal(r.limit, need);
    assert_int_equal(r.used, have);
    assert_int_equal(r.level, level);
}

static void run(struct fx *f, struct stk_demand d)
{
    struct stk_job_spec spec = fx_job(1, 1000);
    uint32_t job;

    spec.demand = d;
    job = fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
}

static void on_one_machine(void **state)
{
    const struct stk_node_spec node = {.gpus = 8, .cpu_milli = 2000, .mem_mib = 24 * 1024};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = &node, .n_nodes = 1});
    struct stk_demand d = {.tasks = 2, .gpus = 1, .gpu_types = 1, .cpu_milli = 1000};

    (void)state;
    run(f, (struct stk_demand){
               .tasks = 1, .gpus = 1, .gpu_types = 1, .cpu_milli = 2000, .mem_mib = 20 * 1024});
    lacks(f, &d, STK_UNIT_CPUS, 2000, 0, 0);
    d.level_required = STK_AT_NODE;
    lacks(f, &d, STK_UNIT_CPUS, 2000, 0, 0);
    d = (struct stk_demand){.tasks = 2, .gpus = 1, .gpu_types = 1, .mem_mib = 6 * 1024};
    lacks(f, &d, STK_UNIT_MEM, 12 * 1024, 4 * 1024, 0);
    d = (struct stk_demand){.tasks = 1, .gpus = 1, .gpu_types = 1, .gpu_milli = 500};
    d.cpu_milli = 1000;
    lacks(f, &d, STK_UNIT_CPUS, 1000, 0, 0);
    d.cpu_milli = 0;
    d.mem_mib = 6 * 1024;
    lacks(f, &d, STK_UNIT_MEM, 6 * 1024, 4 * 1024, 0);
    fx_free(f);
}

/* A shared GPU has room for the part, and no GPU is free whole. */
static void a_part_beside_another(void **state)
{
    const struct stk_node_spec node = {.gpus = 1, .cpu_milli = 2000};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = &node, .n_nodes = 1});
    struct stk_demand d = {
        .tasks = 1, .gpus = 1, .gpu_types = 1, .gpu_milli = 500, .cpu_milli = 1500};

    (void)state;
    run(f, d);
    lacks(f, &d, STK_UNIT_CPUS, 1500, 500, 0);
    d.cpu_milli = 0;
    d.gpu_milli = 600; /* now it is the GPU */
    assert_int_equal(why(f, &d).code, STK_WHY_GPUS);
    fx_free(f);
}

static void where_tasks_must_lie(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 8, .cpu_milli = 2000, .rack = 1},
                                          {.gpus = 8, .cpu_milli = 2000, .rack = 1},
                                          {.gpus = 8, .cpu_milli = 2000, .rack = 2},
                                          {.gpus = 8, .cpu_milli = 2000, .rack = 2}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 4, .place = "spread"});
    const struct stk_demand gang = {.tasks = 2, .gpus = 1, .gpu_types = 1, .cpu_milli = 1000};
    struct stk_demand d = gang;

    (void)state;
    for (uint32_t i = 0; i < 4; i++) /* 1 CPU and 7 GPUs are left on each */
        run(f, (struct stk_demand){.tasks = 1, .gpus = 1, .gpu_types = 1, .cpu_milli = 1000});
    d.per_node = 2;
    lacks(f, &d, STK_UNIT_CPUS, 2000, 1000, STK_AT_NODE);
    d = gang;
    d.level_required = STK_AT_NODE;
    lacks(f, &d, STK_UNIT_CPUS, 2000, 1000, STK_AT_NODE);
    d.level_required = STK_AT_RACK;
    d.tasks = 3;
    lacks(f, &d, STK_UNIT_CPUS, 3000, 2000, STK_AT_RACK);
    d = gang;
    d.group = 2;
    d.group_level = STK_AT_NODE;
    lacks(f, &d, STK_UNIT_CPUS, 2000, 1000, STK_AT_NODE);
    d = gang;
    d.cpu_milli = 1500; /* 4 are free, but of one task already too few */
    lacks(f, &d, STK_UNIT_CPUS, 1500, 1000, STK_AT_NODE);
    d.tasks = 4;
    d.cpu_milli = 1200;
    lacks(f, &d, STK_UNIT_CPUS, 4800, 4000, 0);
    d = (struct stk_demand){.tasks = 1, .gpus = 14, .gpu_types = 1, .cut = true};
    d.cpu_milli = 3500;                                   /* 8 GPUs come with 2 of these */
    assert_int_equal(why(f, &d).code, STK_WHY_FRAGMENTS); /* no node has 8 GPUs free */
    fx_free(f);
}

/* CPUs are free, and it is GPUs that do not lie together. */
static void fragments_stay_fragments(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 8, .cpu_milli = 64000},
                                          {.gpus = 8, .cpu_milli = 64000}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 2, .place = "spread"});
    struct stk_demand d = {.tasks = 2, .gpus = 4, .gpu_types = 1, .cpu_milli = 1000};
    struct stk_reason r;

    (void)state;
    run(f, (struct stk_demand){.tasks = 1, .gpus = 3, .gpu_types = 1});
    run(f, (struct stk_demand){.tasks = 1, .gpus = 5, .gpu_types = 1});
    r = why(f, &d); /* 5 and 3 are free */
    assert_int_equal(r.code, STK_WHY_FRAGMENTS);
    assert_int_equal(r.need, 8);
    assert_int_equal(r.have, 5);
    assert_int_equal(r.missing, 0);
    assert_int_equal(r.limit, 2);
    assert_int_equal(r.used, 1);
    d.per_node = 2;
    r = why(f, &d);
    assert_int_equal(r.code, STK_WHY_TOPOLOGY);
    assert_int_equal(r.level, STK_AT_NODE);
    assert_int_equal(r.need, 8);
    assert_int_equal(r.have, 5);
    d.gpus = 2;
    d.tasks = 4;
    r = why(f, &d); /* two on one node, twice */
    assert_int_equal(r.code, STK_WHY_TOPOLOGY);
    assert_int_equal(r.level, 0);
    assert_int_equal(r.limit, 2);
    assert_int_equal(r.used, 1);
    fx_free(f);
}

static void named_resources_of_a_gang(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 8, .resource = {3}},
                                          {.gpus = 8, .resource = {3}}};
    struct fx *f = fx_new(
        &(struct fx_setup){.nodes = nodes, .n_nodes = 2, .n_resources = 1, .place = "spread"});
    struct stk_demand d = {.tasks = 1, .gpus = 1, .gpu_types = 1};
    struct stk_reason r;

    (void)state;
    stk_demand_set_resource(&d, 0, 2);
    run(f, d);
    d.tasks = d.per_node = 2;
    stk_demand_set_resource(&d, 0, 1);
    run(f, d); /* 1 is left on each */
    r = why(f, &d);
    assert_int_equal(r.code, STK_WHY_RESOURCE);
    assert_int_equal(r.level, STK_AT_NODE);
    assert_int_equal(r.need, 2);
    assert_int_equal(r.have, 1);
    assert_int_equal(r.missing, 1);
    fx_free(f);
}

static void its_node_is_drained(void **state)
{
    struct stk_event ev = {.type = STK_EV_GPUS_OFF, .u.off = {.mask = 0xff, .closed = true}};
    struct fx *f = fx_new(&(struct fx_setup){.place = "pack"});
    struct stk_demand d = {.tasks = 1, .gpus = 1, .gpu_types = 1, .nodes = 1};
    struct stk_reason r;

    (void)state;
    assert_int_equal(fx_nodes(f, 1, 0x1), 0);
    assert_int_equal(fx_apply(f, &ev), 0);
    r = why(f, &d);
    assert_int_equal(r.code, STK_WHY_NODES);
    assert_int_equal(r.nodes, 1);
    assert_int_equal(r.drained, 1);
    assert_int_equal(r.down, 0);
    d.gpus = 0;
    r = why(f, &d); /* the other node is open */
    assert_int_equal(r.code, STK_WHY_CLOSED);
    assert_int_equal(r.drained, 1);
    fx_free(f);
}

static void refuse(struct fx *f, const struct stk_demand *d, const char *text)
{
    struct stk_job_spec spec = fx_job(1, 10);

    spec.demand = *d;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    assert_string_equal(f->err.text, text);
}

static void refusals(void **state)
{
    const struct stk_node_spec nodes[] = {
        {.gpus = 8, .cpu_milli = 2000, .mem_mib = 4096, .rack = 1, .resource = {1}},
        {.gpus = 8, .cpu_milli = 2000, .mem_mib = 4096, .rack = 1, .resource = {1}},
        {.gpus = 8, .cpu_milli = 2000, .mem_mib = 4096, .rack = 2, .resource = {1}},
        {.gpus = 8, .cpu_milli = 2000, .mem_mib = 4096, .rack = 2, .resource = {1}}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 4, .n_resources = 1});
    const struct stk_demand gang = {.tasks = 3, .gpus = 1, .gpu_types = 1, .cpu_milli = 1000};
    struct stk_demand d = gang;

    (void)state;
    d.per_node = 3;
    refuse(f, &d, "needs 3 CPUs on one node; the most that one it may use has is 2");
    d = gang;
    d.level_required = STK_AT_NODE;
    refuse(f, &d, "needs 3 CPUs on one node; the most that one it may use has is 2");
    d.cpu_milli = 0;
    d.mem_mib = 2048;
    refuse(f, &d, "needs 6 GiB of memory on one node; the most that one it may use has is 4");
    d.mem_mib = 0;
    stk_demand_set_resource(&d, 0, 1);
    refuse(f, &d, "needs 3 of r0 on one node; the most that one it may use has is 1");
    d = gang;
    d.tasks = 6;
    d.group = 3;
    d.group_level = STK_AT_NODE;
    refuse(f, &d, "needs 3 CPUs on one node; the most that one it may use has is 2");
    d = gang;
    d.tasks = 5;
    d.level_required = STK_AT_RACK;
    refuse(f, &d, "needs 5 CPUs in one rack; the most that one it may use has is 4");
    d = (struct stk_demand){.tasks = 1, .gpus = 16, .gpu_types = 1, .cut = true};
    d.cpu_milli = 6000;
    refuse(f, &d, "needs 3 CPUs on one node; the most that one it may use has is 2");
    d.cpu_milli = 9000;
    refuse(f, &d, "needs 9 CPUs; the cluster has 8");
    d = gang; /* GPUs are what is short */
    d.per_node = 3;
    d.gpus = 4;
    refuse(f, &d,
           "asks for 3 tasks of 4 GPUs, 3 on each node; the most that all nodes it may use can "
           "hold is 0");
    fx_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_one_machine),
        cmocka_unit_test(a_part_beside_another),
        cmocka_unit_test(where_tasks_must_lie),
        cmocka_unit_test(fragments_stay_fragments),
        cmocka_unit_test(named_resources_of_a_gang),
        cmocka_unit_test(its_node_is_drained),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
