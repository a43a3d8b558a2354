/* SPDX-License-Identifier: Apache-2.0 */
/* listen.c - the sockets we listen on.
 *
 * A Unix socket's file outlives its daemon, so an old one must be told from one in use. The lock on
 * PATH.lock decides who may replace it; connecting first also finds daemons of another kind there.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <libgen.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/conn.h"

#define BACKLOG 4096

/* Nobody else may put another socket in our place. -ENOENT: there is no such folder. */
static int check_owner(const char *dir, struct stk_err *err)
{
    struct stat st;

    if (stat(dir, &st) < 0)
        return stk_err_set(err, -errno, "%s: %s", dir, strerror(errno));
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return stk_err_set(err, -EPERM, "%s belongs to somebody else (uid %u)", dir, st.st_uid);
    if ((st.st_mode & 022) && !(st.st_mode & S_ISVTX))
        return stk_err_set(err, -EPERM,
                           "others may write to %s; the socket needs a folder that is only ours",
                           dir);
    return 0;
}

static int make_folder(const char *path, struct stk_err *err)
{
    char copy[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    const char *dir;

    (void)snprintf(copy, sizeof(copy), "%s", path);
    dir = dirname(copy);
    if (mkdir(dir, 0755) < 0 && errno != EEXIST)
        return stk_err_set(err, -errno, "cannot make %s: %s", dir, strerror(errno));
    return check_owner(dir, err);
}

static int take_lock(const char *path, int *ret_lock, struct stk_err *err)
{
    char name[160];
    int fd;

    (void)snprintf(name, sizeof(name), "%s.lock", path);
    fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return stk_err_set(err, -errno, "%s: %s", name, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        (void)close(fd);
        return stk_err_set(err, -EADDRINUSE, "another daemon listens on %s", path);
    }
    *ret_lock = fd;
    return 0;
}

static int replace_stale(int fd, const struct sockaddr_un *addr, struct stk_err *err)
{
    struct stat st;

    if (lstat(addr->sun_path, &st) < 0)
        return errno == ENOENT
                   ? 0
                   : stk_err_set(err, -errno, "%s: %s", addr->sun_path, strerror(errno));
    if (!S_ISSOCK(st.st_mode))
        return stk_err_set(err, -EEXIST, "%s exists and is not a socket", addr->sun_path);
    if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 || errno == EAGAIN)
        return stk_err_set(err, -EADDRINUSE, "another daemon answers on %s", addr->sun_path);
    if (unlink(addr->sun_path) < 0)
        return stk_err_set(err, -errno, "cannot remove the old %s: %s", addr->sun_path,
                           strerror(errno));
    return 0;
}

static int bind_unix(const char *path, unsigned mode, int *ret_fd, struct stk_err *err)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc;

    memcpy(addr.sun_path, path, strlen(path)); /* its length was checked */
    rc = fd < 0 || probe < 0 ? stk_err_set(err, -errno, "socket: %s", strerror(errno))
                             : replace_stale(probe, &addr, err);
    if (rc == 0 && (bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ||
                    chmod(addr.sun_path, mode) < 0 || listen(fd, BACKLOG) < 0))
        rc = stk_err_set(err, -errno, "cannot listen on %s: %s", addr.sun_path, strerror(errno));
    if (probe >= 0)
        (void)close(probe);
    if (rc < 0) {
        if (fd >= 0)
            (void)close(fd);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

int stk_http_check_unix(const char *path, struct stk_err *err)
{
    char copy[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    const size_t most = sizeof(copy) - 1;
    struct stat st;
    int rc;

    if (path[0] != '/')
        return stk_err_set(err, -EINVAL, "the socket's path must begin with /: %.200s", path);
    if (strlen(path) > most)
        return stk_err_set(err, -EINVAL,
                           "the socket's path may have at most %zu characters: %.120s...", most,
                           path);
    if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
        return stk_err_set(err, -EEXIST, "%s exists and is not a socket", path);
    (void)snprintf(copy, sizeof(copy), "%s", path);
    rc = check_owner(dirname(copy), err);
    return rc == -ENOENT ? 0 : rc; /* it may be made */
}

int stk_listen_unix(const char *path, unsigned mode, int *ret_lock, int *ret_fd,
                    struct stk_err *err)
{
    int lock = -1, rc = stk_http_check_unix(path, err);

    rc = rc < 0 ? rc : make_folder(path, err);
    rc = rc < 0 ? rc : take_lock(path, &lock, err);
    rc = rc < 0 ? rc : bind_unix(path, mode, ret_fd, err);
    if (rc < 0) {
        if (lock >= 0)
            (void)close(lock);
        return rc;
    }
    *ret_lock = lock;
    return 0;
}

/* Whether the lock's file is the one that others would look at. */
static bool still_locked(const char *path, int lock)
{
    struct stat ours, there;
    char name[160];

    (void)snprintf(name, sizeof(name), "%s.lock", path);
    return lock >= 0 && fstat(lock, &ours) == 0 && lstat(name, &there) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

int stk_listen_again(const char *path, unsigned mode, int *lock, int *ret_fd, struct stk_err *err)
{
    int fresh = -1, rc = make_folder(path, err);

    if (rc == 0 && !still_locked(path, *lock))
        rc = take_lock(path, &fresh, err);
    rc = rc < 0 ? rc : bind_unix(path, mode, ret_fd, err);
    if (rc < 0) {
        if (fresh >= 0)
            (void)close(fresh);
        return rc;
    }
    if (fresh >= 0) {
        (void)close(*lock);
        *lock = fresh;
    }
    return 0;
}

/* "8080", ":8080", "host:8080", "[::1]:8080" */
static int split(const char *address, char *host, size_t size, char *port, size_t port_size,
                 struct stk_err *err)
{
    const char *colon = strrchr(address, ':');
    size_t len = colon ? (size_t)(colon - address) : 0;
    const char *digits = colon ? colon + 1 : address;

    if (strspn(digits, "0123456789") != strlen(digits) || !*digits || strlen(digits) > 5 ||
        atoi(digits) > 65535 || len >= size) // NOLINT(cert-err34-c): five digits at most
        return stk_err_set(err, -EINVAL,
                           "cannot listen on \"%.100s\"; expected ADDRESS:PORT such as "
                           "127.0.0.1:8080 (port 0: any)",
                           address);
    if (len >= 2 && address[0] == '[' && address[len - 1] == ']') {
        address++;
        len -= 2;
    }
    memcpy(host, address, len);
    host[len] = '\0';
    if (len == 0 || strcmp(host, "localhost") == 0)
        (void)snprintf(host, size, "127.0.0.1");
    if (strcmp(host, "*") == 0)
        (void)snprintf(host, size, "0.0.0.0");
    (void)snprintf(port, port_size, "%s", digits);
    return 0;
}

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static int bind_tcp(const struct addrinfo *ai, const char *address, int *ret_fd,
                    struct stk_err *err)
{
    int one = 1;
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return stk_err_set(err, -errno, "socket: %s", strerror(errno));
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        int rc = stk_err_set(err, -errno, "cannot listen on %.100s: %s", address, strerror(errno));

        (void)close(fd);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

static void show(int fd, char *shown, size_t size)
{
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof(ss);
    char host[64] = "?", port[8] = "0";

    if (getsockname(fd, (struct sockaddr *)&ss, &len) == 0)
        (void)getnameinfo((struct sockaddr *)&ss, len, host, sizeof(host), port, sizeof(port),
                          NI_NUMERICHOST | NI_NUMERICSERV);
    (void)snprintf(shown, size, ss.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

static int find_address(const char *address, struct addrinfo **ret, struct stk_err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    char host[128], port[8];
    int rc = split(address, host, sizeof(host), port, sizeof(port), err);

    if (rc != 0)
        return rc;
    if (getaddrinfo(host, port, &hints, ret) != 0)
        return stk_err_set(err, -EINVAL, "\"%.100s\" is not an address of this machine", host);
    return 0;
}

int stk_listen_check(const char *address, bool *ret_loopback, struct stk_err *err)
{
    struct addrinfo *ai;
    int rc = find_address(address, &ai, err);

    if (rc != 0)
        return rc;
    *ret_loopback = is_loopback(ai->ai_addr);
    freeaddrinfo(ai);
    return 0;
}

int stk_listen_tcp(const char *address, int *ret_fd, bool *ret_loopback, char *shown,
                   size_t shown_size, struct stk_err *err)
{
    struct addrinfo *ai;
    int rc = find_address(address, &ai, err);

    if (rc != 0)
        return rc;
    rc = bind_tcp(ai, address, ret_fd, err);
    if (rc == 0) {
        *ret_loopback = is_loopback(ai->ai_addr);
        show(*ret_fd, shown, shown_size);
    }
    freeaddrinfo(ai);
    return rc;
}
