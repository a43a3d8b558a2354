/* SPDX-License-Identifier: Apache-2.0 */
/* http.h - HTTP/1.1 on a Unix socket and on TCP, inside a libuv loop.
 *
 * libmicrohttpd does the protocol; everything runs in the loop's one thread and nothing blocks. A
 * request is read whole, its sender is identified, and the handler of its route is called. A
 * handler answers at once, or keeps the request and answers later: its connection sleeps meanwhile.
 * Every request is answered exactly once.
 *
 * Limits: see the constants below, docs/spec/api.md has them in words. Connections that have sent
 * no whole request cost little and are closed when they get old or when there are too many; those
 * with an answer under way are never closed to make room.
 */
#ifndef STK_API_HTTP_H
#define STK_API_HTTP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <uv.h>

#include "base/err.h"
#include "live/live.h"
#include "live/many.h"

#define STK_HTTP_MAX_BODY (64u << 20)    /* bytes of one request, of operators and admins */
#define STK_HTTP_MAX_BODIES (128u << 20) /* of all requests being read */
#define STK_HTTP_POOL 16384u             /* request line and headers, and the answer's headers */
#define STK_HTTP_MAX_URL 4096u           /* path and query */
#define STK_HTTP_HEAD_MS 30000u          /* from connecting, or the last answer, to a request */
#define STK_HTTP_BODY_MS 300000u         /* from the headers to the end of the body */
#define STK_HTTP_STALL_S 60u             /* a client that reads nothing for this long is dropped */
#define STK_HTTP_MAX_HELD 512u           /* requests of one user that wait or stream */

struct stk_http;
struct stk_request;

enum stk_need {                 /* who may ask; each includes those below it */
                STK_NEED_NONE,  /* anyone who reaches us */
                STK_NEED_LOCAL, /* anyone on this machine; from elsewhere a user */
                STK_NEED_USER,
                STK_NEED_OPERATOR,
                STK_NEED_ADMIN
};

/* One row of the route table. Routing, 404 and 405 answers, checks of the query and the OpenAPI
 * document come from it. */
struct stk_route {
    const char *method; /* NULL: end of the table */
    const char *path;   /* "/v1/jobs/{id}/log" */
    void (*handle)(void *ctx, struct stk_request *r);
    enum stk_need need;
    const char *query; /* names that may be in the query, joined by spaces */
    const char
        *takes; /* schema of the body; NULL: has none. "Submit" is taken by stk_request_jobs() */
    const char *gives;   /* schema of the answer; NULL: it is of 'type' */
    const char *type;    /* NULL: application/json */
    int status;          /* of a good answer */
    const char *summary; /* one line */
};

struct stk_peer { /* what is known of a sender */
    bool is_unix;
    uint32_t uid, gid;          /* Unix: of the process that connected */
    const char *token;          /* TCP: bearer token; NULL */
    const char *page;           /* TCP, no token: the page's half of a session; NULL */
    struct stk_cookies cookies; /* what may be its other half */
};

struct stk_pass { /* the token or session that a request came with */
    int64_t id;   /* 0: it needed none */
    bool is_session;
    stk_time expires, ends; /* as in struct stk_token */
};

struct stk_http_config {
    uv_loop_t *loop;
    const struct stk_route *routes; /* borrowed for life */
    void *ctx;                      /* for handlers and identify */
    /* 0 and who it is; -EACCES: the token is not known; -ENOENT: there is no such user. */
    int (*identify)(void *ctx, const struct stk_peer *peer, struct stk_who *ret,
                    struct stk_pass *ret_pass);
    void (*log)(void *ctx, const char *line);  /* optional: what libmicrohttpd says */
    void (*warn)(void *ctx, const char *line); /* optional: what people should know of */
    const char *const *hosts; /* names TCP clients may use for us, beside addresses, localhost and
                                 the host's name; ends with NULL; may be NULL */
    uint32_t head_ms, body_ms, stall_s; /* 0: as above */
    bool own_user_only;                 /* the Unix socket is for processes of our own user */
};

int stk_http_new(const struct stk_http_config *cfg, struct stk_http **ret_http,
                 struct stk_err *err);
/* Listens on a socket at 'path', for all users or our own only. A stale socket is replaced;
 * -EADDRINUSE when somebody answers there. */
int stk_http_listen_unix(struct stk_http *h, const char *path, struct stk_err *err);

struct stk_http_tcp {
    const char *address;    /* "127.0.0.1:8080", "[::1]:0", "8080" */
    const char *cert, *key; /* PEM files; NULL: no TLS */
    bool insecure;          /* beyond loopback without TLS all the same */
};
int stk_http_listen_tcp(struct stk_http *h, const struct stk_http_tcp *tcp, struct stk_err *err);
/* What listening would refuse, apart from an address in use: a bad address, one beyond this machine
 * without TLS, certificate and key that cannot be read or are no pair. *ret_key (may be NULL):
 * which of "listen", "tls.cert" and "tls.key" is wrong. */
int stk_http_check_tcp(const struct stk_http_tcp *tcp, const char **ret_key, struct stk_err *err);
/* Whether a Unix socket may have this path. */
int stk_http_check_unix(const char *path, struct stk_err *err);
/* Other names for us, as in the config. */
void stk_http_set_hosts(struct stk_http *h, const char *const *hosts);
/* "http://127.0.0.1:8080"; "" when not listening on TCP. */
const char *stk_http_url(const struct stk_http *h);

/* No new requests; those that wait are answered 503, streams end. */
void stk_http_stop(struct stk_http *h);
uint32_t stk_http_busy(const struct stk_http *h); /* requests under way */
/* Closes everything. Its memory goes when the loop has run once more. NULL is a no-op. */
void stk_http_free(struct stk_http *h);

struct stk_http_stats {
    uint64_t requests, connections, refused; /* so far */
    uint32_t open, held;                     /* now */
};
void stk_http_stats(const struct stk_http *h, struct stk_http_stats *ret);
#define STK_HTTP_MIN_FILES 64u /* with which all of this works */
/* Raises this process's limit of open files to what it may be. -EMFILE: that is below
 * STK_HTTP_MIN_FILES. */
int stk_http_raise_files(struct stk_err *err);

/* ---- for handlers ---- */

const char *stk_request_path(const struct stk_request *r, const char *name);  /* {name}; "" */
const char *stk_request_query(const struct stk_request *r, const char *name); /* NULL: not there */
const char *stk_request_header(const struct stk_request *r, const char *name);
/* Who asks; NULL: a stranger (only where the route needs none). */
const struct stk_who *stk_request_who(const struct stk_request *r);
/* With what they came. It is the caller's to move 'expires'. */
struct stk_pass *stk_request_pass(struct stk_request *r);
const struct stk_route *stk_request_route(const struct stk_request *r);
bool stk_request_has_body(const struct stk_request *r);
bool stk_request_is_unix(const struct stk_request *r);
/* The body as JSON, a new reference. On failure the request has been answered 400. */
int stk_request_body(struct stk_request *r, json_t **ret_body);
/* The body of a submission: its descriptions, one or many. On failure the request has been
 * answered. */
int stk_request_jobs(struct stk_request *r, struct stk_many *ret);
/* A number in the query; 'def' where it is not there. On failure the request has been answered. */
int stk_request_number(struct stk_request *r, const char *name, uint64_t def, uint64_t max,
                       uint64_t *ret);

#define STK_JSON_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(16)) /* how answers are written */

/* Answers. Each ends the request as far as the handler is concerned. */
void stk_request_json(struct stk_request *r, int status, json_t *take_body);
void stk_request_error(struct stk_request *r, int status, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void stk_request_text(struct stk_request *r, int status, const char *type, const char *text,
                      size_t len);
/* 200, with text that lives as long as the program; it is not copied. */
void stk_request_constant(struct stk_request *r, const char *type, const char *text, size_t len);
/* Answers with text from malloc, which is freed later. */
void stk_request_give(struct stk_request *r, int status, const char *type, char *take_text,
                      size_t len);
/* 200, with JSON that was written; the writer is empty afterwards. */
struct stk_writer;
void stk_request_written(struct stk_request *r, struct stk_writer *take_text);
/* For answers that are made in slices: how many bytes it may have now, and how many it has so far.
 * One that has more is refused by stk_request_unread(): its sender does not read answers. */
size_t stk_request_room(const struct stk_request *r);
void stk_request_making(struct stk_request *r, size_t bytes);
void stk_request_unread(struct stk_request *r);
/* Adds a header to the answer that was given. */
void stk_request_add(struct stk_request *r, const char *name, const char *value);
/* Sets the cookie with the browser's half of a session for max_age_s seconds; "": deletes it. */
void stk_request_set_cookie(struct stk_request *r, const char *value, int64_t max_age_s);
/* Whether it comes from a page of ours, or from no page. */
bool stk_request_from_own_page(const struct stk_request *r);
/* "bad_request" for 400 and so on. */
const char *stk_http_code(int status);

/* Calls 'fn' for every request under way that came with a token or session. */
typedef void (*stk_request_fn)(void *ctx, struct stk_request *r);
void stk_http_each(struct stk_http *h, stk_request_fn fn, void *ctx);
/* Ends a request whose token or session is no longer valid: what waits is answered 401, a stream is
 * cut off. */
void stk_request_revoke(struct stk_request *r);

/* A request that waits may lose its client: then 'fn' is called, and the request is gone. */
typedef void (*stk_gone_fn)(void *ctx, struct stk_request *r);
void stk_request_on_gone(struct stk_request *r, stk_gone_fn fn, void *ctx);

#define STK_STREAM_END ((ssize_t)-1)
#define STK_STREAM_CUT ((ssize_t)-2) /* broken off: the client sees that it was not the end */
struct stk_stream_ops {
    /* Up to 'max' bytes into 'buf'. 0: nothing now, stk_request_wake() tells when there is.
     * 'stopping': the server stops. What is at hand is still sent; 0 then cuts the stream off. */
    ssize_t (*fill)(void *ctx, char *buf, size_t max, bool stopping);
    void (*done)(void *ctx); /* once; frees ctx */
};
/* Answers 200 with a body that comes as it comes. */
void stk_request_stream(struct stk_request *r, const char *type, const struct stk_stream_ops *ops,
                        void *ctx);
void stk_request_wake(struct stk_request *r);

#endif
