/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.h - the future of one pool: how much will be free at each time, as a function free(t)
 * that is constant between breakpoints. Conservative backfill keeps one per pool: running jobs give
 * their share back when they are expected to end, reservations take theirs, and the question is
 * always "from when on is this much free for this long?".
 *
 *     stk_timeline_reserve(&t, n_jobs);                      the only call that allocates
 *     stk_timeline_reset(&t, now, gpus_total);
 *     stk_timeline_add(&t, now, expected_end, -gpus);        for every running job
 *     start = stk_timeline_earliest(&t, now, gpus, estimate);
 *     stk_timeline_add(&t, start, start + estimate, -gpus);  its reservation
 *
 * The unit of free(t) is the caller's; it may go below zero (a node was lost). The sum of the
 * absolute values of everything added must fit in 64 bits.
 */
#ifndef STK_CORE_TIMELINE_H
#define STK_CORE_TIMELINE_H

#include <stdint.h>

#include "base/mem.h"
#include "model/time.h"

struct stk_timeline_node { /* timeline.c explains; nothing here is for callers */
    stk_time at;
    int64_t delta;
    int64_t sum, low, high;
    uint32_t left, right;
    uint32_t height;
};

struct stk_timeline {
    struct stk_mem mem;
    struct stk_timeline_node *nodes; /* [0] stands for "no node" and stays zero */
    uint32_t cap;
    uint32_t used;  /* nodes[used..] were never handed out since the reset */
    uint32_t spare; /* list of nodes given back, linked by 'left' */
    uint32_t root;
    stk_time start; /* the function is defined from here on */
    int64_t free;   /* its value at 'start' */
};

/* An empty timeline: free(t) is 0 from time 0 on. '*mem' is copied, what its ctx points to is
 * borrowed until _done(). */
void stk_timeline_init(struct stk_timeline *t, const struct stk_mem *mem);
void stk_timeline_done(struct stk_timeline *t); /* NULL and a zeroed struct are fine */

/* Makes room for 'intervals' calls of stk_timeline_add() counted from the last reset. What the
 * timeline holds is kept. 0, or -ENOMEM with nothing changed. */
int stk_timeline_reserve(struct stk_timeline *t, uint32_t intervals);

/* Forgets everything: free(t) == free for all t >= now. */
void stk_timeline_reset(struct stk_timeline *t, stk_time now, int64_t free);

/* free(t) += delta for from <= t < to. to == STK_NEVER_TIME: for good. What lies before the start
 * of the timeline is ignored, and so is an empty interval. Cannot fail within the reserved number
 * of calls. */
void stk_timeline_add(struct stk_timeline *t, stk_time from, stk_time to, int64_t delta);

/* The smallest time >= from (and >= the start) such that free >= need during all of the 'dur'
 * microseconds after it; STK_NEVER_TIME when there is none. dur <= 0 counts as 1, dur ==
 * STK_NEVER_TIME asks for a time from which it stays free. */
stk_time stk_timeline_earliest(const struct stk_timeline *t, stk_time from, int64_t need,
                               stk_time dur);

/* free(at); before the start, the value at the start. */
int64_t stk_timeline_at(const struct stk_timeline *t, stk_time at);

/* Moves the start forward to 'now' and gives back the nodes of all breakpoints up to it. free(t)
 * does not change for t >= now. A 'now' before the start does nothing. */
void stk_timeline_trim(struct stk_timeline *t, stk_time now);

#endif
