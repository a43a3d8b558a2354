/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - how a period was, from job records: two of these side by side are what a baseline is
 * for.
 *
 * Waits and completion times are of jobs that ended in the period and had started; GPU time is that
 * inside the period, also of jobs that began before or ended after it. A job that was stopped and
 * went on is counted as if its run time were spread evenly between first start and end.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/stats.h"
#include "whatif/whatif.h"

struct sums {
    stk_time since, until, now;
    stk_time *wait, *jct;
    uint32_t n, cap, in_page;
    stk_job_number before;
    uint64_t jobs, completed, failed, cancelled, preemptions, never_ran;
    double gpu_us, done_gpu_us; /* in the period; of jobs that ended in it */
    double steps, steps_gpu_us; /* of jobs that ended in it and said how far they came */
    double wait_sum, jct_sum;
    uint64_t with_steps;
};

static double part_of(const struct stk_record *r)
{
    return (double)r->gpus * (r->gpu_milli ? r->gpu_milli / 1000.0 : 1);
}

/* Of its run time, how much lies in the period. */
static double inside(const struct sums *s, const struct stk_record *r)
{
    stk_time end = r->ended ? r->ended : s->now, served = r->served;
    stk_time from = r->first_started > s->since ? r->first_started : s->since;
    stk_time to = end < s->until ? end : s->until;

    if (!r->ended && r->started && s->now > r->started)
        served += s->now - r->started;
    if (!r->first_started || to <= from || end <= r->first_started)
        return 0;
    return (double)served * (double)(to - from) / (double)(end - r->first_started);
}

static int keep_times(struct sums *s, stk_time wait, stk_time jct)
{
    if (s->n == s->cap) {
        uint32_t cap = s->cap ? s->cap * 2 : 4096;
        stk_time *w = realloc(s->wait, cap * sizeof(*w)), *j;

        if (!w)
            return -ENOMEM;
        s->wait = w;
        j = realloc(s->jct, cap * sizeof(*j));
        if (!j)
            return -ENOMEM;
        s->jct = j;
        s->cap = cap;
    }
    s->wait[s->n] = wait > 0 ? wait : 0;
    s->jct[s->n++] = jct;
    s->wait_sum += wait > 0 ? (double)wait : 0;
    s->jct_sum += (double)jct;
    return 0;
}

static int add(void *ctx, const struct stk_record *r)
{
    struct sums *s = ctx;
    double held = inside(s, r) * part_of(r);

    s->before = r->number;
    s->in_page++;
    s->gpu_us += held;
    if (!r->ended || r->ended < s->since || r->ended >= s->until)
        return 0;
    if (!r->first_started) {
        s->never_ran++;
        return 0;
    }
    s->jobs++;
    s->completed += r->cause == STK_CAUSE_OK;
    s->cancelled += r->cause == STK_CAUSE_CANCELLED;
    s->failed += r->cause != STK_CAUSE_OK && r->cause != STK_CAUSE_CANCELLED;
    s->preemptions += r->preemptions;
    if (r->steps > 0 && r->gpus > 0) {
        s->with_steps++;
        s->steps += (double)r->steps;
        s->steps_gpu_us += (double)r->served * part_of(r);
    }
    return keep_times(s, r->ended - r->submitted - r->served, r->ended - r->submitted);
}

static void set(json_t *o, const char *key, double v)
{
    (void)json_object_set_new(o, key, json_real(v));
}

static void set_times(json_t *o, const char *what, stk_time *v, stk_time *scratch, uint32_t n,
                      double sum)
{
    static const struct {
        const char *name;
        uint32_t per_mille;
    } at[] = {{"p50", 500}, {"p90", 900}, {"p99", 990}};
    char key[32];

    (void)snprintf(key, sizeof(key), "avg_%s_s", what);
    (void)json_object_set_new(o, key, n ? json_real(sum / n / 1e6) : json_null());
    if (n)
        stk_times_sort(v, scratch, n);
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        uint64_t rank = (uint64_t)n * at[i].per_mille / 1000;

        (void)snprintf(key, sizeof(key), "%s_%s_s", at[i].name, what);
        (void)json_object_set_new(o, key, n ? json_real((double)v[rank] / 1e6) : json_null());
    }
}

static json_t *show(struct sums *s, uint64_t gpus, stk_time *scratch)
{
    stk_time until = s->until < s->now ? s->until : s->now;
    double hours = (double)(until - s->since) / 3.6e9, capacity = hours * (double)gpus;
    json_t *o = json_pack("{s:f,s:f,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "since", (double)s->since / 1e6,
                          "until", (double)until / 1e6, "jobs", (json_int_t)s->jobs, "completed",
                          (json_int_t)s->completed, "failed", (json_int_t)s->failed, "cancelled",
                          (json_int_t)s->cancelled, "never_ran", (json_int_t)s->never_ran,
                          "preemptions", (json_int_t)s->preemptions, "gpus", (json_int_t)gpus);

    set(o, "jobs_per_day", hours > 0 ? (double)s->jobs * 24 / hours : 0);
    set(o, "gpu_hours", s->gpu_us / 3.6e9);
    set(o, "utilization", capacity > 0 ? s->gpu_us / 3.6e9 / capacity : 0);
    set_times(o, "wait", s->wait, scratch, s->n, s->wait_sum);
    set_times(o, "jct", s->jct, scratch, s->n, s->jct_sum);
    (void)json_object_set_new(o, "jobs_with_steps", json_integer((json_int_t)s->with_steps));
    (void)json_object_set_new(o, "steps_per_gpu_hour",
                              s->steps_gpu_us > 0 ? json_real(s->steps / (s->steps_gpu_us / 3.6e9))
                                                  : json_null());
    return o;
}

/* Every job that was there in the period. */
static int read_all(struct sums *s, struct stk_store *st, struct stk_err *err)
{
    struct stk_history_query q = {.since = s->since};
    int rc;

    do {
        s->in_page = 0;
        q.before = s->before;
        rc = stk_store_history(st, &q, add, s, err);
    } while (rc == 0 && s->in_page == STK_STORE_MAX_PAGE);
    return rc < 0 ? rc : stk_store_live(st, add, s, err);
}

int stk_figures(struct stk_store *st, struct stk_figures_of of, json_t **ret, struct stk_err *err)
{
    struct sums s = {.since = of.since, .until = of.until, .now = of.now};
    stk_time *scratch = NULL;
    int rc = read_all(&s, st, err);

    scratch = rc == 0 ? calloc(s.n + 1u, sizeof(*scratch)) : NULL;
    if (rc == 0 && !scratch)
        rc = -ENOMEM;
    if (rc == 0)
        *ret = show(&s, of.gpus, scratch);
    free(scratch);
    free(s.wait);
    free(s.jct);
    return rc == -ENOMEM ? stk_err_set(err, rc, "out of memory") : rc;
}
