/* SPDX-License-Identifier: Apache-2.0 */
/* test_why.c - every reason a job can have for not running, with its numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/save.h"
#include "lib/fixture.h"

static unsigned seen; /* reason codes met in this program */

static struct stk_reason why(struct fx *f, uint32_t job)
{
    struct stk_reason r;
    uint64_t before = fx_digest(f);

    assert_int_equal(stk_core_why(f->core, (stk_job_id){job}, &r, NULL), 0);
    assert_true(fx_digest(f) == before); /* asking changes nothing */
    fx_sound(f);
    seen |= 1u << r.code;
    return r;
}

static void jobs_that_do_not_wait_for_room(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "fifo"});
    struct stk_job_spec spec = fx_job(1, 10);
    const struct stk_dep deps[2] = {{1, STK_DEP_AFTERANY, false}, {2, STK_DEP_AFTERANY, false}};
    struct stk_reason r;
    uint32_t a = fx_submit(f, spec), b = fx_submit(f, spec), job;

    (void)state;
    fx_turn(f);
    assert_int_equal(why(f, a).code, STK_WHY_RUNNING);
    spec.deps = deps;
    spec.n_deps = 2;
    r = why(f, fx_submit(f, spec));
    assert_int_equal(r.code, STK_WHY_DEPENDENCY);
    assert_int_equal(r.missing, 2);
    spec.n_deps = 0;
    spec.begin = 77 * STK_SECOND;
    r = why(f, fx_submit(f, spec));
    assert_int_equal(r.code, STK_WHY_BEGIN);
    assert_int_equal(r.until, 77 * STK_SECOND);
    spec.held = true;
    job = fx_submit(f, spec);
    assert_int_equal(why(f, job).code, STK_WHY_HELD);
    assert_int_equal(fx_cancel(f, job), 0);
    assert_int_equal(why(f, job).code, STK_WHY_ENDED);
    assert_int_equal(fx_job_event(f, STK_EV_CANCEL, b), 0);
    assert_int_equal(why(f, b).code, STK_WHY_STOPPING);
    assert_int_equal(stk_core_why(f->core, (stk_job_id){99}, &r, NULL), -ENOENT);
    fx_free(f);
}

static void too_few_gpus_or_only_fragments_of_them(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.place = "spread"});
    struct stk_reason r;

    (void)state;
    (void)fx_submit(f, fx_job(3, 10));
    (void)fx_submit(f, fx_job(3, 10)); /* 5 free on each node */
    fx_turn(f);
    r = why(f, fx_submit(f, fx_job(12, 10)));
    assert_int_equal(r.code, STK_WHY_GPUS);
    assert_int_equal(r.need, 12);
    assert_int_equal(r.have, 10);
    assert_int_equal(r.missing, 2);
    r = why(f, fx_submit(f, fx_job(7, 10)));
    assert_int_equal(r.code, STK_WHY_FRAGMENTS);
    assert_int_equal(r.have, 5);
    assert_int_equal(r.missing, 2);
    fx_free(f);
}

static void no_rack_has_room(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 8, .rack = 1},
                                          {.gpus = 8, .rack = 1},
                                          {.gpus = 8, .rack = 2},
                                          {.gpus = 8, .rack = 2}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 4, .place = "spread"});
    struct stk_job_spec spec = fx_job(16, 10);
    struct stk_reason r;
    uint32_t big;

    (void)state;
    (void)fx_submit(f, fx_job(3, 10));
    (void)fx_submit(f, fx_job(4, 10));
    (void)fx_submit(f, fx_job(2, 10));
    fx_turn(f);
    spec.demand.level_required = STK_AT_RACK;
    r = why(f, fx_submit(f, spec));
    assert_int_equal(r.code, STK_WHY_TOPOLOGY);
    assert_int_equal(r.level, STK_AT_RACK);
    assert_int_equal(r.need, 16);
    assert_int_equal(r.have, 14);
    assert_int_equal(r.missing, 2);
    spec = fx_job(1, 10);
    spec.demand.exclusive = true;
    fx_turn(f);
    r = why(f, big = fx_submit(f, fx_job(8, 10)));
    assert_int_equal(r.code, STK_WHY_RANK); /* it fits, and starts next */
    fx_turn(f);
    r = why(f, fx_submit(f, spec));
    assert_int_equal(r.code, STK_WHY_TOPOLOGY);
    assert_int_equal(r.level, 0);
    spec = fx_job(32, 10);
    spec.demand.level_required = STK_AT_RACK;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    assert_string_equal(f->err.text,
                        "needs 32 GPUs in one rack; the largest rack it may use has 16");
    spec.demand = (struct stk_demand){.tasks = 4,
                                      .gpus = 8,
                                      .gpu_types = STK_ANY_GPU_TYPE,
                                      .per_node = 2,
                                      .level_required = STK_AT_REGION};
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    assert_string_equal(f->err.text, "needs 32 GPUs in one region; the largest region it may use "
                                     "has 16");
    spec.demand.level_required = 0;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    assert_string_equal(f->err.text,
                        "asks for 4 tasks of 8 GPUs, 2 on each node; the most that all "
                        "nodes it may use can hold is 0");
    (void)big;
    fx_free(f);
}

static void gpus_where_there_is_no_cpu(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 8, .cpu_milli = 4000}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 1});
    struct stk_job_spec spec = fx_job(1, 10);

    (void)state;
    spec.demand.cpu_milli = 3000;
    (void)fx_submit(f, spec);
    fx_turn(f);
    struct stk_reason r = why(f, fx_submit(f, spec));
    assert_int_equal(r.code, STK_WHY_CPU_MEM);
    assert_int_equal(r.unit, STK_UNIT_CPUS);
    assert_int_equal(r.limit, 3000);
    assert_int_equal(r.used, 1000);
    fx_free(f);
}

static void refuse(struct fx *f, const struct stk_job_spec *spec, const char *text)
{
    assert_int_equal(fx_try_submit(f, spec), -ERANGE);
    assert_string_equal(f->err.text, text);
}

static void refusals_name_the_resource_that_is_short(void **state)
{
    const struct stk_node_spec two[] = {{.gpus = 8, .cpu_milli = 2000, .mem_mib = 4096},
                                        {.gpus = 4, .cpu_milli = 1000, .mem_mib = 8192}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = two, .n_nodes = 1});
    struct stk_job_spec spec = fx_job(1, 10);

    (void)state;
    spec.demand = (struct stk_demand){.tasks = 4, .gpus = 1, .gpu_types = 1, .cpu_milli = 1000};
    refuse(f, &spec, "4 tasks need 4 CPUs; this machine has 2");
    spec.demand.cpu_milli = 0;
    spec.demand.mem_mib = 2048;
    refuse(f, &spec, "4 tasks need 8 GiB of memory; this machine has 4");
    spec.demand.mem_mib = 0;
    spec.demand.gpus = 3;
    refuse(f, &spec, "4 tasks need 12 GPUs; this machine has 8");
    spec.demand = (struct stk_demand){.tasks = 1, .gpus = 1, .gpu_types = 1, .mem_mib = 9216};
    refuse(f, &spec,
           "asks for 9 GiB of memory on one node; the most that a node it may use has is "
           "4 GiB of memory");
    fx_free(f);
    f = fx_new(&(struct fx_setup){.nodes = two, .n_nodes = 2});
    spec.demand = (struct stk_demand){.tasks = 3, .gpus = 3, .gpu_types = 1, .cpu_milli = 1000};
    assert_int_equal(fx_try_submit(f, &spec), 0);
    spec.demand.tasks = 4;
    refuse(f, &spec, "4 tasks need 4 CPUs; the cluster has 3");
    spec.demand = (struct stk_demand){.tasks = 2, .gpus = 5, .gpu_types = 1};
    refuse(f, &spec, "asks for 2 tasks of 5 GPUs each; the cluster can hold 1");
    spec.demand = (struct stk_demand){.tasks = 1, .gpus = 6, .gpu_types = 1, .mem_mib = 8192};
    refuse(f, &spec,
           "asks for 6 GPUs and 8 GiB of memory on one node; there is enough of each, but not on "
           "one node");
    fx_free(f);
}

static void gpus_where_a_resource_is_short(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 8, .resource = {5, 3}},
                                          {.gpus = 8, .resource = {5}}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 2, .n_resources = 2});
    struct stk_job_spec spec = fx_job(1, 10);
    struct stk_reason r;

    (void)state;
    spec.demand.cut = false;
    stk_demand_set_resource(&spec.demand, 1, 2);
    (void)fx_submit(f, spec);
    fx_turn(f);
    r = why(f, fx_submit(f, spec)); /* 1 is left, on one node */
    assert_int_equal(r.code, STK_WHY_RESOURCE);
    assert_int_equal(r.resource, 1);
    assert_int_equal(r.need, 2);
    assert_int_equal(r.have, 1);
    assert_int_equal(r.missing, 1);
    stk_demand_set_resource(&spec.demand, 1, 0);
    stk_demand_set_resource(&spec.demand, 0, 2);
    spec.demand.tasks = 3;
    (void)fx_submit(f, spec);
    fx_turn(f); /* two on one node, one on the other: 1 and 3 are left */
    spec.demand.tasks = 2;
    r = why(f, fx_submit(f, spec)); /* one has room for one task, together for two */
    assert_int_equal(r.code, STK_WHY_RESOURCE);
    assert_int_equal(r.resource, 0);
    assert_int_equal(r.need, 4);
    assert_int_equal(r.have, 4);
    fx_free(f);
}

static void behind_the_head_of_a_strict_queue(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.backfill = "none"});
    struct stk_reason r;
    uint32_t head;

    (void)state;
    (void)fx_submit(f, fx_job(8, 10));
    head = fx_submit(f, fx_job(16, 10));
    fx_turn(f);
    assert_int_equal(why(f, head).code, STK_WHY_GPUS);
    r = why(f, fx_submit(f, fx_job(1, 10)));
    assert_int_equal(r.code, STK_WHY_BEHIND);
    assert_int_equal(r.other, 2);
    fx_free(f);
}

static void it_would_delay_a_promise(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.backfill = "easy"});
    struct stk_reason r;
    uint32_t job;

    (void)state;
    (void)fx_submit(f, fx_job(8, 10));
    (void)fx_submit(f, fx_job(16, 10));
    job = fx_submit(f, fx_job(1, 100));
    fx_turn(f);
    r = why(f, job);
    assert_int_equal(r.code, STK_WHY_RESERVED);
    assert_int_equal(r.other, 2);
    assert_int_equal(r.until, 10 * STK_SECOND);
    fx_free(f);
}

static void the_room_is_being_cleared_for_another(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){
        .preempt = "tier", .order = "priority", .slow_stop = 1000 * STK_SECOND, .seed = 3});
    struct stk_job_spec spec = fx_job(12, 100);
    struct stk_reason r;

    (void)state;
    (void)fx_submit(f, spec);
    fx_turn(f);
    spec.demand.gpus = 16;
    spec.tier = STK_TIER_CRITICAL;
    (void)fx_submit(f, spec);
    fx_turn(f); /* the first is told to go, which takes time */
    r = why(f, fx_submit(f, fx_job(1, 10)));
    assert_int_equal(r.code, STK_WHY_CLAIMED);
    assert_int_equal(r.other, 2);
    fx_free(f);
}

static void between_rounds_and_behind_better_ranks(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.params = "round_s=60"});
    struct stk_reason r;
    uint32_t job;

    (void)state;
    f->now = STK_SECOND;
    job = fx_submit(f, fx_job(1, 10));
    fx_turn(f);
    r = why(f, job);
    assert_int_equal(r.code, STK_WHY_ROUND);
    assert_int_equal(r.until, 60 * STK_SECOND);
    fx_free(f);
    f = fx_new(&(struct fx_setup){.order = "srtf", .preempt = "afresh", .place = "spread"});
    job = fx_submit(f, fx_job(1, 10));
    assert_int_equal(why(f, job).code, STK_WHY_RANK); /* nobody has looked yet */
    fx_free(f);
}

static void its_node_was_taken_away(void **state)
{
    const struct stk_node_spec small = {.gpus = 4};
    struct fx *f = fx_plain(), *g = fx_new(&(struct fx_setup){.nodes = &small, .n_nodes = 1});
    const struct stk_mem mem = fx_mem(&f->heap);
    struct stk_bytes b = {.mem = &mem};
    struct stk_job_spec spec = fx_job(8, 10);
    uint32_t job;

    (void)state;
    spec.demand.cut = false;
    job = fx_submit(f, spec);
    assert_int_equal(stk_core_save(f->core, &b, NULL), 0);
    assert_int_equal(stk_core_load(g->core, b.data, b.n, NULL), 0);
    assert_int_equal(why(g, job).code, STK_WHY_NEVER);
    stk_bytes_done(&b);
    fx_free(f);
    fx_free(g);
}

static void it_sleeps_where_another_runs(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.sleep_pct = 100});
    uint32_t job = fx_submit(f, fx_job(8, 10)), other;
    struct stk_reason r;

    (void)state;
    fx_turn(f);
    assert_int_equal(fx_suspend(f, job), 0);
    fx_turn(f);
    assert_int_equal(why(f, job).code, STK_WHY_HELD);
    other = fx_submit(f, fx_job(2, 30));
    fx_turn(f);
    assert_int_equal(fx_job_event(f, STK_EV_RELEASE, job), 0);
    r = why(f, job);
    assert_int_equal(r.code, STK_WHY_PINNED);
    assert_int_equal(r.other, fx_of(f, other)->number);
    assert_int_equal(r.until, 30 * STK_SECOND);
    assert_int_equal(r.have, 6);
    assert_int_equal(r.missing, 2);
    fx_free(f);
}

static void a_power_cap_keeps_it_back(void **state)
{
    const struct stk_node_spec node = {.gpus = 8, .power = {.idle_w = 300, .gpu_w = 100}};
    struct fx *f = fx_new(&(struct fx_setup){
        .place = "energy", .params = "energy.cap_w=900", .nodes = &node, .n_nodes = 1});
    struct stk_reason r;
    uint32_t job;

    (void)state;
    (void)fx_submit(f, fx_job(4, 10));
    job = fx_submit(f, fx_job(3, 10));
    fx_turn(f);
    r = why(f, job);
    assert_int_equal(r.code, STK_WHY_POWER);
    assert_int_equal(r.need, 300);
    assert_int_equal(r.have, 200);
    assert_int_equal(r.missing, 100);
    fx_free(f);
}

static void its_tenant_has_enough(void **state)
{
    struct stk_tenant_spec team;
    struct stk_reason r;
    struct fx *f;
    uint32_t job;

    (void)state;
    stk_tenant_spec_init(&team, "team", STK_NONE);
    team.limit = 4500;
    f = fx_new(&(struct fx_setup){.tenants = &team, .n_tenants = 1});
    (void)fx_submit(f, fx_job(4, 10));
    job = fx_submit(f, fx_job(2, 10));
    fx_turn(f);
    r = why(f, job);
    assert_int_equal(r.code, STK_WHY_LIMIT);
    assert_string_equal(r.tenant, "team");
    assert_int_equal(r.need, 2000);
    assert_int_equal(r.used, 4000);
    assert_int_equal(r.limit, 4500);
    assert_int_equal(r.have, 500);
    assert_int_equal(r.missing, 1500);
    fx_free(f);
}

static void its_queue_is_full(void **state)
{
    struct stk_queue_spec queue = stk_default_queues[0];
    struct stk_reason r;
    struct fx *f;
    uint32_t job;

    (void)state;
    queue.limit[STK_OF_QUEUE].jobs = 1;
    f = fx_new(&(struct fx_setup){.queues = &queue, .n_queues = 1});
    (void)fx_submit(f, fx_job(4, 10));
    job = fx_submit(f, fx_job(2, 10));
    fx_turn(f);
    r = why(f, job);
    assert_int_equal(r.code, STK_WHY_QUEUE);
    assert_string_equal(r.queue, "standard");
    assert_int_equal(r.unit, STK_UNIT_JOBS);
    assert_int_equal(r.missing, 1);
    fx_free(f);
}

static void others_have_reserved(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.backfill = "skip"});
    struct stk_reason r;
    uint32_t job;

    (void)state;
    assert_int_equal(fx_reserve(f, fx_booking(16, 100, 200)), 0);
    job = fx_submit(f, fx_job(8, 200));
    fx_turn(f);
    r = why(f, job);
    assert_int_equal(r.code, STK_WHY_BOOKED);
    assert_int_equal(r.booking, 1);
    assert_true(r.until == 200 * STK_SECOND);
    fx_free(f);
}

static void gpus_are_being_kept_free(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.backfill = "skip", .params = "drain.after_s=10"});
    uint32_t gang, other;
    struct stk_reason r;

    (void)state;
    (void)fx_submit(f, fx_job(8, 100));
    (void)fx_submit(f, fx_job(4, 50));
    fx_turn(f);
    gang = fx_submit(f, fx_job(16, 30));
    (void)fx_submit(f, fx_job(1, 40));
    fx_turn(f);
    fx_run(f, 11 * STK_SECOND);
    r = why(f, gang);
    assert_int_equal(r.code, STK_WHY_DRAINS);
    assert_int_equal(r.need, 16);
    assert_int_equal(r.have, 3);
    assert_int_equal(r.missing, 13);
    assert_true(r.until == 100 * STK_SECOND);
    other = fx_submit(f, fx_job(1, 200));
    fx_turn(f);
    r = why(f, other);
    assert_int_equal(r.code, STK_WHY_BOOKED);
    assert_int_equal(r.other, fx_of(f, gang)->number);
    fx_free(f);
}

static void no_node_takes_new_jobs(void **state)
{
    struct stk_event ev = {.type = STK_EV_GPUS_OFF, .u.off = {.mask = 0xff, .closed = true}};
    struct fx *f = fx_new(&(struct fx_setup){.place = "pack"});
    uint32_t job, other;

    (void)state;
    for (uint32_t i = 0; i < f->s->n_nodes; i++) {
        ev.u.off.node.i = i;
        assert_int_equal(fx_apply(f, &ev), 0);
    }
    job = fx_submit(f, fx_job(0, 10));
    other = fx_submit(f, fx_job(1, 10));
    fx_turn(f);
    assert_int_equal(why(f, job).code, STK_WHY_CLOSED);
    assert_int_equal(why(f, other).code, STK_WHY_GPUS);
    ev.u.off.closed = false; /* its GPUs are still off */
    assert_int_equal(fx_apply(f, &ev), 0);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, other), STK_JOB_WAITING);
    fx_free(f);
}

static void its_nodes_are_in_use(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.place = "pack"});
    struct stk_job_spec spec = fx_job(8, 10);
    struct stk_reason r;
    uint32_t job;

    (void)state;
    assert_int_equal(fx_nodes(f, 1, 0x2), 0);
    spec.demand.nodes = 1;
    (void)fx_submit(f, spec);
    job = fx_submit(f, spec);
    fx_turn(f);
    r = why(f, job);
    assert_int_equal(r.code, STK_WHY_NODES);
    assert_int_equal(r.nodes, 1);
    assert_int_equal(r.missing, 8);
    fx_free(f);
}

static void every_reason_was_met(void **state)
{
    (void)state;
    assert_int_equal(seen, (1u << STK_WHY_MAX) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_that_do_not_wait_for_room),
        cmocka_unit_test(too_few_gpus_or_only_fragments_of_them),
        cmocka_unit_test(no_rack_has_room),
        cmocka_unit_test(gpus_where_there_is_no_cpu),
        cmocka_unit_test(refusals_name_the_resource_that_is_short),
        cmocka_unit_test(gpus_where_a_resource_is_short),
        cmocka_unit_test(behind_the_head_of_a_strict_queue),
        cmocka_unit_test(it_would_delay_a_promise),
        cmocka_unit_test(the_room_is_being_cleared_for_another),
        cmocka_unit_test(between_rounds_and_behind_better_ranks),
        cmocka_unit_test(its_node_was_taken_away),
        cmocka_unit_test(it_sleeps_where_another_runs),
        cmocka_unit_test(a_power_cap_keeps_it_back),
        cmocka_unit_test(its_tenant_has_enough),
        cmocka_unit_test(its_queue_is_full),
        cmocka_unit_test(others_have_reserved),
        cmocka_unit_test(gpus_are_being_kept_free),
        cmocka_unit_test(no_node_takes_new_jobs),
        cmocka_unit_test(its_nodes_are_in_use),
        cmocka_unit_test(every_reason_was_met),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
