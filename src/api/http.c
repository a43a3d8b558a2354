/* SPDX-License-Identifier: Apache-2.0 */
/* http.c - libmicrohttpd inside a libuv loop.
 *
 * Each listening socket has a libmicrohttpd daemon in external epoll mode: its epoll descriptor is
 * watched by the loop, and so is the time at which it wants to run although nothing came in.
 *
 * libmicrohttpd calls on_request() first with the headers, then with pieces of the body, then once
 * more: there the handler runs. Without an answer the connection is suspended, and on_request() is
 * called again when it was resumed.
 */
#include "api/http.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/conn.h"

#define SWEEP_MS 1000
#define MAX_PEM ((size_t)262144)
#define SPARE_FILES 512 /* for everything that is not a connection */

static void rearm(struct stk_door *d);

static void run_door(struct stk_door *d)
{
    (void)MHD_run(d->mhd);
    rearm(d);
}

static void on_readable(uv_poll_t *p, int status, int events)
{
    (void)status;
    (void)events;
    run_door(p->data);
}

static void on_time(uv_timer_t *t)
{
    run_door(t->data);
}

static void rearm(struct stk_door *d)
{
    MHD_UNSIGNED_LONG_LONG ms;

    if (MHD_get_timeout(d->mhd, &ms) == MHD_YES)
        (void)uv_timer_start(d->timer, on_time, ms, 0);
    else
        (void)uv_timer_stop(d->timer);
}

void stk_door_kick(struct stk_door *d)
{
    (void)uv_timer_start(d->timer, on_time, 0, 0);
}

static void on_sweep(uv_timer_t *t)
{
    stk_conn_sweep(t->data);
}

/* ---- a request, step by step ---- */

static enum MHD_Result send_answer(struct stk_request *r, struct MHD_Connection *mhd)
{
    return MHD_queue_response(mhd, (unsigned)r->status, r->response);
}

static enum MHD_Result begin(struct stk_conn *c, struct MHD_Connection *mhd, const char *url,
                             const char *method, void **req_ctx)
{
    struct stk_request *r = c ? stk_request_new(c->door->http, c, mhd) : NULL;

    if (!r)
        return MHD_NO;
    *req_ctx = r;
    stk_conn_move(c, STK_CONN_READING);
    stk_request_admit(r, url, method);
    /* A short body is read before the refusal is sent: clients that send all before they read get
     * to see it. */
    return r->too_large ? send_answer(r, mhd) : MHD_YES;
}

static enum MHD_Result more(struct stk_request *r, const char *data, size_t *len)
{
    size_t n = *len;
    int rc = 0;

    *len = 0;
    if (r->refused) { /* dropped; but not without end */
        r->dropped += n;
        return r->dropped > STK_HTTP_MAX_BODY ? MHD_NO : MHD_YES;
    }
    if (r->body.len + n > (r->route->takes ? STK_HTTP_MAX_BODY : 65536)) {
        stk_request_error(r, 413, NULL, "the body is larger than %u bytes", STK_HTTP_MAX_BODY);
        r->refused = true;
        return MHD_YES;
    }
    rc = stk_request_take(r, data, n);
    if (rc == 0)
        return MHD_YES;
    stk_request_error(r, 503, "busy", "too many large requests at once; try again");
    r->refused = true;
    return MHD_YES;
}

static enum MHD_Result dispatch(struct stk_request *r, struct MHD_Connection *mhd)
{
    struct stk_http *h = r->http;

    if (!r->dispatched && !r->response) {
        stk_conn_move(r->conn, STK_CONN_BUSY);
        if (r->known && stk_conn_held(h, r->who.uid) > STK_HTTP_MAX_HELD)
            stk_request_error(r, 429, NULL, "%s has more than %u requests waiting", r->who.user,
                              STK_HTTP_MAX_HELD);
        r->dispatched = true;
        if (!r->response)
            r->route->handle(h->cfg.ctx, r);
    }
    if (r->conn->state != STK_CONN_BUSY)
        stk_conn_move(r->conn, STK_CONN_BUSY);
    if (r->response)
        return send_answer(r, mhd);
    if (h->closing)
        return MHD_NO;
    r->asleep = true;
    h->stats.held++;
    MHD_suspend_connection(mhd);
    return MHD_YES;
}

/* NOLINTNEXTLINE(readability-function-size): the library's signature */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **req_ctx)
{
    struct stk_request *r = *req_ctx;

    (void)cls;
    (void)version;
    if (!r) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        return begin(info ? info->socket_context : NULL, mhd, url, method, req_ctx);
    }
    return *len > 0 ? more(r, data, len) : dispatch(r, mhd);
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **req_ctx,
                         enum MHD_RequestTerminationCode code)
{
    struct stk_request *r = *req_ctx;

    (void)cls;
    (void)mhd;
    (void)code;
    if (!r)
        return;
    *req_ctx = NULL;
    if (r->conn)
        stk_conn_move(r->conn, STK_CONN_WAITING);
    if (r->asleep)
        r->http->stats.held--;
    stk_request_over(r);
}

static void on_log(void *cls, const char *fmt, va_list ap)
{
    struct stk_http *h = cls;
    char line[512];

    if (!h->cfg.log)
        return;
    (void)vsnprintf(line, sizeof(line), fmt, ap);
    line[strcspn(line, "\n")] = '\0';
    h->cfg.log(h->cfg.ctx, line);
}

/* ---- opening and closing ---- */

uint64_t stk_http_raise_files(void)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) < 0)
        return 1024;
    if (l.rlim_cur < l.rlim_max) {
        struct rlimit more_files = {l.rlim_max, l.rlim_max};

        if (setrlimit(RLIMIT_NOFILE, &more_files) == 0)
            l = more_files;
    }
    return l.rlim_cur;
}

int stk_http_new(const struct stk_http_config *cfg, struct stk_http **ret_http, struct stk_err *err)
{
    struct stk_http *h = calloc(1, sizeof(*h));
    uv_timer_t *sweep = calloc(1, sizeof(*sweep));

    if (!h || !sweep) {
        free(h);
        free(sweep);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    h->cfg = *cfg;
    h->lock_fd = -1;
    h->sweep = sweep;
    if (gethostname(h->hostname, sizeof(h->hostname) - 1) < 0)
        h->hostname[0] = '\0';
    (void)uv_timer_init(cfg->loop, sweep);
    sweep->data = h;
    (void)uv_timer_start(sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    *ret_http = h;
    return 0;
}

/* The door's half of the open files, so that one cannot starve the other. */
static uint32_t room(void)
{
    struct rlimit l;
    uint64_t n = getrlimit(RLIMIT_NOFILE, &l) == 0 ? l.rlim_cur : 1024;

    n = n > SPARE_FILES + 256 ? (n - SPARE_FILES) / 2 : 128;
    return n < 32768 ? (uint32_t)n : 32768;
}

static int watch(struct stk_door *d, struct stk_err *err)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(d->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    uv_loop_t *loop = d->http->cfg.loop;

    d->poll = calloc(1, sizeof(*d->poll));
    d->timer = calloc(1, sizeof(*d->timer));
    if (!d->poll || !d->timer || !info || uv_poll_init(loop, d->poll, info->epoll_fd) < 0) {
        free(d->poll);
        free(d->timer);
        return stk_err_set(err, -ENOMEM, "cannot watch the HTTP server");
    }
    (void)uv_timer_init(loop, d->timer);
    d->poll->data = d->timer->data = d;
    (void)uv_poll_start(d->poll, UV_READABLE, on_readable);
    rearm(d);
    return 0;
}

/* Opens a door around a listening socket, which it takes. */
static int open_door(struct stk_http *h, struct stk_door *d, char *cert, char *key,
                     struct stk_err *err)
{
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, cert},
                                   {MHD_OPTION_HTTPS_MEM_KEY, 0, key},
                                   {MHD_OPTION_END, 0, NULL}};
    unsigned flags =
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | (cert ? MHD_USE_TLS : 0);
    int rc;

    d->http = h;
    d->tls = cert != NULL;
    d->limit = room();
    /* clang-format off */
    d->mhd = MHD_start_daemon(flags, 0, NULL, NULL, on_request, d,
        MHD_OPTION_EXTERNAL_LOGGER, on_log, h,
        MHD_OPTION_LISTEN_SOCKET, d->fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)d->limit,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)STK_HTTP_POOL,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)STK_HTTP_STALL_S,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, d,
        MHD_OPTION_NOTIFY_CONNECTION, stk_conn_notify, d,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_ARRAY, cert ? tls : tls + 2,
        MHD_OPTION_END);
    /* clang-format on */
    if (!d->mhd) {
        (void)close(d->fd);
        return stk_err_set(err, -EIO,
                           cert ? "cannot start the HTTPS server; are certificate and key a pair?"
                                : "cannot start the HTTP server");
    }
    rc = watch(d, err);
    if (rc < 0) {
        MHD_stop_daemon(d->mhd);
        return rc;
    }
    h->n_doors++;
    return 0;
}

int stk_http_listen_unix(struct stk_http *h, const char *path, struct stk_err *err)
{
    struct stk_door *d = &h->doors[h->n_doors];
    int rc = stk_listen_unix(path, &h->lock_fd, &d->fd, err);

    if (rc < 0)
        return rc;
    h->socket_path = strdup(path);
    d->is_unix = d->loopback = true;
    return open_door(h, d, NULL, NULL, err);
}

static int read_pem(const char *path, char **ret, struct stk_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = fd < 0 ? NULL : calloc(1, MAX_PEM);
    ssize_t n = text ? read(fd, text, MAX_PEM - 1) : -1;
    int e = errno;

    if (fd >= 0)
        (void)close(fd);
    if (n <= 0 || !strstr(text, "-----BEGIN")) {
        free(text);
        return n < 0 ? stk_err_set(err, -e, "%s: %s", path, strerror(e))
                     : stk_err_set(err, -EINVAL, "%s is not in PEM format", path);
    }
    *ret = text;
    return 0;
}

static int check_reach(const struct stk_http_tcp *tcp, bool loopback, struct stk_err *err)
{
    if (loopback || tcp->cert || tcp->insecure)
        return 0;
    return stk_err_set(err, -EPERM,
                       "will not listen on %.100s without TLS, for tokens would be sent in the "
                       "clear; give --tls-cert and --tls-key, or --insecure",
                       tcp->address);
}

/* An address that means "all of them" is of no use in a link. */
static void set_url(struct stk_http *h, const char *scheme, const char *shown)
{
    const char *port = strrchr(shown, ':');

    if (strncmp(shown, "0.0.0.0:", 8) == 0 || strncmp(shown, "[::]:", 5) == 0)
        (void)snprintf(h->url, sizeof(h->url), "%s://%.64s%s", scheme, h->hostname, port);
    else
        (void)snprintf(h->url, sizeof(h->url), "%s://%s", scheme, shown);
}

int stk_http_listen_tcp(struct stk_http *h, const struct stk_http_tcp *tcp, struct stk_err *err)
{
    struct stk_door *d = &h->doors[h->n_doors];
    char *cert = NULL, *key = NULL, shown[100];
    int rc = 0;

    if (!tcp->cert != !tcp->key)
        return stk_err_set(err, -EINVAL, "TLS needs both a certificate and a key");
    if (tcp->cert)
        rc = read_pem(tcp->cert, &cert, err);
    if (rc == 0 && tcp->key)
        rc = read_pem(tcp->key, &key, err);
    if (rc == 0)
        rc = stk_listen_tcp(tcp->address, &d->fd, &d->loopback, shown, sizeof(shown), err);
    if (rc == 0) {
        rc = check_reach(tcp, d->loopback, err);
        if (rc < 0)
            (void)close(d->fd);
        else
            rc = open_door(h, d, cert, key, err);
    }
    if (rc == 0)
        set_url(h, cert ? "https" : "http", shown);
    free(cert);
    if (key)
        explicit_bzero(key, MAX_PEM);
    free(key);
    return rc;
}

void stk_http_set_hosts(struct stk_http *h, const char *const *hosts)
{
    h->cfg.hosts = hosts;
}

const char *stk_http_url(const struct stk_http *h)
{
    return h->url;
}

uint32_t stk_http_busy(const struct stk_http *h)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < h->n_doors; i++)
        n += h->doors[i].list[STK_CONN_READING].n + h->doors[i].list[STK_CONN_BUSY].n;
    return n;
}

void stk_http_stats(const struct stk_http *h, struct stk_http_stats *ret)
{
    *ret = h->stats;
}

void stk_http_stop(struct stk_http *h)
{
    if (h->stopping)
        return;
    h->stopping = true;
    if (h->socket_path)
        (void)unlink(h->socket_path);
    for (uint32_t i = 0; i < h->n_doors; i++) {
        struct stk_conn *next;

        (void)MHD_quiesce_daemon(h->doors[i].mhd);
        for (struct stk_conn *c = h->doors[i].list[STK_CONN_BUSY].first; c; c = next) {
            next = c->next;
            if (c->req && c->req->asleep)
                stk_request_lost(c->req);
        }
    }
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

static void close_door(struct stk_door *d)
{
    for (struct stk_conn *c = d->list[STK_CONN_BUSY].first; c; c = c->next)
        if (c->req && c->req->asleep)
            MHD_resume_connection(c->req->mhd);
    (void)uv_poll_stop(d->poll);
    (void)MHD_run(d->mhd); /* lets go of what was suspended */
    uv_close((uv_handle_t *)d->poll, free_handle);
    uv_close((uv_handle_t *)d->timer, free_handle);
    MHD_stop_daemon(d->mhd);
    (void)close(d->fd);
}

void stk_http_free(struct stk_http *h)
{
    if (!h)
        return;
    stk_http_stop(h);
    h->closing = true;
    for (uint32_t i = 0; i < h->n_doors; i++)
        close_door(&h->doors[i]);
    uv_close((uv_handle_t *)h->sweep, free_handle);
    if (h->lock_fd >= 0)
        (void)close(h->lock_fd);
    free(h->socket_path);
    free(h);
}
