/* SPDX-License-Identifier: Apache-2.0 */
/* step_io.c - where the output of tasks goes; see step.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slurmcmd/step.h"
#include "spec/words.h"
#include "sys/pattern.h"
#include "sys/user.h"

static const char *var(const char *name, const char *none)
{
    const char *s = getenv(name); // NOLINT(concurrency-mt-unsafe)

    return s && *s ? s : none;
}

static uint32_t number(const char *name)
{
    int64_t n;

    return stk_words_whole(var(name, ""), UINT32_MAX - 1, &n) == 0 ? (uint32_t)n : 0;
}

static int make_path(const char *pattern, uint32_t t, char *path, size_t size)
{
    struct stk_user user;
    struct stk_pattern p = {.number = number("SLURM_JOB_ID"),
                            .array = number("SLURM_ARRAY_JOB_ID"),
                            .index = number("SLURM_ARRAY_TASK_ID"),
                            .task = t,
                            .name = var("SLURM_JOB_NAME", ""),
                            .node = var("SLURM_JOB_NODELIST", "localhost")};

    (void)stk_user_by_id((uint32_t)getuid(), &user);
    p.user = user.name;
    return stk_pattern_path(pattern, &p, NULL, path, size);
}

/* The file is emptied by the first task that writes to it, unless it is to be continued. */
static int open_output(const struct stk_step *p, const char *pattern, uint32_t t, int *ret,
                       struct stk_err *err)
{
    const char *mode = json_string_value(json_object_get(p->b->job, "open_mode"));
    bool append = strncmp(mode ? mode : var("SLURM_OPEN_MODE", "truncate"), "a", 1) == 0 ||
                  number("SLURM_RESTART_COUNT") > 0;
    char path[PATH_MAX], first[PATH_MAX];
    int64_t only;

    if (strcmp(pattern, "all") == 0)
        return 0;
    if (stk_words_whole(pattern, UINT32_MAX, &only) == 0) { /* one task's output alone */
        if (t == (uint32_t)only)
            return 0;
        pattern = "/dev/null";
    }
    if (strcmp(pattern, "none") == 0)
        pattern = "/dev/null";
    if (make_path(pattern, t, path, sizeof(path)) < 0 ||
        make_path(pattern, 0, first, sizeof(first)) < 0)
        return stk_err_set(err, -ENAMETOOLONG, "the name of an output file is too long");
    if (t > 0 && strcmp(path, first) == 0)
        append = true;
    *ret = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC), 0666);
    return *ret < 0 ? stk_err_set(err, -errno, "could not open output file %.160s: %s", path,
                                  strerror(errno))
                    : 0;
}

static int open_input(const struct stk_step *p, uint32_t t, int *ret, struct stk_err *err)
{
    const char *in = json_string_value(json_object_get(p->b->job, "stdin"));
    char path[PATH_MAX] = "/dev/null";

    if (!in && t == 0)
        return 0;
    if (in && strcmp(in, "none") != 0 && make_path(in, t, path, sizeof(path)) < 0)
        return stk_err_set(err, -ENAMETOOLONG, "the name of the input file is too long");
    *ret = open(path, O_RDONLY | O_CLOEXEC);
    return *ret < 0 ? stk_err_set(err, -errno, "could not open input file %.160s: %s", path,
                                  strerror(errno))
                    : 0;
}

int stk_step_open(const struct stk_step *p, uint32_t t, int fds[3], struct stk_err *err)
{
    const char *out = json_string_value(json_object_get(p->b->job, "stdout"));
    const char *errors = json_string_value(json_object_get(p->b->job, "stderr"));
    int rc = open_input(p, t, &fds[0], err);

    if (rc == 0 && out)
        rc = open_output(p, out, t, &fds[1], err);
    if (rc == 0 && errors)
        rc = open_output(p, errors, t, &fds[2], err);
    else if (rc == 0 && out && fds[1] >= 0)
        fds[2] = fcntl(fds[1], F_DUPFD_CLOEXEC, 3);
    return rc;
}

/* Labels. */

struct pipe_end {
    int from, to;
    uint32_t task;
    size_t n;
    char line[4096];
};

struct stk_labels {
    uint32_t n, cap, width;
    struct pipe_end *ends;
    struct pollfd *fds;
};

struct stk_labels *stk_labels_new(uint32_t n)
{
    struct stk_labels *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->cap = 2 * n;
    for (uint32_t k = n > 0 ? n - 1 : 0; k >= 10; k /= 10)
        l->width++;
    l->width++;
    l->ends = calloc(l->cap ? l->cap : 1, sizeof(*l->ends));
    l->fds = calloc(l->cap + 1, sizeof(*l->fds));
    if (l->ends && l->fds)
        return l;
    free(l->ends);
    free(l->fds);
    free(l);
    return NULL;
}

int stk_labels_add(struct stk_labels *l, uint32_t task, int fds[3])
{
    for (int i = 1; i <= 2; i++) {
        int ends[2];

        if (fds[i] >= 0)
            continue; /* it goes to a file */
        if (l->n == l->cap || pipe2(ends, O_CLOEXEC) < 0)
            return -EMFILE;
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
        l->ends[l->n++] = (struct pipe_end){.from = ends[0], .to = i, .task = task};
        fds[i] = ends[1];
    }
    return 0;
}

void stk_labels_parent(struct stk_labels *l, int fds[3])
{
    (void)l;
    for (int i = 1; i <= 2; i++) {
        if (fds[i] >= 0)
            (void)close(fds[i]);
        fds[i] = -1;
    }
}

static void print_line(const struct stk_labels *l, struct pipe_end *e, size_t n)
{
    (void)dprintf(e->to, "%*u: %.*s\n", (int)l->width, e->task, (int)n, e->line);
}

static void take_lines(struct stk_labels *l, struct pipe_end *e)
{
    for (;;) {
        ssize_t k = read(e->from, e->line + e->n, sizeof(e->line) - e->n);
        char *nl;

        if (k < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (k <= 0) {
            if (e->n > 0)
                print_line(l, e, e->n);
            (void)close(e->from);
            e->from = -1;
            return;
        }
        e->n += (size_t)k;
        while ((nl = memchr(e->line, '\n', e->n)) || e->n == sizeof(e->line)) {
            size_t len = nl ? (size_t)(nl - e->line) : e->n;

            print_line(l, e, len);
            len += nl != NULL;
            memmove(e->line, e->line + len, e->n - len);
            e->n -= len;
        }
    }
}

void stk_labels_wait(struct stk_labels *l, int signal_fd, int timeout_ms)
{
    l->fds[0] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
    for (uint32_t i = 0; i < l->n; i++)
        l->fds[i + 1] = (struct pollfd){.fd = l->ends[i].from, .events = POLLIN};
    (void)poll(l->fds, l->n + 1, timeout_ms);
    for (uint32_t i = 0; i < l->n; i++)
        if (l->ends[i].from >= 0 && l->fds[i + 1].revents)
            take_lines(l, &l->ends[i]);
}

void stk_labels_free(struct stk_labels *l)
{
    if (!l)
        return;
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->ends[i].from >= 0)
            take_lines(l, &l->ends[i]);
        if (l->ends[i].from >= 0)
            (void)close(l->ends[i].from);
    }
    free(l->ends);
    free(l->fds);
    free(l);
}
