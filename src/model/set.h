/* SPDX-License-Identifier: Apache-2.0 */
/* set.h - what can be changed while jobs wait and run: the event SET. What was changed is in force
 * until it is cleared; then it is again what the core was made with. */
#ifndef STK_MODEL_SET_H
#define STK_MODEL_SET_H

#include "model/demand.h"
#include "model/params.h"

enum stk_set_kind {
    STK_SET_PARAM,     /* a parameter of a policy, or of the core */
    STK_SET_LIMIT,     /* of a tenant: milli-GPU, or as the column says; -1: none */
    STK_SET_GUARANTEE, /* likewise; -1: as much as those below it have together */
    STK_SET_WEIGHT,    /* of a tenant, in thousandths */
    STK_SET_QUEUE,     /* a limit of a queue; -1: none */
    STK_SET_PRIORITY,  /* of all jobs of a kind or queue: so much is added to their own */
    STK_SET_POOL,      /* of a node: the pool it goes to as soon as it is empty */
    STK_SET_MOVE,      /* nodes that are to go to another pool and are empty do so; a decision */
    STK_SET_KEEP_UP,   /* of a tenant: jobs that stay up */
    STK_SET_CLOCK,     /* how far the time of events is ahead of the wall clock, microseconds */
    STK_SET_SKIP,      /* by how much it has jumped, microseconds; nothing happened in between */
    STK_SET_KIND_MAX
};

enum stk_set_queue { /* columns of QUEUE */
                     STK_SET_USER_MILLI,
                     STK_SET_USER_JOBS,
                     STK_SET_TENANT_MILLI,
                     STK_SET_TENANT_JOBS,
                     STK_SET_ALL_MILLI,
                     STK_SET_ALL_JOBS,
                     STK_SET_JOB_MILLI,
                     STK_SET_JOB_SECONDS,
                     STK_SET_QUEUE_MAX
};

/* Columns of LIMIT for CPUs, in cpu_milli, and memory, in MiB. */
enum { STK_SET_CPUS = STK_MAX_GPU_TYPES + 1, STK_SET_MEM };

enum { STK_SET_OF_KIND, STK_SET_OF_QUEUE }; /* columns of PRIORITY */

#define STK_MAX_SETS 65536    /* in force at a time */
#define STK_MAX_SHIFT 1000000 /* of priorities */
#define STK_MAX_PARAM_NAME 48 /* bytes, with the end */

struct stk_set {
    enum stk_set_kind kind;
    bool clear;      /* back to what it was made with */
    bool evict;      /* POOL: jobs there that may be preempted give way */
    uint32_t row;    /* tenant; queue; kind of jobs; node */
    uint32_t column; /* LIMIT, GUARANTEE: 0: over all GPU types; GPU type + 1. LIMIT: as below */
    int64_t value;
    char name[STK_MAX_PARAM_NAME], text[STK_MAX_PARAM_TEXT]; /* PARAM */
};

/* Whether its row is a tenant. */
static inline bool stk_set_of_tenant(enum stk_set_kind k)
{
    return k == STK_SET_LIMIT || k == STK_SET_GUARANTEE || k == STK_SET_WEIGHT ||
           k == STK_SET_KEEP_UP;
}

const char *stk_set_kind_name(enum stk_set_kind k);
/* Whether both say something about the same thing. */
bool stk_set_same(const struct stk_set *a, const struct stk_set *b);

#endif
