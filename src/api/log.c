/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - a job's output, as it is or as it grows.
 *
 * The file lies where its owner wanted it, maybe on a file system that is slow or hangs; so it is
 * opened and read by the loop's helper threads, a piece at a time, and each piece is sent before
 * the next is read. It is opened with the owner's rights, never through a link in its place, and
 * read only if it is a regular file of the owner's.
 *
 * Where the size cap has cut the middle out, a line says how much is missing. Offsets are those of
 * the whole output (sys/logcut.h), so a reader goes on where it was when the log is cut meanwhile.
 * Following ends when the job has ended and everything was sent.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/handlers.h"
#include "api/logpath.h"
#include "sys/logcut.h"

#define PIECE ((size_t)65536)
#define MAX_TAIL_BYTES (1u << 20) /* how far back lines are counted */

struct stk_tail {
    struct stk_tail *prev, *next;
    struct stk_api *api;
    struct stk_request *req; /* NULL: nobody reads any more */
    stk_job_number number;
    uint32_t uid, gid;
    bool follow;
    bool streaming; /* the answer has begun */
    bool job_over;  /* the job had ended when the last piece was asked for */
    bool eof;       /* the last piece reached the end of the file */
    bool working;   /* a helper thread has it */
    bool inside;    /* the last byte was not the end of a line */
    bool counts;   /* the client counts bytes: what was left out is told only where answers begin */
    bool gap;      /* bytes were left out after those sent: the answer is broken off */
    uint64_t pos;  /* in the whole output */
    uint64_t head; /* where the file says what was cut out */
    uint64_t begin; /* with the bytes sent: where in the whole output the next byte is */
    uint64_t left;  /* bytes still wanted */
    uint32_t tail;  /* begin with this many last lines; 0: at pos */
    int fd;
    int rc; /* of the last piece */
    struct stk_err err;
    size_t len, at;
    uv_work_t work;
    char path[4096];
    char buf[PIECE + 256]; /* and lines of ours */
};

/* ---- in a helper thread: touches nothing but the tail ---- */

static int open_log(struct stk_tail *t)
{
    struct stat st;
    int fd, e;

    (void)setfsgid(t->gid);
    (void)setfsuid(t->uid);
    fd = open(t->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    e = errno;
    (void)setfsuid(geteuid());
    (void)setfsgid(getegid());
    if (fd < 0)
        return stk_err_set(&t->err, e == ENOENT ? -ENOENT : -EACCES, "%.180s: %s", t->path,
                           e == ELOOP ? "is a link" : strerror(e));
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != t->uid) {
        (void)close(fd);
        return stk_err_set(&t->err, -EACCES, "%.180s is not a regular file of the job's owner",
                           t->path);
    }
    t->fd = fd;
    return 0;
}

/* Moves pos back to where the last lines begin. */
static void seek_lines(struct stk_tail *t, const struct stk_logcut *c, uint64_t size)
{
    uint64_t from = size > MAX_TAIL_BYTES ? size - MAX_TAIL_BYTES : 0;
    uint32_t lines = 0;
    char *text = malloc(MAX_TAIL_BYTES);
    ssize_t n = text ? pread(t->fd, text, (size_t)(size - from), (off_t)from) : 0;

    for (ssize_t i = n - 1; i > 0; i--)
        if (text[i - 1] == '\n' && ++lines == t->tail) {
            from += (uint64_t)i;
            break;
        }
    t->pos = stk_logcut_to_logical(c, from);
    t->tail = 0;
    free(text);
}

/* Says in place of 'lost' bytes that they are missing, and passes over them. False: a client that
 * counts has to be told where the bytes after them are, which only the head of an answer can. */
static bool say_lost(struct stk_tail *t, uint64_t lost)
{
    t->gap = t->counts && (t->streaming || t->len > 0);
    if (t->gap)
        return false;
    t->len += (size_t)snprintf(t->buf + t->len, sizeof(t->buf) - PIECE - t->len,
                               "%s[stoker: %" PRIu64 " bytes of output were left out here]\n",
                               t->inside ? "\n" : "", lost);
    t->inside = false;
    t->pos += lost;
    return true;
}

/* Passes over a hole at this byte of the file; returns where the data ends that begins there, 0:
 * the answer is broken off. */
static uint64_t next_data(struct stk_tail *t, uint64_t *io_at, uint64_t size)
{
    off_t data = lseek(t->fd, (off_t)*io_at, SEEK_DATA), hole;

    if (data < 0 && errno != ENXIO)
        return size; /* this file system does not tell */
    if (data < 0)
        data = (off_t)size;
    if ((uint64_t)data > *io_at) {
        if (!say_lost(t, (uint64_t)data - *io_at))
            return 0;
        *io_at = (uint64_t)data;
    }
    hole = lseek(t->fd, (off_t)*io_at, SEEK_HOLE);
    return hole < 0 ? size : (uint64_t)hole;
}

/* Bytes at pos, as many as lie together. The log may be cut while it is read: then what was read is
 * dropped, and the next piece begins there again. */
static void read_data(struct stk_tail *t, const struct stk_logcut *c, uint64_t size)
{
    const uint64_t pos = t->pos;
    const size_t len = t->len;
    const bool inside = t->inside;
    struct stk_logcut now;
    uint64_t at, end, want;
    ssize_t n;

    if (c->lost && pos >= c->at && pos < c->at + c->lost && !say_lost(t, c->at + c->lost - pos))
        return;
    at = stk_logcut_to_file(c, t->pos);
    end = next_data(t, &at, size);
    if (end == 0)
        return;
    end = c->lost && at < c->at && end > c->at ? c->at : end;
    want = end - at < PIECE ? end - at : PIECE;
    want = want < t->left ? want : t->left;
    n = pread(t->fd, t->buf + t->len, (size_t)want, (off_t)at);
    stk_logcut_find(t->fd, t->head, &now);
    if (now.lost != c->lost || now.at != c->at) {
        t->pos = pos;
        t->len = len;
        t->inside = inside;
        return;
    }
    if (n > 0) {
        t->pos += (uint64_t)n;
        t->left -= (uint64_t)n;
        t->len += (size_t)n;
        t->inside = t->buf[t->len - 1] != '\n';
    }
    t->eof = n <= 0 || at + (uint64_t)n >= size;
}

static void read_piece(uv_work_t *work)
{
    struct stk_tail *t = work->data;
    struct stk_logcut c;
    struct stat st;
    uint64_t all;

    t->rc = t->fd < 0 ? open_log(t) : 0;
    t->eof = t->rc < 0;
    if (t->rc < 0)
        return;
    if (fstat(t->fd, &st) < 0)
        st.st_size = 0;
    stk_logcut_find(t->fd, t->head, &c);
    all = stk_logcut_to_logical(&c, (uint64_t)st.st_size);
    if (t->tail > 0)
        seek_lines(t, &c, (uint64_t)st.st_size);
    if (t->pos > all && t->follow && t->streaming) {
        t->len = (size_t)snprintf(t->buf, sizeof(t->buf), "\n[stoker: the file was cut short]\n");
        t->pos = 0;
    }
    if (t->pos >= all)
        t->eof = true;
    else
        read_data(t, &c, (uint64_t)st.st_size);
    if (!t->streaming)
        t->begin = t->pos > t->len ? t->pos - t->len : 0;
}

/* ---- in the loop ---- */

static void free_tail(struct stk_tail *t)
{
    if (t->fd >= 0)
        (void)close(t->fd);
    free(t);
}

static void unlink_tail(struct stk_tail *t)
{
    if (t->prev)
        t->prev->next = t->next;
    else
        t->api->tails = t->next;
    if (t->next)
        t->next->prev = t->prev;
    t->req = NULL;
    if (!t->working)
        free_tail(t);
}

static bool finished(const struct stk_tail *t)
{
    return t->left == 0 || (t->eof && (!t->follow || t->job_over)) ||
           (t->rc < 0 && t->rc != -ENOENT);
}

static void on_piece(uv_work_t *work, int status);

static void ask_piece(struct stk_tail *t)
{
    if (t->working)
        return;
    t->len = t->at = 0;
    t->job_over = !stk_live_entry(t->api->cfg.live, t->number);
    t->working = uv_queue_work(t->api->cfg.loop, &t->work, read_piece, on_piece) == 0;
}

static ssize_t fill(void *ctx, char *buf, size_t max, bool stopping)
{
    struct stk_tail *t = ctx;
    size_t n;

    if (t->working)
        return 0;
    n = t->len - t->at < max ? t->len - t->at : max;
    memcpy(buf, t->buf + t->at, n);
    t->at += n;
    if (n > 0)
        return (ssize_t)n;
    if (finished(t))
        return STK_STREAM_END;
    if (stopping || t->gap)
        return STK_STREAM_CUT;
    if (!t->eof || (!t->job_over && !stk_live_entry(t->api->cfg.live, t->number)))
        ask_piece(t);
    return 0; /* at the end of a file that may grow: the tick asks */
}

static void done(void *ctx)
{
    unlink_tail(ctx);
}

static const struct stk_stream_ops tail_ops = {fill, done};

/* The first piece decides what the answer is. */
static void begin_answer(struct stk_tail *t)
{
    struct stk_request *r = t->req;
    char begin[24];

    if (t->rc < 0 && !(t->rc == -ENOENT && t->follow && !t->job_over)) {
        struct stk_err err = t->err;
        int rc = t->rc;

        unlink_tail(t);
        if (rc == -ENOENT)
            (void)stk_err_set(&err, rc, "there is no output yet, or it was moved");
        stk_api_fail(r, rc, &err);
        return;
    }
    if (t->rc < 0)
        t->tail = 0; /* no file yet: all that will be in it is new */
    t->streaming = true;
    (void)snprintf(begin, sizeof(begin), "%" PRIu64, t->begin);
    stk_request_stream(r, "text/plain; charset=utf-8", &tail_ops, t);
    stk_request_add(r, "Stoker-Offset", begin);
}

static void on_piece(uv_work_t *work, int status)
{
    struct stk_tail *t = work->data;

    (void)status;
    t->working = false;
    if (!t->req)
        free_tail(t);
    else if (!t->streaming)
        begin_answer(t);
    else
        stk_request_wake(t->req);
}

/* What a job that has just ended has left is read at once. */
void stk_tail_turn(struct stk_api *a)
{
    for (struct stk_tail *t = a->tails; t; t = t->next)
        if (t->streaming && t->eof && !t->working && t->at == t->len && !t->job_over &&
            !stk_live_entry(a->cfg.live, t->number))
            ask_piece(t);
}

void stk_tail_tick(struct stk_api *a)
{
    for (struct stk_tail *t = a->tails; t; t = t->next)
        if (t->streaming && t->eof && !t->working && t->at == t->len && !finished(t))
            ask_piece(t);
}

static void on_gone(void *ctx, struct stk_request *r)
{
    (void)r;
    unlink_tail(ctx);
}

struct owner {
    struct stk_tail *t;
    const char *stream;
    uint32_t task;
};

/* Whose it is and where it lies. */
static int on_record(void *ctx, const struct stk_record *rec)
{
    struct owner *o = ctx;
    json_t *spec = stk_live_spec(o->t->api->cfg.live, rec->spec);
    const struct stk_logpath which = {rec, spec, strcmp(o->stream, "stderr") == 0, o->task};

    o->t->uid = rec->uid;
    o->t->gid = rec->gid;
    o->t->head = stk_logpath_cap(spec) / 4;
    if (stk_logpath(o->t->api, &which, o->t->path, sizeof(o->t->path)) < 0)
        o->t->path[0] = '\0';
    json_decref(spec);
    return 1;
}

static int find_log(struct stk_api *a, struct stk_request *r, struct owner *o)
{
    const struct stk_entry *e = stk_live_entry(a->cfg.live, o->t->number);
    struct stk_err err = {""};
    int rc = 0;

    o->t->uid = UINT32_MAX;
    if (e)
        (void)on_record(o, &e->rec);
    else
        rc = stk_store_job_get(stk_live_store(a->cfg.live), o->t->number, on_record, o, &err);
    if (rc == -ENOENT || (rc == 0 && o->t->uid == UINT32_MAX))
        rc = stk_err_set(&err, -ENOENT, "there is no job %u", o->t->number);
    else if (rc == 0 && !stk_live_may(stk_request_who(r), o->t->uid))
        rc = stk_err_set(&err, -EACCES, "job %u is somebody else's", o->t->number);
    else if (rc == 0 && o->t->path[0] == '\0')
        rc = stk_err_set(&err, -ENOENT, "job %u has no output file", o->t->number);
    if (rc < 0)
        stk_api_fail(r, rc, &err);
    return rc;
}

static int read_query(struct stk_request *r, struct stk_tail *t, struct owner *o)
{
    const char *stream = stk_request_query(r, "stream"), *counts = stk_request_query(r, "counts");
    uint64_t follow, task, tail;

    if (stk_api_job_number(t->api, r, &t->number) < 0 ||
        stk_request_number(r, "follow", 0, 1, &follow) < 0 ||
        stk_request_number(r, "task", 0, STK_MAX_TASKS, &task) < 0 ||
        stk_request_number(r, "offset", 0, INT64_MAX, &t->pos) < 0 ||
        stk_request_number(r, "tail", 0, 100000, &tail) < 0 ||
        stk_request_number(r, "limit", INT64_MAX, INT64_MAX, &t->left) < 0)
        return -EINVAL;
    if (stream && strcmp(stream, "stdout") != 0 && strcmp(stream, "stderr") != 0) {
        stk_request_error(r, 400, NULL, "stream must be stdout or stderr, got \"%.40s\"", stream);
        return -EINVAL;
    }
    if (counts && strcmp(counts, "line") != 0 && strcmp(counts, "inside") != 0) {
        stk_request_error(r, 400, NULL, "counts must be line or inside, got \"%.40s\"", counts);
        return -EINVAL;
    }
    t->counts = counts != NULL;
    t->inside = counts && strcmp(counts, "inside") == 0;
    t->follow = follow != 0;
    t->tail = (uint32_t)tail;
    o->stream = stream ? stream : "stdout";
    o->task = (uint32_t)task;
    return 0;
}

void stk_do_log(void *ctx, struct stk_request *r)
{
    struct stk_api *a = ctx;
    struct stk_tail *t = calloc(1, sizeof(*t));
    struct owner o = {.t = t};

    if (!t) {
        stk_request_error(r, 503, "busy", "out of memory");
        return;
    }
    t->fd = -1;
    t->api = a;
    t->req = r;
    t->work.data = t;
    if (read_query(r, t, &o) < 0 || find_log(a, r, &o) < 0) {
        free(t);
        return;
    }
    t->next = a->tails;
    if (a->tails)
        a->tails->prev = t;
    a->tails = t;
    stk_request_on_gone(r, on_gone, t);
    stk_api_need_tick(a);
    ask_piece(t);
    if (!t->working) {
        unlink_tail(t);
        stk_request_error(r, 503, "busy", "cannot read now");
    }
}
