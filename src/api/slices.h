/* SPDX-License-Identifier: Apache-2.0 */
/* slices.h - a line of requests that take long. Each is worked on for one slice at a time, and
 * other requests are served between two slices. */
#ifndef STK_API_SLICES_H
#define STK_API_SLICES_H

#include <uv.h>

#include "api/http.h"

/* The first member of what is answered in slices, from malloc. */
struct stk_sliced {
    struct stk_sliced *next;
    struct stk_request *req; /* NULL: its client has left */
};

struct stk_slices_config {
    uv_loop_t *loop;
    void *ctx;
    bool rests; /* after a slice others are served for as long as the slice took */
    /* Works for one slice; whether the request is answered now. The client is there. */
    bool (*work)(void *ctx, struct stk_sliced *s);
    void (*drop)(struct stk_sliced *s); /* frees it */
};

struct stk_slices;

struct stk_slices *stk_slices_new(const struct stk_slices_config *cfg); /* NULL: no memory */
bool stk_slices_any(const struct stk_slices *w);                        /* some are in the line */
/* Puts it into the line; a slice of it may have been made before. */
void stk_slices_put(struct stk_slices *w, struct stk_sliced *take);
void stk_slices_free(struct stk_slices *w); /* NULL is a no-op; memory goes with the loop */

#endif
