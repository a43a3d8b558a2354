/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/foresee.h"

#include <math.h>
#include <stdlib.h>

#include "forecast/calibrate.h"
#include "sim/result.h"
#include "sys/big.h"

#define MOST_EVENTS 200000u     /* of a draw */
#define NOBODY (UINT32_MAX - 1) /* a user without a past */
#define SEED 1

struct asked {
    uint32_t tag;
    struct stk_expected said;
    double naive_s;
    stk_time run, plain_run; /* predicted */
};

struct stk_foresee {
    const struct stk_trace *t;
    const struct stk_predict *predict; /* somebody else's */
    uint32_t every;
    uint64_t n_submitted;
    struct stk_calibrate *calibrate;
    struct asked *rows;
    uint32_t n_rows;
    uint32_t *pending, n_pending;
    struct stk_expected *said; /* of these */
};

int stk_foresee_new(const struct stk_trace *t, uint32_t n_pools, const struct stk_predict *predict,
                    uint32_t every, struct stk_foresee **ret, struct stk_err *err)
{
    struct stk_foresee *f = calloc(1, sizeof(*f));
    size_t most = t->n_jobs / every + (size_t)1;

    if (f) {
        f->t = t;
        f->every = every;
        f->predict = predict;
        f->calibrate = stk_calibrate_new(&stk_big_mem, n_pools);
        f->rows = calloc(most, sizeof(*f->rows));
        f->pending = calloc(most, sizeof(*f->pending));
        f->said = calloc(most, sizeof(*f->said));
    }
    if (!f || !f->calibrate || !f->rows || !f->pending || !f->said) {
        stk_foresee_free(f);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    *ret = f;
    return 0;
}

void stk_foresee_free(struct stk_foresee *f)
{
    if (!f)
        return;
    stk_calibrate_free(f->calibrate);
    free(f->rows);
    free(f->pending);
    free(f->said);
    free(f);
}

void stk_foresee_submitted(struct stk_foresee *f, uint32_t job)
{
    if (f->n_submitted++ % f->every == 0)
        f->pending[f->n_pending++] = job;
}

void stk_foresee_started(struct stk_foresee *f, const struct stk_state *s, uint32_t job,
                         stk_time now)
{
    const struct stk_job *j = &s->jobs[job];

    stk_calibrate_waited(f->calibrate, j->pool, j->gpus, now - j->submitted);
    stk_calibrate_started(f->calibrate, j->number, now);
}

static double seconds(stk_time t)
{
    return (double)t / (double)STK_SECOND;
}

/* What the trace says of its user; a true run time is not known. */
static struct stk_run_kind kind_of(void *ctx, const struct stk_state *s, uint32_t job)
{
    const struct stk_foresee *f = ctx;
    const struct stk_job *j = &s->jobs[job];
    const struct stk_trace_job *of = &f->t->jobs[j->tag];

    return (struct stk_run_kind){of->tenant, j->gpus, of->estimate};
}

static struct asked row_of(struct stk_foresee *f, const struct stk_state *s, uint32_t job)
{
    const struct stk_run_kind k = kind_of(f, s, job), plain = {NOBODY, k.gpus, 0};

    return (struct asked){
        .tag = s->jobs[job].tag,
        .naive_s = seconds(stk_calibrate_mean(f->calibrate, s->jobs[job].pool, s->jobs[job].gpus)),
        .run = stk_predict_run(f->predict, &k, 0, 500),
        .plain_run = k.estimate ? k.estimate : stk_predict_run(f->predict, &plain, 0, 500)};
}

/* What came of earlier forecasts counts; and this is one, too. */
static void correct(struct stk_foresee *f, const struct stk_job *j, stk_time now,
                    struct stk_expected *io)
{
    const struct stk_calibrate_of of = {j->pool, j->gpus, now, j->submitted};
    const bool waits = io->p50 != STK_NEVER_TIME && io->p50 > now;

    stk_calibrate_correct(f->calibrate, &of, io);
    if (waits)
        stk_calibrate_said(f->calibrate, j->number, now, io->p50 - now);
}

int stk_foresee_look(struct stk_foresee *f, const struct stk_core *core, stk_time now,
                     struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(core);
    const struct stk_forecast_config cfg = {.now = now,
                                            .predict = f->predict,
                                            .kind = kind_of,
                                            .ctx = f,
                                            .draws = STK_FORECAST_DRAWS,
                                            .most_events = MOST_EVENTS,
                                            .seed = SEED};
    uint32_t n = f->n_pending;
    int rc;

    if (n == 0)
        return 0;
    f->n_pending = 0;
    rc = stk_forecast(core, &cfg, f->pending, n, f->said, err);
    stk_calibrate_now(f->calibrate, now);
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        f->rows[f->n_rows] = row_of(f, s, f->pending[i]);
        correct(f, &s->jobs[f->pending[i]], now, &f->said[i]);
        f->rows[f->n_rows++].said = f->said[i];
    }
    return rc;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *v, uint32_t n)
{
    qsort(v, n, sizeof(*v), by_value);
    return n ? v[n / 2] : 0;
}

static double mean(const double *v, uint32_t n)
{
    double sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += v[i];
    return n ? sum / n : 0;
}

static bool counts(const struct asked *a, const struct stk_job_result *jobs)
{
    return a->said.p50 != STK_NEVER_TIME && jobs[a->tag].first_start >= 0;
}

/* 'e' has room for two numbers a row. */
static struct stk_foreseen_part sum_part(const struct stk_foresee *f,
                                         const struct stk_job_result *jobs, bool all, double *e)
{
    struct stk_foreseen_part p = {0};
    double *naive = e + f->n_rows;
    uint32_t covered = 0, n = 0;

    for (uint32_t i = 0; i < f->n_rows; i++) {
        const struct asked *a = &f->rows[i];
        stk_time at = f->t->jobs[a->tag].submit, start = jobs[a->tag].first_start;

        if (!counts(a, jobs) || (!all && start == at))
            continue;
        e[n] = fabs(seconds(a->said.p50 - start));
        naive[n++] = fabs(a->naive_s - seconds(start - at));
        covered += start <= a->said.p90;
    }
    p.jobs = n;
    p.p90_coverage = n ? (double)covered / n : 0;
    p.mean_error_s = mean(e, n);
    p.naive_mean_error_s = mean(naive, n);
    p.median_error_s = median(e, n);
    p.naive_median_error_s = median(naive, n);
    return p;
}

static void sum_runs(const struct stk_foresee *f, double *e, struct stk_foreseen *ret)
{
    double *plain = e + f->n_rows;
    uint32_t n = 0;

    for (uint32_t i = 0; i < f->n_rows; i++) {
        const struct asked *a = &f->rows[i];
        double run = seconds(f->t->jobs[a->tag].duration);

        if (run <= 0)
            continue;
        e[n] = fabs(seconds(a->run) - run) / run;
        plain[n++] = fabs(seconds(a->plain_run) - run) / run;
    }
    ret->run_error = median(e, n);
    ret->plain_run_error = median(plain, n);
}

void stk_foresee_sum(struct stk_foresee *f, const struct stk_job_result *jobs,
                     struct stk_foreseen *ret)
{
    double *e = calloc(2 * (size_t)f->n_rows + 2, sizeof(*e));

    *ret = (struct stk_foreseen){.every = f->every};
    if (!e)
        return;
    for (uint32_t i = 0; i < f->n_rows; i++)
        ret->unknown += !counts(&f->rows[i], jobs);
    ret->all = sum_part(f, jobs, true, e);
    ret->waited = sum_part(f, jobs, false, e);
    sum_runs(f, e, ret);
    free(e);
}
