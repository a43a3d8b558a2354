/* SPDX-License-Identifier: Apache-2.0 */
/* MIG instances: where they go, who else may be there, and that room is found when there is any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/part.h"
#include "lib/world.h"

static uint8_t model(const char *name)
{
    return stk_mig_model(name, strlen(name), 0);
}

/* Two GPUs in MIG mode, and two that are not. */
static struct fx *two_nodes(const char *place)
{
    static struct stk_node_spec nodes[] = {{.gpus = 2, .gpu_type = 1}, {.gpus = 2}};

    nodes[0].mig = model("A100-80GB");
    return fx_new(&(struct fx_setup){
        .nodes = nodes, .n_nodes = 2, .order = "fifo", .backfill = "skip", .place = place});
}

static struct stk_job_spec instance(const char *profile, int64_t seconds)
{
    struct stk_job_spec spec = fx_job(1, seconds);

    spec.demand.cut = false;
    spec.demand.mig = stk_mig_parse(profile, strlen(profile));
    spec.demand.gpu_milli = (uint16_t)stk_mig_milli(spec.demand.mig);
    return spec;
}

static const struct stk_piece *at(const struct fx *f, uint32_t job)
{
    assert_int_equal(fx_of(f, job)->n_pieces, 1);
    return &f->s->pieces[fx_of(f, job)->first_piece];
}

static void seven_share_a_gpu(void **state)
{
    static const uint32_t slots[] = {6, 4, 5, 0, 1, 2, 3};
    struct fx *f = two_nodes("pack");
    uint32_t last;

    (void)state;
    for (uint32_t i = 0; i < 7; i++) {
        uint32_t job = fx_submit(f, instance("1g.10gb", 10));

        fx_turn(f);
        assert_int_equal(at(f, job)->mask, 1);
        assert_int_equal(at(f, job)->slot, slots[i]);
    }
    last = fx_submit(f, instance("1g.10gb", 10));
    fx_turn(f);
    assert_int_equal(at(f, last)->mask, 2);
    assert_int_equal(f->s->parts[0].slices, 0x7f);
    assert_int_equal(stk_part_left(f->s, &f->s->nodes[0], 0), 125);
    fx_drain(f);
    assert_int_equal(f->s->nodes[0].mask_free, 3);
    fx_finish(f);
}

static void a_large_one_waits_for_its_slices(void **state)
{
    struct fx *f = two_nodes("pack");
    uint32_t a = fx_submit(f, instance("3g.40gb", 10)), b = fx_submit(f, instance("4g.40gb", 20));
    uint32_t c = fx_submit(f, instance("7g.80gb", 20)), d = fx_submit(f, instance("4g.40gb", 10));
    uint32_t e = fx_submit(f, instance("3g.40gb", 5));

    (void)state;
    fx_turn(f);
    assert_int_equal(at(f, a)->slot, 4);
    assert_int_equal(at(f, b)->slot, 0);
    assert_int_equal(at(f, b)->mask, at(f, a)->mask);
    assert_int_equal(at(f, c)->mask, 2);
    assert_int_equal(fx_state(f, d), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, e), STK_JOB_WAITING);
    fx_run(f, 12 * STK_SECOND); /* four slices are free, and not where d could start */
    assert_int_equal(fx_state(f, d), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, e), STK_JOB_RUNNING);
    fx_run(f, 21 * STK_SECOND);
    assert_int_equal(fx_state(f, d), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

static void gpus_in_mig_mode_are_for_instances_alone(void **state)
{
    struct fx *f = two_nodes("spread");
    struct stk_job_spec half = fx_job(1, 10), wide = fx_job(4, 10), none = fx_job(0, 10);
    uint32_t a, b, c, cpu;

    (void)state;
    half.demand.cut = false;
    half.demand.gpu_milli = 500;
    a = fx_submit(f, fx_job(1, 10));
    b = fx_submit(f, half);
    c = fx_submit(f, fx_job(1, 10));
    none.demand.cut = false;
    cpu = fx_submit(f, none);
    fx_turn(f);
    assert_int_equal(at(f, a)->node.i, 1);
    assert_int_equal(at(f, b)->node.i, 1);
    assert_int_equal(fx_state(f, c), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, cpu), STK_JOB_RUNNING);
    assert_true(fx_try_submit(f, &wide) < 0);
    half.demand.gpu_types = wide.demand.gpu_types = 2; /* these and no others */
    assert_int_equal(fx_try_submit(f, &half), -ERANGE);
    wide.demand.gpus = 1;
    assert_int_equal(fx_try_submit(f, &wide), -ERANGE);
    fx_drain(f);
    fx_finish(f);
}

static void one_name_is_not_one_size(void **state)
{
    struct stk_node_spec nodes[] = {{.gpus = 1, .gpu_type = 0}, {.gpus = 1, .gpu_type = 1}};
    struct stk_job_spec spec = instance("1g.10gb", 10);
    struct fx *f;
    uint32_t n[2] = {0, 0}, last = 0;

    (void)state;
    nodes[0].mig = model("A100-40GB");
    nodes[1].mig = model("A100-80GB");
    f = fx_new(&(struct fx_setup){
        .nodes = nodes, .n_nodes = 2, .order = "fifo", .backfill = "skip", .place = "pack"});
    for (uint32_t i = 0; i < 12; i++)
        last = fx_submit(f, spec);
    fx_turn(f);
    assert_int_equal(fx_state(f, last), STK_JOB_WAITING);
    for (uint32_t i = 0; i < f->s->n_jobs; i++)
        if (fx_state(f, i) == STK_JOB_RUNNING)
            n[at(f, i)->node.i]++;
    assert_int_equal(n[0], 4);
    assert_int_equal(n[1], 7);
    fx_drain(f);
    fx_finish(f);
}

static void tasks_of_a_gang_are_on_different_gpus(void **state)
{
    struct fx *f = two_nodes("pack");
    struct stk_job_spec gang = instance("2g.20gb", 10);
    uint32_t a = fx_submit(f, instance("1g.10gb", 30)), b;
    const struct stk_piece *p;

    (void)state;
    gang.demand.tasks = 2;
    fx_turn(f);
    b = fx_submit(f, gang);
    gang.demand.tasks = 3;
    assert_int_equal(fx_try_submit(f, &gang), -ERANGE);
    fx_turn(f);
    assert_int_equal(at(f, a)->mask, 1);
    p = &f->s->pieces[fx_of(f, b)->first_piece];
    assert_int_equal(fx_of(f, b)->n_pieces == 1 ? p[0].mask : p[0].mask | p[1].mask, 3);
    fx_sound(f);
    fx_drain(f);
    fx_finish(f);
}

/* At other starts they are other pieces, on the same node. */
static void a_piece_has_one_start(void **state)
{
    const struct stk_piece two[] = {{{0}, 1, 1, 0, 1}, {{0}, 1, 1, 2, 2}};
    const struct stk_piece both = {{0}, 2, 2, 4, 3};
    const struct stk_piece bad[] = {{{0}, 2, 2, 1, 3}, {{0}, 2, 2, 6, 3}, {{0}, 2, 2, 8, 3}};
    struct fx *f = two_nodes("pack");
    struct stk_job_spec gang = instance("2g.20gb", 10);
    uint32_t a, b, c;

    (void)state;
    gang.demand.tasks = 2;
    a = fx_submit(f, gang);
    b = fx_submit(f, gang);
    c = fx_submit(f, gang);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(fx_place(f, a, &bad[i], 1), -EINVAL);
    assert_int_equal(fx_place(f, a, two, 2), 0);
    assert_int_equal(fx_place(f, b, two, 2), -ENOSPC);
    assert_int_equal(fx_place(f, b, &both, 1), 0);
    assert_int_equal(f->s->parts[0].slices, 0x33);
    assert_int_equal(f->s->parts[1].slices, 0x3c);
    fx_sound(f);
    stk_core_free(fx_reload(f, f->core, NULL));
    fx_turn(f);
    assert_int_equal(fx_of(f, c)->n_pieces, 2);
    fx_drain(f);
    fx_finish(f);
}

static void an_instance_that_sleeps_wakes_where_it_was(void **state)
{
    struct fx *f = two_nodes("pack");
    uint32_t a = fx_submit(f, instance("1g.10gb", 10)), b = fx_submit(f, instance("1g.10gb", 10));
    uint32_t c;

    (void)state;
    fx_turn(f);
    assert_int_equal(at(f, b)->slot, 4);
    f->setup.sleep_pct = 100;
    assert_int_equal(fx_suspend(f, b), 0);
    fx_turn(f);
    assert_int_equal(f->s->shapes[fx_of(f, b)->shape].demand.pin_slot, 4);
    stk_core_free(fx_reload(f, f->core, NULL));
    c = fx_submit(f, instance("1g.10gb", 5));
    fx_turn(f);
    assert_int_equal(at(f, c)->slot, 4); /* nobody keeps it free */
    (void)fx_job_event(f, STK_EV_RELEASE, b);
    fx_turn(f);
    assert_int_equal(fx_state(f, b), STK_JOB_WAITING);
    fx_run(f, 6 * STK_SECOND);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    assert_int_equal(at(f, b)->slot, 4);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

static void who_sleeps_beside_instances_is_loaded(void **state)
{
    struct fx *f = two_nodes("first_fit");
    struct stk_job_spec none = fx_job(0, 10);
    uint32_t job;

    (void)state;
    none.demand.cut = false;
    job = fx_submit(f, none);
    fx_turn(f);
    assert_int_equal(at(f, job)->node.i, 0);
    f->setup.sleep_pct = 100;
    assert_int_equal(fx_suspend(f, job), 0);
    fx_turn(f);
    assert_true(fx_of(f, job)->slept != 0);
    stk_core_free(fx_reload(f, f->core, NULL));
    fx_free(f);
}

static void what_is_no_instance_is_refused(void **state)
{
    struct fx *f = two_nodes("pack");
    struct stk_job_spec spec = instance("1g.18gb", 1); /* of other GPUs */

    (void)state;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    spec = instance("1g.10gb", 1);
    spec.demand.gpu_types = 1;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    spec = instance("1g.10gb", 1);
    spec.demand.gpu_milli = 100;
    assert_int_equal(fx_try_submit(f, &spec), -EINVAL);
    spec.demand.gpu_milli = 0;
    assert_int_equal(fx_try_submit(f, &spec), -EINVAL);
    spec = instance("1g.10gb", 1);
    spec.demand.gpu_mem_mib = 100;
    assert_int_equal(fx_try_submit(f, &spec), -EINVAL);
    spec = instance("1g.10gb", 1);
    spec.demand.share_max = 2;
    assert_int_equal(fx_try_submit(f, &spec), -EINVAL);
    fx_finish(f);
}

/* Memory slices in use on a GPU, from the leases themselves. */
static uint8_t slices_of(const struct fx *f, uint32_t node, uint32_t gpu)
{
    uint8_t used = 0;

    for (uint32_t i = 0; i < f->s->n_jobs; i++) {
        const struct stk_job *j = &f->s->jobs[i];

        for (uint32_t k = 0; j->lease && k < j->n_pieces; k++) {
            const struct stk_piece *p = &f->s->pieces[j->first_piece + k];

            if (p->node.i == node && (p->mask >> gpu & 1))
                used |= stk_mig_slices(f->s->nodes[node].mig, f->s->shapes[j->shape].demand.mig,
                                       p->slot);
        }
    }
    return used;
}

/* Looks at every start on every GPU of every node. */
static bool fits_somewhere(const struct fx *f, const struct stk_demand *d, uint32_t pool)
{
    uint32_t tasks = 0;

    for (uint32_t i = 0; i < f->s->n_nodes; i++) {
        const struct stk_node *n = &f->s->nodes[i];
        uint64_t room = UINT64_MAX;
        uint32_t here = 0;

        if (!n->up || n->pool != pool || !n->mig || !((d->gpu_types >> n->gpu_type) & 1))
            continue;
        if (n->cpu_limited && d->cpu_milli)
            room = n->cpu_free / d->cpu_milli;
        if (n->mem_limited && d->mem_mib && n->mem_free / d->mem_mib < room)
            room = n->mem_free / d->mem_mib;
        for (uint32_t g = 0; g < n->gpus; g++) {
            bool fits = false;

            for (uint32_t x = 0; x < 8 && !(n->mask_off >> g & 1); x++) {
                uint8_t slices = stk_mig_slices(n->mig, d->mig, x);

                fits |= slices && !(slices & slices_of(f, i, g)) &&
                        (!n->instances || n->instances[g * STK_MIG_SLICES + x] == d->mig);
            }
            here += fits;
        }
        tasks += here < room ? here : (uint32_t)room;
    }
    return tasks >= d->tasks;
}

static void room_is_found_when_there_is_any(void **state)
{
    static const char *const names[] = {"pack",          "spread", "first_fit", "fgd",
                                        "gpuclustering", "random", "bestfit"};
    struct world_look look = {
        .fits = fits_somewhere, .jobs = 40, .gap = STK_SECOND + STK_SECOND / 2};

    (void)state;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        struct world w = {.setup = {.place = names[seed % 7], .backfill = "skip"}};
        struct stk_rng r;

        stk_rng_init(&r, seed);
        world_cluster(&w, &r);
        world_plain(&w);
        world_no_topology(&w); /* test_gang.c */
        if (!w.mig)
            continue;
        world_look(&w, &r, &look);
    }
    assert_true(look.yes > 2000 && look.no > 500);
}

/* Cards that are divided already: 3g and two of 1g; 1g, 2g and one that nobody has heard of. */
static struct fx *divided(const char *place, uint16_t table[2 * STK_MIG_SLICES])
{
    static struct stk_node_spec node = {.gpus = 2, .gpu_type = 1};

    memset(table, 0, 2 * STK_MIG_SLICES * sizeof(*table));
    table[0] = STK_MIG(3, 40);
    table[4] = table[5] = STK_MIG(1, 10);
    table[STK_MIG_SLICES] = STK_MIG(1, 10);
    table[STK_MIG_SLICES + 2] = STK_MIG(2, 20);
    node.mig = model("A100-80GB");
    node.instances = table;
    return fx_new(&(struct fx_setup){
        .nodes = &node, .n_nodes = 1, .order = "fifo", .backfill = "skip", .place = place});
}

static void only_instances_that_are_there_are_given(void **state)
{
    uint16_t table[2 * STK_MIG_SLICES];
    struct fx *f = divided("pack", table);
    struct stk_job_spec four = instance("4g.40gb", 10), two = instance("2g.20gb", 10);
    uint32_t job[4];

    (void)state;
    assert_true(fx_try_submit(f, &four) < 0);
    two.demand.tasks = 2;
    assert_true(fx_try_submit(f, &two) < 0); /* one GPU has it */
    for (uint32_t i = 0; i < 4; i++)
        job[i] = fx_submit(f, instance("1g.10gb", 10 + i));
    fx_turn(f);
    for (uint32_t i = 0; i < 3; i++) {
        const struct stk_piece *p = at(f, job[i]);
        uint32_t gpu = (uint32_t)__builtin_ctzll(p->mask);

        assert_int_equal(table[gpu * STK_MIG_SLICES + p->slot], STK_MIG(1, 10));
    }
    assert_int_equal(fx_state(f, job[3]), STK_JOB_WAITING);
    fx_sound(f);
    fx_drain(f);
    fx_finish(f);
}

/* Refused at the door: the nodes that have the instance do not have the rest, or are too far from
 * each other. */
static void instances_count_where_the_rest_is(void **state)
{
    uint16_t one[STK_MIG_SLICES] = {STK_MIG(1, 10)}, none[STK_MIG_SLICES] = {STK_MIG(2, 20)};
    struct stk_node_spec nodes[] = {
        {.gpus = 1, .gpu_type = 1, .instances = one, .cpu_milli = 1000, .rack = 1, .zone = 1},
        {.gpus = 1, .gpu_type = 1, .instances = none, .cpu_milli = 8000, .rack = 1, .zone = 1},
        {.gpus = 1, .gpu_type = 1, .instances = one, .cpu_milli = 1000, .rack = 2, .zone = 1}};
    struct stk_job_spec spec = instance("1g.10gb", 10);
    struct fx *f;

    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        nodes[i].mig = model("A100-80GB");
    f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 3, .place = "pack"});
    spec.demand.cpu_milli = 2000;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    spec.demand.cpu_milli = 1000;
    spec.demand.tasks = 2;
    spec.demand.level_required = STK_AT_RACK;
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    spec.demand.level_required = STK_AT_ZONE;
    (void)fx_submit(f, spec);
    fx_drain(f);
    fx_finish(f);
}

/* Whatever comes and goes: a job starts exactly when an instance of its profile is free. */
static void an_instance_that_is_free_is_found(void **state)
{
    static const char *const places[] = {"pack", "spread", "stoker", "fgd"};
    static const char *const profiles[] = {"1g.10gb", "2g.20gb", "3g.40gb"};
    static const uint32_t there[] = {3, 1, 1};
    uint16_t table[2 * STK_MIG_SLICES];
    struct stk_rng r;

    (void)state;
    stk_rng_init(&r, 11);
    for (uint32_t k = 0; k < 4; k++) {
        struct fx *f = divided(places[k], table);
        uint32_t jobs[300], kind[300];

        for (uint32_t n = 0; n < 300; n++) {
            uint32_t run[3] = {0}, wait[3] = {0};

            kind[n] = (uint32_t)stk_rng_below(&r, 3);
            jobs[n] = fx_submit(f, instance(profiles[kind[n]], 1 + (int64_t)stk_rng_below(&r, 9)));
            fx_turn(f);
            fx_sound(f);
            for (uint32_t i = 0; i <= n; i++) {
                run[kind[i]] += fx_state(f, jobs[i]) == STK_JOB_RUNNING ||
                                fx_state(f, jobs[i]) == STK_JOB_PLACED;
                wait[kind[i]] += fx_state(f, jobs[i]) == STK_JOB_WAITING;
            }
            for (uint32_t i = 0; i < 3; i++)
                assert_true(run[i] == there[i] || (run[i] < there[i] && wait[i] == 0));
            fx_run(f, f->now + (stk_time)stk_rng_below(&r, 4000000));
        }
        fx_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seven_share_a_gpu),
        cmocka_unit_test(a_large_one_waits_for_its_slices),
        cmocka_unit_test(gpus_in_mig_mode_are_for_instances_alone),
        cmocka_unit_test(one_name_is_not_one_size),
        cmocka_unit_test(tasks_of_a_gang_are_on_different_gpus),
        cmocka_unit_test(a_piece_has_one_start),
        cmocka_unit_test(an_instance_that_sleeps_wakes_where_it_was),
        cmocka_unit_test(who_sleeps_beside_instances_is_loaded),
        cmocka_unit_test(what_is_no_instance_is_refused),
        cmocka_unit_test(room_is_found_when_there_is_any),
        cmocka_unit_test(only_instances_that_are_there_are_given),
        cmocka_unit_test(instances_count_where_the_rest_is),
        cmocka_unit_test(an_instance_that_is_free_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
