/* SPDX-License-Identifier: Apache-2.0 */
/* test_conformance.c - what every policy must do, for every combination the registry allows: leave
 * a sound state after each turn, decide the same twice and in steps of any size, allocate nothing
 * (the fixture sees to that), and bring every job to its end when no more come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/world.h"
#include "policy/registry.h"

static void check_turn(struct fx *f, void *ctx)
{
    (void)ctx;
    fx_sound(f);
    world_within_limits(f);
}

static struct fx *live(const struct world *w, uint64_t seed, uint32_t cap)
{
    struct world copy = *w;
    struct stk_rng r;
    struct fx *f;

    stk_rng_init(&r, seed);
    copy.setup.nodes = copy.nodes;
    copy.setup.tenants = copy.tenants;
    copy.setup.queues = copy.queues;
    copy.setup.cap = cap;
    copy.setup.patient = true;
    f = fx_new(&copy.setup);
    f->setup.nodes = w->nodes;
    f->setup.tenants = w->tenants;
    f->setup.queues = w->queues;
    f->on_turn = check_turn;
    for (int i = 0; i < 40; i++) {
        f->now += STK_SECOND; /* nothing but this happens at such a time: one turn per instant */
        world_act(w, f, &r);
        fx_turn(f);
        fx_run(f, f->now + (stk_time)stk_rng_below(&r, 1500000));
    }
    f->now += STK_SECOND;
    world_calm(f);
    fx_drain(f);
    return f;
}

static void all_ended(const struct fx *f, const struct world *w)
{
    for (uint32_t i = 0; i < f->s->n_jobs; i++)
        fx_must(fx_state(f, i) == STK_JOB_DONE || fx_state(f, i) == STK_JOB_NONE,
                "job %u ends (%s)", fx_of(f, i)->number, world_name(w));
}

static void try_combination(struct world *w, uint64_t seed, bool delays)
{
    static const uint32_t caps[] = {256, 256, 1, 2};
    bool whole = stk_preempt_find(w->setup.preempt)->pass != NULL;
    uint64_t digest = 0;
    struct stk_rng r;

    stk_rng_init(&r, seed);
    world_cluster(w, &r);
    w->setup.late_start = w->setup.slow_stop = 0;
    w->setup.crash_pct = 0;
    if (delays)
        world_delays(w, &r);
    w->exact = seed % 2;
    for (int i = 0; i < 4; i++) {
        struct fx *f = live(w, seed, caps[i]);

        all_ended(f, w);
        stk_core_free(fx_replay(f));
        /* who decides a pool whole looks at it anew after each part of an answer */
        fx_must(i == 0 || fx_digest(f) == digest || (i > 1 && whole), "the same at cap %u (%s)",
                caps[i], world_name(w));
        digest = i == 0 ? fx_digest(f) : digest;
        fx_free(f);
    }
}

static void every_combination_keeps_the_contract(void **state)
{
    struct world w = {.exact = false};
    uint32_t n = 0;

    (void)state;
    for (; world_combination(&w, n); n++) {
        w.setup.params = strcmp(w.setup.order, "las") == 0 ? "las.thresholds=8,30" : "";
        try_combination(&w, n, false);
        try_combination(&w, 1000 + n, true);
    }
    assert_true(n >= 7 * 4 * 4 * 2);
}

static void every_policy_says_what_it_is(void **state)
{
    (void)state;
    for (size_t i = 0; stk_orders[i]; i++)
        assert_true(stk_orders[i]->help[0] && stk_orders[i]->key && stk_orders[i]->tick > 0 &&
                    stk_order_find(stk_orders[i]->name) == stk_orders[i]);
    for (size_t i = 0; stk_backfills[i]; i++)
        assert_true(stk_backfills[i]->help[0] &&
                    stk_backfill_find(stk_backfills[i]->name) == stk_backfills[i]);
    for (size_t i = 0; stk_places[i]; i++)
        assert_true(stk_places[i]->help[0] && stk_places[i]->pick && stk_places[i]->pick_rest &&
                    stk_place_find(stk_places[i]->name) == stk_places[i]);
    for (size_t i = 0; stk_preempts[i]; i++)
        assert_true(stk_preempts[i]->help[0] &&
                    stk_preempt_find(stk_preempts[i]->name) == stk_preempts[i]);
    for (size_t i = 0; stk_admits[i]; i++)
        assert_true(stk_admits[i]->help[0] && stk_admits[i]->check &&
                    stk_admit_find(stk_admits[i]->name) == stk_admits[i]);
    assert_null(stk_order_find("no such"));
    assert_null(stk_preempt_find(""));
}

static void every_bundle_names_policies_that_go_together(void **state)
{
    (void)state;
    for (const struct stk_bundle *b = stk_bundles; b->name; b++) {
        const struct stk_order_ops *o = stk_order_find(b->order);
        const struct stk_preempt_ops *e = stk_preempt_find(b->preempt);

        assert_true(o && e && stk_backfill_find(b->backfill) && stk_place_find(b->place) &&
                    stk_admit_find(b->admit));
        assert_true(!e->pass || o->preemptive);
        assert_ptr_equal(stk_bundle_find(b->name), b);
        assert_true(b->help[0]);
    }
    assert_null(stk_bundle_find("no such"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_combination_keeps_the_contract),
        cmocka_unit_test(every_policy_says_what_it_is),
        cmocka_unit_test(every_bundle_names_policies_that_go_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
