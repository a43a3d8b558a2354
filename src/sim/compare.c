/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/compare.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "sim/stats.h"

#define MAX_THREADS 16

struct shared {
    const struct stk_compare *c;
    struct stk_run_result *results;
    struct stk_err *errs;
    int *rcs;
    atomic_uint next;
};

static double thread_cpu_s(void)
{
    struct timespec ts = {0};

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static double process_cpu_s(const struct rusage *u)
{
    return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
           (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) * 1e-6;
}

static void one(struct shared *s, uint32_t i, struct stk_progress *progress)
{
    const struct stk_compare *c = s->c;
    struct stk_run_options o = c->options;
    double before = thread_cpu_s();

    o.progress = progress;
    o.rules = i < c->plain ? NULL : o.rules;
    o.reservations = i < c->plain ? NULL : o.reservations;
    s->rcs[i] = stk_sim_run(c->trace, c->cluster, &c->setups[i], &o, &s->results[i], &s->errs[i]);
    if (s->rcs[i] < 0)
        return;
    s->results[i].recorded_only = o.recorded;
    stk_run_result_sum(&s->results[i], c->trace, o.first_id, o.last_id);
    s->results[i].cpu_s = thread_cpu_s() - before;
}

/* The first thread shows the progress of the run it is at; a comparison shows that of all. */
static void *work(void *arg)
{
    struct shared *s = arg;
    uint32_t i;

    while ((i = atomic_fetch_add(&s->next, 1)) < s->c->n)
        one(s, i, NULL);
    return NULL;
}

static void run_with_progress(struct shared *s)
{
    struct stk_progress p;
    uint32_t i;

    while ((i = atomic_fetch_add(&s->next, 1)) < s->c->n) {
        stk_progress_init(&p, s->c->setups[i].name, s->c->trace->n_jobs);
        one(s, i, &p);
        stk_progress_done(&p);
    }
}

static void run_all(struct shared *s)
{
    pthread_t threads[MAX_THREADS];
    uint32_t n = 0, want = 1;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (cores > 1 && s->c->n > 1)
        want = cores > MAX_THREADS ? MAX_THREADS : (uint32_t)cores;
    if (want > s->c->n)
        want = s->c->n;
    while (n + 1 < want && pthread_create(&threads[n], NULL, work, s) == 0)
        n++;
    if (s->c->progress)
        run_with_progress(s);
    else
        (void)work(s);
    while (n > 0)
        (void)pthread_join(threads[--n], NULL);
}

int stk_compare_run(const struct stk_compare *c, struct stk_run_result *results,
                    struct stk_err *err)
{
    struct shared s = {.c = c, .results = results};
    struct rusage u = {0};
    int rc = 0;

    s.errs = calloc(c->n, sizeof(*s.errs));
    s.rcs = calloc(c->n, sizeof(*s.rcs));
    if (!s.errs || !s.rcs) {
        rc = stk_err_set(err, -ENOMEM, "out of memory");
        goto out;
    }
    run_all(&s);
    (void)getrusage(RUSAGE_SELF, &u);
    for (uint32_t i = 0; i < c->n; i++) {
        results[i].rss_mib = (double)u.ru_maxrss / 1024.0;
        if (c->n == 1)
            results[i].cpu_s = process_cpu_s(&u); /* reading the trace included */
        if (s.rcs[i] < 0 && rc == 0)
            rc = stk_err_set(err, s.rcs[i], "%s", s.errs[i].text);
    }
    for (uint32_t i = 0; rc < 0 && i < c->n; i++)
        stk_run_result_done(&results[i]);
out:
    free(s.errs);
    free(s.rcs);
    return rc;
}
