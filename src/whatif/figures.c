/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - how a period was: two of these side by side are what a baseline is for, and one
 * stands beside every question "what if". What each figure means, figures/ says; here they are
 * added up over all jobs of the store.
 *
 * Completion times are of jobs that ended in the period and had started; waits are of jobs that
 * started in it; GPU time is that inside the period, whenever its jobs began and ended.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/stats.h"
#include "whatif/whatif.h"

struct times {
    stk_time *list;
    uint32_t n, cap;
    double sum;
};

struct sums {
    struct stk_store *st;
    struct stk_period p;
    stk_time now;
    struct stk_err *err;
    struct stk_leases leases;
    struct times wait, jct;
    uint32_t in_page;
    stk_job_number before;
    uint64_t jobs, completed, failed, cancelled, never_ran, starts;
    struct stk_period_figures *f;
    double steps; /* of jobs that ended in it and said how far they came; their GPU time: */
    stk_gpu_time steps_time;
    uint64_t with_steps;
};

static int add_time(struct times *t, stk_time v)
{
    if (t->n == t->cap) {
        uint32_t cap = t->cap ? t->cap * 2 : 4096;
        stk_time *more = realloc(t->list, cap * sizeof(*more));

        if (!more)
            return -ENOMEM;
        t->list = more;
        t->cap = cap;
    }
    t->list[t->n++] = v;
    t->sum += (double)v;
    return 0;
}

static int add_ended(struct sums *s, const struct stk_record *r, const struct stk_job_figures *f)
{
    if (!r->first_started) {
        s->never_ran++;
        return 0;
    }
    s->jobs++;
    s->completed += r->cause == STK_CAUSE_OK;
    s->cancelled += r->cause == STK_CAUSE_CANCELLED;
    s->failed += r->cause != STK_CAUSE_OK && r->cause != STK_CAUSE_CANCELLED;
    if (r->steps > 0 && r->gpus > 0) {
        s->with_steps++;
        s->steps += (double)r->steps;
        s->steps_time += f->ever;
    }
    return add_time(&s->jct, r->ended - r->submitted);
}

static int add_job(void *ctx, const struct stk_record *r)
{
    struct sums *s = ctx;
    struct stk_job_past past;
    struct stk_job_figures f;
    int rc;

    s->before = r->number;
    s->in_page++;
    if (r->submitted >= s->p.until)
        return 0;
    rc = stk_leases_read(&s->leases, s->st, r, s->err);
    if (rc < 0)
        return rc;
    past = (struct stk_job_past){.lease = s->leases.list, .n = s->leases.n};
    stk_figures_of_job(&past, s->p, s->now, &f, NULL);
    s->f->allocated += f.allocated;
    s->f->preemptions += f.preemptions;
    s->starts += f.starts;
    if (f.starts > 0)
        rc = add_time(&s->wait, f.waited);
    if (rc == 0 && r->ended >= s->p.since && r->ended < s->p.until)
        rc = add_ended(s, r, &f);
    return rc;
}

static void set_times(json_t *o, const char *what, struct times *t, stk_time *scratch)
{
    static const struct {
        const char *name;
        uint32_t per_mille;
    } at[] = {{"p50", 500}, {"p90", 900}, {"p99", 990}};
    char key[32];

    (void)snprintf(key, sizeof(key), "avg_%s_s", what);
    (void)json_object_set_new(o, key, t->n ? json_real(t->sum / t->n / 1e6) : json_null());
    if (t->n)
        stk_times_sort(t->list, scratch, t->n);
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        (void)snprintf(key, sizeof(key), "%s_%s_s", at[i].name, what);
        (void)json_object_set_new(
            o, key,
            t->n ? json_real((double)t->list[stk_figures_rank(t->n, at[i].per_mille)] / 1e6)
                 : json_null());
    }
}

static void set(json_t *o, const char *key, double v)
{
    (void)json_object_set_new(o, key, json_real(v));
}

/* null where it is not known: below 0. */
static void set_known(json_t *o, const char *key, double v)
{
    (void)json_object_set_new(o, key, v < 0 ? json_null() : json_real(v));
}

static void set_count(json_t *o, const char *key, uint64_t n)
{
    (void)json_object_set_new(o, key, json_integer((json_int_t)n));
}

static json_t *show(struct sums *s, stk_time *scratch)
{
    const struct stk_period_figures *f = s->f;
    const double days = (double)f->capacity.known / 8.64e10;
    json_t *o =
        json_pack("{s:f,s:f,s:I,s:I,s:I,s:I,s:I}", "since", (double)s->p.since / 1e6, "until",
                  (double)s->p.until / 1e6, "jobs", (json_int_t)s->jobs, "completed",
                  (json_int_t)s->completed, "failed", (json_int_t)s->failed, "cancelled",
                  (json_int_t)s->cancelled, "never_ran", (json_int_t)s->never_ran);

    set_count(o, "starts", s->starts);
    set_count(o, "preemptions", f->preemptions);
    set_count(o, "gpus", f->capacity.gpus);
    set_known(o, "jobs_per_day", days > 0 ? (double)s->jobs / days : -1);
    set_known(o, "preemptions_per_day", days > 0 ? (double)f->preemptions / days : -1);
    set(o, "capacity_gpu_hours", stk_figures_hours(f->capacity.sum));
    set(o, "gpu_hours", stk_figures_hours(f->allocated));
    set_known(o, "utilization", stk_figures_ratio(f->allocated, f->capacity.sum));
    set(o, "waited_s", s->wait.sum / 1e6);
    set_times(o, "wait", &s->wait, scratch);
    set_times(o, "jct", &s->jct, scratch);
    set_count(o, "jobs_with_steps", s->with_steps);
    (void)json_object_set_new(
        o, "steps_per_gpu_hour",
        s->steps_time > 0 ? json_real(s->steps / ((double)s->steps_time / 3.6e12)) : json_null());
    return o;
}

/* Every job that was there in the period. */
static int read_all(struct sums *s, struct stk_err *err)
{
    struct stk_history_query q = {.since = s->p.since};
    int rc;

    do {
        s->in_page = 0;
        q.before = s->before;
        rc = stk_store_history(s->st, &q, add_job, s, err);
    } while (rc == 0 && s->in_page == STK_STORE_MAX_PAGE);
    return rc < 0 ? rc : stk_store_live(s->st, add_job, s, err);
}

int stk_figures(struct stk_store *st, struct stk_period p, stk_time now,
                struct stk_period_figures *ret, json_t **ret_json, struct stk_err *err)
{
    struct stk_period_figures f = {0};
    struct sums s = {.st = st, .p = p, .now = now, .f = &f, .err = err};
    stk_time *scratch = NULL;
    int rc;

    s.p.until = p.until < now ? p.until : now;
    rc = stk_figures_read_capacity(st, s.p, &f.capacity, NULL, err);
    rc = rc < 0 ? rc : read_all(&s, err);
    if (rc == 0) {
        scratch = calloc((s.wait.n > s.jct.n ? s.wait.n : s.jct.n) + 1u, sizeof(*scratch));
        rc = scratch ? 0 : -ENOMEM;
    }
    if (rc == 0) {
        f.p = s.p;
        *ret_json = show(&s, scratch);
        *ret = f;
    }
    free(scratch);
    free(s.wait.list);
    free(s.jct.list);
    stk_leases_done(&s.leases);
    return rc == -ENOMEM ? stk_err_set(err, rc, "out of memory") : rc;
}
