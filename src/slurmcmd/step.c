/* SPDX-License-Identifier: Apache-2.0 */
/* step.c - srun inside a job: one local process per task.
 *
 * Each task leads a process group of its own right below the job's script: that is how the job's
 * supervisor knows tasks from the script when it sends them the job's signal. Signals that reach
 * srun itself are passed on, but not those from the supervisor, which has told the tasks already.
 * The exit code is the highest of all tasks.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "slurmcmd/step.h"
#include "slurmcmd/submit.h"
#include "spec/words.h"

#define KILL_AFTER_MS 30000

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT};

static int64_t env_number(const char *name, int64_t none)
{
    const char *s = getenv(name); // NOLINT(concurrency-mt-unsafe)
    int64_t n;

    return s && stk_words_whole(s, STK_STEP_MAX_TASKS, &n) == 0 && n > 0 ? n : none;
}

static uint32_t count_tasks(const struct stk_sbatch *b)
{
    if (b->ntasks > 0 || b->per_node > 0)
        return (uint32_t)stk_sbatch_tasks(b);
    return (uint32_t)env_number("SLURM_NTASKS", env_number("STOKER_TASKS", 1));
}

static int block_signals(sigset_t *old)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(*passed_on); i++)
        (void)sigaddset(&set, passed_on[i]);
    (void)sigprocmask(SIG_BLOCK, &set, old);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* In the child; does not return. */
static void become_task(const struct stk_step *p, uint32_t t, const int fds[3], char **command,
                        const sigset_t *mask)
{
    const char *dir = json_string_value(json_object_get(p->b->job, "workdir"));
    struct stk_err err = {""};

    if (!isatty(STDIN_FILENO))
        (void)setpgid(0, 0);
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0 && dup2(fds[i], i) < 0)
            _exit(126);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    if (stk_step_env(p, t, &err) < 0) {
        stk_slurm_say(p->name, "error: task %u: %s", t, err.text);
        _exit(126);
    }
    if (dir && chdir(dir) < 0) {
        stk_slurm_say(p->name, "error: couldn't chdir to `%.200s': %s", dir, strerror(errno));
        _exit(126);
    }
    (void)execvp(command[0], command);
    stk_slurm_say(p->name, "error: execve(): %.200s: %s", command[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

static int start_task(struct stk_step *p, struct stk_labels *l, uint32_t t, char **command,
                      const sigset_t *mask)
{
    int fds[3] = {-1, -1, -1}, rc;
    struct stk_err err = {""};
    pid_t pid;

    rc = stk_step_open(p, t, fds, &err);
    if (rc == 0 && l)
        rc = stk_labels_add(l, t, fds);
    if (rc < 0) {
        stk_slurm_say(p->name, "error: task %u: %s", t, err.text);
        return rc;
    }
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0)
        become_task(p, t, fds, command, mask);
    if (l)
        stk_labels_parent(l, fds);
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    if (pid < 0) {
        stk_slurm_say(p->name, "error: task %u: %s", t, strerror(errno));
        return -errno;
    }
    p->tasks[t].pid = pid;
    return 0;
}

static void tell_all(const struct stk_step *p, int sig)
{
    for (uint32_t t = 0; t < p->n; t++)
        if (p->tasks[t].pid > 0)
            (void)kill(p->tasks[t].pid, sig);
}

static uint32_t living(const struct stk_step *p)
{
    uint32_t n = 0;

    for (uint32_t t = 0; t < p->n; t++)
        n += p->tasks[t].pid > 0;
    return n;
}

static void say_end(const struct stk_step *p, uint32_t t, int status)
{
    const char *node = getenv("SLURMD_NODENAME"); // NOLINT(concurrency-mt-unsafe)

    if (p->b->quiet)
        return;
    if (WIFSIGNALED(status))
        stk_slurm_say(p->name, "error: %s: task %u: %s", node ? node : "localhost", t,
                      strsignal(WTERMSIG(status))); // NOLINT(concurrency-mt-unsafe)
    else if (WEXITSTATUS(status) != 0)
        stk_slurm_say(p->name, "error: %s: task %u: Exited with exit code %d",
                      node ? node : "localhost", t, WEXITSTATUS(status));
}

/* True when a task failed. */
static bool reap(struct stk_step *p)
{
    bool failed = false;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (uint32_t t = 0; t < p->n; t++) {
            if (p->tasks[t].pid != pid)
                continue;
            p->tasks[t].pid = 0;
            p->tasks[t].code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
            failed |= p->tasks[t].code != 0;
            say_end(p, t, status);
        }
    }
    return failed;
}

/* Signals from the job's supervisor have reached the tasks without us. */
static bool from_supervisor(uint32_t pid)
{
    char path[64], comm[32] = "";
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%u/comm", pid);
    f = fopen(path, "re");
    if (!f)
        return false;
    if (!fgets(comm, sizeof(comm), f))
        comm[0] = '\0';
    (void)fclose(f);
    return strncmp(comm, "stoker-shim", 11) == 0 || strncmp(comm, "stokerd", 7) == 0;
}

static int64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void watch(struct stk_step *p, struct stk_labels *l, int signals)
{
    int64_t kill_at = INT64_MAX;

    while (living(p) > 0) {
        int wait = kill_at == INT64_MAX ? -1 : kill_at > now_ms() ? (int)(kill_at - now_ms()) : 0;
        struct signalfd_siginfo info;

        stk_labels_wait(l, signals, wait);
        while (read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
            if (info.ssi_signo != SIGCHLD && !from_supervisor(info.ssi_pid))
                tell_all(p, (int)info.ssi_signo);
        }
        if (reap(p) && p->b->kill_on_bad && kill_at == INT64_MAX) {
            tell_all(p, SIGTERM);
            kill_at = now_ms() + KILL_AFTER_MS;
        }
        if (now_ms() >= kill_at)
            tell_all(p, SIGKILL);
    }
}

static int start_all(struct stk_step *p, char **command)
{
    struct stk_labels *l = stk_labels_new(p->b->label ? p->n : 0);
    sigset_t mask;
    int signals = block_signals(&mask), rc = l && signals >= 0 ? 0 : -ENOMEM, worst = 0;

    for (uint32_t t = 0; rc == 0 && t < p->n; t++)
        rc = start_task(p, p->b->label ? l : NULL, t, command, &mask);
    if (rc < 0)
        tell_all(p, SIGKILL);
    watch(p, l, signals);
    stk_labels_free(l);
    if (signals >= 0)
        (void)close(signals);
    for (uint32_t t = 0; t < p->n; t++)
        worst = p->tasks[t].code > worst ? p->tasks[t].code : worst;
    return rc < 0 ? 1 : worst;
}

int stk_slurm_step(const struct stk_sbatch *b, const char *name, char **command)
{
    struct stk_step p = {.b = b, .name = name, .n = count_tasks(b)};
    struct stk_err err = {""};
    int rc;

    if (p.n > STK_STEP_MAX_TASKS)
        return stk_slurm_misuse(name, "at most %d tasks can be started", STK_STEP_MAX_TASKS);
    if (b->nodes > 1)
        return stk_slurm_misuse(name, "--nodes: the job has one node");
    if (b->export && strncmp(b->export, "NO", 2) == 0)
        return stk_slurm_misuse(name, "--export=%s is not supported for the tasks of a job",
                                stk_words_show(b->export).text);
    stk_slurm_notes(name, b);
    p.tasks = calloc(p.n, sizeof(*p.tasks));
    if (!p.tasks)
        return stk_slurm_misuse(name, "out of memory");
    if (stk_step_gpus(&p, &err) < 0)
        rc = stk_slurm_misuse(name, "%s", err.text);
    else
        rc = start_all(&p, command);
    free(p.tasks);
    return rc;
}
