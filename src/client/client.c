/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - connections, requests and answers. A connection is non-blocking and waited for with
 * poll(), so that a time limit and the caller's wake-up hold at every step. A call read whole and a
 * stream are the same thing with different takers of the body. */
#include "client/client.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_REFUSAL 65536 /* of the body of an error, kept for its sentence */
#define MODE_MS 100       /* a starting daemon needs far less to set its socket's mode */

struct stk_client {
    int fd; /* kept for the next call; -1: none */
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

struct stk_stream {
    int fd, wake_fd, timeout_ms;
    bool any;   /* a byte of the answer has come */
    bool whole; /* the body is gathered in 'text', else it goes to 'fn' */
    struct stk_answer http;
    stk_body_fn fn;
    void *ctx;
    char *text; /* the body of an error, or all of it */
    size_t n, cap;
};

struct stk_client *stk_client_new(const char *path)
{
    struct stk_client *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->fd = -1;
    (void)snprintf(c->path, sizeof(c->path), "%s", path);
    return c;
}

void stk_client_free(struct stk_client *c)
{
    if (!c)
        return;
    if (c->fd >= 0)
        (void)close(c->fd);
    free(c);
}

/* The daemon of a user other than root serves that user only. */
static int refused_socket(const struct stk_client *c, struct stk_err *err)
{
    struct stat st;

    if (stat(c->path, &st) == 0 && st.st_uid != geteuid())
        return stk_err_set(err, -EPERM,
                           "the daemon at %s serves only its own user (uid %u); use the machine's "
                           "own daemon (systemctl start stoker), or start yours: stoker serve",
                           c->path, (unsigned)st.st_uid);
    return stk_err_set(err, -EPERM, "no permission to use the daemon's socket %s", c->path);
}

static int unreachable(const struct stk_client *c, int e, struct stk_err *err)
{
    char advice[256];

    switch (e) {
    case ENOENT:
    case ENOTDIR:
        return stk_err_set(err, -EHOSTDOWN, "no daemon at %s: %s", c->path,
                           stk_client_advice("", c->path, advice, sizeof(advice)));
    case ECONNREFUSED:
        return stk_err_set(err, -EHOSTDOWN, "the daemon of %s is not running: %s", c->path,
                           stk_client_advice("", c->path, advice, sizeof(advice)));
    case EACCES:
    case EPERM:
        return refused_socket(c, err);
    case EAGAIN:
        return stk_err_set(err, -EHOSTDOWN, "the daemon at %s takes no more connections now",
                           c->path);
    default:
        return stk_err_set(err, -EHOSTDOWN, "cannot reach the daemon at %s: %s", c->path,
                           strerror(e));
    }
}

static int connect_to(const struct stk_client *c, struct stk_err *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const struct timeval limit = {.tv_sec = 10};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = -1;

    if (fd < 0)
        return stk_err_set(err, -errno, "no socket: %s", strerror(errno));
    memcpy(at.sun_path, c->path, sizeof(at.sun_path));
    /* the time limit is that of connect(), which waits while the daemon's queue is full */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    for (int tries = 0; rc < 0 && tries < 2; tries++) {
        if (tries > 0) /* a daemon that starts makes the file, and then sets its mode */
            (void)poll(NULL, 0, MODE_MS);
        do
            rc = connect(fd, (const struct sockaddr *)&at, sizeof(at));
        while (rc < 0 && errno == EINTR);
        if (rc < 0 && errno != EACCES)
            break;
    }
    if (rc == 0)
        rc = fcntl(fd, F_SETFL, O_NONBLOCK);
    if (rc == 0)
        return fd;
    rc = unreachable(c, errno, err);
    (void)close(fd);
    return rc;
}

/* 0 when 'fd' is ready, else an error. */
static int wait_for(const struct stk_stream *s, short events, struct stk_err *err)
{
    struct pollfd p[2] = {{.fd = s->fd, .events = events},
                          {.fd = s->wake_fd > 0 ? s->wake_fd : -1, .events = POLLIN}};
    int rc = poll(p, 2, s->timeout_ms);

    if (rc < 0 && errno == EINTR)
        return 0;
    if (rc < 0)
        return stk_err_set(err, -errno, "poll: %s", strerror(errno));
    if (rc == 0)
        return stk_err_set(err, -ETIMEDOUT, "no answer from the daemon in %d seconds",
                           s->timeout_ms / 1000);
    if (p[1].revents != 0)
        return stk_err_set(err, -EINTR, "interrupted");
    return 0;
}

static int send_all(const struct stk_stream *s, const char *data, size_t n, struct stk_err *err)
{
    while (n > 0) {
        ssize_t k = send(s->fd, data, n, MSG_NOSIGNAL);
        int rc;

        if (k >= 0) {
            data += k;
            n -= (size_t)k;
            continue;
        }
        /* It may have refused before it read all: the answer will say. */
        if (errno == EPIPE || errno == ECONNRESET)
            return 0;
        if (errno != EAGAIN && errno != EINTR)
            return stk_err_set(err, -errno, "cannot send to the daemon: %s", strerror(errno));
        rc = wait_for(s, POLLOUT, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int send_request(const struct stk_stream *s, const struct stk_call *rq, struct stk_err *err)
{
    char head[STK_CLIENT_MAX_PATH + 512];
    char *body = rq->body ? json_dumps(rq->body, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    size_t size = body ? strlen(body) : 0;
    const char *method = rq->method ? rq->method : "GET";
    int n, rc;

    if (rq->body && !body)
        return stk_err_set(err, -ENOMEM, "out of memory");
    n = snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: stoker\r\n", method, rq->path);
    if (rq->key && n > 0 && (size_t)n < sizeof(head))
        n += snprintf(head + n, sizeof(head) - (size_t)n, "Idempotency-Key: %s\r\n", rq->key);
    if ((body || strcmp(method, "GET") != 0) && n > 0 && (size_t)n < sizeof(head))
        n += snprintf(head + n, sizeof(head) - (size_t)n,
                      "Content-Type: application/json\r\nContent-Length: %zu\r\n", size);
    if (n > 0 && (size_t)n < sizeof(head))
        n += snprintf(head + n, sizeof(head) - (size_t)n, "\r\n");
    if (n <= 0 || (size_t)n >= sizeof(head) || strpbrk(rq->path, " \r\n"))
        rc = stk_err_set(err, -EINVAL, "the request is too long or has spaces");
    else
        rc = send_all(s, head, (size_t)n, err);
    if (rc == 0 && body)
        rc = send_all(s, body, size, err);
    free(body);
    return rc;
}

static int gather(struct stk_stream *s, const char *data, size_t n)
{
    if (s->n + n + 1 > s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 4096;
        char *text;

        while (cap < s->n + n + 1)
            cap *= 2;
        text = realloc(s->text, cap);
        if (!text)
            return -ENOMEM;
        s->text = text;
        s->cap = cap;
    }
    memcpy(s->text + s->n, data, n);
    s->n += n;
    s->text[s->n] = '\0';
    return 0;
}

static int on_body(void *ctx, const char *data, size_t n)
{
    struct stk_stream *s = ctx;

    if (s->whole)
        return gather(s, data, n);
    if (s->http.status >= 300)
        return s->n + n > MAX_REFUSAL ? 0 : gather(s, data, n);
    return s->fn ? s->fn(s->ctx, data, n) : 0;
}

/* The daemon's own sentence, or one about the status. */
static int refusal(const struct stk_stream *s, struct stk_err *err)
{
    json_t *root = s->text ? json_loadb(s->text, s->n, 0, NULL) : NULL;
    const json_t *error = json_object_get(root, "error");
    const char *sentence = json_string_value(json_object_get(error, "message"));
    const char *code = json_string_value(json_object_get(error, "code"));
    int status = s->http.status, rc = -EREMOTEIO;

    if (status == 400 || status == 413 || status == 422)
        rc = -EINVAL;
    else if (status == 401 || status == 403)
        rc = -EACCES;
    else if (status == 404)
        rc = -ENOENT;
    else if (status == 409)
        rc = -EBUSY;
    else if (status == 503 && strcmp(code ? code : "", "stopping") == 0)
        rc = -EHOSTDOWN;
    if (sentence)
        (void)stk_err_set(err, rc, "%s", sentence);
    else
        (void)stk_err_set(err, rc, "the daemon answered with HTTP status %d", status);
    json_decref(root);
    return rc;
}

int stk_stream_pump(struct stk_stream *s, struct stk_err *err)
{
    char buf[65536];

    while (!stk_answer_done(&s->http)) {
        ssize_t n = recv(s->fd, buf, sizeof(buf), 0);
        int rc;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0 && errno != ECONNRESET)
            return stk_err_set(err, -errno, "cannot read from the daemon: %s", strerror(errno));
        if (n <= 0) {
            rc = stk_answer_end(&s->http, err);
            if (rc < 0)
                return rc;
            break;
        }
        s->any = true;
        n = stk_answer_feed(&s->http, buf, (size_t)n, on_body, s, err);
        if (n < 0)
            return (int)n;
    }
    return !s->whole && s->http.status >= 300 ? refusal(s, err) : 1;
}

int stk_stream_run(struct stk_stream *s, struct stk_err *err)
{
    int rc;

    while ((rc = stk_stream_pump(s, err)) == 0) {
        rc = wait_for(s, POLLIN, err);
        if (rc < 0)
            break;
    }
    return rc < 0 ? rc : 0;
}

int stk_stream_fd(const struct stk_stream *s)
{
    return s->fd;
}

bool stk_stream_offset(const struct stk_stream *s, uint64_t *ret)
{
    bool known = s->http.part > STK_ANSWER_HEADERS && s->http.status == 200;

    if (known)
        *ret = s->http.offset + s->http.body;
    return known;
}

static void stream_start(struct stk_stream *s, const struct stk_call *rq, int fd)
{
    s->fd = fd;
    s->wake_fd = rq->wake_fd;
    s->timeout_ms = rq->timeout_ms == 0 ? STK_CLIENT_TIMEOUT_MS : rq->timeout_ms;
    s->any = false;
    s->n = 0;
    stk_answer_init(&s->http, s->whole ? STK_CLIENT_MAX_BODY : 0);
}

int stk_stream_open(struct stk_client *c, const struct stk_call *rq, stk_body_fn fn, void *ctx,
                    struct stk_stream **ret, struct stk_err *err)
{
    struct stk_stream *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return stk_err_set(err, -ENOMEM, "out of memory");
    s->fn = fn;
    s->ctx = ctx;
    rc = connect_to(c, err);
    stream_start(s, rq, rc);
    if (rc >= 0)
        rc = send_request(s, rq, err);
    if (rc < 0) {
        stk_stream_free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

void stk_stream_free(struct stk_stream *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        (void)close(s->fd);
    free(s->text);
    free(s);
}

/* One try of a call, on the kept connection or a new one. */
static int attempt(struct stk_client *c, const struct stk_call *rq, struct stk_stream *s,
                   struct stk_err *err)
{
    int fd = c->fd >= 0 ? c->fd : connect_to(c, err), rc;

    c->fd = -1;
    if (fd < 0)
        return fd;
    stream_start(s, rq, fd);
    rc = send_request(s, rq, err);
    rc = rc < 0 ? rc : stk_stream_run(s, err);
    if (rc == 0 && !s->http.close)
        c->fd = fd;
    else
        (void)close(fd);
    s->fd = -1;
    return rc;
}

static int take_answer(const struct stk_stream *s, json_t **ret_body, struct stk_err *err)
{
    json_error_t where;
    json_t *root;

    if (s->http.status >= 300)
        return refusal(s, err);
    if (!ret_body)
        return 0;
    root = s->n > 0 ? json_loadb(s->text, s->n, JSON_DECODE_ANY, &where) : json_object();
    if (!root)
        return stk_err_set(err, -EPROTO, "the daemon's answer is not JSON: %.100s",
                           s->n > 0 ? where.text : "out of memory");
    *ret_body = root;
    return 0;
}

int stk_client_call(struct stk_client *c, const struct stk_call *rq, json_t **ret_body,
                    struct stk_err *err)
{
    struct stk_stream *s = calloc(1, sizeof(*s));
    bool kept = c->fd >= 0, safe = rq->key || !rq->method || strcmp(rq->method, "GET") == 0;
    int rc;

    if (!s)
        return stk_err_set(err, -ENOMEM, "out of memory");
    s->whole = true;
    rc = attempt(c, rq, s, err);
    if (rc == -EPIPE && kept && safe && !s->any)
        rc = attempt(c, rq, s, err);
    if (rc == 0)
        rc = take_answer(s, ret_body, err);
    s->fd = -1;
    stk_stream_free(s);
    return rc;
}

int stk_client_get(struct stk_client *c, json_t **ret_body, struct stk_err *err, const char *fmt,
                   ...)
{
    char path[STK_CLIENT_MAX_PATH];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(path, sizeof(path), fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof(path))
        return stk_err_set(err, -EINVAL, "the request is too long");
    return stk_client_call(c, &(struct stk_call){.path = path}, ret_body, err);
}
