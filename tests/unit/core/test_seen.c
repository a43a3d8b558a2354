/* SPDX-License-Identifier: Apache-2.0 */
/* test_seen.c - the mix is learned from what is submitted, fades, and is saved; where nothing but
 * free GPUs tells nodes apart, the policy that goes by it takes the fullest of the best. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "core/part.h"
#include "core/place.h"
#include "core/verbs.h"
#include "lib/fixture.h"
#include "policy/registry.h"

static const struct stk_node_spec limited[] = {{.gpus = 4, .cpu_milli = 32000},
                                               {.gpus = 4, .cpu_milli = 64000}};

static struct fx *learner(const char *place)
{
    return fx_new(
        &(struct fx_setup){.nodes = limited, .n_nodes = 2, .place = place, .forget = true});
}

static struct stk_job_spec part(uint16_t milli, uint32_t cpu_milli)
{
    struct stk_job_spec spec = fx_job(1, 10);

    spec.demand.cut = false;
    spec.demand.gpu_milli = milli;
    spec.demand.cpu_milli = cpu_milli;
    return spec;
}

static void come(struct fx *f, struct stk_job_spec spec, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(fx_cancel(f, fx_submit(f, spec)), 0);
}

static void a_mix_is_made_from_the_first_twenty(void **state)
{
    struct fx *f = learner("stoker");

    (void)state;
    come(f, part(500, 4000), 15);
    come(f, part(250, 1000), 4);
    assert_int_equal(f->s->mix->n, 0);
    come(f, part(250, 1000), 1);
    assert_int_equal(f->s->mix->n, 2);
    assert_int_equal(f->s->mix->kind[0].gpu_milli, 500);
    assert_int_equal(f->s->mix->kind[0].cpu_milli, 4000);
    assert_true(f->s->mix->kind[0].share == 0.75 && f->s->mix->kind[1].share == 0.25);
    come(f, part(750, 1000), 79);
    assert_int_equal(f->s->mix->n, 2); /* the next is made after a hundred */
    come(f, part(750, 1000), 1);
    assert_int_equal(f->s->mix->kind[0].gpu_milli, 750);
    fx_finish(f);
}

static void a_gang_counts_by_its_pieces(void **state)
{
    struct fx *f = learner("stoker");
    struct stk_job_spec spec = part(500, 1000);

    (void)state;
    spec.demand.tasks = 3;
    come(f, spec, 10);
    come(f, fx_job(8, 1), 10); /* cut into two nodes of 4 */
    assert_int_equal(f->s->mix->n, 2);
    assert_true(fabs(f->s->mix->kind[0].share - 0.4) < 1e-9); /* fewer, and they ask for more */
    assert_int_equal(f->s->mix->kind[0].gpus, 4);
    assert_int_equal(f->s->mix->kind[0].gpu_milli, 1000);
    assert_true(fabs(f->s->mix->kind[1].share - 0.6) < 1e-9);
    fx_finish(f);
}

static void what_no_longer_comes_is_forgotten(void **state)
{
    struct fx *f = learner("fgd");

    (void)state;
    come(f, part(300, 2000), 1000);
    come(f, part(600, 2000), 4 * STK_SEEN_SUM);
    assert_true(f->s->seen->sum <= STK_SEEN_SUM);
    assert_int_equal(f->s->mix->n, 1);
    assert_int_equal(f->s->mix->kind[0].gpu_milli, 600);
    fx_free(f);
}

static void more_kinds_than_there_is_room_for(void **state)
{
    struct fx *f = learner("stoker");

    (void)state;
    for (uint32_t i = 0; i < 4 * STK_SEEN_KINDS; i++) {
        come(f, part(200, 1 + i), 1);
        come(f, part(900, 5), 1);
    }
    assert_true(f->s->seen->n <= STK_SEEN_KINDS);
    assert_int_equal(f->s->mix->kind[0].gpu_milli, 900);
    fx_free(f);
}

/* One in five hundred, and a twenty-fifth of the demand. */
static void rare_tasks_of_many_gpus_are_in_the_mix(void **state)
{
    static const char *const place[] = {"stoker", "fgd"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct fx *f = learner(place[i]);
        bool found = false;

        come(f, fx_job(4, 1), 1);
        come(f, part(200, 1000), 499);
        for (uint32_t k = 0; k < f->s->mix->n; k++)
            found |= f->s->mix->kind[k].gpus == 4;
        assert_true(found == (i == 0)); /* FGD, as published, goes by how often they come */
        fx_finish(f);
    }
}

static bool same_mix(const struct stk_mix *a, const struct stk_mix *b)
{
    return a->n == b->n && memcmp(a->kind, b->kind, a->n * sizeof(*a->kind)) == 0;
}

static void it_is_saved(void **state)
{
    const struct fx_setup pack = {.nodes = limited, .n_nodes = 2, .place = "pack", .forget = true};
    struct fx *f = learner("stoker");
    struct stk_core *again, *other;

    (void)state;
    come(f, part(500, 4000), 60);
    come(f, part(100, 100), 50);
    come(f, part(70, 100), 33); /* counted, and not in the mix yet */
    again = fx_reload(f, f->core, NULL);
    assert_true(stk_core_digest(again) == fx_digest(f));
    assert_true(same_mix(stk_core_state(again)->mix, f->s->mix));
    assert_int_equal(stk_core_state(again)->seen->n, 3);
    assert_memory_equal(stk_core_state(again)->place_st, f->s->place_st,
                        stk_place_stoker.state_size);
    stk_core_free(again);
    other = fx_reload(f, f->core, &pack);
    assert_null(stk_core_state(other)->seen);
    stk_core_free(other);
    fx_finish(f);
}

/* However many tasks a job has, what was counted can be read again. */
static void wide_gangs_are_saved_too(void **state)
{
    static const struct stk_node_spec node = {.gpus = 1};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = &node, .n_nodes = 1, .place = "stoker"});
    struct stk_job_spec spec = fx_job(0, 10);

    (void)state;
    spec.demand.cut = false;
    spec.demand.tasks = STK_MAX_TASKS;
    for (uint32_t i = 0; i < 5; i++) {
        (void)fx_submit(f, spec);
        stk_core_free(fx_reload(f, f->core, NULL));
    }
    fx_finish(f);
}

static void one_that_does_not_learn_comes_to_learn(void **state)
{
    const struct fx_setup setup = {
        .nodes = limited, .n_nodes = 2, .place = "stoker", .forget = true};
    struct fx *f = learner("pack");
    struct stk_core *c;

    (void)state;
    come(f, part(500, 4000), 60);
    c = fx_reload(f, f->core, &setup);
    assert_int_equal(stk_core_state(c)->seen->jobs, 0);
    assert_int_equal(stk_core_state(c)->seen->next, 20);
    stk_core_free(c);
    fx_finish(f);
}

/* What the score of every node says, prices of types taken off, and of the best the fullest. */
static uint32_t by_score(const struct stk_state *s, uint32_t gpus)
{
    const struct stk_want w = {.gpu_types = STK_ANY_GPU_TYPE, .gpus = gpus};
    uint32_t best = STK_NONE, gpu = 0;
    double most = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++) {
        double v;

        if (!s->nodes[i].up || s->nodes[i].gpus_free < gpus)
            continue;
        v = s->place->score(s->place_st, s, i, &w, &gpu) -
            s->prices.type[s->nodes[i].gpu_type] * 1000 * gpus;
        if (best == STK_NONE || v > most + 1e-6 ||
            (v > most - 1e-6 && s->nodes[i].gpus_free < s->nodes[best].gpus_free)) {
            best = i;
            most = v;
        }
    }
    return best;
}

static void whole_gpus_go_where_the_score_says(void **state)
{
    struct stk_node_spec nodes[40];
    struct stk_rng r;
    struct fx *f;
    uint32_t placed = 0;

    (void)state;
    stk_rng_init(&r, 7);
    for (uint32_t i = 0; i < 40; i++)
        nodes[i] = (struct stk_node_spec){.gpus = 8, .gpu_type = i % 3 == 0};
    f = fx_new(
        &(struct fx_setup){.nodes = nodes, .n_nodes = 40, .place = "stoker", .forget = true});
    for (uint32_t i = 0; i < 4000; i++) {
        struct stk_job_spec spec = fx_job(1 + (uint32_t)stk_rng_below(&r, 8), 1 + i % 61);
        uint32_t job, want = 0;

        spec.demand.cut = false;
        if (i % 5 == 0) {
            spec.demand.gpus = 1;
            spec.demand.gpu_milli = 400;
            spec.demand.gpu_types = 1;
        } else if (f->s->mix->n > 0 && f->s->n_waiting == 0) {
            want = 1;
        }
        job = fx_submit(f, spec);
        if (want && stk_place_try(&f->core->s, fx_of(f, job)->shape, NULL, &want)) {
            assert_int_equal(f->s->try_pieces[0].node.i, by_score(f->s, spec.demand.gpus));
            placed++;
        }
        f->now += STK_SECOND / 2;
        fx_turn(f);
    }
    assert_true(placed > 500);
    fx_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mix_is_made_from_the_first_twenty),
        cmocka_unit_test(a_gang_counts_by_its_pieces),
        cmocka_unit_test(what_no_longer_comes_is_forgotten),
        cmocka_unit_test(more_kinds_than_there_is_room_for),
        cmocka_unit_test(rare_tasks_of_many_gpus_are_in_the_mix),
        cmocka_unit_test(it_is_saved),
        cmocka_unit_test(wide_gangs_are_saved_too),
        cmocka_unit_test(one_that_does_not_learn_comes_to_learn),
        cmocka_unit_test(whole_gpus_go_where_the_score_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
