/* SPDX-License-Identifier: Apache-2.0 */
/* txn.h - tentative change: take and give on nodes, with checkpoint, rollback and commit.
 *
 * apply() uses it to place a gang whole or not at all; decide() to try "what if these were gone"
 * and always rolls back. Transactions nest: a mark is a place in the undo log. The log's memory is
 * made ready by stk_txn_reserve() in apply(), so that deciding never allocates: one tentative
 * session may touch every piece of every lease twice.
 */
#ifndef STK_CORE_TXN_H
#define STK_CORE_TXN_H

#include "core/index.h"

typedef uint32_t stk_txn_mark;

int stk_txn_reserve(struct stk_state *s, uint32_t pieces);
stk_txn_mark stk_txn_begin(struct stk_state *s);
void stk_txn_take(struct stk_state *s, uint32_t node, const struct stk_use *u);
void stk_txn_give(struct stk_state *s, uint32_t node, const struct stk_use *u);
void stk_txn_rollback(struct stk_state *s, stk_txn_mark mark);
void stk_txn_commit(struct stk_state *s, stk_txn_mark mark);

/* All pieces of a job's lease at once. */
void stk_txn_give_job(struct stk_state *s, const struct stk_job *j);
/* False, with nothing taken, when some piece no longer fits. */
bool stk_txn_take_job(struct stk_state *s, const struct stk_job *j);
/* The same where nothing was placed since they were given: whatever has become of its nodes. */
void stk_txn_retake_job(struct stk_state *s, const struct stk_job *j);

#endif
