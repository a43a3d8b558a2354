/* SPDX-License-Identifier: Apache-2.0 */
#include "lp/wire.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

bool stk_lp_put(int fd, const void *from, size_t len)
{
    const char *p = from;

    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

bool stk_lp_get(int fd, void *to, size_t len)
{
    char *p = to;

    while (len > 0) {
        ssize_t n = read(fd, p, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}
