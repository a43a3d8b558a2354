/* SPDX-License-Identifier: Apache-2.0 */
/* adopt.c - a process that was started by hand becomes a job. What it is, whose, and which GPUs it
 * uses is looked up here; the scheduler does the rest. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/state.h"
#include "daemon/daemon.h"
#include "sys/procs.h"
#include "sys/user.h"

#define MAX_WORDS 256
#define MAX_CMDLINE 65536
#define NEVER_S 315360000 /* ten years */

struct wish { /* what was asked for */
    pid_t pid;
    const char *name; /* NULL: as the process is called */
    uint64_t mask;    /* of the machine's GPUs; virtual ones: of the first node's */
    bool stays;       /* the policy heeds minimum run times: it gives way to guarantees only */
};

static int read_gpus(const struct stk_daemon *d, const json_t *list, uint64_t *ret,
                     struct stk_err *err)
{
    *ret = 0;
    if (list && !json_is_array(list))
        return stk_err_set(err, -EBADMSG, "\"gpus\" must be a list of GPU indices");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);

        if (!json_is_integer(v) || json_integer_value(v) < 0 ||
            json_integer_value(v) >= (json_int_t)d->machine.n_table)
            return stk_err_set(err, json_is_integer(v) ? -EINVAL : -EBADMSG,
                               "\"gpus\" must name GPUs by index; there are %u, counted from 0",
                               d->machine.n_table);
        *ret |= UINT64_C(1) << json_integer_value(v);
    }
    return 0;
}

static int read_wish(const struct stk_daemon *d, json_t *body, struct wish *w, struct stk_err *err)
{
    const json_t *pid = json_object_get(body, "pid"), *name = json_object_get(body, "name");
    json_t *v;
    const char *key;

    json_object_foreach(body, key, v)
    {
        if (strcmp(key, "pid") != 0 && strcmp(key, "name") != 0 && strcmp(key, "gpus") != 0)
            return stk_err_set(err, -EBADMSG,
                               "\"%.40s\" is not known; there are pid, name and gpus", key);
    }
    if (!json_is_integer(pid) || json_integer_value(pid) < 1 || json_integer_value(pid) > INT32_MAX)
        return stk_err_set(err, -EBADMSG, "\"pid\" must be the number of a process");
    if (name && !json_is_string(name))
        return stk_err_set(err, -EBADMSG, "\"name\" must be a string");
    w->pid = (pid_t)json_integer_value(pid);
    w->name = json_string_value(name);
    return read_gpus(d, json_object_get(body, "gpus"), &w->mask, err);
}

/* A small file of /proc; the length, or -1. */
static ssize_t slurp(pid_t pid, const char *name, char *buf, size_t size)
{
    char path[64];
    ssize_t n = -1;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, buf, size - 1);
        (void)close(fd);
    }
    buf[n > 0 ? n : 0] = '\0';
    return n;
}

static json_t *command_of(pid_t pid, const char *other)
{
    char *line = malloc(MAX_CMDLINE);
    ssize_t n = line ? slurp(pid, "cmdline", line, MAX_CMDLINE) : -1;
    json_t *words = json_array();

    for (ssize_t at = 0; at < n && json_array_size(words) < MAX_WORDS;) {
        json_t *word = json_string(line + at); /* NULL: not UTF-8 */

        (void)json_array_append_new(words, word ? word : json_string("?"));
        at += (ssize_t)strlen(line + at) + 1;
    }
    if (json_array_size(words) == 0 || !*json_string_value(json_array_get(words, 0))) {
        (void)json_array_clear(words);
        (void)json_array_append_new(words, json_string(other));
    }
    free(line);
    return words;
}

/* The target of a link in /proc/PID, with every % doubled for patterns; false: none to be used. */
static bool link_of(pid_t pid, const char *name, bool pattern, char *buf, size_t size)
{
    char path[64], target[2048];
    ssize_t n;
    size_t at = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    n = readlink(path, target, sizeof(target) - 1);
    if (n <= 0 || target[0] != '/')
        return false;
    target[n] = '\0';
    for (ssize_t i = 0; i < n && at + 3 < size; i++) {
        if (target[i] == '%' && pattern)
            buf[at++] = '%';
        buf[at++] = target[i];
    }
    buf[at] = '\0';
    return true;
}

/* Where its output goes, when that is a file of its owner's. */
static void add_output(pid_t pid, uid_t uid, json_t *job)
{
    static const struct {
        const char *fd, *key;
    } streams[] = {{"fd/1", "stdout"}, {"fd/2", "stderr"}};
    char path[64], text[4200];
    struct stat st;

    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, streams[i].fd);
        if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != uid ||
            !link_of(pid, streams[i].fd, true, text, sizeof(text)))
            (void)snprintf(text, sizeof(text), "/dev/null");
        (void)json_object_set_new(job, streams[i].key, json_string(text));
    }
}

/* A name as descriptions have it. */
static void clean_name(char *name, size_t size)
{
    for (char *p = name; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f || *p == '/')
            *p = '_';
    if (!*name)
        (void)snprintf(name, size, "adopted");
}

static json_t *describe(const struct wish *w, uid_t uid)
{
    char comm[64] = "", cwd[4200];
    json_t *job;
    size_t n;

    (void)slurp(w->pid, "comm", comm, sizeof(comm) - 16);
    n = strcspn(comm, "\n");
    comm[n] = '\0';
    clean_name(comm, sizeof(comm));
    if (!link_of(w->pid, "cwd", false, cwd, sizeof(cwd)))
        (void)snprintf(cwd, sizeof(cwd), "/");
    job = json_pack("{s:s,s:o,s:s,s:i,s:b}", "name", w->name ? w->name : comm, "command",
                    command_of(w->pid, comm), "workdir", cwd, "gpus", __builtin_popcountll(w->mask),
                    "requeue", 0);
    if (job)
        add_output(w->pid, uid, job);
    if (job && w->stays)
        (void)json_object_set_new(job, "min_run_s", json_integer(NEVER_S));
    return job;
}

/* The node that all these GPUs are of. */
static int find_node(const struct stk_machine *m, uint64_t mask, struct stk_live_adoption *ret,
                     struct stk_err *err)
{
    uint32_t gpu;

    ret->node = 0;
    ret->mask = mask;
    if (m->is_virtual || mask == 0)
        return 0;
    ret->node = stk_machine_node_of(m, (uint32_t)__builtin_ctzll(mask), &gpu);
    ret->mask = mask >> (ret->node * m->n_gpus);
    if (m->n_nodes > 1 && ret->mask >> m->n_gpus)
        return stk_err_set(err, -EINVAL, "the process uses GPUs of several nodes");
    return 0;
}

/* The GPUs that the process, or one that it has started, is seen on. */
static uint64_t gpus_in_use(const struct stk_daemon *d, pid_t pid)
{
    const struct stk_gpus *t = &d->machine.gpus;
    uint64_t mask = 0;

    for (uint32_t g = 0; !d->machine.is_virtual && g < d->machine.n_table; g++)
        for (uint32_t i = 0; i < t->gpu[g].now.n_procs; i++) {
            struct stk_proc p = {.ppid = t->gpu[g].now.proc[i].pid};

            for (int depth = 0; depth < 64 && p.ppid > 1; depth++) {
                if (p.ppid == pid)
                    mask |= UINT64_C(1) << g;
                if (p.ppid == pid || stk_proc_read(p.ppid, &p) < 0)
                    break;
            }
        }
    return mask;
}

static int check(struct stk_daemon *d, const struct stk_who *who, pid_t pid, struct stat *st,
                 uint64_t *ret_start, struct stk_err *err)
{
    char path[64], comm[64] = "";
    stk_job_number job;
    int rc = stk_local_adopt_pid(d->engine, pid, who->role >= STK_ROLE_OPERATOR ? 0 : who->uid,
                                 ret_start, err);

    if (rc < 0)
        return rc == -ESRCH ? -ENOENT : rc;
    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    if (stat(path, st) < 0)
        return stk_err_set(err, -ENOENT, "there is no process %d", (int)pid);
    if (geteuid() != 0 && st->st_uid != geteuid())
        return stk_err_set(
            err, -EPERM, "process %d is another user's, and stoker does not run as root", (int)pid);
    job = stk_daemon_job_of(d, pid, st->st_uid);
    if (job != 0)
        return stk_err_set(err, -EEXIST, "process %d belongs to job %u", (int)pid, job);
    (void)slurp(pid, "comm", comm, sizeof(comm));
    comm[strcspn(comm, "\n")] = '\0';
    if (strcmp(comm, "stokerd") == 0 || strcmp(comm, "stoker-shim") == 0 ||
        strcmp(comm, "stoker-gpu") == 0)
        return stk_err_set(err, -EPERM, "process %d is a part of stoker", (int)pid);
    return 0;
}

int stk_daemon_adopt(void *ctx, const struct stk_who *who, json_t *body, stk_reply_fn reply,
                     void *reply_ctx, struct stk_err *err)
{
    struct stk_daemon *d = ctx;
    struct stk_live_adoption a = {0};
    struct wish w = {0};
    struct stk_user user;
    uint64_t in_use;
    struct stat st;
    int rc = d->slurm ? stk_err_set(err, -EOPNOTSUPP,
                                    "Slurm runs the jobs here: processes cannot be adopted")
                      : read_wish(d, body, &w, err);

    if (rc == 0 && !d->machine.is_virtual && d->machine.gpus.at_us == 0)
        rc = stk_err_set(err, -EBUSY, "the GPUs have not been read yet; try again in a moment");
    rc = rc < 0 ? rc : check(d, who, w.pid, &st, &a.start, err);
    if (rc < 0)
        return rc;
    (void)stk_user_by_id(st.st_uid, &user);
    a.owner = (struct stk_who){.uid = user.uid, .gid = user.gid, .role = STK_ROLE_USER};
    (void)snprintf(a.owner.user, sizeof(a.owner.user), "%s", user.name);
    in_use = gpus_in_use(d, w.pid);
    if (!d->machine.is_virtual && who->role < STK_ROLE_OPERATOR && (w.mask & ~in_use))
        return stk_err_set(
            err, -EPERM,
            "process %d does not use GPU %d; a process is adopted with the GPUs that "
            "it uses, others are for an operator to add",
            (int)w.pid, __builtin_ctzll(w.mask & ~in_use));
    w.mask |= in_use;
    w.stays = !stk_core_state(stk_live_core(d->live))->preempt->pass;
    a.pid = w.pid;
    rc = find_node(&d->machine, w.mask, &a, err);
    if (rc < 0)
        return rc;
    a.job = describe(&w, st.st_uid);
    if (!a.job)
        return stk_err_set(err, -EINVAL,
                           "process %d cannot be described: its name or folder is "
                           "not text",
                           (int)w.pid);
    rc = stk_live_adopt(d->live, &(struct stk_asker){*who, reply, reply_ctx}, &a);
    return rc < 0 ? stk_err_set(err, rc, "out of memory") : 0;
}
