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

#define MAX_LINE (64u << 20)
#define TICK_MS 200
#define AGAIN_MS 1000

int64_t stk_slurm_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void answered(struct stk_slurm *m, const struct stk_slurm_ask *a, const json_t *answer)
{
    struct stk_slurm_job *j = a->number ? stk_slurm_find(m, a->number) : NULL;

    if (a->fn && j && j->lease == a->lease)
        a->fn(j, answer);
    if (a->heard)
        a->heard(m, a->slurm, answer);
}

/* Answers come in the order of the requests. */
static void take_answer(struct stk_slurm *m, const json_t *o)
{
    json_int_t id = json_integer_value(json_object_get(o, "id"));

    if (id == m->groups_ask)
        stk_slurm_groups_answer(m, o);
    while (m->first_ask < m->n_asks) {
        struct stk_slurm_ask a = m->asks[m->first_ask++];

        if (a.later)
            stk_slurm_later_answered(m);
        answered(m, &a, a.id == id ? o : NULL);
        if (a.id == id)
            break;
    }
    if (m->first_ask == m->n_asks)
        m->first_ask = m->n_asks = 0;
}

static void take_away(struct stk_slurm *m, const json_t *o)
{
    const char *why = json_string_value(json_object_get(o, "why"));

    m->away = true;
    (void)snprintf(m->why, sizeof(m->why), "%s", why ? why : "it cannot be reached");
    stk_slurm_log(m, true, "Slurm: %s", m->why);
}

static void take_hello(struct stk_slurm *m, const json_t *o)
{
    m->heard = true;
    m->remembers_s = json_integer_value(json_object_get(o, "remembers_s"));
    m->accounts = json_is_true(json_object_get(o, "accounts"));
}

static void take_booked(struct stk_slurm *m, const json_t *o)
{
    json_decref(m->booked);
    m->booked = json_incref(json_object_get(o, "reservations"));
    m->booked_news = true; /* the scheduler may not be open yet */
}

static void take_line(struct stk_slurm *m, const char *line, size_t len)
{
    json_t *o = json_loadb(line, len, 0, NULL);
    const char *op = json_string_value(json_object_get(o, "op"));

    if (!op)
        stk_slurm_log(m, true, "stoker-libslurm said something strange");
    else if (strcmp(op, "answer") == 0)
        take_answer(m, o);
    else if (strcmp(op, "hello") == 0)
        take_hello(m, o);
    else if (strcmp(op, "away") == 0)
        take_away(m, o);
    else if (strcmp(op, "nodes") == 0 || strcmp(op, "partitions") == 0)
        stk_slurm_cluster_news(m, o);
    else if (strcmp(op, "reservations") == 0)
        take_booked(m, o);
    else if (strcmp(op, "jobs") == 0)
        stk_slurm_jobs_news(m, o);
    else if (strcmp(op, "plugin") == 0)
        stk_slurm_log(m, false, "Slurm: sched/stoker %s",
                      json_is_true(json_object_get(o, "there")) ? "is there" : "is silent");
    if (op && strcmp(op, "back") == 0) {
        m->away = false;
        m->why[0] = '\0';
        stk_slurm_log(m, false, "Slurm is back");
    }
    json_decref(o);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct stk_slurm *m = h->data;
    char *more = m->n_line + suggested > MAX_LINE ? NULL : realloc(m->line, m->n_line + suggested);

    m->line = more ? more : m->line;
    *buf = uv_buf_init(more ? m->line + m->n_line : NULL, more ? (unsigned)suggested : 0);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct stk_slurm *m = s->data;
    char *begin = m->line, *end;

    (void)buf;
    if (n < 0) { /* also when a line has become too long */
        (void)uv_read_stop(s);
        if (m->running)
            (void)uv_process_kill(&m->process, SIGKILL);
        return;
    }
    m->n_line += (size_t)n;
    while ((end = memchr(begin, '\n', m->n_line - (size_t)(begin - m->line)))) {
        take_line(m, begin, (size_t)(end - begin));
        begin = end + 1;
    }
    m->n_line -= (size_t)(begin - m->line);
    memmove(m->line, begin, m->n_line);
}

static void free_all(struct stk_slurm *m);

static void on_closed(uv_handle_t *h)
{
    struct stk_slurm *m = h->data;

    if (--m->open_handles > 0)
        return;
    m->running = false;
    m->n_line = 0;
    if (m->closing && !uv_is_closing((uv_handle_t *)&m->tick)) {
        m->open_handles = 1;
        uv_close((uv_handle_t *)&m->tick, on_closed);
    } else if (m->closing) {
        free_all(m);
    } else {
        m->again_at = stk_slurm_ms() + AGAIN_MS;
    }
}

static void on_end(uv_process_t *p, int64_t status, int sig)
{
    struct stk_slurm *m = p->data;

    if (!m->closing && !m->away)
        stk_slurm_log(m, true, "stoker-libslurm ended (exit %d, signal %d); it is started again",
                      (int)status, sig);
    if (!m->why[0])
        (void)snprintf(m->why, sizeof(m->why), "%s",
                       m->heard ? "stoker-libslurm ended"
                                : "Slurm's library found no slurm.conf that it can use (what it "
                                  "said is above); slurm.conf in stoker's configuration says "
                                  "where it is");
    m->away = true;
    m->telling = false;
    while (m->first_ask < m->n_asks && !m->closing) {
        struct stk_slurm_ask a = m->asks[m->first_ask++];

        answered(m, &a, NULL);
    }
    m->first_ask = m->n_asks = 0;
    stk_slurm_later_drop(m); /* what they were to do is found missing when all is told anew */
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
    m->running = true;
    rc = uv_spawn(m->cfg.loop, &m->process, &o);
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

    if (!m->running && stk_slurm_ms() >= m->again_at && spawn(m) < 0)
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

static char *line_of(const json_t *o)
{
    size_t n = json_dumpb(o, NULL, 0, JSON_COMPACT);
    char *text = malloc(n + 2);

    if (!text)
        return NULL;
    (void)json_dumpb(o, text, n, JSON_COMPACT);
    text[n] = '\n';
    text[n + 1] = '\0';
    return text;
}

int stk_slurm_ask(struct stk_slurm *m, json_t *take_request, const struct stk_slurm_job *j,
                  stk_slurm_answer_fn fn)
{
    stk_slurm_later_first(m, take_request);
    return stk_slurm_ask_now(m, take_request, j, fn, false);
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

    (void)json_object_set_new(take_request, "id", json_integer(a.id));
    if (w && m->running && take_request)
        text = line_of(take_request);
    json_decref(take_request);
    if (!text || room(m) < 0) {
        free(text);
        free(w);
        return -EAGAIN;
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

int stk_slurm_ask_of(struct stk_slurm *m, json_t *take_request, uint32_t slurm,
                     stk_slurm_heard_fn heard)
{
    int rc = stk_slurm_ask(m, take_request, NULL, NULL);

    if (rc == 0) {
        m->asks[m->n_asks - 1].slurm = slurm;
        m->asks[m->n_asks - 1].heard = heard;
    }
    return rc;
}

void stk_slurm_ask_cancel(struct stk_slurm *m, const json_t *job)
{
    (void)stk_slurm_ask(m, json_pack("{s:s,s:o}", "op", "cancel", "job", stk_slurm_id(job)), NULL,
                        NULL);
}

static void free_all(struct stk_slurm *m)
{
    stk_slurm_import_free(m);
    json_decref(m->groups);
    json_decref(m->booked);
    stk_slurm_table_free(m);
    stk_slurm_cluster_free(m);
    for (uint32_t i = 0; i < m->n_own; i++)
        free(m->own[i]);
    free(m->own);
    free(m->names);
    free(m->line);
    stk_slurm_later_drop(m);
    stk_mem_drop(&m->mem, &m->asks, &m->cap_asks, sizeof(*m->asks));
    stk_mem_drop(&m->mem, &m->later, &m->cap_later, sizeof(*m->later));
    free(m);
}

void stk_slurm_link_close(struct stk_slurm *m)
{
    m->closing = true;
    if (m->running) {
        (void)uv_process_kill(&m->process, SIGTERM);
        return;
    }
    if (m->open_handles == 0) {
        m->open_handles = 1;
        uv_close((uv_handle_t *)&m->tick, on_closed);
    }
}
