/* SPDX-License-Identifier: Apache-2.0 */
/* spec.h - job descriptions: the canonical JSON (docs/spec/job.md), what is read out of it for the
 * scheduler, and the two kinds of job file that are turned into it.
 *
 *     from_yaml / sbatch.h  ->  JSON  ->  stk_spec_check  ->  stk_spec_parse
 *
 * The check comes first and accepts only what the rest can honour; parse relies on it.
 */
#ifndef STK_SPEC_SPEC_H
#define STK_SPEC_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/job.h"
#include "model/queue.h"
#include "when/cron.h"

#define STK_MAX_JOB_FILE (4 << 20) /* bytes of a job file */

/* Every rule of a description as a user may send it. With "key: what is wrong": -EBADMSG, the
 * description breaks the schema; -EINVAL, its values do not go together. */
int stk_spec_check(const json_t *spec, struct stk_err *err);

/* The same, with the place apart from the sentence, for callers who know a better place. */
struct stk_fault {
    char key[64];   /* the top level key; "" when no single one is to blame */
    char path[112]; /* "depends[2].job"; "" as above */
    char what[192];
};
int stk_spec_fault(const json_t *spec, struct stk_fault *ret);

/* A JSON Schema (2020-12, as OpenAPI 3.1 has it) of the description. A new reference; NULL: out of
 * memory. */
json_t *stk_spec_schema(void);
/* Of one of these words, with | between them. */
json_t *stk_spec_words_schema(const char *words);

struct stk_spec_dep {
    enum stk_dep_type type;
    bool corresponding; /* aftercorr: type is AFTEROK, and the element with this job's own index */
    uint32_t job;       /* an array's number means all its elements */
    int64_t index;      /* only this element of it; -1: all */
};

/* What the scheduler needs to know. Strings live as long as the struct. */
struct stk_spec {
    /* Without ids: pool, tenant, tag, array, array_index, deps and the demand's GPU types,
     * speeds and resources are the caller's to fill; queue, priority and tier are
     * stk_spec_enqueue()'s. */
    struct stk_job_spec job;
    const char *name;                     /* never NULL */
    const char *pool;                     /* NULL: the default pool */
    const char *queue, *qos, *class_name; /* NULL: not said */
    const char *tenant, *account;         /* likewise */
    const char *reservation;              /* likewise */
    int32_t nice;                         /* so much less than its priority would be */
    bool priority_said, tier_said;        /* else they are the queue's: stk_spec_enqueue() */
    const char **gpu_types;               /* none: any */
    uint32_t *gpu_speeds;                 /* of each, thousandths */
    uint32_t n_gpu_types;
    char *where; /* "nodelist", "exclude" and "constraint" as an object, in one form; NULL: none
                    of them. The demand's set of nodes is the caller's */
    const char *resources[STK_MAX_RESOURCES]; /* names, and how much of each per task */
    uint32_t amounts[STK_MAX_RESOURCES], n_resources;
    uint32_t *indices; /* ascending; none: not an array */
    uint32_t n_indices;
    uint32_t array_limit; /* 0: none */
    struct stk_spec_dep *deps;
    uint32_t n_deps;
    bool scheduled; /* 'cron' says when */
    struct stk_cron cron;
    bool by_memory; /* part of a GPU of which only the memory is said: gpu_milli is the caller's */
    bool launch_once; /* one process for all tasks */
    bool share_said;  /* else how a part is shared is the caller's, too */
    bool singleton;
    bool interactive;
    bool requeue;
    bool may_suspend;
    const char *keep_up; /* the group of jobs it is of; its number is the caller's; NULL: none */
    uint32_t n_items, workers; /* n_items 0: not a batch of items; workers >= 1 */
    uint32_t tasks_per_node;   /* 0: as they fit */
    stk_time time_limit;       /* 0: none */
    bool deadline_required;    /* it is refused when it would not keep its deadline */
    const char *out, *err;     /* patterns; out is never NULL, err is NULL: out's file */
    json_t *source;            /* the description; a reference of our own */
};

/* 'checked' has passed stk_spec_check(); keys that the server added are passed over. Fails only for
 * lack of memory. */
int stk_spec_parse(const json_t *checked, struct stk_spec *ret, struct stk_err *err);
struct stk_spec_queues { /* the tables of a site; a count of 0: what is built in */
    const struct stk_queue_spec *queues;
    const struct stk_class *classes;
    uint32_t n_queues, n_classes;
    bool beyond; /* the time limits of queues do not count */
};
extern const struct stk_spec_queues stk_spec_standard;
/* What the job gets from its queue; once. -EINVAL: there is no such queue or class, or its time
 * limit is too long. Other limits are the core's to keep. */
int stk_spec_enqueue(struct stk_spec *s, const struct stk_spec_queues *t, struct stk_err *err);
/* Of a description with these members checked: its wishes of topology. d->tasks is set. */
void stk_spec_near(const json_t *checked, struct stk_demand *d);
void stk_spec_done(struct stk_spec *s); /* zeroed structs are fine */

/* The limits of this process as the job's, where it has none yet; for clients. */
void stk_spec_add_rlimits(json_t *job);

/* A job file in SkyPilot's and dstack's words; docs/spec/job.md lists them. 'where' names it in
 * messages. Relative folders are taken from the current one. A new reference that passes the check,
 * or NULL with "where:line: key: what is wrong". */
json_t *stk_spec_from_yaml(const char *text, size_t len, const char *where, struct stk_err *err);

/* A script with #SBATCH lines, without a command line and environment; spec/sbatch.h has more.
 * 'ret_notes' (may be NULL): a new list of strings, what was accepted and will not be done. */
json_t *stk_spec_from_sbatch(const char *text, size_t len, const char *where, json_t **ret_notes,
                             struct stk_err *err);

#endif
