/* SPDX-License-Identifier: Apache-2.0 */
/* whys.c - the line of those who ask why a job waits.
 *
 * What would start a job is found by trying (core/remedy.h), and each try copies the state: with
 * 100,000 jobs all tries of one question take a sixth of a second and more. No other request is
 * answered while the one thread works, so it makes some tries, serves the others for as long as
 * that took, and goes on. Questions take turns, one slice each, those of different users before two
 * of the same. Where few jobs wait, and nobody is in the line, the first slice is all of it.
 *
 * The answer is of the moment at which it is complete; a try is of the moment at which it was made.
 * When the job's description has changed meanwhile, all is tried again. */
#include <stdlib.h>

#include "api/handlers.h"
#include "core/remedy.h"

struct asked {
    struct asked *next;
    struct stk_request *req; /* NULL: its client has left */
    stk_job_number number;
    int64_t spec; /* that the tries are of */
    struct stk_remedy_tries tries;
};

struct stk_whys {
    struct stk_api *api;
    uv_timer_t timer;
    struct asked *first;
    uint32_t last_uid; /* whose slice was the last */
};

static bool is_scheduled(const struct stk_api *a, stk_job_number number)
{
    stk_job_number last;
    stk_time next = 0;

    (void)stk_live_schedule(a->cfg.live, number, &next, &last);
    return next != 0;
}

/* Whether the question is answered now. */
static bool make_slice(struct stk_api *a, struct asked *q)
{
    const struct stk_entry *e = stk_live_entry(a->cfg.live, q->number);
    struct stk_remedies all = {.n = 0};
    int rc = 0;

    if (e && e->rec.spec != q->spec) {
        q->tries.n = 0;
        q->spec = e->rec.spec;
    }
    if (e && !is_scheduled(a, q->number))
        rc = stk_live_remedies(a->cfg.live, stk_request_who(q->req), e, &q->tries, &all, NULL);
    if (rc > 0)
        return false;
    if (rc < 0)
        all.n = 0;
    stk_why_answer(a, q->req, q->number, &all);
    return true;
}

/* Takes the one whose turn it is out of the line, if any; those whose clients have left go. */
static struct asked *take_next(struct stk_whys *w)
{
    struct asked **at = &w->first, **chosen = NULL, *q;

    while ((q = *at) != NULL) {
        if (!q->req) {
            *at = q->next;
            free(q);
            continue;
        }
        if (!chosen || (stk_request_who((*chosen)->req)->uid == w->last_uid &&
                        stk_request_who(q->req)->uid != w->last_uid))
            chosen = at;
        at = &q->next;
    }
    q = chosen ? *chosen : NULL;
    if (q)
        *chosen = q->next;
    return q;
}

static void put_last(struct stk_whys *w, struct asked *q)
{
    struct asked **at = &w->first;

    while (*at)
        at = &(*at)->next;
    q->next = NULL;
    *at = q;
}

static void on_slice(uv_timer_t *t)
{
    struct stk_whys *w = t->data;
    const uint64_t begun = uv_hrtime();
    struct asked *q = stk_live_core(w->api->cfg.live) ? take_next(w) : NULL;

    if (q) {
        w->last_uid = stk_request_who(q->req)->uid;
        if (make_slice(w->api, q))
            free(q);
        else
            put_last(w, q);
    }
    if (w->first)
        (void)uv_timer_start(t, on_slice, (uv_hrtime() - begun) / 1000000 + 1, 0);
}

static void on_gone(void *ctx, struct stk_request *r)
{
    struct asked *q = ctx;

    (void)r;
    q->req = NULL;
}

static struct stk_whys *whys_of(struct stk_api *a)
{
    if (a->whys)
        return a->whys;
    a->whys = calloc(1, sizeof(*a->whys));
    if (!a->whys)
        return NULL;
    a->whys->api = a;
    (void)uv_timer_init(a->cfg.loop, &a->whys->timer);
    a->whys->timer.data = a->whys;
    return a->whys;
}

void stk_do_why(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct stk_whys *w = whys_of(a);
    stk_job_number number;
    struct asked *q;

    if (stk_api_job_number(a, r, &number) < 0)
        return;
    q = w ? calloc(1, sizeof(*q)) : NULL;
    if (!q) {
        stk_request_error(r, 503, "no_memory", "the daemon has no memory for this now");
        return;
    }
    q->req = r;
    q->number = number;
    if (!w->first && make_slice(a, q)) {
        free(q);
        return;
    }
    stk_request_on_gone(r, on_gone, q);
    put_last(w, q);
    if (!uv_is_active((uv_handle_t *)&w->timer))
        (void)uv_timer_start(&w->timer, on_slice, 1, 0);
}

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

void stk_whys_free(struct stk_api *a)
{
    struct stk_whys *w = a->whys;

    if (!w)
        return;
    for (struct asked *q = w->first, *next; q; q = next) {
        next = q->next;
        free(q);
    }
    uv_close((uv_handle_t *)&w->timer, on_closed);
}
