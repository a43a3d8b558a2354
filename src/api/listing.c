/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c - pages of jobs, in slices.
 *
 * A page of 1000 jobs with large descriptions takes a tenth of a second and more. No other request
 * is answered while the one thread works, so it adds rows for a few milliseconds, serves the
 * others, and goes on. Pages that are being made take turns, one slice each, those of different
 * users before two of the same. Each row is made text at once: the page is never held as a tree.
 *
 * A row is the job as it was when the row was made. The queue is walked by number and the history
 * from the latest end back, so no job is in a page twice. A job that ends before its row in the
 * queue is made is in the history instead; the history leaves out what ends after its first row was
 * made. */
#include "api/listing.h"

#include <stdlib.h>
#include <time.h>

#define SLICE_NS UINT64_C(5000000)
/* The clock is read once for this many rows: reading it costs a part of a row. */
#define LOOKS 8u
#define MAX_BYTES ((size_t)8 << 20) /* of a page with descriptions; it goes on with "next" */

struct stk_listings {
    struct stk_api *api;
    uv_timer_t timer;
    struct stk_listing *first; /* those that are not complete, whose turn it is next first */
    uint32_t last_uid;         /* whose slice was the last */
};

static void drop(struct stk_listing *l)
{
    stk_writer_done(&l->text);
    free(l);
}

/* ---- rows ---- */

struct stk_writer *stk_listing_row(struct stk_listing *l)
{
    l->n++;
    return &l->text;
}

bool stk_listing_full(const struct stk_listing *l)
{
    return l->n >= l->limit || l->text.starved || l->text.len > l->room ||
           (l->view.detail && l->text.len >= MAX_BYTES);
}

/* Time of this thread alone: a page that needs one slice gets it in one, also where other programs
 * use the processor meanwhile. */
static uint64_t worked_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

bool stk_listing_due(struct stk_listing *l)
{
    return ++l->looks % LOOKS == 0 && worked_ns() >= l->until_ns;
}

/* ---- slices ---- */

static void answer(struct stk_listing *l, int rc, const struct stk_err *err)
{
    stk_write_close(&l->text, ']');
    if (l->more)
        stk_write_number(&l->text, "next", l->last);
    else
        stk_write_null(&l->text, "next");
    stk_write_close(&l->text, '}');
    if (rc < 0)
        stk_api_fail(l->req, rc, err);
    else if (l->text.len > l->room)
        stk_request_unread(l->req);
    else
        stk_request_written(l->req, &l->text);
}

/* Whether it is complete, and answered. */
static bool add_slice(struct stk_listing *l)
{
    struct stk_err err = {""};
    int rc;

    l->until_ns = worked_ns() + SLICE_NS;
    l->room = stk_request_room(l->req);
    rc = l->add_rows(l, &err);
    stk_request_making(l->req, l->text.cap);
    if (rc <= 0)
        answer(l, rc, &err);
    return rc <= 0;
}

static uint32_t uid_of(const struct stk_listing *l)
{
    const struct stk_who *who = l->req ? stk_request_who(l->req) : NULL;

    return who ? who->uid : STK_NONE;
}

/* Takes the one whose turn it is out of the line, if any; those whose clients have left go. */
static struct stk_listing *take_next(struct stk_listings *w)
{
    struct stk_listing **at = &w->first, **chosen = NULL, *l;

    while ((l = *at) != NULL) {
        if (!l->req) {
            *at = l->next;
            drop(l);
            continue;
        }
        if (!chosen || (uid_of(*chosen) == w->last_uid && uid_of(l) != w->last_uid))
            chosen = at;
        at = &l->next;
    }
    l = chosen ? *chosen : NULL;
    if (l)
        *chosen = l->next;
    return l;
}

static void on_slice(uv_timer_t *t);

static void put_last(struct stk_listings *w, struct stk_listing *l)
{
    struct stk_listing **at = &w->first;

    while (*at)
        at = &(*at)->next;
    l->next = NULL;
    *at = l;
    if (!uv_is_active((uv_handle_t *)&w->timer)) /* 1 ms: not in this turn of the loop */
        (void)uv_timer_start(&w->timer, on_slice, 1, 0);
}

static void on_slice(uv_timer_t *t)
{
    struct stk_listings *w = t->data;
    struct stk_listing *l = take_next(w);

    if (!l)
        return;
    w->last_uid = uid_of(l);
    if (!add_slice(l))
        put_last(w, l);
    else
        drop(l);
    if (w->first && !uv_is_active((uv_handle_t *)t))
        (void)uv_timer_start(t, on_slice, 1, 0);
}

/* ---- asking ---- */

static void on_gone(void *ctx, struct stk_request *r)
{
    struct stk_listing *l = ctx;

    (void)r;
    l->req = NULL;
}

static struct stk_listings *listings_of(struct stk_api *a)
{
    if (a->listings)
        return a->listings;
    a->listings = calloc(1, sizeof(*a->listings));
    if (!a->listings)
        return NULL;
    a->listings->api = a;
    (void)uv_timer_init(a->cfg.loop, &a->listings->timer);
    a->listings->timer.data = a->listings;
    return a->listings;
}

void stk_listing_start(struct stk_listing *take, struct stk_request *r)
{
    struct stk_listings *w = take ? listings_of(take->view.api) : NULL;

    if (!w) {
        stk_request_error(r, 503, "no_memory", "the daemon has no memory for this list now");
        free(take);
        return;
    }
    take->req = r;
    stk_write_open(&take->text, NULL, '{');
    stk_write_open(&take->text, "jobs", '[');
    if (add_slice(take)) {
        drop(take);
        return;
    }
    stk_request_on_gone(r, on_gone, take);
    put_last(w, take);
}

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

void stk_listings_free(struct stk_api *a)
{
    struct stk_listings *w = a->listings;

    if (!w)
        return;
    for (struct stk_listing *l = w->first, *next; l; l = next) {
        next = l->next;
        drop(l);
    }
    uv_close((uv_handle_t *)&w->timer, on_closed);
}
