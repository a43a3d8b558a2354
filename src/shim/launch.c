/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/shim.h"
#include "sys/logcut.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "sys/pattern.h"

#define DEFAULT_GRACE_S 30
#define MAX_SECONDS INT64_C(3155760000) /* a hundred years */

static bool truth(const json_t *o, const char *key, bool other)
{
    const json_t *v = json_object_get(o, key);

    return json_is_boolean(v) ? json_is_true(v) : other;
}

static int64_t seconds(const json_t *o, const char *key, int64_t other)
{
    int64_t v = stk_int(o, key, other);

    return (v < 0 ? 0 : v > MAX_SECONDS ? MAX_SECONDS : v) * 1000;
}

/* "USR1", "SIGUSR1" or a number; 0: no such signal. */
static int signal_number(const json_t *v)
{
    const char *s = json_string_value(v);

    if (json_is_integer(v))
        return json_integer_value(v) > 0 && json_integer_value(v) < SIGRTMAX
                   ? (int)json_integer_value(v)
                   : 0;
    if (!s)
        return 0;
    if (strncmp(s, "SIG", 3) == 0)
        s += 3;
    for (int i = 1; i < SIGRTMIN; i++) {
        const char *name = sigabbrev_np(i);

        if (name && strcmp(name, s) == 0)
            return i;
    }
    return 0;
}

static int read_signal(struct stk_launch *l, struct stk_err *err)
{
    const json_t *o = json_object_get(l->spec, "signal");

    if (!json_is_object(o))
        return 0;
    l->signal = signal_number(json_object_get(o, "signal"));
    if (l->signal == 0)
        return stk_err_set(err, -EINVAL, "its checkpoint signal is not a signal");
    l->signal_ms = seconds(o, "seconds", 60);
    l->signal_tasks = strcmp(stk_str_or(o, "who", "all"), "batch") == 0;
    return 0;
}

int stk_launch_gpus(struct stk_launch *l, const json_t *list, struct stk_err *err)
{
    const json_t *g;
    size_t i;

    if (json_array_size(list) > STK_SHIM_MAX_GPUS)
        return stk_err_set(err, -EINVAL, "more than %d GPUs", STK_SHIM_MAX_GPUS);
    l->n_gpus = 0;
    json_array_foreach(list, i, g)
    {
        l->gpus[l->n_gpus++] = (struct stk_shim_gpu){.index = (uint32_t)stk_int(g, "index", 0),
                                                     .minor = (uint32_t)stk_int(g, "minor", 0),
                                                     .uuid = stk_str(g, "uuid"),
                                                     .cpus = stk_str(g, "cpus"),
                                                     .numa = (int32_t)stk_int(g, "numa", -1),
                                                     .mig = stk_str(g, "mig"),
                                                     .mps = stk_str(g, "mps")};
    }
    return 0;
}

bool stk_launch_has_minor(const struct stk_launch *l, uint32_t minor)
{
    for (uint32_t i = 0; i < l->n_gpus; i++)
        if (l->gpus[i].minor == minor)
            return true;
    return false;
}

void stk_launch_slice(const struct stk_launch *l, uint32_t task, uint32_t *first, uint32_t *n)
{
    uint32_t each = l->procs > 0 ? l->n_gpus / l->procs : 0;

    *first = 0;
    *n = l->n_gpus;
    if (l->procs > 1 && each > 0 && each * l->procs == l->n_gpus) {
        *first = task * each;
        *n = each;
    } else if (l->nodes.n > 1 && l->procs == 1) {
        *n = l->nodes.node[0].n_gpus;
    }
}

const struct stk_jobnode *stk_launch_node(const struct stk_launch *l, uint32_t task,
                                          uint32_t *ret_index, uint32_t *ret_local)
{
    *ret_index = stk_jobnodes_find(&l->nodes, l->procs > 1 ? task : 0, ret_local);
    return &l->nodes.node[*ret_index];
}

/* Where there is one node it has all. */
static int read_nodes(struct stk_launch *l, struct stk_err *err)
{
    const char *text = stk_str_or(l->msg, "nodes", NULL);
    char one[512];
    int rc;

    (void)snprintf(one, sizeof(one), "%.250s:%u:", l->node, l->tasks);
    rc = stk_jobnodes_read(text ? text : one, &l->nodes);
    if (rc == 0 && !text)
        l->nodes.node[0].n_gpus = l->n_gpus;
    return rc < 0 ? stk_err_set(err, rc, "what was said of its nodes cannot be read") : 0;
}

/* How many processes there are, and whether they are told about each other. */
static int read_shape(struct stk_launch *l, struct stk_err *err)
{
    int64_t tasks = stk_int(l->spec, "tasks", 1);
    const char *launch = stk_str_or(l->spec, "launch", tasks > 1 ? "tasks" : "once");

    l->items = json_object_get(l->spec, "items");
    if (!json_is_array(l->items))
        l->items = NULL;
    if (tasks < 1 || tasks > STK_SHIM_MAX_TASKS)
        return stk_err_set(err, -EINVAL, "it has %lld tasks; from 1 to %d can be started",
                           (long long)tasks, STK_SHIM_MAX_TASKS);
    l->tasks = (uint32_t)tasks;
    l->one_each = tasks > 1 && strcmp(launch, "tasks") == 0 && !l->items;
    l->procs = l->one_each ? l->tasks : 1;
    if (l->items)
        l->procs = l->tasks;
    if (l->interactive || l->adopt_pid)
        l->procs = 1;
    l->one_each = l->one_each && l->procs > 1;
    l->gpus_per_task = l->n_gpus / l->tasks;
    return 0;
}

static int read_credentials(struct stk_launch *l, struct stk_err *err)
{
    int64_t uid = stk_int(l->spec, "uid", -1), gid = stk_int(l->spec, "gid", -1);

    if (uid < 0 || uid >= UINT32_MAX || gid < 0 || gid >= UINT32_MAX)
        return stk_err_set(err, -EINVAL, "its description does not say whose job it is");
    l->uid = (uid_t)uid;
    l->gid = (gid_t)gid;
    if (geteuid() != 0 && l->uid != geteuid())
        return stk_err_set(err, -EPERM,
                           "it belongs to user %u, but stoker runs as user %u and is not root",
                           (unsigned)l->uid, (unsigned)geteuid());
    return 0;
}

static void read_message(struct stk_launch *l)
{
    const json_t *m = l->msg;

    l->number = (uint32_t)stk_int(m, "job", 0);
    l->launch = (uint32_t)stk_int(m, "launch", 0);
    l->lease = l->launch;
    l->restarts = (uint32_t)stk_int(m, "restarts", 0);
    l->mark = stk_str(m, "mark");
    l->label = stk_str(m, "label");
    l->node = stk_str_or(m, "node", "localhost");
    l->boot = stk_str(m, "boot");
    l->state_dir = stk_str(m, "state");
    l->cgroup = stk_str_or(m, "cgroup", "stoker");
    l->cgroup_mode = stk_str_or(m, "cgroup_mode", "auto");
    l->virtual_gpus = truth(m, "virtual", false);
    l->port = (uint32_t)stk_int(m, "port", 0);
    l->array = (uint32_t)stk_int(m, "array", 0);
    l->array_index = (uint32_t)stk_int(m, "array_index", 0);
}

static void read_spec(struct stk_launch *l)
{
    const json_t *d = l->spec, *adopt = json_object_get(d, "adopt");

    l->name = stk_str(d, "name");
    l->user = stk_str(d, "user");
    l->home = stk_str_or(d, "home", "/");
    l->shell = stk_str_or(d, "shell", "/bin/sh");
    l->workdir = stk_str_or(d, "workdir", "/");
    l->slurm = truth(d, "slurm", false);
    l->interactive = truth(d, "interactive", false);
    l->may_suspend = strcmp(stk_str_or(d, "suspend", "auto"), "never") != 0;
    l->limit_ms = seconds(d, "time_limit_s", 0);
    l->grace_ms = seconds(d, "grace_s", DEFAULT_GRACE_S);
    l->log_max = (uint64_t)stk_int(d, "log_max_mib", STK_LOGCUT_DEFAULT_MIB) << 20;
    l->adopt_pid = (pid_t)stk_int(adopt, "pid", 0);
    l->adopt_start = (uint64_t)stk_int(adopt, "start", 0);
}

int stk_launch_read(struct stk_launch *l, json_t *msg, struct stk_err *err)
{
    int rc;

    *l = (struct stk_launch){.msg = msg, .spec = json_object_get(msg, "spec")};
    read_message(l);
    read_spec(l);
    if (!json_is_object(l->spec))
        return stk_err_set(err, -EINVAL, "it has no description");
    rc = stk_launch_gpus(l, json_object_get(msg, "gpus"), err);
    rc = rc < 0 ? rc : read_shape(l, err);
    rc = rc < 0 ? rc : read_nodes(l, err);
    rc = rc < 0 ? rc : read_signal(l, err);
    return rc < 0 ? rc : read_credentials(l, err);
}

void stk_launch_log_path(const struct stk_launch *l, uint32_t task, bool is_stderr, char *buf,
                         size_t size)
{
    const struct stk_pattern p = {.number = l->number,
                                  .array = l->array,
                                  .index = l->array_index,
                                  .task = task,
                                  .name = l->name,
                                  .node = l->node,
                                  .user = l->user};
    const char *pattern = is_stderr ? stk_str_or(l->spec, "stderr", NULL) : NULL;

    if (!pattern)
        pattern = stk_str_or(l->spec, "stdout", NULL);
    if (!pattern || !*pattern)
        pattern = stk_pattern_default(&p);
    if (stk_pattern_path(pattern, &p, l->workdir, buf, size) < 0)
        buf[0] = 0;
}
