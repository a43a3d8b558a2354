/* SPDX-License-Identifier: Apache-2.0 */
/* conn.h - connections and requests as the HTTP layer itself sees them; handlers use http.h. */
#ifndef STK_API_CONN_H
#define STK_API_CONN_H

#include <microhttpd.h>

#include "api/http.h"
#include "api/scan.h"

#define STK_MAX_PATH_PARAMS 2

/* In which list a connection is; each list has the oldest first. */
enum stk_conn_state {
    STK_CONN_WAITING, /* nothing, or part of a request's head, was received */
    STK_CONN_READING, /* the body is being received */
    STK_CONN_BUSY,    /* an answer is being made or sent */
    STK_CONN_STATE_MAX
};

struct stk_conn_list {
    struct stk_conn *first, *last;
    uint32_t n;
};

struct stk_door { /* one listening socket and what came in through it */
    struct stk_http *http;
    struct MHD_Daemon *mhd;
    uv_poll_t *poll;
    uv_timer_t *timer;
    int fd; /* listening; closed by us */
    bool is_unix, loopback, tls;
    bool retired;     /* accepts no new connections; closed with its last one */
    bool closed;      /* a connection was closed in the present run of libmicrohttpd */
    uint32_t limit;   /* connections */
    uint64_t files;   /* this process may have open */
    uint64_t opened;  /* connections so far */
    uint64_t stalled; /* what 'opened' was when the last sweep saw clients that were not accepted */
    struct stk_conn_list list[STK_CONN_STATE_MAX];
};

struct stk_conn {
    struct stk_conn *prev, *next;
    struct stk_door *door;
    enum stk_conn_state state;
    uint64_t since_ms; /* when it entered the list */
    int fd;
    uint32_t uid, gid;
    size_t wide;      /* bytes that its socket's buffer was made; 0: as it came */
    size_t line_len;  /* of the path and query of the last request, as they came */
    bool escaped_nul; /* one of them has a %00 */
    struct stk_request *req;
};

struct stk_body {
    char *data;
    size_t len, cap;
};

struct stk_request {
    struct stk_http *http;
    struct stk_conn *conn;      /* NULL: it has no connection any more */
    struct MHD_Connection *mhd; /* likewise */
    const struct stk_route *route;
    char params[STK_MAX_PATH_PARAMS][128];
    struct stk_body body;
    struct stk_scan scan; /* of the body */
    size_t dropped;       /* bytes of a body that are read and thrown away */
    size_t unread;        /* bytes of the answer that are kept until its client has read them */
    struct stk_who who;
    struct stk_pass pass;
    bool known;                    /* 'who' is set */
    bool session_over;             /* it came with a session that is not valid */
    bool revoked;                  /* what it came with is no longer valid */
    bool refused;                  /* answered before its body was read, which is dropped */
    bool at_once;                  /* answered before its body is read; the connection is closed */
    bool dispatched;               /* the handler has been called */
    bool asleep;                   /* its connection is suspended */
    bool put_off;                  /* its handler is called in a later turn of the loop */
    bool gone;                     /* its client has left */
    struct MHD_Response *response; /* NULL: not answered yet */
    int status;
    stk_gone_fn on_gone;
    void *gone_ctx;
    const struct stk_stream_ops *stream;
    void *stream_ctx;
};

struct stk_socket_file { /* inode 0: there is none */
    uint64_t inode;
    uint32_t major, minor;
    int64_t born_s;
    uint32_t born_ns;
};

struct stk_http {
    struct stk_http_config cfg;
    struct stk_door doors[4]; /* mhd NULL: free. Two that listen; old ones whose file was removed */
    uint32_t n_doors;         /* how many of them were ever used */
    uv_timer_t *sweep, *later; /* later: resumes what was put off */
    struct {                   /* of the loop, turns.c */
        uint64_t at_ms, spent_ns;
        uint32_t served[16], n_served; /* users who had a request in it */
        uint32_t last_uid, at_once;
    } turn;
    char *socket_path;
    struct stk_socket_file socket; /* when it was made */
    bool socket_told;              /* that it is gone and cannot be made again */
    int lock_fd;                   /* held while the Unix socket is ours */
    char url[128];
    char hostname[256];
    bool stopping, closing;
    size_t body_bytes; /* of all requests */
    struct stk_http_stats stats;
};

/* http.c: a connection of the door was resumed; let it go on before the loop sleeps. */
void stk_door_kick(struct stk_door *d);

/* serve.c: libmicrohttpd's callbacks. */
enum MHD_Result stk_serve_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **req_ctx);
void stk_serve_completed(void *cls, struct MHD_Connection *mhd, void **req_ctx,
                         enum MHD_RequestTerminationCode code);

/* conn.c: lists of connections and what happens to those that get old. */
void stk_conn_move(struct stk_conn *c, enum stk_conn_state state);
/* An answer of so many bytes comes: the socket takes it whole, where it can. */
void stk_conn_widen(struct stk_conn *c, size_t len);
void stk_conn_notify(void *cls, struct MHD_Connection *mhd, void **socket_ctx,
                     enum MHD_ConnectionNotificationCode code);
void stk_conn_sweep(struct stk_http *h);
uint32_t stk_conn_held(const struct stk_http *h, uint32_t uid);
/* Bytes of the bodies of one user that are being read, or wait to be taken. */
size_t stk_conn_bytes(const struct stk_http *h, uint32_t uid);

/* limits.c: what a body may have, by the route and by who sends it. */
void stk_limits_of(const struct stk_request *r, struct stk_scan_limits *ret);
size_t stk_limits_bytes(const struct stk_request *r);  /* of all of one user's bodies */
size_t stk_limits_unread(const struct stk_request *r); /* of all of one user's answers */

/* unread.c: answers that are made and not read yet. Whether the request may be begun, and whether
 * an answer of this length may be given; if not, the request has been answered 429. */
bool stk_unread_begins(struct stk_request *r);
bool stk_unread_fits(struct stk_request *r, size_t len);

/* turns.c: whether its handler is to be called in a later turn of the loop, in which its connection
 * is resumed; and that one was called. */
bool stk_turn_puts_off(struct stk_request *r);
void stk_turn_served(struct stk_http *h, uint32_t uid, uint64_t took_ns);

/* request.c */
struct stk_request *stk_request_new(struct stk_http *h, struct stk_conn *c,
                                    struct MHD_Connection *mhd);
void stk_request_free(struct stk_request *r);
int stk_request_take(struct stk_request *r, const char *data, size_t len); /* more of the body */
/* The connection is over; the request goes now or when it is answered. */
void stk_request_over(struct stk_request *r);
void stk_request_lost(struct stk_request *r); /* its client has left, or the server stops */
/* Takes the response; a request that has lost its connection ends here. */
void stk_request_answer(struct stk_request *r, int status, const char *type,
                        struct MHD_Response *resp);

/* admit.c: the route, the sender and the query; answers what is not in order. */
void stk_request_admit(struct stk_request *r, const char *url, const char *method,
                       const char *version);

/* strict.c: refuses a head that can be read in two ways. The other two are libmicrohttpd's
 * callbacks, which see the request line before it is taken apart. */
bool stk_strict_head(struct stk_request *r, const char *url, const char *version);
size_t stk_strict_unescape(void *cls, struct MHD_Connection *mhd, char *text);
void *stk_strict_line(void *cls, const char *uri, struct MHD_Connection *mhd);

/* cookie.c: takes the session that a browser sent, if it comes from a page of ours. Whether one was
 * sent. */
bool stk_cookie_read(const struct stk_request *r, struct stk_peer *peer);

/* listen.c: sockets to listen on. */
/* tcp_check.c: both PEM files; NULL where there is no TLS. */
int stk_pem_read(const struct stk_http_tcp *tcp, char **ret_cert, char **ret_key,
                 const char **ret_which, struct stk_err *err);
void stk_pem_free(char *cert, char *key);
/* Whether the text is an address of ours, and on which side of the machine's edge it is. */
int stk_listen_check(const char *address, bool *ret_loopback, struct stk_err *err);
int stk_listen_unix(const char *path, unsigned mode, int *ret_lock, int *ret_fd,
                    struct stk_err *err);
/* Makes a socket file that was removed again. Never replaces a file on which a process answers. */
int stk_listen_again(const char *path, unsigned mode, int *lock, int *ret_fd, struct stk_err *err);
int stk_listen_tcp(const char *address, int *ret_fd, bool *ret_loopback, char *shown,
                   size_t shown_size, struct stk_err *err);

#endif
