/* SPDX-License-Identifier: Apache-2.0 */
/* db.c - statements, transactions and errors.
 *
 * A full disk or a failing one may make SQLite give up a transaction in the middle, silently for
 * the statements that follow. So the first such error is kept: it spoils the transaction, every
 * further write is refused with it, and commit returns it. A row that is there already (-EEXIST)
 * spoils nothing.
 *
 * SQLite would copy a long WAL into the database inside the commit that made it long. Here that is
 * put off until after the replies: to stk_store_idle(), or at the latest to the next begin. The
 * copy needs room in the file, so on a disk with little room left that comes earlier; and for some
 * time after the disk was full, when the room that the WAL has may be all there is, before every
 * transaction. A long WAL is cut then.
 */
#include "store/db.h"

#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "store/guard.h"
#include "store/pagesum.h"

#define CHECKPOINT_PAGES 2048
#define TIGHT_COMMITS 1000 /* after the disk was full */
#define TIGHT_PAGES 64     /* what the WAL may keep of a disk that was full */

static int errno_of(int rc, int sys)
{
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return ENOSPC;
    case SQLITE_READONLY:
        return EROFS;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return EUCLEAN;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return EBUSY;
    case SQLITE_NOMEM:
        return ENOMEM;
    case SQLITE_TOOBIG:
        return EFBIG;
    case SQLITE_CONSTRAINT:
        return EEXIST;
    case SQLITE_INTERRUPT:
        return ECANCELED;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        if (rc == SQLITE_IOERR_DATA) /* pagesum.h */
            return EUCLEAN;
        if (sys == ENOSPC || sys == EDQUOT || sys == EFBIG)
            return ENOSPC;
        return sys == EROFS || sys == EACCES || sys == ENOENT ? sys : EIO;
    default:
        return EIO;
    }
}

static const char *say_damage(sqlite3 *db, const char *words, char *buf, size_t size)
{
    uint32_t page = stk_pagesum_bad(db);

    if (page)
        (void)snprintf(buf, size, "page %u does not match its checksum", page);
    else
        (void)snprintf(buf, size, "%s", words);
    return buf;
}

int stk_db_damaged(struct stk_store *st, const char *words, struct stk_err *err)
{
    char buf[80];

    if (stk_pagesum_bad(st->db) && !st->accept)
        return stk_err_set(err, -EUCLEAN,
                           STK_STORE_FILE " is damaged (%s; stoker store check --state %s says "
                                          "more): " STK_STORE_LOSS_ADVICE,
                           say_damage(st->db, words, buf, sizeof(buf)), st->dir, st->dir, st->dir);
    return stk_err_set(err, -EUCLEAN,
                       STK_STORE_FILE " is damaged (%s; stoker store check --state %s says more): "
                                      "restore a backup (stoker store restore FILE --state %s)",
                       words, st->dir, st->dir);
}

int stk_db_error(sqlite3 *db, int rc, const char *path, const char *what, struct stk_err *err)
{
    /* SQLite keeps the system's error for some calls and not for a commit that fails */
    int kept = sqlite3_system_errno(db), sys = kept ? kept : errno, e = errno_of(rc, sys);
    char words[80];

    switch (e) {
    case ENOSPC:
        return stk_err_set(err, -e, "%.100s: cannot %s: no space left (disk, quota or size limit)",
                           path, what);
    case EROFS:
        return stk_err_set(err, -e, "%.100s: cannot %s: it cannot be written to", path, what);
    case EUCLEAN:
        return stk_err_set(err, -e,
                           "%.160s is damaged (%s): restore a backup from before that (stoker "
                           "store restore FILE)",
                           path, say_damage(db, sqlite3_errmsg(db), words, sizeof(words)));
    case EBUSY:
        return stk_err_set(err, -e, "%.100s: cannot %s: in use by another program", path, what);
    case EIO:
        return stk_err_set(err, -e, "%.100s: cannot %s: %.60s%s%.40s", path, what,
                           sqlite3_errmsg(db), sys ? ": " : "", sys ? strerror(sys) : "");
    default:
        return stk_err_set(err, -e, "%.100s: cannot %s: %s", path, what, strerror(e));
    }
}

static int fail(struct stk_store *st, int rc, const char *what, struct stk_err *err)
{
    struct stk_err why;
    int e = stk_db_error(st->db, rc, st->path, what, &why);

    if (e == -EUCLEAN)
        (void)stk_db_damaged(st, sqlite3_errmsg(st->db), &why);
    if (st->in_txn && !st->failed && e != -EEXIST && e != -EFBIG && e != -ECANCELED) {
        st->failed = e;
        st->why = why;
    }
    if (e == -ENOSPC)
        st->tight = TIGHT_COMMITS;
    return stk_err_set(err, e, "%s", why.text);
}

static int prepare(struct stk_store *st, const char *sql, unsigned flags, sqlite3_stmt **ret_stmt,
                   struct stk_err *err)
{
    int rc = sqlite3_prepare_v3(st->db, sql, -1, flags, ret_stmt, NULL);

    return rc == SQLITE_OK ? 0 : fail(st, rc, "use the store", err);
}

int stk_db_once(struct stk_store *st, const char *sql, sqlite3_stmt **ret_stmt, struct stk_err *err)
{
    return prepare(st, sql, 0, ret_stmt, err);
}

static int writable(const struct stk_store *st, struct stk_err *err)
{
    if (st->read_only)
        return stk_err_set(err, -EROFS, "the store was opened to be read only");
    if (!st->in_txn)
        return stk_err_set(err, -EPROTO, "the store is written in transactions only");
    return st->failed ? stk_err_set(err, st->failed, "%s", st->why.text) : 0;
}

int stk_db_change(struct stk_store *st, const char *sql, sqlite3_stmt **ret_stmt,
                  struct stk_err *err)
{
    int rc = writable(st, err);

    return rc < 0 ? rc : prepare(st, sql, 0, ret_stmt, err);
}

int stk_db_read(struct stk_store *st, enum stk_slot slot, const char *sql, sqlite3_stmt **ret_stmt,
                struct stk_err *err)
{
    int rc = 0;

    if (!st->stmt[slot])
        rc = prepare(st, sql, SQLITE_PREPARE_PERSISTENT, &st->stmt[slot], err);
    if (rc == 0)
        *ret_stmt = st->stmt[slot];
    return rc;
}

int stk_db_write(struct stk_store *st, enum stk_slot slot, const char *sql, sqlite3_stmt **ret_stmt,
                 struct stk_err *err)
{
    int rc = writable(st, err);

    return rc < 0 ? rc : stk_db_read(st, slot, sql, ret_stmt, err);
}

int stk_db_run(struct stk_store *st, sqlite3_stmt *stmt, const char *what, struct stk_err *err)
{
    int rc;

    errno = 0;
    rc = sqlite3_step(stmt);
    if (rc != SQLITE_DONE && rc != SQLITE_ROW) {
        rc = fail(st, rc, what, err);
        (void)sqlite3_reset(stmt);
        return rc;
    }
    (void)sqlite3_reset(stmt);
    return 0;
}

int stk_db_row(struct stk_store *st, sqlite3_stmt *stmt, const char *what, struct stk_err *err)
{
    int rc;

    errno = 0;
    rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : fail(st, rc, what, err);
}

int stk_db_exec(struct stk_store *st, const char *sql, const char *what, struct stk_err *err)
{
    int rc;

    errno = 0;
    rc = sqlite3_exec(st->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : fail(st, rc, what, err);
}

int stk_db_int(struct stk_store *st, const char *sql, int64_t none, int64_t *ret_value,
               struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_once(st, sql, &s, err);

    if (rc < 0)
        return rc;
    rc = stk_db_row(st, s, "read", err);
    if (rc >= 0)
        *ret_value =
            rc && sqlite3_column_type(s, 0) != SQLITE_NULL ? sqlite3_column_int64(s, 0) : none;
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : 0;
}

void stk_db_text(sqlite3_stmt *stmt, int i, const char *s)
{
    (void)sqlite3_bind_text(stmt, i, s ? s : "", -1, SQLITE_STATIC);
}

void stk_db_blob(sqlite3_stmt *stmt, int i, const void *bytes, size_t len)
{
    /* no bytes are an empty BLOB, not NULL */
    (void)sqlite3_bind_blob64(stmt, i, len ? bytes : "", len, SQLITE_STATIC);
}

const char *stk_db_str(sqlite3_stmt *stmt, int i)
{
    const unsigned char *s = sqlite3_column_text(stmt, i);

    return s ? (const char *)s : "";
}

uint32_t stk_db_u32(sqlite3_stmt *stmt, int i)
{
    int64_t v = sqlite3_column_int64(stmt, i);

    return v < 0 ? 0 : v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

int stk_db_copy(sqlite3_stmt *stmt, int i, char **ret_bytes, size_t *ret_len)
{
    const void *from = sqlite3_column_blob(stmt, i);
    size_t len = (size_t)sqlite3_column_bytes(stmt, i);
    char *to = malloc(len + 1);

    if (!to || (len && !from)) {
        free(to);
        return -ENOMEM;
    }
    if (len)
        memcpy(to, from, len);
    to[len] = '\0';
    *ret_bytes = to;
    *ret_len = len;
    return 0;
}

bool stk_db_fits(const char *s)
{
    return !s || strnlen(s, STK_STORE_MAX_TEXT + 1) <= STK_STORE_MAX_TEXT;
}

/* The WAL must not take the room that copying it needs. */
static bool little_room(const struct stk_store *st)
{
    struct statvfs v;

    return st->wal_pages > TIGHT_PAGES / 2 && fstatvfs(st->dir_fd, &v) == 0 &&
           v.f_bavail * v.f_frsize / STK_STORE_PAGE_BYTES < 4 * (uint64_t)st->wal_pages;
}

void stk_store_idle(struct stk_store *st)
{
    int mode = st->tight > 0 && st->wal_pages > TIGHT_PAGES ? SQLITE_CHECKPOINT_TRUNCATE
                                                            : SQLITE_CHECKPOINT_PASSIVE;

    if (st->in_txn || (st->wal_pages < CHECKPOINT_PAGES && st->tight == 0 && !little_room(st)))
        return;
    /* A failure is no harm: the WAL stays, and the next commit brings us here again. A reader that
     * is in the way is not waited for. */
    (void)sqlite3_busy_timeout(st->db, 0);
    stk_guard_checkpoint(st, mode);
    (void)sqlite3_busy_timeout(st->db, STK_STORE_BUSY_MS);
    st->wal_pages = 0;
    st->tight -= st->tight > 0;
}

int stk_store_begin(struct stk_store *st, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc;

    if (st->read_only)
        return stk_err_set(err, -EROFS, "the store was opened to be read only");
    if (st->in_txn)
        return stk_err_set(err, -EPROTO, "the store is in a transaction already");
    stk_store_idle(st);
    if (st->damage.text[0] != '\0')
        return stk_err_set(err, -EUCLEAN, "%s", st->damage.text);
    rc = stk_db_read(st, STK_SLOT_BEGIN, "BEGIN IMMEDIATE", &s, err);
    if (rc == 0)
        rc = stk_db_run(st, s, "begin a transaction", err);
    if (rc < 0)
        return rc;
    st->in_txn = true;
    st->failed = 0;
    st->begin_seq = st->next_seq;
    return 0;
}

void stk_store_rollback(struct stk_store *st)
{
    if (!st->in_txn)
        return;
    if (!sqlite3_get_autocommit(st->db)) /* else SQLite has done it */
        (void)sqlite3_exec(st->db, "ROLLBACK", NULL, NULL, NULL);
    st->next_seq = st->begin_seq;
    st->in_txn = false;
    st->failed = 0;
}

int stk_store_commit(struct stk_store *st, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = writable(st, err);

    if (rc == 0)
        rc = stk_db_read(st, STK_SLOT_COMMIT, "COMMIT", &s, err);
    if (rc == 0)
        rc = stk_db_run(st, s, "commit", err);
    if (rc < 0)
        stk_store_rollback(st);
    else
        st->in_txn = false;
    if (rc == 0)
        stk_guard_commit(st);
    return rc;
}
