/* SPDX-License-Identifier: Apache-2.0 */
/* fence.h - looking for room without taking what reservations need (core/booking.h).
 *
 * Whether a job fits depends on how long it runs: until the next window opens it may use all that
 * is free, else it must leave what the window needs and nobody gives back before. So before a job
 * is tried, what it must leave on the nodes of reservations is taken away in a transaction, and
 * what is held for it is given back; then it is tried like any other. On a node, at the time a
 * window there opens:
 *
 *     its GPUs - those of leases that are expected to end later - what the windows of that time
 * need
 *
 * is what a job that runs on may have.
 *
 * One try costs O(fences of the pool's reservations) more. Who is too long for the next window may
 * be followed by others of its shape that are not: stk_fence_fits() says how long they may be.
 */
#ifndef STK_CORE_FENCE_H
#define STK_CORE_FENCE_H

#include "core/state.h"

/* For tries to come: the job would run from 'at' (0: now) until then. Without a word it is taken to
 * run for ever. */
static inline void stk_fence_for(struct stk_state *s, stk_time at, stk_time until)
{
    s->book.at = at;
    s->book.until = until;
}

static inline void stk_fence_any(struct stk_state *s)
{
    s->book.at = 0;
    s->book.until = STK_NEVER_TIME;
}

/* Takes away what a job of the shape must leave, tentatively. stk_place_try() does. */
void stk_fence_raise(struct stk_state *s, uint32_t shape);

/* As stk_place_try() for the longest jobs of the shape that fit. *ret_limit: how long they may run
 * from now on at most; STK_NEVER_TIME: any. */
bool stk_fence_fits(struct stk_state *s, uint32_t shape, stk_time now, stk_time *ret_limit,
                    uint32_t *ret_n);

/* A waiting job that starts on what is held for it, whatever waits before it: the first in rank of
 * those that end with the window. STK_NONE; else its pieces are those of stk_place_try(). */
uint32_t stk_fence_next(struct stk_state *s, uint32_t pool, stk_time now, uint32_t *ret_n);

/* When the job fits if leases end as expected and windows open and close; STK_NEVER_TIME. What is
 * given back until then stays so, tentatively; its pieces are those of stk_place_try(). One try per
 * expected end. */
stk_time stk_fence_when(struct stk_state *s, uint32_t job, stk_time now, uint32_t *ret_n);
/* GPUs of the node that a job which starts at that time and runs for ever must leave. */
uint32_t stk_fence_leaves(struct stk_state *s, uint32_t node, stk_time at);

/* The reservation that keeps a waiting job from starting, which would fit without any; NULL. */
const struct stk_booking *stk_fence_why(struct stk_state *s, uint32_t job, stk_time now);

#endif
