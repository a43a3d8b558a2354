/* SPDX-License-Identifier: Apache-2.0 */
/* save.h - the state as bytes, to start again without a replay from the beginning.
 *
 *     stk_core_save(core, &bytes, &err);                     at some event
 *     stk_core_load(fresh, bytes.data, bytes.n, &err);       later; then the events after that one
 *
 * What is saved is state, not caches: jobs with their demands, leases and dependencies, in their
 * slots; nodes up or down and GPUs off; claims, numbers, the hash of the history and what was asked
 * for lately. Trees, shapes
 * and indexes are built again. The digest is the same after loading, and stays so as the same
 * events are fed to both; decisions may differ as far as caches do (a promise made later may be
 * another one).
 *
 * The core loaded into may be made differently:
 * - Another order policy: ranks are computed anew, and what the old one kept with each job (its
 *   word) is forgotten. Any other policies and parameters: nothing is lost.
 * - CPU and memory that no node of a job's pool limited when it was submitted are not known any
 *   more: it is taken to ask for none. So are GPU types it would have accepted, had they not been
 * in MIG mode, or had they been.
 * - A named resource that no longer has its name here: jobs are taken to ask for none of it.
 * - Other nodes: a node is known by its place in the list. Waiting jobs stay, also those that can
 *   never run now. A lease, or the GPUs a job sleeps on, must exist with their CPU and memory;
 *   else the load is refused with a sentence that names the job. New nodes are up, and what is gone
 *   is gone.
 */
#ifndef STK_CORE_SAVE_H
#define STK_CORE_SAVE_H

#include <stddef.h>

#include "base/bytes.h"
#include "base/err.h"
#include "core/core.h"

#define STK_SAVE_VERSION 7

/* Appends to 'out'. 0 or -ENOMEM. */
int stk_core_save(const struct stk_core *core, struct stk_bytes *out, struct stk_err *err);

/* Into a core that has heard no event. 0, -EBADMSG (not a saved state), -EPROTONOSUPPORT (of a
 * later version), -ENODEV (something leased does not exist here), -EINVAL (not a fresh core),
 * -ENOMEM. On failure the core is of no use but to be freed. */
int stk_core_load(struct stk_core *fresh, const unsigned char *buf, size_t len,
                  struct stk_err *err);

/* The same into a core that has its settings already (core/settings.h). Times that people named
 * become later by 'later' (core/named.h), and those that the core wrote down by 'skipped'
 * (core/skipped.h). */
int stk_load_again(struct stk_core *fresh, const unsigned char *buf, size_t len, stk_time later,
                   stk_time skipped, struct stk_err *err);

/* For core/load.c: a number for the order policy's settings (as long as they are equal, saved
 * timers hold), and a job's own members, each in its range. */
struct stk_job;
uint64_t stk_save_settings(const struct stk_state *s);
void stk_save_get_job(struct stk_reader *r, const struct stk_state *s, struct stk_job *j);

/* For core/digest.c: what is saved of one slot of the table of jobs, and of one array. */
void stk_save_put_job(struct stk_bytes *b, const struct stk_state *s, uint32_t job);
void stk_save_put_array(struct stk_bytes *b, const struct stk_state *s, uint32_t array);

#endif
