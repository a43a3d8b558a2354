/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - from a fork of the shim to the job's command.
 *
 * Whatever the user's permissions should decide is done after the process has become the user: the
 * working directory, the files, the secrets, the command. A symbolic link at the end of a log's
 * path is refused, so nobody else can send a job's output elsewhere. Until exec the process dies
 * with the shim; afterwards it does not. What goes wrong is said in one sentence over 'report',
 * which closes by itself at exec. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/env.h"
#include "shim/report.h"
#include "shim/shim.h"
#include "sys/rlimits.h"

#define MAX_GROUPS 65536

static void fail(int report, uint32_t task, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 3, 4)));
static void fail(int report, uint32_t task, const char *fmt, ...)
{
    struct stk_report r = {.kind = STK_REPORT_FAILED, .task = task};
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(r.text, sizeof(r.text), fmt, ap);
    va_end(ap);
    (void)!write(report, &r, sizeof(r));
    _exit(127);
}

/* The parent keeps an eye on the size of the log through this very descriptor: opening it again by
 * name, as root, would trust the user's folder. */
static void hand_over(int report, uint32_t task, int fd)
{
    struct stk_report r = {.kind = STK_REPORT_LOG, .task = task};
    struct iovec iov = {&r, sizeof(r)};
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int))];
    } u = {0};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = u.buf, .msg_controllen = sizeof(u.buf)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    (void)sendmsg(report, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int stk_child_become(const struct stk_launch *l)
{
    const json_t *list = json_object_get(l->spec, "groups"), *g;
    size_t n = json_array_size(list), i;
    gid_t *groups;
    int rc = 0;

    if (geteuid() != 0)
        return 0; /* it is ours: checked when the launch was read */
    if (n > MAX_GROUPS)
        return -E2BIG;
    groups = calloc(n + 1, sizeof(*groups));
    if (!groups)
        return -ENOMEM;
    groups[0] = l->gid;
    json_array_foreach(list, i, g) groups[i] = (gid_t)json_integer_value(g);
    if (setgroups(n > 0 ? n : 1, groups) < 0 || setresgid(l->gid, l->gid, l->gid) < 0 ||
        setresuid(l->uid, l->uid, l->uid) < 0)
        rc = -errno;
    free(groups);
    return rc;
}

static void become_user(const struct stk_launch *l, uint32_t task, int report)
{
    int rc = stk_child_become(l);

    if (rc < 0)
        fail(report, task, "cannot become user %u: %s", (unsigned)l->uid, strerror(-rc));
}

static rlim_t one_limit(const json_t *v)
{
    return json_integer_value(v) < 0 ? RLIM_INFINITY : (rlim_t)json_integer_value(v);
}

/* Those that the user had where the job was sent from; but nobody gains by it what this machine's
 * daemon has not, except root. */
static void limits(const struct stk_launch *l)
{
    const json_t *all = json_object_get(l->spec, "rlimits");

    for (size_t i = 0; all && i < STK_N_RLIMITS; i++) {
        const json_t *v = json_object_get(all, stk_rlimits[i].name);
        struct rlimit have,
            want = {one_limit(json_array_get(v, 0)), one_limit(json_array_get(v, 1))};

        if (json_array_size(v) != 2 || getrlimit(stk_rlimits[i].what, &have) < 0)
            continue;
        if (l->uid != 0 && want.rlim_max > have.rlim_max)
            want.rlim_max = have.rlim_max;
        if (want.rlim_cur > want.rlim_max)
            want.rlim_cur = want.rlim_max;
        (void)setrlimit(stk_rlimits[i].what, &want);
    }
}

#define MAX_ASIDE 99 /* older outputs that are kept beside the job's */

static void log_trouble(int report, uint32_t task, const char *path, int error)
{
    if (error == ELOOP)
        fail(report, task, "the output file %s is a symbolic link", path);
    if (error == ENOENT || error == ENOTDIR)
        fail(report, task, "the folder of the output file %s does not exist", path);
    fail(report, task, "cannot write the output file %s: %s", path, strerror(error));
}

/* The default file is named after the job's number alone, and another daemon of the user numbers
 * from 1, too: what is there is kept under the first free name, NAME.1 and so on. The job that
 * still writes there writes on. Where that cannot be done, this job appends. */
static void set_aside(const char *path)
{
    struct stat st;
    char old[4096 + 8];

    if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return;
    for (int i = 1; i <= MAX_ASIDE; i++) {
        (void)snprintf(old, sizeof(old), "%s.%d", path, i);
        if (link(path, old) == 0) {
            (void)unlink(path);
            return;
        }
        if (errno != EEXIST)
            return;
    }
}

/* Whether the file is begun anew. Never one that this job has written: by an earlier launch, for an
 * earlier item, by another task that has the same file. */
static bool begins_anew(const struct stk_shim *s, uint32_t task, const char *path, bool is_stderr)
{
    const struct stk_launch *l = &s->l;
    bool named =
        json_object_get(l->spec, "stdout") || (is_stderr && json_object_get(l->spec, "stderr"));
    const bool shared = l->procs > 1 && l->items; /* no worker is the first for certain */
    const char *mode = stk_str_or(l->spec, "open_mode", named || shared ? "append" : "truncate");
    char first[4096];

    if (strcmp(mode, "truncate") != 0 || l->restarts > 0 || s->items_handed > 1)
        return false;
    stk_launch_log_path(l, 0, is_stderr, first, sizeof(first));
    return task == 0 || strcmp(first, path) != 0;
}

static int open_log(const struct stk_shim *s, uint32_t task, int report, bool is_stderr,
                    const char *path)
{
    const struct stk_launch *l = &s->l;
    const bool anew = begins_anew(s, task, path, is_stderr);
    const bool empties = anew && json_object_get(l->spec, "open_mode");
    struct stat st;
    int fd;

    if (anew && !empties)
        set_aside(path);
    /* not blocking: a pipe without a reader must not hold up the start */
    fd = open(path,
              O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC |
                  (empties ? O_TRUNC : 0),
              0666);

    if (fd < 0)
        log_trouble(report, task, *path ? path : "(a name too long)", errno);
    if (fcntl(fd, F_SETFL, O_APPEND) < 0 || fstat(fd, &st) < 0)
        log_trouble(report, task, path, errno);
    if (l->log_max > 0 && S_ISREG(st.st_mode))
        hand_over(report, task, fd);
    return fd;
}

/* Task 0 of a gang sets the old file aside, or empties it: the other tasks open their files when
 * task 0 has opened its own, or is gone. */
static void await_first_task(const struct stk_shim *s)
{
    char c;

    while (s->files_wait >= 0 && read(s->files_wait, &c, 1) < 0 && errno == EINTR)
        ; /* until it is closed */
}

static void files(const struct stk_shim *s, uint32_t task, int report)
{
    const bool sent = json_is_true(json_object_get(s->l.spec, "stdin_held")),
               held = sent && task == 0; /* input that is sent is task 0's */
    const char *in = sent && !held ? "/dev/null" : stk_str_or(s->l.spec, "stdin", "/dev/null");
    char out_path[4096], err_path[4096];
    sigset_t term;
    int fd;

    if (s->pty) {
        stk_pty_child(s->pty);
        return;
    }
    /* a pipe that nobody writes to holds this up: the user may still end it */
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)sigprocmask(SIG_UNBLOCK, &term, NULL);
    fd = open(in, O_RDONLY | O_CLOEXEC | O_NOCTTY | (held ? O_NONBLOCK | O_NOFOLLOW : 0));
    if (fd < 0 && held && errno == ENOENT)
        fail(report, task,
             "its input was read by an earlier start, or stoker run has ended: it cannot be sent "
             "again");
    if (fd < 0)
        fail(report, task, "cannot read its input %s: %s", in, strerror(errno));
    if (held)
        (void)fcntl(fd, F_SETFL, 0);
    (void)dup2(fd, 0);
    if (task > 0)
        await_first_task(s);
    stk_launch_log_path(&s->l, task, false, out_path, sizeof(out_path));
    stk_launch_log_path(&s->l, task, true, err_path, sizeof(err_path));
    fd = open_log(s, task, report, false, out_path);
    (void)dup2(fd, 1);
    if (strcmp(out_path, err_path) != 0)
        fd = open_log(s, task, report, true, err_path);
    (void)dup2(fd, 2);
    if (s->files_done >= 0)
        (void)close(s->files_done);
}

static void work_dir(const struct stk_launch *l, uint32_t task, int report)
{
    if (chdir(l->workdir) == 0)
        return;
    if (errno == ENOENT)
        fail(report, task, "the working directory %s does not exist", l->workdir);
    fail(report, task, "cannot enter the working directory %s: %s", l->workdir, strerror(errno));
}

/* Says what a failed exec means. */
static void __attribute__((noreturn)) cannot_run(int report, uint32_t task, const char *word)
{
    int e = errno;

    if (e == ENOENT && !strchr(word, '/'))
        fail(report, task, "there is no command %.100s in its PATH", word);
    if (e == ENOENT)
        fail(report, task, "%.180s does not exist, or its interpreter does not", word);
    if (e == EACCES)
        fail(report, task, "%.180s may not be executed", word);
    fail(report, task, "cannot execute %.180s: %s", word, strerror(e));
}

/* The CPUs near its GPUs; the environment says which. */
static void near_env(const char *cpus, const struct stk_launch *l, uint32_t task, char ***env)
{
    struct stk_envs e = {.var = *env};
    char numa[STK_SHIM_CPUS];

    while (e.var[e.n])
        e.n++;
    stk_env_put(&e, "STOKER_CPUS", cpus);
    stk_near_numa(l, task, numa, sizeof(numa));
    if (*numa)
        stk_env_put(&e, "STOKER_NUMA", numa);
    *env = e.var;
}

static void item_env(const struct stk_shim *s, uint32_t task, char ***env)
{
    struct stk_envs e = {.var = *env};
    const char *text;

    if (!s->l.items)
        return;
    while (e.var[e.n])
        e.n++;
    e.cap = 0; /* the next one makes room */
    text = json_string_value(json_array_get(s->l.items, (size_t)s->tasks[task].item));
    stk_env_put(&e, "STOKER_ITEM", text ? text : "");
    stk_env_set(&e, "STOKER_ITEM_INDEX", "%d", s->tasks[task].item);
    *env = e.var;
}

void stk_child_run(struct stk_shim *s, uint32_t task, int report)
{
    const struct stk_launch *l = &s->l;
    struct stk_err err = {0};
    char cpus[STK_SHIM_CPUS];
    bool near = stk_near_task(l, task, cpus, sizeof(cpus));
    sigset_t none;
    char **env, **words;

    (void)close(STK_SHIM_FD_RUN); /* the lock is the shim's */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setsid();
    if (s->cg && stk_cgroup_join(s->cg) < 0)
        fail(report, task, "cannot enter its cgroup: %s", strerror(errno));
    if (near)
        stk_near_bind(0, cpus);
    limits(l);
    become_user(l, task, report);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* becoming another user has cleared it */
    (void)umask((mode_t)(stk_int(l->spec, "umask", 022) & 0777));
    work_dir(l, task, report);
    env = stk_shim_env(l, task, stk_cgroup_fenced(s->cg), &err);
    if (!env)
        fail(report, task, "%s", err.text);
    if (near)
        near_env(cpus, l, task, &env);
    item_env(s, task, &env);
    files(s, task, report);
    words = stk_command_words(s, task, env, &err);
    if (!words)
        fail(report, task, "%s", err.text);
    (void)close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    environ = env; /* execvp() looks for PATH there */
    (void)prctl(PR_SET_PDEATHSIG, 0);
    (void)execvp(words[0], words);
    cannot_run(report, task, words[0]);
}
