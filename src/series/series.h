/* SPDX-License-Identifier: Apache-2.0 */
/* series.h - what was measured, over time: of every GPU, job and tenant, and of the whole.
 *
 * Values are put as they are seen; a step (10 s) makes one number per field of them. A minute of
 * steps is written down at once, in one transaction with what follows from it:
 *
 *     fine      steps of 10 s          kept for an hour
 *     minute    made of the fine ones  kept for a day
 *     quarter   made of the minutes    kept for 400 days, or as long as there is room for
 *
 * Coarser rows are made from the finer ones as the store has them, so a restart in between loses
 * nothing but, after a crash, the minute that was not written yet. A group is what is written in
 * one row: the GPUs of a node or of a job, one job, one tenant, or the whole. What is not known is
 * NaN.
 *
 * Cost: a step is one number per field; a minute is one row per group, and a look at a minute's
 * rows. Memory: a minute of each group that is there now.
 */
#ifndef STK_SERIES_SERIES_H
#define STK_SERIES_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/time.h"
#include "store/store.h"

#define STK_SERIES_MINUTE (60 * STK_SECOND)
#define STK_SERIES_QUARTER (900 * STK_SECOND)
#define STK_SERIES_MAX_FIELDS 16u
#define STK_SERIES_MAX_MEMBERS 64u
#define STK_SERIES_MAX_GROUPS 16384u /* at a time; more are not sampled */

enum stk_series_kind {
    STK_SERIES_GPU, /* group: a node */
    STK_SERIES_JOB,
    STK_SERIES_TENANT,
    STK_SERIES_CLUSTER,
    STK_SERIES_JOB_GPU, /* group: a job; its GPUs, in the order in which it has them */
    STK_SERIES_KIND_MAX
};

enum stk_series_how { /* one number out of many */
                      STK_SERIES_MEAN,
                      STK_SERIES_SUM,
                      STK_SERIES_LAST
};

struct stk_series_field {
    const char *name; /* NULL: end of the table */
    enum stk_series_how how;
};

/* Their order is that of the enums below. */
extern const struct stk_series_field *const stk_series_fields[STK_SERIES_KIND_MAX];
uint32_t stk_series_n_fields(enum stk_series_kind k);
const char *stk_series_kind_name(enum stk_series_kind k); /* "gpu" */
int stk_series_kind_of(const char *name);                 /* -1: none */

enum {
    STK_SERIES_GPU_ALLOCATED, /* 0 to 1 */
    STK_SERIES_GPU_ACTIVE,    /* share of the time at work */
    STK_SERIES_GPU_UTILIZATION,
    STK_SERIES_GPU_MEMORY, /* MiB */
    STK_SERIES_GPU_POWER,  /* W */
    STK_SERIES_GPU_TEMPERATURE,
    STK_SERIES_GPU_FIELDS
};
enum {
    STK_SERIES_JOB_GPUS,
    STK_SERIES_JOB_ACTIVE, /* GPUs at work */
    STK_SERIES_JOB_UTILIZATION,
    STK_SERIES_JOB_GPU_MEMORY,
    STK_SERIES_JOB_POWER,
    STK_SERIES_JOB_CPUS, /* cores in use */
    STK_SERIES_JOB_MEMORY,
    STK_SERIES_JOB_STEP, /* as it reports */
    STK_SERIES_JOB_FIELDS
};
enum {
    STK_SERIES_TENANT_USED,
    STK_SERIES_TENANT_ACTIVE,
    STK_SERIES_TENANT_GUARANTEE,
    STK_SERIES_TENANT_LIMIT,
    STK_SERIES_TENANT_DUE,
    STK_SERIES_TENANT_WAITING, /* GPUs */
    STK_SERIES_TENANT_RUNNING, /* jobs */
    STK_SERIES_TENANT_QUEUED,
    STK_SERIES_TENANT_STARTED,
    STK_SERIES_TENANT_WAITED, /* seconds, of those that started, together */
    STK_SERIES_TENANT_FIELDS
};
enum {
    STK_SERIES_CLUSTER_GPUS,
    STK_SERIES_CLUSTER_ALLOCATED,
    STK_SERIES_CLUSTER_ACTIVE,
    STK_SERIES_CLUSTER_OFF,
    STK_SERIES_CLUSTER_RUNNING,
    STK_SERIES_CLUSTER_QUEUED,
    STK_SERIES_CLUSTER_WAITING, /* GPUs */
    STK_SERIES_CLUSTER_STARTED,
    STK_SERIES_CLUSTER_WAITED,
    STK_SERIES_CLUSTER_ENDED,
    STK_SERIES_CLUSTER_PREEMPTED,
    STK_SERIES_CLUSTER_POWER,
    STK_SERIES_CLUSTER_UTILIZATION,
    STK_SERIES_CLUSTER_FIELDS
};

enum {
    STK_SERIES_JOB_GPU_INDEX, /* on its node */
    STK_SERIES_JOB_GPU_ACTIVE,
    STK_SERIES_JOB_GPU_UTILIZATION,
    STK_SERIES_JOB_GPU_MEM,
    STK_SERIES_JOB_GPU_WATTS,
    STK_SERIES_JOB_GPU_FIELDS
};

/* The group of a node or tenant. */
int64_t stk_series_id(const char *name);

struct stk_series;

/* 'step' divides a minute. */
int stk_series_new(stk_time step, struct stk_series **ret, struct stk_err *err);
void stk_series_free(struct stk_series *s); /* NULL is a no-op */
stk_time stk_series_step(const struct stk_series *s);

struct stk_series_at { /* whose values */
    enum stk_series_kind kind;
    int64_t id;
    uint32_t member, members; /* of the group; 0 of 1 where there is one */
};

/* More values of the step that goes on; NaN: not known. A group too many is not taken. */
void stk_series_put(struct stk_series *s, const struct stk_series_at *at, const float *values);
/* That step is over; it began at 'at', a multiple of the step. */
void stk_series_close(struct stk_series *s, stk_time at);
/* The last step of a group's first member, as it was closed; NaN: nothing is known. 's' may be
 * NULL.
 */
void stk_series_now(const struct stk_series *s, enum stk_series_kind kind, int64_t id,
                    float ret[STK_SERIES_MAX_FIELDS]);
/* A minute is complete and not written yet. */
bool stk_series_due(const struct stk_series *s, stk_time now);
/* Writes it down, and what follows from it. In a transaction of the caller's. What was to be
 * written is gone from memory when stk_series_written() is called. */
int stk_series_flush(struct stk_series *s, struct stk_store *st, stk_time now, struct stk_err *err);
void stk_series_written(struct stk_series *s);
/* After a restart: what follows from what was written last. In a transaction. */
int stk_series_catch_up(struct stk_store *st, stk_time now, struct stk_err *err);

/* How long each tier is kept where 'bytes' are allowed for the coarsest: from the size of the last
 * quarter of an hour. */
void stk_series_keep(const struct stk_series *s, uint64_t bytes,
                     stk_time ret_age[STK_SERIES_TIERS]);

struct stk_series_query {
    enum stk_series_kind kind;
    int64_t id;
    stk_time since, until, step, now;
};

struct stk_series_result { /* [member][field][point] */
    stk_time since, step;
    uint32_t members, fields, points;
    float *value;
};

#define STK_SERIES_MAX_VALUES (1u << 18) /* of one answer: it takes 0.3 s to make */

/* Makes the step one that can be answered, and begin and end multiples of it. -E2BIG: that would be
 * too many points for so many members. */
int stk_series_fit(const struct stk_series *s, struct stk_series_query *q, uint32_t members,
                   struct stk_err *err);
/* 's' may be NULL: only what is written. The caller frees ret->value. Query as fitted. */
int stk_series_read(const struct stk_series *s, struct stk_store *st,
                    const struct stk_series_query *q, struct stk_series_result *ret,
                    struct stk_err *err);

#endif
