/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - a question to stoker-whatif, which runs beside us: a JSON object goes in, lines of JSON
 * come out, and at the end there is a result or a sentence. Nothing here waits. */
#ifndef STK_API_CHILD_H
#define STK_API_CHILD_H

#include <jansson.h>
#include <uv.h>

#include "base/err.h"

struct stk_child;

struct stk_child_to { /* who is told */
    void *ctx;
    /* How far it is, 0 to 1, and what it does; optional. */
    void (*progress)(void *ctx, double done, const char *step);
    /* Once, at the end: the result (borrowed), or NULL and why there is none. The child is gone. */
    void (*done)(void *ctx, json_t *result, const char *error);
};

/* 'question' is written out at once. */
int stk_child_start(uv_loop_t *loop, const char *program, json_t *question,
                    const struct stk_child_to *to, struct stk_child **ret, struct stk_err *err);
/* Ends it; 'done' is not called. */
void stk_child_stop(struct stk_child *c);

#endif
