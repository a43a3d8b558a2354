/* SPDX-License-Identifier: Apache-2.0 */
#include "../store/store_fixture.h"

#include <math.h>
#include <stdlib.h>

#include "series/row.h"
#include "series/series.h"

#define BEGIN (T0 - T0 % (4 * STK_SERIES_QUARTER)) /* an hour begins */
#define STEP (10 * STK_SECOND)

static void put(struct stk_series *s, const struct stk_series_at *at, float first, float second)
{
    float v[STK_SERIES_MAX_FIELDS];

    for (uint32_t i = 0; i < STK_SERIES_MAX_FIELDS; i++)
        v[i] = NAN;
    v[0] = first;
    v[1] = second;
    stk_series_put(s, at, v);
}

static void flush(struct box *b, struct stk_series *s, stk_time now)
{
    ok(b, stk_store_begin(b->st, &b->err));
    ok(b, stk_series_flush(s, b->st, now, &b->err));
    ok(b, stk_store_commit(b->st, &b->err));
    stk_series_written(s);
}

static struct stk_series_result ask(struct box *b, const struct stk_series *s,
                                    struct stk_series_query q)
{
    struct stk_series_result r;

    ok(b, stk_series_fit(s, &q, 1, &b->err));
    ok(b, stk_series_read(s, b->st, &q, &r, &b->err));
    return r;
}

static float value(const struct stk_series_result *r, uint32_t member, uint32_t field,
                   uint32_t point)
{
    return r->value[((size_t)member * r->fields + field) * r->points + point];
}

/* 20 minutes of two GPUs: the first is allocated all the time, the second every other minute. */
static struct stk_series *twenty_minutes(struct box *b)
{
    struct stk_series *s;

    ok(b, stk_series_new(STEP, &s, &b->err));
    for (stk_time t = BEGIN; t < BEGIN + 20 * STK_SERIES_MINUTE; t += STEP) {
        struct stk_series_at at = {STK_SERIES_GPU, 7, 0, 2};

        if (stk_series_due(s, t))
            flush(b, s, t);
        put(s, &at, 1, NAN);
        at.member = 1;
        put(s, &at, (float)(t / STK_SERIES_MINUTE % 2), 0.5f);
        stk_series_close(s, t);
    }
    return s;
}

static void steps_minutes_and_quarters_say_the_same(void **state)
{
    struct box *b = *state;
    struct stk_series *s = twenty_minutes(b);
    stk_time now = BEGIN + 20 * STK_SERIES_MINUTE;
    struct stk_series_query q = {
        .kind = STK_SERIES_GPU, .id = 7, .since = BEGIN, .until = now, .now = now};
    static const stk_time steps[] = {STEP, STK_SERIES_MINUTE, 4 * STK_SERIES_MINUTE,
                                     STK_SERIES_QUARTER};

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        struct stk_series_result r;
        float sum = 0;

        q.step = steps[i];
        r = ask(b, s, q);
        assert_int_equal(r.step, steps[i]);
        assert_int_equal(r.members, 2);
        for (uint32_t p = 0; p < r.points; p++) {
            assert_float_equal(value(&r, 0, 0, p), 1, 0);
            assert_true(isnan(value(&r, 0, 1, p)));
            assert_float_equal(value(&r, 1, 1, p), 0.5f, 1e-6);
            sum += value(&r, 1, 0, p) / (float)r.points;
        }
        if (steps[i] < STK_SERIES_QUARTER)
            assert_float_equal(sum, 0.5f, 1e-4);
        free(r.value);
    }
    stk_series_free(s);
}

static void what_was_not_written_yet_is_in_the_answer(void **state)
{
    struct box *b = *state;
    struct stk_series *s = twenty_minutes(b); /* the last minute is in memory only */
    stk_time now = BEGIN + 20 * STK_SERIES_MINUTE;
    struct stk_series_query q = {
        .kind = STK_SERIES_GPU, .id = 7, .since = BEGIN, .until = now, .step = STEP, .now = now};
    struct stk_series_result with = ask(b, s, q), without = ask(b, NULL, q);

    assert_float_equal(value(&with, 0, 0, with.points - 1), 1, 0);
    assert_true(isnan(value(&without, 0, 0, without.points - 1)));
    assert_float_equal(value(&without, 0, 0, without.points - 7), 1, 0);
    free(with.value);
    free(without.value);
    stk_series_free(s);
}

static void sums_are_summed_and_the_last_is_the_last(void **state)
{
    struct box *b = *state;
    struct stk_series *s;
    float v[STK_SERIES_MAX_FIELDS];
    struct stk_series_result r;
    stk_time now = BEGIN + STK_SERIES_MINUTE;

    ok(b, stk_series_new(STEP, &s, &b->err));
    for (stk_time t = BEGIN; t < now; t += STEP) {
        for (uint32_t i = 0; i < STK_SERIES_MAX_FIELDS; i++)
            v[i] = (float)((t - BEGIN) / STEP);
        stk_series_put(s, &(struct stk_series_at){STK_SERIES_CLUSTER, 0, 0, 1}, v);
        stk_series_put(s, &(struct stk_series_at){STK_SERIES_JOB, 3, 0, 1}, v);
        stk_series_close(s, t);
    }
    flush(b, s, now);
    r = ask(b, s,
            (struct stk_series_query){.kind = STK_SERIES_CLUSTER,
                                      .since = BEGIN,
                                      .until = now,
                                      .step = STK_SERIES_MINUTE,
                                      .now = now});
    assert_int_equal(r.points, 1);
    assert_float_equal(value(&r, 0, STK_SERIES_CLUSTER_STARTED, 0), 15, 0);
    assert_float_equal(value(&r, 0, STK_SERIES_CLUSTER_GPUS, 0), 2.5, 0);
    free(r.value);
    r = ask(b, s,
            (struct stk_series_query){.kind = STK_SERIES_JOB,
                                      .id = 3,
                                      .since = BEGIN,
                                      .until = now,
                                      .step = STK_SERIES_MINUTE,
                                      .now = now});
    assert_float_equal(value(&r, 0, STK_SERIES_JOB_STEP, 0), 5, 0);
    free(r.value);
    stk_series_free(s);
}

static void a_restart_within_a_minute_keeps_its_beginning(void **state)
{
    struct box *b = *state;
    const struct stk_series_at at = {STK_SERIES_CLUSTER, 0, 0, 1};
    stk_time now = BEGIN + STK_SERIES_QUARTER;
    struct stk_series_result r;
    struct stk_series *s;

    for (int life = 0; life < 2; life++) {
        ok(b, stk_series_new(STEP, &s, &b->err));
        for (int k = 0; k < 3; k++) {
            put(s, &at, (float)(1 + life), NAN);
            stk_series_close(s, BEGIN + (life * 3 + k) * STEP);
        }
        flush(b, s, BEGIN + STK_SERIES_MINUTE - 1);
        stk_series_free(s);
    }
    ok(b, stk_store_begin(b->st, &b->err));
    ok(b, stk_series_catch_up(b->st, now, &b->err));
    ok(b, stk_store_commit(b->st, &b->err));
    for (stk_time step = STEP; step <= STK_SERIES_QUARTER;
         step = step == STEP ? STK_SERIES_MINUTE : step * 15) {
        r = ask(b, NULL,
                (struct stk_series_query){.kind = STK_SERIES_CLUSTER,
                                          .since = BEGIN,
                                          .until = now,
                                          .step = step,
                                          .now = now});
        assert_float_equal(value(&r, 0, 0, 0), step == STEP ? 1 : 1.5, 1e-6);
        free(r.value);
    }
}

static void a_restart_within_a_quarter_hides_nothing_that_comes_later(void **state)
{
    struct box *b = *state;
    const struct stk_series_at at = {STK_SERIES_CLUSTER, 0, 0, 1};
    stk_time now = BEGIN;
    struct stk_series_result r;
    struct stk_series *s;

    for (int life = 0; life < 2; life++) {
        ok(b, stk_store_begin(b->st, &b->err));
        ok(b, stk_series_catch_up(b->st, now, &b->err));
        ok(b, stk_store_commit(b->st, &b->err));
        ok(b, stk_series_new(STEP, &s, &b->err));
        for (int k = 0; k < 6; k++, now += STEP) {
            put(s, &at, (float)(1 + life), NAN);
            stk_series_close(s, now);
        }
        flush(b, s, now);
        stk_series_free(s);
    }
    r = ask(b, NULL,
            (struct stk_series_query){.kind = STK_SERIES_CLUSTER,
                                      .since = BEGIN,
                                      .until = BEGIN + STK_SERIES_QUARTER,
                                      .step = STK_SERIES_QUARTER,
                                      .now = now});
    assert_float_equal(value(&r, 0, 0, 0), 1.5, 1e-6);
    free(r.value);
}

static void groups_are_bounded_and_those_that_are_gone_make_room(void **state)
{
    struct box *b = *state;
    struct stk_series *s;
    stk_time t = BEGIN;

    ok(b, stk_series_new(STEP, &s, &b->err));
    for (int64_t i = 0; i < 3 * (int64_t)STK_SERIES_MAX_GROUPS / 2; i++)
        put(s, &(struct stk_series_at){STK_SERIES_JOB, i + 1, 0, 1}, 1, 1);
    for (int minute = 0; minute < 4; minute++, t += STK_SERIES_MINUTE) {
        stk_series_close(s, t);
        flush(b, s, t + STK_SERIES_MINUTE);
    }
    put(s, &(struct stk_series_at){STK_SERIES_JOB, 4711111, 0, 1}, 3, 1);
    stk_series_close(s, t);
    flush(b, s, t + STK_SERIES_MINUTE);
    struct stk_series_result r = ask(b, s,
                                     (struct stk_series_query){.kind = STK_SERIES_JOB,
                                                               .id = 4711111,
                                                               .since = t,
                                                               .until = t + STEP,
                                                               .step = STEP,
                                                               .now = t + STEP});
    assert_float_equal(value(&r, 0, 0, 0), 3, 0);
    free(r.value);
    stk_series_free(s);
}

static int count(void *ctx, const struct stk_series_row *r)
{
    (void)r;
    ++*(int *)ctx;
    return 0;
}

static int rows(struct box *b, uint32_t tier)
{
    int n = 0;

    ok(b, stk_store_series(
              b->st, &(struct stk_series_range){.tier = tier, .all = true, .until = STK_NEVER_TIME},
              count, &n, &b->err));
    return n;
}

static void old_rows_go_and_a_small_budget_keeps_less(void **state)
{
    struct box *b = *state;
    struct stk_series *s = twenty_minutes(b);
    stk_time age[STK_SERIES_TIERS];

    assert_int_equal(rows(b, 0), 19);
    assert_int_equal(rows(b, 1), 19);
    assert_int_equal(rows(b, 2), 1);
    ok(b, stk_store_begin(b->st, &b->err));
    assert_int_equal(stk_store_series_prune(b->st, 0, BEGIN + 10 * STK_SERIES_MINUTE, &b->err), 0);
    ok(b, stk_store_commit(b->st, &b->err));
    assert_int_equal(rows(b, 0), 9);
    assert_int_equal(rows(b, 1), 19);
    stk_series_keep(s, UINT64_C(1) << 40, age);
    assert_int_equal(age[2], 400 * INT64_C(86400) * STK_SECOND);
    stk_series_keep(s, 1000, age); /* a row of two GPUs has 56 bytes */
    assert_int_equal(age[2], 18 * STK_SERIES_QUARTER);
    stk_series_free(s);
}

static void rows_that_are_none_are_passed_over(void **state)
{
    struct box *b = *state;
    unsigned char bytes[64] = {1, 2, 1, 0, 1, 0, 10, 0};
    struct stk_row_shape shape;
    struct stk_series_query q = {.kind = STK_SERIES_CLUSTER,
                                 .since = BEGIN,
                                 .until = BEGIN + STEP,
                                 .step = STEP,
                                 .now = BEGIN + STEP};
    struct stk_series_result r;

    assert_int_equal(stk_row_get(bytes, 16, &shape), 0);
    for (size_t len = 0; len < sizeof(bytes); len++)
        if (len != 16)
            assert_true(stk_row_get(bytes, len, &shape) < 0);
    ok(b, stk_store_begin(b->st, &b->err));
    ok(b,
       stk_store_series_put(b->st,
                            &(struct stk_series_row){
                                .kind = STK_SERIES_CLUSTER, .at = BEGIN, .bytes = bytes, .len = 9},
                            &b->err));
    ok(b, stk_store_commit(b->st, &b->err));
    r = ask(b, NULL, q);
    assert_true(isnan(value(&r, 0, 0, 0)));
    free(r.value);
}

static void questions_for_too_much_are_refused(void **state)
{
    struct box *b = *state;
    struct stk_series_query q = {.kind = STK_SERIES_GPU,
                                 .since = BEGIN - 400 * INT64_C(86400) * STK_SECOND,
                                 .until = BEGIN,
                                 .step = 1,
                                 .now = BEGIN};

    assert_int_equal(stk_series_fit(NULL, &q, 10000, &b->err), -E2BIG);
    assert_non_null(strstr(b->err.text, "longer step"));
    q.since = q.until;
    assert_int_equal(stk_series_fit(NULL, &q, 1, &b->err), -EINVAL);
    q = (struct stk_series_query){.kind = STK_SERIES_GPU,
                                  .since = BEGIN - 400 * INT64_C(86400) * STK_SECOND,
                                  .until = BEGIN,
                                  .now = BEGIN};
    assert_int_equal(stk_series_fit(NULL, &q, 1, &b->err), 0);
    assert_int_equal(q.step % STK_SERIES_QUARTER, 0);
}

static void usage_adds_up_and_goes_with_the_job(void **state)
{
    struct box *b = *state;
    struct stk_usage u = {.seen_s = 10,
                          .gpu_s = 20,
                          .active_s = 5,
                          .energy_j = 100,
                          .gpu_mem_mib = 7},
                     got;

    u.active[3] = 2.5f;
    assert_int_equal(stk_store_usage_get(b->st, 1, &got, &b->err), -ENOENT);
    for (int i = 0; i < 3; i++) {
        u.gpu_mem_mib = 7 - i;
        ok(b, stk_store_begin(b->st, &b->err));
        ok(b, stk_store_usage_add(b->st, 1, &u, &b->err));
        ok(b, stk_store_commit(b->st, &b->err));
    }
    ok(b, stk_store_usage_get(b->st, 1, &got, &b->err));
    assert_float_equal(got.gpu_s, 60, 0);
    assert_float_equal(got.active_s, 15, 0);
    assert_float_equal(got.gpu_mem_mib, 7, 0);
    assert_float_equal(got.active[3], 7.5, 1e-6);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, box_setup_open, box_teardown)
    const struct CMUnitTest tests[] = {
        T(steps_minutes_and_quarters_say_the_same),
        T(what_was_not_written_yet_is_in_the_answer),
        T(sums_are_summed_and_the_last_is_the_last),
        T(a_restart_within_a_minute_keeps_its_beginning),
        T(a_restart_within_a_quarter_hides_nothing_that_comes_later),
        T(groups_are_bounded_and_those_that_are_gone_make_room),
        T(old_rows_go_and_a_small_budget_keeps_less),
        T(rows_that_are_none_are_passed_over),
        T(questions_for_too_much_are_refused),
        T(usage_adds_up_and_goes_with_the_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
