/* SPDX-License-Identifier: Apache-2.0 */
/* secrets.c - words that only the job's own processes may see. They are read by the task itself, as
 * the user, and go nowhere but into its environment. A file that others could read or that belongs
 * to somebody else is refused: it is no secret. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/env.h"
#include "shim/shim.h"

#define MAX_SECRET 65536

static int check(const struct stk_launch *l, const char *name, const struct stat *st,
                 struct stk_err *err)
{
    if (!S_ISREG(st->st_mode))
        return stk_err_set(err, -EINVAL, "secret %s: its file is not a regular file", name);
    if (st->st_uid != l->uid && st->st_uid != 0)
        return stk_err_set(err, -EPERM, "secret %s: its file belongs to somebody else", name);
    if (st->st_mode & 077)
        return stk_err_set(err, -EPERM, "secret %s: others may read its file; chmod 600 it", name);
    if (st->st_size > MAX_SECRET)
        return stk_err_set(err, -EFBIG, "secret %s: its file is larger than %d bytes", name,
                           MAX_SECRET);
    return 0;
}

static int read_whole(int fd, char *buf, size_t size)
{
    size_t have = 0;

    while (have < size - 1) {
        ssize_t n = read(fd, buf + have, size - 1 - have);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            break;
        have += n > 0 ? (size_t)n : 0;
    }
    if (memchr(buf, 0, have))
        return -EILSEQ;
    while (have > 0 && (buf[have - 1] == '\n' || buf[have - 1] == '\r'))
        have--; /* editors end files with a newline; it is not part of the word */
    buf[have] = 0;
    return 0;
}

static int one(const struct stk_launch *l, struct stk_envs *e, const char *name, const char *path,
               struct stk_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW), rc;
    char *buf = NULL;
    struct stat st;

    if (fd < 0)
        return stk_err_set(err, -errno, "secret %s: cannot read its file: %s", name,
                           strerror(errno));
    rc = fstat(fd, &st) < 0 ? -errno : check(l, name, &st, err);
    if (rc == 0) {
        buf = malloc(MAX_SECRET + 1);
        rc = buf ? read_whole(fd, buf, MAX_SECRET + 1) : -ENOMEM;
        if (rc < 0)
            (void)stk_err_set(err, rc, "secret %s: cannot read its file: %s", name, strerror(-rc));
    }
    if (rc == 0 && buf)
        stk_env_put(e, name, buf);
    free(buf);
    (void)close(fd);
    return rc;
}

int stk_secrets_read(const struct stk_launch *l, struct stk_envs *e, struct stk_err *err)
{
    json_t *o = json_object_get(l->spec, "secrets");
    const char *name;
    json_t *v;
    int rc = 0;

    json_object_foreach(o, name, v)
    {
        const char *path = json_string_value(v);

        if (!path || path[0] != '/' || !*name || strchr(name, '='))
            return stk_err_set(err, -EINVAL, "secret %s: its file must be an absolute path", name);
        rc = one(l, e, name, path, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}
