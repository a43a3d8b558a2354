/* SPDX-License-Identifier: Apache-2.0 */
/* helper.c - runs stoker-gpu as a child and reads the one line it answers with. It is never killed
 * half way: a process that it has locked would stay so. */
#include <stdlib.h>
#include <string.h>

#include "engine/local/inner.h"

#define MAX_ANSWER 65536

struct helper {
    uv_process_t process; /* first: the same address */
    uv_pipe_t out;
    struct stk_local_job *job; /* NULL: nobody wants the answer */
    void (*done)(struct stk_local_job *j, const json_t *answer);
    int open; /* handles, and the answer itself */
    bool ended, closed;
    size_t n;
    char text[MAX_ANSWER];
};

static void closed(uv_handle_t *h)
{
    struct helper *p = h->data;

    if (--p->open == 0)
        free(p);
}

static void finish(struct helper *p)
{
    struct stk_local_job *j = p->job;
    json_t *answer;

    if (!p->ended || !p->closed)
        return;
    uv_close((uv_handle_t *)&p->process, closed);
    uv_close((uv_handle_t *)&p->out, closed);
    if (!j)
        return;
    j->helper = NULL;
    answer = json_loadb(p->text, p->n, JSON_DISABLE_EOF_CHECK, NULL);
    p->done(j, answer);
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

int stk_local_helper(struct stk_local_job *j, char **args,
                     void (*done)(struct stk_local_job *j, const json_t *answer))
{
    struct helper *p = calloc(1, sizeof(*p));
    uv_stdio_container_t io[3] = {{.flags = UV_IGNORE},
                                  {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE},
                                  {.flags = UV_INHERIT_FD, .data.fd = 2}};
    uv_process_options_t o = {.exit_cb = on_exit_of, .stdio = io, .stdio_count = 3};
    char name[] = "stoker-gpu";
    size_t n = 0;
    int rc;

    while (args[n])
        n++;
    o.args = calloc(n + 2, sizeof(*o.args));
    if (!p || !o.args) {
        free(p);
        free(o.args);
        return -ENOMEM;
    }
    o.file = j->m->cfg.gpu_helper;
    o.args[0] = name;
    memcpy(o.args + 1, args, n * sizeof(*args));
    p->job = j;
    p->done = done;
    p->open = 2;
    p->process.data = p->out.data = p;
    (void)uv_pipe_init(j->m->cfg.loop, &p->out, 0);
    io[1].data.stream = (uv_stream_t *)&p->out;
    rc = uv_spawn(j->m->cfg.loop, &p->process, &o);
    free(o.args);
    if (rc == 0)
        rc = uv_read_start((uv_stream_t *)&p->out, buffer, got);
    if (rc < 0) {
        uv_close((uv_handle_t *)&p->process, closed);
        uv_close((uv_handle_t *)&p->out, closed);
        return rc;
    }
    j->helper = &p->process;
    return 0;
}

void stk_local_helper_drop(struct stk_local_job *j)
{
    if (j->helper)
        ((struct helper *)j->helper)->job = NULL;
    j->helper = NULL;
}
