/* SPDX-License-Identifier: Apache-2.0 */
/* conn.h - connections and requests as the HTTP layer itself sees them; handlers use http.h. */
#ifndef STK_API_CONN_H
#define STK_API_CONN_H

#include <microhttpd.h>

#include "api/http.h"

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
    uint32_t limit; /* connections */
    struct stk_conn_list list[STK_CONN_STATE_MAX];
};

struct stk_conn {
    struct stk_conn *prev, *next;
    struct stk_door *door;
    enum stk_conn_state state;
    uint64_t since_ms; /* when it entered the list */
    int fd;
    uint32_t uid, gid;
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
    size_t dropped; /* bytes of a body that nobody wants */
    struct stk_who who;
    bool known;                    /* 'who' is somebody */
    bool refused;                  /* answered before its body was read, which is dropped */
    bool too_large;                /* its body is; likewise */
    bool dispatched;               /* the handler has been called */
    bool asleep;                   /* its connection is suspended */
    bool gone;                     /* its client has left */
    bool ended;                    /* its stream has had its last call */
    struct MHD_Response *response; /* NULL: not answered yet */
    int status;
    stk_gone_fn on_gone;
    void *gone_ctx;
    const struct stk_stream_ops *stream;
    void *stream_ctx;
};

struct stk_http {
    struct stk_http_config cfg;
    struct stk_door doors[2];
    uint32_t n_doors;
    uv_timer_t *sweep;
    char *socket_path;
    int lock_fd; /* held while the Unix socket is ours */
    char url[128];
    char hostname[256];
    bool stopping, closing;
    size_t body_bytes; /* of all requests */
    struct stk_http_stats stats;
};

/* http.c: a connection of the door was resumed; let it go on before the loop sleeps. */
void stk_door_kick(struct stk_door *d);

/* conn.c: lists of connections and what happens to those that get old. */
void stk_conn_move(struct stk_conn *c, enum stk_conn_state state);
void stk_conn_notify(void *cls, struct MHD_Connection *mhd, void **socket_ctx,
                     enum MHD_ConnectionNotificationCode code);
void stk_conn_sweep(struct stk_http *h);
uint32_t stk_conn_held(const struct stk_http *h, uint32_t uid);

/* request.c */
struct stk_request *stk_request_new(struct stk_http *h, struct stk_conn *c,
                                    struct MHD_Connection *mhd);
void stk_request_free(struct stk_request *r);
int stk_request_take(struct stk_request *r, const char *data, size_t len); /* more of the body */
/* The connection is over; the request goes now or when it is answered. */
void stk_request_over(struct stk_request *r);
void stk_request_lost(struct stk_request *r); /* its client has left, or the server stops */

/* admit.c: the route, the sender and the query; answers what is not in order. */
void stk_request_admit(struct stk_request *r, const char *url, const char *method);

/* listen.c: sockets to listen on. */
int stk_listen_unix(const char *path, int *ret_lock, int *ret_fd, struct stk_err *err);
int stk_listen_tcp(const char *address, int *ret_fd, bool *ret_loopback, char *shown,
                   size_t shown_size, struct stk_err *err);

#endif
