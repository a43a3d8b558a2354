/* SPDX-License-Identifier: Apache-2.0 */
/* ahead.h - the same core, run forward: a fork is taken, and its time goes on from end to end.
 *
 *     rc = stk_ahead_init(&a, core, &ops, ctx);
 *     rc = stk_ahead_fork(&a, now);           a fork; tell it more with stk_ahead_tell()
 *     stk_ahead_go(&a);                       until ops.enough() says so, or nothing can be
 * foreseen stk_ahead_done(&a);
 *
 * How long jobs run is the caller's to say. It is assumed that nobody submits or cancels anything,
 * that nodes stay as they are, that jobs end well, that starts, stops and moves take no time, and
 * that jobs which gave way start anew. The core that is forked is not changed.
 *
 * Costs a fork, and the decisions until then; at most 'most' events.
 */
#ifndef STK_CORE_AHEAD_H
#define STK_CORE_AHEAD_H

#include "base/heap.h"
#include "core/core.h"
#include "core/state.h"

struct stk_ahead;

struct stk_ahead_ops {
    /* The time, > 0, that a job which has GPUs will hold them from now on; STK_NEVER_TIME: nobody
     * knows. Asked when it is forked or starts. */
    stk_time (*holds)(struct stk_ahead *a, uint32_t job);
    /* It has got GPUs, or had them already. May be NULL. */
    void (*started)(struct stk_ahead *a, uint32_t job);
    /* Whether all that was asked for is known. Looked at after each batch of decisions. */
    bool (*enough)(const struct stk_ahead *a);
};

struct stk_ahead {
    const struct stk_core *from;
    const struct stk_ahead_ops *ops;
    void *ctx;
    uint32_t most;         /* events of a fork; set by the caller */
    uint32_t pause;        /* stk_ahead_go() returns after so many, to be called again; likewise */
    struct stk_core *core; /* the fork; NULL before and after */
    const struct stk_state *s;
    stk_time now;
    uint32_t steps, evicts; /* events so far; of them, who had to give way */
    int rc;                 /* < 0: an event was refused, or there is no memory */
    bool undecided;         /* it paused before all was decided that there was to decide */
    struct stk_heap ends;
    uint32_t *pos; /* by job slot: in the heap */
    bool *still;   /* by pool: what happens there does not matter. All false at first */
    uint32_t cap_pos, cap_still;
};

int stk_ahead_init(struct stk_ahead *a, const struct stk_core *core,
                   const struct stk_ahead_ops *ops, void *ctx); /* 0 or -ENOMEM */
void stk_ahead_done(struct stk_ahead *a);

/* Pools in which none of these jobs is stand still, unless what happens in one pool matters to
 * another: dependencies, limits of tenants, a power cap. */
void stk_ahead_only(struct stk_ahead *a, const uint32_t *jobs, uint32_t n);

/* A new fork, in place of the one there was. */
int stk_ahead_fork(struct stk_ahead *a, stk_time now, struct stk_err *err);
/* An event, now. */
void stk_ahead_tell(struct stk_ahead *a, struct stk_event ev);
/* Who is being stopped is gone, who is being started runs, and all there is to decide now is
 * decided. */
void stk_ahead_settle(struct stk_ahead *a);
/* After that: time goes on. True: it paused, and goes on when it is called again. */
bool stk_ahead_go(struct stk_ahead *a);

/* Whether the job has GPUs in the fork. */
bool stk_ahead_has(const struct stk_ahead *a, uint32_t job);

/* stk_ahead_ops.holds that believes estimates: who has outrun its own, or has none, is not expected
 * to end. */
stk_time stk_ahead_expected(struct stk_ahead *a, uint32_t job);

#endif
