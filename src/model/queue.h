/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - where jobs wait: each queue says how urgent its jobs are, who gives way, and how much
 * of them may run at a time. Classes are names for priorities.
 *
 * A table of queues is handed to the core, which keeps the limits (core/account.h). Whoever reads a
 * job description takes priority and tier from it. */
#ifndef STK_MODEL_QUEUE_H
#define STK_MODEL_QUEUE_H

#include "base/err.h"
#include "model/job.h"
#include "model/tenant.h"

#define STK_MAX_QUEUES 64
#define STK_MAX_QUEUE_NAME 64 /* bytes of a name of a queue or class, with the NUL */
#define STK_MAX_CLASSES 16
#define STK_NO_JOB_LIMIT UINT32_MAX

/* Whose running jobs are counted. */
enum stk_queue_of { STK_OF_USER, STK_OF_TENANT, STK_OF_QUEUE, STK_QUEUE_OF_MAX };

struct stk_queue_limit { /* what may run at a time */
    uint64_t milli;      /* thousandths of a GPU; STK_NO_LIMIT */
    uint32_t jobs;       /* STK_NO_JOB_LIMIT */
};

struct stk_queue_spec {
    const char *name;
    const char *was;      /* the name that it had before, as of tenants; NULL: none */
    int line;             /* of the configuration, for messages; 0: it is built in */
    int32_t priority;     /* of jobs that say nothing; */
    int32_t lowest, most; /* others must lie between these */
    enum stk_tier tier;   /* of jobs that say nothing */
    uint32_t pool;        /* of its jobs, + 1; 0: any */
    uint64_t job_milli;   /* of one job at most; STK_NO_LIMIT */
    stk_time job_time;    /* likewise, run time; 0: no limit */
    struct stk_queue_limit limit[STK_QUEUE_OF_MAX];
};

struct stk_class {
    const char *name;
    int32_t priority;
};

/* What there is when nobody says otherwise. The first is for jobs that name none. */
extern const struct stk_queue_spec stk_default_queues[];
extern const uint32_t stk_n_default_queues;
extern const struct stk_class stk_default_classes[];
extern const uint32_t stk_n_default_classes;

/* Its row in the table: by name, else the one that had this name before; STK_NONE. */
uint32_t stk_queue_find(const struct stk_queue_spec *queues, uint32_t n, const char *name);
/* Whether some limit is on what runs at a time. */
bool stk_queue_limited(const struct stk_queue_spec *q);
/* Whether a job of this priority, run time (0: not said) and size may be in the queue.
 * -EINVAL for the priority, -ERANGE for what is too large. */
int stk_queue_allows(const struct stk_queue_spec *q, int32_t priority, stk_time time,
                     uint64_t milli, struct stk_err *err);
const char *stk_queue_of_name(enum stk_queue_of of); /* "user", "tenant", "all" */

#endif
