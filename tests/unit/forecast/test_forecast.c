/* SPDX-License-Identifier: Apache-2.0 */
/* test_forecast.c - when waiting jobs will start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "forecast/forecast.h"
#include "lib/world.h"

#define S STK_SECOND

static struct stk_predict *fresh(struct fx *f)
{
    const struct stk_mem mem = fx_mem(&f->heap);
    struct stk_predict *p = stk_predict_new(&mem);

    assert_non_null(p);
    return p;
}

/* In small steps it is the same. */
static struct stk_expected ask_in_steps(struct fx *f, const struct stk_forecast_config *cfg,
                                        uint32_t job)
{
    struct stk_forecast *forecast = NULL;
    struct stk_expected e = {0};
    uint32_t steps = 0;
    int rc = stk_forecast_begin(f->core, cfg, &job, 1, &forecast, &f->err);

    assert_int_equal(rc, 0);
    while ((rc = stk_forecast_step(forecast, 1 + steps % 5, &f->err)) > 0)
        steps++;
    assert_int_equal(rc, 0);
    assert_true(steps > 0);
    stk_forecast_read(forecast, &e);
    stk_forecast_free(forecast);
    return e;
}

static struct stk_expected ask(struct fx *f, const struct stk_predict *p, uint32_t job)
{
    const struct stk_forecast_config cfg = {
        .now = f->now, .predict = p, .draws = STK_FORECAST_DRAWS, .most_events = 10000, .seed = 7};
    uint64_t before = fx_digest(f), live = f->heap.live;
    struct stk_expected e, again;

    assert_int_equal(stk_forecast(f->core, &cfg, &job, 1, &e, &f->err), 0);
    again = ask_in_steps(f, &cfg, job);
    assert_true(e.p10 == again.p10 && e.p50 == again.p50 && e.p90 == again.p90);
    assert_true(e.end_p50 == again.end_p50 && e.end_p90 == again.end_p90);
    assert_true(fx_digest(f) == before);
    assert_true(f->heap.live == live);
    fx_sound(f);
    return e;
}

static void estimates_hold_where_nothing_else_is_known(void **state)
{
    struct fx *f = fx_plain();
    struct stk_predict *p = fresh(f);
    struct stk_expected e;
    uint32_t job;

    (void)state;
    (void)fx_submit(f, fx_job(16, 30));
    fx_turn(f);
    (void)fx_submit(f, fx_job(16, 100));
    job = fx_submit(f, fx_job(8, 10));
    f->now = 10 * S;
    e = ask(f, p, job);
    assert_true(e.p50 == 130 * S && e.p90 == 130 * S);
    stk_predict_free(p);
    fx_drain(f);
    fx_finish(f);
}

static void what_users_needed_before_counts(void **state)
{
    struct fx *f = fx_plain();
    struct stk_predict *p = fresh(f);
    struct stk_expected e;
    uint32_t job;

    (void)state;
    for (int64_t i = 1; i <= 10; i++) /* a tenth to all of what they say */
        stk_predict_ran(p, &(struct stk_run_kind){0, 16, 100 * S}, i * 10 * S);
    (void)fx_submit(f, fx_job(16, 1000));
    fx_turn(f);
    job = fx_submit(f, fx_job(8, 10));
    e = ask(f, p, job);
    assert_in_range(e.p50, 300 * S, 800 * S);
    assert_in_range(e.p90, 700 * S, 1000 * S);
    assert_true(e.p50 < e.p90);
    f->now = 650 * S; /* it has run so long */
    e = ask(f, p, job);
    assert_in_range(e.p50, 700 * S, 1000 * S);
    stk_predict_free(p);
    fx_drain(f);
    fx_finish(f);
}

static void a_job_that_fits_starts_now(void **state)
{
    struct fx *f = fx_plain();
    struct stk_predict *p = fresh(f);
    uint32_t job = fx_submit(f, fx_job(8, 10));

    (void)state;
    f->now = 3 * S;
    assert_true(ask(f, p, job).p90 == 3 * S);
    fx_turn(f);
    assert_true(ask(f, p, job).p90 == 3 * S);
    stk_predict_free(p);
    fx_drain(f);
    fx_finish(f);
}

static void what_cannot_be_foreseen_is_never(void **state)
{
    struct fx *f = fx_plain();
    struct stk_predict *p = fresh(f);
    struct stk_job_spec held = fx_job(8, 10);
    uint32_t job;

    (void)state;
    held.held = true;
    job = fx_submit(f, held);
    assert_true(ask(f, p, job).p50 == STK_NEVER_TIME);
    (void)fx_cancel(f, job);
    stk_predict_free(p);
    fx_drain(f);
    fx_finish(f);
}

static void effort_is_bounded(void **state)
{
    struct fx *f = fx_plain();
    struct stk_predict *p = fresh(f);
    struct stk_forecast_config cfg = {.predict = p, .draws = 3, .most_events = 50, .seed = 1};
    struct stk_expected e;
    uint32_t job = 0;

    (void)state;
    for (int i = 0; i < 200; i++)
        job = fx_submit(f, fx_job(16, 10));
    assert_int_equal(stk_forecast(f->core, &cfg, &job, 1, &e, &f->err), 0);
    assert_true(e.p50 == STK_NEVER_TIME);
    cfg.most_events = 10000;
    assert_int_equal(stk_forecast(f->core, &cfg, &job, 1, &e, &f->err), 0);
    assert_true(e.p50 == 1990 * S);
    stk_predict_free(p);
    fx_drain(f);
    fx_finish(f);
}

struct places {
    struct stk_piece piece[4];
    uint32_t n, calls;
};

static void note_place(void *ctx, uint32_t i, const struct stk_piece *pieces, uint32_t n)
{
    struct places *p = ctx;

    assert_true(i == 0 && n <= 4);
    for (uint32_t k = 0; k < n; k++)
        p->piece[k] = pieces[k];
    p->n = n;
    p->calls++;
}

/* Two nodes of eight: what needs eight starts where the shorter job ends. */
static void says_where(void **state)
{
    struct fx *f = fx_plain();
    struct stk_predict *p = fresh(f);
    struct places at = {.n = 0};
    struct stk_forecast_config cfg = {
        .predict = p, .draws = 5, .most_events = 10000, .seed = 1, .ctx = &at, .where = note_place};
    uint32_t shorter, job;
    struct stk_expected e;

    (void)state;
    (void)fx_submit(f, fx_job(8, 100));
    shorter = fx_submit(f, fx_job(8, 30));
    fx_turn(f);
    job = fx_submit(f, fx_job(8, 10));
    assert_int_equal(stk_forecast(f->core, &cfg, &job, 1, &e, &f->err), 0);
    assert_true(e.p50 == 30 * S && at.calls == 1 && at.n == 1 && at.piece[0].gpus == 8);
    assert_int_equal(
        at.piece[0].node.i,
        stk_core_state(f->core)->pieces[stk_core_state(f->core)->jobs[shorter].first_piece].node.i);
    cfg.most_events = 1; /* nothing is foreseen: nothing is said */
    assert_int_equal(stk_forecast(f->core, &cfg, &job, 1, &e, &f->err), 0);
    assert_true(e.p50 == STK_NEVER_TIME && at.calls == 1);
    stk_predict_free(p);
    fx_drain(f);
    fx_finish(f);
}

/* Any policies, any nodes: it answers, changes nothing, and leaves nothing. */
static void in_any_world_it_changes_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct world w = {.exact = false};
        struct stk_predict *p;
        struct stk_rng r;
        struct fx *f;

        stk_rng_init(&r, seed);
        world_policies(&w, &r);
        world_cluster(&w, &r);
        world_delays(&w, &r);
        f = fx_new(&w.setup);
        p = fresh(f);
        for (int k = 0; k < 30; k++) {
            world_act(&w, f, &r);
            fx_turn(f);
            fx_run(f, f->now + (stk_time)stk_rng_below(&r, 2000000));
        }
        for (uint32_t k = 0; k < f->s->n_jobs; k++)
            if (fx_state(f, k) == STK_JOB_WAITING) {
                struct stk_expected e = ask(f, p, k);

                assert_true(f->now <= e.p50 && e.p50 <= e.p90);
            }
        stk_predict_free(p);
        fx_free(f);
    }
}

static struct stk_job_spec some_job(struct stk_rng *r)
{
    uint32_t gpus = 1 + (uint32_t)stk_rng_below(r, 16);

    return fx_job(gpus, 1 + (int64_t)stk_rng_below(r, 50));
}

/* With run times as foretold and nobody else coming, the forecast is what happens. */
static void what_is_foreseen_happens(void **state)
{
    static const char *const backfill[] = {"none", "skip", "easy", "conservative"};

    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct fx *f = fx_new(&(struct fx_setup){.order = "fifo", .backfill = backfill[seed % 4]});
        struct stk_predict *p = fresh(f);
        struct stk_expected e;
        struct stk_rng r;
        uint32_t job;

        stk_rng_init(&r, seed);
        for (int k = 0; k < 30; k++) {
            (void)fx_submit(f, some_job(&r));
            fx_turn(f);
            fx_run(f, f->now + (stk_time)stk_rng_below(&r, 3000000));
        }
        job = fx_submit(f, some_job(&r));
        e = ask(f, p, job);
        fx_drain(f);
        assert_true(fx_of(f, job)->started == e.p50 && e.p50 == e.p90);
        stk_predict_free(p);
        fx_finish(f);
    }
}

/* How many slices a forecast has where so many jobs wait, of one size or each of its own. */
static uint32_t count_slices(bool sizes)
{
    const struct stk_node_spec nodes[] = {{.gpus = 8, .mem_mib = 1 << 20}};
    struct fx *f = fx_new(&(struct fx_setup){.nodes = nodes, .n_nodes = 1});
    struct stk_predict *p = fresh(f);
    const struct stk_forecast_config cfg = {
        .now = f->now, .predict = p, .draws = 1, .most_events = 10000, .seed = 7};
    struct stk_forecast *forecast = NULL;
    struct stk_expected e = {0};
    uint32_t last = 0, n = 0;
    int rc;

    for (uint32_t i = 0; i < 1000; i++) {
        struct stk_job_spec j = fx_job(8, 10);

        j.demand.mem_mib = sizes ? i + 1 : 1;
        last = fx_submit(f, j);
    }
    assert_int_equal(stk_forecast_begin(f->core, &cfg, &last, 1, &forecast, &f->err), 0);
    while ((rc = stk_forecast_step(forecast, 1000, &f->err)) > 0)
        n++;
    assert_int_equal(rc, 0);
    stk_forecast_read(forecast, &e);
    assert_true(e.p50 == 9990 * S);
    stk_forecast_free(forecast);
    stk_predict_free(p);
    fx_drain(f);
    fx_finish(f);
    return n;
}

static void jobs_of_many_sizes_make_slices_shorter(void **state)
{
    (void)state;
    assert_true(count_slices(true) > 10 * count_slices(false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimates_hold_where_nothing_else_is_known),
        cmocka_unit_test(what_users_needed_before_counts),
        cmocka_unit_test(a_job_that_fits_starts_now),
        cmocka_unit_test(what_cannot_be_foreseen_is_never),
        cmocka_unit_test(effort_is_bounded),
        cmocka_unit_test(says_where),
        cmocka_unit_test(in_any_world_it_changes_nothing),
        cmocka_unit_test(what_is_foreseen_happens),
        cmocka_unit_test(jobs_of_many_sizes_make_slices_shorter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
