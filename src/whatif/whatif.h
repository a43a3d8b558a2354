/* SPDX-License-Identifier: Apache-2.0 */
/* whatif.h - stoker-whatif: what would have happened, and what did. A program of its own, which the
 * daemon starts with little priority and with limits, because reading a long past and simulating it
 * takes seconds and memory that scheduling must not pay for.
 *
 *     main.c      a question as JSON on standard input, lines of JSON as answer; limits
 *     past.c      job records of the store become a trace
 *     world.c     machines, tenants and policy as they were
 *     changes.c   what is to be different in them
 *     compare.c   recorded, simulated as it was, simulated with the changes
 *     sides.c     of each of these: the load over time, and its tenants
 *     figures.c   the figures of a period: for baselines, and what the sides are held against
 *     export.c    the past as files for stoker sim
 */
#ifndef STK_WHATIF_WHATIF_H
#define STK_WHATIF_WHATIF_H

#include <jansson.h>

#include "drive/setup.h"
#include "figures/figures.h"
#include "sim/cluster.h"
#include "sim/result.h"
#include "sim/tenants.h"
#include "sim/trace.h"
#include "store/store.h"

#define STK_WHATIF_MAX_JOBS 5000000u
#define STK_WHATIF_MAX_CHANGE_NODES 100000u

/* ---- world.c ---- */

struct stk_world { /* zeroed: empty */
    json_t *json;  /* "nodes", "teams", "policy", "quotas" */
    struct stk_cluster cluster;
    struct stk_tenants tenants;
    bool has_tenants; /* tenants or queues were said */
    struct stk_setup setup;
    uint64_t gpus;
};

/* From its JSON, changed by 'changes' (may be NULL). -EINVAL with a sentence that begins with the
 * key. stk_world_done() in every case. */
int stk_world_make(struct stk_world *w, json_t *world, json_t *changes, struct stk_err *err);
/* One that has only machines, as --cluster says them, and the policy 'words' (may be NULL). */
json_t *stk_world_of_words(const char *cluster, json_t *policy, struct stk_err *err);
/* The trace's tenants become its own, without limits: so that they can be given some. */
int stk_world_take_tenants(json_t *world, const struct stk_trace *t, struct stk_err *err);
void stk_world_done(struct stk_world *w);
/* The machines as the YAML of --cluster, the tenants and queues as that of --tenants; malloc'ed. */
char *stk_world_cluster_text(json_t *world);
char *stk_world_teams_text(json_t *world);

/* ---- changes.c ---- */

extern const char *const stk_world_choices[]; /* of a policy; ends with NULL */
/* What operators had set, then "quotas", "remove_nodes", "add_nodes" and "policy" of 'changes'. */
int stk_world_change(json_t *world, json_t *changes, struct stk_err *err);
int stk_world_add_nodes(json_t *world, json_t *words, struct stk_err *err);

/* ---- past.c ---- */

struct stk_past {
    stk_time since, until, now;
    struct stk_trace trace;
    uint32_t carried; /* jobs that were there when the period began */
    uint32_t running; /* that have not ended; how long they will run is not known */
    uint32_t never_ran;
    const struct stk_world *world; /* whose names of GPU types and queues are meant */
};

/* Reads the jobs that were there between since and until. */
int stk_past_read(struct stk_past *p, struct stk_store *st, struct stk_err *err);

/* ---- figures.c ---- */

struct stk_period_figures {
    struct stk_period p; /* up to now */
    struct stk_capacity_figures capacity;
    stk_gpu_time allocated;
    uint64_t preemptions;
};

/* What happened in a period, by the store; 'ret_json' is as docs/spec/whatif.md has it. */
int stk_figures(struct stk_store *st, struct stk_period p, stk_time now,
                struct stk_period_figures *ret, json_t **ret_json, struct stk_err *err);

/* ---- compare.c ---- */

/* Progress, 0 to 1, and what is being done. */
typedef void (*stk_whatif_tell_fn)(void *ctx, double done, const char *what);

struct stk_whatif {
    const struct stk_trace *trace;
    struct stk_world *before, *after;        /* after: NULL: nothing is changed */
    const struct stk_period_figures *period; /* what happened; NULL: that was elsewhere */
    stk_whatif_tell_fn tell;
    void *ctx;
};

/* {"recorded": {...}, "before": {...}, "after": {...}, "series": {...}}; what is not known is
 * null. */
int stk_whatif_compare(const struct stk_whatif *q, json_t **ret, struct stk_err *err);

/* ---- sides.c ---- */

#define STK_WHATIF_TENANTS 64u /* with the most GPU-time */

/* How each of the trace's tenants fared, as a list; NULL: out of memory. */
json_t *stk_side_tenants(const struct stk_run_result *r, const struct stk_trace *t);
/* The load of runs over time, of each as "gpus" and "waiting"; they have samples. "names" has a
 * name for each; one without jobs is not there. NULL: out of memory. */
json_t *stk_side_series(const struct stk_run_result *runs, const char *const *names, uint32_t n);

/* ---- export.c ---- */

int stk_whatif_export(int argc, char **argv);

#endif
