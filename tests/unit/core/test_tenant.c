/* SPDX-License-Identifier: Apache-2.0 */
/* test_tenant.c - a tree of tenants: what counts for whom, limits, who waits and who is woken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/means.h"
#include "core/tenant.h"
#include "lib/fixture.h"
#include "model/mig.h"
#include "policy/registry.h"

enum { DEFAULT, ORG, VISION, SPEECH, ANN, BOB, N };

static struct stk_tenant_spec table[N];

static void free_of_limits(struct stk_tenant_spec *t, const char *name, uint32_t parent)
{
    stk_tenant_spec_init(t, name, parent);
}

/* default; org over vision (over ann and bob) and speech. */
static int plant(void **state)
{
    (void)state;
    free_of_limits(&table[DEFAULT], "default", STK_NONE);
    free_of_limits(&table[ORG], "org", STK_NONE);
    free_of_limits(&table[VISION], "vision", ORG);
    free_of_limits(&table[SPEECH], "speech", ORG);
    free_of_limits(&table[ANN], "ann", VISION);
    free_of_limits(&table[BOB], "bob", VISION);
    return 0;
}

static struct fx *world(const char *backfill)
{
    return fx_new(&(struct fx_setup){.backfill = backfill, .tenants = table, .n_tenants = N});
}

static struct stk_job_spec job_of(uint32_t tenant, uint32_t gpus, int64_t seconds)
{
    struct stk_job_spec spec = fx_job(gpus, seconds);

    spec.tenant = tenant;
    return spec;
}

static uint32_t submit(struct fx *f, uint32_t tenant, uint32_t gpus, int64_t seconds)
{
    uint32_t job = fx_submit(f, job_of(tenant, gpus, seconds));

    fx_turn(f);
    return job;
}

static uint64_t used(const struct fx *f, uint32_t tenant)
{
    return *stk_tenant_used(f->s, tenant, STK_ALL_TYPES);
}

static void leases_count_for_all_above(void **state)
{
    static const struct stk_node_spec nodes[2] = {{.gpus = 8}, {.gpus = 8, .gpu_type = 2}};
    struct fx *f =
        fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 2, .tenants = table, .n_tenants = N});
    struct stk_job_spec part = job_of(BOB, 1, 20);

    (void)state;
    submit(f, ANN, 12, 10); /* 8 of one type and 4 of the other, or so */
    submit(f, SPEECH, 2, 20);
    part.demand.cut = false;
    part.demand.gpu_milli = 250;
    fx_submit(f, part);
    fx_turn(f);
    assert_int_equal(used(f, ANN), 12000);
    assert_int_equal(used(f, BOB), 250);
    assert_int_equal(used(f, VISION), 12250);
    assert_int_equal(used(f, ORG), 14250);
    assert_int_equal(used(f, DEFAULT), 0);
    assert_int_equal(*stk_tenant_used(f->s, ORG, STK_OF_TYPE(0)) +
                         *stk_tenant_used(f->s, ORG, STK_OF_TYPE(2)),
                     14250);
    assert_int_equal(*stk_tenant_used(f->s, ORG, STK_OF_TYPE(1)), 0);
    fx_run(f, 10 * STK_SECOND);
    assert_int_equal(used(f, VISION), 250);
    assert_int_equal(used(f, ORG), 2250);
    fx_drain(f);
    assert_int_equal(used(f, ORG), 0);
    fx_finish(f);
}

static void instances_count_as_their_part_of_a_gpu(void **state)
{
    uint8_t model = stk_mig_model("A100-40GB", 9, 0);
    const struct stk_node_spec node = {.gpus = 2, .mig = model};
    struct stk_job_spec spec = job_of(ANN, 1, 10);
    struct fx *f;

    (void)state;
    table[VISION].limit = 600;
    f = fx_new(&(struct fx_setup){.nodes = &node, .n_nodes = 1, .tenants = table, .n_tenants = N});
    spec.demand.cut = false;
    spec.demand.mig = stk_mig_parse("2g.10gb", 7);
    spec.demand.gpu_milli = (uint16_t)stk_mig_milli(spec.demand.mig);
    assert_in_range(spec.demand.gpu_milli, 201, 300);
    for (int i = 0; i < 3; i++)
        fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(used(f, VISION), 2 * spec.demand.gpu_milli); /* a third is too much */
    assert_int_equal(f->s->n_waiting, 1);
    fx_drain(f);
    fx_finish(f);
}

/* Whoever is over a limit waits, says whose, and stands in nobody's way. */
static void who_is_over_a_limit_waits(const char *backfill)
{
    struct stk_reason why;
    struct fx *f;
    uint32_t a, b, c, d;

    table[VISION].limit = 8000;
    f = world(backfill);
    a = submit(f, ANN, 6, 10);
    b = submit(f, BOB, 4, 10);
    c = submit(f, BOB, 2, 30);
    d = submit(f, SPEECH, 8, 10);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, c), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, d), STK_JOB_RUNNING);
    assert_int_equal(stk_core_why(f->core, (stk_job_id){b}, &why, NULL), 0);
    assert_int_equal(why.code, STK_WHY_LIMIT);
    assert_string_equal(stk_reason_name(why.code), "limit");
    assert_string_equal(why.tenant, "vision");
    assert_int_equal(why.used, 8000);
    assert_int_equal(why.limit, 8000);
    assert_int_equal(why.need, 4000);
    assert_int_equal(why.have, 0);
    assert_int_equal(why.missing, 4000);
    assert_int_equal(why.gpu_type, 0);
    fx_run(f, 10 * STK_SECOND);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    assert_int_equal(used(f, VISION), 6000);
    fx_drain(f);
    fx_finish(f);
}

static void a_limit_holds_under_every_backfill_that_goes_with_it(void **state)
{
    static const char *const backfill[] = {"none", "skip", "easy"};

    for (int i = 0; i < 3; i++) {
        plant(state);
        who_is_over_a_limit_waits(backfill[i]);
    }
}

static void jobs_of_one_demand_and_other_tenants_do_not_wait_for_each_other(void **state)
{
    struct fx *f;
    uint32_t a, b, c;

    (void)state;
    table[ANN].limit = 1000;
    f = world("skip");
    a = submit(f, ANN, 1, 10);
    b = submit(f, ANN, 1, 10);
    c = submit(f, BOB, 1, 10);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, c), STK_JOB_RUNNING);
    assert_int_not_equal(fx_of(f, b)->shape, fx_of(f, c)->shape);
    fx_drain(f);
    fx_finish(f);
}

static void tenants_without_limits_share_shapes(void **state)
{
    struct fx *f;
    uint32_t a, b, c, d;

    (void)state;
    table[VISION].limit = 8000;
    f = world("skip");
    a = submit(f, ANN, 1, 10);
    b = submit(f, BOB, 1, 10);
    c = submit(f, SPEECH, 1, 10);
    d = submit(f, DEFAULT, 1, 10);
    assert_int_equal(fx_of(f, a)->shape, fx_of(f, b)->shape); /* both under vision's */
    assert_int_equal(fx_of(f, c)->shape, fx_of(f, d)->shape); /* under none */
    assert_int_not_equal(fx_of(f, a)->shape, fx_of(f, c)->shape);
    fx_drain(f);
    fx_finish(f);
}

static void use_that_falls_in_one_pool_wakes_jobs_of_another(void **state)
{
    static const struct stk_node_spec nodes[2] = {{.gpus = 8}, {.pool = {1}, .gpus = 8}};
    struct stk_job_spec other = job_of(SPEECH, 4, 10);
    struct fx *f;
    uint32_t b;

    (void)state;
    table[ORG].limit = 8000;
    f = fx_new(&(struct fx_setup){.backfill = "none",
                                  .nodes = nodes,
                                  .n_nodes = 2,
                                  .n_pools = 2,
                                  .tenants = table,
                                  .n_tenants = N});
    submit(f, ANN, 8, 10);
    other.pool.i = 1;
    b = fx_submit(f, other);
    fx_turn(f);
    assert_int_equal(fx_why(f, b), STK_WHY_LIMIT);
    fx_run(f, 10 * STK_SECOND);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

/* The lower limit is in the way, then the upper one too; the lower one goes first. */
static void one_parked_below_is_woken_from_above(void **state)
{
    struct fx *f;
    uint32_t d;

    (void)state;
    table[ORG].limit = 10000;
    table[VISION].limit = 4000;
    f = world("skip");
    submit(f, ANN, 4, 10);
    d = submit(f, BOB, 4, 5); /* waits for vision */
    submit(f, SPEECH, 6, 20); /* now org is full, too */
    submit(f, SPEECH, 3, 40);
    fx_run(f, 10 * STK_SECOND); /* ann goes; speech gets its three: 9 of 10 */
    assert_int_equal(fx_state(f, d), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

/* The type with a limit is closed to it, the other has no room; then the limit is not in the way
 * any more, where no GPU came free that would be enough. */
static void a_type_that_opens_wakes_who_found_no_room(void **state)
{
    static const struct stk_node_spec nodes[4] = {
        {.gpus = 3}, {.gpus = 3}, {.gpus = 8}, {.gpus = 4, .gpu_type = 1}};
    struct fx *f;
    uint32_t d;

    (void)state;
    table[ORG].type_limit[0] = 6000;
    f = fx_new(&(struct fx_setup){
        .backfill = "none", .nodes = nodes, .n_nodes = 4, .tenants = table, .n_tenants = N});
    submit(f, ANN, 3, 10);
    submit(f, ANN, 3, 10);
    submit(f, SPEECH, 4, 60); /* on the other type: this one is closed to it */
    assert_int_equal(*stk_tenant_used(f->s, ORG, STK_OF_TYPE(1)), 4000);
    d = submit(f, SPEECH, 4, 5);
    assert_int_equal(fx_state(f, d), STK_JOB_WAITING);
    assert_int_equal(fx_why(f, d), STK_WHY_LIMIT);
    fx_run(f, 10 * STK_SECOND);
    assert_int_equal(fx_state(f, d), STK_JOB_RUNNING);
    assert_int_equal(*stk_tenant_used(f->s, ORG, STK_OF_TYPE(0)), 4000);
    fx_drain(f);
    fx_finish(f);
}

static void a_limit_on_a_type_is_named_in_the_reason(void **state)
{
    static const struct stk_node_spec nodes[2] = {{.gpus = 8}, {.gpus = 8, .gpu_type = 1}};
    struct stk_job_spec spec = job_of(ANN, 2, 10);
    struct stk_reason why;
    struct fx *f;
    uint32_t b;

    (void)state;
    table[VISION].type_limit[1] = 3000;
    f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 2, .tenants = table, .n_tenants = N});
    spec.demand.gpu_types = 2;
    fx_submit(f, spec);
    b = fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(stk_core_why(f->core, (stk_job_id){b}, &why, NULL), 0);
    assert_int_equal(why.code, STK_WHY_LIMIT);
    assert_int_equal(why.gpu_type, STK_OF_TYPE(1));
    assert_int_equal(why.used, 2000);
    assert_int_equal(why.have, 1000);
    assert_int_equal(why.missing, 1000);
    fx_drain(f);
    fx_finish(f);
}

/* What would use up the room under a limit that the job with the reservation needs must end before
 * it. */
static void backfill_leaves_room_under_the_limit_too(void **state)
{
    struct fx *f;
    uint32_t head, lasting, brief, other;

    (void)state;
    table[VISION].limit = 12000;
    f = world("easy");
    submit(f, SPEECH, 8, 10);
    submit(f, SPEECH, 1, 100);
    head = submit(f, ANN, 12, 10); /* promised at 10 s */
    lasting = submit(f, BOB, 1, 100);
    brief = submit(f, BOB, 1, 5);
    other = submit(f, SPEECH, 1, 100);
    assert_int_equal(fx_state(f, head), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, lasting), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, brief), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, other), STK_JOB_RUNNING);
    fx_run(f, 10 * STK_SECOND);
    assert_int_equal(fx_state(f, head), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

static void nobody_gives_way_to_one_that_is_over_a_limit(void **state)
{
    struct stk_job_spec low = job_of(ANN, 8, 10), high = job_of(BOB, 8, 10);
    struct fx *f;
    uint32_t a, b;

    (void)state;
    table[VISION].limit = 8000;
    f = fx_new(&(struct fx_setup){
        .order = "priority", .preempt = "tier", .tenants = table, .n_tenants = N});
    low.tier = STK_TIER_BEST_EFFORT;
    high.tier = STK_TIER_CRITICAL;
    a = fx_submit(f, low);
    fx_turn(f);
    b = fx_submit(f, high);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_why(f, b), STK_WHY_LIMIT);
    fx_drain(f);
    assert_int_equal(fx_of(f, a)->preemptions, 0);
    fx_finish(f);
}

static void what_a_limit_can_never_admit_is_refused(void **state)
{
    static const struct stk_node_spec nodes[2] = {{.gpus = 4}, {.gpus = 8, .gpu_type = 1}};
    struct stk_job_spec spec = job_of(ANN, 6, 10);
    struct fx *f;

    (void)state;
    table[VISION].limit = 8000;
    table[ORG].type_limit[1] = 5000;
    f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 2, .tenants = table, .n_tenants = N});
    spec.demand.cut = false;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE); /* 6 of the type without a limit: 4 */
    spec.demand.gpu_types = 2;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    assert_string_equal(f->err.text,
                        "needs 6 GPUs; the limit of tenant org is less on every GPU type");
    spec = job_of(ANN, 9, 10);
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    assert_string_equal(f->err.text, "needs 9 GPUs; the limit of tenant vision is less");
    spec.tenant = VISION;
    assert_int_equal(fx_try_submit(f, &spec), -EINVAL);
    assert_string_equal(f->err.text,
                        "tenant vision has others below it; jobs belong to one of those");
    spec.tenant = N;
    assert_int_equal(fx_try_submit(f, &spec), -EINVAL);
    assert_string_equal(f->err.text, "there is no tenant 6 (0 to 5)");
    spec = job_of(ANN, 5, 10);
    assert_int_equal(fx_try_submit(f, &spec), 0);
    fx_drain(f);
    fx_finish(f);
}

/* Whether a core can be made of the table with these policies. */
static int make(const char *backfill, const char *order, const char *preempt, struct stk_err *err)
{
    static const struct stk_node_spec node = {.gpus = 8};
    struct fx_heap heap = {0};
    const struct stk_mem mem = fx_mem(&heap);
    struct stk_params params = {0};
    const struct stk_core_config cfg = {.nodes = &node,
                                        .n_nodes = 1,
                                        .n_pools = 1,
                                        .tenants = table,
                                        .n_tenants = N,
                                        .order = stk_order_find(order),
                                        .backfill = stk_backfill_find(backfill),
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

static void tables_that_make_no_sense_are_refused(void **state)
{
    struct stk_err err;

    (void)state;
    table[VISION].parent = ANN;
    assert_int_equal(make("skip", "fifo", "none", &err), -EINVAL);
    assert_string_equal(err.text, "tenant vision: the one above it must come before it");
    plant(state);
    table[SPEECH].parent = DEFAULT;
    assert_int_equal(make("skip", "fifo", "none", &err), -EINVAL);
    assert_string_equal(err.text, "tenant default takes jobs of unknown tenants: none may be below "
                                  "it");
    plant(state);
    assert_int_equal(make("conservative", "fifo", "none", &err), 0); /* there are no limits */
    table[ANN].limit = 1000;
    assert_int_equal(make("conservative", "fifo", "none", &err), -EINVAL);
    assert_string_equal(err.text, "limits of tenants do not go with preempt none and backfill "
                                  "conservative; take preempt none, tier or reclaim, and "
                                  "backfill none, skip or easy");
    assert_int_equal(make("none", "srtf", "afresh", &err), -EINVAL);
}

static void use_is_known_again_after_loading(void **state)
{
    struct stk_core *again;
    struct fx *f;
    uint32_t b;

    (void)state;
    table[VISION].limit = 8000;
    f = world("skip");
    submit(f, ANN, 6, 10);
    b = submit(f, BOB, 4, 10);
    again = fx_reload(f, f->core, NULL);
    assert_int_equal(*stk_tenant_used(stk_core_state(again), VISION, 0), 6000);
    assert_int_equal(stk_core_digest(again), fx_digest(f));
    stk_core_free(again);
    /* another table: names tell who is who; who is gone is default */
    {
        struct stk_tenant_spec other[4];
        const struct fx_setup setup = {.backfill = "skip", .tenants = other, .n_tenants = 4};
        const struct stk_state *s;
        struct stk_event out[4];

        free_of_limits(&other[0], "default", STK_NONE);
        free_of_limits(&other[1], "robert", STK_NONE);
        other[1].was = "bob"; /* its jobs come along */
        free_of_limits(&other[2], "above", STK_NONE);
        free_of_limits(&other[3], "vision", 2);
        other[0].limit = 5000; /* less than what is there: it stays */
        again = fx_reload(f, f->core, &setup);
        s = stk_core_state(again);
        assert_int_equal(*stk_tenant_used(s, 0, 0), 6000);
        assert_int_equal(s->jobs[b].tenant, 1);
        assert_int_equal(stk_core_decide(again, f->now, out, 4), 1); /* bob has no limit now */
        assert_int_equal(out[0].job.i, b);
        stk_core_free(again);
    }
    fx_drain(f);
    fx_finish(f);
}

/* Limits on CPUs and memory: as on GPUs. */
static void cpus_and_memory_have_limits_too(void **state)
{
    static const struct stk_node_spec node = {.gpus = 8, .cpu_milli = 64000, .mem_mib = 65536};
    struct stk_job_spec spec = job_of(ANN, 1, 10), cpu_only = job_of(BOB, 0, 10);
    struct stk_reason why;
    struct fx *f;
    uint32_t a, b, c, d;

    (void)state;
    table[VISION].cpu_limit = 20000;
    table[BOB].mem_limit = 4096;
    f = fx_new(&(struct fx_setup){.nodes = &node, .n_nodes = 1, .tenants = table, .n_tenants = N});
    spec.demand.cut = cpu_only.demand.cut = false;
    spec.demand.cpu_milli = 16000;
    a = fx_submit(f, spec);
    b = fx_submit(f, spec);
    cpu_only.demand.cpu_milli = 4000;
    cpu_only.demand.mem_mib = 3072;
    c = fx_submit(f, cpu_only);
    cpu_only.demand.cpu_milli = 0;
    d = fx_submit(f, cpu_only);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, c), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, d), STK_JOB_WAITING);
    assert_int_equal(stk_core_why(f->core, (stk_job_id){b}, &why, NULL), 0);
    assert_int_equal(why.code, STK_WHY_LIMIT);
    assert_int_equal(why.unit, STK_UNIT_CPUS);
    assert_string_equal(why.tenant, "vision");
    assert_int_equal(why.used, 20000);
    assert_int_equal(why.limit, 20000);
    assert_int_equal(why.missing, 16000);
    assert_int_equal(stk_core_why(f->core, (stk_job_id){d}, &why, NULL), 0);
    assert_int_equal(why.unit, STK_UNIT_MEM);
    assert_string_equal(why.tenant, "bob");
    assert_int_equal(why.used, 3072);
    fx_sound(f);
    fx_run(f, 10 * STK_SECOND);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, d), STK_JOB_RUNNING);
    spec.demand.cpu_milli = 20001;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    assert_non_null(strstr(f->err.text, "needs 20.001 CPUs; the limit of tenant vision is 20"));
    fx_drain(f);
    assert_int_equal(f->s->tenant_means[ORG].used[STK_MEANS_CPU], 0);
    fx_finish(f);
}

/* What the pool's reservation is for gets its CPUs: others may not use them up meanwhile. */
static void a_promise_counts_cpus_too(void **state)
{
    static const struct stk_node_spec node = {.gpus = 8, .cpu_milli = 64000};
    struct stk_job_spec large = job_of(ANN, 8, 10), small = job_of(BOB, 1, 100);
    struct fx *f;
    uint32_t a, b;

    (void)state;
    table[VISION].cpu_limit = 20000;
    f = fx_new(&(struct fx_setup){
        .nodes = &node, .n_nodes = 1, .backfill = "easy", .tenants = table, .n_tenants = N});
    submit(f, SPEECH, 4, 20);
    large.demand.cpu_milli = 16000;
    a = fx_submit(f, large);
    fx_turn(f);
    small.demand.cpu_milli = 8000;
    b = fx_submit(f, small);
    fx_turn(f);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    fx_run(f, 20 * STK_SECOND);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(leases_count_for_all_above, plant),
        cmocka_unit_test_setup(cpus_and_memory_have_limits_too, plant),
        cmocka_unit_test_setup(a_promise_counts_cpus_too, plant),
        cmocka_unit_test_setup(instances_count_as_their_part_of_a_gpu, plant),
        cmocka_unit_test_setup(a_limit_holds_under_every_backfill_that_goes_with_it, plant),
        cmocka_unit_test_setup(jobs_of_one_demand_and_other_tenants_do_not_wait_for_each_other,
                               plant),
        cmocka_unit_test_setup(tenants_without_limits_share_shapes, plant),
        cmocka_unit_test_setup(use_that_falls_in_one_pool_wakes_jobs_of_another, plant),
        cmocka_unit_test_setup(one_parked_below_is_woken_from_above, plant),
        cmocka_unit_test_setup(a_type_that_opens_wakes_who_found_no_room, plant),
        cmocka_unit_test_setup(a_limit_on_a_type_is_named_in_the_reason, plant),
        cmocka_unit_test_setup(backfill_leaves_room_under_the_limit_too, plant),
        cmocka_unit_test_setup(nobody_gives_way_to_one_that_is_over_a_limit, plant),
        cmocka_unit_test_setup(what_a_limit_can_never_admit_is_refused, plant),
        cmocka_unit_test_setup(tables_that_make_no_sense_are_refused, plant),
        cmocka_unit_test_setup(use_is_known_again_after_loading, plant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
