/* SPDX-License-Identifier: Apache-2.0 */
#include "hetero/solver.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lp/wire.h"

struct stk_solver {
    char *path;
    pid_t pid; /* 0: not started */
    int fd;
};

int stk_solver_new(const char *path, struct stk_solver **ret, struct stk_err *err)
{
    struct stk_solver *s = calloc(1, sizeof(*s));

    if (s)
        s->path = strdup(path);
    if (!s || !s->path) {
        free(s);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    s->fd = -1;
    *ret = s;
    return 0;
}

void stk_solver_free(struct stk_solver *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        (void)close(s->fd);
    if (s->pid > 0)
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    free(s->path);
    free(s);
}

static int start(struct stk_solver *s, struct stk_err *err)
{
    char *argv[] = {s->path, NULL}, *envp[] = {NULL};
    posix_spawn_file_actions_t acts;
    int fds[2], rc;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return stk_err_set(err, -errno, "%.120s: %s", s->path, strerror(errno));
    rc = posix_spawn_file_actions_init(&acts);
    if (rc == 0) {
        rc = posix_spawn_file_actions_adddup2(&acts, fds[1], STDIN_FILENO);
        rc = rc ? rc : posix_spawn(&s->pid, s->path, &acts, NULL, argv, envp);
        (void)posix_spawn_file_actions_destroy(&acts);
    }
    (void)close(fds[1]);
    if (rc != 0) {
        (void)close(fds[0]);
        s->pid = 0;
        return stk_err_set(err, -rc, "%.120s: %s", s->path, strerror(rc));
    }
    s->fd = fds[0];
    return 0;
}

int stk_solver_ask(struct stk_solver *s, const struct stk_lp *p, double *ret_z, double *ret_x,
                   struct stk_err *err)
{
    const struct stk_lp_head h = {p->jobs, p->types};
    size_t m = p->jobs * sizeof(double), k = p->types * sizeof(double);
    int32_t status;
    int rc = s->fd < 0 ? start(s, err) : 0;

    if (rc < 0)
        return rc;
    if (!stk_lp_put(s->fd, &h, sizeof(h)) || !stk_lp_put(s->fd, p->count, k) ||
        !stk_lp_put(s->fd, p->gpus, m) || !stk_lp_put(s->fd, p->weight, m) ||
        !stk_lp_put(s->fd, p->need, m) || !stk_lp_put(s->fd, p->speed, p->jobs * k) ||
        !stk_lp_get(s->fd, &status, sizeof(status)) ||
        (status == 0 &&
         (!stk_lp_get(s->fd, ret_z, sizeof(*ret_z)) || !stk_lp_get(s->fd, ret_x, p->jobs * k))))
        return stk_err_set(err, -EPIPE, "%.120s has ended without an answer", s->path);
    if (status != 0 && status != -ERANGE)
        return stk_err_set(err, -EIO, "%.120s cannot solve this", s->path);
    return status;
}
