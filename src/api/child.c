/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - see child.h. Three handles (process, its input, its output) that close on their own
 * time; memory goes with the last. What the child says is bounded: a line that is too long ends it.
 */
#include "api/child.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/json.h"

#define MAX_LINE ((size_t)2 << 20)
#define FIRST_LINE ((size_t)65536)

struct stk_child {
    uv_process_t process;
    uv_pipe_t in, out;
    uv_write_t write;
    struct stk_child_to to; /* done is NULL: nobody wants to hear of it any more */
    char *question;
    char *line;
    size_t len, cap;
    json_t *result;
    char error[256];
    int open_handles, sig;
    bool exited, eof;
};

static void on_closed(uv_handle_t *h)
{
    struct stk_child *c = h->data;

    if (--c->open_handles > 0)
        return;
    free(c->question);
    free(c->line);
    json_decref(c->result);
    free(c);
}

static void close_all(struct stk_child *c)
{
    uv_handle_t *const handles[] = {(uv_handle_t *)&c->process, (uv_handle_t *)&c->in,
                                    (uv_handle_t *)&c->out};

    for (size_t i = 0; i < sizeof(handles) / sizeof(*handles); i++)
        if (!uv_is_closing(handles[i]))
            uv_close(handles[i], on_closed);
}

static void finish(struct stk_child *c)
{
    const struct stk_child_to to = c->to;

    if (!c->exited || !c->eof)
        return;
    if (!c->result && !c->error[0])
        (void)snprintf(c->error, sizeof(c->error), "%s",
                       c->sig == SIGXCPU || c->sig == SIGKILL
                           ? "it took too long: choose a shorter period"
                           : "it ended without an answer; it may have had too little memory");
    c->to = (struct stk_child_to){0};
    if (to.done)
        to.done(to.ctx, c->result, c->result ? NULL : c->error);
    close_all(c);
}

static void take_line(struct stk_child *c, const char *line, size_t len)
{
    json_t *o = stk_json_load(line, len, 0, NULL), *v;

    if ((v = json_object_get(o, "result")) != NULL) {
        json_decref(c->result);
        c->result = json_incref(v);
    } else if ((v = json_object_get(o, "error")) != NULL) {
        (void)snprintf(c->error, sizeof(c->error), "%s", json_string_value(v));
    } else if ((v = json_object_get(o, "progress")) != NULL && c->to.progress) {
        const char *step = json_string_value(json_object_get(o, "step"));

        c->to.progress(c->to.ctx, json_number_value(v), step ? step : "");
    }
    json_decref(o);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct stk_child *c = h->data;

    (void)suggested;
    if (c->len == c->cap && c->cap < MAX_LINE) {
        size_t cap = c->cap ? c->cap * 2 : FIRST_LINE;
        char *more = realloc(c->line, cap);

        if (more) {
            c->line = more;
            c->cap = cap;
        }
    }
    *buf = uv_buf_init(c->line ? c->line + c->len : NULL, (unsigned)(c->cap - c->len));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct stk_child *c = s->data;
    char *begin = c->line, *end;

    (void)buf;
    if (n < 0) { /* the end, or a line that is too long (UV_ENOBUFS) */
        if (n != UV_EOF)
            (void)uv_process_kill(&c->process, SIGKILL);
        (void)uv_read_stop(s);
        c->eof = true;
        finish(c);
        return;
    }
    c->len += (size_t)n;
    while (c->len > 0 && (end = memchr(begin, '\n', c->len - (size_t)(begin - c->line)))) {
        take_line(c, begin, (size_t)(end - begin));
        begin = end + 1;
    }
    c->len -= (size_t)(begin - c->line);
    if (c->len > 0)
        memmove(c->line, begin, c->len);
}

static void on_ended(uv_process_t *p, int64_t status, int sig)
{
    struct stk_child *c = p->data;

    (void)status;
    c->exited = true;
    c->sig = sig;
    finish(c);
}

static void on_written(uv_write_t *w, int status)
{
    struct stk_child *c = w->data;

    (void)status; /* a child that does not listen ends, and that is heard */
    free(c->question);
    c->question = NULL;
    if (!uv_is_closing((uv_handle_t *)&c->in))
        uv_close((uv_handle_t *)&c->in, on_closed);
}

static int send_question(struct stk_child *c)
{
    uv_buf_t buf = uv_buf_init(c->question, (unsigned)strlen(c->question));

    c->write.data = c;
    return uv_write(&c->write, (uv_stream_t *)&c->in, &buf, 1, on_written);
}

static struct stk_child *child_new(uv_loop_t *loop, json_t *question, const struct stk_child_to *to)
{
    struct stk_child *c = calloc(1, sizeof(*c));

    if (c)
        c->question = json_dumps(question, JSON_COMPACT);
    if (!c || !c->question) {
        free(c);
        return NULL;
    }
    c->to = *to;
    c->open_handles = 3;
    (void)uv_pipe_init(loop, &c->in, 0);
    (void)uv_pipe_init(loop, &c->out, 0);
    c->process.data = c->in.data = c->out.data = c;
    return c;
}

static int spawn(uv_loop_t *loop, struct stk_child *c, char *path)
{
    char *args[] = {path, NULL}, *env[] = {NULL};
    uv_stdio_container_t io[] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&c->in},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&c->out},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO}};
    const uv_process_options_t o = {
        .exit_cb = on_ended, .file = path, .args = args, .env = env, .stdio = io, .stdio_count = 3};

    return path ? uv_spawn(loop, &c->process, &o) : UV_ENOMEM;
}

int stk_child_start(uv_loop_t *loop, const char *program, json_t *question,
                    const struct stk_child_to *to, struct stk_child **ret, struct stk_err *err)
{
    struct stk_child *c = child_new(loop, question, to);
    char *path = strdup(program);
    int rc;

    if (!c) {
        free(path);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    rc = spawn(loop, c, path);
    free(path);
    if (rc == 0 && (rc = send_question(c)) == 0)
        rc = uv_read_start((uv_stream_t *)&c->out, on_alloc, on_read);
    if (rc < 0) {
        c->to = (struct stk_child_to){0};
        if (c->process.pid > 0)
            (void)uv_process_kill(&c->process, SIGKILL);
        close_all(c);
        return stk_err_set(err, rc, "cannot start %.120s: %s", program, uv_strerror(rc));
    }
    *ret = c;
    return 0;
}

void stk_child_stop(struct stk_child *c)
{
    if (!c)
        return;
    c->to = (struct stk_child_to){0};
    if (!c->exited)
        (void)uv_process_kill(&c->process, SIGKILL);
}
