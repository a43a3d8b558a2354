/* SPDX-License-Identifier: Apache-2.0 */
/* demand.h - what a job asks for.
 *
 * A job is a gang of 'tasks' equal tasks, each on one node, started together or not at all. Traces
 * mostly know only a GPU count; such a job is one task with 'cut' set: it goes on one node when a
 * node of the pool is large enough, otherwise it is cut into whole nodes and a remainder, and CPU
 * and memory are cut in proportion.
 *
 * A task may ask for part of one GPU: then gpus is 1 and gpu_milli says how much. Tasks of one job
 * never share a GPU with each other. Who shares a GPU has asked for the same way of sharing, the
 * same number of sharers and the same company (share_with). In turns each may use all of its
 * memory, and a job has one task: several would not have their turns together.
 *
 * Or it asks for whole GPUs that one other job may have with it: then share_max is 2 and gpu_milli
 * 0. Two such jobs of the same size share the same GPUs, all of them or none (core/pair.h).
 *
 * Or it asks for a MIG instance of one GPU (mig.h): 'mig' is the profile, gpu_milli is what that
 * counts as, and memory follows from it. GPUs in MIG mode are given in instances alone, and no
 * other GPU is.
 *
 * Where tasks may lie to each other (topology.h): all inside one link island, node, rack and so on.
 * That is required, or preferred: then it is tried first, and one level wider after the other up to
 * what is required. Tasks may come in subgroups, task 0 to group - 1 the first, each inside one
 * such place of its own level. 'per_node' says how many tasks every node has that is used. An
 * exclusive job shares no node with another: all there is on its nodes is blocked while it has
 * them, though it counts as using the GPUs it asked for.
 *
 * A job may be confined to a set of nodes, which has a number (nodes.h).
 *
 * Named resources are counted like CPU and memory, under numbers that the cluster gives them; a
 * node that does not have one has 0 of it. A job may say how fast it is on the GPU types it
 * accepts: its run time is that at speed 1, and it takes the fastest that has room.
 */
#ifndef STK_MODEL_DEMAND_H
#define STK_MODEL_DEMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define STK_MAX_GPUS 1000000 /* of one job */
#define STK_MAX_TASKS 65536
#define STK_MAX_GPU_MEM_MIB (1 << 30)
#define STK_MAX_GPU_TYPES 64
#define STK_ANY_GPU_TYPE UINT64_MAX
#define STK_MAX_RESOURCES 8      /* names of countable things, of all nodes together */
#define STK_MAX_RESOURCE_NAME 64 /* bytes of a name */
#define STK_MAX_SPEEDS 8         /* GPU types that a job is not equally fast on */
#define STK_SPEED 1000           /* speed 1 */
#define STK_MAX_SPEED 65535

/* How those who share a GPU are kept apart. */
enum stk_share {
    STK_SHARE_NONE, /* not at all: they see all of it and are trusted */
    STK_SHARE_MPS,  /* CUDA MPS: a cap on threads and memory of each */
    STK_SHARE_TIME, /* in turns: all but one are suspended */
    STK_SHARE_MAX
};
#define STK_SHARE_PAIR STK_SHARE_MAX /* the core's own, of whole GPUs that two may have */

/* What a job description has for it: these, and "mig" for an instance. */
static inline const char *stk_share_name(enum stk_share s)
{
    static const char *const names[STK_SHARE_MAX] = {"none", "mps", "time"};

    return (unsigned)s < STK_SHARE_MAX ? names[s] : "?";
}

struct stk_demand {
    uint32_t tasks;       /* >= 1 */
    uint32_t gpus;        /* per task; 0 for a CPU job */
    uint64_t gpu_types;   /* bit per type of the cluster's type table; STK_ANY_GPU_TYPE: all */
    uint32_t cpu_milli;   /* per task; 0: does not matter */
    uint32_t mem_mib;     /* per task; 0: does not matter */
    uint32_t gpu_mem_mib; /* memory on each GPU: of all of it, or of the part; 0: does not matter */
    uint16_t gpu_milli;   /* 0: whole GPUs; 1 to 999: so many thousandths of one */
    uint8_t share;        /* enum stk_share, of a part */
    uint8_t share_max;    /* at most so many share a GPU; 0: as many as fit. Of whole GPUs: 2, or
                             0: none but itself */
    uint32_t share_with;  /* of a part: only with those of the same number; 0 is one as any */
    bool cut;             /* tasks == 1, and may be cut over several nodes */
    bool exclusive;       /* nobody else on its nodes */
    uint8_t level_required, level_preferred; /* enum stk_level, link to region; 0: no wish */
    uint8_t group_level; /* each subgroup lies inside one such; 0: there are no subgroups */
    uint32_t group;      /* tasks of a subgroup; divides tasks */
    uint32_t per_node;   /* tasks on each node that is used; divides tasks; 0: as they fit */
    uint8_t pin_slot;    /* of a MIG instance; see pin */
    uint16_t mig;        /* 0: no MIG instance; else its profile, and gpu_milli is its milli */
    uint16_t slo_milli;  /* company must leave it so many thousandths of its speed; 0: no wish */
    uint16_t nodes;      /* only on those of this set (nodes.h); 0: on any */
    uint32_t row;        /* its kind in the table of speeds (speed.h), + 1; 0: not known */
    uint8_t n_resources; /* those after so many are 0 */
    uint8_t n_speeds;
    uint32_t resource[STK_MAX_RESOURCES]; /* per task */
    uint8_t speed_type[STK_MAX_SPEEDS]; /* ascending, of gpu_types; on all others it has speed 1 */
    uint16_t speed_milli[STK_MAX_SPEEDS]; /* its speed there; > 0, not STK_SPEED */
    /* Set by the core alone, for a job whose processes sleep: they can wake where they are only. */
    uint32_t pin;      /* node + 1; 0: not pinned */
    uint64_t pin_mask; /* exactly these GPUs of it; 0 on aggregate nodes. And pin_slot */
    uint64_t holders;  /* likewise: those it belongs to who have reservations (core/booking.h) */
};

/* 1 to STK_MAX_RESOURCE_NAME - 1 letters, digits, '_', '-' and '.'. */
bool stk_resource_name_ok(const char *s, size_t len);

/* So much of resource 'i' per task. */
void stk_demand_set_resource(struct stk_demand *d, uint32_t i, uint32_t amount);
/* Its speed on a type that it accepts. -E2BIG: on more than STK_MAX_SPEEDS it is not 1. */
int stk_demand_set_speed(struct stk_demand *d, uint32_t type, uint32_t milli);

static inline uint32_t stk_demand_speed(const struct stk_demand *d, uint32_t type)
{
    for (uint32_t i = 0; i < d->n_speeds; i++)
        if (d->speed_type[i] == type)
            return d->speed_milli[i];
    return STK_SPEED;
}
/* It asks for something about where its tasks lie to each other. */
static inline bool stk_demand_near(const struct stk_demand *d)
{
    return (d->per_node | d->group | d->level_required | d->level_preferred | d->group_level |
            d->exclusive) != 0;
}

/* 0, or -EINVAL with a sentence: levels, subgroups, tasks per node and the like go together. */
int stk_demand_near_check(const struct stk_demand *d, struct stk_err *err);

/* Whole GPUs that another may have with it. */
static inline bool stk_demand_pairs(const struct stk_demand *d)
{
    return d->share_max == 2 && d->gpu_milli == 0;
}

/* Thousandths of each of its GPUs that the job is counted for where GPUs are divided among jobs:
 * limits, shares and costs. A job that may have company still asks for whole GPUs. */
static inline uint32_t stk_demand_asked_milli(const struct stk_demand *d)
{
    return d->gpu_milli ? d->gpu_milli : 1000;
}

/* Thousandths of each of its GPUs that the job uses: one of two seats is half of a GPU. */
static inline uint32_t stk_demand_milli(const struct stk_demand *d)
{
    return stk_demand_pairs(d) ? 500 : stk_demand_asked_milli(d);
}

/* The GPUs it leases need not come back when it goes: others may be on them. */
static inline bool stk_demand_shares(const struct stk_demand *d)
{
    return d->gpu_milli || stk_demand_pairs(d);
}

#endif
