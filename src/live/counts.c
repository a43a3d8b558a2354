/* SPDX-License-Identifier: Apache-2.0 */
/* counts.c - counts events as they are written, turns and commits as they are made. */
#include "live/counts.h"

#include <stdlib.h>
#include <time.h>

#include "core/state.h"
#include "live/state.h"

static const double wait_le[] = {1,    5,     15,    60,    300,    900,    1800, 3600,
                                 7200, 14400, 28800, 86400, 172800, 604800, 0};
static const double turn_le[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                 0.05,   0.1,     0.25,   0.5,   1,      2.5,   10,   0};

const char *stk_evicted_name(enum stk_why_evicted w)
{
    static const char *const names[STK_EVICTED_MAX] = {"priority", "reclaim", "other", "move",
                                                       "hand"};

    return (unsigned)w < STK_EVICTED_MAX ? names[w] : "other";
}

void stk_live_counts_init(struct stk_live *l)
{
    l->counts.wait.le = wait_le;
    l->counts.turn.le = turn_le;
    l->counts.commit.le = turn_le;
}

void stk_live_counts_free(struct stk_live *l)
{
    free(l->counts.tenant);
    l->counts.tenant = NULL;
    l->counts.n_tenants = 0;
}

const struct stk_live_counts *stk_live_counts(const struct stk_live *l)
{
    return &l->counts;
}

uint64_t stk_live_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

double stk_live_seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* NULL: there are no tenants, or no memory. */
static struct stk_tenant_counts *of_tenant(struct stk_live *l, const struct stk_job *j)
{
    uint32_t n = stk_core_state(l->core)->n_tenants;
    struct stk_live_counts *c = &l->counts;

    if (j->tenant >= n)
        return NULL;
    if (c->n_tenants < n) {
        struct stk_tenant_counts *more = realloc(c->tenant, n * sizeof(*more));

        if (!more)
            return NULL;
        for (uint32_t i = c->n_tenants; i < n; i++)
            more[i] = (struct stk_tenant_counts){0};
        c->tenant = more;
        c->n_tenants = n;
    }
    return &c->tenant[j->tenant];
}

void stk_live_count_first(struct stk_live *l, const struct stk_job *j)
{
    struct stk_tenant_counts *t = of_tenant(l, j);

    l->counts.started++;
    if (t)
        t->started++;
}

void stk_live_count_lease(struct stk_live *l, const struct stk_job *j, stk_time waited)
{
    struct stk_tenant_counts *t = of_tenant(l, j);

    stk_histogram_add(&l->counts.wait, (double)waited / 1e6);
    if (!t)
        return;
    t->starts++;
    t->waited += waited;
}

static enum stk_why_evicted why(const struct stk_state *s, const struct stk_job *j,
                                const struct stk_event *ev)
{
    uint32_t other = ev->u.evict.for_job.i;

    if (ev->u.evict.by_hand)
        return STK_EVICTED_HAND;
    if (ev->u.evict.moved)
        return STK_EVICTED_MOVE;
    if (other >= s->n_jobs)
        return STK_EVICTED_OTHER;
    return s->jobs[other].tenant != j->tenant ? STK_EVICTED_RECLAIM : STK_EVICTED_PRIORITY;
}

/* The job is to run again: what it did since it last saved its work was for nothing. */
static void count_lost(struct stk_live *l, const struct stk_job *j, const struct stk_event *ev)
{
    const struct stk_state *s = stk_core_state(l->core);
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    stk_time saved = s->stakes[ev->job.i].saved;
    stk_time from = saved > j->started ? saved : j->started;
    double gpus = (double)j->gpus * stk_demand_milli(d) / 1000;

    if (j->state != STK_JOB_DONE && j->started > 0 && ev->at > from)
        l->counts.lost_gpu_s += (double)(ev->at - from) / 1e6 * gpus;
}

void stk_live_count_event(struct stk_live *l, const struct stk_event *ev, const struct stk_job *j)
{
    struct stk_live_counts *c = &l->counts;
    struct stk_entry *e;

    c->decided += ev->type == STK_EV_PLACE || ev->type == STK_EV_EVICT;
    c->submitted += ev->type == STK_EV_SUBMIT;
    c->placed += ev->type == STK_EV_PLACE;
    if (j && ev->type == STK_EV_EXITED)
        count_lost(l, j, ev);
    if (!j || ev->type != STK_EV_EVICT)
        return;
    e = stk_entries_find(&l->entries, j->number);
    if (e)
        e->evicted = (uint8_t)(why(stk_core_state(l->core), j, ev) + 1);
}

void stk_live_count_lease_end(struct stk_live *l, const struct stk_job *j,
                              const struct stk_event *ev, struct stk_entry *e)
{
    const struct stk_lease *lease = &e->rec.lease;
    const struct stk_job_past past = {.lease = lease, .n = 1};
    const bool stopped = ev->type == STK_EV_SUSPENDED || ev->u.exit.cause == STK_CAUSE_EVICTED;
    enum stk_why_evicted because =
        e->evicted ? (enum stk_why_evicted)(e->evicted - 1) : STK_EVICTED_OTHER;
    struct stk_tenant_counts *t = lease->preempted ? of_tenant(l, j) : NULL;
    struct stk_job_figures f;

    stk_figures_of_job(&past, (struct stk_period){l->counts.since, STK_NEVER_TIME}, ev->at, &f,
                       NULL);
    l->counts.allocated += f.allocated;
    e->evicted = 0;
    if (t)
        t->preempted++;
    if (lease->preempted && because >= STK_PREEMPTED_MAX)
        because = STK_EVICTED_OTHER;
    if (lease->preempted || (stopped && because >= STK_PREEMPTED_MAX))
        l->counts.evicted[because]++;
}

stk_gpu_time stk_live_allocated(const struct stk_live *l, stk_time now)
{
    const struct stk_state *s = stk_core_state(l->core);
    const struct stk_period p = {l->counts.since, STK_NEVER_TIME};
    stk_gpu_time sum = l->counts.allocated;
    uint32_t left = s->n_leased;

    for (uint32_t i = 0; i < s->n_pools; i++)
        left += s->pools[i].n_stopping;
    for (uint32_t i = 0; i < s->n_jobs && left > 0; i++) {
        const struct stk_entry *e;
        struct stk_job_figures f;

        if (!s->jobs[i].lease)
            continue;
        left--;
        e = stk_entries_find(&l->entries, s->jobs[i].number);
        if (!e || e->placed)
            continue;
        stk_figures_of_job(&(struct stk_job_past){.lease = &e->rec.lease, .n = 1}, p, now, &f,
                           NULL);
        sum += f.allocated;
    }
    return sum;
}

uint64_t stk_preemptions(const struct stk_live_counts *c)
{
    uint64_t n = 0;

    for (int i = 0; i < STK_PREEMPTED_MAX; i++)
        n += c->evicted[i];
    return n;
}
