/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - what is said to somebody who submits jobs, beside their numbers: whether deadlines
 * will be kept, and what would become of a job that is only tried. */
#ifndef STK_LIVE_ANSWER_H
#define STK_LIVE_ANSWER_H

#include "live/state.h"

struct stk_draft { /* one description, checked */
    struct stk_spec spec;
    json_t *json; /* borrowed from the request */
    uint32_t n;   /* jobs it makes */
    bool each;    /* every one has dependencies of its own */
};

/* The request is answered with an error: 1. */
int stk_answer_refuse(struct stk_live_request *r, int status, const char *code, const char *text);
int stk_answer_error(struct stk_live_request *r, int rc, const struct stk_err *err);

/* Whether each of them would end in time: a list with an answer for each description, null for
 * those without a deadline; NULL: none has one. > 0: one would not, and all are refused for that.
 */
int stk_live_answer_deadlines(struct stk_live *l, struct stk_live_request *r,
                              struct stk_draft *drafts, size_t n, json_t **ret);
/* What would become of it. > 0: it is refused. */
int stk_live_answer_dry(struct stk_live *l, struct stk_live_request *r, struct stk_draft *d);

#endif
