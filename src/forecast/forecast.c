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
#define FORK_JOBS 8u    /* of a core, whose fork costs as much as an event; */
#define FORK_EDGES 128u /* dependencies, likewise */
#define LOOK_JOBS 2048u /* ... and which are looked at in the time of one, at many events */
#define LOOK_SHAPES 32u /* jobs of so many different sizes are, at many events */

struct span {
    stk_time start, end;
    uint32_t first_piece, n_pieces; /* where; in 'pieces' */
};

struct stk_forecast {
    struct stk_forecast_config cfg;
    struct stk_ahead ahead;
    uint32_t at; /* the draw at hand */
    bool forked; /* it has begun */
    struct stk_mem mem;
    uint64_t seed;
    const struct stk_core *core;
    stk_job_number *jobs; /* asked about, each once */
    uint32_t *slots;      /* of them, in the fork at hand; STK_NONE: it is there no more */
    uint32_t n, left;     /* of them, not started yet */
    struct span *span;    /* of each, in this draw */
    struct span *spans;   /* in every draw, n each */
    /* by job slot */
    stk_time *total; /* what it runs in all; 0: not drawn yet */
    uint32_t *asked; /* index in 'jobs' + 1 */
    struct stk_sort_item *sort;
    struct stk_piece *pieces; /* of all draws; none when nobody wants to know */
    uint32_t n_pieces;
    uint32_t cap_span, cap_spans, cap_total, cap_asked, cap_sort, cap_pieces, cap_jobs, cap_slots;
};

static struct stk_run_kind kind_of(const struct stk_forecast *d, const struct stk_state *s,
                                   uint32_t job)
{
    const struct stk_job *j = &s->jobs[job];

    return d->cfg.kind ? d->cfg.kind(d->cfg.ctx, s, job)
                       : (struct stk_run_kind){j->tenant, j->gpus, j->estimate};
}

/* A user's jobs are alike: in a draw, most of them lie at one place among those of the past. */
static uint32_t place_of(const struct stk_forecast *d, const struct stk_run_kind *k,
                         stk_job_number number)
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
    struct stk_forecast *d = a->ctx;
    const struct stk_job *j = &a->s->jobs[job];
    stk_time worked = stk_job_served(j, a->now) - j->lost, so_far = worked > 0 ? worked : 0, t;

    if (d->total[job] <= so_far) {
        const struct stk_run_kind k = kind_of(d, a->s, job);

        const uint32_t at = place_of(d, &k, j->number);
        const stk_time known = d->cfg.known ? d->cfg.known(d->cfg.ctx, a->s, job, so_far, at) : 0;

        d->total[job] = known > so_far   ? known
                        : d->cfg.limited ? stk_predict_limited(d->cfg.predict, &k, so_far, at)
                                         : stk_predict_run(d->cfg.predict, &k, so_far, at);
    }
    t = stk_speed_time(d->total[job] - so_far, stk_job_speed(a->s, j));
    return t > 0 ? t : 1;
}

/* Where it starts. Without memory that is not known. */
static void keep_place(struct stk_forecast *d, const struct stk_state *s, uint32_t job,
                       struct span *io)
{
    const struct stk_job *j = &s->jobs[job];
    const uint32_t n = j->n_pieces < STK_FORECAST_PIECES ? j->n_pieces : STK_FORECAST_PIECES,
                   need = d->n_pieces + n;

    if (!d->cfg.where ||
        stk_mem_grow(&d->mem, &d->pieces, &d->cap_pieces, need, sizeof(*d->pieces)) < 0)
        return;
    io->first_piece = d->n_pieces;
    io->n_pieces = n;
    for (uint32_t k = 0; k < n; k++)
        d->pieces[d->n_pieces++] = s->pieces[j->first_piece + k];
}

static void started(struct stk_ahead *a, uint32_t job)
{
    struct stk_forecast *d = a->ctx;
    uint32_t i = d->asked[job];

    if (i && d->span[i - 1].start == STK_NEVER_TIME) {
        d->span[i - 1] = (struct span){.start = a->now, .end = a->now + holds(a, job)};
        keep_place(d, a->s, job, &d->span[i - 1]);
        d->left--;
    }
}

static bool enough(const struct stk_ahead *a)
{
    const struct stk_forecast *d = a->ctx;

    return d->left == 0;
}

static const struct stk_ahead_ops ops = {.holds = holds, .started = started, .enough = enough};

/* Where the jobs that were asked about are now. */
static int find_jobs(struct stk_forecast *d)
{
    const uint32_t slots = stk_core_state(d->core)->n_jobs + 1;

    if (stk_mem_grow(&d->mem, &d->total, &d->cap_total, slots, sizeof(*d->total)) < 0 ||
        stk_mem_grow(&d->mem, &d->asked, &d->cap_asked, slots, sizeof(*d->asked)) < 0)
        return -ENOMEM;
    memset(d->total, 0, d->cap_total * sizeof(*d->total));
    memset(d->asked, 0, d->cap_asked * sizeof(*d->asked));
    d->left = 0;
    for (uint32_t i = 0; i < d->n; i++) {
        const uint32_t slot = stk_core_find(d->core, d->jobs[i]);

        d->span[i] = (struct span){.start = STK_NEVER_TIME, .end = STK_NEVER_TIME};
        if (slot == STK_NONE)
            continue;
        d->asked[slot] = i + 1;
        d->slots[d->left++] = slot;
    }
    return 0;
}

/* A fork of its own, and nothing drawn yet. */
static int begin_draw(struct stk_forecast *d, struct stk_err *err)
{
    struct stk_ahead *a = &d->ahead;
    const stk_time latest = stk_core_state(d->core)->now;

    if (stk_ahead_init(a, d->core, &ops, d) < 0 || find_jobs(d) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    a->most = d->cfg.most_events;
    stk_ahead_only(a, d->slots, d->left);
    if (stk_ahead_fork(a, d->cfg.now > latest ? d->cfg.now : latest, err) < 0)
        return -ENOMEM;
    d->seed = stk_hash_mix(d->cfg.seed, d->at);
    return 0;
}

static int prepare(struct stk_forecast *d, const uint32_t *jobs)
{
    const struct stk_state *s = stk_core_state(d->core);
    const struct stk_mem *m = &d->mem;
    const uint32_t draws = d->cfg.draws;

    if (stk_mem_grow(m, &d->jobs, &d->cap_jobs, d->n + 1, sizeof(*d->jobs)) < 0 ||
        stk_mem_grow(m, &d->slots, &d->cap_slots, d->n + 1, sizeof(*d->slots)) < 0 ||
        stk_mem_grow(m, &d->span, &d->cap_span, d->n + 1, sizeof(*d->span)) < 0 ||
        stk_mem_grow(m, &d->spans, &d->cap_spans, draws * d->n + 1, sizeof(*d->spans)) < 0 ||
        stk_mem_grow(m, &d->sort, &d->cap_sort, 2 * draws, sizeof(*d->sort)) < 0 || !d->jobs)
        return -ENOMEM;
    for (uint32_t i = 0; i < d->n; i++)
        d->jobs[i] = s->jobs[jobs[i]].number;
    return 0;
}

void stk_forecast_free(struct stk_forecast *d)
{
    struct stk_mem m;

    if (!d)
        return;
    m = d->mem;
    stk_mem_drop(&m, &d->total, &d->cap_total, sizeof(*d->total));
    stk_mem_drop(&m, &d->asked, &d->cap_asked, sizeof(*d->asked));
    stk_mem_drop(&m, &d->jobs, &d->cap_jobs, sizeof(*d->jobs));
    stk_mem_drop(&m, &d->slots, &d->cap_slots, sizeof(*d->slots));
    stk_mem_drop(&m, &d->span, &d->cap_span, sizeof(*d->span));
    stk_mem_drop(&m, &d->spans, &d->cap_spans, sizeof(*d->spans));
    stk_mem_drop(&m, &d->sort, &d->cap_sort, sizeof(*d->sort));
    stk_mem_drop(&m, &d->pieces, &d->cap_pieces, sizeof(*d->pieces));
    if (d->forked)
        stk_ahead_done(&d->ahead);
    (void)m.resize(m.ctx, d, sizeof(*d), 0);
}

/* The draw, of those put in order, that so many thousandths are not after. */
static const struct stk_sort_item *rank_of(const struct stk_forecast *d, uint32_t milli)
{
    uint32_t rank = (milli * d->cfg.draws + 999) / 1000;

    return &d->sort[rank > 0 ? rank - 1 : 0];
}

static stk_time quantile(const struct stk_forecast *d, uint32_t milli)
{
    return rank_of(d, milli)->key;
}

/* Starts are in order. */
static void tell_where(const struct stk_forecast *d, uint32_t job)
{
    const struct span *at = &d->spans[rank_of(d, 500)->id * d->n + job];

    if (d->cfg.where && at->n_pieces > 0)
        d->cfg.where(d->cfg.ctx, job, &d->pieces[at->first_piece], at->n_pieces);
}

static struct stk_expected sum_up(struct stk_forecast *d, uint32_t job)
{
    const uint32_t draws = d->cfg.draws;
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

int stk_forecast_begin(const struct stk_core *core, const struct stk_forecast_config *cfg,
                       const uint32_t *jobs, uint32_t n, struct stk_forecast **ret,
                       struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(core);
    struct stk_forecast *d = s->mem.resize(s->mem.ctx, NULL, 0, sizeof(*d));

    if (!d)
        return stk_err_set(err, -ENOMEM, "out of memory");
    *d = (struct stk_forecast){.cfg = *cfg, .mem = s->mem, .core = core, .n = n};
    if (prepare(d, jobs) < 0) {
        stk_forecast_free(d);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    *ret = d;
    return 0;
}

/* The draw is made: what it says is kept, its fork goes. */
static void end_draw(struct stk_forecast *d)
{
    memcpy(&d->spans[(size_t)d->at * d->n], d->span, d->n * sizeof(*d->span));
    stk_ahead_done(&d->ahead);
    d->at++;
    d->forked = false;
}

/* What an event costs. Most events move all jobs of a tenant in the line, size by size. */
static uint32_t cost_of_event(const struct stk_state *s)
{
    uint32_t shapes = 0;

    for (uint32_t i = 0; i < s->n_pools; i++)
        shapes += s->pools[i].n_shapes;
    return 1 + s->n_jobs / LOOK_JOBS + shapes / LOOK_SHAPES;
}

/* Goes on with the draw at hand; what that cost, about as much as it may, is taken from *io. */
static int go_on(struct stk_forecast *d, uint32_t *io, struct stk_err *err)
{
    struct stk_ahead *a = &d->ahead;
    const struct stk_state *s = stk_core_state(d->core);
    const uint32_t fork = d->forked ? 0 : s->n_jobs / FORK_JOBS + s->n_edges / FORK_EDGES,
                   each = cost_of_event(s), before = d->forked ? a->steps : 0,
                   most = (*io > fork ? *io - fork : 1) / each + 1;
    uint32_t cost;
    int rc = d->forked ? 0 : begin_draw(d, err);

    if (!d->forked && rc == 0) {
        d->forked = true;
        a->pause = most;
        stk_ahead_settle(a);
    } else if (rc < 0) {
        stk_ahead_done(a);
        return rc;
    }
    a->pause = most < UINT32_MAX - before ? most + before : UINT32_MAX;
    rc = stk_ahead_go(a);
    if (a->rc < 0)
        return stk_err_set(err, a->rc, "a forecast: event refused, or out of memory");
    cost = fork + (a->steps - before) * each + 1;
    *io -= cost < *io ? cost : *io;
    if (rc == 0)
        end_draw(d);
    return 0;
}

int stk_forecast_step(struct stk_forecast *d, uint32_t events, struct stk_err *err)
{
    int rc = 0;

    while (rc == 0 && d->at < d->cfg.draws && events > 0)
        rc = go_on(d, &events, err);
    return rc < 0 ? rc : d->at < d->cfg.draws;
}

void stk_forecast_read(struct stk_forecast *d, struct stk_expected *ret)
{
    for (uint32_t i = 0; i < d->n; i++)
        ret[i] = sum_up(d, i);
}

int stk_forecast(const struct stk_core *core, const struct stk_forecast_config *cfg,
                 const uint32_t *jobs, uint32_t n, struct stk_expected *ret, struct stk_err *err)
{
    struct stk_forecast *d = NULL;
    int rc = stk_forecast_begin(core, cfg, jobs, n, &d, err);

    if (rc < 0 || !d)
        return rc;
    while (rc == 0 && (rc = stk_forecast_step(d, UINT32_MAX, err)) > 0)
        rc = 0;
    if (rc == 0)
        stk_forecast_read(d, ret);
    stk_forecast_free(d);
    return rc;
}
