/* SPDX-License-Identifier: Apache-2.0 */
/* db.h - inside the store: the open database, prepared statements, and SQLite's errors as ours. */
#ifndef STK_STORE_DB_H
#define STK_STORE_DB_H

#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/ack.h"
#include "store/store.h"

#define STK_STORE_PAGE_BYTES 8192
#define STK_STORE_BUSY_MS 5000 /* how long another program is waited for */

/* What to do about a loss, for a sentence; the state directory twice. */
#define STK_STORE_LOSS_ADVICE                                                                      \
    "restore a backup (stoker store restore FILE --state %s), or go on with what is left (stoker " \
    "store accept --state %s)"

/* Statements that are prepared once. Those that call back are prepared anew each time, so that a
 * callback may read the store. */
enum stk_slot {
    STK_SLOT_BEGIN,
    STK_SLOT_COMMIT,
    STK_SLOT_APPEND,
    STK_SLOT_SPEC_PUT,
    STK_SLOT_JOB_PUT,
    STK_SLOT_JOB_LIVE,
    STK_SLOT_JOB_SPEC,
    STK_SLOT_JOB_END,
    STK_SLOT_JOB_OUTCOME,
    STK_SLOT_TOKEN_FIND,
    STK_SLOT_TOKEN_GET,
    STK_SLOT_TOKEN_USED,
    STK_SLOT_KEY_PUT,
    STK_SLOT_KEY_GET,
    STK_SLOT_ITEM_PUT,
    STK_SLOT_ITEM_SET,
    STK_SLOT_OLD_ITEMS,
    STK_SLOT_OLD_JOB,
    STK_SLOT_OLD_SPEC,
    STK_SLOT_OLD_USAGE,
    STK_SLOT_OLD_LEASES,
    STK_SLOT_LEASE_PUT,
    STK_SLOT_SERIES_PUT,
    STK_SLOT_USAGE_PUT,
    STK_SLOT_USAGE_GET,
    STK_SLOT_MAX
};

struct stk_store {
    sqlite3 *db;
    sqlite3_stmt *stmt[STK_SLOT_MAX];
    char *dir;           /* without links */
    char path[PATH_MAX]; /* of the file */
    int dir_fd, lock_fd;
    bool read_only, in_txn;
    bool accept; /* what is missing is accepted */
    int tight;   /* no space was left: this many commits are careful with it */
    int failed;  /* the first error of this transaction that spoils it, and its sentence */
    struct stk_err why;
    struct stk_err damage;        /* nothing more is written; "": all is well */
    uint64_t next_seq, begin_seq; /* of the next event; as it was at begin */
    int64_t spec_seen;            /* descriptions up to this one were looked at (prune.c) */
    int wal_pages;                /* in the WAL after the last commit */
    struct stk_ack ack;           /* as it was last written (guard.h) */
    int ack_fd, wal_fd;           /* -1: not open */
    bool ack_flushed;             /* since it was written */
    uint32_t wal_frames;          /* in the WAL, told by SQLite */
    bool wal_grew;                /* since stk_guard_commit() */
    int version;                  /* of the schema; 0: it is not open to be written */
    char note[sizeof(((struct stk_err *)0)->text)];
};

/* Runs SQL that gives no rows. */
int stk_db_exec(struct stk_store *st, const char *sql, const char *what, struct stk_err *err);

/* One number from SQL; no row: 'none'. */
int stk_db_int(struct stk_store *st, const char *sql, int64_t none, int64_t *ret_value,
               struct stk_err *err);

/* A statement that is kept; 'write' refuses outside a transaction and in one that is spoilt. */
int stk_db_read(struct stk_store *st, enum stk_slot slot, const char *sql, sqlite3_stmt **ret_stmt,
                struct stk_err *err);
int stk_db_write(struct stk_store *st, enum stk_slot slot, const char *sql, sqlite3_stmt **ret_stmt,
                 struct stk_err *err);

/* A statement for this one time; sqlite3_finalize() it. 'once' is for reading, 'change' for
 * writing. */
int stk_db_once(struct stk_store *st, const char *sql, sqlite3_stmt **ret_stmt,
                struct stk_err *err);
int stk_db_change(struct stk_store *st, const char *sql, sqlite3_stmt **ret_stmt,
                  struct stk_err *err);

/* Steps a writing statement to its end and resets it. 'what' completes "cannot ...". */
int stk_db_run(struct stk_store *st, sqlite3_stmt *stmt, const char *what, struct stk_err *err);

/* Steps a reading statement: 1 a row, 0 the end. Resets nothing. */
int stk_db_row(struct stk_store *st, sqlite3_stmt *stmt, const char *what, struct stk_err *err);

/* -EUCLEAN: the store is damaged, what is wrong ('words', or the page that does not match its
 * checksum) and what to do. */
int stk_db_damaged(struct stk_store *st, const char *words, struct stk_err *err);

/* SQLite's latest error on 'db' as errno and sentence. 'path' is the file it is about. */
int stk_db_error(sqlite3 *db, int rc, const char *path, const char *what, struct stk_err *err);

/* Binding; the value must stay until the statement has run. */
void stk_db_text(sqlite3_stmt *stmt, int i, const char *s); /* NULL: "" */
void stk_db_blob(sqlite3_stmt *stmt, int i, const void *bytes, size_t len);

/* Reading a column. Never NULL. A number outside the range of uint32_t becomes its nearest end. */
const char *stk_db_str(sqlite3_stmt *stmt, int i);
uint32_t stk_db_u32(sqlite3_stmt *stmt, int i);

/* A copy of a BLOB column with a NUL after its end. -ENOMEM */
int stk_db_copy(sqlite3_stmt *stmt, int i, char **ret_bytes, size_t *ret_len);

/* Whether a text is short enough. */
bool stk_db_fits(const char *s);

#endif
