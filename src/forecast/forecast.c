/* SPDX-License-Identifier: Apache-2.0 */
/* forecast.c - see forecast.h. A draw is a fork that runs ahead (core/ahead.h) with run times of
 * its own. */
#include "forecast/forecast.h"

#include <string.h>

#include "base/hash.h"
#include "base/rng.h"
#include "base/sort.h"
#include "core/ahead.h"
#include "core/speed.h"

#define ALIKE_PCT 80

struct span {
    stk_time start, end;
    uint32_t first_piece, n_pieces; /* where; in 'pieces' */
};

struct draw {
    const struct stk_forecast_config *cfg;
    struct stk_mem mem;
    uint64_t seed;
    const uint32_t *jobs; /* asked about, each once */
    uint32_t n, left;     /* of them, not started yet */
    struct span *span;    /* of each, in this draw */
    struct span *spans;   /* in every draw, n each */
    /* by job slot */
    stk_time *total; /* what it runs in all; 0: not drawn yet */
    uint32_t *asked; /* index in 'jobs' + 1 */
    struct stk_sort_item *sort;
    struct stk_piece *pieces; /* of all draws; none when nobody wants to know */
    uint32_t n_pieces;
    uint32_t cap_span, cap_spans, cap_total, cap_asked, cap_sort, cap_pieces;
};

static struct stk_run_kind kind_of(const struct draw *d, const struct stk_state *s, uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];

    return d->cfg->kind ? d->cfg->kind(d->cfg->ctx, s, job)
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

/* What the job still has to do, on the GPUs it has. */
static stk_time holds(struct stk_ahead *a, uint32_t job)
{
    struct draw *d = a->ctx;
    const struct stk_job *j = &a->s->jobs[job];
    stk_time worked = stk_job_served(j, a->now) - j->lost, so_far = worked > 0 ? worked : 0, t;

    if (d->total[job] <= so_far) {
        const struct stk_run_kind k = kind_of(d, a->s, job);

        const uint32_t at = place_of(d, &k, j->number);

        d->total[job] = d->cfg->limited ? stk_predict_limited(d->cfg->predict, &k, so_far, at)
                                        : stk_predict_run(d->cfg->predict, &k, so_far, at);
    }
    t = stk_speed_time(d->total[job] - so_far, stk_job_speed(a->s, j));
    return t > 0 ? t : 1;
}

/* Where it starts. Without memory that is not known. */
static void keep_place(struct draw *d, const struct stk_state *s, uint32_t job, struct span *io)
{
    const struct stk_job *j = &s->jobs[job];
    const uint32_t n = j->n_pieces < STK_FORECAST_PIECES ? j->n_pieces : STK_FORECAST_PIECES,
                   need = d->n_pieces + n;

    if (!d->cfg->where ||
        stk_mem_grow(&d->mem, &d->pieces, &d->cap_pieces, need, sizeof(*d->pieces)) < 0)
        return;
    io->first_piece = d->n_pieces;
    io->n_pieces = n;
    for (uint32_t k = 0; k < n; k++)
        d->pieces[d->n_pieces++] = s->pieces[j->first_piece + k];
}

static void started(struct stk_ahead *a, uint32_t job)
{
    struct draw *d = a->ctx;
    uint32_t i = d->asked[job];

    if (i && d->span[i - 1].start == STK_NEVER_TIME) {
        d->span[i - 1] = (struct span){.start = a->now, .end = a->now + holds(a, job)};
        keep_place(d, a->s, job, &d->span[i - 1]);
        d->left--;
    }
}

static bool enough(const struct stk_ahead *a)
{
    const struct draw *d = a->ctx;

    return d->left == 0;
}

static const struct stk_ahead_ops ops = {.holds = holds, .started = started, .enough = enough};

/* A fork of its own, and nothing drawn yet. */
static int one_draw(struct draw *d, struct stk_ahead *a, uint32_t k, struct stk_err *err)
{
    int rc = stk_ahead_fork(a, d->cfg->now, err);

    if (rc < 0)
        return rc;
    d->seed = stk_hash_mix(d->cfg->seed, k);
    d->left = d->n;
    memset(d->total, 0, d->cap_total * sizeof(*d->total));
    for (uint32_t i = 0; i < d->n; i++)
        d->span[i] = (struct span){.start = STK_NEVER_TIME, .end = STK_NEVER_TIME};
    stk_ahead_settle(a);
    stk_ahead_go(a);
    return a->rc < 0 ? stk_err_set(err, a->rc, "a forecast: event refused, or out of memory") : 0;
}

static int prepare(struct draw *d, const struct stk_state *s)
{
    const struct stk_mem *m = &d->mem;
    uint32_t slots = s->n_jobs + 1, draws = d->cfg->draws;

    if (stk_mem_grow(m, &d->total, &d->cap_total, slots, sizeof(*d->total)) < 0 ||
        stk_mem_grow(m, &d->asked, &d->cap_asked, slots, sizeof(*d->asked)) < 0 ||
        stk_mem_grow(m, &d->span, &d->cap_span, d->n + 1, sizeof(*d->span)) < 0 ||
        stk_mem_grow(m, &d->spans, &d->cap_spans, draws * d->n + 1, sizeof(*d->spans)) < 0 ||
        stk_mem_grow(m, &d->sort, &d->cap_sort, 2 * draws, sizeof(*d->sort)) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < d->n; i++)
        d->asked[d->jobs[i]] = i + 1;
    return 0;
}

static void done(struct draw *d)
{
    const struct stk_mem *m = &d->mem;

    stk_mem_drop(m, &d->total, &d->cap_total, sizeof(*d->total));
    stk_mem_drop(m, &d->asked, &d->cap_asked, sizeof(*d->asked));
    stk_mem_drop(m, &d->span, &d->cap_span, sizeof(*d->span));
    stk_mem_drop(m, &d->spans, &d->cap_spans, sizeof(*d->spans));
    stk_mem_drop(m, &d->sort, &d->cap_sort, sizeof(*d->sort));
    stk_mem_drop(m, &d->pieces, &d->cap_pieces, sizeof(*d->pieces));
}

/* The draw, of those put in order, that so many thousandths are not after. */
static const struct stk_sort_item *rank_of(const struct draw *d, uint32_t milli)
{
    uint32_t rank = (milli * d->cfg->draws + 999) / 1000;

    return &d->sort[rank > 0 ? rank - 1 : 0];
}

static stk_time quantile(const struct draw *d, uint32_t milli)
{
    return rank_of(d, milli)->key;
}

/* Starts are in order. */
static void tell_where(const struct draw *d, uint32_t job)
{
    const struct span *at = &d->spans[rank_of(d, 500)->id * d->n + job];

    if (d->cfg->where && at->n_pieces > 0)
        d->cfg->where(d->cfg->ctx, job, &d->pieces[at->first_piece], at->n_pieces);
}

static struct stk_expected sum_up(struct draw *d, uint32_t job)
{
    const uint32_t draws = d->cfg->draws;
    struct stk_expected e;

    for (uint32_t k = 0; k < draws; k++)
        d->sort[k] = (struct stk_sort_item){.key = d->spans[k * d->n + job].start, .id = k};
    stk_sort(d->sort, draws, d->sort + draws);
    e.p10 = quantile(d, 100);
    e.p50 = quantile(d, 500);
    e.p90 = quantile(d, 900);
    tell_where(d, job);
    for (uint32_t k = 0; k < draws; k++)
        d->sort[k] = (struct stk_sort_item){.key = d->spans[k * d->n + job].end, .id = k};
    stk_sort(d->sort, draws, d->sort + draws);
    e.end_p50 = quantile(d, 500);
    e.end_p90 = quantile(d, 900);
    return e;
}

int stk_forecast(const struct stk_core *core, const struct stk_forecast_config *cfg,
                 const uint32_t *jobs, uint32_t n, struct stk_expected *ret, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(core);
    struct draw d = {.cfg = cfg, .mem = s->mem, .jobs = jobs, .n = n};
    struct stk_ahead a;
    int rc = stk_ahead_init(&a, core, &ops, &d);

    rc = rc < 0 || prepare(&d, s) < 0 ? stk_err_set(err, -ENOMEM, "out of memory") : 0;
    a.most = cfg->most_events;
    if (rc == 0)
        stk_ahead_only(&a, jobs, n);
    for (uint32_t k = 0; rc == 0 && k < cfg->draws; k++) {
        rc = one_draw(&d, &a, k, err);
        for (uint32_t i = 0; i < n; i++)
            d.spans[k * n + i] = d.span[i];
    }
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        ret[i] = sum_up(&d, i);
    done(&d);
    stk_ahead_done(&a);
    return rc;
}
