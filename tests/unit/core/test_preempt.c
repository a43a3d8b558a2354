/* SPDX-License-Identifier: Apache-2.0 */
/* test_preempt.c - who is made to give way, for whom, and that it was worth it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/world.h"

static uint32_t submit_tier(struct fx *f, uint32_t gpus, int64_t seconds, enum stk_tier tier)
{
    struct stk_job_spec spec = fx_job(gpus, seconds);

    spec.tier = tier;
    return fx_submit(f, spec);
}

/* ---- tier: lower levels only, no more than needed, and it then fits ---- */

/* Whether the job fits a cluster of 8-GPU nodes once these leases, and all that stop, are gone. */
static bool fits_without(const struct fx *f, const struct stk_job *j, const struct stk_event *gone,
                         uint32_t n, uint32_t but)
{
    const struct stk_demand *d = &f->s->shapes[j->shape].demand;
    uint32_t free_on[WORLD_MAX_NODES], units = 0, whole = 0, rest = 0;

    for (uint32_t i = 0; i < f->s->n_nodes; i++)
        free_on[i] = f->s->nodes[i].gpus_free;
    for (uint32_t i = 0; i < f->s->n_jobs; i++) {
        const struct stk_job *v = fx_of(f, i);
        bool leaves = v->state == STK_JOB_STOPPING;

        for (uint32_t k = 0; k < n; k++)
            leaves |= k != but && gone[k].job.i == i;
        for (uint32_t k = 0; leaves && k < v->n_pieces; k++)
            free_on[f->s->pieces[v->first_piece + k].node.i] +=
                f->s->pieces[v->first_piece + k].gpus;
    }
    for (uint32_t i = 0; i < f->s->n_nodes; i++) {
        units += free_on[i] / d->gpus;
        whole += free_on[i] == 8;
        rest += d->gpus % 8 > 0 && free_on[i] >= d->gpus % 8;
    }
    if (!d->cut || d->gpus <= 8)
        return units >= d->tasks;
    return whole >= d->gpus / 8 && (d->gpus % 8 == 0 || rest > d->gpus / 8);
}

/* What the default classes make of it. */
static bool gives_way_to(const struct stk_job *v, const struct stk_job *j)
{
    int vc = (v->priority >= 300) + (v->priority >= 800);
    int jc = (j->priority >= 300) + (j->priority >= 800);

    return v->tier != j->tier ? v->tier < j->tier : v->tier != STK_TIER_CRITICAL && vc < jc;
}

static uint32_t check_victims(struct fx *f, const struct stk_event *out, uint32_t n)
{
    const struct stk_job *j = fx_of(f, out[0].u.evict.for_job.i);

    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(out[i].type, STK_EV_EVICT);
        assert_ptr_equal(fx_of(f, out[i].u.evict.for_job.i), j);
        assert_true(gives_way_to(fx_of(f, out[i].job.i), j));
        assert_false(fits_without(f, j, out, n, i)); /* each one is needed */
    }
    assert_true(fits_without(f, j, out, n, UINT32_MAX));
    return n;
}

static void some_exits(struct fx *f, struct stk_rng *r)
{
    for (uint32_t i = 0; i < f->s->n_jobs; i++) {
        if (fx_state(f, i) == STK_JOB_STOPPING && stk_rng_below(r, 2))
            assert_int_equal(fx_exit(f, i, STK_CAUSE_EVICTED), 0);
        else if (fx_of(f, i)->lease && stk_rng_below(r, 12) == 0)
            assert_int_equal(fx_exit(f, i, STK_CAUSE_OK), 0);
    }
}

static void victims_are_lower_needed_and_enough(void **state)
{
    static const char *const backfill[] = {"none", "skip", "easy"};
    static const char *const place[] = {"pack", "spread", "first_fit"};
    struct stk_node_spec nodes[4] = {{.gpus = 8}, {.gpus = 8}, {.gpus = 8}, {.gpus = 8}};
    uint32_t evicted = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct stk_rng r;
        struct fx *f;

        stk_rng_init(&r, seed);
        f = fx_new(&(struct fx_setup){.nodes = nodes,
                                      .n_nodes = 1 + (uint32_t)seed % 4,
                                      .order = seed % 2 ? "priority" : "fifo",
                                      .backfill = backfill[seed % 3],
                                      .place = place[seed / 3 % 3],
                                      .preempt = "tier"});
        for (int i = 0; i < 80; i++) {
            struct stk_job_spec spec = fx_job(1 + (uint32_t)stk_rng_below(&r, 12), 20);
            struct stk_event out[64];
            uint32_t n;

            spec.tier = (enum stk_tier)stk_rng_below(&r, STK_TIER_MAX);
            spec.priority = (int32_t)stk_rng_below(&r, 4) * 300 - 1 + (int32_t)stk_rng_below(&r, 3);
            (void)fx_try_submit(f, &spec);
            while ((n = stk_core_decide(f->core, f->now, out, 64)) > 0) {
                if (out[0].type == STK_EV_EVICT)
                    evicted += check_victims(f, out, n);
                for (uint32_t k = 0; k < n; k++)
                    assert_int_equal(fx_apply(f, &out[k]), 0);
            }
            some_exits(f, &r);
            fx_sound(f);
        }
        stk_core_free(fx_replay(f));
        fx_free(f);
    }
    assert_true(evicted > 1000);
}

static void lowest_tier_then_priority_then_latest_start(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.preempt = "tier", .order = "priority"});
    struct stk_job_spec spec = fx_job(4, 100);
    uint32_t standard, order[3];

    (void)state;
    standard = fx_submit(f, spec);
    spec.tier = STK_TIER_BEST_EFFORT;
    spec.priority = 1;
    order[2] = fx_submit(f, spec);
    spec.priority = 0;
    order[1] = fx_submit(f, spec);
    fx_turn(f);
    order[0] = fx_submit(f, spec);
    fx_turn(f);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fx_of(f, order[i])->preemptions, 0);
        (void)submit_tier(f, 4, 100, STK_TIER_CRITICAL);
        fx_turn(f);
        for (int k = 0; k < 3; k++)
            assert_int_equal(fx_of(f, order[k])->preemptions, k <= i);
    }
    assert_int_equal(fx_state(f, standard), STK_JOB_RUNNING);
    assert_int_equal(fx_of(f, standard)->preemptions, 0);
    fx_free(f);
}

static void the_room_is_held_until_all_victims_are_gone(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.preempt = "tier", .order = "fifo"});
    uint32_t a = submit_tier(f, 8, 100, STK_TIER_BEST_EFFORT);
    uint32_t b = submit_tier(f, 8, 100, STK_TIER_BEST_EFFORT), big, sneak;

    (void)state;
    (void)fx_decide(f);
    big = submit_tier(f, 16, 10, STK_TIER_STANDARD);
    assert_int_equal(fx_decide(f), 2);
    sneak = submit_tier(f, 1, 10, STK_TIER_STANDARD);
    assert_int_equal(fx_exit(f, a, STK_CAUSE_EVICTED), 0);
    assert_int_equal(fx_decide(f), 0); /* neither the victim, first in line, nor the sneak */
    assert_int_equal(fx_state(f, sneak), STK_JOB_WAITING);
    assert_int_equal(fx_exit(f, b, STK_CAUSE_OK), 0); /* it ended by itself */
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(fx_state(f, big), STK_JOB_PLACED);
    stk_core_free(fx_replay(f));
    fx_free(f);
}

static void a_claim_that_cannot_be_met_any_more_blocks_nobody(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 8}, {.gpus = 2}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 2, .preempt = "tier"});
    uint32_t victim = submit_tier(f, 8, 100, STK_TIER_BEST_EFFORT), other;

    (void)state;
    (void)fx_decide(f);
    (void)submit_tier(f, 8, 10, STK_TIER_CRITICAL);
    assert_int_equal(fx_decide(f), 1);
    assert_int_equal(fx_node(f, 0, false), 0); /* the promised room is lost */
    other = submit_tier(f, 1, 10, STK_TIER_STANDARD);
    (void)fx_decide(f);
    assert_int_equal(fx_exit(f, victim, STK_CAUSE_NODE_LOST), 0);
    (void)fx_decide(f);
    assert_int_equal(fx_state(f, other), STK_JOB_PLACED);
    stk_core_free(fx_replay(f)); /* nor did deciding change any state */
    fx_free(f);
}

static void hundreds_of_victims_go_a_few_at_a_time(void **state)
{
    static const uint32_t caps[] = {1, 7, 256};
    const struct stk_node_spec node = {.gpus = 600, .aggregate = true};

    (void)state;
    for (int k = 0; k < 6; k++) {
        struct fx *f = fx_new(&(struct fx_setup){.nodes = &node,
                                                 .n_nodes = 1,
                                                 .place = "count",
                                                 .preempt = "tier",
                                                 .cap = caps[k % 3],
                                                 .slow_stop = k < 3 ? 0 : 5 * STK_SECOND});
        uint32_t big;

        for (int i = 0; i < 600; i++)
            (void)submit_tier(f, 1, 100000, STK_TIER_BEST_EFFORT);
        fx_turn(f);
        big = submit_tier(f, 400, 10, STK_TIER_STANDARD);
        fx_turn(f);
        fx_run(f, 5 * STK_SECOND);
        assert_int_equal(fx_state(f, big), STK_JOB_RUNNING);
        assert_int_equal(f->s->n_leased, 201);
        fx_free(f);
    }
}

/* ---- tier: it is tried again when that could help ---- */

static void a_small_release_and_a_victim_together_are_enough(void **state)
{
    static const char *const backfill[] = {"skip", "easy", "none"};
    const struct stk_node_spec node = {.gpus = 8};

    (void)state;
    for (int k = 0; k < 3; k++) {
        struct fx *f = fx_new(&(struct fx_setup){
            .nodes = &node, .n_nodes = 1, .preempt = "tier", .backfill = backfill[k]});
        uint32_t low = submit_tier(f, 3, 1000, STK_TIER_BEST_EFFORT), job, ends;

        (void)submit_tier(f, 4, 1000, STK_TIER_CRITICAL);
        ends = submit_tier(f, 1, 10, STK_TIER_CRITICAL);
        fx_turn(f);
        job = submit_tier(f, 4, 10, STK_TIER_STANDARD); /* 3 from below is not enough yet */
        fx_turn(f);
        assert_int_equal(fx_of(f, low)->preemptions, 0);
        fx_run(f, 10 * STK_SECOND);
        assert_int_equal(fx_state(f, ends), STK_JOB_DONE);
        assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
        assert_int_equal(fx_of(f, low)->preemptions, 1);
        fx_free(f);
    }
}

static void a_higher_tier_behind_one_of_the_same_size_gets_its_turn(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.preempt = "tier"});
    uint32_t first, high;

    (void)state;
    (void)submit_tier(f, 16, 1000, STK_TIER_BEST_EFFORT);
    fx_turn(f);
    first = submit_tier(f, 12, 10, STK_TIER_BEST_EFFORT);
    high = submit_tier(f, 12, 10, STK_TIER_STANDARD);
    fx_turn(f);
    assert_int_equal(fx_cancel(f, first), 0);
    fx_turn(f);
    assert_int_equal(fx_state(f, high), STK_JOB_RUNNING);
    fx_free(f);
}

/* ---- afresh ---- */

/* In the journal of this instant an eviction is followed by a start of a job that was not evicted.
 */
static void evictions_pay(struct fx *f, void *ctx)
{
    uint32_t *upto = ctx, from = *upto;
    uint32_t evicted = 0, started = 0;

    for (uint32_t i = from; i < f->n_log; i++) {
        const struct stk_event *ev = &f->log[i].ev;
        bool victim = false;

        for (uint32_t k = from; k < f->n_log; k++)
            victim |= f->log[k].ev.type == STK_EV_EVICT && f->log[k].ev.job.i == ev->job.i;
        evicted += ev->type == STK_EV_EVICT;
        started += ev->type == STK_EV_PLACE && !victim && evicted > 0;
    }
    fx_must(evicted == 0 || started > 0, "at %lld jobs gave way for nobody", (long long)f->now);
    *upto = f->n_log;
}

static void afresh_evicts_nobody_in_vain(void **state)
{
    static const char *const order[] = {"srtf", "srsf", "las"};
    uint32_t evicted = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct world w = {
            .setup = {.order = order[seed % 3], .preempt = "afresh", .place = "pack"}};
        struct stk_rng r;
        struct fx *f;
        uint32_t upto = 0;

        stk_rng_init(&r, seed);
        world_cluster(&w, &r);
        w.setup.params = seed % 3 == 2 ? "las.thresholds=5,20,60" : "";
        f = fx_new(&w.setup);
        f->on_turn = evictions_pay;
        f->ctx = &upto;
        for (int i = 0; i < 60; i++) {
            world_submit(&w, f, &r);
            fx_turn(f);
            fx_run(f, f->now + (stk_time)stk_rng_below(&r, 3000000));
        }
        fx_drain(f);
        for (uint32_t i = 0; i < f->s->n_jobs; i++)
            evicted += fx_of(f, i)->preemptions;
        fx_free(f);
    }
    assert_true(evicted > 500);
}

/* It gave way and came back at one instant, and does not go again at it; but it goes later, when
 * anything happens anywhere. */
static void who_was_spared_goes_later(void **state)
{
    const struct stk_node_spec nodes[] = {{.gpus = 8}, {.gpus = 8, .pool = {1}}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes,
                                             .n_nodes = 2,
                                             .n_pools = 2,
                                             .order = "srtf",
                                             .place = "pack",
                                             .preempt = "afresh"});
    struct stk_job_spec other = fx_job(1, 10);
    uint32_t a = fx_submit(f, fx_job(8, 100)), b, c;

    (void)state;
    fx_turn(f);
    fx_run(f, 10 * STK_SECOND);
    f->now = 10 * STK_SECOND;
    b = fx_submit(f, fx_job(8, 5));
    fx_turn(f);
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    assert_int_equal(fx_cancel(f, b), 0);
    fx_turn(f);
    c = fx_submit(f, fx_job(8, 5));
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, c), STK_JOB_WAITING);
    f->now = 11 * STK_SECOND;
    other.pool.i = 1;
    (void)fx_submit(f, other);
    fx_turn(f);
    assert_int_equal(fx_state(f, a), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, c), STK_JOB_RUNNING);
    fx_drain(f);
    fx_finish(f);
}

static void shortest_remaining_time_runs(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "srtf", .preempt = "afresh"});
    uint32_t a = fx_submit(f, fx_job(16, 100)), b, c;

    (void)state;
    fx_turn(f);
    fx_run(f, 30 * STK_SECOND);
    b = fx_submit(f, fx_job(16, 69));
    fx_turn(f); /* 69 < 70 */
    assert_int_equal(fx_state(f, b), STK_JOB_RUNNING);
    c = fx_submit(f, fx_job(16, 69));
    fx_turn(f);
    assert_int_equal(fx_state(f, c), STK_JOB_WAITING);
    fx_drain(f);
    assert_int_equal(fx_of(f, b)->ended, 99 * STK_SECOND);
    assert_int_equal(fx_of(f, c)->ended, 168 * STK_SECOND);
    assert_int_equal(fx_of(f, a)->ended, 238 * STK_SECOND);
    fx_free(f);
}

/* ---- lucid ---- */

static void lucid_places_no_pick_that_went_away_meanwhile(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "srtf", .preempt = "lucid"});
    uint32_t runs = fx_submit(f, fx_job(16, 100)), pick, held;
    struct stk_event out[8];

    (void)state;
    (void)fx_decide(f);
    f->now = STK_SECOND;
    pick = fx_submit(f, fx_job(8, 10));
    held = fx_submit(f, fx_job(8, 20));
    assert_int_equal(stk_core_decide(f->core, f->now, out, 8), 1);
    assert_int_equal(out[0].type, STK_EV_EVICT);
    assert_int_equal(fx_apply(f, &out[0]), 0);
    assert_int_equal(fx_exit(f, runs, STK_CAUSE_EVICTED), 0);
    assert_int_equal(fx_job_event(f, STK_EV_CANCEL, pick), 0);
    assert_int_equal(fx_job_event(f, STK_EV_HOLD, held), 0);
    (void)fx_decide(f); /* every proposal is accepted */
    fx_sound(f);
    fx_free(f);
}

static void lucid_does_not_stop_after_jobs_of_no_length(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.order = "srtf", .preempt = "lucid"});
    uint32_t last;

    (void)state;
    for (int i = 0; i < 5; i++)
        (void)fx_submit(f, fx_job(16, 0));
    last = fx_submit(f, fx_job(16, 10));
    fx_drain(f);
    assert_int_equal(fx_state(f, last), STK_JOB_DONE);
    fx_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(victims_are_lower_needed_and_enough),
        cmocka_unit_test(lowest_tier_then_priority_then_latest_start),
        cmocka_unit_test(the_room_is_held_until_all_victims_are_gone),
        cmocka_unit_test(a_claim_that_cannot_be_met_any_more_blocks_nobody),
        cmocka_unit_test(hundreds_of_victims_go_a_few_at_a_time),
        cmocka_unit_test(a_small_release_and_a_victim_together_are_enough),
        cmocka_unit_test(a_higher_tier_behind_one_of_the_same_size_gets_its_turn),
        cmocka_unit_test(afresh_evicts_nobody_in_vain),
        cmocka_unit_test(who_was_spared_goes_later),
        cmocka_unit_test(shortest_remaining_time_runs),
        cmocka_unit_test(lucid_places_no_pick_that_went_away_meanwhile),
        cmocka_unit_test(lucid_does_not_stop_after_jobs_of_no_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
