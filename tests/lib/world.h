/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - random clusters, policies, jobs and events from a seed, for tests that try many. */
#ifndef STK_TESTS_LIB_WORLD_H
#define STK_TESTS_LIB_WORLD_H

#include "lib/fixture.h"
#include "model/mig.h"

#define WORLD_MAX_NODES 8
#define WORLD_MAX_TENANTS 9
#define WORLD_MAX_QUEUES 3

struct world {
    struct fx_setup setup; /* points to 'nodes' */
    struct stk_node_spec nodes[WORLD_MAX_NODES];
    uint16_t instances[WORLD_MAX_NODES][STK_MAX_NODE_GPUS * STK_MIG_SLICES];
    struct stk_tenant_spec tenants[WORLD_MAX_TENANTS];
    struct stk_queue_spec queues[WORLD_MAX_QUEUES];
    char params[320];
    bool cpu_jobs;  /* jobs ask for CPU and memory too */
    bool types;     /* ... and for GPU types */
    bool parts;     /* ... and for parts of GPUs */
    bool mig;       /* ... and for MIG instances: some nodes have them */
    bool resources; /* ... and for named resources, which some nodes have */
    bool speeds;    /* ... and are faster on some types than on others */
    bool topology;  /* ... and for places: nodes say where they are, and which GPUs are linked */
    bool exclusive; /* ... and for nodes of their own */
    bool pairs;     /* ... and for whole GPUs that another job may have with them */
    bool limits;    /* ... and belong to tenants with limits */
    bool queued;    /* ... and wait in queues with limits */
    bool terms;     /* ... and are in groups that must stay up, and the like */
    bool booked;    /* ... and GPUs are reserved for some of them */
    bool sets;      /* ... and are confined to sets of nodes, which change */
    bool no_class;  /* ... and some are plain: their users may not preempt by class */
    bool exact;     /* estimates are right */
};

#define WORLD_ROWS 6
extern const struct stk_speeds world_speeds; /* of WORLD_ROWS kinds of jobs */

/* Every allowed order x backfill x place x preempt, by number; false past the last. */
bool world_combination(struct world *w, uint32_t i);
/* A random combination with random parameters. */
void world_policies(struct world *w, struct stk_rng *r);
/* Random nodes in one to three pools. After the policies: "count" wants nodes that only count. */
void world_cluster(struct world *w, struct stk_rng *r);
/* The same without MIG. */
void world_no_mig(struct world *w);
/* ... without named resources, speeds, tenants, queues and reservations. */
void world_plain(struct world *w);
/* The same without racks and links, and nobody wants a node for itself. */
void world_no_topology(struct world *w);
/* No tenant and no queue has more than its limit. Not where events came from elsewhere, too. */
void world_within_limits(const struct fx *f);
/* What nodes draw; where the policy may have one, a cap. After the cluster. */
void world_power(struct world *w, struct stk_rng *r);
void world_delays(struct world *w, struct stk_rng *r);
/* All of these, from the seed. */
void world_make(struct world *w, struct stk_rng *r, uint64_t seed);
const char *world_name(const struct world *w); /* for messages; until the next call */

/* A job that is well formed, though perhaps too large for its pool. Dependencies are on jobs that
 * are known, in 'deps' (room for 4). */
struct stk_job_spec world_job(const struct world *w, const struct fx *f, struct stk_rng *r,
                              struct stk_dep *deps);
/* Submits one such job; it may be refused. Its true run time differs from the estimate. */
void world_submit(const struct world *w, struct fx *f, struct stk_rng *r);
/* Jobs come, each after some time of at most 'gap'. What core/place.h says of those that ask for
 * parts of GPUs is what 'fits' finds, which looks everywhere. */
struct world_look {
    bool (*fits)(const struct fx *f, const struct stk_demand *d, uint32_t pool);
    uint32_t jobs;
    stk_time gap;
    uint32_t yes, no; /* answers so far */
};
void world_look(const struct world *w, struct stk_rng *r, struct world_look *look);
/* Something a user or a machine does: submit mostly, cancel, hold, release, node down or up. */
/* Something to set; it may be refused. */
void world_set(const struct fx *f, struct stk_rng *r, struct stk_set *ret);
void world_act(const struct world *w, struct fx *f, struct stk_rng *r);
/* All nodes up, all holds released: from here on every job can run. */
void world_calm(struct fx *f);
/* An event with any numbers in it, legal or not. True when it was accepted; when it was not,
 * nothing has changed. */
bool world_hostile(const struct world *w, struct fx *f, struct stk_rng *r);

#endif
