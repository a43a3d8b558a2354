/* SPDX-License-Identifier: Apache-2.0 */
/* places.c - whether the folders of "state" and "socket" can be had, found out without changing
 * anything: a check names the line before a start fails half-way. */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/daemon.h"

/* Whether 'path' is the folder 'above', or lies in it. */
static bool is_in(const char *path, const char *above)
{
    size_t n = strlen(above);

    return strncmp(path, above, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Cuts the last name off; "/" stays. */
static void cut_last(char *path)
{
    char *slash = strrchr(path, '/');

    slash[slash == path ? 1 : 0] = '\0';
}

/* Whether the folder exists and we may put something there. -ENOENT: it does not exist. */
static int check_folder(const char *path, struct stk_err *err)
{
    struct statfs fs;
    struct stat st;

    if (stat(path, &st) < 0)
        return stk_err_set(err, -errno, "%.150s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return stk_err_set(err, -ENOTDIR, "%.150s is not a folder", path);
    if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) < 0)
        return stk_err_set(err, -errno, "user %u cannot write to %.150s: %s", geteuid(), path,
                           strerror(errno));
    if (statfs(path, &fs) == 0 && (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC))
        return stk_err_set(err, -EPERM, "nothing can be kept in %.150s, which is the kernel's",
                           path);
    return 0;
}

/* A folder that exists or can be made, with all that are missing above it. */
static int check_tree(const char *path, struct stk_err *err)
{
    char *at = strdup(path);
    int rc;

    if (!at)
        return stk_err_set(err, -ENOMEM, "out of memory");
    while ((rc = check_folder(at, err)) == -ENOENT)
        cut_last(at);
    free(at);
    return rc;
}

static int check_state(const char *path, struct stk_err *err)
{
    if (path[0] != '/')
        return stk_err_set(err, -EINVAL, "the folder's path must begin with /: %.150s", path);
    return check_tree(path, err);
}

/* The socket's folder is made, those above it are not, but for the folder of the state. */
static int check_socket(const char *path, const char *state, struct stk_err *err)
{
    char *at = strdup(path);
    struct stk_err why;
    int rc;

    if (!at)
        return stk_err_set(err, -ENOMEM, "out of memory");
    cut_last(at);
    rc = check_folder(at, err);
    if (rc == -ENOENT && !(state && is_in(state, at))) {
        cut_last(at);
        rc = check_folder(at, &why);
        if (rc < 0)
            (void)stk_err_set(err, rc, "the socket's folder cannot be made: %.180s", why.text);
    }
    rc = rc == -ENOENT && state && is_in(state, at) ? 0 : rc;
    free(at);
    return rc;
}

int stk_daemon_check_places(const struct stk_config *c, struct stk_err *err)
{
    struct stk_err why;

    if (c->state && check_state(c->state, &why) < 0)
        return stk_config_refuse(c, "state", why.text, err);
    if (c->socket && check_socket(c->socket, c->state, &why) < 0)
        return stk_config_refuse(c, "socket", why.text, err);
    return 0;
}
