/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - the connection to a shim and the watch on its process.
 *
 * What a shim says over the connection it has written to its run file before, so losing the
 * connection loses nothing: when the shim is gone the file has the last word. Handles belong to
 * libuv until it has closed them, so each is a block of its own that outlives the job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/local/inner.h"

#define MAX_LAUNCHES 5 /* of shims that end before they begin */

static void free_handle(uv_handle_t *h)
{
    free(h);
}

void stk_local_link_close(struct stk_local_job *j)
{
    if (j->conn) {
        j->conn->data = NULL;
        uv_close((uv_handle_t *)j->conn, free_handle);
    }
    j->conn = NULL;
    j->n_in = 0;
}

struct pending { /* a message on its way */
    uv_write_t req;
    char *text;
};

static void written(uv_write_t *req, int status)
{
    struct pending *p = req->data;

    (void)status; /* a broken connection shows by itself */
    free(p->text);
    free(p);
}

int stk_local_send_text(struct stk_local_job *j, char *take_text, size_t n)
{
    uv_buf_t buf = uv_buf_init(take_text, (unsigned)n);
    struct pending *p;
    int k = j->conn ? uv_try_write((uv_stream_t *)j->conn, &buf, 1) : UV_ENOTCONN;

    if (k < 0 && k != UV_EAGAIN) {
        free(take_text);
        return k;
    }
    k = k < 0 ? 0 : k;
    if ((size_t)k == n) {
        free(take_text);
        return 0;
    }
    p = calloc(1, sizeof(*p));
    if (!p) {
        free(take_text);
        return -ENOMEM;
    }
    p->text = take_text;
    p->req.data = p;
    buf = uv_buf_init(take_text + k, (unsigned)(n - (size_t)k));
    k = uv_write(&p->req, (uv_stream_t *)j->conn, &buf, 1, written);
    if (k < 0) {
        free(take_text);
        free(p);
    }
    return k;
}

int stk_local_send(struct stk_local_job *j, json_t *take_msg)
{
    char *text = take_msg ? json_dumps(take_msg, JSON_COMPACT) : NULL;
    size_t n = text ? strlen(text) : 0;

    json_decref(take_msg);
    if (!text)
        return -ENOMEM;
    text[n++] = '\n';
    return stk_local_send_text(j, text, n);
}

void stk_local_ended(struct stk_local_job *j)
{
    enum stk_cause cause = j->final_cause != STK_CAUSE_NONE ? j->final_cause : j->run.cause;

    if (j->where == STK_W_ENDED)
        return;
    if (j->run.started)
        stk_local_emit_started(j);
    stk_local_emit_exited(j, cause, j->final_cause != STK_CAUSE_NONE ? j->sentence : j->run.note);
}

static void item_next(struct stk_local_job *j, const json_t *rec)
{
    const struct stk_local_config *c = &j->m->cfg;
    int32_t item = c->item_next ? c->item_next(c->ctx, j->number) : STK_LOCAL_NO_ITEMS;

    if (item != STK_LOCAL_ITEM_LATER)
        (void)stk_local_send(j, json_pack("{s:s,s:I,s:i}", "op", "item", "worker",
                                          json_integer_value(json_object_get(rec, "worker")),
                                          "item", (int)item));
}

static void item_done(const struct stk_local_job *j, const json_t *rec)
{
    const struct stk_local_config *c = &j->m->cfg;

    if (c->item_done)
        c->item_done(c->ctx, j->number, (uint32_t)json_integer_value(json_object_get(rec, "item")),
                     (int)json_integer_value(json_object_get(rec, "code")),
                     (int)json_integer_value(json_object_get(rec, "signal")));
}

static void on_started(struct stk_local_job *j)
{
    if (j->where != STK_W_LAUNCHED) {
        stk_local_emit_started(j);
        return;
    }
    j->where = STK_W_RUNNING;
    stk_local_forget_spec(j);
    stk_local_turn_began(j);
    stk_local_emit_started(j);
    if (j->stopping)
        stk_local_do_stop(j);
}

/* What was said while nobody listened is in the run file. */
static void catch_up(struct stk_local_job *j)
{
    struct stk_run run = {0};
    bool locked;
    char name[64];

    stk_local_run_name(j, "", name, sizeof(name));
    if (j->m->cfg.item_done && !j->stray &&
        stk_run_read(j->m->run_dir, name, &run, &locked, stk_local_replay_item, j) == 0)
        stk_run_done(&run);
}

static void record(struct stk_local_job *j, const json_t *rec)
{
    const char *ev = json_string_value(json_object_get(rec, "ev"));

    if (!ev)
        return;
    stk_run_apply(&j->run, rec);
    if (strcmp(ev, "hello") == 0) {
        catch_up(j);
        stk_local_hello(j);
    } else if (strcmp(ev, "started") == 0)
        on_started(j);
    else if (strcmp(ev, "exited") == 0)
        stk_local_ended(j);
    else if (strcmp(ev, "prepared") == 0)
        stk_local_prepared(j, rec);
    else if (strcmp(ev, "asleep") == 0)
        stk_local_asleep(j);
    else if (strcmp(ev, "awake") == 0)
        stk_local_awake(j, json_string_value(json_object_get(rec, "why")));
    else if (strcmp(ev, "item_next") == 0)
        item_next(j, rec);
    else if (strcmp(ev, "item_done") == 0)
        item_done(j, rec);
}

/* Takes whole lines out of j->in. A record may close the connection, which empties it. */
static void lines(struct stk_local_job *j)
{
    size_t from = 0;

    while (j->conn && from < j->n_in) {
        const char *nl = memchr(j->in + from, '\n', j->n_in - from);
        json_t *rec;

        if (!nl)
            break;
        rec = json_loadb(j->in + from, (size_t)(nl - j->in) - from, 0, NULL);
        from = (size_t)(nl - j->in) + 1;
        if (rec)
            record(j, rec);
        json_decref(rec);
    }
    if (from > 0 && from <= j->n_in) {
        j->n_in -= from;
        memmove(j->in, j->in + from, j->n_in);
    }
}

static void give_buffer(uv_handle_t *h, size_t hint, uv_buf_t *buf)
{
    struct stk_local_job *j = h->data;

    (void)hint;
    *buf = uv_buf_init(NULL, 0);
    if (!j)
        return;
    if (j->n_in == j->cap_in) {
        size_t cap = j->cap_in ? j->cap_in * 2 : 2048;
        char *more = cap <= STK_LOCAL_MAX_LINE ? realloc(j->in, cap) : NULL;

        if (!more)
            return;
        j->in = more;
        j->cap_in = cap;
    }
    *buf = uv_buf_init(j->in + j->n_in, (unsigned)(j->cap_in - j->n_in));
}

static void got(uv_stream_t *h, ssize_t n, const uv_buf_t *buf)
{
    struct stk_local_job *j = h->data;

    (void)buf;
    if (!j || n == 0)
        return;
    if (n > 0) {
        j->n_in += (size_t)n;
        lines(j);
        return;
    }
    stk_local_link_close(j);
    stk_local_lost(j);
}

int stk_local_link_open(struct stk_local_job *j, int take_fd)
{
    uv_pipe_t *p = calloc(1, sizeof(*p));
    int rc = p ? uv_pipe_init(j->m->cfg.loop, p, 0) : -ENOMEM;

    if (rc < 0) {
        free(p);
        (void)close(take_fd);
        return rc;
    }
    rc = uv_pipe_open(p, take_fd);
    if (rc < 0)
        (void)close(take_fd);
    if (rc == 0) {
        p->data = j;
        rc = uv_read_start((uv_stream_t *)p, give_buffer, got);
    }
    if (rc < 0) {
        p->data = NULL;
        uv_close((uv_handle_t *)p, free_handle);
        return rc;
    }
    stk_local_link_close(j);
    j->conn = p;
    return 0;
}

/* It died before it did anything: another is made, for the nursery may have been killed. */
static void never_began(struct stk_local_job *j)
{
    if (j->stray) {
        j->where = STK_W_ENDED;
        return;
    }
    if (j->spec && !j->stopping && ++j->launches < MAX_LAUNCHES) {
        j->adopted = false;
        stk_local_unlink(j);
        j->where = STK_W_WAITING;
        if (j->m->strays == 0)
            stk_local_spawn(j);
        return;
    }
    stk_local_emit_exited(j, j->stopping ? j->stop.cause : STK_CAUSE_NOT_STARTED,
                          "not started: its supervisor ended before it began");
}

/* The shim holds the lock for as long as it lives, and lets go of it before the connection. */
void stk_local_lost(struct stk_local_job *j)
{
    struct stk_local *m = j->m;
    struct stk_run run = {0};
    bool locked = false;
    char name[64];
    int rc;

    if (j->where != STK_W_ENDED && j->where != STK_W_ORPHANED) {
        stk_local_run_name(j, "", name, sizeof(name));
        rc = stk_run_read(m->run_dir, name, &run, &locked, stk_local_replay_item, j);
        if (rc == 0 && locked && !run.exited) { /* it lives: it is connected to again */
            stk_run_done(&run);
            stk_local_timer_need(m);
            return;
        }
        stk_run_done(&j->run);
        j->run = run;
        if (rc < 0 || !run.begun)
            never_began(j);
        else if (run.exited)
            stk_local_ended(j);
        else
            stk_local_orphan(j);
    }
    if (j->stray && j->where == STK_W_ENDED) {
        stk_local_unlink(j);
        stk_local_job_free(j);
        stk_local_strays_gone(m);
    }
}
