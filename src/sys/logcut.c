/* SPDX-License-Identifier: Apache-2.0 */
/* logcut.c - see the header for what a cut log looks like.
 *
 * The line has two halves. The first ends at 'head' and never changes. The second, with the number,
 * is written into the text that will follow, and comes to lie at 'head' when the range between is
 * taken out (FALLOC_FL_COLLAPSE_RANGE: ext4, XFS). So readers see the file before or after,
 * and what others append meanwhile is not lost. Elsewhere the text is moved when the job is over.
 */
#include "sys/logcut.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define BEGIN "[stoker: the log reached its size limit, left out:"
#define ROOM 96               /* bytes that a half takes at most */
#define EDGE 4096             /* bytes beyond that in which the end of a line is looked for */
#define ALIGN UINT64_C(65536) /* no file system has larger blocks */
#define CHUNK ((size_t)1 << 18)

struct plan {
    int fd; /* readable, and not append-only */
    uint64_t head, cap, size;
    uint64_t at;   /* where the line begins */
    uint64_t from; /* text from here on stays; the second half is written there... */
    uint64_t next; /* ... up to here */
    uint64_t lost;
    bool first; /* there was no cut yet */
};

/* "12 bytes, from byte 34 on]": the two numbers, and how long that is; 0: it is something else. */
static size_t read_numbers(const char *text, uint64_t *ret_lost, uint64_t *ret_at)
{
    static const char middle[] = " bytes, from byte ", tail[] = " on]";
    char *end;

    errno = 0;
    *ret_lost = strtoull(text, &end, 10);
    if (strncmp(end, middle, sizeof(middle) - 1) != 0)
        return 0;
    *ret_at = strtoull(end + sizeof(middle) - 1, &end, 10);
    if (errno != 0 || strncmp(end, tail, sizeof(tail) - 1) != 0)
        return 0;
    return (size_t)(end - text) + sizeof(tail) - 1;
}

void stk_logcut_find(int fd, uint64_t head, struct stk_logcut *ret)
{
    char text[ROOM + EDGE + 8] = "", begin[sizeof(BEGIN)] = "";
    ssize_t n = pread(fd, text, sizeof(text) - 1, (off_t)head);
    uint64_t lost = 0, at = 0;
    const char *nl;
    size_t len;

    *ret = (struct stk_logcut){0};
    if (n <= 0 || text[0] < '0' || text[0] > '9')
        return;
    text[n] = '\0';
    nl = memchr(text, '\n', (size_t)n);
    len = nl ? read_numbers(text, &lost, &at) : 0;
    if (len == 0 || strspn(text + len, " ") != (size_t)(nl - text) - len)
        return;
    if (at >= head || head - at > ROOM + EDGE || lost == 0 || lost > INT64_MAX / 2 ||
        pread(fd, begin, sizeof(BEGIN) - 1, (off_t)at) != (ssize_t)sizeof(BEGIN) - 1 ||
        memcmp(begin, BEGIN, sizeof(BEGIN) - 1) != 0)
        return;
    *ret = (struct stk_logcut){.at = at, .next = head + (uint64_t)(nl - text) + 1, .lost = lost};
}

/* Where the line begins: after the last whole line that leaves room for it before 'head'. */
static int find_begin(struct plan *p)
{
    char text[EDGE];
    const uint64_t end = p->head - ROOM, begin = end > EDGE ? end - EDGE : 0;
    ssize_t n = pread(p->fd, text, (size_t)(end - begin), (off_t)begin);
    const char *nl;
    size_t k;

    if (n != (ssize_t)(end - begin))
        return -EIO;
    nl = memrchr(text, '\n', (size_t)n);
    for (k = nl ? (size_t)(nl - text) + 1 : (size_t)n - 4; !nl && (text[k] & 0xc0) == 0x80;)
        k--; /* not inside a character */
    p->at = begin + k;
    return 0;
}

/* The second half goes from 'from' to the end of a line. */
static int find_next(struct plan *p)
{
    char text[EDGE];
    ssize_t n = pread(p->fd, text, sizeof(text), (off_t)(p->from + ROOM));
    const char *nl = n > 0 ? memchr(text, '\n', (size_t)n) : NULL;
    size_t k = nl ? (size_t)(nl - text) + 1 : 0;

    if (n < 8)
        return -EIO;
    while (!nl && k < 4 && (text[k] & 0xc0) == 0x80)
        k++;
    p->next = p->from + ROOM + k;
    return 0;
}

static int make_plan(struct plan *p)
{
    struct stk_logcut was;
    int rc = 0;

    stk_logcut_find(p->fd, p->head, &was);
    p->first = was.lost == 0;
    p->at = was.at;
    if (p->first)
        rc = find_begin(p);
    p->from = (p->size - (p->cap - p->head) + ALIGN - 1) / ALIGN * ALIGN;
    if (p->from <= p->head || p->from + ROOM + EDGE > p->size)
        return -ERANGE;
    rc = rc < 0 ? rc : find_next(p);
    p->lost = stk_logcut_to_logical(&was, p->next) - p->at;
    return rc;
}

/* 'len' bytes at 'off': the text, spaces, and what ends it. */
static int put_half(int fd, const char *text, uint64_t off, uint64_t len, char last)
{
    char buf[ROOM + EDGE + 8];
    size_t n = strlen(text);

    if (len > sizeof(buf) || n >= len)
        return -ERANGE;
    memset(buf, ' ', (size_t)len);
    for (size_t i = 0; i < n; i++)
        buf[i] = text[i];
    buf[len - 1] = last;
    return pwrite(fd, buf, (size_t)len, (off_t)off) == (ssize_t)len ? 0 : -EIO;
}

static int put_first(const struct plan *p)
{
    return p->first ? put_half(p->fd, BEGIN, p->at, p->head - p->at, ' ') : 0;
}

static void second_text(const struct plan *p, char text[ROOM])
{
    (void)snprintf(text, ROOM, "%" PRIu64 " bytes, from byte %" PRIu64 " on]", p->lost, p->at);
}

/* In one step; where the file system cannot the file is as it was. */
static int collapse_range(const struct plan *p)
{
    char head[ROOM + EDGE], next[ROOM + EDGE + 8], text[ROOM];
    const size_t n_head = (size_t)(p->head - p->at), n_next = (size_t)(p->next - p->from);
    int rc = 0;

    if (n_head > sizeof(head) || n_next > sizeof(next) ||
        pread(p->fd, head, n_head, (off_t)p->at) != (ssize_t)n_head ||
        pread(p->fd, next, n_next, (off_t)p->from) != (ssize_t)n_next)
        return -EIO;
    second_text(p, text);
    rc = put_first(p);
    rc = rc < 0 ? rc : put_half(p->fd, text, p->from, n_next, '\n');
    if (rc == 0 &&
        fallocate(p->fd, FALLOC_FL_COLLAPSE_RANGE, (off_t)p->head, (off_t)(p->from - p->head)) < 0)
        rc = -errno;
    if (rc < 0) {
        (void)!pwrite(p->fd, head, n_head, (off_t)p->at);
        (void)!pwrite(p->fd, next, n_next, (off_t)p->from);
    }
    return rc;
}

/* Whether anybody has the file open for writing: then a lease for reading is not given. Where the
 * file system has no leases, no writer is assumed. */
static bool others_write(int look)
{
    bool others = fcntl(look, F_SETLEASE, F_RDLCK) < 0 && errno == EAGAIN;

    (void)fcntl(look, F_SETLEASE, F_UNLCK);
    return others;
}

static int open_again(int fd, int flags, int *ret)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    *ret = open(path, flags | O_CLOEXEC | O_NOCTTY);
    return *ret < 0 ? -errno : 0;
}

/* Moves the text that stays to the line, behind its second half; no other process writes. */
static int move_text(const struct plan *p)
{
    char text[ROOM], *buf = malloc(CHUNK);
    uint64_t from = p->next, to;
    ssize_t n = -1;
    int rc = buf ? put_first(p) : -ENOMEM;

    second_text(p, text);
    to = p->head + strlen(text) + 1;
    if (to > p->next)
        rc = -ERANGE;
    rc = rc < 0 ? rc : put_half(p->fd, text, p->head, to - p->head, '\n');
    while (rc == 0 && (n = pread(p->fd, buf, CHUNK, (off_t)from)) > 0) {
        if (pwrite(p->fd, buf, (size_t)n, (off_t)to) != n)
            rc = -EIO;
        from += (uint64_t)n;
        to += (uint64_t)n;
    }
    free(buf);
    if (rc == 0 && (n < 0 || ftruncate(p->fd, (off_t)to) < 0))
        rc = -EIO;
    return rc;
}

static int cut_log(struct plan *p, enum stk_logcut_when when)
{
    struct stat st;
    int rc = fstat(p->fd, &st) < 0 ? -errno : 0;

    p->size = rc == 0 ? (uint64_t)st.st_size : 0;
    if (rc < 0 || p->size <= p->cap)
        return rc;
    rc = make_plan(p);
    rc = rc < 0 ? rc : collapse_range(p);
    if (rc == 0 || rc == -ERANGE || rc == -EIO)
        return rc;
    if (when == STK_LOGCUT_ALONE)
        return move_text(p);
    return fallocate(p->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)p->head,
                     (off_t)(p->from - p->head)) < 0
               ? -errno
               : 0;
}

/* When the job is over: whether others still write can be told once our own descriptors are
 * closed. 'look' stays open for reading, so that the file can be opened again. */
static int open_over(int take_fd, int *look, int *ret_fd, enum stk_logcut_when *when)
{
    int rc = open_again(take_fd, O_RDONLY, look);

    (void)close(take_fd);
    if (rc < 0)
        return rc;
    if (!others_write(*look))
        *when = STK_LOGCUT_ALONE;
    return open_again(*look, O_RDWR, ret_fd);
}

int stk_logcut_make(int take_fd, uint64_t head, uint64_t cap, enum stk_logcut_when when)
{
    struct plan p = {.fd = -1, .head = head, .cap = cap};
    int rc, look = -1;

    if (when == STK_LOGCUT_OVER) {
        rc = open_over(take_fd, &look, &p.fd, &when);
        take_fd = -1;
    } else {
        rc = open_again(take_fd, O_RDWR, &p.fd);
    }
    if (p.fd >= 0) {
        rc = flock(p.fd, LOCK_EX | LOCK_NB) < 0 ? -EAGAIN : cut_log(&p, when);
        (void)close(p.fd);
    }
    if (look >= 0)
        (void)close(look);
    if (when != STK_LOGCUT_RUNS && take_fd >= 0)
        (void)close(take_fd);
    return rc;
}
