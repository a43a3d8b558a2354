/* SPDX-License-Identifier: Apache-2.0 */
/* pty.c - a terminal that stays when nobody looks at it. The shim holds it; clients attach through
 * a socket that only the job's user (and root) may use, see the last of what was shown, and come
 * and go as they like. docs/spec/attach.md has the protocol. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "shim/shim.h"

#define REPLAY 65536
#define MAX_CLIENTS 8
#define HEAD 5         /* a letter and a length */
#define MAX_FRAME 4096 /* of what a client sends */

struct client {
    int fd;
    size_t n;
    unsigned char in[HEAD + MAX_FRAME];
};

struct stk_pty {
    int master, slave, listener;
    char path[256];
    uid_t uid;
    struct client client[MAX_CLIENTS];
    uint32_t n_clients;
    char seen[REPLAY]; /* a ring */
    size_t at, n_seen;
    int64_t active_ms, touched_ms;
};

static void set_size(const struct stk_pty *p, uint32_t rows, uint32_t cols)
{
    struct winsize w = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};

    if (rows > 0 && rows < 10000 && cols > 0 && cols < 10000)
        (void)ioctl(p->master, TIOCSWINSZ, &w);
}

/* The name is reached through the folder, which only the daemon writes to. */
static int listen_at(struct stk_pty *p, const struct stk_launch *l)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char dir[256];
    int fd, rc;

    (void)snprintf(dir, sizeof(dir), "%.200s/attach", l->state_dir);
    (void)snprintf(p->path, sizeof(p->path), "%.200s/attach/%u.sock", l->state_dir, l->number);
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || p->listener < 0)
        return -errno;
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%u.sock", fd, l->number);
    (void)unlink(p->path);
    rc = bind(p->listener, (struct sockaddr *)&a, sizeof(a)) < 0 || chmod(p->path, 0600) < 0 ||
                 (geteuid() == 0 && lchown(p->path, l->uid, l->gid) < 0) ||
                 listen(p->listener, MAX_CLIENTS) < 0
             ? -errno
             : 0;
    (void)close(fd);
    return rc;
}

int stk_pty_new(const struct stk_launch *l, struct stk_pty **ret_pty, struct stk_err *err)
{
    struct stk_pty *p = calloc(1, sizeof(*p));
    char name[128];
    int rc = p ? 0 : -ENOMEM;

    if (rc == 0) {
        p->uid = l->uid;
        p->listener = p->slave = -1;
        p->active_ms = stk_shim_ms();
        p->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
        if (p->master < 0 || grantpt(p->master) < 0 || unlockpt(p->master) < 0 ||
            ptsname_r(p->master, name, sizeof(name)) != 0)
            rc = -errno;
    }
    if (rc == 0) {
        p->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (p->slave < 0 || (geteuid() == 0 && fchown(p->slave, l->uid, (gid_t)-1) < 0) ||
            fchmod(p->slave, 0600) < 0)
            rc = -errno;
    }
    rc = rc < 0 ? rc : listen_at(p, l);
    if (rc < 0) {
        free(p);
        return stk_err_set(err, rc, "cannot make a terminal: %s", strerror(-rc));
    }
    set_size(p, (uint32_t)stk_int(l->spec, "rows", 24), (uint32_t)stk_int(l->spec, "cols", 80));
    *ret_pty = p;
    return 0;
}

void stk_pty_child(const struct stk_pty *p)
{
    (void)ioctl(p->slave, TIOCSCTTY, 0);
    for (int fd = 0; fd < 3; fd++)
        (void)dup2(p->slave, fd);
}

void stk_pty_started(struct stk_pty *p)
{
    (void)close(p->slave);
    p->slave = -1;
}

static void frame(int fd, char letter, char *data, size_t n)
{
    unsigned char head[HEAD] = {(unsigned char)letter, (unsigned char)(n >> 24),
                                (unsigned char)(n >> 16), (unsigned char)(n >> 8),
                                (unsigned char)n};
    struct iovec iov[2] = {{head, HEAD}, {data, n}};
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};

    if (sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)(HEAD + n))
        (void)shutdown(fd, SHUT_RDWR); /* too slow: it may attach again and see the end */
}

static void keep(struct stk_pty *p, const char *data, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        p->seen[p->at] = data[i];
        p->at = (p->at + 1) % REPLAY;
    }
    p->n_seen = p->n_seen + n > REPLAY ? REPLAY : p->n_seen + n;
}

static void active(struct stk_pty *p)
{
    p->active_ms = stk_shim_ms();
    if (p->active_ms - p->touched_ms < 1000)
        return;
    p->touched_ms = p->active_ms; /* whoever asks how long it is idle looks at the socket */
    (void)utimensat(AT_FDCWD, p->path, NULL, AT_SYMLINK_NOFOLLOW);
}

static void output(struct stk_pty *p)
{
    char buf[8192];
    ssize_t n;

    /* not without end: there are orders and deadlines to see to */
    for (int k = 0; k < 16 && (n = read(p->master, buf, sizeof(buf))) > 0; k++) {
        keep(p, buf, (size_t)n);
        active(p);
        for (uint32_t i = 0; i < p->n_clients; i++)
            frame(p->client[i].fd, 'D', buf, (size_t)n);
    }
}

static void replay(struct stk_pty *p, int fd)
{
    size_t from = (p->at + REPLAY - p->n_seen) % REPLAY, first = REPLAY - from;

    first = first > p->n_seen ? p->n_seen : first;
    if (first > 0)
        frame(fd, 'D', p->seen + from, first);
    if (p->n_seen > first)
        frame(fd, 'D', p->seen, p->n_seen - first);
}

static void welcome(struct stk_pty *p)
{
    int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), size = 4 * REPLAY;
    struct ucred c = {0};
    socklen_t n = sizeof(c);

    if (fd < 0)
        return;
    if (p->n_clients == MAX_CLIENTS || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) < 0 ||
        (c.uid != 0 && c.uid != p->uid)) {
        (void)close(fd);
        return;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    p->client[p->n_clients++] = (struct client){.fd = fd};
    replay(p, fd);
}

static void typed(struct stk_pty *p, const unsigned char *data, size_t n)
{
    active(p);
    while (n > 0) {
        ssize_t k = write(p->master, data, n);

        if (k <= 0)
            return; /* nobody reads it: as a full keyboard buffer */
        data += k;
        n -= (size_t)k;
    }
}

/* False: the client speaks something else. */
static bool frames(struct stk_pty *p, struct client *c)
{
    size_t from = 0;

    while (c->n - from >= HEAD) {
        const unsigned char *f = c->in + from;
        size_t n = (size_t)f[1] << 24 | (size_t)f[2] << 16 | (size_t)f[3] << 8 | f[4];

        if (n > MAX_FRAME)
            return false;
        if (c->n - from < HEAD + n)
            break;
        if (f[0] == 'D')
            typed(p, f + HEAD, n);
        else if (f[0] == 'W' && n == 4)
            set_size(p, (uint32_t)f[5] << 8 | f[6], (uint32_t)f[7] << 8 | f[8]);
        else
            return false;
        from += HEAD + n;
    }
    c->n -= from;
    memmove(c->in, c->in + from, c->n);
    return true;
}

/* False: it is gone. */
static bool input(struct stk_pty *p, struct client *c)
{
    ssize_t n = recv(c->fd, c->in + c->n, sizeof(c->in) - c->n, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0)
        return false;
    c->n += (size_t)n;
    return frames(p, c);
}

uint32_t stk_pty_poll(const struct stk_pty *p, struct pollfd *fds, uint32_t cap)
{
    uint32_t n = 0;

    fds[n++] = (struct pollfd){.fd = p->master, .events = POLLIN};
    fds[n++] = (struct pollfd){.fd = p->listener, .events = POLLIN};
    for (uint32_t i = 0; i < p->n_clients && n < cap; i++)
        fds[n++] = (struct pollfd){.fd = p->client[i].fd, .events = POLLIN};
    return n;
}

void stk_pty_ready(struct stk_pty *p, const struct pollfd *fds, uint32_t n)
{
    if (fds[0].revents & POLLIN)
        output(p);
    else if (fds[0].revents & (POLLHUP | POLLERR)) {
        (void)close(p->master); /* the last process has closed it */
        p->master = -1;
    }
    for (uint32_t i = n - 2; i-- > 0;) /* from the end: the last one takes a gap's place */
        if (fds[i + 2].revents && !input(p, &p->client[i])) {
            (void)close(p->client[i].fd);
            p->client[i] = p->client[--p->n_clients];
        }
    if (fds[1].revents)
        welcome(p);
}

int64_t stk_pty_idle_ms(const struct stk_pty *p)
{
    return stk_shim_ms() - p->active_ms;
}

const char *stk_pty_path(const struct stk_pty *p)
{
    return p->path;
}

void stk_pty_free(struct stk_pty *p, const struct stk_end *end)
{
    struct stk_end last = *end;

    if (p->master >= 0)
        output(p);
    (void)unlink(p->path);
    for (uint32_t i = 0; i < p->n_clients; i++) {
        frame(p->client[i].fd, 'X', last.note, strlen(last.note));
        (void)close(p->client[i].fd);
    }
    (void)close(p->listener);
    if (p->master >= 0)
        (void)close(p->master);
    free(p);
}
