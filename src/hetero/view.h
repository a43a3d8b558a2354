/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - what objectives see of the cluster at the beginning of a round, and what they answer. */
#ifndef STK_HETERO_VIEW_H
#define STK_HETERO_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/demand.h"

struct stk_memo {    /* of a job, from round to round */
    uint32_t number; /* the job's; another: the slot has a new one */
    uint32_t row;
    uint64_t steps;
    uint32_t where;     /* what was advised last: GPU type + 1 */
    bool shared;        /* it had a part in the last sharing out */
    bool met;           /* finish_time_fairness has seen it */
    double alone_s;     /* finish_time_fairness: time its steps so far would have taken it alone */
    double alone_speed; /* ... at this speed */
    double left;        /* ... with so many steps left */
};

struct stk_view_job {
    struct stk_memo *memo;
    const double *speed;           /* by type, steps per second */
    double *share, *got, *deficit; /* by type, kept with the memo: of the time; seconds; seconds */
    double best;                   /* of its speeds */
    double gpus, weight;
    double left, done; /* steps */
    double age_s;      /* since it was submitted */
    uint32_t slot;
    uint32_t where; /* the answer: GPU type + 1; 0: nowhere */
};

struct stk_view {
    struct stk_view_job *jobs; /* active ones, in order of arrival */
    uint32_t n, types;
    double count[STK_MAX_GPU_TYPES];    /* GPUs of each type */
    uint32_t faster[STK_MAX_GPU_TYPES]; /* types, the fastest first */
    double now_s, round_s;
    bool changed; /* jobs came or went since the last round */
};

/* How time is shared out (shares.c). */
enum stk_share_rule { STK_FIFO, STK_MAX_MIN, STK_FINISH_TIME, STK_TOTAL_DURATION };

struct stk_solver;
struct stk_fifo_seat {
    uint32_t number, type;
};
struct stk_shares {
    enum stk_share_rule rule;
    bool perf; /* goes by measured speeds; else all GPUs are the same to it */
    struct stk_solver *solver;
    struct stk_fifo_seat *seats; /* STK_FIFO: who has what, by number */
    uint32_t n_seats;
};

/* Sets 'share' of every job. */
int stk_shares_make(struct stk_shares *s, struct stk_view *v, struct stk_err *err);
void stk_shares_done(struct stk_shares *s);
int stk_fifo_make(struct stk_shares *s, struct stk_view *v, struct stk_err *err); /* fifo.c */

/* Gavel's rounds (gavel.c): from shares to who runs where. */
struct stk_gavel {
    struct stk_shares shares;
    double reset_s; /* when time was last shared out */
    bool began, stale;
    uint32_t round;
};
int stk_gavel_round(struct stk_gavel *g, struct stk_view *v, struct stk_err *err);

/* Our own objective (value.c). */
int stk_value_round(struct stk_view *v, struct stk_err *err);

#endif
