/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c - draws a workload from its specification.
 *
 * First what the jobs are, then when they come. With the jobs known, the span over which they must
 * arrive for the load that was asked for is a division, so the load is met exactly and not only on
 * average. Arrivals are n points of a Poisson process on that span, given that there are n: sums of
 * exponentials, scaled, which come out sorted, and are bent by the shape of days and weeks.
 *
 * Each aspect draws from a stream of its own: another 'day' does not change any job's size. All
 * times are whole seconds, as in the public traces; that also hides last-bit differences between
 * mathematical libraries, if not all of them.
 */
#include "sim/generate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "sim/generate_spec.h"
#include "sim/trace_extra.h"

#define DAY_S 86400.0
#define STEP_S 900.0 /* the day's shape is a staircase of this width */
#define STEPS_PER_DAY 96
#define STEPS_PER_WEEK 672u
#define BUSIEST_STEP 60 /* three in the afternoon */

enum stream {
    STREAM_CLASS,
    STREAM_SIZE,
    STREAM_DURATION,
    STREAM_TENANT,
    STREAM_ESTIMATE,
    STREAM_ARRIVAL,
    STREAM_DEADLINE,
    N_STREAMS
};

struct generator {
    struct stk_gen_spec spec;
    struct stk_rng rng[N_STREAMS];
    double *tenant_sum;  /* cumulative weights */
    uint32_t *tenant;    /* number in trace->tenants; STK_NONE: it has no job yet */
    double spare_normal; /* normals come in pairs */
    bool has_spare;
    double intensity[STEPS_PER_WEEK];
};

static double seconds(stk_time t)
{
    return (double)t / (double)STK_SECOND;
}

static double normal(struct generator *g)
{
    struct stk_rng *r = &g->rng[STREAM_DURATION];
    double x, y, s, scale;

    if (g->has_spare) {
        g->has_spare = false;
        return g->spare_normal;
    }
    do { /* polar method: a point in the unit disc */
        x = 2 * stk_rng_unit(r) - 1;
        y = 2 * stk_rng_unit(r) - 1;
        s = x * x + y * y;
    } while (s >= 1 || s == 0);
    scale = sqrt(-2 * log(s) / s);
    g->spare_normal = y * scale;
    g->has_spare = true;
    return x * scale;
}

static const struct stk_gen_class *pick_class(struct generator *g)
{
    double sum = 0, at;
    uint32_t i = 0;

    if (g->spec.n_classes == 1)
        return &g->spec.classes[0];
    for (i = 0; i < g->spec.n_classes; i++)
        sum += g->spec.classes[i].weight;
    at = stk_rng_unit(&g->rng[STREAM_CLASS]) * sum;
    for (i = 0; i + 1 < g->spec.n_classes && at >= g->spec.classes[i].weight; i++)
        at -= g->spec.classes[i].weight;
    return &g->spec.classes[i];
}

static uint32_t pick_size(struct generator *g, const struct stk_gen_class *c)
{
    double sum = 0, at;
    uint32_t i;

    for (i = 0; i < c->n_sizes; i++)
        sum += c->sizes[i].weight;
    at = stk_rng_unit(&g->rng[STREAM_SIZE]) * sum;
    for (i = 0; i + 1 < c->n_sizes && at >= c->sizes[i].weight; i++)
        at -= c->sizes[i].weight;
    return c->sizes[i].gpus;
}

static stk_time pick_duration(struct generator *g, const struct stk_gen_class *c)
{
    double s = c->dur_median_s * exp(c->dur_sigma * normal(g));

    if (s > c->dur_max_s)
        s = c->dur_max_s;
    return (stk_time)(s < 1 ? 1 : floor(s + 0.5)) * STK_SECOND;
}

/* The number of a tenant is given at its first job, as when the trace is read from a file: written
 * and read again it is the same trace. */
static int64_t number_tenant(struct generator *g, struct stk_trace *t, uint32_t i)
{
    char name[32];
    int64_t number = g->tenant[i];

    if (number != STK_NONE)
        return number;
    number = snprintf(name, sizeof(name), "team-%" PRIu32, i + 1);
    number = stk_names_add(&t->tenants, name, (size_t)number, STK_TRACE_MAX_NAMES);
    if (number >= 0)
        g->tenant[i] = (uint32_t)number;
    return number;
}

static int64_t pick_tenant(struct generator *g, struct stk_trace *t)
{
    uint32_t lo = 0, hi = (uint32_t)g->spec.tenants - 1;
    double at = stk_rng_unit(&g->rng[STREAM_TENANT]) * g->tenant_sum[hi];

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (at < g->tenant_sum[mid])
            hi = mid;
        else
            lo = mid + 1;
    }
    return number_tenant(g, t, lo);
}

/* Between once and 2f - 1 times the duration, f times on average. */
static stk_time pick_estimate(struct generator *g, stk_time duration)
{
    double f = g->spec.estimate_factor, s;

    if (f <= 1)
        return 0;
    f = 1 + 2 * (f - 1) * stk_rng_unit(&g->rng[STREAM_ESTIMATE]);
    s = ceil(seconds(duration) * f);
    return s < seconds(STK_MAX_DURATION) ? (stk_time)s * STK_SECOND : STK_MAX_DURATION;
}

/* How busy each quarter of an hour of the week is; 1 is the average working day. */
static void shape_week(struct generator *g)
{
    for (int i = 0; i < (int)STEPS_PER_WEEK; i++) {
        double angle = 2 * M_PI * (i % STEPS_PER_DAY - BUSIEST_STEP) / STEPS_PER_DAY;
        bool weekend = i >= 5 * STEPS_PER_DAY;

        g->intensity[i] = (1 + g->spec.day * cos(angle)) * (weekend ? 1 - g->spec.week : 1);
    }
}

static int weigh_tenants(struct generator *g)
{
    uint32_t n = (uint32_t)g->spec.tenants;
    double sum = 0;

    g->tenant_sum = malloc(n * sizeof(*g->tenant_sum));
    g->tenant = malloc(n * sizeof(*g->tenant));
    if (!g->tenant_sum || !g->tenant)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        g->tenant[i] = STK_NONE;
        sum += 1.0 / (i + 1);
        g->tenant_sum[i] = sum;
    }
    return 0;
}

/* Appends the jobs, all but their submit times. Returns the GPU-seconds they hold, or -Exxx. */
static double draw_jobs(struct generator *g, struct stk_trace *t, uint32_t n)
{
    int64_t group = stk_names_add(&t->groups, "default", strlen("default"), STK_TRACE_MAX_NAMES);
    double work = 0;

    if (group < 0)
        return (double)group;
    for (uint32_t i = 0; i < n; i++) {
        const struct stk_gen_class *c = pick_class(g);
        struct stk_trace_job *j = stk_trace_push(t);
        int64_t tenant;

        if (!j)
            return -ENOMEM;
        j->id = i + 1;
        j->gpus = pick_size(g, c);
        j->duration = pick_duration(g, c);
        j->estimate = pick_estimate(g, j->duration);
        tenant = pick_tenant(g, t);
        if (tenant < 0)
            return (double)tenant;
        j->tenant = (uint32_t)tenant;
        j->group = (uint32_t)group;
        j->gpu_types = STK_ANY_GPU_TYPE;
        j->kind = (uint8_t)c->kind;
        j->tier = (uint8_t)c->tier;
        j->priority = c->priority;
        j->cause = STK_CAUSE_OK;
        work += (double)j->gpus * seconds(j->duration);
    }
    return work;
}

static double span_seconds(const struct stk_gen_spec *s, double work)
{
    if (s->rate > 0)
        return s->jobs / s->rate * 3600;
    if (s->days > 0)
        return s->days * DAY_S;
    if (s->hours > 0)
        return s->hours * 3600;
    return work / (s->load * s->gpus);
}

/* What all steps of [0, span) weigh together; the last may be cut. */
static double total_intensity(const struct generator *g, double span)
{
    uint64_t whole = (uint64_t)(span / STEP_S);
    double sum = 0;

    for (uint64_t i = 0; i < whole; i++)
        sum += g->intensity[i % STEPS_PER_WEEK] * STEP_S;
    return sum + g->intensity[whole % STEPS_PER_WEEK] * (span - (double)whole * STEP_S);
}

/* Walks jobs and steps together: job k comes when as much intensity has passed as its share says.
 */
static void draw_arrivals(struct generator *g, struct stk_trace_job *jobs, uint32_t n, double span)
{
    struct stk_rng replay = g->rng[STREAM_ARRIVAL];
    double all = 0, passed = 0, total = total_intensity(g, span), sum = 0;
    uint64_t step = 0;

    for (uint32_t i = 0; i <= n; i++)
        all -= log1p(-stk_rng_unit(&g->rng[STREAM_ARRIVAL]));
    for (uint32_t i = 0; i < n; i++) {
        double want, here, at;

        sum -= log1p(-stk_rng_unit(&replay));
        want = total * (all > 0 ? sum / all : 0);
        here = g->intensity[step % STEPS_PER_WEEK];
        while (passed + here * STEP_S < want && (double)(step + 1) * STEP_S < span) {
            passed += here * STEP_S;
            here = g->intensity[++step % STEPS_PER_WEEK];
        }
        at = (double)step * STEP_S + (here > 0 ? (want - passed) / here : 0);
        jobs[i].submit = (stk_time)fmax(0, fmin(at, span)) * STK_SECOND;
    }
}

/* Between once and 2f - 1 times the estimate after they come, f times on average. */
static int draw_deadlines(struct generator *g, struct stk_trace *t, uint32_t first)
{
    struct stk_rng *rng = &g->rng[STREAM_DEADLINE];

    for (uint32_t i = first; g->spec.deadlines > 0 && i < t->n_jobs; i++) {
        struct stk_trace_job *j = &t->jobs[i];
        const bool has = stk_rng_unit(rng) < g->spec.deadlines;
        const double f = 1 + 2 * (g->spec.slack - 1) * stk_rng_unit(rng);
        const double need = seconds(j->estimate > 0 ? j->estimate : j->duration);
        const double at = ceil(seconds(j->submit) + f * need);
        struct stk_trace_extra x = {.deadline = (stk_time)at * STK_SECOND};

        if (has && at < seconds(STK_MAX_DURATION) && stk_extra_keep(t, &x, j) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int generate(struct generator *g, struct stk_trace *t, struct stk_err *err)
{
    uint32_t first = t->n_jobs, n = (uint32_t)g->spec.jobs;
    double work, span;
    int rc = weigh_tenants(g);

    if (rc < 0)
        return stk_err_set(err, rc, "generate: %s", strerror(-rc));
    work = draw_jobs(g, t, n);
    if (work < 0)
        return stk_err_set(err, (int)work, "generate: out of memory or over %u jobs",
                           STK_TRACE_MAX_JOBS);
    span = span_seconds(&g->spec, work);
    if (span > seconds(STK_MAX_DURATION)) {
        t->n_jobs = first;
        return stk_err_set(
            err, -EINVAL,
            "generate: the jobs would arrive over %.0f days (at most 36525); ask for "
            "fewer jobs or a higher load or rate",
            span / DAY_S);
    }
    shape_week(g);
    draw_arrivals(g, t->jobs + first, n, span);
    if (draw_deadlines(g, t, first) < 0)
        return stk_err_set(err, -ENOMEM, "generate: out of memory");
    t->times_in_trace = true;
    return stk_trace_sort(t) < 0 ? stk_err_set(err, -ENOMEM, "generate: out of memory") : 0;
}

int stk_generate(struct stk_trace *t, const char *spec, uint64_t default_seed, struct stk_err *err)
{
    struct generator *g = calloc(1, sizeof(*g));
    int rc;

    if (!g)
        return stk_err_set(err, -ENOMEM, "generate: out of memory");
    rc = stk_gen_spec_parse(&g->spec, spec, default_seed, err);
    for (uint64_t i = 0; i < N_STREAMS; i++)
        stk_rng_init(&g->rng[i], g->spec.seed + (i << 56));
    if (rc == 0)
        rc = generate(g, t, err);
    free(g->tenant_sum);
    free(g->tenant);
    free(g);
    return rc;
}
