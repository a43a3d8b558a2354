/* SPDX-License-Identifier: Apache-2.0 */
/* ending.c - how a job ends, and how it is made to.
 *
 * A stop goes in steps, each with a deadline: the job's checkpoint signal (only to make room for
 * others, only if it has one), SIGTERM, SIGKILL, and SIGKILL again for as long as anything lives.
 * The first thing that decides the end is the job's: a stop order, the time limit, or a task that
 * failed; the rest of a gang is then ended the same way.
 *
 * The shim adopts orphans (it is their subreaper), so having no child left means that no process of
 * the job is left. Only then is the end told. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/shim.h"
#include "shim/words.h"
#include "sys/procs.h"

#define LEFTOVER_GRACE_MS 5000 /* for processes that outlive the command */
#define KILL_AGAIN_MS 100

/* An adopted process is not below us: it is itself a member, then those below it, for as long as
 * it is that very process. */
static size_t adopted(const struct stk_launch *l, struct stk_proc *list, size_t n)
{
    struct stk_proc self;

    if (!stk_proc_alive(l->adopt_pid, l->adopt_start) || stk_proc_read(l->adopt_pid, &self) < 0)
        return 0;
    n = stk_proc_below(list, n, l->adopt_pid);
    memmove(list + 1, list, n * sizeof(*list)); /* there is room: the list held it too */
    list[0] = self;
    return n + 1;
}

int stk_shim_members(const struct stk_shim *s, struct stk_proc **ret_list, size_t *ret_n)
{
    struct stk_proc *list;
    size_t n;
    int rc = stk_proc_list(&list, &n);

    if (rc < 0)
        return rc;
    *ret_n = s->l.adopt_pid ? adopted(&s->l, list, n) : stk_proc_below(list, n, getpid());
    *ret_list = list;
    return 0;
}

void stk_shim_signal_all(const struct stk_shim *s, int sig, int sig2)
{
    struct stk_proc *list;
    size_t n;

    if (stk_shim_members(s, &list, &n) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        bool spared = stk_container_spares(s, &list[i]);

        (void)stk_proc_signal(list[i].pid, list[i].start, spared ? SIGCONT : sig);
        if (sig2 && !spared)
            (void)stk_proc_signal(list[i].pid, list[i].start, sig2);
    }
    if (sig == SIGTERM)
        stk_container_shielded(s, list, n, sig);
    free(list);
}

static void signal_tasks(const struct stk_shim *s, int sig)
{
    for (uint32_t i = 0; i < s->n_tasks; i++)
        if (!s->tasks[i].ended && s->tasks[i].pid > 0)
            (void)stk_proc_signal(s->tasks[i].pid, s->tasks[i].start, sig);
}

static bool is_task(const struct stk_shim *s, pid_t pid)
{
    for (uint32_t i = 0; i < s->n_tasks; i++)
        if (s->tasks[i].pid == pid)
            return true;
    return false;
}

/* What srun has started from the job's script: the leaders of the first process groups below it.
 * Neither the script nor srun hears of it, and tasks tell their own children if they like. */
static void signal_steps(const struct stk_shim *s, int sig)
{
    struct stk_proc *list;
    bool *below; /* it, or a process above it, was told */
    size_t n;

    if (stk_shim_members(s, &list, &n) < 0)
        return;
    below = calloc(n + 1, sizeof(*below));
    for (size_t i = 0; below && i < n; i++) {
        for (size_t k = 0; k < i && !below[i]; k++)
            below[i] = below[k] && list[k].pid == list[i].ppid;
        if (below[i] || list[i].pid != list[i].pgid || is_task(s, list[i].pid) ||
            stk_container_spares(s, &list[i]) || stk_container_first(&list[i]))
            continue;
        below[i] = true;
        (void)stk_proc_signal(list[i].pid, list[i].start, sig);
    }
    free(below);
    free(list);
}

void stk_shim_signal(struct stk_shim *s, int sig, bool tasks_only)
{
    if (sig == s->l.signal)
        s->warned_until = stk_shim_ms() + s->l.signal_ms;
    if (tasks_only || (s->l.slurm && s->l.one_each))
        signal_tasks(s, sig);
    else if (s->l.slurm)
        signal_steps(s, sig);
    else
        stk_shim_signal_all(s, sig, 0);
}

void stk_shim_begin_step(struct stk_shim *s, enum stk_step step)
{
    int64_t now = stk_shim_ms();

    s->step = step;
    if (s->l.items)
        stk_items_stop(s);
    s->warn_at = s->limit_at = STK_SHIM_NEVER; /* it is going anyway */
    switch (step) {
    case STK_STEP_NONE:
        break;
    case STK_STEP_SIGNAL:
        stk_shim_signal(s, s->l.signal, s->l.signal_tasks);
        s->step_at = now + s->l.signal_ms;
        break;
    case STK_STEP_TERM: {
        int64_t grace = s->l.grace_ms;

        if (s->live == 0 && grace > LEFTOVER_GRACE_MS)
            grace = LEFTOVER_GRACE_MS;
        if (s->pty) /* shells do not heed SIGTERM, but a terminal that is gone */
            stk_shim_signal_all(s, SIGHUP, SIGCONT);
        if (s->live > 0 && stk_container_none(s))
            signal_tasks(s, SIGTERM); /* podman itself: it is still on its way */
        stk_shim_signal_all(s, SIGTERM, SIGCONT);
        s->step_at = now + grace;
        break;
    }
    case STK_STEP_KILL:
        if (s->kills++ == 0 && s->runtime == STK_DOCKER)
            stk_image_remove(s); /* the daemon that runs its containers is not below us */
        stk_shim_signal_all(s, SIGKILL, 0);
        if (s->runtime != STK_PODMAN)
            stk_cgroup_kill(s->cg);
        s->step_at = now + KILL_AGAIN_MS;
        break;
    }
}

void stk_shim_stop(struct stk_shim *s, enum stk_cause cause)
{
    bool harder = s->stop_cause != STK_CAUSE_NONE && cause == STK_CAUSE_CANCELLED;
    bool unwoken = s->asleep && s->l.grace_ms == 0; /* it is to do nothing more */

    if (s->end.known && s->live == 0)
        return; /* it has ended by itself; what is left is going */
    if (s->stop_cause == STK_CAUSE_NONE || harder)
        s->stop_cause = cause;
    s->freezing = false;
    s->freeze_at = STK_SHIM_NEVER;
    if (s->asleep)
        s->asleep = false; /* the steps wake it */
    /* one that asks to be queued again because of the signal has had it */
    if (s->step == STK_STEP_NONE && cause == STK_CAUSE_EVICTED && s->l.signal &&
        stk_shim_ms() >= s->warned_until)
        stk_shim_begin_step(s, STK_STEP_SIGNAL);
    else if (s->step < STK_STEP_TERM)
        stk_shim_begin_step(s, unwoken ? STK_STEP_KILL : STK_STEP_TERM);
}

void stk_shim_decide(struct stk_shim *s, enum stk_cause cause, int code, const char *fmt, ...)
{
    va_list ap;

    if (s->end.known)
        return;
    s->end = (struct stk_end){.known = true, .cause = cause, .code = code};
    va_start(ap, fmt);
    (void)vsnprintf(s->end.note, sizeof(s->end.note), fmt, ap);
    va_end(ap);
}

static void how(int status, char *buf, size_t size)
{
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));

        if (name)
            (void)snprintf(buf, size, "killed by SIG%s", name);
        else
            (void)snprintf(buf, size, "killed by signal %d", WTERMSIG(status));
    } else {
        (void)snprintf(buf, size, "exit code %d", WEXITSTATUS(status));
    }
}

static void limit_text(int64_t ms, char *buf, size_t size)
{
    long long t = ms / 1000;

    if (t >= 3600)
        (void)snprintf(buf, size, "%lldh %lldm", t / 3600, t / 60 % 60);
    else if (t >= 60)
        (void)snprintf(buf, size, "%lldm %llds", t / 60, t % 60);
    else
        (void)snprintf(buf, size, "%llds", t);
}

/* Whether the description names the exit codes that are worth a restart, and not this one. */
static bool is_final(const struct stk_launch *l, int code)
{
    const json_t *list = json_object_get(json_object_get(l->spec, "retry"), "exit_codes"), *v;
    size_t i;

    json_array_foreach(list, i, v)
    {
        if (json_integer_value(v) == code)
            return false;
    }
    return list != NULL;
}

/* A task failed by itself. */
static void judge(struct stk_shim *s, const struct stk_task *t)
{
    int code = WIFSIGNALED(t->status) ? WTERMSIG(t->status) : WEXITSTATUS(t->status);
    char text[64], who[32] = "";
    uint64_t mib;

    how(t->status, text, sizeof(text));
    if (s->n_tasks > 1)
        (void)snprintf(who, sizeof(who), "task %d: ", (int)(t - s->tasks));
    if (s->cg && stk_cgroup_oom(s->cg, &mib))
        stk_shim_decide(s, STK_CAUSE_OOM, code, "%sout of memory: used %llu MiB, its limit", who,
                        (unsigned long long)mib);
    else if (WIFSIGNALED(t->status))
        stk_shim_decide(s, STK_CAUSE_SIGNAL, code, "%s%s", who, text);
    else
        stk_shim_decide(s, STK_CAUSE_FAILED, code, "%s%s", who, text);
    if (s->end.cause != STK_CAUSE_OOM)
        s->end.final = is_final(&s->l, WIFSIGNALED(t->status) ? 128 + code : code);
}

/* A task ended after it was told to: the order is the cause, whatever the task said. */
static void obeyed(struct stk_shim *s, int status)
{
    int code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    char text[64], limit[32];

    how(status, text, sizeof(text));
    limit_text(s->l.limit_ms, limit, sizeof(limit));
    if (s->timed_out)
        stk_shim_decide(s, STK_CAUSE_TIMEOUT, code, "over its time limit of %s", limit);
    else if (s->stop_cause == STK_CAUSE_CANCELLED)
        stk_shim_decide(s, STK_CAUSE_CANCELLED, code, "cancelled (%s)", text);
    else if (s->stop_cause != STK_CAUSE_NONE)
        stk_shim_decide(s, s->stop_cause, code, "stopped to make room (%s)", text);
    else if (s->shutdown)
        stk_shim_decide(s, STK_CAUSE_NODE_LOST, code, "its supervisor was told to end (%s)", text);
}

static void task_ended(struct stk_shim *s, struct stk_task *t, int status)
{
    bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;

    t->ended = true;
    t->status = status;
    s->live--;
    if (s->l.items && t->item >= 0) {
        stk_items_ended(s, t);
        return;
    }
    obeyed(s, status);
    if (failed && !s->end.known)
        judge(s, t);
    if (s->live == 0)
        stk_shim_decide(s, STK_CAUSE_OK, 0, "exit code 0");
    else if (failed && s->step < STK_STEP_TERM)
        stk_shim_begin_step(s, STK_STEP_TERM);
}

/* Podman may have left a process behind that waits for its next command. */
static void helper_ended(struct stk_shim *s)
{
    s->helper = 0;
    if (s->runtime == STK_PODMAN)
        stk_shim_signal_all(s, SIGTERM, 0);
}

void stk_shim_reap(struct stk_shim *s)
{
    int status;
    pid_t pid;

    if (s->report >= 0)
        stk_task_report(s); /* why a task did not start is said before it dies */
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == s->helper)
            helper_ended(s);
        for (uint32_t i = 0; i < s->n_tasks; i++)
            if (s->tasks[i].pid == pid && !s->tasks[i].ended) {
                task_ended(s, &s->tasks[i], status);
                break;
            }
    }
    if (pid < 0 && errno == ECHILD && !s->l.adopt_pid)
        s->childless = true;
    else
        s->childless = false;
}

/* Nothing lives. Podman may have been ended while it made a container: none is left behind. */
static void end_of_containers(struct stk_shim *s)
{
    bool cut_short = s->stop_cause != STK_CAUSE_NONE || s->timed_out || s->shutdown || s->kills > 0;

    s->finished = s->runtime != STK_PODMAN || s->removed || !cut_short;
    if (s->finished)
        return;
    s->removed = true;
    s->childless = false;
    stk_image_remove(s);
    s->finished = s->helper < 0;
}

void stk_shim_check_over(struct stk_shim *s)
{
    if (s->live > 0 || !s->end.known || s->finished)
        return;
    if (s->childless && !s->l.adopt_pid) {
        end_of_containers(s);
        return;
    }
    if (s->l.adopt_pid) {
        struct stk_proc *list = NULL;
        size_t n = 1;

        if (stk_shim_members(s, &list, &n) == 0)
            free(list);
        s->finished = n == 0;
        if (s->finished)
            return;
    }
    if (s->step < STK_STEP_TERM)
        stk_shim_begin_step(s, STK_STEP_TERM);
    else if (s->step == STK_STEP_TERM && s->step_at > stk_shim_ms() + LEFTOVER_GRACE_MS)
        s->step_at = stk_shim_ms() + LEFTOVER_GRACE_MS;
}

int64_t stk_shim_ran(const struct stk_shim *s)
{
    int64_t until = s->asleep ? s->asleep_since : stk_shim_ms();

    return s->started ? until - s->started_ms - s->slept_ms : 0;
}

/* Counted from its start, without the time it has slept; while it sleeps, its time stands still. */
static void set_limit(struct stk_shim *s)
{
    s->limit_at = s->warn_at = STK_SHIM_NEVER;
    if (s->l.limit_ms <= 0)
        return;
    s->limit_at = s->started_ms + s->slept_ms + s->l.limit_ms;
    if (s->l.signal)
        s->warn_at = s->limit_at - s->l.signal_ms;
}

void stk_shim_limit(struct stk_shim *s, int64_t ms)
{
    if (ms == s->l.limit_ms || ms < 0)
        return;
    s->l.limit_ms = ms;
    if (!s->started || s->step != STK_STEP_NONE)
        return;
    set_limit(s);
    stk_shim_say_state(s, "limit", STK_SAY_FILE);
}

void stk_shim_limit_begins(struct stk_shim *s)
{
    if (s->step == STK_STEP_NONE)
        set_limit(s);
}

static void over_limit(struct stk_shim *s)
{
    s->limit_at = STK_SHIM_NEVER;
    s->timed_out = true;
    stk_shim_begin_step(s, STK_STEP_TERM);
}

void stk_shim_on_time(struct stk_shim *s, int64_t now)
{
    if (s->tell_at <= now) {
        s->tell_at = STK_SHIM_NEVER;
        stk_shim_say_state(s, "started", STK_SAY_CONN);
    }
    if (s->listen_at <= now)
        stk_shim_listen(s);
    if (s->freeze_at <= now)
        stk_shim_freeze_more(s, now);
    if (s->log_at <= now)
        stk_shim_logs_check(s, now);
    if (s->warn_at <= now && !s->asleep) {
        s->warn_at = STK_SHIM_NEVER;
        stk_shim_signal(s, s->l.signal, s->l.signal_tasks);
    }
    if (s->limit_at <= now && !s->asleep)
        over_limit(s);
    if (s->step_at <= now && s->step != STK_STEP_NONE)
        stk_shim_begin_step(s, s->step == STK_STEP_SIGNAL ? STK_STEP_TERM : STK_STEP_KILL);
}

int64_t stk_shim_next_time(const struct stk_shim *s)
{
    const int64_t all[] = {s->tell_at,   s->listen_at, s->step_at, s->log_at,
                           s->freeze_at, s->warn_at,   s->limit_at};
    size_t n = sizeof(all) / sizeof(all[0]) - (s->asleep ? 2 : 0); /* its time stands still */
    int64_t first = STK_SHIM_NEVER;

    for (size_t i = 0; i < n; i++)
        first = all[i] < first ? all[i] : first;
    return first;
}
