/* SPDX-License-Identifier: Apache-2.0 */
/* loop.h - the loop that drives the core: what happened is applied, decisions are asked for until
 * there are none, and engines act on them.
 *
 * One turn at time 'now', always in this order: what the engine reports, the clock, what sources
 * bring, then decisions. So a job that ends, one that is due to change rank and one that arrives in
 * the same instant are all seen before anything is decided. Decisions are applied (and, with a
 * journal, made durable) before the engine hears of them.
 *
 * With a virtual clock the loop jumps to the next time anything happens. Live, the program calls
 * stk_loop_turn() whenever something may have happened.
 */
#ifndef STK_DRIVE_LOOP_H
#define STK_DRIVE_LOOP_H

#include "core/core.h"
#include "engine/engine.h"

struct stk_loop;

struct stk_source_ops {          /* where submits and other requests come from */
    stk_time (*next)(void *ctx); /* time of the next one; STK_NEVER_TIME: no more */
    /* Hands over everything up to 'now' through stk_loop_apply(). -EINPROGRESS: it needs more
     * calls; stk_loop_turn() returns that, and its next call goes on here. Nothing is decided, made
     * durable or told to the engine before. */
    int (*feed)(void *ctx, struct stk_loop *loop, stk_time now, struct stk_err *err);
};

struct stk_watch_ops { /* who looks on; every member may be NULL */
    /* What the engine reports, before it is applied: its cause may be known better here. False:
     * not now; whoever says so applies it later. */
    bool (*report)(void *ctx, struct stk_event *ev);
    void (*event)(void *ctx, const struct stk_event *ev);        /* after it was applied */
    int (*before)(void *ctx, stk_time now, struct stk_err *err); /* all seen, nothing decided yet */
    /* The turn is over. > 0: enough, stop here. */
    int (*after)(void *ctx, stk_time now, struct stk_err *err);
    /* Make every event seen so far durable. Called before the engine acts on any of them and at the
     * end of a turn. A failure ends the turn: nothing was acted on. */
    int (*commit)(void *ctx, struct stk_err *err);
    const char *(*spec)(void *ctx, stk_job_number number); /* for stk_start.spec */
};

struct stk_loop_config {
    struct stk_core *core; /* borrowed, as the others */
    struct stk_engine *engine;
    const struct stk_source_ops *source;
    void *source_ctx;
    const struct stk_watch_ops *watch;
    void *watch_ctx;
};

int stk_loop_new(const struct stk_loop_config *cfg, const struct stk_mem *mem,
                 struct stk_loop **ret_loop, struct stk_err *err);
void stk_loop_free(struct stk_loop *loop);

int stk_loop_apply(struct stk_loop *loop, const struct stk_event *ev, struct stk_err *err);
int stk_loop_turn(struct stk_loop *loop, stk_time now, struct stk_err *err);
/* The engine has reported something that no turn has seen yet. */
bool stk_loop_pending(const struct stk_loop *loop);
/* After a restart: tells the engine what the core believes to have processes. */
int stk_loop_adopt(struct stk_loop *loop, stk_time now, struct stk_err *err);
/* Turns until nothing will ever happen again, or a watcher has seen enough. */
int stk_loop_run_virtual(struct stk_loop *loop, struct stk_err *err);

uint64_t stk_loop_decisions(const struct stk_loop *loop);

#endif
