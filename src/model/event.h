/* SPDX-License-Identifier: Apache-2.0 */
/* event.h - everything that can happen. Only events change scheduler state, and the state after a
 * list of events depends on nothing else. docs/spec/events.md describes each. */
#ifndef STK_MODEL_EVENT_H
#define STK_MODEL_EVENT_H

#include "model/booking.h"
#include "model/id.h"
#include "model/job.h"
#include "model/nodes.h"
#include "model/set.h"
#include "model/time.h"

enum stk_event_type {
    /* from users */
    STK_EV_SUBMIT,
    STK_EV_HOLD,
    STK_EV_RELEASE,
    STK_EV_CANCEL,
    /* decisions */
    STK_EV_PLACE,
    STK_EV_EVICT,
    /* from the engine */
    STK_EV_STARTED,
    STK_EV_EXITED,
    STK_EV_SUSPENDED, /* its processes sleep and its GPUs are free; it waits to be resumed */
    STK_EV_NODE_DOWN,
    STK_EV_NODE_UP,
    STK_EV_GPUS_OFF, /* which GPUs of a node take no new jobs: foreign use, a fault, drained */
    /* the clock reached a time the core asked for */
    STK_EV_TICK,
    STK_EV_UPDATE, /* from users: a job that has not started is changed */
    /* from an adviser: where the job belongs from now on, for policies that ask for that */
    STK_EV_ADVISE,
    STK_EV_NODE_OFF,   /* from the engine: an empty node was switched off; a start switches it on */
    STK_EV_SET,        /* from operators and rules: a parameter, a limit and the like changes */
    STK_EV_CHECKPOINT, /* from the job: what it has done up to now is saved */
    /* GPUs are set aside for somebody for some time (model/booking.h), and no longer. From
     * operators; the latter also a decision, when its time is up or nobody used it */
    STK_EV_RESERVE,
    STK_EV_UNRESERVE,
    STK_EV_SWAPPED, /* from the engine: it has other GPUs of its nodes than were decided */
    STK_EV_NODES,   /* from whoever knows their names: a set of nodes (model/nodes.h) is these */
    STK_EV_TYPE_MAX
};

/* The part of a lease that lies on one node; of MIG instances, with one start on each GPU. */
struct stk_piece {
    stk_node_id node;
    uint32_t gpus;
    uint32_t tasks; /* tasks of the gang here; 1 for each piece of a cut job */
    uint32_t slot;  /* of MIG instances: the first memory slice of each; else 0 */
    uint64_t mask;  /* which GPUs of the node; 0 on aggregate nodes */
};

/* Pointers are borrowed for the call that takes the event. */
struct stk_event {
    stk_time at;
    enum stk_event_type type;
    stk_job_id job; /* SUBMIT: must be stk_core_next_job() */
    stk_lease_id
        lease; /* PLACE: must be stk_core_next_lease(); STARTED, EXITED, EVICT, SWAPPED: which */
    union {
        const struct stk_job_spec *spec; /* SUBMIT */
        struct {
            const struct stk_piece *pieces;
            uint32_t n;
        } place;
        struct {
            enum stk_cause cause;
            int32_t code;   /* exit code or signal number */
            stk_time lost;  /* work that must be done again, restart overhead included */
            bool final;     /* not worth a restart, whatever its retry budget */
            stk_time ended; /* when it was, if that is known to be before 'at'; 0: not */
        } exit;
        struct {
            stk_job_id for_job; /* EVICT: who needs the room; STK_NONE: nobody in particular */
            bool suspend;       /* keep its processes asleep if that can be done */
            bool by_hand;       /* somebody asked for it: it is not to make room */
            bool moved;         /* it is placed again at once, elsewhere (core/defrag.h) */
            bool kill;          /* without warning: it gets no time to save anything */
            /* Who that is, for people who read it later: slots are used again. Set when the event
             * is written down, and nothing depends on it */
            stk_job_number for_number; /* 0: for no job, or not known */
            uint8_t for_tier;          /* enum stk_tier, + 1; 0: not known */
        } evict;
        struct {
            int32_t priority;
            stk_time estimate, asked, limit; /* as in the job's description and its terms */
            bool plain;                      /* as in its terms */
            /* NULL: only these. Else they are of no use, and the job becomes as if it had been
             * submitted with this; but for its kind, tag, array, retries, hold and dependencies, of
             * which there are none here */
            const struct stk_job_spec *spec;
            bool
                expected; /* only what is expected of it changes: engines need not know. Not kept */
        } update;
        struct {
            uint32_t where; /* GPU type + 1; 0: nowhere */
            int32_t rank;   /* smaller first */
        } advice;
        const struct stk_set *set; /* SET */
        stk_node_id node;          /* NODE_DOWN, NODE_UP, NODE_OFF */
        struct {
            stk_node_id node;
            uint64_t mask;
            uint64_t last; /* used only when no other GPU of the node is free */
            bool closed;   /* the node takes no new job without GPUs either */
        } off;             /* GPUS_OFF: all GPUs of the node that are off from now on */
        const struct stk_booking_spec *booking; /* RESERVE */
        const struct stk_node_set *nodes;       /* NODES */
        struct {
            uint32_t number;
            enum stk_over_why why;
        } unreserve;
        struct {
            stk_node_id node, to; /* the same, or another of its nodes */
            uint64_t had, has;    /* GPUs of 'to' in place of as many of 'node' */
            stk_job_id with;      /* whose they were, who has the others now; STK_NONE: nobody's */
        } swap;                   /* SWAPPED */
    } u;
};

const char *stk_event_type_name(enum stk_event_type t);

/* Whether an event of this type is about one job: only then 'job' means anything. */
bool stk_event_is_of_job(enum stk_event_type t);

#endif
