/* SPDX-License-Identifier: Apache-2.0 */
/* booking.h - a reservation: GPUs set aside for somebody from one time to another. What a user
 * calls a reservation may come back every week; each of its windows is one of these, and the events
 * RESERVE and UNRESERVE are about one. docs/spec/reservations.md has the meaning in words. */
#ifndef STK_MODEL_BOOKING_H
#define STK_MODEL_BOOKING_H

#include <stdbool.h>
#include <stdint.h>

#include "model/id.h"
#include "model/time.h"

#define STK_MAX_BOOKINGS 256
#define STK_MAX_HOLDERS 64 /* different ones at a time */
#define STK_MAX_WINDOW (366 * INT64_C(86400) * STK_SECOND)

/* Whose jobs may use it. */
enum stk_holder {
    STK_HOLDER_TENANT, /* jobs of this tenant and those below it */
    STK_HOLDER_USER,   /* jobs of this user (terms.user) */
    STK_HOLDER_NAMED,  /* jobs that name it (terms.reservation) */
    STK_HOLDER_JOB,    /* the job with this number */
    STK_HOLDER_MAX
};

/* Why it is over. */
enum stk_over_why {
    STK_OVER_REMOVED,  /* somebody said so */
    STK_OVER_ENDED,    /* its time is up */
    STK_OVER_LAPSED,   /* nobody used it in its grace period */
    STK_OVER_STARTED,  /* the one job it was for has started */
    STK_OVER_GIVEN_UP, /* the one job it was for did not get all its GPUs in time */
    STK_OVER_LOST,     /* it was for one job, and its GPUs are gone or reserved otherwise */
    STK_OVER_MAX
};

struct stk_piece;

struct stk_booking_spec {
    uint32_t number; /* must be stk_core_next_booking() */
    uint32_t tag;    /* the owner's word, handed back untouched */
    enum stk_holder holder;
    uint32_t holder_id;
    stk_pool_id pool;
    uint64_t gpu_types; /* any of these */
    uint32_t gpus;      /* in all; with 'nodes' their sum */
    stk_time start, end;
    stk_time grace; /* so long after its start, unused, it lapses; 0: it does not */
    bool evict;     /* at its start jobs of others on its GPUs are stopped, if they may be */
    bool drain;     /* made by the core for a job that has waited long */
    const struct stk_piece *nodes; /* which, and how many GPUs of each; NULL: the core chooses */
    uint32_t n_nodes;
};

const char *stk_over_name(enum stk_over_why o);

#endif
