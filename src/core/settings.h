/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - what a core was made with, and what was changed since by the event SET: parameters,
 * limits, priorities.
 *
 * Nearly everything in a state follows from these: ranks, levels, shapes, indexes. So a change is
 * not patched into each of them: a second core is made with what holds from now on, the state is
 * saved and loaded into it (core/save.h), and it takes the place of the first. Whatever a fresh
 * core would refuse is refused, with the same sentence, and nothing has changed then. Caches and
 * promises are made again. Cost: O(jobs log jobs + nodes), for something that happens a few times a
 * day.
 *
 * What is in force is state: saved, loaded, forked and in the digest. What a core loads onto may be
 * made differently: what does not exist there any more is forgotten.
 */
#ifndef STK_CORE_SETTINGS_H
#define STK_CORE_SETTINGS_H

#include "base/bytes.h"
#include "core/blocks.h"
#include "core/core.h"
#include "model/queue.h"
#include "model/set.h"

struct stk_settings {
    struct stk_core_config cfg; /* as given; what it points to and is copied is below */
    struct stk_params params;
    struct stk_node_spec *nodes;
    struct stk_tenant_spec *tenants;
    struct stk_queue_spec *queues;
    struct stk_set *set; /* in force, in the order in which they came */
    uint32_t n, cap;
};

/* The core was just made from this. 0 or -ENOMEM. */
int stk_settings_keep(struct stk_state *s, const struct stk_core_config *cfg, struct stk_err *err);
void stk_settings_memory(struct stk_state *s, struct stk_visit *v); /* core/blocks.h */

/* The event. */
int stk_settings_set(struct stk_core *c, const struct stk_set *e, struct stk_err *err);

/* What is added to the job's own priority, by its kind and queue. */
int32_t stk_settings_shift(const struct stk_state *s, uint32_t job);

/* How far the time of events is ahead of the wall clock (core/named.h). */
stk_time stk_settings_ahead(const struct stk_state *s);

/* What conditions of rules ask. A pool's GPUs in use, in thousandths of those that are up; how long
 * the one that has waited longest has waited, 0 when none waits: O(jobs). STK_NONE: of all pools.
 */
int64_t stk_settings_utilization(const struct stk_state *s, uint32_t pool);
stk_time stk_settings_wait(const struct stk_state *s, uint32_t pool, stk_time now);

uint64_t stk_settings_digest(const struct stk_state *s, uint64_t h);
/* get: into a fresh core, which is made again with what is read. */
void stk_settings_put(struct stk_bytes *b, const struct stk_state *s);
int stk_settings_get(struct stk_reader *r, struct stk_core *fresh, struct stk_err *err);
/* Reads over what put() wrote. */
void stk_settings_pass(struct stk_reader *r);

/* For reading settings again: whether one can be, and a core without jobs in which the first n of
 * its list hold. */
int stk_settings_check(const struct stk_state *s, const struct stk_set *e, struct stk_err *err);
int stk_settings_remake(struct stk_core *c, uint32_t n, struct stk_err *err);

#endif
