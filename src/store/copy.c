/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - by SQLite's backup interface, some pages at a time.
 *
 * A read transaction is held on the source meanwhile, so that all pages are of one moment however
 * much is written; else every commit of the daemon would make the copy begin anew. The copy is
 * taken out of WAL mode: it is one file, and opening it leaves nothing beside it.
 */
#include "store/copy.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/db.h"
#include "store/pagesum.h"

#define PAGES 2048

static int pages(sqlite3 *to, sqlite3 *from, stk_tick_fn tick, void *ctx, int *ret_stopped)
{
    sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");
    int rc;

    if (!b)
        return sqlite3_extended_errcode(to);
    do {
        rc = sqlite3_backup_step(b, PAGES);
        if (tick && tick(ctx, (uint64_t)(sqlite3_backup_pagecount(b) - sqlite3_backup_remaining(b)),
                         (uint64_t)sqlite3_backup_pagecount(b))) {
            *ret_stopped = 1;
            break;
        }
    } while (rc == SQLITE_OK);
    rc = sqlite3_backup_finish(b);
    if (rc == SQLITE_OK && !*ret_stopped)
        rc = sqlite3_exec(to, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    return rc;
}

/* Fills the empty file 'path'. */
static int fill(sqlite3 *from, const char *path, stk_tick_fn tick, void *ctx, struct stk_err *err)
{
    sqlite3 *to = NULL;
    int stopped = 0, rc;

    rc = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, stk_pagesum_vfs());
    if (rc == SQLITE_OK && stk_pagesum_has(from))
        stk_pagesum_begin(to);
    if (rc == SQLITE_OK) /* the file has another name until it is whole: no journal is needed */
        rc = sqlite3_exec(to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL, NULL,
                          NULL);
    if (rc == SQLITE_OK)
        rc = pages(to, from, tick, ctx, &stopped);
    if (rc != SQLITE_OK && stk_pagesum_bad(from))
        rc = stk_db_error(from, SQLITE_IOERR_DATA, sqlite3_db_filename(from, "main"), "read", err);
    else if (rc != SQLITE_OK)
        rc = stk_db_error(to, rc, path, "copy the store", err);
    else if (stopped)
        rc = stk_err_set(err, -ECANCELED, "%.120s: the copy was stopped", path);
    (void)sqlite3_close(to);
    return rc;
}

static int sync_path(const char *path, int flags)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags), rc = fd < 0 || fsync(fd) < 0 ? -errno : 0;

    if (fd >= 0)
        (void)close(fd);
    return rc;
}

static int sync_parent(const char *path)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;

    if (!slash)
        return sync_path(".", O_DIRECTORY);
    if (len >= sizeof(dir))
        return -ENAMETOOLONG;
    memcpy(dir, path, len);
    dir[len] = '\0';
    return sync_path(len ? dir : "/", O_DIRECTORY);
}

static int finish(const char *partial, const char *path, bool replace)
{
    int rc = sync_path(partial, 0);

    if (rc < 0)
        return rc;
    /* link() never replaces; where a file system has no links, look first */
    if (replace ? rename(partial, path) < 0 : link(partial, path) < 0) {
        if (replace || errno == EEXIST)
            return -errno;
        if (access(path, F_OK) == 0)
            return -EEXIST;
        if (rename(partial, path) < 0)
            return -errno;
    } else if (!replace) {
        (void)unlink(partial);
    }
    return sync_parent(path);
}

int stk_copy(sqlite3 *from, const char *path, bool replace, stk_tick_fn tick, void *ctx,
             struct stk_err *err)
{
    char partial[PATH_MAX];
    bool mine = sqlite3_get_autocommit(from) != 0;
    struct stat s;
    int fd, rc = snprintf(partial, sizeof(partial), "%s.partial", path);

    if (rc < 0 || (size_t)rc >= sizeof(partial))
        return stk_err_set(err, -ENAMETOOLONG, "%.120s: the name is too long", path);
    if (!replace && lstat(path, &s) == 0)
        return stk_err_set(err, -EEXIST, "%.120s is there already: name a new file", path);
    (void)unlink(partial);
    fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return stk_err_set(err, -errno, "%.120s: %s", partial, strerror(errno));
    (void)close(fd);
    rc = SQLITE_OK;
    if (mine)
        rc = sqlite3_exec(from, "BEGIN; SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = fill(from, partial, tick, ctx, err);
    else
        rc = stk_db_error(from, rc, path, "read the store", err);
    if (mine && !sqlite3_get_autocommit(from))
        (void)sqlite3_exec(from, "ROLLBACK", NULL, NULL, NULL);
    if (rc == 0) {
        rc = finish(partial, path, replace);
        if (rc < 0)
            (void)stk_err_set(err, rc, "%.120s: %s", path, strerror(-rc));
    }
    if (rc < 0)
        (void)unlink(partial);
    return rc;
}
