/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - finding, making, checking and closing the store.
 *
 * A new store is made under another name and renamed once it is whole and on the disk. So a file of
 * that name is never half made: one that is empty, or gone while its WAL is there, has lost
 * something and is refused instead of being made anew over what may be saved.
 *
 * The check when opening must not take longer with the years: a small file is checked whole, of a
 * large one only the tables from which the scheduler's state is made (their size is bounded by
 * pruning). SQLite checks the pages of the others as it reads them; `store check` reads them all.
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
#include "store/pages.h"
#include "store/pagesum.h"
#include "store/schema.h"

#define NEW_FILE STK_STORE_FILE ".new"
#define WAL_FILE STK_STORE_FILE "-wal"
#define CHECK_WHOLE_BYTES (INT64_C(128) << 20)

static int file_path(const struct stk_store *st, const char *name, char ret_path[PATH_MAX],
                     struct stk_err *err)
{
    int n = snprintf(ret_path, PATH_MAX, "%s/%s", st->dir, name);

    if (n < 0 || n >= PATH_MAX)
        return stk_err_set(err, -ENAMETOOLONG, "the state directory's name is too long");
    return 0;
}

/* Hardened: nothing in the file is run, and damage shows as an error as early as may be. */
static int connect_db(const struct stk_store *st, const char *name, int flags, sqlite3 **ret_db,
                      struct stk_err *err)
{
    char path[PATH_MAX];
    sqlite3 *db = NULL;
    int rc = file_path(st, name, path, err);

    if (rc < 0)
        return rc;
    rc = sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX,
                         stk_pagesum_vfs());
    if (rc == SQLITE_OK) {
        (void)sqlite3_extended_result_codes(db, 1);
        (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        (void)sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        (void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
        (void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
        rc = sqlite3_busy_timeout(db, STK_STORE_BUSY_MS);
    }
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, "PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY", NULL, NULL,
                          NULL);
    if (rc != SQLITE_OK) {
        rc = stk_db_error(db, rc, path, "open it", err);
        (void)sqlite3_close(db);
        return rc;
    }
    *ret_db = db;
    return 0;
}

static void drop_new(const struct stk_store *st)
{
    (void)unlinkat(st->dir_fd, NEW_FILE, 0);
    (void)unlinkat(st->dir_fd, NEW_FILE "-journal", 0);
}

static int make(struct stk_store *st, const struct stk_schema *schema, struct stk_err *err)
{
    char *id = sqlite3_mprintf(
        "PRAGMA page_size = %d; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = %d",
        STK_STORE_PAGE_BYTES, STK_SCHEMA_APPLICATION);
    sqlite3 *db = NULL;
    int fd, rc;

    drop_new(st);
    fd = openat(st->dir_fd, NEW_FILE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || !id) {
        rc = stk_err_set(err, -errno, "%.120s/" NEW_FILE ": %s", st->dir, strerror(errno));
        sqlite3_free(id);
        return rc;
    }
    (void)close(fd);
    rc = connect_db(st, NEW_FILE, SQLITE_OPEN_READWRITE, &db, err);
    if (rc == 0) {
        rc = schema->n >= STK_SCHEMA_SUMS ? stk_pagesum_reserve(db) : SQLITE_OK;
        if (rc == SQLITE_OK)
            rc = sqlite3_exec(db, id, NULL, NULL, NULL);
        rc = rc == SQLITE_OK ? stk_schema_apply(db, schema, 0, st->dir, err)
                             : stk_db_error(db, rc, st->dir, "make the store", err);
        (void)sqlite3_close(db);
    }
    sqlite3_free(id);
    if (rc == 0)
        rc = stk_dir_sync(st->dir_fd, NEW_FILE, err);
    if (rc == 0)
        rc = stk_guard_reset(st->dir_fd, err);
    if (rc == 0 && renameat(st->dir_fd, NEW_FILE, st->dir_fd, STK_STORE_FILE) < 0)
        rc = stk_err_set(err, -errno, "%.120s/" STK_STORE_FILE ": %s", st->dir, strerror(errno));
    if (rc == 0)
        rc = stk_dir_sync(st->dir_fd, NULL, err);
    if (rc < 0)
        drop_new(st);
    return rc;
}

/* Finds the file, or makes it. */
static int find(struct stk_store *st, const struct stk_schema *schema, int64_t *ret_size,
                struct stk_err *err)
{
    uint64_t size = 0, wal = 0;
    int rc = stk_dir_file(st->dir_fd, STK_STORE_FILE, !st->read_only, &size, err);
    int wal_rc = stk_dir_file(st->dir_fd, WAL_FILE, !st->read_only, &wal, err);

    if (wal_rc < 0 && wal_rc != -ENOENT)
        return wal_rc;
    if (rc == -ENOENT && wal)
        return stk_err_set(err, -EUCLEAN,
                           STK_STORE_FILE " is gone, but its " WAL_FILE " is there: restore a "
                                          "backup (stoker store restore FILE --state %s)",
                           st->dir);
    if (rc == -ENOENT && st->read_only)
        return stk_err_set(err, rc, "%.120s: there is no " STK_STORE_FILE " here", st->dir);
    if (rc == -ENOENT) {
        rc = stk_guard_may_make(st, err);
        return rc < 0 ? rc : make(st, schema, err);
    }
    if (rc < 0)
        return rc;
    if (size == 0)
        return stk_err_set(err, -EUCLEAN,
                           STK_STORE_FILE " is empty, which it never is when whole: restore a "
                                          "backup (stoker store restore FILE --state %s)",
                           st->dir);
    *ret_size = (int64_t)(size + wal);
    st->wal_pages = (int)(wal / STK_STORE_PAGE_BYTES);
    return 0;
}

/* Whose file it is, and of which version. */
static int identify(struct stk_store *st, const struct stk_schema *schema, int *ret_version,
                    struct stk_err *err)
{
    int64_t app = 0, version = 0;
    int rc = stk_db_int(st, "PRAGMA application_id", 0, &app, err);

    if (rc == 0)
        rc = stk_db_int(st, "PRAGMA user_version", 0, &version, err);
    if (rc < 0)
        return rc;
    if (app != STK_SCHEMA_APPLICATION)
        return stk_err_set(err, -EINVAL, "%.120s/" STK_STORE_FILE " is not a stoker store",
                           st->dir);
    if (version > schema->n)
        return stk_err_set(err, -EPROTONOSUPPORT,
                           "%.100s/" STK_STORE_FILE
                           " was made by a newer stoker (schema %lld, this one knows %d)",
                           st->dir, (long long)version, schema->n);
    if (version >= STK_SCHEMA_SUMS && !stk_pagesum_has(st->db))
        return stk_db_damaged(st, "its header says that pages have no checksums", err);
    if (stk_pagesum_has(st->db)) /* page 1 may be in the WAL, and the file's header damaged */
        stk_pagesum_begin(st->db);
    if (version < schema->n && st->read_only)
        return stk_err_set(err, -EPROTONOSUPPORT,
                           "%.80s/" STK_STORE_FILE
                           " was made by an older stoker (schema %lld, this one knows %d): the "
                           "daemon brings it forward when it starts",
                           st->dir, (long long)version, schema->n);
    *ret_version = (int)version;
    return 0;
}

static int quick_check(struct stk_store *st, const char *sql, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc = stk_db_once(st, sql, &s, err);

    if (rc < 0)
        return rc;
    rc = stk_db_row(st, s, "check it", err);
    if (rc == 1 && strcmp(stk_db_str(s, 0), "ok") != 0)
        rc = stk_db_damaged(st, stk_db_str(s, 0), err);
    (void)sqlite3_finalize(s);
    return rc < 0 ? rc : 0;
}

static int check(struct stk_store *st, int64_t size, struct stk_err *err)
{
    static const char *const vital[] = {"PRAGMA quick_check(meta)", "PRAGMA quick_check(snapshot)",
                                        "PRAGMA quick_check(journal)", "PRAGMA quick_check(token)",
                                        "PRAGMA quick_check(request)"};
    int rc = 0;

    if (size <= CHECK_WHOLE_BYTES)
        return quick_check(st, "PRAGMA quick_check(1)", err);
    for (size_t i = 0; i < sizeof(vital) / sizeof(*vital) && rc == 0; i++)
        rc = quick_check(st, vital[i], err);
    return rc;
}

static int migrate(struct stk_store *st, const struct stk_schema *schema, int from,
                   struct stk_err *err)
{
    char name[48], path[PATH_MAX];
    int rc;

    if (from == schema->n)
        return 0;
    (void)snprintf(name, sizeof(name), STK_STORE_FILE ".backup-v%d", from);
    rc = file_path(st, name, path, err);
    if (rc == 0)
        rc = stk_copy(st->db, path, true, NULL, NULL, err);
    if (rc == -EUCLEAN)
        return stk_db_damaged(st, sqlite3_errmsg(st->db), err);
    if (rc == 0 && schema->n >= STK_SCHEMA_SUMS)
        rc = stk_pages_convert(st, err);
    if (rc == 0)
        rc = stk_schema_apply(st->db, schema, from, st->dir, err);
    if (rc == 0)
        (void)snprintf(st->note, sizeof(st->note),
                       "the store was brought from schema %d to %d; as it was, it is in %s", from,
                       schema->n, name);
    return rc;
}

static int on_commit(void *ctx, sqlite3 *db, const char *name, int pages)
{
    struct stk_store *st = ctx;

    (void)db;
    (void)name;
    st->wal_pages = pages;
    st->wal_frames = (uint32_t)pages;
    st->wal_grew = true;
    return SQLITE_OK;
}

/* WAL: a commit is one sequential write and one flush, and readers never stop the writer. */
static int settings(struct stk_store *st, struct stk_err *err)
{
    sqlite3_stmt *s;
    int rc;

    if (st->read_only)
        return stk_db_exec(st, "PRAGMA query_only = ON", "open it", err);
    rc = stk_db_once(st, "PRAGMA journal_mode = WAL", &s, err);
    if (rc < 0)
        return rc;
    rc = stk_db_row(st, s, "open it", err);
    if (rc == 1 && strcmp(stk_db_str(s, 0), "wal") != 0)
        rc = stk_err_set(err, -ENOTSUP,
                         "%.100s: its file system cannot hold the store (no shared memory: is it a "
                         "network file system?)",
                         st->dir);
    (void)sqlite3_finalize(s);
    if (rc < 0)
        return rc;
    (void)sqlite3_wal_hook(st->db, on_commit, st); /* instead of SQLite's own: stk_store_idle() */
    (void)sqlite3_db_config(st->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL); /* guard.h */
    return stk_db_exec(st,
                       "PRAGMA synchronous = FULL; PRAGMA foreign_keys = OFF;"
                       "PRAGMA cache_size = -65536; PRAGMA journal_size_limit = 67108864;"
                       "PRAGMA secure_delete = FAST",
                       "open it", err);
}

/* Event numbers go on from the newest, of the journal or of a snapshot. */
static int load_seq(struct stk_store *st, struct stk_err *err)
{
    int64_t last = 0;
    int rc = stk_db_int(st,
                        "SELECT max(coalesce((SELECT max(seq) FROM journal), 0),"
                        " coalesce((SELECT max(seq) FROM snapshot), 0))",
                        0, &last, err);

    if (rc == 0)
        st->next_seq = (uint64_t)last + 1;
    return rc;
}

/* Something that was acknowledged is missing: refused, unless that is accepted. Whoever only reads
 * is told; a daemon that runs meanwhile knows better, and nobody is told then. */
static int tolerate(struct stk_store *st, int rc, const struct stk_err *why, struct stk_err *err)
{
    struct stk_err told;

    if (rc == 0)
        return 0;
    if (rc != -EUCLEAN)
        return stk_err_set(err, rc, "%s", why->text);
    (void)stk_err_set(&told, rc, "%s: " STK_STORE_LOSS_ADVICE, why->text, st->dir, st->dir);
    if (!st->read_only && !st->accept)
        return stk_err_set(err, rc, "%s", told.text);
    if (!st->read_only)
        (void)snprintf(st->note, sizeof(st->note), "%s", why->text);
    else if (!stk_dir_in_use(st->dir_fd))
        (void)snprintf(st->note, sizeof(st->note), "%s", told.text);
    return 0;
}

static int connect_store(struct stk_store *st, const struct stk_schema *schema, int64_t *ret_size,
                         struct stk_err *err)
{
    struct stk_err why = {""};
    int rc = find(st, schema, ret_size, err);

    if (rc == 0)
        rc = connect_db(st, STK_STORE_FILE,
                        st->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE, &st->db, err);
    if (rc == 0 && st->accept)
        stk_pagesum_tolerate(st->db, true);
    return rc == 0 ? tolerate(st, stk_guard_check(st, &why), &why, err) : rc;
}

static int open_store(struct stk_store *st, const char *dir, const struct stk_schema *schema,
                      struct stk_err *err)
{
    struct stk_err why = {""};
    int64_t size = 0;
    int version = 0;
    int rc = stk_dir_open(dir, !st->read_only, &st->dir_fd, &st->dir, err);

    if (rc == 0)
        rc = file_path(st, STK_STORE_FILE, st->path, err);
    if (rc == 0 && !st->read_only)
        rc = stk_dir_lock(st->dir_fd, st->dir, &st->lock_fd, err);
    if (rc == 0)
        rc = connect_store(st, schema, &size, err);
    if (rc == 0)
        rc = identify(st, schema, &version, err);
    if (rc == 0 && !st->read_only)
        rc = stk_guard_begin(st, err);
    if (rc == 0)
        rc = settings(st, err);
    if (rc == 0 && !st->read_only && st->accept)
        rc = stk_pages_accept(st, err);
    if (rc == 0 && !st->read_only)
        rc = check(st, size, err);
    if (rc == 0 && !st->read_only)
        rc = migrate(st, schema, version, err);
    rc = rc == 0 ? load_seq(st, err) : rc;
    if (rc == 0)
        rc = tolerate(st, stk_guard_check_seq(st, &why), &why, err);
    if (rc == 0 && !st->read_only)
        stk_guard_start(st, schema->n);
    return rc;
}

int stk_store_open_schema(const char *dir, unsigned flags, const struct stk_schema *schema,
                          struct stk_store **ret_store, struct stk_err *err)
{
    struct stk_store *st = calloc(1, sizeof(*st));
    int rc;

    /* SQLite counts its memory under a lock unless told not to; refused, and no harm, the second
     * time. */
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    if (!st)
        return stk_err_set(err, -ENOMEM, "out of memory");
    st->dir_fd = st->lock_fd = st->ack_fd = st->wal_fd = -1;
    st->read_only = flags & STK_STORE_READ_ONLY;
    st->accept = flags & STK_STORE_ACCEPT;
    rc = open_store(st, dir, schema, err);
    if (rc < 0) {
        stk_store_close(st);
        return rc;
    }
    *ret_store = st;
    return 0;
}

int stk_store_open(const char *dir, unsigned flags, struct stk_store **ret_store,
                   struct stk_err *err)
{
    return stk_store_open_schema(dir, flags, &stk_schema, ret_store, err);
}

void stk_store_close(struct stk_store *st)
{
    if (!st)
        return;
    stk_store_rollback(st);
    for (int i = 0; i < STK_SLOT_MAX; i++)
        (void)sqlite3_finalize(st->stmt[i]);
    stk_guard_stop(st);
    (void)sqlite3_close(st->db);
    if (st->ack_fd >= 0)
        (void)close(st->ack_fd);
    if (st->wal_fd >= 0)
        (void)close(st->wal_fd);
    if (st->lock_fd >= 0)
        (void)close(st->lock_fd);
    if (st->dir_fd >= 0)
        (void)close(st->dir_fd);
    free(st->dir);
    free(st);
}

const char *stk_store_note(const struct stk_store *st)
{
    return st->note;
}

const char *stk_store_dir(const struct stk_store *st)
{
    return st->dir;
}

int stk_store_size(struct stk_store *st, uint64_t *ret_bytes, struct stk_err *err)
{
    int64_t pages = 0, unused = 0, bytes = 0;
    int rc = stk_db_int(st, "PRAGMA page_count", 0, &pages, err);

    if (rc == 0)
        rc = stk_db_int(st, "PRAGMA freelist_count", 0, &unused, err);
    if (rc == 0)
        rc = stk_db_int(st, "PRAGMA page_size", 0, &bytes, err);
    if (rc == 0)
        *ret_bytes = (uint64_t)((pages - unused) * bytes);
    return rc;
}

uint64_t stk_store_wal_bytes(const struct stk_store *st)
{
    struct stat s;

    return fstatat(st->dir_fd, WAL_FILE, &s, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)s.st_size : 0;
}
