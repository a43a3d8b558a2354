/* SPDX-License-Identifier: Apache-2.0 */
/* nursery.c - one shim that makes the others. Starting a program costs several times what a fork of
 * a small one costs, so the engine starts this once and sends it the two files of each launch; it
 * forks, and the child is the shim. It ends when the engine does; its children do not. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/shim.h"

#define FD_ORDERS 3

/* Two descriptors, and the launch's name for those who list processes. */
static int receive(char *name, size_t size, int fds[2])
{
    struct iovec iov = {name, size - 1};
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(2 * sizeof(int))];
    } u = {0};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = u.buf, .msg_controllen = sizeof(u.buf)};
    ssize_t n = recvmsg(FD_ORDERS, &m, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;

    if (n <= 0)
        return n < 0 && errno == EINTR ? 0 : -1;
    name[n] = 0;
    if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(2 * sizeof(int)))
        return 0;
    memcpy(fds, CMSG_DATA(c), 2 * sizeof(int));
    return 1;
}

/* What the engine sent was numbered from 4 on, or from 5: both go to their places without one
 * covering the other. */
static bool place(const int fds[2])
{
    int conn = fds[0], run = fds[1];

    if (conn == STK_SHIM_FD_RUN)
        conn = dup(conn);
    return dup2(run, STK_SHIM_FD_RUN) >= 0 && dup3(conn, STK_SHIM_FD_CONN, O_CLOEXEC) >= 0 &&
           close_range(STK_SHIM_FD_RUN + 1, ~0U, 0) == 0;
}

int stk_nursery(char *label, size_t label_size)
{
    char name[64];

    json_object_seed(0);            /* once for all */
    (void)signal(SIGCHLD, SIG_IGN); /* nobody has to wait for them */
    for (;;) {
        int fds[2], rc = receive(name, sizeof(name), fds);

        if (rc < 0)
            return 0;
        if (rc > 0 && fork() == 0) {
            (void)signal(SIGCHLD, SIG_DFL);
            (void)setsid();
            memset(label, 0, label_size);
            (void)snprintf(label, label_size, "%s", name);
            return place(fds) ? 1 : -1;
        }
        if (rc > 0) {
            (void)close(fds[0]);
            (void)close(fds[1]);
        }
    }
}
