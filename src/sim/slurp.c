/* SPDX-License-Identifier: Apache-2.0 */
/* slurp.c - reads a file, a pipe or a .gz whole.
 *
 * read() and not mmap(): a mapped file that someone truncates kills the reader, and copying is a
 * small part of parsing. Compression is told from the first bytes, not from the name. Both sizes
 * are bounded, so that a pipe that never ends or a small file that unpacks to terabytes gets a
 * sentence.
 */
#include "sim/slurp.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define FIRST_BYTES 65536u

struct text {
    char *s; /* room for 'cap' bytes and a NUL */
    size_t len, cap;
};

static int too_big(const char *path, struct stk_err *err)
{
    return stk_err_set(err, -EFBIG, "%s: larger than %" PRIu64 " GiB", path, STK_SLURP_MAX >> 30);
}

static int reserve(struct text *t, size_t cap)
{
    char *s = realloc(t->s, cap + 1);

    if (!s)
        return -ENOMEM;
    t->s = s;
    t->cap = cap;
    return 0;
}

static int read_fd(int fd, struct text *t, const char *path, struct stk_err *err)
{
    struct stat st;
    size_t cap = FIRST_BYTES;

    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        if ((uint64_t)st.st_size > STK_SLURP_MAX)
            return too_big(path, err);
        cap = (size_t)st.st_size + 1; /* one more, so that the end is seen without growing */
    }
    for (;;) {
        ssize_t n;

        if (t->len == t->cap && reserve(t, t->cap ? t->cap * 2 : cap) < 0)
            return stk_err_set(err, -ENOMEM, "%s: out of memory", path);
        n = read(fd, t->s + t->len, t->cap - t->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return stk_err_set(err, -errno, "%s: %s", path, strerror(errno));
        if (n == 0)
            return 0;
        t->len += (size_t)n;
        if (t->len > STK_SLURP_MAX)
            return too_big(path, err);
    }
}

/* Unpacks until 'z' has read all of its input; several gzip members in a row are one text. */
static int inflate_all(z_stream *z, const struct text *packed, struct text *t, const char *path,
                       struct stk_err *err)
{
    size_t taken = 0;
    int rc = Z_OK;

    while (rc != Z_STREAM_END || taken < packed->len) {
        size_t give = packed->len - taken, room;

        if (rc == Z_STREAM_END && inflateReset(z) != Z_OK)
            return stk_err_set(err, -EINVAL, "%s: cannot unpack", path);
        if (t->len == t->cap && reserve(t, t->cap ? t->cap * 2 : FIRST_BYTES) < 0)
            return stk_err_set(err, -ENOMEM, "%s: out of memory", path);
        room = t->cap - t->len;
        give = give < (1u << 30) ? give : (1u << 30);
        room = room < (1u << 30) ? room : (1u << 30);
        z->next_in = (Bytef *)packed->s + taken;
        z->avail_in = (uInt)give;
        z->next_out = (Bytef *)t->s + t->len;
        z->avail_out = (uInt)room;
        rc = inflate(z, Z_NO_FLUSH);
        if (rc != Z_OK && rc != Z_STREAM_END)
            return stk_err_set(err, -EINVAL, "%s: damaged or cut short gzip data", path);
        taken += give - z->avail_in;
        t->len += room - z->avail_out;
        if (t->len > STK_SLURP_MAX)
            return too_big(path, err);
    }
    return 0;
}

static int unpack(struct text *t, const char *path, struct stk_err *err)
{
    struct text out = {NULL, 0, 0};
    z_stream z;
    int rc;

    memset(&z, 0, sizeof(z));
    if (inflateInit2(&z, 15 + 16) != Z_OK) /* largest window, gzip wrapper */
        return stk_err_set(err, -ENOMEM, "%s: out of memory", path);
    rc = inflate_all(&z, t, &out, path, err);
    inflateEnd(&z);
    if (rc < 0) {
        free(out.s);
        return rc;
    }
    free(t->s);
    *t = out;
    return 0;
}

static bool is_gzip(const struct text *t)
{
    return t->len > 2 && memcmp(t->s, "\x1f\x8b", 2) == 0;
}

int stk_slurp(const char *path, char **ret_data, size_t *ret_len, struct stk_err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    struct text t = {NULL, 0, 0};
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    int rc;

    if (fd < 0)
        return stk_err_set(err, -errno, "%s: %s", path, strerror(errno));
    rc = read_fd(fd, &t, is_stdin ? "standard input" : path, err);
    if (!is_stdin)
        (void)close(fd);
    if (rc == 0 && is_gzip(&t))
        rc = unpack(&t, path, err);
    if (rc < 0) {
        free(t.s);
        return rc;
    }
    assert(t.s); /* even an empty file has room for the NUL */
    t.s[t.len] = '\0';
    *ret_data = t.s;
    *ret_len = t.len;
    return 0;
}
