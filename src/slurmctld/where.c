/* SPDX-License-Identifier: Apache-2.0 */
#include "slurmctld/where.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* The first entry that begins with 'key'; its length without the comma. */
static const char *entry(const char *params, const char *key, size_t *ret_len)
{
    while (params && *params) {
        size_t len = strcspn(params, ",");

        if (len >= strlen(key) && strncmp(params, key, strlen(key)) == 0) {
            *ret_len = len;
            return params;
        }
        params += len + (params[len] == ',');
    }
    return NULL;
}

bool stk_slurmctld_param(const char *params, const char *word)
{
    size_t len = 0;

    for (const char *at = params; (at = entry(at, word, &len)); at += len)
        if (len == strlen(word))
            return true;
    return false;
}

int stk_slurmctld_address(const char *params, const char *folder, struct sockaddr_un *ret)
{
    static const char key[] = "stoker_socket=";
    size_t len = 0;
    const char *said = entry(params, key, &len);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n;

    if (said)
        n = snprintf(a.sun_path, sizeof(a.sun_path), "%.*s", (int)(len - sizeof(key) + 1),
                     said + sizeof(key) - 1);
    else if (folder && *folder)
        n = snprintf(a.sun_path, sizeof(a.sun_path), "%s/stoker.sock", folder);
    else
        return -ENOENT;
    if (n <= 0)
        return -ENOENT;
    if ((size_t)n >= sizeof(a.sun_path))
        return -ENAMETOOLONG;
    *ret = a;
    return 0;
}
