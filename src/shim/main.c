/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - stoker-shim: takes the launch message, starts the tasks, and waits for whatever comes:
 * ends of processes, orders, deadlines. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/shim.h"
#include "shim/words.h"
#include "sys/procs.h"

#define MAX_POLL 32
#define LOG_FIRST_MS 100
/* A job that is over by then tells its start and its end at once, and has no control socket: that
 * is for those who connect again. */
#define TELL_MS 2

int64_t stk_shim_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t stk_shim_unix_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t stk_shim_boot_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* The first line of the connection. What follows it stays in s->in. NULL: the engine went
 * away before it had said all; nothing has happened then. */
static json_t *launch_message(struct stk_shim *s)
{
    json_t *msg = NULL;
    char *nl = NULL;

    while (!nl) {
        size_t cap = s->cap_in ? s->cap_in * 2 : 16384;
        ssize_t n;

        if (s->n_in == s->cap_in) {
            char *more = cap <= STK_SHIM_MAX_INPUT ? realloc(s->in, cap) : NULL;

            if (!more)
                return NULL;
            s->in = more;
            s->cap_in = cap;
        }
        n = read(s->conn, s->in + s->n_in, s->cap_in - s->n_in);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return NULL;
        nl = memchr(s->in + s->n_in, '\n', (size_t)n);
        s->n_in += (size_t)n;
    }
    msg = json_loadb(s->in, (size_t)(nl - s->in), 0, NULL);
    s->n_in -= (size_t)(nl + 1 - s->in);
    memmove(s->in, nl + 1, s->n_in);
    return msg;
}

static int first_record(struct stk_shim *s)
{
    const struct stk_launch *l = &s->l;
    json_t *o =
        json_pack("{s:s,s:i,s:s,s:I,s:I,s:s,s:I,s:I}", "ev", "shim", "pid", (int)getpid(), "boot",
                  l->boot, "job", (json_int_t)l->number, "lease", (json_int_t)l->lease, "mark",
                  l->mark, "uid", (json_int_t)l->uid, "grace_ms", (json_int_t)l->grace_ms);

    if (s->cg)
        (void)json_object_set_new(o, "cgroup", json_string(stk_cgroup_name(s->cg)));
    return stk_shim_say(s, o, STK_SAY_FILE);
}

/* The tasks of a gang wait until task 0 has opened its files: it alone has the end that is written
 * to (child.c). */
static int start_gang(struct stk_shim *s, int report, struct stk_err *err)
{
    int ends[2], rc;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return stk_err_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
    s->files_wait = ends[0];
    s->files_done = ends[1];
    rc = stk_task_start(s, 0, report, err);
    (void)close(ends[1]);
    s->files_done = -1;
    for (uint32_t i = 1; i < s->n_tasks && rc == 0; i++)
        rc = stk_task_start(s, i, report, err);
    (void)close(ends[0]);
    s->files_wait = -1;
    return rc;
}

static int start_all(struct stk_shim *s, struct stk_err *err)
{
    int pair[2], rc;

    s->n_tasks = s->l.procs;
    s->tasks = calloc(s->n_tasks, sizeof(*s->tasks));
    if (!s->tasks)
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < s->n_tasks; i++)
        s->tasks[i].item = -1;
    if (s->l.items)
        return 0; /* each worker starts with its first item */
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return stk_err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
    rc = s->n_tasks > 1 ? start_gang(s, pair[1], err) : stk_task_start(s, 0, pair[1], err);
    (void)close(pair[1]);
    s->report = pair[0];
    return rc;
}

static int adopt(struct stk_shim *s, struct stk_err *err)
{
    pid_t pid = s->l.adopt_pid;

    s->tasks = calloc(1, sizeof(*s->tasks));
    if (!s->tasks)
        return stk_err_set(err, -ENOMEM, "out of memory");
    s->adopt_fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (s->adopt_fd < 0 || !stk_proc_alive(pid, s->l.adopt_start)) {
        s->l.adopt_pid = 0; /* whoever that is, it is none of ours */
        if (s->adopt_fd >= 0)
            (void)close(s->adopt_fd);
        s->adopt_fd = -1;
        return stk_err_set(err, -ESRCH, "process %d is gone", (int)pid);
    }
    s->tasks[0] = (struct stk_task){.pid = pid, .start = s->l.adopt_start, .item = -1};
    s->n_tasks = s->live = 1;
    return 0;
}

static int begin(struct stk_shim *s, json_t *msg, struct stk_err *err)
{
    int rc = stk_launch_read(&s->l, msg, err);

    if (rc == 0 && !s->l.adopt_pid)
        rc = stk_cgroup_new(&s->l, &s->cg, err);
    if (first_record(s) < 0 && rc == 0)
        rc = stk_err_set(err, -ENOSPC, "cannot write its run file: %s", strerror(errno));
    if (rc == 0)
        rc = stk_command_script(s, err);
    if (rc == 0)
        stk_image_choose(s);
    if (rc == 0 && s->l.interactive && !s->l.adopt_pid)
        rc = stk_pty_new(&s->l, &s->pty, err);
    if (rc == 0)
        rc = s->l.adopt_pid ? adopt(s, err) : start_all(s, err);
    if (rc < 0)
        return rc;
    if (s->pty)
        stk_pty_started(s->pty);
    if (s->report >= 0)
        stk_task_report(s);
    if (s->report >= 0) /* they are still on their way to their commands */
        stk_shim_say_state(s, "tasks", STK_SAY_FILE);
    return 0;
}

static void set_started(struct stk_shim *s)
{
    s->started = true;
    s->started_us = stk_shim_unix_us();
    s->started_ms = stk_shim_ms();
    stk_shim_limit_begins(s);
    s->log_at = s->l.log_max > 0 && !s->pty ? s->started_ms + LOG_FIRST_MS : STK_SHIM_NEVER;
    stk_shim_say_state(s, "started", STK_SAY_FILE);
    s->tell_at = s->listen_at = s->started_ms + TELL_MS;
    if (s->l.items)
        stk_items_begin(s);
}

static void on_signal(struct stk_shim *s)
{
    struct signalfd_siginfo si;

    while (read(s->signal_fd, &si, sizeof(si)) == (ssize_t)sizeof(si))
        if (si.ssi_signo == SIGTERM && s->step < STK_STEP_TERM) {
            s->shutdown = true;
            stk_shim_begin_step(s, STK_STEP_TERM);
        }
    stk_shim_reap(s);
}

static void adopted_ended(struct stk_shim *s)
{
    (void)close(s->adopt_fd);
    s->adopt_fd = -1;
    s->tasks[0].ended = true;
    s->live = 0;
    if (s->stop_cause != STK_CAUSE_NONE)
        stk_shim_decide(s, s->stop_cause, 0, "stopped");
    else if (s->timed_out)
        stk_shim_decide(s, STK_CAUSE_TIMEOUT, 0, "over its time limit");
    stk_shim_decide(s, STK_CAUSE_UNKNOWN, 0,
                    "process %d ended; it was not started here, so its exit code is not known",
                    (int)s->l.adopt_pid);
}

static int timeout_of(const struct stk_shim *s)
{
    int64_t at = stk_shim_next_time(s), now;

    if (at == STK_SHIM_NEVER)
        return -1;
    now = stk_shim_ms();
    return at <= now ? 0 : at - now > 3600000 ? 3600000 : (int)(at - now);
}

static void note_start(struct stk_shim *s)
{
    if (s->report < 0 && !s->started && !s->end.known)
        set_started(s);
}

static void turn(struct stk_shim *s)
{
    struct pollfd fds[MAX_POLL] = {{.fd = s->signal_fd, .events = POLLIN},
                                   {.fd = s->listener, .events = POLLIN},
                                   {.fd = s->conn, .events = POLLIN},
                                   {.fd = s->report, .events = POLLIN},
                                   {.fd = s->adopt_fd, .events = POLLIN}};
    uint32_t n = 5, k = s->pty ? stk_pty_poll(s->pty, fds + n, MAX_POLL - n) : 0;

    if (poll(fds, n + k, timeout_of(s)) < 0)
        return;
    if (fds[3].revents && s->report >= 0)
        stk_task_report(s);
    note_start(s);
    if (fds[4].revents)
        adopted_ended(s);
    if (k > 0)
        stk_pty_ready(s->pty, fds + n, k);
    if (fds[2].revents && s->conn >= 0)
        stk_shim_input(s);
    if (fds[1].revents)
        stk_shim_accept(s);
    if (fds[0].revents)
        on_signal(s);
    note_start(s);
    stk_shim_on_time(s, stk_shim_ms());
    if (s->end.known && s->end.cause == STK_CAUSE_NOT_STARTED && s->live > 0 &&
        s->step < STK_STEP_KILL)
        stk_shim_begin_step(s, STK_STEP_KILL);
    if (s->end.known && s->live == 0 && !s->childless)
        stk_shim_reap(s);
    stk_shim_check_over(s);
}

static void finish(struct stk_shim *s)
{
    json_t *o = stk_shim_state(s);

    (void)json_object_set_new(o, "ev", json_string("exited"));
    (void)json_object_set_new(o, "cause", json_string(stk_cause_name(s->end.cause)));
    (void)json_object_set_new(o, "code", json_integer(s->end.code));
    (void)json_object_set_new(o, "final", json_boolean(s->end.final));
    (void)json_object_set_new(o, "note", json_string(s->end.note));
    (void)json_object_set_new(o, "ran_ms", json_integer(stk_shim_ran(s)));
    (void)json_object_set_new(o, "ended_us", json_integer(stk_shim_unix_us()));
    stk_command_clean(s);
    stk_shim_logs_end(s);
    if (s->pty)
        stk_pty_free(s->pty, &s->end);
    stk_cgroup_free(s->cg);
    (void)stk_shim_say(s, o, STK_SAY_BOTH);
}

static int supervise(void)
{
    struct stk_shim s = {.conn = STK_SHIM_FD_CONN,
                         .listener = -1,
                         .report = -1,
                         .files_wait = -1,
                         .files_done = -1,
                         .adopt_fd = -1,
                         .nap_from = -1,
                         .nap_end = -1,
                         .tell_at = STK_SHIM_NEVER,
                         .listen_at = STK_SHIM_NEVER,
                         .step_at = STK_SHIM_NEVER,
                         .warn_at = STK_SHIM_NEVER,
                         .limit_at = STK_SHIM_NEVER,
                         .log_at = STK_SHIM_NEVER,
                         .freeze_at = STK_SHIM_NEVER};
    struct stk_err err = {0};
    sigset_t all;
    json_t *msg;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    s.signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    msg = launch_message(&s);
    if (!msg || s.signal_fd < 0)
        return 1;
    if (begin(&s, msg, &err) < 0) {
        stk_shim_decide(&s, STK_CAUSE_NOT_STARTED, 0, "not started: %s", err.text);
        s.step = STK_STEP_KILL;
        s.step_at = 0;
        stk_shim_reap(&s);
        stk_shim_check_over(&s);
    } else if (s.n_in > 0) {
        stk_shim_pending(&s);
    }
    note_start(&s); /* with nothing to wait for it has */
    while (!s.finished)
        turn(&s);
    finish(&s);
    return 0;
}

/* stoker-shim --nursery LABEL: makes shims. Without arguments: is one. */
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--nursery") == 0) {
        int rc = stk_nursery(argv[argc - 1], strlen(argv[argc - 1]));

        if (rc <= 0)
            return rc == 0 ? 0 : 1;
    }
    _exit(supervise()); /* there is nothing to tidy up */
}
