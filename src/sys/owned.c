/* SPDX-License-Identifier: Apache-2.0 */
/* owned.c - a path is walked by hand.
 *
 * The kernel would follow links of anybody, and a path that was checked may lead elsewhere when it
 * is opened. So each folder is opened from the one before it without following links, is checked by
 * its descriptor, and links are read and walked here. Names in a folder that passed can be changed
 * by root alone, or (sticky bit) by their owner, who is checked next.
 */
#include "sys/owned.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MAX_LINKS 40u

struct walk {
    const char *asked;   /* the path as it was given */
    int dir;             /* the folder that was reached; O_PATH */
    char at[PATH_MAX];   /* its path, without links */
    char rest[PATH_MAX]; /* what is left of the path */
    unsigned links;
    int file; /* what was opened at the end; -1: nothing yet */
};

static int fail_walk(const struct walk *w, int rc, struct stk_err *err)
{
    return stk_err_set(err, rc, "%.200s: %s", w->asked, strerror(-rc));
}

static int check_one(const char *path, const struct stat *st, struct stk_err *err)
{
    const bool sticky = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX);
    const bool link = S_ISLNK(st->st_mode); /* its mode has no meaning */
    const char *mend = link ? "chown -h root:root" : "chown root:root";

    if (S_ISCHR(st->st_mode) || (st->st_uid == 0 && (sticky || link || !(st->st_mode & 022))))
        return 0;
    return stk_err_set(err, -EPERM,
                       "others than root may change %s%.90s (owner %u, mode %04o); run: %s %.90s",
                       link ? "the link " : "", path, st->st_uid, st->st_mode & 07777,
                       st->st_uid != 0 ? mend : "chmod go-w", path);
}

/* The next name of the path; "" at its end. */
static int cut_name(struct walk *w, char *name)
{
    const char *from = w->rest + strspn(w->rest, "/");
    const size_t len = strcspn(from, "/");

    if (len > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(name, from, len);
    name[len] = '\0';
    from += len;
    from += strspn(from, "/");
    memmove(w->rest, from, strlen(from) + 1);
    return 0;
}

static int join_path(const struct walk *w, const char *name, char *path)
{
    int n;

    if (strcmp(name, "..") == 0) {
        (void)snprintf(path, PATH_MAX, "%s", w->at);
        *(strrchr(path, '/') + (strrchr(path, '/') == path)) = '\0';
        return 0;
    }
    n = snprintf(path, PATH_MAX, "%s/%s", w->at[1] ? w->at : "", name);
    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int open_root(struct walk *w, struct stk_err *err)
{
    struct stat st;

    if (w->dir >= 0)
        (void)close(w->dir);
    w->dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(w->at, sizeof(w->at), "/");
    if (w->dir < 0 || fstat(w->dir, &st) < 0)
        return fail_walk(w, -errno, err);
    return check_one("/", &st, err);
}

static int open_file(struct walk *w, const char *name, const char *path, int flags,
                     struct stk_err *err)
{
    struct stat st;

    w->file = openat(w->dir, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | flags);
    if (w->file < 0 || fstat(w->file, &st) < 0)
        return fail_walk(w, -errno, err);
    return check_one(path, &st, err);
}

/* What a link of root leads to is walked next. Links in /proc/self/fd lead to files that this
 * process was started with, which may have no path. */
static int follow_link(struct walk *w, int link, const char *name, const char *path,
                       struct stk_err *err)
{
    char target[PATH_MAX], rest[PATH_MAX];
    struct statfs fs;
    ssize_t n;

    if (!w->rest[0] && fstatfs(w->dir, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC)
        return open_file(w, name, path, 0, err);
    n = readlinkat(link, "", target, sizeof(target) - 1);
    if (n < 0 || ++w->links > MAX_LINKS)
        return fail_walk(w, n < 0 ? -errno : -ELOOP, err);
    target[n] = '\0';
    (void)memcpy(rest, w->rest, sizeof(rest));
    if ((size_t)snprintf(w->rest, sizeof(w->rest), "%s/%s", target, rest) >= sizeof(w->rest))
        return fail_walk(w, -ENAMETOOLONG, err);
    return target[0] == '/' ? open_root(w, err) : 0;
}

static int walk_name(struct walk *w, const char *name, struct stk_err *err)
{
    char path[PATH_MAX];
    struct stat st = {0};
    int fd = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc = fd < 0 ? -errno : 0;

    rc = rc < 0 ? rc : join_path(w, name, path);
    if (rc == 0 && fstat(fd, &st) < 0)
        rc = -errno;
    if (rc < 0)
        rc = fail_walk(w, rc, err);
    else
        rc = check_one(path, &st, err);
    if (rc == 0 && S_ISDIR(st.st_mode)) {
        (void)close(w->dir);
        w->dir = fd;
        (void)memcpy(w->at, path, sizeof(path));
        return 0;
    }
    if (rc == 0 && S_ISLNK(st.st_mode))
        rc = follow_link(w, fd, name, path, err);
    else if (rc == 0)
        rc = w->rest[0] ? fail_walk(w, -ENOTDIR, err) : open_file(w, name, path, O_NOFOLLOW, err);
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

static int walk_path(struct walk *w, struct stk_err *err)
{
    char name[NAME_MAX + 1];
    int rc = open_root(w, err);

    while (rc == 0 && w->file < 0) {
        rc = cut_name(w, name);
        if (rc == 0 && !name[0])
            rc = -EISDIR;
        if (rc < 0)
            return fail_walk(w, rc, err);
        if (strcmp(name, ".") != 0)
            rc = walk_name(w, name, err);
    }
    return rc;
}

int stk_owned_open(const char *path, struct stk_err *err)
{
    struct walk w = {.asked = path, .dir = -1, .file = -1};
    char here[PATH_MAX] = "";
    int rc;

    if (geteuid() != 0) {
        w.file = open(path, O_RDONLY | O_CLOEXEC);
        return w.file < 0 ? fail_walk(&w, -errno, err) : w.file;
    }
    if (path[0] != '/' && !getcwd(here, sizeof(here)))
        return fail_walk(&w, -errno, err);
    if ((size_t)snprintf(w.rest, sizeof(w.rest), "%s/%s", here, path) >= sizeof(w.rest))
        return fail_walk(&w, -ENAMETOOLONG, err);
    rc = walk_path(&w, err);
    if (w.dir >= 0)
        (void)close(w.dir);
    if (rc < 0 && w.file >= 0)
        (void)close(w.file);
    return rc < 0 ? rc : w.file;
}
