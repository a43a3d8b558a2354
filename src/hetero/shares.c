/* SPDX-License-Identifier: Apache-2.0 */
/* shares.c - how Gavel's policies share out time. All but fifo are linear programs (lp/solve.h).
 *
 *   fifo                  the first jobs that fit have a type whole
 *   max_min_fairness      the least progress is largest, in units of an equal part of the cluster
 *   finish_time_fairness  the worst delay is least: time since it came and time it still takes,
 *                         against what both would be with an equal part of the cluster to itself
 *   min_total_duration    all jobs can end within the shortest time, to 5 %
 *
 * The last two are found by bisection: for a given delay or time the question is whether there are
 * shares that keep it. They are told how much each job has to do.
 *
 * Without speeds a job's shares of one type are as good as those of another, and the middle of all
 * solutions, which the solver finds, mixes all types for all jobs. Gavel's solver gives corners,
 * where most jobs have one type. So there the time a job has is dealt out again, types from the
 * slowest on, jobs from the newest on: each then has one type, or two.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hetero/solver.h"
#include "hetero/view.h"

#define RATIO_CLOSE 1.0005 /* of the bounds of the worst delay */
#define TIME_CLOSE 1.05    /* of the bounds of the total duration, as Gavel has it */
#define TIME_LEAST 100.
#define TIME_MOST 1e6

struct problem {
    struct stk_lp lp;
    double *gpus, *weight, *need, *speed, *x;
    double *scratch; /* per job, for the objective */
};

/* The cluster and the jobs' speeds, or what stands for these, in memory for 4 numbers per job and 2
 * per share. */
static void problem_init(struct problem *p, double *mem, const struct stk_shares *s,
                         const struct stk_view *v)
{
    size_t n = v->n, k = v->types;

    p->gpus = mem;
    p->weight = p->gpus + n;
    p->need = p->weight + n;
    p->scratch = p->need + n;
    p->speed = p->scratch + n;
    p->x = p->speed + n * k;
    p->lp = (struct stk_lp){v->n, v->types, v->count, p->gpus, p->weight, p->need, p->speed};
    for (size_t i = 0; i < n; i++) {
        p->gpus[i] = v->jobs[i].gpus;
        for (size_t t = 0; t < k; t++)
            p->speed[i * k + t] = s->perf                  ? v->jobs[i].speed[t]
                                  : s->rule == STK_MAX_MIN ? 1
                                                           : v->jobs[i].speed[v->faster[0]];
    }
}

static int ask(const struct stk_shares *s, struct problem *p, struct stk_err *err)
{
    double z;

    return stk_solver_ask(s->solver, &p->lp, &z, p->x, err);
}

static double all_gpus(const struct stk_view *v)
{
    double sum = 0;

    for (uint32_t t = 0; t < v->types; t++)
        sum += v->count[t];
    return sum;
}

static int max_min(const struct stk_shares *s, const struct stk_view *v, struct problem *p,
                   struct stk_err *err)
{
    uint32_t k = v->types;
    int rc;

    for (uint32_t i = 0; i < v->n; i++) {
        double equal = 0;

        for (uint32_t t = 0; t < k; t++)
            equal += p->speed[i * k + t] * v->count[t] / all_gpus(v);
        for (uint32_t t = 0; t < k; t++)
            p->speed[i * k + t] *= v->jobs[i].gpus / (equal * v->jobs[i].weight);
        p->weight[i] = 1;
    }
    rc = ask(s, p, err);
    return rc == -ERANGE ? stk_err_set(err, -EIO, "no shares for %u jobs", v->n) : rc;
}

/* Speed with an equal part of the cluster. */
static double speed_alone(const struct stk_view *v, const struct problem *p, uint32_t i)
{
    double time = 0, speed = 0;

    for (uint32_t t = 0; t < v->types; t++) {
        double x = v->count[t] / v->n / v->jobs[i].gpus;

        time += x;
        speed += x * p->speed[i * v->types + t];
    }
    return speed / (time > 1 ? time : 1);
}

/* Time from its arrival to its end with an equal part of the cluster. */
static double time_alone(const struct stk_view *v, const struct problem *p, uint32_t i)
{
    const struct stk_view_job *j = &v->jobs[i];
    struct stk_memo *m = j->memo;

    if (m->met)
        m->alone_s += (m->left - j->left) / m->alone_speed;
    m->met = true;
    m->alone_speed = speed_alone(v, p, i);
    m->left = j->left;
    return m->alone_s + j->left / m->alone_speed;
}

/* Whether the worst delay can be this. */
static int try_delay(const struct stk_shares *s, const struct stk_view *v, struct problem *p,
                     double delay, struct stk_err *err)
{
    for (uint32_t i = 0; i < v->n; i++)
        p->need[i] = v->jobs[i].left / (delay * p->scratch[i] - v->jobs[i].age_s);
    return ask(s, p, err);
}

/* Writes the shares down; later, worse answers do not touch them. */
static void keep(const struct problem *p, struct stk_view *v)
{
    for (uint32_t i = 0; i < v->n; i++)
        memcpy(v->jobs[i].share, &p->x[(size_t)i * v->types], v->types * sizeof(double));
}

static int finish_time(const struct stk_shares *s, struct stk_view *v, struct problem *p,
                       struct stk_err *err)
{
    double low = 1e-3, high;
    int rc;

    for (uint32_t i = 0; i < v->n; i++) {
        double best = 0, least;

        p->scratch[i] = time_alone(v, p, i);
        for (uint32_t t = 0; t < v->types; t++)
            best = fmax(best, p->speed[i * v->types + t]);
        least = (v->jobs[i].age_s + v->jobs[i].left / best) / p->scratch[i];
        low = fmax(low, least * 1.0001);
    }
    high = low;
    while ((rc = try_delay(s, v, p, high, err)) == -ERANGE) {
        low = high;
        high *= 2;
    }
    if (rc == 0)
        keep(p, v);
    while (rc == 0 && high / low > RATIO_CLOSE) {
        double mid = (low + high) / 2;

        rc = try_delay(s, v, p, mid, err);
        if (rc == 0)
            keep(p, v);
        *(rc == 0 ? &high : &low) = mid;
        rc = rc == -ERANGE ? 0 : rc;
    }
    return rc;
}

/* The shortest time between these bounds in which all can end. -ERANGE: there is none. */
static int within(const struct stk_shares *s, struct stk_view *v, struct problem *p, double low,
                  double high, struct stk_err *err)
{
    int found = -ERANGE;

    while (TIME_CLOSE * low < high) {
        double time = (low + high) / 2;
        int rc;

        for (uint32_t i = 0; i < v->n; i++)
            p->need[i] = v->jobs[i].left / time;
        rc = ask(s, p, err);
        if (rc < 0 && rc != -ERANGE)
            return rc;
        if (rc == 0) {
            keep(p, v);
            found = 0;
        }
        *(rc == 0 ? &high : &low) = time;
    }
    return found;
}

static int total_duration(const struct stk_shares *s, struct stk_view *v, struct problem *p,
                          struct stk_err *err)
{
    double low = TIME_LEAST, high = TIME_MOST;
    int rc;

    while ((rc = within(s, v, p, low, high, err)) == -ERANGE && high < 1e12) {
        low = high;
        high *= 10;
    }
    return rc == -ERANGE ? stk_err_set(err, -EIO, "no shares for %u jobs", v->n) : rc;
}

static void deal(struct stk_view *v)
{
    double left[STK_MAX_GPU_TYPES];

    memcpy(left, v->count, sizeof(left));
    for (uint32_t i = v->n; i-- > 0;) {
        struct stk_view_job *j = &v->jobs[i];
        double time = 0;

        for (uint32_t t = 0; t < v->types; t++) {
            time += j->share[t];
            j->share[t] = 0;
        }
        for (uint32_t t = v->types; t-- > 0;) {
            uint32_t type = v->faster[t];
            double x = fmin(fmin(time, 1), left[type] / j->gpus);

            j->share[type] = x;
            left[type] -= x * j->gpus;
            time -= x;
        }
    }
}

static int solve(const struct stk_shares *s, struct stk_view *v, struct stk_err *err)
{
    size_t n = v->n;
    double *mem = calloc(4 * n + 2 * n * v->types, sizeof(*mem));
    struct problem p;
    int rc;

    if (!mem)
        return stk_err_set(err, -ENOMEM, "out of memory");
    problem_init(&p, mem, s, v);
    if (s->rule == STK_MAX_MIN) {
        rc = max_min(s, v, &p, err);
        if (rc == 0)
            keep(&p, v);
    } else {
        rc =
            s->rule == STK_FINISH_TIME ? finish_time(s, v, &p, err) : total_duration(s, v, &p, err);
    }
    free(mem);
    if (rc == 0 && !s->perf && s->rule != STK_TOTAL_DURATION)
        deal(v);
    return rc;
}

int stk_shares_make(struct stk_shares *s, struct stk_view *v, struct stk_err *err)
{
    if (v->n == 0)
        return 0;
    return s->rule == STK_FIFO ? stk_fifo_make(s, v, err) : solve(s, v, err);
}

void stk_shares_done(struct stk_shares *s)
{
    stk_solver_free(s->solver);
    free(s->seats);
}
