/* SPDX-License-Identifier: Apache-2.0 */
/* nursery.c - the process that makes shims (src/shim/nursery.c). It is started when the first one
 * is wanted, and again when it was killed; a launch that was on its way to it then is made
 * again. Shims live on without it. */
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/local/inner.h"

/* Room in the argument list, where a shim shows which launch it is for. */
#define LABEL "                       "

static int spawn(const struct stk_local *m, int orders, pid_t *ret_pid)
{
    char name[] = "stoker-shim", word[] = "--nursery", label[] = LABEL;
    char *argv[] = {name, word, label, NULL};
    char *env[] = {NULL};
    posix_spawn_file_actions_t acts;
    posix_spawnattr_t attr;
    sigset_t set;
    int rc = posix_spawn_file_actions_init(&acts);

    if (rc)
        return -rc;
    (void)posix_spawnattr_init(&attr);
    for (int fd = 0; fd < 3 && rc == 0; fd++)
        rc = posix_spawn_file_actions_adddup2(&acts, m->null_fd, fd);
    rc = rc ? rc : posix_spawn_file_actions_adddup2(&acts, orders, 3);
    (void)sigfillset(&set);
    (void)posix_spawnattr_setsigdefault(&attr, &set);
    (void)sigemptyset(&set);
    (void)posix_spawnattr_setsigmask(&attr, &set);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSIGMASK);
    rc = rc ? rc : posix_spawn(ret_pid, m->cfg.shim_path, &acts, &attr, argv, env);
    (void)posix_spawn_file_actions_destroy(&acts);
    (void)posix_spawnattr_destroy(&attr);
    return -rc;
}

/* The daemon has raised its own limit; its jobs are not to notice. */
static void give_limits(const struct stk_local *m)
{
    struct rlimit r;

    if (m->cfg.nofile == 0 || getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur <= m->cfg.nofile)
        return;
    r.rlim_cur = (rlim_t)m->cfg.nofile;
    (void)prlimit(m->nursery, RLIMIT_NOFILE, &r, NULL);
}

static int open_nursery(struct stk_local *m)
{
    int pair[2], rc;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    rc = spawn(m, pair[1], &m->nursery);
    (void)close(pair[1]);
    if (rc < 0) {
        (void)close(pair[0]);
        m->nursery = 0;
        return rc;
    }
    give_limits(m);
    m->nursery_fd = pair[0];
    return 0;
}

void stk_local_nursery_close(struct stk_local *m)
{
    if (m->nursery_fd >= 0)
        (void)close(m->nursery_fd); /* it ends by that */
    m->nursery_fd = -1;
    if (m->nursery > 0)
        (void)waitpid(m->nursery, NULL, 0);
    m->nursery = 0;
}

static int send_once(const struct stk_local *m, char *name, const int fds[2])
{
    struct iovec iov = {name, strlen(name)};
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(2 * sizeof(int))];
    } u = {0};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = u.buf, .msg_controllen = sizeof(u.buf)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    ssize_t n;

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(2 * sizeof(int));
    memcpy(CMSG_DATA(c), fds, 2 * sizeof(int));
    do /* it takes them as fast as it forks: there is little to wait for when the queue is full */
        n = sendmsg(m->nursery_fd, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

int stk_local_nursery_send(struct stk_local *m, char *name, int conn_fd, int run_fd)
{
    const int fds[2] = {conn_fd, run_fd};
    int rc = -ENOTCONN;

    for (int tries = 0; tries < 2 && rc < 0; tries++) {
        if (m->nursery_fd < 0 && (rc = open_nursery(m)) < 0)
            return rc;
        rc = send_once(m, name, fds);
        if (rc < 0)
            stk_local_nursery_close(m);
    }
    return rc;
}
