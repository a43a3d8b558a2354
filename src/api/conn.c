/* SPDX-License-Identifier: Apache-2.0 */
/* conn.c - who is connected, and for how long.
 *
 * A connection lies in one of three lists, oldest first. One that takes too long to send a request
 * is closed by shutting its socket down: libmicrohttpd then sees the end and drops it. The same
 * happens to the oldest that waits when three quarters of the room are used, or when open files are
 * few, so that idle connections, however many, never keep a new one out.
 *
 * A suspended connection is not watched by libmicrohttpd, so the sweep asks the kernel which of
 * their clients have left.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "api/conn.h"

#define NARROW ((size_t)64 << 10)    /* bytes of an answer that every socket has room for */
#define MAX_SPARE 64u                /* files that connections leave free */
#define WIDE ((size_t)1 << 20)       /* the largest buffer of a socket */
#define WIDE_USER ((size_t)32 << 20) /* of all sockets of one user whose buffer was made larger */

static void unlink_conn(struct stk_conn *c)
{
    struct stk_conn_list *l = &c->door->list[c->state];

    if (c->prev)
        c->prev->next = c->next;
    else
        l->first = c->next;
    if (c->next)
        c->next->prev = c->prev;
    else
        l->last = c->prev;
    l->n--;
}

static void link_conn(struct stk_conn *c, enum stk_conn_state state)
{
    struct stk_conn_list *l = &c->door->list[state];

    c->state = state;
    c->since_ms = uv_now(c->door->http->cfg.loop);
    c->next = NULL;
    c->prev = l->last;
    if (l->last)
        l->last->next = c;
    else
        l->first = c;
    l->last = c;
    l->n++;
}

void stk_conn_move(struct stk_conn *c, enum stk_conn_state state)
{
    unlink_conn(c);
    link_conn(c, state);
}

/* Closes a connection that has no answer coming. It stays in its list, as the youngest, until
 * libmicrohttpd has seen the end. */
static void hang_up(struct stk_conn *c)
{
    c->door->http->stats.refused++;
    (void)shutdown(c->fd, SHUT_RDWR);
    stk_conn_move(c, c->state);
}

static bool hang_up_oldest(struct stk_door *d)
{
    for (int i = STK_CONN_WAITING; i <= STK_CONN_READING; i++)
        if (d->list[i].first) {
            hang_up(d->list[i].first);
            return true;
        }
    return false;
}

/* Closes a connection of the door that has the most without an answer coming. */
static void free_file(struct stk_http *h)
{
    struct stk_door *most = NULL;
    uint32_t n, top = 0;

    for (uint32_t i = 0; i < h->n_doors; i++) {
        n = h->doors[i].list[STK_CONN_WAITING].n + h->doors[i].list[STK_CONN_READING].n;
        if (n > top) {
            top = n;
            most = &h->doors[i];
        }
    }
    if (most)
        (void)hang_up_oldest(most);
}

/* Before a new connection is kept. The kernel gives the lowest free number to a new file, so the
 * number of its socket says how many files are open. */
static void make_room(struct stk_door *d, int fd)
{
    const uint64_t spare = d->files / 4 < MAX_SPARE ? d->files / 4 : MAX_SPARE;
    uint32_t n = 0;

    for (int i = 0; i < STK_CONN_STATE_MAX; i++)
        n += d->list[i].n;
    if (n > d->limit - d->limit / 4 && hang_up_oldest(d))
        return;
    if ((uint64_t)fd + spare >= d->files)
        free_file(d->http);
}

static void opened(struct stk_door *d, struct MHD_Connection *mhd, void **socket_ctx)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct stk_conn *c = calloc(1, sizeof(*c));
    struct ucred cred;
    socklen_t len = sizeof(cred);

    if (!c || !info) {
        free(c);
        return; /* its requests are refused for want of this */
    }
    c->door = d;
    c->fd = info->connect_fd;
    c->uid = c->gid = UINT32_MAX;
    if (d->is_unix && getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0) {
        c->uid = cred.uid;
        c->gid = cred.gid;
    }
    make_room(d, c->fd);
    link_conn(c, STK_CONN_WAITING);
    d->opened++;
    d->http->stats.connections++;
    d->http->stats.open++;
    *socket_ctx = c;
}

/* Bytes of the larger buffers of one user. */
static size_t count_wide(const struct stk_door *d, uint32_t uid)
{
    size_t n = 0;

    for (int s = 0; s < STK_CONN_STATE_MAX; s++)
        for (struct stk_conn *c = d->list[s].first; c; c = c->next)
            n += c->uid == uid ? c->wide : 0;
    return n;
}

/* A long answer that does not fit into the socket's buffer goes on when the loop comes around, once
 * for each part. The buffer is made larger once and stays so, for the next page. */
void stk_conn_widen(struct stk_conn *c, size_t len)
{
    const int bytes = len < WIDE ? (int)(len + len / 4) : (int)WIDE;

    if (len <= NARROW || (size_t)bytes <= c->wide || !c->door->is_unix ||
        count_wide(c->door, c->uid) - c->wide + (size_t)bytes > WIDE_USER)
        return;
    c->wide = (size_t)bytes;
    if (setsockopt(c->fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) < 0)
        (void)setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

void stk_conn_notify(void *cls, struct MHD_Connection *mhd, void **socket_ctx,
                     enum MHD_ConnectionNotificationCode code)
{
    struct stk_conn *c = *socket_ctx;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        opened(cls, mhd, socket_ctx);
        return;
    }
    if (!c)
        return;
    unlink_conn(c);
    c->door->closed = true;
    c->door->http->stats.open--;
    free(c);
    *socket_ctx = NULL;
}

uint32_t stk_conn_held(const struct stk_http *h, uint32_t uid)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < h->n_doors; i++)
        for (struct stk_conn *c = h->doors[i].list[STK_CONN_BUSY].first; c; c = c->next)
            n += c->req && c->req->known && c->req->who.uid == uid;
    return n;
}

size_t stk_conn_bytes(const struct stk_http *h, uint32_t uid)
{
    size_t n = 0;

    for (uint32_t i = 0; i < h->n_doors; i++)
        for (int s = STK_CONN_READING; s <= STK_CONN_BUSY; s++)
            for (struct stk_conn *c = h->doors[i].list[s].first; c; c = c->next)
                if (c->req && c->req->known && c->req->who.uid == uid)
                    n += c->req->body.cap;
    return n;
}

void stk_http_each(struct stk_http *h, stk_request_fn fn, void *ctx)
{
    for (uint32_t i = 0; i < h->n_doors; i++)
        for (int s = STK_CONN_READING; s <= STK_CONN_BUSY; s++)
            for (struct stk_conn *c = h->doors[i].list[s].first, *next; c; c = next) {
                next = c->next;
                if (c->req && c->req->known && c->req->pass.id != 0)
                    fn(ctx, c->req);
            }
}

/* Tells requests that sleep when their client has left. */
static void find_gone(struct stk_door *d)
{
    struct stk_conn_list *l = &d->list[STK_CONN_BUSY];
    struct pollfd *fds = l->n ? calloc(l->n, sizeof(*fds)) : NULL;
    struct stk_conn **conns = l->n ? calloc(l->n, sizeof(struct stk_conn *)) : NULL;
    nfds_t n = 0;

    for (struct stk_conn *c = l->first; fds && conns && c; c = c->next)
        if (c->req && c->req->asleep) {
            fds[n] = (struct pollfd){.fd = c->fd, .events = POLLRDHUP};
            conns[n++] = c;
        }
    if (n > 0 && poll(fds, n, 0) > 0)
        for (nfds_t i = 0; i < n; i++)
            if (fds[i].revents && conns[i]->req)
                stk_request_lost(conns[i]->req);
    free(fds);
    free(conns);
}

static void close_old(struct stk_conn_list *l, uint64_t before_ms)
{
    while (l->first && l->first->since_ms < before_ms)
        hang_up(l->first);
}

/* Without a free file libmicrohttpd stops to accept until one of the door's connections is closed,
 * and there may be none. Clients that wait from one sweep to the next without one being accepted
 * show it. */
static void find_stalled(struct stk_door *d)
{
    struct pollfd p = {.fd = d->fd, .events = POLLIN};

    if (!d->mhd || d->retired || poll(&p, 1, 0) <= 0) {
        d->stalled = UINT64_MAX;
        return;
    }
    if (d->stalled == d->opened)
        free_file(d->http);
    d->stalled = d->opened;
}

void stk_conn_sweep(struct stk_http *h)
{
    uint64_t now = uv_now(h->cfg.loop);
    uint64_t head_ms = h->cfg.head_ms ? h->cfg.head_ms : STK_HTTP_HEAD_MS;
    uint64_t body_ms = h->cfg.body_ms ? h->cfg.body_ms : STK_HTTP_BODY_MS;

    for (uint32_t i = 0; i < h->n_doors; i++) {
        struct stk_door *d = &h->doors[i];

        if (now > head_ms)
            close_old(&d->list[STK_CONN_WAITING], now - head_ms);
        if (now > body_ms)
            close_old(&d->list[STK_CONN_READING], now - body_ms);
        find_gone(d);
        find_stalled(d);
    }
}
