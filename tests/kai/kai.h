/* SPDX-License-Identifier: Apache-2.0 */
/* kai.h - scenarios of KAI-Scheduler's integration tests, put to our core.
 *
 * A scenario is a cluster, queues, jobs of which some run, and the end state that is expected.
 * read.c makes a kai_case of one entry of the file, groups.c of a job's subgroups, world.c a core
 * of the case, and runs it until nothing moves; match.c compares up to symmetry. docs/spec/kai.md
 * says what each thing there is here.
 *
 * A job there is one or several *units* here: one gang, which must run whole, and followers, which
 * may run beside it. Where our model has no word for what a scenario asks, it is "unsupported",
 * with a sentence.
 */
#ifndef STK_TESTS_KAI_KAI_H
#define STK_TESTS_KAI_KAI_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "core/core.h"

#define KAI_MAX_FILE (64 << 20) /* bytes */
#define KAI_MAX_NODES 512
#define KAI_MAX_QUEUES 512
#define KAI_MAX_JOBS 4096
#define KAI_MAX_TASKS 1024 /* of one job */
#define KAI_MAX_LEVELS 3   /* of a topology, hosts not counted */
#define KAI_SPARE 64       /* nodes that are down; see kai_case */
#define KAI_NONE UINT32_MAX
#define KAI_UNSUPPORTED (-ENOTSUP)

struct kai_arena { /* memory of one scenario */
    struct kai_block *first;
};
void *kai_alloc(struct kai_arena *a, size_t n, size_t size); /* zeroed; ends the program if none */
void kai_free_all(struct kai_arena *a);

enum kai_state { KAI_PENDING, KAI_RUNNING, KAI_RELEASING, KAI_STUCK };

struct kai_mig { /* instances of one profile; a unit of ours is one of its slices */
    const char *profile;
    uint32_t slices, count;
};

struct kai_node {
    const char *name;
    uint32_t gpus, gpu_mem, pods; /* pods: 0: not said */
    double cpu, mem;
    struct kai_mig *mig;
    uint32_t n_mig;
    json_t *labels;
    uint32_t first_part, n_parts;   /* nodes of the core, one per kind of GPU */
    uint32_t place[KAI_MAX_LEVELS]; /* in which domain it is, from below; 0: not said */
};

struct kai_queue {
    const char *name, *parent_name;
    uint32_t parent;                                           /* KAI_NONE: none */
    double guarantee, limit, weight;                           /* GPUs; below 0: no limit */
    double cpu_guarantee, cpu_limit, mem_guarantee, mem_limit; /* likewise; below 0: none said */
    int priority;
    double reclaim_min_s, preempt_min_s;
    uint32_t step; /* by priority, among all queues */
    uint32_t row;  /* its tenant */
    bool leaf;
};

struct kai_task {
    enum kai_state state;
    uint32_t node; /* KAI_NONE: none */
    const json_t *gpu_groups;
    const char *subgroup;
    int order;     /* larger first */
    uint32_t unit; /* that it belongs to */
};

struct kai_set { /* a subgroup: tasks, or subgroups */
    const char *name;
    uint32_t min;              /* tasks; of a set of sets, sets; KAI_NONE: all */
    uint32_t level, preferred; /* enum stk_level; 0: none */
    uint32_t parent;           /* KAI_NONE: the root */
    bool tasks;
};

struct kai_groups {
    struct kai_set *sets;
    uint32_t n;
};

struct kai_job {
    const char *name;
    uint32_t queue; /* KAI_NONE: not known: it never runs */
    int priority;
    bool critical, barred;    /* barred: asked for in a way that is never scheduled */
    bool deleted;             /* it is going away, and stays so */
    struct stk_demand demand; /* of one task; tasks is the number of parts it is made of */
    double age_min;           /* minutes; 0: by its place in the list */
    struct kai_task *tasks;
    uint32_t n_tasks;
    struct kai_groups groups;
    uint32_t first_unit, n_units;
};

struct kai_unit { /* a job of ours */
    uint32_t job;
    uint32_t *tasks, n_tasks;
    uint32_t leader; /* unit; KAI_NONE: it is one */
    uint32_t rank;   /* among those of its job */
    bool runs;       /* at the beginning */
    uint32_t slot;   /* in the core */
};

struct kai_case {
    struct kai_arena mem;
    json_t *scenario;
    const char *name;
    uint32_t rounds_after;
    struct kai_node *nodes;
    uint32_t n_nodes;
    struct kai_queue *queues;
    uint32_t n_queues;
    struct kai_job *jobs; /* oldest first */
    uint32_t n_jobs;
    struct kai_unit *units;
    uint32_t n_units;
    const char *kinds[STK_MAX_GPU_TYPES];     /* of GPUs: "" or the profile of MIG instances */
    const char *kind_host[STK_MAX_GPU_TYPES]; /* of this node only; NULL: of any */
    uint32_t n_kinds;
    const char *levels[KAI_MAX_LEVELS]; /* labels, from below */
    uint32_t n_levels;
    bool queues_differ; /* in priority, and jobs of one queue do not */
    bool hosts_differ;  /* jobs name nodes: each has a kind of its own */
    struct stk_node_spec *parts;
    uint32_t *part_node;
    uint32_t n_parts;
    uint32_t
        first_spare; /* from here on they are down: there, more may be guaranteed than there is */
    struct stk_err err;
};

/* One entry of the file. 0, KAI_UNSUPPORTED, or -EINVAL; then c->err says why. */
int kai_read(struct kai_case *c, const json_t *entry);
int kai_read_groups(struct kai_case *c, struct kai_job *j, const json_t *spec);
void kai_make_units(struct kai_case *c);

/* "rack" and so on of a label of the topology; 0: it is none. */
uint32_t kai_level(const struct kai_case *c, const char *label);

struct kai_task_now {
    enum kai_state state;
    uint32_t node;
    uint64_t mask; /* its GPUs on the node */
};

struct kai_world { /* a core of the case */
    struct kai_case *c;
    struct stk_core *core;
    const struct stk_state *s;
    stk_time now;
    uint32_t moves; /* starts and evictions so far */
};

int kai_world_new(struct kai_case *c, struct kai_world *w);
void kai_world_free(struct kai_world *w);
/* Decides until nothing is left; -ELOOP: that does not end. */
int kai_world_settle(struct kai_world *w);
struct kai_task_now kai_world_task(const struct kai_world *w, uint32_t job, uint32_t task);

/* True: as expected. Else both sides of what differs, in words. */
bool kai_match(struct kai_world *w, char *expected, char *got, size_t size);

/* JSON, with bounds. Absent: the default. */
double kai_number(const json_t *o, const char *key, double absent);
const char *kai_text(const json_t *o, const char *key);

#endif
