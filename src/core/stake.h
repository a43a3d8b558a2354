/* SPDX-License-Identifier: Apache-2.0 */
/* stake.h - what is lost when a running job gives way, how it leaves, and when it need not.
 *
 * What it has at stake is its GPUs x time: the work it has done since its last checkpoint, unless
 * it leaves in a way that saves it, and what leaving and coming back take. A job that never
 * reported a checkpoint is charged a fixed time instead (preempt.unreported_s): by its silence it
 * is neither safe nor the first to go.
 *
 * It leaves as its tier says, as far as it can: asleep, on one node, with its memory; warned, with
 * time to save; or at once. The engine does the next best when it cannot do the first.
 *
 * It is protected for a while after each start (preempt.min_run_s, or its own), and when it gave
 * way preempt.per_day times within a day, until that day is over; and while it will meet its
 * deadline if it goes on, and would miss it if it gave way, unless it is best-effort. Nobody is
 * protected from those who get what is guaranteed to them. When somebody was spared for that, the
 * core wakes when it is over.
 */
#ifndef STK_CORE_STAKE_H
#define STK_CORE_STAKE_H

#include "base/bytes.h"
#include "core/state.h"

#define STK_DAY (INT64_C(86400) * STK_SECOND)

/* How it is told to leave. */
enum stk_leave stk_stake_leave(const struct stk_state *s, const struct stk_job *j);

/* In thousandths of GPU-seconds. At least a second of its GPUs, so that more of them are more. */
int64_t stk_stake_units(const struct stk_state *s, const struct stk_job *j, stk_time now);

/* Until when it need not give way; now, or before: it must. */
stk_time stk_stake_until(const struct stk_state *s, const struct stk_job *j, stk_time now);
/* It meets its deadline if it goes on, and would miss it if it gave way. */
bool stk_stake_in_time(const struct stk_state *s, const struct stk_job *j, stk_time now);

/* For decide(): it would have gone, and is protected until then. */
void stk_stake_spared(struct stk_state *s, uint32_t pool, stk_time until);
/* For decide(): whoever waits for somebody that is protected no longer looks again. */
void stk_stake_look_again(struct stk_state *s, stk_time now);

/* It gave way, to make room. */
void stk_stake_count(struct stk_state *s, const struct stk_job *j);

void stk_stake_put(struct stk_bytes *b, const struct stk_stake *k);
void stk_stake_get(struct stk_reader *r, struct stk_stake *ret, uint64_t version);

#endif
