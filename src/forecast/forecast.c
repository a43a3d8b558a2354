/* SPDX-License-Identifier: Apache-2.0 */
/* forecast.c - see forecast.h.
 *
 * One draw: a fork, and a heap of the ends of its leased jobs. Where no job asked about waits for
 * another, pools other than theirs stand still, for what happens there does not matter. */
#include "forecast/forecast.h"

#include <string.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/rng.h"
#include "base/sort.h"
#include "core/speed.h"
#include "core/state.h"

#define MAX_DECISIONS 64
#define ALIKE_PCT 80

struct draw {
    const struct stk_forecast_config *cfg;
    struct stk_mem mem;
    struct stk_core *core; /* the fork */
    const struct stk_state *s;
    stk_time now;
    uint64_t seed;
    uint32_t steps;
    int rc;
    const uint32_t *jobs; /* asked about, each once */
    uint32_t n, left;     /* of them, not started yet */
    stk_time *start;      /* of each, in this draw */
    stk_time *starts;     /* in every draw, n each */
    /* by job slot */
    stk_time *total; /* what it runs in all; 0: not drawn yet */
    uint32_t *pos;   /* in the heap */
    uint32_t *asked; /* index in 'jobs' + 1 */
    bool *still;     /* by pool: it stands still */
    struct stk_heap ends;
    struct stk_sort_item *sort;
    uint32_t cap_start, cap_starts, cap_total, cap_pos, cap_asked, cap_still, cap_sort;
};

static stk_time worked(const struct draw *d, const struct stk_job *j)
{
    stk_time t = stk_job_served(j, d->now) - j->lost;

    return t > 0 ? t : 0;
}

static struct stk_run_kind kind_of(const struct draw *d, uint32_t job)
{
    const struct stk_job *j = &d->s->jobs[job];

    return d->cfg->kind ? d->cfg->kind(d->cfg->ctx, d->s, job)
                        : (struct stk_run_kind){j->tenant, j->gpus, j->estimate};
}

/* A user's jobs are alike: in a draw, most of them lie at one place among those of the past. */
static uint32_t place_of(const struct draw *d, const struct stk_run_kind *k, stk_job_number number)
{
    struct stk_rng r;

    stk_rng_init(&r, stk_hash_mix(d->seed, number));
    if (stk_rng_below(&r, 100) < ALIKE_PCT)
        stk_rng_init(&r, stk_hash_mix(d->seed, k->user | UINT64_C(1) << 32));
    return 1 + (uint32_t)stk_rng_below(&r, 999);
}

/* What the job still has to do. */
static stk_time remaining(struct draw *d, uint32_t job)
{
    const struct stk_job *j = &d->s->jobs[job];
    stk_time so_far = worked(d, j);

    if (d->total[job] <= so_far) {
        const struct stk_run_kind k = kind_of(d, job);

        d->total[job] = stk_predict_run(d->cfg->predict, &k, so_far, place_of(d, &k, j->number));
    }
    return d->total[job] - so_far;
}

static void tell(struct draw *d, struct stk_event ev)
{
    ev.at = d->now;
    if (d->rc == 0)
        d->rc = stk_core_apply(d->core, &ev, NULL);
    d->steps++;
}

static void end(struct draw *d, uint32_t job, enum stk_cause cause)
{
    const struct stk_job *j = &d->s->jobs[job];

    stk_heap_remove(&d->ends, d->pos, job);
    tell(d, (struct stk_event){.type = STK_EV_EXITED,
                               .job = {job},
                               .lease = j->lease ? j->lease : j->slept,
                               .u.exit = {.cause = cause}});
}

/* It has its GPUs: it will end. */
static void runs(struct draw *d, uint32_t job)
{
    const struct stk_job *j = &d->s->jobs[job];
    stk_time t = stk_speed_time(remaining(d, job), stk_job_speed(d->s, j));

    if (!d->still[j->pool])
        stk_heap_put(&d->ends, d->pos, job, d->now + (t > 0 ? t : 1), j->number);
}

static void started(struct draw *d, uint32_t job)
{
    uint32_t i = d->asked[job];

    if (i && d->start[i - 1] == STK_NEVER_TIME) {
        d->start[i - 1] = d->now;
        d->left--;
    }
    if (d->s->jobs[job].state == STK_JOB_PLACED)
        tell(d, (struct stk_event){
                    .type = STK_EV_STARTED, .job = {job}, .lease = d->s->jobs[job].lease});
    runs(d, job);
}

/* What is on its way has arrived; who runs goes on. */
static void settle(struct draw *d)
{
    for (uint32_t i = 0; i < d->s->n_jobs && d->rc == 0; i++) {
        const struct stk_job *j = &d->s->jobs[i];

        if (j->state == STK_JOB_STOPPING)
            end(d, i, j->cancel_wanted ? STK_CAUSE_CANCELLED : STK_CAUSE_EVICTED);
        else if (j->state == STK_JOB_PLACED || j->state == STK_JOB_RUNNING)
            started(d, i);
    }
}

static void decide(struct draw *d)
{
    struct stk_event out[MAX_DECISIONS];
    uint32_t n;

    if (stk_core_tick_due(d->core, d->now))
        tell(d, (struct stk_event){.type = STK_EV_TICK});
    while (d->rc == 0 && d->left > 0 && d->steps < d->cfg->most_events &&
           (n = stk_core_decide(d->core, d->now, out, MAX_DECISIONS)) > 0) {
        for (uint32_t i = 0; i < n; i++)
            tell(d, out[i]);
        for (uint32_t i = 0; i < n && d->rc == 0; i++) {
            if (out[i].type == STK_EV_EVICT)
                end(d, out[i].job.i, STK_CAUSE_EVICTED);
            else
                started(d, out[i].job.i);
        }
    }
}

static void end_due(struct draw *d)
{
    while (d->rc == 0 && d->ends.n > 0 && d->ends.item[0].key <= d->now)
        end(d, d->ends.item[0].id, STK_CAUSE_OK);
}

static void run(struct draw *d)
{
    settle(d);
    decide(d);
    while (d->rc == 0 && d->left > 0 && d->steps < d->cfg->most_events) {
        stk_time t = d->ends.n > 0 ? d->ends.item[0].key : STK_NEVER_TIME;
        stk_time w = stk_core_wake(d->core, d->now);

        t = w < t ? w : t;
        if (t > STK_MAX_DURATION)
            return;
        d->now = t;
        d->steps++;
        end_due(d);
        decide(d);
    }
}

/* A fork of its own, and nothing drawn yet. The heap is empty after a draw that went to its end. */
static int one_draw(struct draw *d, const struct stk_core *core, uint32_t k, struct stk_err *err)
{
    int rc = stk_core_fork(core, &d->core, err);

    if (rc < 0)
        return rc;
    d->s = stk_core_state(d->core);
    d->now = d->cfg->now;
    d->seed = stk_hash_mix(d->cfg->seed, k);
    d->steps = d->ends.n = 0;
    d->left = d->n;
    memset(d->total, 0, d->cap_total * sizeof(*d->total));
    memset(d->pos, 0, d->cap_pos * sizeof(*d->pos));
    for (uint32_t i = 0; i < d->n; i++)
        d->start[i] = STK_NEVER_TIME;
    run(d);
    stk_core_free(d->core);
    return d->rc < 0 ? stk_err_set(err, d->rc, "a forecast: event refused, or out of memory") : 0;
}

static int prepare(struct draw *d, const struct stk_state *s)
{
    const struct stk_mem *m = &d->mem;
    uint32_t slots = s->n_jobs + 1, draws = d->cfg->draws;
    bool linked = false;

    if (stk_mem_grow(m, &d->total, &d->cap_total, slots, sizeof(*d->total)) < 0 ||
        stk_mem_grow(m, &d->pos, &d->cap_pos, slots, sizeof(*d->pos)) < 0 ||
        stk_mem_grow(m, &d->asked, &d->cap_asked, slots, sizeof(*d->asked)) < 0 ||
        stk_mem_grow(m, &d->still, &d->cap_still, s->n_pools, sizeof(*d->still)) < 0 ||
        stk_mem_grow(m, &d->start, &d->cap_start, d->n + 1, sizeof(*d->start)) < 0 ||
        stk_mem_grow(m, &d->starts, &d->cap_starts, draws * d->n + 1, sizeof(*d->starts)) < 0 ||
        stk_mem_grow(m, &d->sort, &d->cap_sort, 2 * draws, sizeof(*d->sort)) < 0 ||
        stk_heap_reserve(&d->ends, m, slots) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < d->n; i++)
        linked |= s->jobs[d->jobs[i]].unmet > 0;
    for (uint32_t i = 0; i < s->n_pools; i++)
        d->still[i] = !linked;
    for (uint32_t i = 0; i < d->n; i++) {
        d->asked[d->jobs[i]] = i + 1;
        d->still[s->jobs[d->jobs[i]].pool] = false;
    }
    return 0;
}

static void done(struct draw *d)
{
    const struct stk_mem *m = &d->mem;

    stk_mem_drop(m, &d->total, &d->cap_total, sizeof(*d->total));
    stk_mem_drop(m, &d->pos, &d->cap_pos, sizeof(*d->pos));
    stk_mem_drop(m, &d->asked, &d->cap_asked, sizeof(*d->asked));
    stk_mem_drop(m, &d->still, &d->cap_still, sizeof(*d->still));
    stk_mem_drop(m, &d->start, &d->cap_start, sizeof(*d->start));
    stk_mem_drop(m, &d->starts, &d->cap_starts, sizeof(*d->starts));
    stk_mem_drop(m, &d->sort, &d->cap_sort, sizeof(*d->sort));
    stk_heap_done(&d->ends, m);
}

/* The start that so many thousandths of the draws are not after. */
static stk_time quantile(const struct draw *d, uint32_t milli)
{
    uint32_t draws = d->cfg->draws, rank = (milli * draws + 999) / 1000;

    return d->sort[rank > 0 ? rank - 1 : 0].key;
}

static struct stk_expected sum_up(struct draw *d, uint32_t job)
{
    uint32_t draws = d->cfg->draws;

    for (uint32_t k = 0; k < draws; k++)
        d->sort[k] = (struct stk_sort_item){.key = d->starts[k * d->n + job], .id = k};
    stk_sort(d->sort, draws, d->sort + draws);
    return (struct stk_expected){quantile(d, 500), quantile(d, 900)};
}

int stk_forecast(const struct stk_core *core, const struct stk_forecast_config *cfg,
                 const uint32_t *jobs, uint32_t n, struct stk_expected *ret, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(core);
    struct draw d = {.cfg = cfg, .mem = s->mem, .jobs = jobs, .n = n};
    int rc = prepare(&d, s) < 0 ? stk_err_set(err, -ENOMEM, "out of memory") : 0;

    for (uint32_t k = 0; rc == 0 && k < cfg->draws; k++) {
        rc = one_draw(&d, core, k, err);
        for (uint32_t i = 0; i < n; i++)
            d.starts[k * n + i] = d.start[i];
    }
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        ret[i] = sum_up(&d, i);
    done(&d);
    return rc;
}
