/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/daemon.h"

char *stk_daemon_socket_path(const char *state)
{
    const char *xdg = getenv("XDG_RUNTIME_DIR");
    char *path = NULL;
    int n;

    if (geteuid() == 0)
        return strdup("/run/stoker/stoker.sock");
    if (xdg && xdg[0] == '/')
        n = asprintf(&path, "%s/stoker.sock", xdg);
    else
        n = asprintf(&path, "%s/stoker.sock", state);
    return n < 0 ? NULL : path;
}

char *stk_daemon_config_path(void)
{
    const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");
    char *path = NULL;
    int n;

    if (geteuid() == 0)
        n = asprintf(&path, "/etc/stoker/stoker.yaml");
    else if (xdg && xdg[0] == '/')
        n = asprintf(&path, "%s/stoker/stoker.yaml", xdg);
    else
        n = asprintf(&path, "%s/.config/stoker/stoker.yaml", home && home[0] == '/' ? home : "");
    if (n < 0 || access(path, F_OK) < 0) {
        free(n < 0 ? NULL : path);
        return NULL;
    }
    return path;
}

int stk_daemon_program(const char *name, char *buf, size_t size, struct stk_err *err)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    self[n > 0 ? n : 0] = '\0';
    slash = strrchr(self, '/');
    if (!slash)
        return stk_err_set(err, -ENOENT, "cannot find %s: /proc is not there", name);
    *slash = '\0';
    if ((size_t)snprintf(buf, size, "%s/%s", self, name) < size && access(buf, X_OK) == 0)
        return 0;
    if ((size_t)snprintf(buf, size, "%s/../libexec/stoker/%s", self, name) < size &&
        access(buf, X_OK) == 0)
        return 0;
    buf[0] = '\0';
    return stk_err_set(err, -ENOENT, "cannot find %s in %.100s or its ../libexec/stoker", name,
                       self);
}

int stk_daemon_make_folder(const char *path, unsigned mode, struct stk_err *err)
{
    char copy[4096];

    if (path[0] != '/' || strlen(path) >= sizeof(copy))
        return stk_err_set(err, -EINVAL, "the folder's path must begin with /: %.150s", path);
    (void)snprintf(copy, sizeof(copy), "%s", path);
    for (char *p = copy + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            if (mkdir(copy, 0755) < 0 && errno != EEXIST)
                return stk_err_set(err, -errno, "cannot make %.150s: %s", copy, strerror(errno));
            *p = '/';
        }
    if (mkdir(copy, mode) < 0 && errno != EEXIST)
        return stk_err_set(err, -errno, "cannot make %.150s: %s", copy, strerror(errno));
    return 0;
}
