/* SPDX-License-Identifier: Apache-2.0 */
/* test_backfill.c - promises are kept. Easy against a search over nodes and expected ends written
 * down anew, conservative against a planner of a few lines that looks at all jobs at each event.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/world.h"

#define JOBS 60

/* ---- easy ---- */

static bool could_fit(const struct fx *f, const uint32_t *free_on, const struct stk_job *j)
{
    const struct stk_demand *d = &f->s->shapes[j->shape].demand;
    uint32_t size = f->s->pools[0].max_gpus, units = 0, whole = 0, rest = 0;

    for (uint32_t i = 0; i < f->s->n_nodes; i++) {
        units += d->gpus ? free_on[i] / d->gpus : d->tasks;
        whole += free_on[i] >= size;
        rest += d->gpus % size > 0 && free_on[i] >= d->gpus % size;
    }
    if (!d->cut || d->gpus <= size)
        return units >= d->tasks;
    return whole >= d->gpus / size && (d->gpus % size == 0 || rest > d->gpus / size);
}

/* When the job fits if all that runs ends as expected and nothing else starts. */
static stk_time fits_at(const struct fx *f, const struct stk_job *j)
{
    uint32_t free_on[WORLD_MAX_NODES];
    stk_time t = f->now;

    for (uint32_t i = 0; i < f->s->n_nodes; i++)
        free_on[i] = f->s->nodes[i].gpus_free;
    while (!could_fit(f, free_on, j)) {
        stk_time next = STK_NEVER_TIME;

        for (uint32_t i = 0; i < f->s->n_jobs; i++)
            if (fx_of(f, i)->lease && fx_of(f, i)->expected_end > t &&
                fx_of(f, i)->expected_end < next)
                next = fx_of(f, i)->expected_end;
        fx_must(next != STK_NEVER_TIME, "it fits when all have ended");
        t = next;
        for (uint32_t i = 0; i < f->s->n_jobs; i++)
            for (uint32_t k = 0; fx_of(f, i)->expected_end == t && k < fx_of(f, i)->n_pieces; k++) {
                const struct stk_piece *p = &f->s->pieces[fx_of(f, i)->first_piece + k];

                free_on[p->node.i] += p->gpus;
            }
    }
    return t;
}

struct promises {
    stk_time at[JOBS + 1]; /* by job number; 0: none yet */
    uint32_t kept, passed;
};

static void check_promises(struct fx *f, void *ctx)
{
    struct promises *p = ctx;
    const struct stk_job *head = NULL;

    for (uint32_t i = 0; i < f->s->n_jobs; i++) {
        const struct stk_job *j = fx_of(f, i);

        if (j->state == STK_JOB_WAITING && (!head || j->number < head->number))
            head = j;
    }
    for (uint32_t i = 0; i < f->s->n_jobs; i++) {
        const struct stk_job *j = fx_of(f, i);

        if (j->lease == 0 || j->started != f->now)
            continue;
        p->passed += head && j->number > head->number;
        fx_must(p->at[j->number] == 0 || f->now <= p->at[j->number],
                "job %u was promised %lld and starts at %lld", j->number,
                (long long)p->at[j->number], (long long)f->now);
        p->kept += p->at[j->number] != 0;
    }
    if (!head)
        return;
    fx_must(f->s->pools[0].resv_job != STK_NONE &&
                f->s->jobs[f->s->pools[0].resv_job].number == head->number,
            "the first in line has the reservation");
    fx_must(p->at[head->number] == 0 || fits_at(f, head) <= p->at[head->number],
            "at %lld: job %u was promised %lld, now it is %lld", (long long)f->now, head->number,
            (long long)p->at[head->number], (long long)fits_at(f, head));
    p->at[head->number] = fits_at(f, head);
    assert_int_equal(f->s->pools[0].resv_at, p->at[head->number]);
}

static struct stk_job_spec small_world_job(struct stk_rng *r)
{
    static const uint32_t sizes[] = {1, 1, 1, 2, 2, 3, 4, 6, 8, 8, 12, 16};
    uint32_t gpus = sizes[stk_rng_below(r, 12)];
    struct stk_job_spec spec = fx_job(gpus, 1 + (int64_t)stk_rng_below(r, 30));

    if (stk_rng_below(r, 4) == 0 && spec.demand.gpus <= 8) {
        spec.demand.cut = false;
        spec.demand.tasks = 1 + (uint32_t)stk_rng_below(r, 2 * (8 / spec.demand.gpus));
    }
    return spec;
}

static void easy_never_delays_the_first_in_line(void **state)
{
    static const char *const place[] = {"pack", "spread", "first_fit"};
    struct stk_node_spec nodes[WORLD_MAX_NODES] = {{.gpus = 0}};
    uint32_t kept = 0, passed = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct promises p = {.kept = 0};
        struct stk_rng r;
        struct fx *f;

        stk_rng_init(&r, seed);
        for (uint32_t i = 0; i < 4; i++)
            nodes[i].gpus = 8;
        f = fx_new(&(struct fx_setup){.nodes = nodes,
                                      .n_nodes = 2 + (uint32_t)seed % 3,
                                      .backfill = "easy",
                                      .place = place[seed % 3]});
        f->on_turn = check_promises;
        f->ctx = &p;
        for (int i = 0; i < JOBS; i++) {
            (void)fx_submit(f, small_world_job(&r));
            fx_turn(f);
            fx_run(f, f->now + (stk_time)stk_rng_below(&r, 6) * STK_SECOND);
        }
        fx_drain(f);
        kept += p.kept;
        passed += p.passed;
        fx_free(f);
    }
    assert_true(kept > 1000 && passed > 1000); /* else nothing was tested */
}

static void easy_lets_pass_what_ends_in_time_or_fits_beside(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.backfill = "easy"});
    struct stk_job_spec gang = fx_job(6, 10);
    uint32_t late, in_time, beside, head;

    (void)state;
    (void)fx_submit(f, fx_job(4, 100));
    gang.demand.cut = false;
    gang.demand.tasks = 2;
    head = fx_submit(f, gang); /* promised 100: 6 of 8 GPUs on each node */
    late = fx_submit(f, fx_job(3, 101));
    in_time = fx_submit(f, fx_job(3, 100));
    beside = fx_submit(f, fx_job(2, 1000));
    fx_turn(f);
    assert_int_equal(fx_state(f, late), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, in_time), STK_JOB_RUNNING);
    assert_int_equal(fx_state(f, beside), STK_JOB_RUNNING);
    fx_drain(f);
    assert_int_equal(fx_of(f, head)->started, 100 * STK_SECOND);
    fx_free(f);
}

static void a_job_that_is_being_stopped_counts_as_gone_soon(void **state)
{
    static const char *const backfill[] = {"easy", "conservative"};

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct fx *f = fx_new(
            &(struct fx_setup){.backfill = backfill[k], .slow_stop = 60 * STK_SECOND, .seed = 5});
        uint32_t gone = fx_submit(f, fx_job(8, 1000)), head, longer;

        (void)fx_submit(f, fx_job(7, 100));
        fx_turn(f);
        assert_int_equal(fx_cancel(f, gone), 0);
        head = fx_submit(f, fx_job(16, 10));
        longer = fx_submit(f, fx_job(1, 5000)); /* one GPU is free, but this would delay the head */
        fx_turn(f);
        assert_int_equal(fx_state(f, longer), STK_JOB_WAITING);
        fx_drain(f);
        assert_int_equal(fx_of(f, head)->started, 100 * STK_SECOND);
        fx_free(f);
    }
}

/* ---- conservative ---- */

struct row {
    stk_time arrive, estimate, runs, start; /* start < 0: waits */
    uint32_t gpus;
};

static bool fits_from(const struct row *rows, const stk_time *plan, uint32_t n, stk_time now,
                      const struct row *me, stk_time t, uint32_t total)
{
    /* usage only grows where some other job starts: look there, and at t itself */
    for (uint32_t i = 0; i <= n; i++) {
        stk_time at = i == n ? t : plan[i];
        uint64_t used = 0;

        if (at < t || at >= t + me->estimate)
            continue;
        for (uint32_t k = 0; k < n; k++) {
            stk_time end = rows[k].start >= 0 && rows[k].start + rows[k].runs <= now
                               ? rows[k].start + rows[k].runs
                               : plan[k] + rows[k].estimate;

            used += plan[k] <= at && at < end ? rows[k].gpus : 0;
        }
        if (used + me->gpus > total)
            return false;
    }
    return true;
}

/* The earliest time from now on at which job i fits beside what runs and where others are planned.
 */
static stk_time plan_one(const struct row *rows, const stk_time *plan, uint32_t n, uint32_t i,
                         stk_time now, uint32_t total)
{
    struct row others[JOBS];
    stk_time known[JOBS], best = STK_NEVER_TIME;
    uint32_t m = 0;

    for (uint32_t o = 0; o < n && rows[o].arrive <= now; o++)
        if (o != i && (rows[o].start >= 0 || plan[o] != STK_NEVER_TIME)) {
            others[m] = rows[o];
            known[m++] = rows[o].start >= 0 ? rows[o].start : plan[o];
        }
    for (uint32_t k = 0; k <= m; k++) { /* now, or when another one is expected to end */
        stk_time t = k == m ? now : known[k] + others[k].estimate;

        if (t >= now && t < best && fits_from(others, known, m, now, &rows[i], t, total))
            best = t;
    }
    return best;
}

/* Plans every job that has arrived, in order, each no later than it was, until none moves; those
 * whose turn is now start. */
static void plan_all(struct row *rows, stk_time *plan, uint32_t n, stk_time now, uint32_t total)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < n && rows[i].arrive <= now; i++) {
            stk_time was = plan[i];

            if (rows[i].start < 0)
                plan[i] = plan_one(rows, plan, n, i, now, total);
            moved |= plan[i] != was;
        }
    }
    for (uint32_t i = 0; i < n && rows[i].arrive <= now; i++)
        if (plan[i] == now && rows[i].start < 0)
            rows[i].start = now;
}

static void plan_whole_run(struct row *rows, uint32_t n, uint32_t total)
{
    stk_time now = 0, plan[JOBS];

    for (uint32_t i = 0; i < n; i++)
        plan[i] = STK_NEVER_TIME;
    while (now != STK_NEVER_TIME) {
        stk_time next = STK_NEVER_TIME;

        plan_all(rows, plan, n, now, total);
        for (uint32_t i = 0; i < n; i++) {
            stk_time t = rows[i].start >= 0 ? rows[i].start + rows[i].runs : rows[i].arrive;

            if (t > now && t < next)
                next = t;
        }
        now = next;
    }
}

static void conservative_starts_exactly_as_the_plain_planner(void **state)
{
    uint32_t waited = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        const struct stk_node_spec node = {.gpus = 8, .aggregate = true};
        struct fx *f = fx_new(&(struct fx_setup){
            .nodes = &node, .n_nodes = 1, .backfill = "conservative", .place = "count"});
        struct row rows[JOBS];
        struct stk_rng r;
        stk_time at = 0;

        stk_rng_init(&r, seed);
        for (int i = 0; i < JOBS; i++) {
            stk_time est = (1 + (stk_time)stk_rng_below(&r, 20)) * STK_SECOND;
            stk_time runs = stk_rng_below(&r, 3) || seed % 2
                                ? est
                                : est / 20 * (1 + (stk_time)stk_rng_below(&r, 20));

            at += (stk_time)stk_rng_below(&r, 6) * STK_SECOND;
            rows[i] = (struct row){at, est, runs, -1, 1 + (uint32_t)stk_rng_below(&r, 8)};
        }
        for (int i = 0; i < JOBS; i++) {
            struct stk_job_spec spec = fx_job(rows[i].gpus, 0);

            if (rows[i].arrive > f->now) { /* up to just before it, then all of that instant */
                fx_run(f, rows[i].arrive - 1);
                f->now = rows[i].arrive;
            }
            spec.estimate = rows[i].estimate;
            (void)fx_submit(f, spec); /* nothing is forgotten: job i is in slot i */
            f->work[i].left = rows[i].runs;
            if (i + 1 == JOBS || rows[i + 1].arrive > f->now)
                fx_turn(f);
        }
        fx_drain(f);
        plan_whole_run(rows, JOBS, 8);
        for (uint32_t i = 0; i < JOBS; i++) {
            assert_int_equal(fx_of(f, i)->started, rows[i].start);
            waited += rows[i].start > rows[i].arrive;
        }
        fx_free(f);
    }
    assert_true(waited > 1000);
}

static void a_plan_that_always_comes_true_does_not_grow(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.backfill = "conservative", .forget = true});

    (void)state;
    for (int i = 0; i < 5000; i++) {
        (void)fx_submit(f, fx_job(9, 1 + i % 3));
        fx_turn(f);
        fx_run(f, f->now + (1 + i % 3) * STK_SECOND);
        fx_turn(f);
        assert_int_equal(f->s->n_live, 0);
    }
    assert_true(f->s->pools[0].plan.cap < 200);
    fx_free(f);
}

static void gpus_of_a_lost_node_are_not_planned_with(void **state)
{
    struct fx *f = fx_new(&(struct fx_setup){.backfill = "conservative"});
    uint32_t small, large;

    (void)state;
    (void)fx_submit(f, fx_job(8, 10));
    fx_turn(f);
    assert_int_equal(fx_node(f, 0, false), 0);
    (void)fx_submit(f, fx_job(4, 100));
    large = fx_submit(f, fx_job(8, 10)); /* node 1 has 4 free until 100; node 0 is gone */
    small = fx_submit(f, fx_job(4, 90));
    fx_turn(f);
    fx_run(f, 50 * STK_SECOND);
    assert_int_equal(fx_state(f, large), STK_JOB_WAITING);
    assert_int_equal(fx_state(f, small), STK_JOB_RUNNING);
    fx_drain(f);
    assert_int_equal(fx_of(f, large)->started, 100 * STK_SECOND);
    fx_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(easy_never_delays_the_first_in_line),
        cmocka_unit_test(easy_lets_pass_what_ends_in_time_or_fits_beside),
        cmocka_unit_test(a_job_that_is_being_stopped_counts_as_gone_soon),
        cmocka_unit_test(conservative_starts_exactly_as_the_plain_planner),
        cmocka_unit_test(a_plan_that_always_comes_true_does_not_grow),
        cmocka_unit_test(gpus_of_a_lost_node_are_not_planned_with),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
