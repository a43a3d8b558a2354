/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - talks to the daemon over its Unix socket.
 *
 *     stk_client_find(option, path, sizeof(path), err);
 *     c = stk_client_new(path);
 *     rc = stk_client_get(c, &body, err, "/v1/jobs/%u", id);
 *     ...
 *     stk_client_free(c);
 *
 * Connections are made when needed and kept for the next call. A call on a kept connection that
 * turns out to be dead is made once more on a new one, if that cannot do the thing twice.
 *
 * Errors of all functions here:
 *   -EHOSTDOWN   no process answers at the socket, or the daemon is stopping (HTTP 503 "stopping")
 *   -EPERM       the socket may not be used by this user
 *   -ETIMEDOUT   no answer in time
 *   -EPIPE       the answer was cut off        -EPROTO, -E2BIG   it was not to be understood
 *   -EINTR       'wake_fd' became readable
 *   -EINVAL (HTTP 400, 413, 422), -EACCES (401, 403), -ENOENT (404), -EBUSY (409),
 *   -EREMOTEIO (all others): the daemon refused; the sentence is the daemon's own
 */
#ifndef STK_CLIENT_CLIENT_H
#define STK_CLIENT_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "client/answer.h"

#define STK_CLIENT_MAX_BODY (256U << 20) /* of an answer read whole */
#define STK_CLIENT_MAX_PATH 4096         /* of a request: path and query */
#define STK_CLIENT_TIMEOUT_MS 30000      /* when a request does not say */
#define STK_CLIENT_ROOT_SOCKET "/run/stoker/stoker.sock"

struct stk_client;
struct stk_stream;

/* Where the socket is: 'option' (may be NULL), $STOKER_SOCKET, root's default if it is there,
 * $XDG_RUNTIME_DIR/stoker.sock, the state folder's stoker.sock. If none of these is there: root's
 * where the service is installed, else the user's own. */
int stk_client_find(const char *option, char *ret_path, size_t size, struct stk_err *err);

/* How to start the daemon of a socket, for a sentence: with systemctl where its service is
 * installed below 'root' ("": this machine) and this is its socket, else with "stoker serve". */
const char *stk_client_advice(const char *root, const char *path, char *buf, size_t size);
/* The service "stoker" of systemd is installed below 'root'. */
bool stk_client_has_service(const char *root);

struct stk_client *stk_client_new(const char *path); /* NULL: out of memory */
void stk_client_free(struct stk_client *c);          /* NULL is fine */

struct stk_call {
    const char *method; /* NULL: GET */
    const char *path;   /* with the query, escaped */
    const json_t *body; /* NULL: none */
    const char *key;    /* Idempotency-Key, or NULL */
    int timeout_ms;     /* without a byte from the daemon; 0: the default, < 0: for ever */
    int wake_fd;        /* > 0: reading ends with -EINTR when this can be read */
};

/* Makes a request and reads a JSON answer. *ret_body (may be NULL: not wanted) is the caller's. */
int stk_client_call(struct stk_client *c, const struct stk_call *rq, json_t **ret_body,
                    struct stk_err *err);

/* GET, with a printf format for the path (values in it escaped by stk_client_escape()). */
int stk_client_get(struct stk_client *c, json_t **ret_body, struct stk_err *err, const char *fmt,
                   ...) __attribute__((format(printf, 4, 5)));

/* A request whose answer comes bit by bit, on a connection of its own. */
int stk_stream_open(struct stk_client *c, const struct stk_call *rq, stk_body_fn fn, void *ctx,
                    struct stk_stream **ret, struct stk_err *err);
int stk_stream_fd(const struct stk_stream *s);
/* Where in a job's output the next byte is; false: the head of the answer has not come. */
bool stk_stream_offset(const struct stk_stream *s, uint64_t *ret);
/* Reads what is there, without waiting: 0 there will be more, 1 it ended, or an error. */
int stk_stream_pump(struct stk_stream *s, struct stk_err *err);
/* Reads to the end. */
int stk_stream_run(struct stk_stream *s, struct stk_err *err);
void stk_stream_free(struct stk_stream *s); /* NULL is fine */

/* Writes 'text' for use in a path or query: %XX for all but letters, digits and -._~ */
const char *stk_client_escape(char *buf, size_t size, const char *text);

#endif
