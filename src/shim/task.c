/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/report.h"
#include "shim/shim.h"
#include "sys/procs.h"

#define MAX_LOGS 256 /* watched for size; a gang with more writes the rest unwatched */

/* Most jobs do nothing on the way to their command that could take long or be done twice: they
 * share our memory until then (vfork), which saves a copy of it. We wait meanwhile. */
static bool plain(const struct stk_launch *l)
{
    static const char *const slow[] = {"stdin", "setup", "secrets", "image", "venv"};

    for (size_t i = 0; i < sizeof(slow) / sizeof(*slow); i++)
        if (json_object_get(l->spec, slow[i]))
            return false;
    return l->procs == 1 && !l->items;
}

int stk_task_start(struct stk_shim *s, uint32_t task, int report, struct stk_err *err)
{
    struct stk_task *t = &s->tasks[task];
    struct stk_proc p = {0};
    pid_t pid;

    if (plain(&s->l) && !s->pty)
        pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
    else
        pid = fork();
    if (pid < 0)
        return stk_err_set(err, -errno, "cannot start a process: %s", strerror(errno));
    if (pid == 0)
        stk_child_run(s, task, report); /* NOLINT(clang-analyzer-unix.Vfork): never returns */
    t->pid = pid;
    t->ended = false;
    (void)stk_proc_read(pid, &p);
    t->start = p.start;
    s->live++;
    return 0;
}

static void keep_log(struct stk_shim *s, int fd)
{
    struct stk_log *more;
    struct stat st = {0};

    if (fstat(fd, &st) < 0)
        st.st_ino = 0;
    for (uint32_t i = 0; i < s->n_logs; i++)
        if (s->logs[i].dev == st.st_dev && s->logs[i].ino == st.st_ino) {
            (void)close(fd); /* another task's, or that of an earlier item */
            return;
        }
    more = s->n_logs < MAX_LOGS ? realloc(s->logs, (s->n_logs + 1) * sizeof(*more)) : NULL;
    if (!more) {
        (void)close(fd);
        return;
    }
    s->logs = more;
    s->logs[s->n_logs++] = (struct stk_log){.fd = fd,
                                            .seen = (uint64_t)st.st_size,
                                            .seen_ms = stk_shim_ms(),
                                            .dev = st.st_dev,
                                            .ino = st.st_ino};
}

static int descriptor(struct msghdr *m)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(m);
    int fd = -1;

    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    return fd;
}

static void said(struct stk_shim *s, struct stk_report *r, int fd)
{
    r->text[sizeof(r->text) - 1] = 0;
    if (r->kind == STK_REPORT_LOG && fd >= 0) {
        keep_log(s, fd);
        return;
    }
    if (r->kind == STK_REPORT_FAILED) {
        if (s->l.procs > 1)
            stk_shim_decide(s, STK_CAUSE_NOT_STARTED, 0, "not started: task %u: %s", r->task,
                            r->text);
        else
            stk_shim_decide(s, STK_CAUSE_NOT_STARTED, 0, "not started: %s", r->text);
    }
    if (fd >= 0)
        (void)close(fd);
}

void stk_task_report(struct stk_shim *s)
{
    for (;;) {
        struct stk_report r = {0};
        struct iovec iov = {&r, sizeof(r)};
        union {
            struct cmsghdr align;
            char buf[CMSG_SPACE(sizeof(int))];
        } u = {0};
        struct msghdr m = {.msg_iov = &iov,
                           .msg_iovlen = 1,
                           .msg_control = u.buf,
                           .msg_controllen = sizeof(u.buf)};
        ssize_t n = recvmsg(s->report, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n != (ssize_t)sizeof(r))
            break; /* all have become their commands, or have failed */
        said(s, &r, descriptor(&m));
    }
    (void)close(s->report);
    s->report = -1;
}
