/* SPDX-License-Identifier: Apache-2.0 */
/* backup.c - copying the store out, and putting a copy in its place.
 *
 * A restore copies first, checks the copy (it is what will be used), and only then renames. The old
 * file goes aside before its WAL does: in between there is a WAL without a file, which opening
 * refuses; the other way round there would be a file that has silently lost its last commits.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/copy.h"
#include "store/db.h"
#include "store/dir.h"
#include "store/guard.h"
#include "store/pagesum.h"
#include "store/schema.h"

#define RESTORE_FILE STK_STORE_FILE ".restore"
#define OLD_FILE STK_STORE_FILE ".replaced"

int stk_store_backup(struct stk_store *st, const char *path, stk_tick_fn tick, void *ctx,
                     struct stk_err *err)
{
    int rc;

    if (st->in_txn)
        return stk_err_set(err, -EPROTO, "a backup cannot be made inside a transaction");
    rc = stk_copy(st->db, path, false, tick, ctx, err);
    return rc == -EUCLEAN ? stk_db_damaged(st, sqlite3_errmsg(st->db), err) : rc;
}

static int number_of(sqlite3 *db, const char *sql, int *ret_value)
{
    sqlite3_stmt *s;
    int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);

    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        *ret_value = sqlite3_column_int(s, 0);
    (void)sqlite3_finalize(s);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int integrity(sqlite3 *db, const char *path, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = sqlite3_prepare_v2(db, "PRAGMA integrity_check(1)", -1, &s, NULL);

    if (rc != SQLITE_OK)
        return stk_db_error(db, rc, path, "check it", err);
    rc = sqlite3_step(s);
    if (rc != SQLITE_ROW)
        rc = stk_db_error(db, rc, path, "check it", err);
    else if (strcmp(stk_db_str(s, 0), "ok") != 0)
        rc = stk_err_set(err, -EUCLEAN, "%.120s is damaged (%.80s): try an older backup", path,
                         stk_db_str(s, 0));
    else
        rc = 0;
    (void)sqlite3_finalize(s);
    return rc;
}

/* Is it a store, of a version we know, and whole? 'path' is for the sentence. */
static int validate(sqlite3 *db, const char *path, struct stk_err *err)
{
    int app = 0, version = 0, rc = number_of(db, "PRAGMA application_id", &app);

    if (rc == SQLITE_OK)
        rc = number_of(db, "PRAGMA user_version", &version);
    if ((rc & 0xff) == SQLITE_NOTADB || (rc == SQLITE_OK && app != STK_SCHEMA_APPLICATION))
        return stk_err_set(err, -EINVAL, "%.120s is not a backup of a stoker store", path);
    if (rc != SQLITE_OK)
        return stk_db_error(db, rc, path, "read it", err);
    if (version < 1 || version > stk_schema.n)
        return stk_err_set(err, -EPROTONOSUPPORT,
                           "%.120s was made by a newer stoker (schema %d, this one knows %d)", path,
                           version, stk_schema.n);
    if (version >= STK_SCHEMA_SUMS && !stk_pagesum_has(db))
        return stk_err_set(err, -EUCLEAN,
                           "%.120s is damaged (its header says that pages have no checksums): try "
                           "an older backup",
                           path);
    return integrity(db, path, err);
}

static int open_read(const char *path, const char *shown, sqlite3 **ret_db, struct stk_err *err)
{
    int rc = sqlite3_open_v2(path, ret_db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX,
                             stk_pagesum_vfs());

    if (rc == SQLITE_OK)
        return 0;
    rc = stk_db_error(*ret_db, rc, shown, "open it", err);
    (void)sqlite3_close(*ret_db);
    *ret_db = NULL;
    return rc;
}

/* Copies the backup into the state directory and looks at the copy. */
static int bring(const char *from, const char *to, stk_tick_fn tick, void *ctx, struct stk_err *err)
{
    sqlite3 *db = NULL;
    struct stat s;
    int app = 0, rc;

    if (stat(from, &s) < 0 || !S_ISREG(s.st_mode))
        return stk_err_set(err, errno == ENOENT ? -ENOENT : -EINVAL,
                           "%.120s is not there or not a regular file", from);
    rc = open_read(from, from, &db, err);
    if (rc < 0)
        return rc;
    rc = number_of(db, "PRAGMA application_id", &app);
    if (rc != SQLITE_OK && stk_pagesum_bad(db))
        rc = stk_db_error(db, SQLITE_IOERR_DATA, from, "read it", err);
    else if (s.st_size == 0 || rc != SQLITE_OK || app != STK_SCHEMA_APPLICATION)
        rc = stk_err_set(err, -EINVAL, "%.120s is not a backup of a stoker store", from);
    else
        rc = stk_copy(db, to, true, tick, ctx, err);
    (void)sqlite3_close(db);
    if (rc == 0)
        rc = open_read(to, from, &db, err);
    if (rc < 0)
        return rc;
    rc = validate(db, from, err);
    (void)sqlite3_close(db);
    return rc;
}

static int move(int dir_fd, const char *from, const char *to, struct stk_err *err)
{
    if (renameat(dir_fd, from, dir_fd, to) == 0 || errno == ENOENT)
        return 0;
    return stk_err_set(err, -errno, "%s: cannot rename it: %s", from, strerror(errno));
}

static int swap(int dir_fd, struct stk_err *err)
{
    int rc = 0;

    if (faccessat(dir_fd, STK_STORE_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        (void)unlinkat(dir_fd, OLD_FILE "-wal", 0);
        (void)unlinkat(dir_fd, OLD_FILE "-shm", 0);
        rc = move(dir_fd, STK_STORE_FILE, OLD_FILE, err);
    }
    if (rc == 0)
        rc = move(dir_fd, STK_STORE_FILE "-wal", OLD_FILE "-wal", err);
    if (rc == 0)
        (void)unlinkat(dir_fd, STK_STORE_FILE "-shm", 0);
    if (rc == 0)
        rc = move(dir_fd, RESTORE_FILE, STK_STORE_FILE, err);
    if (rc == 0)
        rc = stk_guard_reset(dir_fd, err);
    return rc == 0 ? stk_dir_sync(dir_fd, NULL, err) : rc;
}

int stk_store_restore(const char *dir, const char *path, stk_tick_fn tick, void *ctx,
                      struct stk_err *err)
{
    char to[PATH_MAX], *real = NULL;
    int dir_fd = -1, lock_fd = -1, n, rc = stk_dir_open(dir, true, &dir_fd, &real, err);

    if (rc < 0)
        return rc;
    rc = stk_dir_lock(dir_fd, real, &lock_fd, err);
    n = snprintf(to, sizeof(to), "%s/" RESTORE_FILE, real);
    if (rc == 0 && (n < 0 || (size_t)n >= sizeof(to)))
        rc = stk_err_set(err, -ENAMETOOLONG, "the state directory's name is too long");
    if (rc == 0) {
        rc = bring(path, to, tick, ctx, err);
        if (rc == 0)
            rc = swap(dir_fd, err);
        if (rc < 0)
            (void)unlinkat(dir_fd, RESTORE_FILE, 0);
    }
    if (lock_fd >= 0)
        (void)close(lock_fd);
    (void)close(dir_fd);
    free(real);
    return rc;
}
