/* SPDX-License-Identifier: Apache-2.0 */
/* recorded.c - one sweep over what happened, in order of time: jobs come, start and end. A job
 * that has a recorded wait started when that was over and ran without a break; what pauses it had
 * are part of the wait. At one instant jobs end before others start. */
#include "sim/recorded.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/stats.h"

#define WINDOW (INT64_C(86400) * STK_SECOND) /* of fairness; as sim.window_s */
#define DATED (INT64_C(1000000000) * STK_SECOND)
#define USUAL_NODE 8u

enum what { ENDS, COMES, STARTS }; /* in this order at one instant */

struct step {
    stk_time at;
    uint32_t job;
    uint32_t what;
};

uint32_t stk_recorded_jobs(const struct stk_trace *t)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->n_jobs; i++)
        n += t->jobs[i].recorded;
    return n;
}

bool stk_trace_is_dated(const struct stk_trace *t)
{
    return t->n_jobs > 0 && t->jobs[0].submit >= DATED;
}

static int by_time(const void *a, const void *b)
{
    const struct step *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->what != y->what)
        return x->what < y->what ? -1 : 1;
    return x->job < y->job ? -1 : x->job > y->job;
}

/* Three steps for each job that says when it ran, in order. NULL: out of memory. */
static struct step *make_steps(const struct stk_trace *t, uint32_t *ret_n)
{
    struct step *s = calloc(3 * (size_t)stk_recorded_jobs(t) + 1, sizeof(*s));
    uint32_t n = 0;

    for (uint32_t i = 0; s && i < t->n_jobs; i++) {
        const struct stk_trace_job *j = &t->jobs[i];
        stk_time start = j->submit + j->waited;

        if (!j->recorded)
            continue;
        s[n++] = (struct step){j->submit, i, COMES};
        s[n++] = (struct step){start, i, STARTS};
        /* one that ended as it began still begins first */
        s[n++] = (struct step){start + j->duration, i, j->duration ? ENDS : STARTS + 1};
    }
    if (s)
        qsort(s, n, sizeof(*s), by_time);
    *ret_n = n;
    return s;
}

static uint64_t gpus_of(const struct stk_trace_job *j)
{
    return (uint64_t)j->gpus * (j->tasks ? j->tasks : 1);
}

static double part_of(const struct stk_trace_job *j)
{
    return j->gpu_milli ? j->gpu_milli / 1000.0 : 1;
}

/* ---- as the result of a run ---- */

struct sweep {
    const struct stk_trace *t;
    struct stk_run_result *r;
    struct stk_fairness *fair;
    double busy; /* GPUs in use */
    uint32_t waiting, running;
    bool samples;
};

static int add_sample(struct sweep *w, stk_time at)
{
    struct stk_run_result *r = w->r;

    if (r->n_samples > 0 && r->samples[r->n_samples - 1].at == at)
        r->n_samples--;
    if (r->n_samples == r->cap_samples) {
        uint32_t cap = r->cap_samples ? r->cap_samples * 2 : 1024;
        struct stk_sample *more = realloc(r->samples, cap * sizeof(*more));

        if (!more)
            return -ENOMEM;
        r->samples = more;
        r->cap_samples = cap;
    }
    r->samples[r->n_samples++] =
        (struct stk_sample){at, (uint32_t)(w->busy + 0.5), w->waiting, w->running};
    return 0;
}

static int take_step(struct sweep *w, const struct step *s)
{
    const struct stk_trace_job *j = &w->t->jobs[s->job];
    double gpus = (double)gpus_of(j) * part_of(j);
    bool holds = s->what == STARTS, comes = s->what == COMES;

    if (comes) {
        w->waiting++;
    } else if (holds) {
        w->waiting--;
        w->running++;
        w->busy += gpus;
    } else {
        w->running--;
        w->busy -= gpus;
    }
    if (w->waiting > w->r->max_waiting)
        w->r->max_waiting = w->waiting;
    if (w->fair && stk_fairness_say(w->fair, s->job, s->at, holds, comes || holds) < 0)
        return -ENOMEM;
    return w->samples ? add_sample(w, s->at) : 0;
}

static int fill_jobs(const struct stk_trace *t, struct stk_run_result *r)
{
    r->jobs = calloc(t->n_jobs + 1u, sizeof(*r->jobs));
    for (uint32_t i = 0; r->jobs && i < t->n_jobs; i++) {
        const struct stk_trace_job *j = &t->jobs[i];
        stk_time start = j->submit + j->waited;

        r->jobs[i] = (struct stk_job_result){.first_start = -1, .end = -1};
        if (!j->recorded)
            continue;
        r->jobs[i].first_start = start;
        r->jobs[i].end = start + j->duration;
        r->jobs[i].wait = j->waited;
        r->jobs[i].nodes = j->per_node && j->tasks ? j->tasks / j->per_node : 1;
    }
    return r->jobs ? 0 : -ENOMEM;
}

static int watch_fairness(struct sweep *w, const struct stk_run_options *o)
{
    const struct stk_tenants *own = o->tenants;

    if (own && own->teams.n_tenants > 0)
        return stk_fairness_new(w->t, own->teams.tenants, own->teams.n_tenants, own->of_trace,
                                WINDOW, &w->fair);
    return o->flat ? stk_fairness_new(w->t, o->flat->rows, o->flat->n, o->flat->of_trace, WINDOW,
                                      &w->fair)
                   : 0;
}

static int sweep_all(struct sweep *w, const struct stk_run_options *o, struct stk_run_result *r)
{
    uint32_t n = 0;
    double busy_us = 0;
    stk_time first = 0, last = 0;
    struct step *s = make_steps(w->t, &n);
    int rc = s ? watch_fairness(w, o) : -ENOMEM;

    if (rc == 0 && n > 0) {
        first = last = s[0].at;
        r->n_samples = 0;
    }
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        busy_us += w->busy * (double)(s[i].at - last);
        last = s[i].at;
        rc = take_step(w, &s[i]);
    }
    free(s);
    if (rc == 0 && last > first && r->gpus > 0)
        r->utilization = busy_us / ((double)(last - first) * (double)r->gpus);
    if (rc == 0 && w->fair)
        stk_fairness_sum(w->fair, last, r->gpus, r->jobs, &r->fair);
    stk_fairness_free(w->fair);
    return rc;
}

int stk_recorded_run(const struct stk_trace *t, const struct stk_cluster *c,
                     const struct stk_run_options *o, struct stk_run_result *ret,
                     struct stk_err *err)
{
    struct stk_run_result r = {.bundle = STK_RECORDED_NAME, .policies = "as it happened"};
    struct sweep w = {.t = t, .r = &r, .samples = o->samples};
    int rc;

    if (stk_recorded_jobs(t) == 0)
        return stk_err_set(err, -EINVAL,
                           "no job of the workload says how long it waited (waited_s)");
    for (uint32_t i = 0; i < c->n_nodes; i++)
        r.gpus += c->nodes[i].gpus;
    r.nodes = c->n_nodes;
    r.pools = c->pools.n;
    r.recorded_only = true;
    rc = fill_jobs(t, &r);
    rc = rc < 0 ? rc : sweep_all(&w, o, &r);
    if (rc < 0) {
        stk_run_result_done(&r);
        return stk_err_set(err, rc, "out of memory");
    }
    r.fair.asked = o->tenants && o->tenants->teams.n_tenants > 0;
    stk_run_result_sum(&r, t, o->first_id, o->last_id);
    *ret = r;
    return 0;
}

/* ---- the machines ---- */

struct use { /* of one GPU type; the last: of jobs that take any */
    uint64_t now, peak;
    uint32_t node;
};

static uint32_t type_of(const struct stk_trace_job *j)
{
    return j->gpu_types == STK_ANY_GPU_TYPE || j->gpu_types == 0
               ? STK_MAX_GPU_TYPES
               : (uint32_t)__builtin_ctzll(j->gpu_types);
}

static void count_use(struct use *u, const struct stk_trace_job *j, uint32_t what)
{
    uint64_t milli = gpus_of(j) * (j->gpu_milli ? j->gpu_milli : 1000);
    uint32_t task = j->tasks || j->gpus < USUAL_NODE ? j->gpus : USUAL_NODE;

    if (what == COMES)
        return;
    u->now += what == STARTS ? milli : -milli;
    u->peak = u->now > u->peak ? u->now : u->peak;
    u->node = task > u->node ? task : u->node;
}

/* 1, 2, 4, 8, and above that as many as were seen. */
static uint32_t node_size(uint32_t task)
{
    uint32_t n = 1;

    while (n < task && n < USUAL_NODE)
        n *= 2;
    n = task > n ? task : n;
    return n < STK_MAX_NODE_GPUS ? n : STK_MAX_NODE_GPUS;
}

static int add_words(const struct stk_trace *t, const struct use *u, uint32_t type, char *words)
{
    size_t len = strlen(words);
    uint64_t gpus = (u->peak + 999) / 1000;
    uint32_t node = node_size(u->node);
    bool named = type < t->gpu_types.n;
    int n;

    if (gpus == 0)
        return 0;
    n = snprintf(words + len, STK_RECORDED_WORDS - len, "%s%" PRIu64 "x%u%s%.60s", len ? "+" : "",
                 (gpus + node - 1) / node, node, named ? ":" : "",
                 named ? stk_names_get(&t->gpu_types, type) : "");
    return n < 0 || (size_t)n >= STK_RECORDED_WORDS - len ? -E2BIG : 0;
}

int stk_recorded_cluster(const struct stk_trace *t, char words[STK_RECORDED_WORDS],
                         struct stk_err *err)
{
    struct use use[STK_MAX_GPU_TYPES + 1] = {{0}};
    uint32_t n = 0;
    struct step *s = make_steps(t, &n);
    int rc = s ? 0 : stk_err_set(err, -ENOMEM, "out of memory");

    words[0] = '\0';
    for (uint32_t i = 0; s && i < n; i++) {
        const struct stk_trace_job *j = &t->jobs[s[i].job];

        count_use(&use[type_of(j)], j, s[i].what);
    }
    for (uint32_t k = 0; rc == 0 && k <= STK_MAX_GPU_TYPES; k++)
        if (add_words(t, &use[k], k, words) < 0)
            rc = stk_err_set(err, -EINVAL, "too many GPU types to guess the cluster from");
    free(s);
    if (rc == 0 && words[0] == '\0')
        rc = stk_err_set(err, -EINVAL, "no job says when it ran");
    return rc;
}
