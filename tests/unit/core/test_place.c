/* SPDX-License-Identifier: Apache-2.0 */
/* test_place.c - where jobs go, against rules written down again in the plainest way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/place.h"
#include "core/sets.h"
#include "core/shape.h"
#include "lib/world.h"

#define MAX_PIECES 64

static struct stk_state *writable(const struct fx *f)
{
    return (struct stk_state *)(uintptr_t)f->s;
}

/* ---- the plain rules ---- */

enum rule { PACK, SPREAD, FIRST_FIT };

static bool room_on(const struct stk_node *n, const struct stk_demand *d, uint32_t gpus,
                    uint64_t cpu, uint64_t mem)
{
    return n->up && ((d->gpu_types >> n->gpu_type) & 1) && n->gpus_free >= gpus &&
           (n->gpu_mem_mib == 0 || gpus == 0 || d->gpu_mem_mib <= n->gpu_mem_mib) &&
           (!n->cpu_limited || n->cpu_free >= cpu) && (!n->mem_limited || n->mem_free >= mem);
}

static bool resources_on(const struct fx *f, uint32_t node, const struct stk_demand *d,
                         uint32_t gpus, uint32_t tasks)
{
    for (uint32_t k = 0; k < d->n_resources; k++) {
        uint64_t want = d->cut && d->gpus
                            ? ((uint64_t)d->resource[k] * gpus + d->gpus - 1) / d->gpus
                            : (uint64_t)d->resource[k] * tasks;

        if (want > f->s->resource_free[node * f->s->n_resources + k])
            return false;
    }
    return true;
}

static uint32_t plain_pick(const struct fx *f, const struct stk_demand *d, uint32_t pool,
                           uint32_t gpus, uint32_t tasks, enum rule rule, const uint32_t * not,
                           uint32_t n_not)
{
    uint64_t cpu = d->cut && d->gpus ? ((uint64_t)d->cpu_milli * gpus + d->gpus - 1) / d->gpus
                                     : (uint64_t)d->cpu_milli * tasks;
    uint64_t mem = d->cut && d->gpus ? ((uint64_t)d->mem_mib * gpus + d->gpus - 1) / d->gpus
                                     : (uint64_t)d->mem_mib * tasks;
    uint32_t best = STK_NONE;

    for (uint32_t i = 0; i < f->s->n_nodes; i++) {
        const struct stk_node *n = &f->s->nodes[i];
        bool taken = false;

        for (uint32_t k = 0; k < n_not; k++)
            taken |= not [k] == i;
        if (taken || n->pool != pool || !stk_sets_allow(f->s, d, i) ||
            !room_on(n, d, gpus, cpu, mem) || !resources_on(f, i, d, gpus, tasks))
            continue;
        if (best == STK_NONE || (rule == PACK && n->gpus_free < f->s->nodes[best].gpus_free) ||
            (rule == SPREAD && n->gpus_free > f->s->nodes[best].gpus_free))
            best = i;
    }
    return best;
}

/* ---- a cluster filled at random ---- */

static struct fx *filled(struct world *w, struct stk_rng *r, const char *place, uint64_t seed)
{
    struct fx *f;

    *w = (struct world){.setup = {.place = place}};
    stk_rng_init(r, seed);
    world_cluster(w, r);
    world_no_mig(w);
    world_no_topology(w);
    w->speeds = false; /* test_speed.c */
    if (seed % 2) {    /* equally large nodes of several types, in mixed order */
        w->types = true;
        for (uint32_t i = 0; i < w->setup.n_nodes; i++)
            w->nodes[i].gpu_type = (uint32_t)stk_rng_below(r, 3);
    }
    f = fx_new(&w->setup);
    for (int i = 0; i < 12; i++)
        world_submit(w, f, r);
    if (stk_rng_below(r, 4) == 0)
        assert_int_equal(fx_node(f, (uint32_t)stk_rng_below(r, w->setup.n_nodes), false), 0);
    fx_turn(f);
    return f;
}

static void one_node_jobs_go_where_the_rule_says(void **state)
{
    static const char *const names[] = {
        [PACK] = "pack", [SPREAD] = "spread", [FIRST_FIT] = "first_fit"};
    uint32_t placed = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 600; seed++) {
        enum rule rule = (enum rule)(seed % 3);
        struct world w;
        struct stk_rng r;
        struct fx *f = filled(&w, &r, names[rule], seed);
        struct stk_dep deps[4];
        struct stk_job_spec spec = world_job(&w, f, &r, deps);
        uint32_t job = stk_core_next_job(f->core).i, n = 0, want;

        spec.demand.cut = false;
        spec.demand.tasks = 1;
        spec.demand.gpu_milli = spec.demand.share = spec.demand.share_max = 0;
        spec.n_deps = 0;
        spec.held = false;
        spec.begin = 0;
        if (fx_try_submit(f, &spec) == 0) {
            want = plain_pick(f, &spec.demand, spec.pool.i, spec.demand.gpus, 1, rule, NULL, 0);
            if (stk_place_try(writable(f), fx_of(f, job)->shape, NULL, &n)) {
                assert_int_equal(n, 1);
                assert_int_equal(f->s->try_pieces[0].node.i, want);
                assert_int_equal(fx_place(f, job, f->s->try_pieces, 1), 0);
                placed++;
            } else {
                assert_int_equal(want, STK_NONE);
            }
        }
        fx_sound(f);
        fx_free(f);
    }
    assert_true(placed > 100);
}

/* n / size whole nodes, lowest numbers first, and the rest on the emptiest other node. */
static void a_cut_job_gets_whole_nodes_and_its_rest_the_emptiest(void **state)
{
    uint32_t placed = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 600; seed++) {
        struct stk_node_spec nodes[6];
        struct stk_rng r;
        struct fx *f;
        uint32_t not [8], n_not = 0, n = 0, gpus, job, node;
        bool fits = true;

        stk_rng_init(&r, seed);
        for (int i = 0; i < 6; i++)
            nodes[i] = (struct stk_node_spec){.gpus = 8};
        f = fx_new(&(struct fx_setup){
            .nodes = nodes, .n_nodes = 6, .place = seed % 2 ? "pack" : "spread"});
        for (uint64_t i = stk_rng_below(&r, 9); i > 0; i--)
            (void)fx_submit(f, fx_job(1 + (uint32_t)stk_rng_below(&r, 8), 10));
        (void)fx_decide(f);
        gpus = 9 + (uint32_t)stk_rng_below(&r, 40);
        job = fx_submit(f, fx_job(gpus, 10));
        for (uint32_t i = 0; i < gpus / 8 && fits; i++) {
            node =
                plain_pick(f, &(struct stk_demand){.gpu_types = 1}, 0, 8, 1, FIRST_FIT, not, n_not);
            fits = node != STK_NONE;
            not [n_not++] = node;
        }
        node =
            plain_pick(f, &(struct stk_demand){.gpu_types = 1}, 0, gpus % 8, 1, SPREAD, not, n_not);
        if (gpus % 8 > 0)
            not [n_not++] = node;
        fits = fits && (gpus % 8 == 0 || node != STK_NONE);
        assert_int_equal(stk_place_try(writable(f), fx_of(f, job)->shape, NULL, &n), fits);
        for (uint32_t i = 0; fits && i < n; i++) {
            assert_int_equal(f->s->try_pieces[i].node.i, not [i]);
            assert_int_equal(f->s->try_pieces[i].gpus, i < gpus / 8 ? 8 : gpus % 8);
        }
        if (fits)
            assert_int_equal(n, n_not);
        placed += fits;
        fx_free(f);
    }
    assert_true(placed > 100);
}

static void a_gang_uses_few_nodes_and_holds_all_tasks(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 4}, {.gpus = 8}, {.gpus = 8, .cpu_milli = 2000}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 3});
    struct stk_job_spec spec = fx_job(2, 10);
    const struct stk_piece *p;
    uint32_t job, n;

    (void)state;
    spec.demand.cut = false;
    spec.demand.tasks = 7;
    spec.demand.cpu_milli = 1000;
    job = fx_submit(f, spec);
    assert_true(stk_place_try(writable(f), fx_of(f, job)->shape, NULL, &n));
    p = f->s->try_pieces;
    assert_int_equal(n, 3);
    assert_int_equal(p[0].node.i,
                     1); /* four tasks there, and two each where that is all there is */
    assert_int_equal(p[0].tasks, 4);
    assert_int_equal(p[1].tasks, 2);
    assert_int_equal(p[2].tasks, 1);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    spec.demand.tasks = 9; /* 2 + 4 + 2 is all there is */
    assert_int_equal(fx_try_submit(f, &spec), -ERANGE);
    fx_free(f);
}

static void counting_needs_no_places(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 1000, .aggregate = true}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 1, .place = "count"});
    struct stk_job_spec spec = fx_job(3, 10);
    uint32_t a = fx_submit(f, fx_job(997, 10)), b, c;

    (void)state;
    spec.demand.cut = false;
    b = fx_submit(f, spec);
    c = fx_submit(f, fx_job(1, 10));
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, c), STK_JOB_WAITING);
    assert_int_equal(f->s->pieces[fx_of(f, a)->first_piece].mask, 0);
    fx_drain(f);
    assert_int_equal(fx_of(f, c)->ended, 20 * STK_SECOND);
    fx_sound(f);
    fx_free(f);
}

/* What is admitted fits the empty cluster, and what fits is admitted. */
static void admitted_means_it_fits_an_empty_cluster(void **state)
{
    static const char *const names[] = {"pack", "spread", "first_fit", "count"};
    uint32_t admitted = 0, refused = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        struct world w = {.setup = {.place = names[seed % 4]}};
        struct stk_rng r;
        struct fx *f;
        struct stk_dep deps[4];
        struct stk_job_spec spec;
        struct stk_state *s;
        uint32_t n = 0, shape;
        bool ok;

        stk_rng_init(&r, seed);
        world_cluster(&w, &r);
        f = fx_new(&w.setup);
        spec = world_job(&w, f, &r, deps);
        if (seed % 4 == 3) /* parts are whole ones there */
            spec.demand.gpu_milli = spec.demand.share = spec.demand.share_max = 0;
        (void)fx_submit(f, (struct stk_job_spec){.demand = {.tasks = 1, .gpu_types = ~UINT64_C(0)},
                                                 .pool = spec.pool}); /* makes room for a shape */
        ok = stk_place_possible(f->s, &spec.demand, spec.pool.i, NULL) == 0;
        s = writable(f);
        s->shapes[fx_of(f, 0)->shape].demand = spec.demand; /* as if it were that one */
        shape = fx_of(f, 0)->shape;
        s->shapes[shape].demand.gpu_types = stk_shape_types(s, &spec.demand, spec.pool.i);
        assert_int_equal(stk_place_try(s, shape, NULL, &n), ok);
        admitted += ok;
        refused += !ok;
        fx_free(f);
    }
    assert_true(admitted > 500 && refused > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node_jobs_go_where_the_rule_says),
        cmocka_unit_test(a_cut_job_gets_whole_nodes_and_its_rest_the_emptiest),
        cmocka_unit_test(a_gang_uses_few_nodes_and_holds_all_tasks),
        cmocka_unit_test(counting_needs_no_places),
        cmocka_unit_test(admitted_means_it_fits_an_empty_cluster),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
