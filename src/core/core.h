/* SPDX-License-Identifier: Apache-2.0 */
/* core.h - the scheduler as a function: events in, decisions out.
 *
 * stk_core_apply() is the only function that changes state. stk_core_decide() proposes PLACE,
 * EVICT and UNRESERVE events and changes nothing but caches; the caller applies each one, journals
 * it, and only then hands it to the engine. Replaying the journal therefore needs no policy code at
 * all. Neither reads a clock or does I/O; decide() does not allocate.
 *
 *     apply(what happened)...; while ((n = decide(now, out, cap)) > 0) apply(each of out);
 */
#ifndef STK_CORE_CORE_H
#define STK_CORE_CORE_H

#include "base/err.h"
#include "base/mem.h"
#include "core/policy.h"
#include "model/event.h"
#include "model/mix.h"
#include "model/node.h"
#include "model/queue.h"
#include "model/tenant.h"
#include "model/topology.h"

struct stk_core;
struct stk_state;
struct stk_reason;
struct stk_reasons;

struct stk_core_config {
    const struct stk_node_spec *nodes; /* copied */
    uint32_t n_nodes, n_pools;
    const char *const *pool_names;    /* for messages; borrowed while the core and its forks live;
                                         NULL:    by number */
    const struct stk_layout *layouts; /* that the nodes name; copied */
    uint32_t n_layouts;
    const struct stk_order_ops *order; /* all borrowed, static */
    const struct stk_backfill_ops *backfill;
    const struct stk_place_ops *place;
    const struct stk_preempt_ops *preempt;
    const struct stk_admit_ops *admit;
    const struct stk_params *params;   /* borrowed for the call */
    const struct stk_mix *mix;         /* what jobs usually ask for; copied. NULL: it is learned */
    uint32_t n_resources;              /* named countable things that nodes have, up to
                                          STK_MAX_RESOURCES */
    const char *const *resource_names; /* of each; borrowed until the core is freed */
    /* How fast jobs are, by GPU type; borrowed while the core and its forks live; may be NULL. */
    const struct stk_speeds *speeds;
    /* Who jobs belong to; copied, but for the names, which are borrowed while the core and its
     * twins live. 0: a job's tenant is any number, and there are no limits. */
    const struct stk_tenant_spec *tenants;
    uint32_t n_tenants;
    /* Where jobs wait; copied, names as above. 0: a job's queue is any number, without limits. */
    const struct stk_queue_spec *queues;
    uint32_t n_queues;
    bool sleeps; /* the engine can put a job to sleep: that is what giving way costs */
    /* Nodes may go from pool to pool: what could run if all were in the job's is taken in. */
    bool pools_change;
    /* How much a GPU of each type counts in what tenants use, in thousandths, STK_MAX_GPU_TYPES of
     * them; borrowed like 'speeds'. NULL: all alike. */
    const uint32_t *type_speed;
    /* Finished jobs that stay known, oldest dropped first. All jobs that one event ended stay known
     * until another job ends, however many they are; unless this is 0. */
    uint32_t retain_done;
};

/* Parameters of the core itself. Ends with name NULL. */
extern const struct stk_param stk_core_params[];
extern const struct stk_param *const stk_restart_s; /* of these, for an engine that charges them */
extern const struct stk_param *const stk_suspend_s;

int stk_core_new(const struct stk_core_config *cfg, const struct stk_mem *mem,
                 struct stk_core **ret_core, struct stk_err *err);
void stk_core_free(struct stk_core *core); /* NULL is a no-op */
/* A second core that goes on from where this one is and, told the same, decides the same. What the
 * first was made from (allocator, policies, names, speeds) is borrowed by both; neither knows of
 * the other. Not between decide() and applying what it returned. 0 or -ENOMEM. */
int stk_core_fork(const struct stk_core *core, struct stk_core **ret_core, struct stk_err *err);

/* What the next SUBMIT and PLACE must carry. */
stk_job_id stk_core_next_job(const struct stk_core *core);
stk_lease_id stk_core_next_lease(const struct stk_core *core);
uint32_t stk_core_next_booking(const struct stk_core *core); /* likewise RESERVE */

/* 0, or -EPROTO (not legal in the job's state), -ESTALE (an older lease), -EINVAL, -ERANGE (can
 * never run), -ENOENT (depends on a job that is not known), -ENOSPC (does not fit now), -EOVERFLOW
 * (job numbers are used up), -ENOMEM. On failure nothing has changed. */
int stk_core_apply(struct stk_core *core, const struct stk_event *ev, struct stk_err *err);

/* Whether a SUBMIT of this would be accepted, but for memory. */
int stk_core_check(const struct stk_core *core, const struct stk_job_spec *spec,
                   struct stk_err *err);

/* Proposals, in an order in which they can be applied; what they point to lives until the next
 * decide(). 0: nothing to do until something happens. A small 'cap' (>= 1) makes it take more
 * calls; a policy that decides a pool whole may then choose differently when it has more to evict.
 */
uint32_t stk_core_decide(struct stk_core *core, stk_time now, struct stk_event *out, uint32_t cap);

/* When decide() or a TICK must be called although nothing happened; STK_NEVER_TIME: not at all. */
stk_time stk_core_wake(const struct stk_core *core, stk_time now);
bool stk_core_tick_due(const struct stk_core *core, stk_time now);

/* A job of which the next event is likely to be: fetches its data into the cache. Changes nothing.
 */
void stk_core_expect(const struct stk_core *core, stk_job_id job);

const struct stk_state *stk_core_state(const struct stk_core *core); /* until the next apply() */
uint32_t stk_core_find(const struct stk_core *core, stk_job_number number); /* slot or STK_NONE */

/* Every invariant; a sentence about the first that does not hold. O(everything). */
bool stk_core_sound(const struct stk_core *core, struct stk_err *err);
/* Hash of the state and of how it came about. Equal on every machine for equal events. */
uint64_t stk_core_digest(const struct stk_core *core);
/* What the tenant is due now, in thousandths of a GPU (core/share.h). */
uint64_t stk_core_due(struct stk_core *core, uint32_t tenant);
/* Why a job is not running. Not to be called between decide() and applying what it returned. */
/* What could be moved now (core/defrag.h); tries placements, and undoes them. */
struct stk_defrag_plan;
struct stk_empty_plan;
/* What to move so that a node is empty; STK_NONE: the one that costs least (core/empty.h). */
bool stk_core_empty(struct stk_core *core, stk_time now, uint32_t node, struct stk_empty_plan *ret);
bool stk_core_defrag(struct stk_core *core, stk_time now, struct stk_defrag_plan *ret);

int stk_core_why(struct stk_core *core, stk_job_id job, struct stk_reason *ret,
                 struct stk_err *err);
/* The same with all other reasons behind it. */
int stk_core_reasons(struct stk_core *core, stk_job_id job, struct stk_reasons *ret,
                     struct stk_err *err);

#endif
