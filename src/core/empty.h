/* SPDX-License-Identifier: Apache-2.0 */
/* empty.h - a node is emptied: all that runs on it starts elsewhere.
 *
 * Somebody wants to switch the node off, to work on it, or to have it whole. What is on it is taken
 * off in a transaction, the node is closed, and each job, the largest first, is put where the
 * policy puts it now. If all find a place, that is the plan; what it costs is what those that move
 * lose (core/stake.h), and what it brings is a node in one piece. Each of them must say that it may
 * move (or defrag.jobs is all), and be neither protected (core/stake.h) nor needed (core/budget.h):
 * all of them are stopped at the same time. Gangs move whole, with their pieces on other nodes.
 *
 * Doing it is not decided here: whoever asked closes the node (its GPUs are off) and evicts the
 * jobs of the plan as moved, for nobody, in its order. The core then places them before all others
 * (core/defrag.h), and nobody else starts in that pool until the last of them has been stopped.
 *
 * Cost: O(jobs), and a try for each that moves. To choose a node, O(jobs + nodes log nodes) and at
 * most STK_EMPTY_TRIES plans, the cheapest nodes first.
 */
#ifndef STK_CORE_EMPTY_H
#define STK_CORE_EMPTY_H

#include "core/state.h"

#define STK_EMPTY_TRIES 64 /* nodes */

enum stk_stay {                     /* why a job cannot be moved */
                STK_STAY_UNASKED,   /* it did not say that it may be */
                STK_STAY_CRITICAL,  /* its tier is */
                STK_STAY_PROTECTED, /* it has not run for long enough, or gave way often enough
                                       today */
                STK_STAY_NEEDED,    /* its group or tenant keeps it up */
                STK_STAY_RESERVED,  /* it uses a reservation */
                STK_STAY_KIND, /* MIG instances, jobs without GPUs, jobs that sleep or stop already
                                */
                STK_STAY_ROOM, /* there is no room elsewhere */
                STK_STAY_MAX
};
const char *stk_stay_name(enum stk_stay why);

struct stk_whole {  /* how much of what is free lies in whole nodes, in a pool */
    uint64_t free;  /* GPUs */
    uint64_t whole; /* of these, on nodes that are empty */
};

struct stk_empty_plan {
    uint32_t node;
    uint32_t n;                    /* jobs on it */
    uint32_t move[STK_MAX_MOVING]; /* in the order in which they are placed */
    uint32_t to[STK_MAX_MOVING];   /* the node of its first piece */
    int64_t units[STK_MAX_MOVING]; /* what each loses */
    uint8_t stay[STK_MAX_MOVING];  /* why it cannot move; where 'possible' is false */
    int64_t cost;
    bool possible;
    bool too_many; /* more jobs than can move at a time */
    struct stk_whole before, after;
    uint32_t starts[8], n_starts; /* jobs that wait and would find room there, if it were open */
};

/* What would have to move so that this node is empty. False: it is empty, or there is none such. */
bool stk_empty_plan(struct stk_state *s, stk_time now, uint32_t node, struct stk_empty_plan *ret);
/* The node that costs least for each GPU; false: none can be emptied. */
bool stk_empty_best(struct stk_state *s, stk_time now, struct stk_empty_plan *ret);

/* What is free in a pool. O(its nodes). */
struct stk_whole stk_empty_whole(const struct stk_state *s, uint32_t pool);

#endif
