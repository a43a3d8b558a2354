/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/local/inner.h"

static enum stk_local_state state_of(const struct stk_local_job *j)
{
    switch (j->where) {
    case STK_W_WAITING:
    case STK_W_LAUNCHED:
        return STK_LOCAL_STARTING;
    case STK_W_RUNNING:
        return STK_LOCAL_RUNNING;
    case STK_W_PREPARING:
    case STK_W_SAVING:
    case STK_W_FREEZING:
        return STK_LOCAL_SUSPENDING;
    case STK_W_ASLEEP:
        return STK_LOCAL_ASLEEP;
    case STK_W_THAWING:
    case STK_W_RESTORING:
        return STK_LOCAL_RESUMING;
    case STK_W_STOPPING:
        return STK_LOCAL_STOPPING;
    case STK_W_ORPHANED:
        return STK_LOCAL_ORPHANED;
    case STK_W_ENDED:
        break;
    }
    return STK_LOCAL_ENDED;
}

/* The shim touches the socket when something is typed or shown. */
static int64_t idle(const char *attach)
{
    struct stat st;

    if (!attach || stat(attach, &st) < 0)
        return -1;
    return time(NULL) > st.st_mtime ? time(NULL) - st.st_mtime : 0;
}

int stk_local_info(struct stk_engine *e, stk_job_number number, struct stk_local_info *ret_info)
{
    struct stk_local_job *j = stk_local_find((struct stk_local *)e, number);
    struct stk_local_task *t;

    if (!j)
        return -ESRCH;
    t = calloc(j->run.n_tasks + 1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    free(j->shown);
    j->shown = t;
    for (uint32_t i = 0; i < j->run.n_tasks; i++) {
        const struct stk_run_task *r = &j->run.tasks[i];

        t[i].pid = r->pid;
        t[i].ended = r->ended;
        t[i].code = WIFSIGNALED(r->status) ? 128 + WTERMSIG(r->status) : WEXITSTATUS(r->status);
    }
    *ret_info = (struct stk_local_info){.state = state_of(j),
                                        .lease = j->lease,
                                        .launch = j->launch,
                                        .shim = j->run.shim,
                                        .tasks = t,
                                        .n_tasks = j->run.n_tasks,
                                        .stdout_path = j->run.out ? j->run.out : "",
                                        .stderr_path = j->run.err ? j->run.err : "",
                                        .attach = j->run.attach ? j->run.attach : "",
                                        .sentence = j->sentence,
                                        .idle_s = idle(j->run.attach)};
    return 0;
}

int stk_local_signal(struct stk_engine *e, stk_job_number number, int sig, bool tasks_only)
{
    struct stk_local_job *j = stk_local_find((struct stk_local *)e, number);

    if (!j || j->where == STK_W_ENDED || !j->conn)
        return -ESRCH;
    if (sig <= 0 || sig >= SIGRTMAX)
        return -EINVAL;
    return stk_local_send(
        j, json_pack("{s:s,s:i,s:b}", "op", "signal", "sig", sig, "tasks", (int)tasks_only));
}

void stk_local_items_ready(struct stk_engine *e, stk_job_number number)
{
    struct stk_local_job *j = stk_local_find((struct stk_local *)e, number);

    if (j && j->conn && j->where != STK_W_ENDED)
        (void)stk_local_send(j, json_pack("{s:s}", "op", "items"));
}

static uid_t owner_of(pid_t pid)
{
    char path[64];
    struct stat st;

    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return stat(path, &st) == 0 ? st.st_uid : (uid_t)-1;
}

int stk_local_adopt_pid(struct stk_engine *e, pid_t pid, uid_t uid, uint64_t *ret_start,
                        struct stk_err *err)
{
    const struct stk_local *m = (const struct stk_local *)e;
    struct stk_proc p;

    if (pid <= 1 || stk_proc_read(pid, &p) < 0 || p.state == 'Z')
        return stk_err_set(err, -ESRCH, "there is no process %d", (int)pid);
    if (pid == getpid() || (uid != 0 && owner_of(pid) != uid))
        return stk_err_set(err, -EPERM, "process %d is not yours", (int)pid);
    for (const struct stk_local_job *j = m->jobs; j; j = j->next) {
        if (j->run.shim == pid)
            return stk_err_set(err, -EPERM, "process %d is the supervisor of job %u", (int)pid,
                               j->number);
        for (uint32_t i = 0; i < j->run.n_tasks; i++)
            if (j->run.tasks[i].pid == pid && !j->run.tasks[i].ended)
                return stk_err_set(err, -EEXIST, "process %d belongs to job %u", (int)pid,
                                   j->number);
    }
    *ret_start = p.start;
    return 0;
}

bool stk_local_is_mps(struct stk_engine *e, uint32_t gpu, const char *folder, uint32_t uid)
{
    const struct stk_local *m = (const struct stk_local *)e;

    return gpu < m->cfg.n_gpus && folder[0] && strcmp(stk_local_mps_dir(m, gpu), folder) == 0 &&
           stk_local_mps_is_of(m, gpu, uid);
}

stk_job_number stk_local_job_of_pid(struct stk_engine *e, pid_t pid)
{
    for (const struct stk_local_job *j = ((struct stk_local *)e)->jobs; j; j = j->next)
        for (uint32_t i = 0; i < j->run.n_tasks && !j->stray; i++)
            if (j->run.tasks[i].pid == pid && !j->run.tasks[i].ended)
                return j->number;
    return 0;
}

void stk_local_each(struct stk_engine *e, void (*fn)(void *ctx, stk_job_number number), void *ctx)
{
    for (const struct stk_local_job *j = ((struct stk_local *)e)->jobs; j; j = j->next)
        if (!j->stray && j->where != STK_W_ENDED)
            fn(ctx, j->number);
}
