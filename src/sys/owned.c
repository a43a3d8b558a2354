/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/owned.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_one(const char *path, struct stk_err *err)
{
    struct stat st;
    bool writable;

    if (stat(path, &st) < 0 || S_ISCHR(st.st_mode))
        return 0;
    writable = (st.st_mode & 002) || ((st.st_mode & 020) && st.st_gid != 0);
    if (S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX))
        writable = false;
    if (st.st_uid == 0 && !writable)
        return 0;
    return stk_err_set(
        err, -EPERM, "others than root may change %.90s (owner %u, mode %04o); run: %s %.90s", path,
        st.st_uid, st.st_mode & 07777, st.st_uid != 0 ? "chown root:root" : "chmod go-w", path);
}

/* The path and everything above it; it begins with a slash. */
static int check_up(const char *path, struct stk_err *err)
{
    char at[PATH_MAX];
    char *slash;
    int rc;

    (void)snprintf(at, sizeof(at), "%s", path);
    rc = check_one(at, err);
    while (rc == 0 && (slash = strrchr(at, '/')) != NULL) {
        slash[slash == at] = '\0';
        rc = check_one(at, err);
        if (slash == at)
            break;
    }
    return rc;
}

int stk_owned_check(const char *path, struct stk_err *err)
{
    char real[PATH_MAX], whole[PATH_MAX], here[PATH_MAX] = "";
    int n, rc;

    if (geteuid() != 0 || !realpath(path, real))
        return 0;
    if (path[0] != '/' && !getcwd(here, sizeof(here)))
        return stk_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
    n = snprintf(whole, sizeof(whole), "%s%s%s", here, path[0] == '/' ? "" : "/", path);
    if (n < 0 || (size_t)n >= sizeof(whole))
        return stk_err_set(err, -ENAMETOOLONG, "%.200s...: the path is too long", path);
    rc = check_up(real, err);
    return rc < 0 ? rc : check_up(whole, err); /* links on the way to it, too */
}
