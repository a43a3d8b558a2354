/* SPDX-License-Identifier: Apache-2.0 */
/* dir.c - the store holds what every user submitted and whom the daemon trusts, so nobody else may
 * write to its directory or put links in our way. The directory is checked once it is open; below
 * it only we can change names. Files are looked at without opening them: closing a descriptor of
 * the database would drop the locks that SQLite has on it in this process.
 *
 * The lock is flock() on a file of its own: SQLite's locks let several writers take turns, and two
 * schedulers on one store must not.
 */
#include "store/dir.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_TRIES 20
#define LOCK_PAUSE_NS 50000000
#define DIR_MODE 0711 /* users reach their sockets below it, and see nothing */

/* mkdir -p; what is missing above the last is for us alone. 1 when the last one is new. */
static int make_dirs(char *path)
{
    for (char *p = path + 1; *p != '\0'; p++) {
        int rc;

        if (*p != '/')
            continue;
        *p = '\0';
        rc = mkdir(path, 0700);
        *p = '/';
        if (rc < 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
            return -errno;
    }
    if (mkdir(path, DIR_MODE) == 0)
        return 1;
    return errno == EEXIST ? 0 : -errno;
}

static int check_dir(int fd, const char *path, struct stk_err *err)
{
    struct stat s;

    if (fstat(fd, &s) < 0)
        return stk_err_set(err, -errno, "%.120s: %s", path, strerror(errno));
    if (s.st_uid != geteuid())
        return stk_err_set(
            err, -EPERM,
            "%.120s belongs to uid %u, and this is uid %u: run as its owner, or name "
            "another state directory",
            path, s.st_uid, geteuid());
    if (s.st_mode & 022)
        return stk_err_set(err, -EPERM,
                           "%.120s can be written by others (mode %04o): chmod go-w it first", path,
                           s.st_mode & 07777);
    return 0;
}

int stk_dir_open(const char *path, bool create, int *ret_fd, char **ret_path, struct stk_err *err)
{
    char name[PATH_MAX], *real;
    size_t len = strnlen(path, sizeof(name));
    int fd, rc = 0;

    while (len > 1 && path[len - 1] == '/') /* "link/" would be followed */
        len--;
    if (len == 0 || len >= sizeof(name))
        return stk_err_set(err, -EINVAL, "the state directory's name is empty or too long");
    memcpy(name, path, len);
    name[len] = '\0';
    if (create)
        rc = make_dirs(name);
    if (rc < 0)
        return stk_err_set(err, rc, "cannot make the state directory %.120s: %s", name,
                           strerror(-rc));
    fd = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        struct stat s;

        rc = -errno;
        if (lstat(name, &s) == 0 && S_ISLNK(s.st_mode))
            return stk_err_set(err, -ELOOP,
                               "the state directory %.120s is a symbolic link: name the directory "
                               "itself",
                               name);
        return stk_err_set(err, rc, "state directory %.120s: %s", name, strerror(-rc));
    }
    if (rc == 1)
        (void)fchmod(fd, DIR_MODE); /* whatever the umask */
    rc = check_dir(fd, name, err);
    real = rc == 0 ? realpath(name, NULL) : NULL;
    if (rc == 0 && !real)
        rc = stk_err_set(err, -errno, "%.120s: %s", name, strerror(errno));
    if (rc < 0) {
        (void)close(fd);
        return rc;
    }
    *ret_fd = fd;
    *ret_path = real;
    return 0;
}

static int in_use(int fd, const char *dir, struct stk_err *err)
{
    char pid[16] = "";
    ssize_t n = pread(fd, pid, sizeof(pid) - 1, 0);
    long who = n > 0 ? strtol(pid, NULL, 10) : 0;

    if (who > 0)
        return stk_err_set(err, -EBUSY, "%.120s is in use by the process with pid %ld", dir, who);
    return stk_err_set(err, -EBUSY, "%.120s is in use by another process", dir);
}

bool stk_dir_in_use(int dir_fd)
{
    int fd = openat(dir_fd, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool used = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;

    if (fd >= 0)
        (void)close(fd);
    return used;
}

int stk_dir_lock(int dir_fd, const char *dir, int *ret_fd, struct stk_err *err)
{
    char pid[16];
    int fd = openat(dir_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), n, rc;

    if (fd < 0)
        return stk_err_set(err, -errno, "%.120s/lock: %s", dir, strerror(errno));
    /* A daemon that was killed leaves the lock to a child it was just making, for a moment. */
    for (int tries = 0; (rc = flock(fd, LOCK_EX | LOCK_NB)) < 0 && tries < LOCK_TRIES; tries++)
        if (errno != EINTR)
            (void)nanosleep(&(struct timespec){.tv_nsec = LOCK_PAUSE_NS}, NULL);
    if (rc < 0) {
        rc = errno == EWOULDBLOCK
                 ? in_use(fd, dir, err)
                 : stk_err_set(err, -errno, "%.120s/lock: %s", dir, strerror(errno));
        (void)close(fd);
        return rc;
    }
    n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    /* Only for the other's message: a disk too full for a pid is no reason to stop. */
    if (ftruncate(fd, 0) == 0 && pwrite(fd, pid, (size_t)n, 0) != n)
        (void)ftruncate(fd, 0);
    *ret_fd = fd;
    return 0;
}

int stk_dir_file(int dir_fd, const char *name, bool tighten, uint64_t *ret_size,
                 struct stk_err *err)
{
    struct stat s;

    if (fstatat(dir_fd, name, &s, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? -ENOENT
                               : stk_err_set(err, -errno, "%s: %s", name, strerror(errno));
    if (S_ISLNK(s.st_mode))
        return stk_err_set(err, -ELOOP, "%s is a symbolic link, which is not followed", name);
    if (!S_ISREG(s.st_mode))
        return stk_err_set(err, -EINVAL, "%s is not a regular file", name);
    if (s.st_uid != geteuid())
        return stk_err_set(err, -EPERM, "%s belongs to uid %u, and this is uid %u", name, s.st_uid,
                           geteuid());
    if (tighten && (s.st_mode & 07777) != 0600 && fchmodat(dir_fd, name, 0600, 0) < 0)
        return stk_err_set(err, -errno, "%s: cannot make it private: %s", name, strerror(errno));
    *ret_size = (uint64_t)s.st_size;
    return 0;
}

int stk_dir_sync(int dir_fd, const char *name, struct stk_err *err)
{
    int fd = name ? openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : dir_fd, rc = 0;

    if (fd < 0 || fsync(fd) < 0)
        rc = stk_err_set(err, -errno, "%s: %s", name ? name : "state directory", strerror(errno));
    if (name && fd >= 0)
        (void)close(fd);
    return rc;
}

int stk_dir_room(int dir_fd, const char *dir, uint64_t bytes, struct stk_err *err)
{
    int fd = openat(dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600), rc;

    if (fd < 0 && errno != ENOSPC && errno != EDQUOT)
        return 0; /* there are no such files here: the store itself will find out */
    rc = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)bytes);
    if (fd >= 0)
        (void)close(fd);
    if (rc != ENOSPC && rc != EDQUOT && rc != EFBIG)
        return 0;
    return stk_err_set(err, -ENOSPC, "%.160s: no space left (disk, quota or size limit)", dir);
}
