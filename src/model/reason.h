/* SPDX-License-Identifier: Apache-2.0 */
/* reason.h - why a job does not run, as data. Sentences are made from it where they are shown. */
#ifndef STK_MODEL_REASON_H
#define STK_MODEL_REASON_H

#include <stdbool.h>

#include "model/id.h"
#include "model/time.h"
#include "model/topology.h"

enum stk_reason_code {
    STK_WHY_RUNNING,    /* it does run, or is about to */
    STK_WHY_ENDED,      /* it has ended */
    STK_WHY_HELD,       /* on hold; release it */
    STK_WHY_DEPENDENCY, /* 'missing' jobs or arrays it depends on have not ended */
    STK_WHY_BEGIN,      /* 'until' has not come */
    STK_WHY_STOPPING,   /* being stopped */
    STK_WHY_GPUS,       /* the pool has 'have' GPUs free, 'missing' too few */
    STK_WHY_FRAGMENTS,  /* enough GPUs are free, but not together: 'have' on the best node,
                           'missing' too few there; 'limit': for its tasks, or for so many pieces of
                           it, there is room for 'used' of them */
    STK_WHY_CPU_MEM,    /* CPUs or memory are short: 'limit' are needed, 'used' are free, in 'unit';
                           'level': in one such place */
    STK_WHY_CLAIMED,    /* GPUs are being cleared for job 'other' */
    STK_WHY_BEHIND,     /* it would fit, but job 'other' is first in line and cannot start */
    STK_WHY_RESERVED,   /* it would fit, but would delay job 'other', promised 'until' */
    STK_WHY_ROUND,      /* the next round is at 'until' */
    STK_WHY_RANK,       /* jobs ranked before it use the GPUs */
    STK_WHY_PINNED,     /* it sleeps, and job 'other' has the GPUs it must wake on, 'until' */
    STK_WHY_RESOURCE,   /* GPUs are free where 'resource' is not: 'have' of it, 'missing' too few;
                           'level': in one such place */
    STK_WHY_TOPOLOGY, /* enough GPUs are free, but not as near as it asks: 'have' in the best place
                         of 'level'; level 0: its tasks do not lie as they must ('limit': so many
                         times as many on one node, and there is room for 'used'), or no node is
                         its own */
    STK_WHY_POWER,    /* there is room, but it needs 'need' watts and the cap leaves 'have' */
    STK_WHY_LIMIT, /* over the limit of 'tenant', who uses 'used' of 'limit', in 'unit' like 'need',
                      'have' and 'missing' */
    STK_WHY_QUEUE, /* over a limit of 'queue': 'of' whose (a tenant: 'tenant'), 'used' of 'limit',
                      in 'unit' */
    STK_WHY_BOOKED, /* it would use GPUs that are set aside: reservation 'booking', which is over
                       at 'until'; 'other': they are being kept free for that job */
    STK_WHY_DRAINS, /* GPUs are being kept free for it: 'have' of 'need', expected 'until' */
    STK_WHY_CLOSED, /* it needs no GPU, and none of the 'nodes' it may use takes new jobs */
    STK_WHY_NODES,  /* the 'nodes' nodes it may use have 'have' GPUs free, 'missing' too few; of
                       these nodes so many are 'drained' and 'down' */
    STK_WHY_NEVER,  /* the nodes there are could not run it even if all were free */
    STK_WHY_MAX
};

enum stk_unit {                /* what limits are on */
                STK_UNIT_GPUS, /* milli-GPU */
                STK_UNIT_JOBS,
                STK_UNIT_CPUS, /* cpu_milli */
                STK_UNIT_MEM,  /* MiB */
};

struct stk_reason {
    enum stk_reason_code code;
    uint64_t need, have, missing; /* GPUs, jobs, watts, or of 'unit' */
    uint64_t used, limit;         /* see STK_WHY_LIMIT, _QUEUE, _CPU_MEM and _FRAGMENTS */
    const char *tenant;           /* likewise; lives as long as the core */
    const char *queue;            /* see STK_WHY_QUEUE; lives as long as the core */
    uint8_t of;                   /* likewise; enum stk_queue_of */
    uint8_t unit;                 /* likewise; enum stk_unit */
    uint32_t gpu_type;            /* likewise: the limit is on this type, + 1; 0: on all together */
    uint32_t resource;            /* its number */
    uint64_t off;                 /* GPUs of the pool that take no new jobs */
    stk_job_number other;         /* 0: none */
    uint32_t booking;             /* see STK_WHY_BOOKED */
    uint32_t nodes;               /* see STK_WHY_NODES and _CLOSED */
    uint32_t drained, down;       /* likewise */
    stk_time until;               /* 0: not known */
    enum stk_level level;         /* see STK_WHY_TOPOLOGY, _CPU_MEM and _RESOURCE */
};

#define STK_MAX_REASONS 4

struct stk_reasons { /* of one job: each would hold it back alone. The first dominates */
    struct stk_reason list[STK_MAX_REASONS];
    uint32_t n; /* at least 1 */
};

const char *stk_reason_name(enum stk_reason_code c);

#endif
