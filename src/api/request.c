/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - one request: its body, its answer.
 *
 * While a handler has not answered, the connection is suspended, so that libmicrohttpd cannot end
 * the request under it; a request whose connection is closed all the same (the server stops) lives
 * on without one until it is answered.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/conn.h"
#include "sys/json.h"

#define STREAM_BLOCK 8192

struct stk_request *stk_request_new(struct stk_http *h, struct stk_conn *c,
                                    struct MHD_Connection *mhd)
{
    struct stk_request *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->http = h;
    r->conn = c;
    r->mhd = mhd;
    c->req = r;
    h->stats.requests++;
    return r;
}

static void drop_body(struct stk_request *r)
{
    if (r->http && r->body.data)
        r->http->body_bytes -= r->body.cap;
    free(r->body.data);
    r->body = (struct stk_body){0};
    stk_scan_done(&r->scan);
}

void stk_request_free(struct stk_request *r)
{
    if (!r)
        return;
    if (r->conn)
        r->conn->req = NULL;
    if (r->stream)
        r->stream->done(r->stream_ctx);
    if (r->response)
        MHD_destroy_response(r->response);
    drop_body(r);
    free(r);
}

void stk_request_over(struct stk_request *r)
{
    if (r->conn)
        r->conn->req = NULL;
    r->conn = NULL;
    r->mhd = NULL;
    r->asleep = false;
    drop_body(r);
    if (r->response || !r->dispatched || r->refused)
        stk_request_free(r);
    else
        r->http = NULL; /* it may outlive the server */
}

/* Refuses what is being read; what was read of it goes at once. */
static int refuse_body(struct stk_request *r, int rc, const struct stk_err *err)
{
    drop_body(r);
    if (rc == -ENOMEM)
        stk_request_error(r, 503, "no_memory", "the daemon has no memory for this now; try again");
    else
        stk_request_error(r, rc == -EFBIG ? 413 : 400, NULL, "%s", err->text);
    stk_request_add(r, "Connection", "close");
    return rc;
}

static int grow_body(struct stk_request *r, size_t need)
{
    struct stk_body *b = &r->body;
    size_t cap = need < 4096 ? 4096 : need + need / 2;
    char *p;

    if (r->known && stk_conn_bytes(r->http, r->who.uid) - b->cap + cap > stk_limits_bytes(r)) {
        drop_body(r);
        stk_request_error(r, 429, NULL,
                          "%s sends more than %zu MiB at once over several connections; wait for "
                          "answers",
                          r->who.user, stk_limits_bytes(r) >> 20);
        return -EDQUOT;
    }
    if (r->http->body_bytes - b->cap + cap > STK_HTTP_MAX_BODIES) {
        drop_body(r);
        stk_request_error(r, 503, "busy", "too many large requests at once; try again");
        return -ENOBUFS;
    }
    p = realloc(b->data, cap);
    if (!p)
        return refuse_body(r, -ENOMEM, NULL);
    r->http->body_bytes += cap - b->cap;
    b->data = p;
    b->cap = cap;
    return 0;
}

int stk_request_take(struct stk_request *r, const char *data, size_t len)
{
    struct stk_body *b = &r->body;
    struct stk_err err = {""};
    int rc;

    if (!r->route->takes) { /* read, and not looked at */
        r->dropped += len;
        if (r->dropped <= r->scan.limits.bytes)
            return 0;
        (void)stk_err_set(&err, -EFBIG, "the body is larger than %zu bytes", r->scan.limits.bytes);
        return refuse_body(r, -EFBIG, &err);
    }
    rc = stk_scan_feed(&r->scan, data, len, &err);
    if (rc < 0)
        return refuse_body(r, rc, &err);
    if (b->len + len + 1 > b->cap) {
        rc = grow_body(r, b->len + len + 1);
        if (rc < 0)
            return rc;
    }
    memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
    return 0;
}

/* ---- what was asked ---- */

const char *stk_request_path(const struct stk_request *r, const char *name)
{
    size_t len = strlen(name);
    uint32_t n = 0;

    for (const char *p = strchr(r->route->path, '{'); p; p = strchr(p + 1, '{'), n++)
        if (strncmp(p + 1, name, len) == 0 && p[len + 1] == '}' && n < STK_MAX_PATH_PARAMS)
            return r->params[n];
    return "";
}

const char *stk_request_query(const struct stk_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->mhd, MHD_GET_ARGUMENT_KIND, name);
}

const char *stk_request_header(const struct stk_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

const struct stk_who *stk_request_who(const struct stk_request *r)
{
    return r->known ? &r->who : NULL;
}

const struct stk_route *stk_request_route(const struct stk_request *r)
{
    return r->route;
}

bool stk_request_has_body(const struct stk_request *r)
{
    return r->body.len > 0;
}

struct stk_pass *stk_request_pass(struct stk_request *r)
{
    return &r->pass;
}

bool stk_request_is_unix(const struct stk_request *r)
{
    return r->conn && r->conn->door->is_unix;
}

/* Whether there is a whole body. */
static int check_body(struct stk_request *r)
{
    struct stk_err err = {""};
    int rc;

    if (r->body.len == 0) {
        stk_request_error(r, 400, NULL, "the request needs a body in JSON");
        return -EINVAL;
    }
    rc = stk_scan_end(&r->scan, &err);
    return rc < 0 ? refuse_body(r, rc, &err) : 0;
}

int stk_request_body(struct stk_request *r, json_t **ret_body)
{
    json_error_t why;
    json_t *j;
    int rc = check_body(r);

    if (rc < 0)
        return rc;
    j = stk_json_load(r->body.data, r->body.len, JSON_REJECT_DUPLICATES, &why);
    drop_body(r);
    if (!j && stk_json_starved(&why))
        return refuse_body(r, -ENOMEM, NULL);
    if (!j) {
        stk_request_error(r, 400, NULL, "the body is not valid JSON: line %d, column %d: %s",
                          why.line, why.column, why.text);
        return -EINVAL;
    }
    stk_json_make_whole(j);
    *ret_body = j;
    return 0;
}

int stk_request_jobs(struct stk_request *r, struct stk_many *ret)
{
    struct stk_scan *s = &r->scan;
    int rc = check_body(r);

    if (rc < 0)
        return rc;
    if (s->ended && (s->members != 1 || s->n_jobs == 0)) {
        stk_request_error(r, 400, NULL,
                          s->members != 1
                              ? "the body has \"jobs\" and something beside it; a request has one "
                                "description, or \"jobs\" alone"
                              : "\"jobs\" must be a list of at least one description");
        return -EINVAL;
    }
    if (!s->ended) { /* one description, which is the whole body */
        s->jobs = malloc(sizeof(*s->jobs));
        if (!s->jobs)
            return refuse_body(r, -ENOMEM, NULL);
        s->jobs[0] = (struct stk_cut){0, (uint32_t)r->body.len};
        s->n_jobs = 1;
    }
    *ret = (struct stk_many){
        .text = r->body.data, .cuts = s->jobs, .bytes = r->body.cap, .n = s->n_jobs};
    s->jobs = NULL;
    s->n_jobs = s->cap_jobs = 0;
    r->http->body_bytes -= r->body.cap; /* the caller counts them from here on */
    r->body = (struct stk_body){0};
    return 0;
}

int stk_request_number(struct stk_request *r, const char *name, uint64_t def, uint64_t max,
                       uint64_t *ret)
{
    const char *text = stk_request_query(r, name);
    uint64_t v = 0;

    if (!text) {
        *ret = def;
        return 0;
    }
    if (*text && strlen(text) <= 19 && strspn(text, "0123456789") == strlen(text))
        v = strtoull(text, NULL, 10);
    else
        v = UINT64_MAX;
    if (v > max) {
        stk_request_error(r, 400, NULL, "%s must be a whole number from 0 to %llu, got \"%.40s\"",
                          name, (unsigned long long)max, text);
        return -EINVAL;
    }
    *ret = v;
    return 0;
}

/* ---- the answer ---- */

static void resume(struct stk_request *r)
{
    if (!r->asleep || !r->mhd)
        return;
    r->asleep = false;
    r->http->stats.held--;
    MHD_resume_connection(r->mhd);
    stk_door_kick(r->conn->door);
}

void stk_request_answer(struct stk_request *r, int status, const char *type,
                        struct MHD_Response *resp)
{
    static const char *const headers[][2] = {
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cache-Control", "no-store"},
        {"Content-Security-Policy",
         "default-src 'none'; connect-src 'self'; script-src 'self'; style-src 'self'; "
         "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    };

    if (r->response || !resp) { /* a second answer is a bug of ours; no memory is not */
        if (resp)
            MHD_destroy_response(resp);
        return;
    }
    (void)MHD_add_response_header(resp, "Content-Type", type);
    for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
        (void)MHD_add_response_header(resp, headers[i][0], headers[i][1]);
    if (status == 401)
        (void)MHD_add_response_header(resp, "WWW-Authenticate", "Bearer realm=\"stoker\"");
    if (status == 503)
        (void)MHD_add_response_header(resp, "Retry-After", "1");
    r->response = resp;
    r->status = status;
    r->on_gone = NULL;
    if (!r->mhd)
        stk_request_free(r);
    else
        resume(r);
}

void stk_request_on_gone(struct stk_request *r, stk_gone_fn fn, void *ctx)
{
    r->on_gone = fn;
    r->gone_ctx = ctx;
}

void stk_request_lost(struct stk_request *r)
{
    stk_gone_fn fn = r->on_gone;

    r->gone = !r->http->stopping;
    if (r->stream) {
        resume(r);
    } else if (fn) {
        fn(r->gone_ctx, r);
        stk_request_error(r, 503, NULL, "the daemon is stopping; ask again when it is back");
    }
}

void stk_request_revoke(struct stk_request *r)
{
    static const char sentence[] = "the token or session that this came with is no longer valid";
    stk_gone_fn fn = r->on_gone;

    r->revoked = true;
    if (r->stream) {
        r->gone = true;
        if (r->asleep)
            resume(r);
        else
            (void)shutdown(r->conn->fd, SHUT_RDWR); /* its client takes nothing */
    } else if (fn) {
        fn(r->gone_ctx, r);
        stk_request_error(r, 401, NULL, "%s", sentence);
    } else if (!r->dispatched && !r->response) {
        stk_request_error(r, 401, NULL, "%s", sentence);
        r->refused = true;
    } /* else it is answered soon */
}

/* ---- streams ---- */

static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct stk_request *r = cls;
    ssize_t n;

    (void)pos;
    if (r->gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    n = r->stream->fill(r->stream_ctx, buf, max, r->http->stopping);
    if (n > 0)
        return n;
    if (n == STK_STREAM_END)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n < 0 || r->http->stopping)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    r->asleep = true;
    r->http->stats.held++;
    MHD_suspend_connection(r->mhd);
    return 0;
}

void stk_request_stream(struct stk_request *r, const char *type, const struct stk_stream_ops *ops,
                        void *ctx)
{
    struct MHD_Response *resp =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, r, NULL);

    r->stream = ops;
    r->stream_ctx = ctx;
    r->gone = r->revoked;
    stk_request_answer(r, 200, type, resp);
}

void stk_request_wake(struct stk_request *r)
{
    resume(r);
}
