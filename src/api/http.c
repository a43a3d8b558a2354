/* SPDX-License-Identifier: Apache-2.0 */
/* http.c - libmicrohttpd inside a libuv loop.
 *
 * Each listening socket has a libmicrohttpd daemon in external epoll mode: its epoll descriptor is
 * watched by the loop, and so is the time at which it wants to run although nothing came in.
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
#define SPARE_FILES 512 /* for everything that is not a connection */

static void rearm(struct stk_door *d);
static void close_retired(struct stk_http *h);
static void watch_socket(struct stk_http *h);

/* At its limit of connections libmicrohttpd stops to watch the listening socket. A run that closes
 * a connection makes room, but only the next one watches the socket again. */
static void run_door(struct stk_door *d)
{
    d->closed = false;
    (void)MHD_run(d->mhd);
    rearm(d);
    if (d->closed)
        stk_door_kick(d);
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
    close_retired(t->data);
    watch_socket(t->data);
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

static uint64_t count_files(void)
{
    struct rlimit l;

    return getrlimit(RLIMIT_NOFILE, &l) == 0 ? l.rlim_cur : 1024;
}

int stk_http_raise_files(struct stk_err *err)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) < 0)
        return 0;
    if (l.rlim_cur < l.rlim_max) {
        struct rlimit more_files = {l.rlim_max, l.rlim_max};

        if (setrlimit(RLIMIT_NOFILE, &more_files) == 0)
            l = more_files;
    }
    if (l.rlim_cur >= STK_HTTP_MIN_FILES)
        return 0;
    return stk_err_set(err, -EMFILE,
                       "this process may have %llu files open, and needs at least %u; raise the "
                       "limit (ulimit -n, or LimitNOFILE= of the service)",
                       (unsigned long long)l.rlim_cur, STK_HTTP_MIN_FILES);
}

int stk_http_new(const struct stk_http_config *cfg, struct stk_http **ret_http, struct stk_err *err)
{
    struct stk_http *h = calloc(1, sizeof(*h));
    uv_timer_t *sweep = calloc(1, sizeof(*sweep)), *later = calloc(1, sizeof(*later));

    if (!h || !sweep || !later) {
        free(h);
        free(sweep);
        free(later);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    h->cfg = *cfg;
    h->lock_fd = -1;
    h->sweep = sweep;
    h->later = later;
    if (gethostname(h->hostname, sizeof(h->hostname) - 1) < 0)
        h->hostname[0] = '\0';
    (void)uv_timer_init(cfg->loop, sweep);
    (void)uv_timer_init(cfg->loop, later);
    sweep->data = later->data = h;
    (void)uv_timer_start(sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    *ret_http = h;
    return 0;
}

/* The door's half of the open files, so that one cannot starve the other; where there are few, half
 * of all is left for everything that is not a connection. */
static uint32_t room(uint64_t n)
{
    n = (n - (n > (uint64_t)2 * SPARE_FILES ? SPARE_FILES : n / 2)) / 2;
    n = n < 4 ? 4 : n;
    return n < 32768 ? (uint32_t)n : 32768;
}

/* Room for one more door; NULL: there is none. */
static struct stk_door *free_door(struct stk_http *h)
{
    for (size_t i = 0; i < sizeof(h->doors) / sizeof(*h->doors); i++)
        if (!h->doors[i].mhd) {
            h->doors[i] = (struct stk_door){.fd = -1};
            return &h->doors[i];
        }
    return NULL;
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
    d->files = count_files();
    d->limit = room(d->files);
    /* clang-format off */
    d->mhd = MHD_start_daemon(flags, 0, NULL, NULL, stk_serve_request, d,
        MHD_OPTION_EXTERNAL_LOGGER, on_log, h,
        MHD_OPTION_LISTEN_SOCKET, d->fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)d->limit,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)STK_HTTP_POOL,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(h->cfg.stall_s ? h->cfg.stall_s : STK_HTTP_STALL_S),
        MHD_OPTION_NOTIFY_COMPLETED, stk_serve_completed, d,
        MHD_OPTION_NOTIFY_CONNECTION, stk_conn_notify, d,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_UNESCAPE_CALLBACK, stk_strict_unescape, NULL,
        MHD_OPTION_URI_LOG_CALLBACK, stk_strict_line, NULL,
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
        d->mhd = NULL;
        return rc;
    }
    if (d - h->doors >= h->n_doors)
        h->n_doors = (uint32_t)(d - h->doors) + 1;
    return 0;
}

/* Its number alone would not do: the next file may get the same. */
static void look_at(const char *path, struct stk_socket_file *ret)
{
    struct statx st;

    *ret = (struct stk_socket_file){0};
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &st) < 0 ||
        !S_ISSOCK(st.stx_mode))
        return;
    *ret = (struct stk_socket_file){.inode = st.stx_ino,
                                    .major = st.stx_dev_major,
                                    .minor = st.stx_dev_minor,
                                    .born_s = st.stx_btime.tv_sec,
                                    .born_ns = st.stx_btime.tv_nsec};
}

static unsigned socket_mode(const struct stk_http *h)
{
    return h->cfg.own_user_only ? 0600 : 0666;
}

static bool is_at(const char *path, const struct stk_socket_file *x)
{
    struct stk_socket_file y;

    look_at(path, &y);
    return y.inode != 0 && x->inode == y.inode && x->major == y.major && x->minor == y.minor &&
           x->born_s == y.born_s && x->born_ns == y.born_ns;
}

static bool is_our_socket(const struct stk_http *h)
{
    return h->socket_path && is_at(h->socket_path, &h->socket);
}

/* Those who are connected at older doors stay; new ones come to 'fresh'. */
static void retire_unix(struct stk_http *h, const struct stk_door *fresh)
{
    for (uint32_t i = 0; i < h->n_doors; i++) {
        struct stk_door *d = &h->doors[i];

        if (d != fresh && d->mhd && d->is_unix && !d->retired) {
            d->retired = true;
            (void)MHD_quiesce_daemon(d->mhd);
            rearm(d);
        }
    }
}

/* When the door cannot be opened, the socket file is removed: a file without a listener would look
 * like ours. The older door stays as it is. */
static int open_unix(struct stk_http *h, int fd, struct stk_err *err)
{
    struct stk_door *d = free_door(h);
    struct stk_socket_file made;
    int rc;

    look_at(h->socket_path, &made);
    if (d) {
        d->fd = fd;
        d->is_unix = d->loopback = true;
        rc = open_door(h, d, NULL, NULL, err);
    } else {
        (void)close(fd);
        rc = stk_err_set(err, -EMFILE, "too many sockets");
    }
    if (rc == 0) {
        h->socket = made;
        retire_unix(h, d);
    } else if (is_at(h->socket_path, &made)) {
        (void)unlink(h->socket_path);
    }
    return rc;
}

int stk_http_listen_unix(struct stk_http *h, const char *path, struct stk_err *err)
{
    int fd = -1, rc = stk_listen_unix(path, socket_mode(h), &h->lock_fd, &fd, err);

    if (rc < 0)
        return rc;
    h->socket_path = strdup(path);
    if (!h->socket_path) {
        (void)close(fd);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    return open_unix(h, fd, err);
}

static void say(const struct stk_http *h, const char *line)
{
    if (h->cfg.warn)
        h->cfg.warn(h->cfg.ctx, line);
}

/* The socket file was removed or replaced, so new clients cannot connect. It is made again, unless
 * another daemon answers there. Existing connections stay. */
static void watch_socket(struct stk_http *h)
{
    struct stk_err err = {""};
    char line[512];
    int fd = -1, rc;

    if (!h->socket_path || h->stopping || is_our_socket(h))
        return;
    rc = free_door(h) ? stk_listen_again(h->socket_path, socket_mode(h), &h->lock_fd, &fd, &err)
                      : stk_err_set(&err, -EMFILE,
                                    "it was removed too often; clients of the old "
                                    "ones are still connected");
    rc = rc < 0 ? rc : open_unix(h, fd, &err);
    if (rc == 0)
        (void)snprintf(line, sizeof(line), "the socket %.200s was gone; it was made again",
                       h->socket_path);
    else
        (void)snprintf(line, sizeof(line),
                       "the socket %.150s is gone and cannot be made again: %.300s", h->socket_path,
                       err.text);
    if (rc == 0 || !h->socket_told)
        say(h, line);
    h->socket_told = rc < 0;
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
    struct stk_door *d = free_door(h);
    char *cert = NULL, *key = NULL, shown[100];
    int rc = stk_http_check_tcp(tcp, NULL, err);

    rc = rc < 0 ? rc : stk_pem_read(tcp, &cert, &key, NULL, err);
    if (rc == 0)
        rc = stk_listen_tcp(tcp->address, &d->fd, &d->loopback, shown, sizeof(shown), err);
    if (rc == 0)
        rc = open_door(h, d, cert, key, err);
    if (rc == 0)
        set_url(h, cert ? "https" : "http", shown);
    stk_pem_free(cert, key);
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
    if (is_our_socket(h))
        (void)unlink(h->socket_path);
    for (uint32_t i = 0; i < h->n_doors; i++) {
        struct stk_conn *next;

        if (h->doors[i].mhd && !h->doors[i].retired)
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
    d->mhd = NULL;
}

static void close_retired(struct stk_http *h)
{
    for (uint32_t i = 0; i < h->n_doors; i++) {
        struct stk_door *d = &h->doors[i];
        uint32_t n = 0;

        for (int s = 0; s < STK_CONN_STATE_MAX; s++)
            n += d->list[s].n;
        if (d->mhd && d->retired && n == 0)
            close_door(d);
    }
}

void stk_http_free(struct stk_http *h)
{
    if (!h)
        return;
    stk_http_stop(h);
    h->closing = true;
    for (uint32_t i = 0; i < h->n_doors; i++)
        if (h->doors[i].mhd)
            close_door(&h->doors[i]);
    uv_close((uv_handle_t *)h->sweep, free_handle);
    uv_close((uv_handle_t *)h->later, free_handle);
    if (h->lock_fd >= 0)
        (void)close(h->lock_fd);
    free(h->socket_path);
    free(h);
}
