/* SPDX-License-Identifier: Apache-2.0 */
/* look.c - long looks at the past: reports, and when GPUs are used.
 *
 * A report may be about a million jobs and a year of measurements, which takes many seconds. Nobody
 * is served while the one thread looks, so it looks in slices of a few milliseconds, with pauses as
 * long as the slice before, and answers when it is done. One look goes on at a time; others wait in
 * line, and those that ask the same get the same answer. The answer to how GPUs are used is kept
 * for a while: pages ask for it again and again.
 *
 * A slice sees what there is when it is its turn. So that no job counts twice or not at all, those
 * that have started and not ended are listed when the look begins, and only jobs that had ended by
 * then are walked. Nothing after that moment counts. */
#include <stdlib.h>

#include "api/handlers.h"
#include "api/spent.h"
#include "core/state.h"
#include "series/series.h"

#define SLICE 250u               /* jobs */
#define MAX_LINE 64u             /* looks under way */
#define FRESH_MS UINT64_C(10000) /* how long an answer is kept, at least; */
#define FRESH_TIMES 20           /* and in times of what it took */
#define KEPT_ANSWERS 4u

struct stk_look {
    struct stk_look *next;
    struct stk_request *req; /* NULL: its client has left */
    struct stk_look_for what;
    struct stk_spent *s; /* NULL: it has not begun */
    struct stk_spent_heat heat;
    stk_time began, energy_at; /* energy_at: measurements up to there are in */
    stk_job_number last;       /* of those that have ended */
    uint32_t page;             /* of the slice */
    bool ended_done;
    stk_job_number *live; /* had started and not ended when it began */
    uint32_t n_live, at;
    uint64_t work_ns;
};

struct stk_looks {
    struct stk_api *api;
    uv_timer_t timer;
    struct stk_look *first; /* goes on; the others wait */
    uint32_t n;
    struct kept {
        uint32_t days;
        uint64_t until_ms;
        json_t *body;
    } kept[KEPT_ANSWERS];
    uint32_t next_kept;
};

static void drop(struct stk_look *l)
{
    stk_spent_free(l->s);
    free(l->live);
    free(l);
}

/* ---- slices ---- */

static bool has_started(const struct stk_job *j)
{
    return j->state != STK_JOB_NONE && j->state != STK_JOB_DONE &&
           (j->lease || j->slept || j->restarts > 0);
}

static int list_live(const struct stk_api *a, struct stk_look *l)
{
    const struct stk_state *s = stk_core_state(stk_live_core(a->cfg.live));
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_jobs; i++)
        n += has_started(&s->jobs[i]);
    l->live = calloc((size_t)n + 1, sizeof(*l->live));
    for (uint32_t i = 0; l->live && i < s->n_jobs; i++)
        if (has_started(&s->jobs[i]))
            l->live[l->n_live++] = s->jobs[i].number;
    return l->live ? 0 : -ENOMEM;
}

static int begin(struct stk_api *a, struct stk_look *l, struct stk_err *err)
{
    int rc = stk_spent_new(a, &l->what, &l->s, err);

    if (rc < 0)
        return rc;
    if (list_live(a, l) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    l->heat.kwh = -1;
    l->energy_at = l->what.since - l->what.since % STK_SERIES_QUARTER;
    l->began = stk_api_now(a);
    return 1;
}

struct slice {
    struct stk_api *a;
    struct stk_look *l;
    struct stk_err *err;
};

static int on_record(void *ctx, const struct stk_record *r)
{
    struct slice *c = ctx;

    c->l->last = r->number;
    c->l->page++;
    return stk_spent_add(c->l->s, c->a, r, c->err);
}

static int look_ended(struct stk_api *a, struct stk_look *l, struct stk_err *err)
{
    const struct stk_history_query q = {
        .since = l->what.since, .until = l->began, .before = l->last, .limit = SLICE};
    struct slice c = {a, l, err};
    int rc;

    l->page = 0;
    rc = stk_store_history(stk_live_store(a->cfg.live), &q, on_record, &c, err);
    l->s->truncated = l->page == SLICE && l->s->n_jobs >= STK_SPENT_JOBS;
    l->ended_done = l->page < SLICE || l->s->truncated;
    return rc < 0 ? rc : 1;
}

/* Those that had not ended when it began; some have since. */
static int look_live(struct stk_api *a, struct stk_look *l, struct stk_err *err)
{
    const uint32_t end = l->n_live - l->at < SLICE ? l->n_live : l->at + SLICE;
    struct slice c = {a, l, err};
    int rc = 0;

    for (; l->at < end && rc >= 0; l->at++) {
        const struct stk_entry *e = stk_live_entry(a->cfg.live, l->live[l->at]);

        if (e)
            rc = stk_spent_add(l->s, a, &e->rec, err);
        else
            rc = stk_store_job_get(stk_live_store(a->cfg.live), l->live[l->at], on_record, &c, err);
        rc = rc == -ENOENT ? 0 : rc;
    }
    return rc < 0 ? rc : l->at < l->n_live;
}

/* 1: there is more to look at, 0: that was all, < 0: it failed. */
static int look_on(struct stk_api *a, struct stk_look *l, struct stk_err *err)
{
    if (!l->s)
        return begin(a, l, err);
    if (l->energy_at < l->what.until) {
        l->energy_at = stk_spent_energy(a, l->s, (struct stk_period){l->energy_at, l->what.until},
                                        &l->heat, err);
        return l->energy_at < 0 ? (int)l->energy_at : 1;
    }
    return l->ended_done ? look_live(a, l, err) : look_ended(a, l, err);
}

/* ---- answers ---- */

static bool same(const struct stk_look_for *x, const struct stk_look_for *y)
{
    if (x->show != y->show || x->by != y->by || x->days != y->days)
        return false;
    return x->days > 0 || (x->since == y->since && x->until == y->until);
}

static void keep(struct stk_looks *w, const struct stk_look *l, json_t *body)
{
    struct kept *k = &w->kept[w->next_kept];
    const uint64_t took = l->work_ns / 1000000 * FRESH_TIMES;

    if (l->what.days == 0)
        return;
    for (uint32_t i = 0; i < KEPT_ANSWERS; i++)
        k = w->kept[i].days == l->what.days ? &w->kept[i] : k;
    if (k == &w->kept[w->next_kept])
        w->next_kept = (w->next_kept + 1) % KEPT_ANSWERS;
    json_decref(k->body);
    *k = (struct kept){l->what.days, uv_now(w->api->cfg.loop) + (took > FRESH_MS ? took : FRESH_MS),
                       json_incref(body)};
}

/* The first is done: it goes, with all that asked the same. */
static void finish(struct stk_looks *w, int rc, const struct stk_err *err)
{
    struct stk_look *l = w->first, **at = &w->first, *x;
    const struct stk_look_for what = l->what;
    json_t *body = NULL;

    if (rc == 0) {
        stk_spent_cells(l->s, &l->heat);
        body = l->what.show(w->api, l->s, &l->heat);
        keep(w, l, body);
    }
    while ((x = *at) != NULL) {
        if (!same(&what, &x->what)) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        w->n--;
        if (x->req && rc < 0)
            stk_api_fail(x->req, rc, err);
        else if (x->req)
            stk_request_json(x->req, 200, json_incref(body));
        drop(x);
    }
    json_decref(body);
}

/* Those whose clients have left, unless somebody who waits asks the same. */
static void forget_gone(struct stk_looks *w)
{
    while (w->first && !w->first->req) {
        struct stk_look *l = w->first, *x = l->next;

        while (x && !(x->req && same(&l->what, &x->what)))
            x = x->next;
        if (x)
            return;
        w->first = l->next;
        w->n--;
        drop(l);
    }
}

static void on_slice(uv_timer_t *t)
{
    struct stk_looks *w = t->data;
    const uint64_t begun = uv_hrtime();
    struct stk_err err = {""};
    uint64_t took;
    int rc;

    forget_gone(w);
    if (!w->first || !stk_live_core(w->api->cfg.live))
        return;
    rc = look_on(w->api, w->first, &err);
    took = uv_hrtime() - begun;
    w->first->work_ns += took;
    if (rc <= 0)
        finish(w, rc, &err);
    if (w->first)
        (void)uv_timer_start(t, on_slice, took / 1000000 + 1, 0);
}

/* ---- asking ---- */

static void on_gone(void *ctx, struct stk_request *r)
{
    struct stk_look *l = ctx;

    (void)r;
    l->req = NULL;
}

static struct stk_looks *looks_of(struct stk_api *a)
{
    if (a->looks)
        return a->looks;
    a->looks = calloc(1, sizeof(*a->looks));
    if (!a->looks)
        return NULL;
    a->looks->api = a;
    (void)uv_timer_init(a->cfg.loop, &a->looks->timer);
    a->looks->timer.data = a->looks;
    return a->looks;
}

static json_t *find_kept(const struct stk_looks *w, uint32_t days)
{
    for (uint32_t i = 0; i < KEPT_ANSWERS && days > 0; i++)
        if (w->kept[i].days == days && uv_now(w->api->cfg.loop) < w->kept[i].until_ms)
            return json_incref(w->kept[i].body);
    return NULL;
}

void stk_look(struct stk_api *a, struct stk_request *r, const struct stk_look_for *what)
{
    struct stk_looks *w = looks_of(a);
    struct stk_look *l = w && w->n < MAX_LINE ? calloc(1, sizeof(*l)) : NULL, **at;
    json_t *body = w ? find_kept(w, what->days) : NULL;

    if (body) {
        free(l);
        stk_request_json(r, 200, body);
        return;
    }
    if (!l) {
        stk_request_error(r, 503, "busy", "too many reports are being made: ask again later");
        return;
    }
    l->req = r;
    l->what = *what;
    for (at = &w->first; *at; at = &(*at)->next)
        ;
    *at = l;
    w->n++;
    stk_request_on_gone(r, on_gone, l);
    if (!uv_is_active((uv_handle_t *)&w->timer))
        (void)uv_timer_start(&w->timer, on_slice, 0, 0);
}

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

void stk_looks_free(struct stk_api *a)
{
    struct stk_looks *w = a->looks;

    if (!w)
        return;
    for (struct stk_look *l = w->first, *next; l; l = next) {
        next = l->next;
        drop(l);
    }
    for (uint32_t i = 0; i < KEPT_ANSWERS; i++)
        json_decref(w->kept[i].body);
    uv_close((uv_handle_t *)&w->timer, on_closed);
}
