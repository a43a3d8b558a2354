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
    static const char *const names[STK_EVICTED_MAX] = {"priority", "reclaim", "move", "hand",
                                                       "other"};

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

void stk_live_count_start(struct stk_live *l, const struct stk_job *j, stk_time at)
{
    double waited = j->queued > 0 && at > j->queued ? (double)(at - j->queued) / 1e6 : 0;
    struct stk_tenant_counts *t = of_tenant(l, j);

    l->counts.started++;
    stk_histogram_add(&l->counts.wait, waited);
    if (!t)
        return;
    t->started++;
    t->waited_s += waited;
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
    double gpus = d->gpu_milli ? (double)j->gpus * d->gpu_milli / 1000 : (double)j->gpus;

    if (j->state != STK_JOB_DONE && j->started > 0 && ev->at > from)
        l->counts.lost_gpu_s += (double)(ev->at - from) / 1e6 * gpus;
}

void stk_live_count_event(struct stk_live *l, const struct stk_event *ev, const struct stk_job *j)
{
    struct stk_live_counts *c = &l->counts;
    struct stk_tenant_counts *t;

    c->decided += ev->type == STK_EV_PLACE || ev->type == STK_EV_EVICT;
    c->submitted += ev->type == STK_EV_SUBMIT;
    c->placed += ev->type == STK_EV_PLACE;
    if (j && ev->type == STK_EV_EXITED)
        count_lost(l, j, ev);
    if (!j || ev->type != STK_EV_EVICT)
        return;
    c->evicted[why(stk_core_state(l->core), j, ev)]++;
    t = of_tenant(l, j);
    if (t)
        t->preempted++;
}
