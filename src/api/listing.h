/* SPDX-License-Identifier: Apache-2.0 */
/* listing.h - a page of jobs, made row by row in slices of a few milliseconds between which others
 * are served. */
#ifndef STK_API_LISTING_H
#define STK_API_LISTING_H

#include "api/show.h"
#include "api/slices.h"

struct stk_listing {
    struct stk_sliced turn; /* kept by listing.c, with what is below */
    struct stk_show view;
    uint32_t limit;      /* rows */
    stk_job_number last; /* the job that was looked at last; at first, where the page begins */
    /* Adds rows until the page is complete (returns 0 with 'more' set) or stk_listing_due (returns
     * 1, and is called again); < 0: it failed. */
    int (*add_rows)(struct stk_listing *l, struct stk_err *err);
    bool more; /* jobs come after this page */

    /* kept by listing.c */
    uint64_t until_ns; /* of the slice */
    uint32_t looks;    /* at the clock */
    uint32_t n;        /* rows */
    size_t room;       /* bytes that it may have */
    struct stk_writer text;
};

/* Answers the request with the page, which is the first member of what malloc gave, and is freed;
 * NULL: there was no memory for it. At once where one slice is enough, else in later ones: query
 * parameters and who asks may be used until then. */
void stk_listing_start(struct stk_listing *take, struct stk_request *r);
/* Where the next row is to be written. */
struct stk_writer *stk_listing_row(struct stk_listing *l);
/* The page has as many rows, or as many bytes of descriptions, as one may have. */
bool stk_listing_full(const struct stk_listing *l);
/* Others are to be served now. */
bool stk_listing_due(struct stk_listing *l);

#endif
