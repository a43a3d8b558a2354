/* SPDX-License-Identifier: Apache-2.0 */
/* test_alloc.c - deciding allocates nothing, whatever the policies; applying may, and when memory
 * runs out it refuses and has changed nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/world.h"

/* The fixture aborts when decide() allocates; here it is made to decide a lot, in every way. */
static void deciding_allocates_nothing(void **state)
{
    struct world w = {.exact = false};
    struct stk_rng r;
    uint64_t decisions = 0;

    (void)state;
    for (uint32_t i = 0; world_combination(&w, i); i++) {
        struct fx *f;

        stk_rng_init(&r, i);
        world_cluster(&w, &r);
        world_delays(&w, &r);
        f = fx_new(&w.setup);
        for (int k = 0; k < 40; k++) {
            world_act(&w, f, &r);
            fx_turn(f);
            fx_run(f, f->now + (stk_time)stk_rng_below(&r, 2000000));
        }
        decisions += f->decisions;
        fx_free(f);
    }
    assert_true(decisions > 1000);
}

static void asking_why_allocates_nothing(void **state)
{
    struct world w = {.exact = false};
    struct stk_rng r;

    (void)state;
    for (uint32_t i = 0; world_combination(&w, i); i += 7) {
        uint64_t calls;
        struct fx *f;

        stk_rng_init(&r, i);
        world_cluster(&w, &r);
        f = fx_new(&w.setup);
        for (int k = 0; k < 20; k++)
            world_act(&w, f, &r);
        fx_turn(f);
        calls = f->heap.calls;
        for (uint32_t k = 0; k < f->s->n_jobs; k++)
            if (fx_state(f, k) != STK_JOB_NONE)
                (void)fx_why(f, k);
        assert_int_equal(calls, f->heap.calls);
        fx_free(f);
    }
}

/* The same stream of events with memory refused at some point: refused events change nothing, and
 * once there is memory again all goes on. */
static void without_memory_an_event_is_refused_and_changes_nothing(void **state)
{
    uint32_t refused = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 120; seed++) {
        struct world w = {.exact = true};
        struct stk_rng r;
        struct fx *f;

        stk_rng_init(&r, seed);
        world_policies(&w, &r);
        world_cluster(&w, &r);
        f = fx_new(&w.setup);
        for (int i = 0; i < 60; i++) {
            struct stk_dep deps[4];
            const struct stk_job_spec spec = world_job(&w, f, &r, deps);
            uint64_t before = fx_digest(f);
            int rc;

            f->heap.fail_at = f->heap.calls + 1 + stk_rng_below(&r, 3);
            rc = fx_try_submit(f, &spec);
            if (rc == -ENOMEM) {
                refused++;
                assert_true(fx_digest(f) == before);
                fx_sound(f);
            }
            f->heap.fail_at = 0;
            fx_turn(f);
        }
        fx_drain(f);
        fx_sound(f);
        stk_core_free(fx_replay(f));
        fx_free(f);
    }
    assert_true(refused > 100);
}

static void starts_and_ends_without_memory_are_refused_whole(void **state)
{
    uint32_t refused = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct world w = {.exact = true};
        struct stk_rng r;
        struct fx *f;

        stk_rng_init(&r, seed);
        world_policies(&w, &r);
        world_cluster(&w, &r);
        f = fx_new(&w.setup);
        for (int i = 0; i < 400; i++) {
            uint64_t before = fx_digest(f);

            f->heap.fail_at = f->heap.calls + 1 + stk_rng_below(&r, 2);
            if (!world_hostile(&w, f, &r)) {
                assert_true(fx_digest(f) == before);
                refused += f->heap.calls >= f->heap.fail_at;
            }
            fx_sound(f);
            f->heap.fail_at = 0;
            (void)world_hostile(&w, f, &r);
        }
        stk_core_free(fx_replay(f));
        fx_free(f);
    }
    assert_true(refused > 50);
}

static void a_core_that_cannot_be_made_leaves_nothing(void **state)
{
    const struct stk_node_spec nodes[3] = {{.gpus = 8}, {.gpus = 8, .gpu_type = 1}, {.gpus = 4}};
    struct fx *f = fx_new(
        &(struct fx_setup){.nodes = nodes, .n_nodes = 3, .order = "las", .preempt = "lucid"});
    const struct stk_core_config cfg = {.nodes = nodes,
                                        .n_nodes = 3,
                                        .n_pools = 1,
                                        .order = f->s->order,
                                        .backfill = f->s->backfill,
                                        .place = f->s->place,
                                        .preempt = f->s->preempt,
                                        .admit = f->s->admit,
                                        .params = &(struct stk_params){.n = 0}};
    int rc = -ENOMEM;

    (void)state;
    for (uint64_t at = 1; rc < 0; at++) {
        struct fx_heap heap = {.fail_at = at};
        const struct stk_mem mem = fx_mem(&heap);
        struct stk_core *core = NULL;

        rc = stk_core_new(&cfg, &mem, &core, NULL);
        assert_true(rc == 0 || rc == -ENOMEM);
        assert_true(rc == 0 || core == NULL);
        heap.fail_at = 0;
        stk_core_free(core);
        assert_int_equal(heap.live, 0);
        assert_true(at < 100);
    }
    stk_core_free(NULL);
    fx_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deciding_allocates_nothing),
        cmocka_unit_test(asking_why_allocates_nothing),
        cmocka_unit_test(without_memory_an_event_is_refused_and_changes_nothing),
        cmocka_unit_test(starts_and_ends_without_memory_are_refused_whole),
        cmocka_unit_test(a_core_that_cannot_be_made_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
