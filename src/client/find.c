/* SPDX-License-Identifier: Apache-2.0 */
/* find.c - where the daemon's socket is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/client.h"

static const char *setting(const char *name)
{
    const char *v = getenv(name);

    return v && *v != '\0' ? v : NULL;
}

static bool there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The state folder's socket; false when no folder is known. */
static bool in_state(char *path, size_t size)
{
    const char *dir = setting("XDG_STATE_HOME");
    int n = -1;

    if (dir)
        n = snprintf(path, size, "%s/stoker/stoker.sock", dir);
    else if ((dir = setting("HOME")) != NULL)
        n = snprintf(path, size, "%s/.local/state/stoker/stoker.sock", dir);
    return n > 0 && (size_t)n < size;
}

static int keep(const char *path, char *ret, size_t size, struct stk_err *err)
{
    size_t n = strlen(path), max = sizeof(((struct sockaddr_un *)NULL)->sun_path);

    if (n >= max || n >= size)
        return stk_err_set(err, -EINVAL,
                           "the socket's path has %zu bytes, at most %zu are possible", n, max - 1);
    memcpy(ret, path, n + 1);
    return 0;
}

static int find_default(char *ret_path, size_t size, struct stk_err *err)
{
    const char *runtime = setting("XDG_RUNTIME_DIR");
    char user[4096] = "", state[4096] = "";

    if (there(STK_CLIENT_ROOT_SOCKET) || geteuid() == 0)
        return keep(STK_CLIENT_ROOT_SOCKET, ret_path, size, err);
    if (runtime && (size_t)snprintf(user, sizeof(user), "%s/stoker.sock", runtime) < sizeof(user) &&
        there(user))
        return keep(user, ret_path, size, err);
    if (in_state(state, sizeof(state)) && there(state))
        return keep(state, ret_path, size, err);
    if (stk_client_has_service(""))
        return keep(STK_CLIENT_ROOT_SOCKET, ret_path, size, err);
    return keep(*user ? user : *state ? state : STK_CLIENT_ROOT_SOCKET, ret_path, size, err);
}

int stk_client_find(const char *option, char *ret_path, size_t size, struct stk_err *err)
{
    if (!option)
        option = setting("STOKER_SOCKET");
    return option ? keep(option, ret_path, size, err) : find_default(ret_path, size, err);
}

bool stk_client_has_service(const char *root)
{
    static const char *const folders[] = {"/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"};
    bool found = false;

    for (size_t i = 0; !found && i < sizeof(folders) / sizeof(*folders); i++) {
        char path[4096];

        (void)snprintf(path, sizeof(path), "%s%s/systemd/system/stoker.service", root, folders[i]);
        found = there(path);
    }
    return found;
}

const char *stk_client_advice(const char *root, const char *path, char *buf, size_t size)
{
    const char *named = setting("STOKER_SOCKET");
    char own[256] = "";

    (void)find_default(own, sizeof(own), NULL);
    if (strcmp(path, STK_CLIENT_ROOT_SOCKET) == 0 && stk_client_has_service(root))
        (void)snprintf(buf, size,
                       "start the service with: systemctl start stoker (its state: systemctl "
                       "status stoker)");
    else if (strcmp(path, STK_CLIENT_ROOT_SOCKET) == 0)
        (void)snprintf(buf, size, "start one, as root, with: stoker serve");
    else if (strcmp(path, own) == 0)
        (void)snprintf(buf, size, "start one with: stoker serve");
    else
        (void)snprintf(buf, size, "start one there with: stoker serve --socket %.120s%s", path,
                       named && strcmp(path, named) == 0 ? " (STOKER_SOCKET names this place)"
                                                         : "");
    return buf;
}

const char *stk_client_escape(char *buf, size_t size, const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    size_t n = 0;

    for (; *text != '\0' && n + 4 <= size; text++)
        if (strchr(plain, *text))
            buf[n++] = *text;
        else
            n += (size_t)snprintf(buf + n, size - n, "%%%02X", (unsigned)(unsigned char)*text);
    buf[n] = '\0';
    return buf;
}
