/* SPDX-License-Identifier: Apache-2.0 */
/* helper.c - runs stoker-gpu as a child and reads the one line it answers with. It is never killed
 * half way: a process that it has locked would stay so. So one that a daemon before us has started
 * may still be at work on the job; it holds a lock, and the next one is not run before that is
 * free.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "engine/local/inner.h"

#define MAX_ANSWER 65536
#define LOCK_AGAIN_MS 100
#define LOCK_FD 3 /* in the child: it is let go of when that ends */

struct helper {
    uv_process_t process; /* first: the same address */
    uv_pipe_t out;
    uv_timer_t later; /* runs while another is at work */
    char **args;
    struct stk_local_job *job; /* NULL: nobody wants the answer */
    void (*done)(struct stk_local_job *j, const json_t *answer);
    int open;   /* handles */
    bool tried; /* there is a process, or libuv has tried to make one */
    bool ended, closed;
    size_t n;
    char text[MAX_ANSWER];
};

static void closed(uv_handle_t *h)
{
    struct helper *p = h->data;

    if (--p->open > 0)
        return;
    for (char **w = p->args; *w; w++)
        free(*w);
    free(p->args);
    free(p);
}

static void close_all(struct helper *p)
{
    if (p->tried)
        uv_close((uv_handle_t *)&p->process, closed);
    uv_close((uv_handle_t *)&p->out, closed);
    uv_close((uv_handle_t *)&p->later, closed);
}

/* The last words: 'answer' may be NULL. */
static void say(struct helper *p, const json_t *answer)
{
    struct stk_local_job *j = p->job;

    close_all(p);
    if (!j)
        return;
    j->helper = NULL;
    p->done(j, answer);
}

static void finish(struct helper *p)
{
    json_t *answer;

    if (!p->ended || !p->closed)
        return;
    answer = json_loadb(p->text, p->n, JSON_DISABLE_EOF_CHECK, NULL);
    say(p, answer);
    json_decref(answer);
}

static void on_exit_of(uv_process_t *h, int64_t status, int sig)
{
    struct helper *p = h->data;

    (void)status;
    (void)sig;
    p->ended = true;
    finish(p);
}

static void buffer(uv_handle_t *h, size_t hint, uv_buf_t *buf)
{
    struct helper *p = h->data;

    (void)hint;
    *buf = uv_buf_init(p->text + p->n, (unsigned)(sizeof(p->text) - p->n));
}

static void got(uv_stream_t *h, ssize_t n, const uv_buf_t *buf)
{
    struct helper *p = h->data;

    (void)buf;
    if (n > 0)
        p->n += (size_t)n;
    if (n >= 0)
        return;
    (void)uv_read_stop(h);
    p->closed = true;
    finish(p);
}

/* -EWOULDBLOCK: another one is at work on the job. No lock can be had for want of room: then none
 * is needed much. */
static int take_lock(const struct stk_local_job *j)
{
    char name[64];
    int fd;

    stk_local_run_name(j, ".gpu", name, sizeof(name));
    fd = openat(j->m->run_dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        (void)close(fd);
        return -EWOULDBLOCK;
    }
    return fd < 0 ? j->m->null_fd : fd;
}

static int spawn(struct helper *p, int lock)
{
    struct stk_local_job *j = p->job;
    uv_stdio_container_t io[] = {{.flags = UV_IGNORE},
                                 {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE},
                                 {.flags = UV_INHERIT_FD, .data.fd = 2},
                                 [LOCK_FD] = {.flags = UV_INHERIT_FD, .data.fd = lock}};
    uv_process_options_t o = {.exit_cb = on_exit_of,
                              .file = j->m->cfg.gpu_helper,
                              .args = p->args,
                              .stdio = io,
                              .stdio_count = LOCK_FD + 1};
    int rc;

    io[1].data.stream = (uv_stream_t *)&p->out;
    p->tried = true;
    p->open++;
    rc = uv_spawn(j->m->cfg.loop, &p->process, &o);
    return rc < 0 ? rc : uv_read_start((uv_stream_t *)&p->out, buffer, got);
}

static void try_again(uv_timer_t *t);

static int begin(struct helper *p)
{
    int lock = take_lock(p->job), rc;

    if (lock < 0)
        return uv_timer_start(&p->later, try_again, LOCK_AGAIN_MS, 0);
    rc = spawn(p, lock);
    if (lock != p->job->m->null_fd)
        (void)close(lock);
    return rc;
}

static void try_again(uv_timer_t *t)
{
    struct helper *p = t->data;

    if (begin(p) < 0)
        say(p, NULL);
}

static char **copy_args(char **args)
{
    size_t n = 0;
    char **copy;

    while (args[n])
        n++;
    copy = calloc(n + 2, sizeof(*copy));
    if (copy)
        copy[0] = strdup("stoker-gpu");
    for (size_t i = 0; copy && copy[i] && i < n; i++)
        copy[i + 1] = strdup(args[i]);
    return copy;
}

int stk_local_helper(struct stk_local_job *j, char **args,
                     void (*done)(struct stk_local_job *j, const json_t *answer))
{
    struct helper *p = calloc(1, sizeof(*p));
    int rc;

    if (p)
        p->args = copy_args(args);
    if (!p || !p->args) {
        free(p);
        return -ENOMEM;
    }
    p->job = j;
    p->done = done;
    p->open = 2;
    p->process.data = p->out.data = p->later.data = p;
    (void)uv_pipe_init(j->m->cfg.loop, &p->out, 0);
    (void)uv_timer_init(j->m->cfg.loop, &p->later);
    rc = begin(p);
    if (rc < 0) {
        close_all(p);
        return rc;
    }
    j->helper = &p->process;
    return 0;
}

void stk_local_helper_drop(struct stk_local_job *j)
{
    struct helper *p = (struct helper *)j->helper;

    j->helper = NULL;
    if (!p)
        return;
    p->job = NULL;
    if (!p->tried)
        close_all(p); /* it still waits */
}
