/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c - pages of jobs, in slices.
 *
 * A page of 1000 jobs with large descriptions takes a tenth of a second and more. No other request
 * is answered while the one thread works, so it adds rows for a few milliseconds, serves the
 * others, and goes on (slices.h). Each row is made text at once: the page is never held as a tree.
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

static void drop(struct stk_sliced *s)
{
    struct stk_listing *l = (struct stk_listing *)s;

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
        stk_api_fail(l->turn.req, rc, err);
    else if (l->text.len > l->room)
        stk_request_unread(l->turn.req);
    else
        stk_request_written(l->turn.req, &l->text);
}

/* Whether it is complete, and answered. */
static bool add_slice(void *ctx, struct stk_sliced *s)
{
    struct stk_listing *l = (struct stk_listing *)s;
    struct stk_err err = {""};
    int rc;

    (void)ctx;
    l->until_ns = worked_ns() + SLICE_NS;
    l->room = stk_request_room(l->turn.req);
    rc = l->add_rows(l, &err);
    stk_request_making(l->turn.req, l->text.cap);
    if (rc <= 0)
        answer(l, rc, &err);
    return rc <= 0;
}

/* ---- asking ---- */

static struct stk_slices *listings_of(struct stk_api *a)
{
    if (!a->listings)
        a->listings = stk_slices_new(
            &(struct stk_slices_config){.loop = a->cfg.loop, .work = add_slice, .drop = drop});
    return a->listings;
}

void stk_listing_start(struct stk_listing *take, struct stk_request *r)
{
    struct stk_slices *w = take ? listings_of(take->view.api) : NULL;

    if (!w) {
        stk_request_error(r, 503, "no_memory", "the daemon has no memory for this list now");
        free(take);
        return;
    }
    take->turn.req = r;
    stk_write_open(&take->text, NULL, '{');
    stk_write_open(&take->text, "jobs", '[');
    if (add_slice(NULL, &take->turn))
        drop(&take->turn);
    else
        stk_slices_put(w, &take->turn);
}
