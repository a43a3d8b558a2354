/* SPDX-License-Identifier: Apache-2.0 */
/* remedy.h - what would start a job now: of each kind of change, the smallest that does.
 *
 * Nothing is guessed. Each answer was tried: the change was applied to a fork of the core, which
 * then decided as it always does, and gave the job its GPUs at once; others may have had to give
 * way. Smallest: of the same kind nothing closer to what the job asks for did. Of sizes above
 * STK_REMEDY_EACH, of CPUs, memory, priorities and times it is taken to hold that who starts with
 * so much starts with less too; the others are tried one by one.
 *
 * Costs a fork for each try, at most 'most_forks' in all. The core is not changed.
 */
#ifndef STK_CORE_REMEDY_H
#define STK_CORE_REMEDY_H

#include "core/core.h"

/* In the order of what the user gives up. */
enum stk_remedy_kind {
    STK_REMEDY_RELEASE,     /* it is on hold */
    STK_REMEDY_BEGIN,       /* to: 0, begin at once */
    STK_REMEDY_TYPE,        /* take GPUs of type 'to' as well */
    STK_REMEDY_LEVEL,       /* to: another level_required; 0: none */
    STK_REMEDY_SPREAD,      /* to: 0, as many tasks on a node as fit */
    STK_REMEDY_EXCLUSIVE,   /* to: 0, share its nodes */
    STK_REMEDY_POOL,        /* to: another pool */
    STK_REMEDY_QUEUE,       /* to: another queue */
    STK_REMEDY_TENANT,      /* to: another tenant */
    STK_REMEDY_CPU,         /* to: cpu_milli per task */
    STK_REMEDY_MEM,         /* to: mem_mib per task */
    STK_REMEDY_RESOURCE,    /* to: so much of 'resource' per task */
    STK_REMEDY_PREEMPTIBLE, /* tier best-effort */
    STK_REMEDY_TIME,        /* to: an estimate, in microseconds */
    STK_REMEDY_GPUS,        /* to: GPUs per task */
    STK_REMEDY_TASKS,       /* to: tasks */
    STK_REMEDY_PART,        /* to: thousandths of a GPU */
    STK_REMEDY_PRIORITY,    /* to: priority */
    STK_REMEDY_TIER,        /* to: a higher tier */
    STK_REMEDY_KINDS
};

#define STK_REMEDY_EACH 16       /* GPUs and tasks up to this are tried one by one */
#define STK_REMEDY_LEAST_TIME 60 /* seconds: shorter time limits are of no use to anybody */
#define STK_REMEDY_PART_STEP 50  /* thousandths */
#define STK_REMEDY_CPU_STEP 1000 /* cpu_milli */
#define STK_REMEDY_MEM_STEP 1024 /* MiB */
#define STK_REMEDY_FORKS 200u

struct stk_remedy {
    enum stk_remedy_kind kind;
    int64_t from, to;
    uint32_t resource;
    uint32_t evicts;          /* jobs that would have to give way */
    struct stk_job_spec spec; /* for an UPDATE; of no use with RELEASE. It has no dependencies */
};

struct stk_remedy_try { /* one change, and what came of it */
    enum stk_remedy_kind kind;
    uint32_t resource;
    int64_t to;
    uint32_t evicts;
    bool started;
};

struct stk_remedy_tries { /* of a search in slices; begins as {0} */
    struct stk_remedy_try of[STK_REMEDY_FORKS];
    uint32_t n;
};

struct stk_remedy_ask {
    stk_job_id job;
    stk_time now; /* not before the latest event */
    /* What it was submitted with; NULL: as far as the core knows. Where a pool has not all types,
     * the core has forgotten those. */
    const struct stk_job_spec *spec;
    uint32_t most_forks;
    /* For who has other things to do meanwhile: the search stops after 'slice' forks, and goes on
     * when it is called again with the same tries. The core may change in between: each try is of
     * the core as it was then. NULL: all at once. */
    struct stk_remedy_tries *tries;
    uint32_t slice; /* > 0 */
    /* Asks for this part of a GPU instead of a whole one. NULL: the share is none, and memory does
     * not matter. < 0: that cannot be. */
    int (*part)(void *ctx, struct stk_job_spec *spec);
    /* Puts it into this queue. NULL: it gets the priority and tier of jobs there that say nothing.
     * < 0: that cannot be. */
    int (*queue)(void *ctx, uint32_t queue, struct stk_job_spec *spec);
    /* Makes it another tenant's, of those without any below them. NULL: of any. < 0: not of that.
     */
    int (*tenant)(void *ctx, uint32_t tenant, struct stk_job_spec *spec);
    /* Whether who asks may have such a job. NULL: any. < 0: that cannot be. */
    int (*allow)(void *ctx, struct stk_job_spec *spec);
    int32_t most_priority; /* that may be asked for; with 'allow' */
    void *ctx;
};

struct stk_remedies {
    /* At most one of each kind, in their order; but first those that nobody has to give way for. */
    struct stk_remedy list[STK_REMEDY_KINDS];
    uint32_t n, forks;
    bool soon; /* no change is needed: it starts when those that are being stopped are gone */
    bool cut;  /* there were too many tries: there may be more, or closer ones */
};

/* Of a job that is held, blocked or waiting and does not sleep; of others nothing is found. 0,
 * -ENOENT or -ENOMEM; 1: the slice is over, and what was found so far is of no use yet. */
int stk_core_remedies(const struct stk_core *core, const struct stk_remedy_ask *ask,
                      struct stk_remedies *ret, struct stk_err *err);

const char *stk_remedy_name(enum stk_remedy_kind k);

/* remedy_edit.c: the description with the change in it. False: there is no such job. */
struct stk_state;
bool stk_remedy_edit(const struct stk_remedy_ask *ask, const struct stk_state *s,
                     const struct stk_job_spec *base, struct stk_remedy *io);

#endif
