/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - inside the store: nothing that was acknowledged goes missing unnoticed.
 *
 *     check    before SQLite reads the files: is all there that `stoker.ack` says?
 *     begin, start    before the first change; when the store is open
 *     commit   after each commit, before anybody hears of it
 *     checkpoint, stop                                          */
#ifndef STK_STORE_GUARD_H
#define STK_STORE_GUARD_H

#include "store/db.h"

/* -EUCLEAN with what is missing. A WAL that is damaged but no longer needed is
 * emptied. */
int stk_guard_check(struct stk_store *st, struct stk_err *err);
/* The same question of event numbers, once they are known. */
int stk_guard_check_seq(const struct stk_store *st, struct stk_err *err);
int stk_guard_begin(struct stk_store *st, struct stk_err *err); /* before the first change */
void stk_guard_start(struct stk_store *st, int version);        /* of the schema: all is well */
void stk_guard_commit(struct stk_store *st);
/* Flushes the file of what was acknowledged, if that is not on the disk yet. */
void stk_guard_flush(struct stk_store *st);
/* Copies the WAL into the database, if it is still whole; else st->damage says so. */
void stk_guard_checkpoint(struct stk_store *st, int mode);
/* Before the database is closed. */
void stk_guard_stop(struct stk_store *st);

/* What is in the directory from now on is right, whatever was acknowledged before: for a store that
 * was just made or restored. */
int stk_guard_reset(int dir_fd, struct stk_err *err);
/* There is no database: may a new one be made? */
int stk_guard_may_make(const struct stk_store *st, struct stk_err *err);

#endif
