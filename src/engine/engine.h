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
    stk_job_number number;
    stk_lease_id lease;
    uint32_t tag; /* the owner's word of the job */
    uint32_t gpus;
    const struct stk_piece *pieces;
    uint32_t n_pieces;
    uint8_t share;           /* enum stk_share: how it shares its GPUs with others */
    uint16_t gpu_milli, mig; /* of each GPU, 0: all of it; profile of an instance, 0: none */
    uint32_t gpu_mem_mib;    /* of each GPU; 0: not said */
    bool resume;             /* its processes sleep: wake them instead of starting new ones */
    uint32_t speed;          /* in thousandths: how fast its work gets done there; 0: at speed 1 */
    uint32_t restarts;       /* how often its processes were started before */
    const char *spec; /* live: the job's description, JSON (docs/spec/job.md); NULL in the sim, and
                         of a job without processes */
};

struct stk_stop {
    stk_job_id job;
    stk_lease_id lease;
    enum stk_cause cause; /* EVICTED or CANCELLED */
    bool suspend;         /* emit SUSPENDED, its processes asleep, rather than EXITED if possible */
    bool kill;            /* at once: it gets no time to save anything */
};

/* A job that has processes as far as the core knows, told to an engine after a restart. */
struct stk_adopt {
    struct stk_start start; /* spec included; 'resume' as it was placed */
    enum stk_job_state state;
    bool asleep;          /* suspended: no GPUs; lease is the one it slept under */
    struct stk_stop stop; /* state STOPPING: what it was told */
};

struct stk_engine_ops {
    const char *name;
    /* Start the lease; emits STARTED, or EXITED with NOT_STARTED. May fail for lack of memory. */
    int (*start)(struct stk_engine *e, stk_time now, const struct stk_start *s);
    /* Stop it; emits EXITED with this cause, or with its own when it had ended by itself, or
     * SUSPENDED. A second, harder stop (CANCELLED after EVICTED) replaces the first. */
    void (*stop)(struct stk_engine *e, stk_time now, const struct stk_stop *s);
    /* Optional: the job's description is another. Of one that has processes (lease not 0) that is
     * how long it may run, from their start on. An engine that does not do that says so by changing
     * it back. */
    void (*update)(struct stk_engine *e, stk_time now, const struct stk_start *s);
    /* Optional, before the first turn, and again whenever the core was made anew from what is
     * durable (a commit that failed, another policy): everything that should have processes. What
     * the engine has emitted since is forgotten and must be told again. Those that do
     * are kept, those that are gone are reported, those placed and never started are started, and
     * processes of jobs not in the list are ended. */
    int (*adopt)(struct stk_engine *e, stk_time now, const struct stk_adopt *list, uint32_t n,
                 struct stk_err *err);
    /* Optional: the job's EXITED is durable; what was kept for it may go. */
    void (*settle)(struct stk_engine *e, stk_job_number number, stk_lease_id lease);
    /* Optional: a SWAPPED of its was late news (-ESTALE): the books are as they were. */
    void (*refused)(struct stk_engine *e, const struct stk_event *ev);
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
