/* SPDX-License-Identifier: Apache-2.0 */
/* guard.c - worker and guard share a pipe with lines: "@LIMIT_MS WHAT" is a step, everything else
 * is output. Whole lines only go out, so that a worker that dies leaves no half of one.
 */
#include "gpu/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FIRST_LIMIT_MS 10000 /* until the worker has said its first step */
#define MAX_LINE ((size_t)8 << 20)
#define CHUNK ((size_t)65536)

struct reader {
    char *buf;
    size_t len, cap;
    int64_t deadline_ms;
    int64_t limit_ms;
    char what[160];
};

static int64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int write_all(int fd, const char *s, size_t n)
{
    while (n > 0) {
        ssize_t k = write(fd, s, n);

        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return -errno;
        s += k;
        n -= (size_t)k;
    }
    return 0;
}

void stk_guard_step(struct stk_guard *g, int64_t limit_ms, const char *fmt, ...)
{
    char what[128], line[192];
    va_list ap;
    int n;

    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    n = snprintf(line, sizeof(line), "@%lld %s\n", (long long)limit_ms, what);
    if (write_all(g->fd, line, (size_t)n) < 0)
        _exit(1); /* the guard is gone: nobody watches any more */
}

static int put(int fd, json_t *take_line)
{
    char *text = take_line ? json_dumps(take_line, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    int rc = -ENOMEM;

    json_decref(take_line);
    if (text) {
        size_t n = strlen(text);

        text[n] = '\n'; /* over the end mark: the length is known */
        rc = write_all(fd, text, n + 1);
    }
    free(text);
    return rc;
}

int stk_guard_put(struct stk_guard *g, json_t *take_line)
{
    return put(g->fd, take_line);
}

int stk_guard_print(json_t *take_line)
{
    return put(STDOUT_FILENO, take_line);
}

static void take_step(struct reader *r, const char *line, size_t n)
{
    char copy[192];
    char *end;

    n = n < sizeof(copy) - 1 ? n : sizeof(copy) - 1;
    memcpy(copy, line, n);
    copy[n] = '\0';
    r->limit_ms = strtoll(copy + 1, &end, 10);
    r->deadline_ms = now_ms() + r->limit_ms;
    (void)snprintf(r->what, sizeof(r->what), "%.150s", *end == ' ' ? end + 1 : end);
}

/* Deals with the whole lines there are. */
static int take_lines(struct reader *r)
{
    size_t at = 0;
    char *end;

    while ((end = memchr(r->buf + at, '\n', r->len - at))) {
        size_t n = (size_t)(end - (r->buf + at));

        if (r->buf[at] == '@')
            take_step(r, r->buf + at, n);
        else if (write_all(STDOUT_FILENO, r->buf + at, n + 1) < 0)
            return -EPIPE;
        at += n + 1;
    }
    memmove(r->buf, r->buf + at, r->len - at);
    r->len -= at;
    return 0;
}

/* 1: there may be more; 0: the worker closed the pipe; -ETIMEDOUT; other -Exxx. */
static int pump(struct reader *r, int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int64_t left = r->deadline_ms - now_ms();
    ssize_t n;
    char *bigger;

    left = left < 0 ? 0 : left > 60000 ? 60000 : left;
    if (poll(&p, 1, (int)left) == 0)
        return now_ms() >= r->deadline_ms ? -ETIMEDOUT : 1;
    if (r->cap - r->len < CHUNK) {
        bigger = r->cap < MAX_LINE ? realloc(r->buf, r->cap * 2) : NULL;
        if (!bigger)
            return -ENOMEM;
        r->buf = bigger;
        r->cap *= 2;
    }
    n = read(fd, r->buf + r->len, CHUNK);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 1 : -errno;
    if (n == 0)
        return 0;
    r->len += (size_t)n;
    n = take_lines(r);
    return n < 0 ? (int)n : 1;
}

static pid_t start(int (*work)(struct stk_guard *g, void *ctx), void *ctx, int *ret_fd)
{
    int ends[2];
    pid_t self = getpid(), pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        struct stk_guard g = {.fd = ends[1]};

        (void)close(ends[0]);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != self)
            _exit(1);
        (void)fcntl(g.fd, F_SETFD, FD_CLOEXEC);
        _exit(work(&g, ctx)); /* no exit handlers: those of the driver may hang, too */
    }
    (void)close(ends[1]);
    if (pid < 0)
        (void)close(ends[0]);
    *ret_fd = ends[0];
    return pid;
}

static void say_how_it_ended(const struct reader *r, pid_t pid, int rc,
                             struct stk_guard_result *ret)
{
    int status;

    if (rc == -ETIMEDOUT) {
        /* Not waited for: it may be in a call that nothing ends. */
        (void)kill(pid, SIGKILL);
        ret->end = STK_GUARD_HUNG;
        (void)snprintf(ret->why, sizeof(ret->why), "the driver did not answer within %.1f s (%s)",
                       (double)r->limit_ms / 1000, r->what);
        return;
    }
    if (rc < 0)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    ret->end = WIFEXITED(status) ? STK_GUARD_ENDED : STK_GUARD_CRASHED;
    ret->code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (ret->end == STK_GUARD_CRASHED)
        (void)snprintf(ret->why, sizeof(ret->why), "the driver's library crashed, signal %d (%s)",
                       WTERMSIG(status), r->what);
}

int stk_guard_run(int (*work)(struct stk_guard *g, void *ctx), void *ctx,
                  struct stk_guard_result *ret)
{
    struct reader r = {.cap = CHUNK * 2, .limit_ms = FIRST_LIMIT_MS, .what = "starting"};
    int fd = -1, rc;
    pid_t pid;

    *ret = (struct stk_guard_result){.code = 1};
    r.buf = malloc(r.cap);
    pid = r.buf ? start(work, ctx, &fd) : -1;
    if (pid < 0) {
        free(r.buf);
        ret->end = STK_GUARD_CRASHED;
        (void)snprintf(ret->why, sizeof(ret->why), "no process can be started: %s",
                       strerror(errno));
        return -errno;
    }
    r.deadline_ms = now_ms() + r.limit_ms;
    do
        rc = pump(&r, fd);
    while (rc > 0);
    say_how_it_ended(&r, pid, rc, ret);
    (void)close(fd);
    free(r.buf);
    return 0;
}
