/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - what a user submits, and the states it goes through. docs/spec/job-states.md has the
 * life cycle in words; core/lifecycle.c has the table of legal moves. */
#ifndef STK_MODEL_JOB_H
#define STK_MODEL_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "model/demand.h"
#include "model/id.h"
#include "model/terms.h"
#include "model/time.h"

enum stk_job_kind {
    STK_KIND_TRAIN,
    STK_KIND_BATCH,
    STK_KIND_SERVICE,
    STK_KIND_SWEEP,
    STK_KIND_SHELL,
    STK_KIND_MAX
};

/* Who may be preempted: best-effort first, critical never. */
enum stk_tier { STK_TIER_BEST_EFFORT, STK_TIER_STANDARD, STK_TIER_CRITICAL, STK_TIER_MAX };

enum stk_job_state {
    STK_JOB_NONE,     /* the slot is free */
    STK_JOB_HELD,     /* waits for a person */
    STK_JOB_BLOCKED,  /* waits for other jobs or for its begin time */
    STK_JOB_WAITING,  /* could start; in the queue */
    STK_JOB_PLACED,   /* has a lease; the engine was told to start it */
    STK_JOB_RUNNING,  /* the engine says it runs */
    STK_JOB_STOPPING, /* evicted or cancelled; holds its lease until the engine says it is gone */
    STK_JOB_DONE,     /* ended; kept for those that ask or depend on it */
    STK_JOB_STATE_MAX
};

/* Why a lease, or a job, ended. */
enum stk_cause {
    STK_CAUSE_NONE,
    STK_CAUSE_OK,          /* exit code 0 */
    STK_CAUSE_FAILED,      /* exit code not 0 */
    STK_CAUSE_SIGNAL,      /* killed by a signal nobody here sent */
    STK_CAUSE_OOM,         /* out of memory */
    STK_CAUSE_TIMEOUT,     /* over its time limit */
    STK_CAUSE_NODE_LOST,   /* its node went away */
    STK_CAUSE_NOT_STARTED, /* the engine could not start it */
    STK_CAUSE_EVICTED,     /* stopped to make room; goes back to the queue */
    STK_CAUSE_CANCELLED,   /* stopped, or never started, because someone said so */
    STK_CAUSE_DEPENDENCY,  /* a dependency can no longer be met */
    STK_CAUSE_GPU,         /* a GPU it used reported an error that ends processes */
    STK_CAUSE_UNKNOWN,     /* it is gone, and nobody knows how it ended */
    STK_CAUSE_MAX
};

/* What a retry budget is kept for. Evictions are never counted: they always queue again. */
enum stk_retry {
    STK_RETRY_ERROR,   /* failed, signal, not_started */
    STK_RETRY_OOM,     /* oom */
    STK_RETRY_TIMEOUT, /* timeout */
    STK_RETRY_NODE,    /* node_lost, gpu, unknown */
    STK_RETRY_MAX
};
#define STK_RETRY_ALWAYS 255

enum stk_dep_type { STK_DEP_AFTEROK, STK_DEP_AFTERANY, STK_DEP_AFTERNOTOK, STK_DEP_TYPE_MAX };

struct stk_dep {
    stk_job_number on;
    enum stk_dep_type type;
    bool whole; /* 'on' is an array: all its jobs that have not ended */
};

#define STK_MAX_DEPS 1024
#define STK_MAX_PRIORITY 1000000000

/* A submit. Strings are interned by the caller: the core knows tenants by number. */
struct stk_job_spec {
    struct stk_demand demand;
    enum stk_job_kind kind;
    enum stk_tier tier;
    int32_t priority; /* larger first; |priority| <= STK_MAX_PRIORITY */
    stk_pool_id pool;
    uint32_t tenant;
    uint32_t tag;               /* the owner's word, handed back untouched */
    stk_time estimate;          /* expected run time, >= 0 */
    stk_time begin;             /* not before this time; 0: at once */
    stk_job_number array;       /* number of the array's first job; 0: not in an array */
    uint32_t array_index;       /* its index in the array */
    const struct stk_dep *deps; /* borrowed for the call */
    uint32_t n_deps;
    uint8_t retry[STK_RETRY_MAX]; /* how often it is queued again; STK_RETRY_ALWAYS: no limit */
    bool held;                    /* submit on hold */
    struct stk_terms terms;
};

/* The budget a cause is counted against; STK_RETRY_MAX: none, it is never retried. */
enum stk_retry stk_retry_of(enum stk_cause cause);

/* Whether a job that ended this way meets the dependency. */
bool stk_dep_met(enum stk_dep_type type, enum stk_cause cause);

const char *stk_job_state_name(enum stk_job_state s);
/* "ok", "signal": as run files and traces have it. Users and clients see stk_cause_word(). */
const char *stk_cause_name(enum stk_cause c);
const char *stk_cause_word(enum stk_cause c); /* "completed", "killed"; "" for none */
const char *stk_tier_name(enum stk_tier t);
const char *stk_kind_name(enum stk_job_kind k);
const char *stk_dep_type_name(enum stk_dep_type t);
const char *stk_retry_name(enum stk_retry r);

#endif
