/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - what is said to somebody who submits jobs, beside their numbers: whether deadlines
 * will be kept, and what would become of a job that is only tried. */
#ifndef STK_LIVE_ANSWER_H
#define STK_LIVE_ANSWER_H

#include "live/state.h"

struct stk_draft { /* one description, checked */
    struct stk_spec spec;
    json_t *json;      /* the description; whose it is is its maker's to know */
    uint32_t n;        /* jobs it makes; */
    uint32_t makes;    /* of a schedule: jobs that it makes each time, else 0 */
    bool each;         /* every one has dependencies of its own */
    bool runs_already; /* its processes are there: it takes no default share of CPUs */
};

/* The request is answered with an error: 1. */
int stk_answer_refuse(struct stk_live_request *r, int status, const char *code, const char *text);
int stk_answer_error(struct stk_live_request *r, int rc, const struct stk_err *err);

/* Whether each of them would end in time: a list with an answer for each description, null for
 * those without a deadline; NULL: none has one. > 0: one would not, and all are refused for that.
 */
int stk_live_answer_deadlines(struct stk_live *l, struct stk_live_request *r,
                              struct stk_draft *drafts, size_t n, json_t **ret);
/* What can be said of one that is not foreseen: into the list. > 0: its time is over, and all are
 * refused for that. */
int stk_live_answer_later(struct stk_live *l, struct stk_live_request *r, const struct stk_draft *d,
                          size_t at, json_t *list);
/* What would become of it. > 0: it is refused. */
int stk_live_answer_dry(struct stk_live *l, struct stk_live_request *r, struct stk_draft *d);

/* submit.c: a description of a job of 'owner' that 'who' asks for is read and, unless jobs are
 * being made, checked. */
int stk_live_draft(struct stk_live *l, const struct stk_who *owner, const struct stk_who *who,
                   struct stk_draft *d, struct stk_err *err);
/* Whether the user can be looked up, where jobs are run as their users. -EAGAIN. */
int stk_live_know(struct stk_live *l, uint32_t uid, struct stk_err *err);

/* ---- make.c ---- */

struct stk_making { /* jobs being made from one draft */
    struct stk_live *l;
    const struct stk_who *who;
    struct stk_draft *d;
    int64_t spec_id;
    stk_job_number first;
    stk_job_number after; /* singleton: the job of this name before it; 0: none */
    uint32_t made, items; /* so far */
    struct stk_live_deps deps;
};
int stk_live_make_begin(struct stk_making *m, struct stk_live *l, const struct stk_who *who,
                        struct stk_draft *d, int64_t spec_id, struct stk_err *err);
/* One job more, or some of its items. 1: there is more to make. */
int stk_live_make_next(struct stk_making *m, struct stk_err *err);
int stk_live_make_all(struct stk_live *l, const struct stk_who *who, struct stk_draft *d,
                      int64_t spec_id, struct stk_err *err);
/* The id of the stored description; that of the one before when they are the same. */
int stk_live_put_spec(struct stk_live *l, const json_t *json, char **last, int64_t *id,
                      struct stk_err *err);
/* Whether the user may have 'more' further jobs. -EDQUOT. */
int stk_live_room(const struct stk_live *l, const struct stk_who *who, uint64_t more,
                  struct stk_err *err);

#endif
