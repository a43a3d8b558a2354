/* SPDX-License-Identifier: Apache-2.0 */
/* test_level.c - tiers and, inside them, classes of priority: who gives way to whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/core.h"
#include "core/evictable.h"
#include "core/place.h"
#include "core/txn.h"
#include "lib/world.h"
#include "policy/registry.h"

#define BATCH 100
#define TRAINING 500
#define INFERENCE 1000

static uint32_t submit(struct fx *f, uint32_t gpus, enum stk_tier tier, int32_t priority)
{
    struct stk_job_spec spec = fx_job(gpus, 100);

    spec.tier = tier;
    spec.priority = priority;
    return fx_submit(f, spec);
}

static struct fx *one_node(const char *params)
{
    static const struct stk_node_spec node = {.gpus = 8};

    return fx_new(&(struct fx_setup){.nodes = &node,
                                     .n_nodes = 1,
                                     .order = "priority",
                                     .backfill = "easy",
                                     .preempt = "tier",
                                     .params = params});
}

/* One job runs on all there is, another comes: whether the first gives way. */
static bool gives_way(const char *params, enum stk_tier tier, int32_t priority, enum stk_tier to,
                      int32_t to_priority)
{
    struct fx *f = one_node(params);
    uint32_t first = submit(f, 8, tier, priority), second;
    bool gone;

    fx_turn(f);
    second = submit(f, 8, to, to_priority);
    fx_turn(f);
    gone = fx_of(f, first)->preemptions > 0;
    assert_int_equal(fx_state(f, second), gone ? STK_JOB_RUNNING : STK_JOB_WAITING);
    fx_sound(f);
    fx_drain(f); /* it comes back behind the other and is not chased about */
    assert_int_equal(fx_state(f, first), STK_JOB_DONE);
    assert_int_equal(fx_of(f, first)->preemptions, gone);
    assert_int_equal(fx_of(f, second)->preemptions, 0);
    fx_finish(f);
    return gone;
}

static void a_lower_class_gives_way_inside_a_tier(void **state)
{
    static const enum stk_tier tiers[] = {STK_TIER_BEST_EFFORT, STK_TIER_STANDARD};

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_true(gives_way(NULL, tiers[i], BATCH, tiers[i], TRAINING));
        assert_true(gives_way(NULL, tiers[i], TRAINING, tiers[i], INFERENCE));
        assert_true(gives_way(NULL, tiers[i], BATCH, tiers[i], INFERENCE));
        assert_true(gives_way(NULL, tiers[i], -5, tiers[i], 300));
        assert_true(gives_way(NULL, tiers[i], 299, tiers[i], 300));
        assert_true(gives_way(NULL, tiers[i], 799, tiers[i], 800));
    }
}

static void no_other_gives_way_inside_a_tier(void **state)
{
    static const int32_t same[][2] = {{0, 299}, {BATCH, BATCH}, {300, 799}, {800, 1000000000}};
    const enum stk_tier t = STK_TIER_STANDARD;

    (void)state;
    assert_false(gives_way(NULL, t, TRAINING, t, BATCH));
    assert_false(gives_way(NULL, t, INFERENCE, t, TRAINING));
    for (int i = 0; i < 4; i++) {
        assert_false(gives_way(NULL, t, same[i][0], t, same[i][1]));
        assert_false(gives_way(NULL, t, same[i][1], t, same[i][0]));
    }
}

static void the_tier_counts_before_the_class(void **state)
{
    (void)state;
    assert_false(gives_way(NULL, STK_TIER_STANDARD, BATCH, STK_TIER_BEST_EFFORT, INFERENCE));
    assert_true(gives_way(NULL, STK_TIER_BEST_EFFORT, INFERENCE, STK_TIER_STANDARD, BATCH));
    assert_true(gives_way(NULL, STK_TIER_STANDARD, INFERENCE, STK_TIER_CRITICAL, BATCH));
}

static void critical_jobs_give_way_to_nobody(void **state)
{
    static const char *const params[] = {NULL, "tier.classes=", "tier.classes=1"};

    (void)state;
    for (int i = 0; i < 3; i++)
        for (int t = 0; t < STK_TIER_MAX; t++)
            assert_false(
                gives_way(params[i], STK_TIER_CRITICAL, -BATCH, (enum stk_tier)t, INFERENCE));
}

static void classes_are_a_parameter(void **state)
{
    const enum stk_tier t = STK_TIER_STANDARD;

    (void)state;
    assert_false(gives_way("tier.classes=", t, BATCH, t, INFERENCE));
    assert_true(gives_way("tier.classes=", STK_TIER_BEST_EFFORT, INFERENCE, t, BATCH));
    assert_true(gives_way("tier.classes=600", t, TRAINING, t, 600));
    assert_false(gives_way("tier.classes=600", t, BATCH, t, 599));
    assert_false(gives_way("tier.classes=600", t, 600, t, INFERENCE));
    assert_true(gives_way("tier.classes=-10,0", t, -11, t, -10));
    assert_true(gives_way("tier.classes=-10,0", t, -1, t, 0));
    assert_false(gives_way("tier.classes=-10,0", t, 0, t, INFERENCE));
}

static void wrong_classes_are_refused(void **state)
{
    static const char *const wrong[] = {"800,300", "300,300", "300,", "x", "1000000001"};
    const struct stk_param *decl = stk_param_find("tier.classes", NULL);
    struct stk_params p = {.n = 0};
    struct stk_err err;
    void *st = test_calloc(1, stk_preempt_tier.state_size);

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(stk_params_set(&p, decl, wrong[i], &err), -EINVAL);
    assert_int_equal(stk_params_set(&p, decl, "1,2,3", &err), 0); /* a list, but too long a one */
    assert_int_equal(stk_preempt_tier.init(st, &p, &err), -EINVAL);
    assert_non_null(strstr(err.text, "at most 2"));
    assert_int_equal(stk_params_set(&p, decl, "1,2", &err), 0);
    assert_int_equal(stk_preempt_tier.init(st, &p, &err), 0);
    assert_true(stk_preempt_tier.levels(st) <= STK_LEVEL_MAX);
    test_free(st);
}

static void lowest_tier_then_class_then_priority_then_latest_start(void **state)
{
    struct fx *f = one_node(NULL);
    uint32_t order[4];

    (void)state;
    order[3] = submit(f, 2, STK_TIER_STANDARD, TRAINING);
    order[1] = submit(f, 2, STK_TIER_STANDARD, BATCH);
    order[0] = submit(f, 2, STK_TIER_BEST_EFFORT, INFERENCE);
    fx_turn(f);
    order[2] = submit(f, 2, STK_TIER_STANDARD, BATCH + 1);
    fx_turn(f);
    for (int i = 0; i < 4; i++) {
        (void)submit(f, 2, STK_TIER_STANDARD, INFERENCE);
        fx_turn(f);
        for (int k = 0; k < 4; k++)
            assert_int_equal(fx_of(f, order[k])->preemptions, k <= i);
    }
    fx_finish(f);
    f = one_node(NULL);
    order[1] = submit(f, 4, STK_TIER_STANDARD, BATCH);
    fx_turn(f);
    order[0] = submit(f, 4, STK_TIER_STANDARD, BATCH);
    fx_turn(f);
    (void)submit(f, 4, STK_TIER_STANDARD, TRAINING);
    fx_turn(f);
    assert_int_equal(fx_of(f, order[0])->preemptions, 1);
    assert_int_equal(fx_of(f, order[1])->preemptions, 0);
    fx_finish(f);
}

static void no_more_victims_than_needed(void **state)
{
    struct fx *f = one_node(NULL);
    uint32_t small = submit(f, 2, STK_TIER_STANDARD, 0), large, other, job;

    (void)state;
    large = submit(f, 4, STK_TIER_STANDARD, 1);
    other = submit(f, 2, STK_TIER_STANDARD, 2);
    fx_turn(f);
    job = submit(f, 4, STK_TIER_STANDARD, TRAINING);
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_RUNNING);
    assert_int_equal(fx_of(f, large)->preemptions, 1); /* it alone suffices */
    assert_int_equal(fx_of(f, small)->preemptions, 0);
    assert_int_equal(fx_of(f, other)->preemptions, 0);
    job = submit(f, 8, STK_TIER_STANDARD, TRAINING); /* four are training: nobody goes in vain */
    fx_turn(f);
    assert_int_equal(fx_state(f, job), STK_JOB_WAITING);
    assert_int_equal(fx_of(f, small)->preemptions, 0);
    fx_finish(f);
}

/* ---- the counters say what a trial says ---- */

/* Whether it fits when all that it may evict, and all that stop, are gone. */
static bool fits_alone(struct stk_state *s, const struct stk_job *j)
{
    stk_txn_mark mark = stk_txn_begin(s);
    uint32_t n;
    bool fits;

    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *v = &s->jobs[i];

        if (v->lease && v->pool == j->pool &&
            (v->state == STK_JOB_STOPPING || v->level < stk_evictable_below(s, j)))
            stk_txn_give_job(s, v);
    }
    fits = stk_place_try(s, j->shape, NULL, &n);
    stk_txn_rollback(s, mark);
    return fits;
}

struct seen {
    const struct world *w;
    uint32_t yes, no;
};

static void check_counters(struct fx *f, void *ctx)
{
    struct stk_state *s = (struct stk_state *)(uintptr_t)f->s; /* a trial is rolled back */
    struct seen *seen = ctx;

    fx_sound(f);
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];
        bool could, fits;

        if (j->state != STK_JOB_WAITING || j->gpus == 0)
            continue;
        could = stk_evictable_could(s, j);
        fits = fits_alone(s, j);
        fx_must(could || !fits, "job %u fits, the counters say no (%s)", j->number,
                world_name(seen->w));
        /* CPU, memory, who shares, places and the very GPUs of one that sleeps are not counted */
        fx_must(fits || !could || seen->w->cpu_jobs || seen->w->parts || seen->w->pairs ||
                    seen->w->mig || j->slept || s->shapes[j->shape].demand.gpu_mem_mib ||
                    seen->w->topology,
                "job %u does not fit, the counters say yes (%s)", j->number, world_name(seen->w));
        seen->yes += could;
        seen->no += !could;
    }
}

static void the_counters_say_what_a_trial_says(void **state)
{
    static const char *const params[] = {"", "tier.classes=", "tier.classes=300"};
    static const char *const place[] = {"pack", "spread", "first_fit", "count"};
    struct seen seen = {0};

    (void)state;
    for (uint64_t seed = 0; seed < 150; seed++) {
        struct world w = {.setup = {.order = "priority",
                                    .backfill = seed % 2 ? "easy" : "skip",
                                    .place = place[seed % 4],
                                    .preempt = "tier",
                                    .params = params[seed % 3]}};
        struct stk_rng r;
        struct fx *f;

        stk_rng_init(&r, seed);
        world_cluster(&w, &r);
        world_plain(&w); /* counters know GPUs only */
        w.exclusive = false;
        w.no_class = seed % 5 < 2;
        world_delays(&w, &r);
        f = fx_new(&w.setup);
        f->on_turn = check_counters;
        f->ctx = &seen;
        seen.w = &w;
        for (int i = 0; i < 60; i++) {
            world_act(&w, f, &r);
            fx_turn(f);
            fx_run(f, f->now + (stk_time)stk_rng_below(&r, 3000000));
        }
        fx_free(f);
    }
    assert_true(seen.yes > 1000 && seen.no > 1000);
}

/* The level follows from the policy of today, not from the one under which the job came. */
static void levels_are_made_anew_when_a_state_is_loaded(void **state)
{
    static const struct stk_node_spec node = {.gpus = 8};
    const struct fx_setup off = {.nodes = &node,
                                 .n_nodes = 1,
                                 .order = "priority",
                                 .preempt = "tier",
                                 .params = "tier.classes="};
    struct fx *f = one_node(NULL);
    struct stk_core *other;
    struct stk_err err;
    uint32_t job;

    (void)state;
    job = submit(f, 8, STK_TIER_STANDARD, TRAINING);
    fx_turn(f);
    assert_int_equal(fx_of(f, job)->level, 4);
    other = fx_reload(f, f->core, &off);
    assert_int_equal(stk_core_state(other)->jobs[job].level, 1);
    assert_int_equal(stk_core_state(other)->n_levels, 3);
    assert_true(stk_core_sound(other, &err));
    stk_core_free(other);
    fx_finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lower_class_gives_way_inside_a_tier),
        cmocka_unit_test(no_other_gives_way_inside_a_tier),
        cmocka_unit_test(the_tier_counts_before_the_class),
        cmocka_unit_test(critical_jobs_give_way_to_nobody),
        cmocka_unit_test(classes_are_a_parameter),
        cmocka_unit_test(wrong_classes_are_refused),
        cmocka_unit_test(lowest_tier_then_class_then_priority_then_latest_start),
        cmocka_unit_test(no_more_victims_than_needed),
        cmocka_unit_test(the_counters_say_what_a_trial_says),
        cmocka_unit_test(levels_are_made_anew_when_a_state_is_loaded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
