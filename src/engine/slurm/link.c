/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - stoker-libslurm: started, talked to, and started again when it has died. Requests that
 * were not answered then are answered with nothing; whoever asked looks at what Slurm has once all
 * was told anew. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/slurm/import.h"

#define TICK_MS 200
#define AGAIN_MS 1000
#define NOT_LOADED 127 /* so ends a program that the loader does not start */

int64_t stk_slurm_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void stk_slurm_link_end(struct stk_slurm *m)
{
    (void)uv_read_stop((uv_stream_t *)&m->out);
    if (m->running)
        (void)uv_process_kill(&m->process, SIGKILL);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct stk_slurm *m = h->data;
    size_t size = 0;
    char *room = stk_lines_room(&m->lines, &size);

    (void)suggested;
    *buf = uv_buf_init(room, room ? (unsigned)size : 0);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct stk_slurm *m = s->data;
    enum stk_lines_what what;
    const char *line;
    size_t len = 0;

    (void)buf;
    if (n < 0) { /* it has closed its end, or there is no memory */
        stk_slurm_link_end(m);
        return;
    }
    stk_lines_filled(&m->lines, (size_t)n);
    while ((what = stk_lines_next(&m->lines, &line, &len)) == STK_LINES_LINE)
        stk_slurm_heard(m, line, len);
    if (what == STK_LINES_NONE)
        return;
    stk_slurm_log(m, true, "stoker-libslurm said more than %u MiB in one line, beginning with %.*s",
                  STK_LINES_MAX >> 20, (int)len, line);
    stk_slurm_link_end(m); /* what was in it is not said again, unless it is started again */
}

static void on_closed(uv_handle_t *h)
{
    struct stk_slurm *m = h->data;

    if (--m->open_handles > 0)
        return;
    m->running = false;
    stk_lines_clear(&m->lines);
    if (m->closing && !uv_is_closing((uv_handle_t *)&m->tick)) {
        m->open_handles = 1;
        uv_close((uv_handle_t *)&m->tick, on_closed);
    } else if (m->closing) {
        stk_slurm_free(m);
    } else {
        m->again_at = stk_slurm_ms() + AGAIN_MS;
    }
}

/* Why nothing is heard of Slurm. */
static void explain(struct stk_slurm *m, int64_t status)
{
    static const char no_library[] =
        "stoker-libslurm cannot be loaded (what the loader said is above); install the libslurm "
        "that it was built with (Debian 12: apt install libslurm38), or build stoker anew";

    if (status == NOT_LOADED && strcmp(m->why, no_library) != 0) {
        (void)snprintf(m->why, sizeof(m->why), "%s", no_library);
        if (m->ready && !m->closing)
            stk_slurm_log(m, true, "Slurm: %s", m->why);
    } else if (!m->why[0]) {
        (void)snprintf(m->why, sizeof(m->why), "%s",
                       m->heard ? "stoker-libslurm ended"
                                : "Slurm's library found no slurm.conf that it can use (what it "
                                  "said is above); slurm.conf in stoker's configuration says "
                                  "where it is");
    }
}

static void on_end(uv_process_t *p, int64_t status, int sig)
{
    struct stk_slurm *m = p->data;

    if (!m->closing && !m->away)
        stk_slurm_log(m, true, "stoker-libslurm ended (exit %d, signal %d); it is started again",
                      (int)status, sig);
    explain(m, status);
    m->away = true;
    stk_slurm_unheard(m);
    m->open_handles = 3;
    uv_close((uv_handle_t *)&m->in, on_closed);
    uv_close((uv_handle_t *)&m->out, on_closed);
    uv_close((uv_handle_t *)&m->process, on_closed);
}

static int spawn(struct stk_slurm *m)
{
    union {
        const char *in;
        char *out;
    } program = {.in = m->cfg.program}, conf = {.in = m->cfg.conf};
    char option[] = "--conf";
    char *args[] = {program.out, conf.out ? option : NULL, conf.out, NULL};
    uv_stdio_container_t io[] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&m->in},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&m->out},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO}};
    uv_process_options_t o = {
        .exit_cb = on_end, .file = program.in, .args = args, .stdio = io, .stdio_count = 3};
    int rc;

    (void)uv_pipe_init(m->cfg.loop, &m->in, 0);
    (void)uv_pipe_init(m->cfg.loop, &m->out, 0);
    m->in.data = m->out.data = m->process.data = m;
    rc = uv_spawn(m->cfg.loop, &m->process, &o);
    m->running = rc == 0;
    if (rc < 0) {
        m->open_handles = 3;
        uv_close((uv_handle_t *)&m->in, on_closed);
        uv_close((uv_handle_t *)&m->out, on_closed);
        uv_close((uv_handle_t *)&m->process, on_closed);
        return rc;
    }
    (void)uv_read_start((uv_stream_t *)&m->out, on_alloc, on_read);
    return 0;
}

static void on_tick(uv_timer_t *t)
{
    struct stk_slurm *m = t->data;

    if (!m->running && m->open_handles == 0 && stk_slurm_ms() >= m->again_at && spawn(m) < 0)
        m->again_at = stk_slurm_ms() + AGAIN_MS;
    stk_slurm_ticks(m);
}

int stk_slurm_link_open(struct stk_slurm *m)
{
    int rc;

    (void)uv_timer_init(m->cfg.loop, &m->tick);
    m->tick.data = m;
    rc = spawn(m);
    (void)uv_timer_start(&m->tick, on_tick, TICK_MS, TICK_MS);
    return rc;
}

static void on_written(uv_write_t *w, int status)
{
    (void)status; /* its end is told by on_end() */
    free(w->data);
    free(w);
}

/* Room for one more at the end. */
static int room(struct stk_slurm *m)
{
    if (m->first_ask > m->n_asks / 2) {
        m->n_asks -= m->first_ask;
        memmove(m->asks, m->asks + m->first_ask, m->n_asks * sizeof(*m->asks));
        m->first_ask = 0;
    }
    return stk_mem_grow(&m->mem, &m->asks, &m->cap_asks, m->n_asks + 1, sizeof(*m->asks));
}

/* The request as a line. -E2BIG: stoker-libslurm would not read it. */
static int line_of(const json_t *o, char **ret_text)
{
    size_t n = json_dumpb(o, NULL, 0, JSON_COMPACT);
    char *text = n > 0 && n <= STK_LINES_MAX ? malloc(n + 2) : NULL;

    if (!text)
        return n > STK_LINES_MAX ? -E2BIG : -EAGAIN;
    (void)json_dumpb(o, text, n, JSON_COMPACT);
    text[n] = '\n';
    text[n + 1] = '\0';
    *ret_text = text;
    return 0;
}

int stk_slurm_ask_now(struct stk_slurm *m, json_t *take_request, const struct stk_slurm_job *j,
                      stk_slurm_answer_fn fn, bool later)
{
    struct stk_slurm_ask a = {.id = ++m->next_id,
                              .number = j ? j->number : 0,
                              .lease = j ? j->lease : 0,
                              .fn = fn,
                              .later = later};
    uv_write_t *w = calloc(1, sizeof(*w));
    char *text = NULL;
    uv_buf_t buf;
    int rc = -EAGAIN;

    (void)json_object_set_new(take_request, "id", json_integer(a.id));
    if (w && m->running && take_request)
        rc = line_of(take_request, &text);
    json_decref(take_request);
    if (rc < 0 || room(m) < 0) {
        free(text);
        free(w);
        return rc < 0 ? rc : -EAGAIN;
    }
    m->asks[m->n_asks++] = a;
    w->data = text;
    buf = uv_buf_init(text, (unsigned)strlen(text));
    if (uv_write(w, (uv_stream_t *)&m->in, &buf, 1, on_written) < 0) {
        m->n_asks--;
        free(text);
        free(w);
        return -EAGAIN;
    }
    return 0;
}

void stk_slurm_link_close(struct stk_slurm *m)
{
    m->closing = true;
    if (m->running) {
        (void)uv_process_kill(&m->process, SIGTERM);
        return;
    }
    if (!m->tick.loop) {
        stk_slurm_free(m); /* nothing was opened */
    } else if (m->open_handles == 0) {
        m->open_handles = 1;
        uv_close((uv_handle_t *)&m->tick, on_closed);
    }
}
