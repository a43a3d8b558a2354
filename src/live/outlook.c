/* SPDX-License-Identifier: Apache-2.0 */
/* outlook.c - when waiting jobs will start, and when they and running ones will have ended
 * (forecast/forecast.h), for those who look.
 *
 * A request makes a forecast for all waiting jobs at once, and the forecast is kept. The one thread
 * answers nothing else while it works, so the work is bounded (MOST_JOBS, events of a draw, fewer
 * draws where the state is large) and cut into slices. The request does the first slice, which is
 * the whole forecast where few jobs wait; stk_live_outlook_step() does the others. Until the last
 * slice is done the forecast before is shown. Then there is a pause of many times as long as the
 * forecast took, so what is shown may be some seconds old.
 *
 * Run times are predicted from jobs that have ended: those of the store when it is first asked,
 * and from then on each as it ends. A job is stopped at its time limit, so it runs no longer. The
 * scheduler is told what is expected of a job when it is submitted or changed. */
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "forecast/calibrate.h"
#include "forecast/forecast.h"
#include "live/state.h"

#define MOST_JOBS 500u     /* asked about: the earliest submitted */
#define MOST_EVENTS 15000u /* of a draw */
#define MANY_JOBS 20000u   /* with more the state is large, */
#define FEW_DRAWS 5u       /* ... and this is enough */
#define FIRST_EVENTS 6000u /* of the slice that is made while somebody asks; */
#define SLICE_EVENTS 3000u /* of each one after it */
#define PAST_JOBS 5000u    /* read from the store */
#define NO_POOL UINT32_MAX /* the store does not know in which pool a job was */
#define REST 20            /* the pause, in times of what a forecast took; */
#define LEAST_REST STK_SECOND
#define LASTS (60 * STK_SECOND) /* when nothing happens, time goes on all the same */

struct stk_live_expect {
    stk_job_number number;
    struct stk_expected when;
    uint32_t first_piece, n_pieces; /* where */
};

/* ---- what is learned from ---- */

struct past {
    struct {
        struct stk_run_kind kind;
        stk_time run, wait;
    } job[PAST_JOBS];
    uint32_t n;
};

static int see_past(void *ctx, const struct stk_record *r)
{
    struct past *p = ctx;

    if (r->served > 0 && p->n < PAST_JOBS) {
        p->job[p->n].kind = (struct stk_run_kind){r->uid, r->gpus, 0};
        p->job[p->n].wait = r->first_started - r->submitted;
        p->job[p->n++].run = r->served;
    }
    return 0;
}

/* The latest come last. */
static int learn_past(struct stk_live *l)
{
    const struct stk_history_query q = {.limit = PAST_JOBS};
    struct past *p = calloc(1, sizeof(*p));
    int rc = p ? stk_store_history(l->cfg.store, &q, see_past, p, NULL) : -ENOMEM;

    for (uint32_t i = rc < 0 ? 0 : p->n; i-- > 0;) {
        stk_predict_ran(l->outlook.predict, &p->job[i].kind, p->job[i].run);
        stk_calibrate_waited(l->outlook.calibrate, NO_POOL, p->job[i].kind.gpus, p->job[i].wait);
    }
    free(p);
    return rc;
}

static int prepare(struct stk_live *l)
{
    struct stk_live_outlook *o = &l->outlook;

    if (o->predict)
        return 0;
    o->predict = stk_predict_new(&l->mem);
    o->calibrate = stk_calibrate_new(&l->mem, stk_core_state(l->core)->n_pools);
    if (o->predict && o->calibrate)
        return learn_past(l);
    stk_live_outlook_free(l);
    return -ENOMEM;
}

void stk_live_outlook_started(struct stk_live *l, const struct stk_job *j, stk_time at)
{
    if (!l->outlook.calibrate)
        return;
    stk_calibrate_waited(l->outlook.calibrate, j->pool, j->gpus, at - j->submitted);
    stk_calibrate_started(l->outlook.calibrate, j->number, at);
}

stk_time stk_live_asked(const struct stk_state *s, uint32_t job)
{
    const struct stk_terms *t = &s->terms[job];

    return t->asked || t->limit ? t->asked : s->jobs[job].estimate;
}

void stk_live_expect_run(struct stk_live *l, uint32_t uid, struct stk_spec *io)
{
    struct stk_job_spec *j = &io->job;
    const struct stk_run_kind k = {uid, j->demand.gpus * j->demand.tasks, j->estimate};

    j->terms.asked = j->estimate;
    if (!l->cfg.predict || prepare(l) < 0)
        return;
    j->estimate = stk_predict_estimate(l->outlook.predict, &k);
    if (j->estimate > 0)
        j->terms.limit = io->time_limit > 0 ? io->time_limit : STK_MAX_DURATION;
}

void stk_live_outlook_ended(struct stk_live *l, const struct stk_job *j, uint32_t uid)
{
    const struct stk_state *s = stk_core_state(l->core);
    const struct stk_run_kind k = {uid, j->gpus, stk_live_asked(s, (uint32_t)(j - s->jobs))};

    if (l->outlook.predict && j->served > 0)
        stk_predict_ran(l->outlook.predict, &k, j->served);
}

void stk_live_outlook_stop(struct stk_live *l)
{
    struct stk_live_outlook *o = &l->outlook;

    stk_forecast_free(o->making);
    free(o->asked);
    o->making = NULL;
    o->asked = NULL;
}

void stk_live_outlook_free(struct stk_live *l)
{
    stk_live_outlook_stop(l);
    stk_predict_free(l->outlook.predict);
    stk_calibrate_free(l->outlook.calibrate);
    free(l->outlook.rows);
    stk_mem_drop(&l->mem, &l->outlook.pieces, &l->outlook.cap_pieces, sizeof(struct stk_piece));
    l->outlook = (struct stk_live_outlook){0};
}

/* ---- asking ---- */

static struct stk_run_kind kind_of(void *ctx, const struct stk_state *s, uint32_t job)
{
    const struct stk_live *l = ctx;
    const struct stk_job *j = &s->jobs[job];
    const struct stk_entry *e = stk_entries_find(&l->entries, j->number);

    return (struct stk_run_kind){e ? e->rec.uid : j->tenant, j->gpus, stk_live_asked(s, job)};
}

/* Of a job that reports its steps. */
static stk_time known_of(void *ctx, const struct stk_state *s, uint32_t job, stk_time so_far,
                         uint32_t milli)
{
    const struct stk_live *l = ctx;
    const struct stk_job *j = &s->jobs[job];
    const struct stk_entry *e = j->lease ? stk_entries_find(&l->entries, j->number) : NULL;
    const stk_time limit = s->terms[job].limit;
    stk_time t;

    if (!e || e->steps.total == 0 || !l->cfg.predict)
        return 0;
    t = stk_progress_chance(&e->steps, so_far, milli);
    return limit && limit < t ? limit : t;
}

static stk_time now_of(const struct stk_live *l)
{
    const stk_time clock = l->cfg.clock(l->cfg.ctx), latest = stk_core_state(l->core)->now;

    return clock > latest ? clock : latest;
}

/* The place of a row; what there is no memory for is not known. */
static void keep_place(void *ctx, uint32_t i, const struct stk_piece *pieces, uint32_t n)
{
    struct stk_live *l = ctx;
    struct stk_live_outlook *o = &l->outlook;

    if (stk_mem_grow(&l->mem, &o->pieces, &o->cap_pieces, o->n_pieces + n, sizeof(*pieces)) < 0)
        return;
    o->rows[i].first_piece = o->n_pieces;
    o->rows[i].n_pieces = n;
    for (uint32_t k = 0; k < n; k++)
        o->pieces[o->n_pieces++] = pieces[k];
}

static struct stk_forecast_config how(struct stk_live *l, const struct stk_core *core)
{
    return (struct stk_forecast_config){
        .now = now_of(l),
        .predict = l->outlook.predict,
        .kind = kind_of,
        .known = known_of,
        .ctx = l,
        .limited = true,
        .draws = stk_core_state(core)->n_jobs > MANY_JOBS ? FEW_DRAWS : STK_FORECAST_DRAWS,
        .most_events = MOST_EVENTS,
        .seed = 1};
}

int stk_live_foresee(struct stk_live *l, const struct stk_core *core, const uint32_t *jobs,
                     uint32_t n, struct stk_expected *ret, struct stk_err *err)
{
    struct stk_forecast_config cfg;

    if (prepare(l) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory for a forecast");
    cfg = how(l, core);
    return stk_forecast(core, &cfg, jobs, n, ret, err);
}

static bool waits(const struct stk_job *j)
{
    return (j->state == STK_JOB_WAITING || j->state == STK_JOB_BLOCKED) && !j->slept;
}

/* The jobs that wait, by number; the one that somebody asks about among them. */
static uint32_t who_waits(const struct stk_live *l, stk_job_number asked, uint32_t *slots)
{
    const struct stk_state *s = stk_core_state(l->core);
    uint32_t n = 0, slot = stk_core_find(l->core, asked);

    for (const struct stk_entry *e = stk_entries_next(&l->entries, 0); e && n < MOST_JOBS;
         e = stk_entries_next(&l->entries, e->number)) {
        uint32_t at = stk_core_find(l->core, e->number);

        if (at != STK_NONE && waits(&s->jobs[at]))
            slots[n++] = at;
    }
    if (n == MOST_JOBS && slot != STK_NONE && s->jobs[slots[n - 1]].number < asked)
        slots[n - 1] = slot;
    return n;
}

/* Forecasts are corrected by what came of earlier ones; a job's first counts as one. */
static void correct(struct stk_live *l, stk_time now, stk_job_number number,
                    struct stk_expected *io)
{
    struct stk_live_outlook *o = &l->outlook;
    const uint32_t slot = stk_core_find(l->core, number);
    const struct stk_job *j = slot != STK_NONE ? &stk_core_state(l->core)->jobs[slot] : NULL;
    const bool waits_on = io->p50 != STK_NEVER_TIME && io->p50 > now;

    if (!j || j->state != STK_JOB_WAITING) /* not before a certain time, or after certain jobs */
        return;
    stk_calibrate_correct(o->calibrate,
                          &(struct stk_calibrate_of){j->pool, j->gpus, now, j->submitted}, io);
    if (waits_on && number > o->said) {
        stk_calibrate_said(o->calibrate, number, now, io->p50 - now);
        o->said = number;
    }
}

/* The forecast is complete: it is what is shown from now on. */
static int keep_rows(struct stk_live *l)
{
    struct stk_live_outlook *o = &l->outlook;
    struct stk_expected *when = calloc(MOST_JOBS, sizeof(*when));
    const stk_time now = now_of(l);

    if (!when)
        return -ENOMEM;
    memset(o->rows, 0, MOST_JOBS * sizeof(*o->rows));
    o->n_pieces = 0;
    stk_forecast_read(o->making, when);
    stk_calibrate_now(o->calibrate, now);
    o->n = o->n_asked;
    for (uint32_t i = 0; i < o->n; i++) {
        correct(l, now, o->asked[i], &when[i]);
        o->rows[i].number = o->asked[i];
        o->rows[i].when = when[i];
    }
    free(when);
    return 0;
}

/* The next slice of the forecast that is being made. */
static int make_some(struct stk_live *l, uint32_t events)
{
    struct stk_live_outlook *o = &l->outlook;
    const stk_time began = l->cfg.clock(l->cfg.ctx);
    int rc = stk_forecast_step(o->making, events, NULL);

    if (rc == 0)
        rc = keep_rows(l);
    o->made = l->cfg.clock(l->cfg.ctx);
    o->took += o->made > began ? o->made - began : 0;
    if (rc <= 0)
        stk_live_outlook_stop(l);
    if (rc < 0)
        o->n = 0;
    return rc;
}

static int begin(struct stk_live *l, stk_job_number asked)
{
    struct stk_live_outlook *o = &l->outlook;
    struct stk_forecast_config cfg = how(l, l->core);
    uint32_t *slots = calloc(MOST_JOBS, sizeof(*slots));
    int rc = slots ? 0 : -ENOMEM;

    cfg.where = keep_place;
    o->n_asked = slots ? who_waits(l, asked, slots) : 0;
    for (uint32_t i = 0; i < o->n_asked; i++)
        o->asked[i] = stk_core_state(l->core)->jobs[slots[i]].number;
    if (o->n_asked > 0)
        rc = stk_forecast_begin(l->core, &cfg, slots, o->n_asked, &o->making, NULL);
    free(slots);
    return rc;
}

static int make(struct stk_live *l, stk_job_number asked)
{
    struct stk_live_outlook *o = &l->outlook;
    int rc;

    if (!o->rows)
        o->rows = calloc(MOST_JOBS, sizeof(*o->rows));
    o->asked = calloc(MOST_JOBS, sizeof(*o->asked));
    o->seq = l->seq;
    o->took = 0;
    o->made = l->cfg.clock(l->cfg.ctx);
    rc = o->rows && o->asked ? begin(l, asked) : -ENOMEM;
    if (!o->making) {
        o->n = 0;
        stk_live_outlook_stop(l);
        return rc;
    }
    /* a fork of a large core takes long: not while somebody asks */
    return stk_core_state(l->core)->n_jobs > MANY_JOBS ? 0 : make_some(l, FIRST_EVENTS);
}

bool stk_live_outlook_step(struct stk_live *l)
{
    return l->outlook.making && make_some(l, SLICE_EVENTS) > 0;
}

static const struct stk_live_expect *find(const struct stk_live *l, stk_job_number number)
{
    const struct stk_live_outlook *o = &l->outlook;
    uint32_t low = 0, high = o->n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (o->rows[mid].number == number)
            return &o->rows[mid];
        if (o->rows[mid].number < number)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* Whether another is to be made, for this job. */
static bool due(const struct stk_live *l, stk_job_number number)
{
    const struct stk_live_outlook *o = &l->outlook;
    const stk_time age = l->cfg.clock(l->cfg.ctx) - o->made,
                   rest = o->took * REST > LEAST_REST ? o->took * REST : LEAST_REST;

    if (o->making)
        return false;
    if (!o->rows || age < 0)
        return true;
    return age >= rest && (o->seq != l->seq || age >= LASTS || !find(l, number));
}

/* What a job that has GPUs will run in all with this chance. */
static stk_time run_of(struct stk_live *l, uint32_t slot, const struct stk_run_kind *k,
                       stk_time so_far, uint32_t milli)
{
    const stk_time known = known_of(l, stk_core_state(l->core), slot, so_far, milli);

    return known > so_far ? known : stk_predict_limited(l->outlook.predict, k, so_far, milli);
}

/* Of a job that has GPUs: how much longer it runs. */
static void of_running(struct stk_live *l, uint32_t slot, struct stk_expected *ret)
{
    const struct stk_state *s = stk_core_state(l->core);
    const struct stk_job *j = &s->jobs[slot];
    const struct stk_run_kind k = kind_of(l, s, slot);
    const stk_time now = now_of(l), worked = stk_job_served(j, now) - j->lost,
                   so_far = worked > 0 ? worked : 0;

    *ret = (struct stk_expected){.p10 = j->started, .p50 = j->started, .p90 = j->started};
    ret->end_p50 = now + run_of(l, slot, &k, so_far, 500) - so_far;
    ret->end_p90 = now + run_of(l, slot, &k, so_far, 900) - so_far;
}

bool stk_live_expected(struct stk_live *l, stk_job_number number, struct stk_expected *ret)
{
    uint32_t slot = l->core ? stk_core_find(l->core, number) : STK_NONE;
    const struct stk_live_expect *e;

    if (slot == STK_NONE || prepare(l) < 0)
        return false;
    if (stk_core_state(l->core)->jobs[slot].lease) {
        of_running(l, slot, ret);
        return true;
    }
    if (!waits(&stk_core_state(l->core)->jobs[slot]))
        return false;
    if (due(l, number) && make(l, number) < 0)
        return false;
    e = find(l, number);
    if (!e || e->when.p50 == STK_NEVER_TIME)
        return false;
    *ret = e->when;
    return true;
}

const struct stk_piece *stk_live_expected_where(const struct stk_live *l, stk_job_number number,
                                                uint32_t *ret_n)
{
    const struct stk_live_expect *e = find(l, number);

    *ret_n = e ? e->n_pieces : 0;
    return *ret_n > 0 ? &l->outlook.pieces[e->first_piece] : NULL;
}
