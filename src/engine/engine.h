/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - what runs the jobs. The loop tells an engine to start or stop a lease; every call
 * returns at once, and what came of it arrives later as an event through 'emit'.
 * docs/spec/engine.md has the contract.
 *
 * Calls are idempotent on the lease: starting one that is started or stopping one that is gone does
 * nothing. An engine never calls the core; it only emits.
 */
#ifndef STK_ENGINE_ENGINE_H
#define STK_ENGINE_ENGINE_H

#include "base/err.h"
#include "model/event.h"

struct stk_engine;

/* Takes a copy of the event. */
typedef void (*stk_emit_fn)(void *ctx, const struct stk_event *ev);

struct stk_start { /* borrowed for the call */
    stk_job_id job;
    stk_lease_id lease;
    uint32_t tag; /* the owner's word of the job */
    uint32_t gpus;
    const struct stk_piece *pieces;
    uint32_t n_pieces;
};

struct stk_engine_ops {
    const char *name;
    /* Start the lease; emits STARTED, or EXITED with NOT_STARTED. May fail for lack of memory. */
    int (*start)(struct stk_engine *e, stk_time now, const struct stk_start *s);
    /* Stop it; emits EXITED with this cause, or with its own when it had ended by itself. */
    void (*stop)(struct stk_engine *e, stk_time now, stk_job_id job, stk_lease_id lease,
                 enum stk_cause cause);
    /* Emits what has happened up to now. */
    void (*pump)(struct stk_engine *e, stk_time now);
    /* Virtual time only: when something will happen by itself; STK_NEVER_TIME: not. */
    stk_time (*next)(const struct stk_engine *e);
    /* Optional: the job that is likely to be reported next, to have its data at hand; STK_NONE. */
    stk_job_id (*peek)(const struct stk_engine *e);
    void (*close)(struct stk_engine *e); /* frees it; NULL is not passed */
};

struct stk_engine { /* first member of every engine */
    const struct stk_engine_ops *ops;
    stk_emit_fn emit;
    void *emit_ctx;
};

#endif
