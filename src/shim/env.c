/* SPDX-License-Identifier: Apache-2.0 */
/* env.c - the environment of a task: a clean base, then what the description gives, then ours. The
 * daemon's own environment never reaches a job. */
#include "shim/env.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/shim.h"
#include "sys/procs.h"

static size_t find(const struct stk_envs *e, const char *name)
{
    size_t len = strlen(name), i = 0;

    while (i < e->n && (strncmp(e->var[i], name, len) != 0 || e->var[i][len] != '='))
        i++;
    return i;
}

/* Takes the string. */
static void store(struct stk_envs *e, size_t at, char *take_var)
{
    if (!take_var) {
        e->failed = true;
        return;
    }
    if (at < e->n) {
        free(e->var[at]);
        e->var[at] = take_var;
        return;
    }
    if (e->n + 2 > e->cap) {
        size_t cap = e->cap ? e->cap * 2 : 128;
        char **more = realloc(e->var, cap * sizeof(*more));

        if (!more) {
            free(take_var);
            e->failed = true;
            return;
        }
        e->var = more;
        e->cap = cap;
    }
    e->var[e->n++] = take_var;
    e->var[e->n] = NULL;
}

static char *join(const char *name, const char *value)
{
    size_t a = strlen(name), b = strlen(value);
    char *s = malloc(a + b + 2);

    if (!s)
        return NULL;
    (void)snprintf(s, a + b + 2, "%s=%s", name, value);
    return s;
}

void stk_env_put(struct stk_envs *e, const char *name, const char *value)
{
    store(e, find(e, name), join(name, value));
}

void stk_env_set(struct stk_envs *e, const char *name, const char *fmt, ...)
{
    char *value = NULL;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&value, fmt, ap);
    va_end(ap);
    if (n < 0) {
        e->failed = true;
        return;
    }
    stk_env_put(e, name, value);
    free(value);
}

void stk_env_drop(struct stk_envs *e, const char *name)
{
    size_t i = find(e, name);

    if (i == e->n)
        return;
    free(e->var[i]);
    e->var[i] = e->var[--e->n];
    e->var[e->n] = NULL;
}

const char *stk_env_get(const struct stk_envs *e, const char *name)
{
    size_t i = find(e, name);

    return i < e->n ? e->var[i] + strlen(name) + 1 : NULL;
}

static void base(struct stk_envs *e, const struct stk_launch *l)
{
    json_t *envs = json_object_get(l->spec, "envs");
    bool from_a_job =
        json_object_get(envs, "STOKER_LEASE") || json_object_get(envs, "SLURM_JOB_ID");
    const char *name;
    json_t *v;

    if (!json_object_get(envs, "PATH"))
        stk_env_put(e, "PATH", STK_ENV_PATH);
    if (!json_object_get(envs, "HOME"))
        stk_env_put(e, "HOME", l->home);
    if (!json_object_get(envs, "SHELL"))
        stk_env_put(e, "SHELL", l->shell);
    if (!json_object_get(envs, "USER") && *l->user)
        stk_env_put(e, "USER", l->user);
    if (!json_object_get(envs, "LOGNAME") && *l->user)
        stk_env_put(e, "LOGNAME", l->user);
    if (l->interactive && !json_object_get(envs, "TERM"))
        stk_env_put(e, "TERM", stk_str_or(l->spec, "term", "xterm"));
    json_object_foreach(envs, name, v)
    {
        if (json_is_string(v) && *name && !strchr(name, '=') && !stk_env_is_ours(name, from_a_job))
            store(e, e->n, join(name, json_string_value(v)));
    }
}

/* Clients of MPS: as much of the GPU as the job has, and no more memory. */
static void mps(struct stk_envs *e, const struct stk_shim_gpu *g, int64_t milli, int64_t mem_mib)
{
    stk_env_put(e, "CUDA_VISIBLE_DEVICES", g->uuid); /* the server has numbers of its own */
    stk_env_put(e, "CUDA_MPS_PIPE_DIRECTORY", g->mps);
    stk_env_set(e, "CUDA_MPS_LOG_DIRECTORY", "%s/log", g->mps);
    stk_env_set(e, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "%d", (int)((milli + 9) / 10));
    if (mem_mib > 0)
        stk_env_set(e, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=%lldM", (long long)mem_mib);
}

/* Part of a GPU. */
static void part(struct stk_envs *e, const struct stk_launch *l, uint32_t first, uint32_t n)
{
    const json_t *p = json_object_get(l->msg, "part");
    int64_t milli = stk_int(p, "milli", 0), mem_mib = stk_int(p, "mem_mib", 0);
    const struct stk_shim_gpu *g = &l->gpus[first];

    if (!p || n == 0)
        return;
    stk_env_put(e, "STOKER_GPU_SHARE", stk_str_or(p, "share", "none"));
    stk_env_set(e, "STOKER_GPU_MILLI", "%lld", (long long)milli);
    if (mem_mib > 0)
        stk_env_set(e, "STOKER_GPU_MEM_MIB", "%lld", (long long)mem_mib);
    if (n == 1 && g->mig[0])
        stk_env_put(e, "CUDA_VISIBLE_DEVICES", g->mig);
    else if (n == 1 && g->mps[0])
        mps(e, g, milli, mem_mib);
}

/* The number of the job's GPU i as CUDA counts. Inside a device fence CUDA sees only what the job
 * may open, in the order of their numbers outside. */
static uint32_t cuda_number(const struct stk_launch *l, uint32_t i, bool fenced)
{
    uint32_t before = 0;

    for (uint32_t k = 0; k < l->n_gpus; k++)
        before += l->gpus[k].index < l->gpus[i].index;
    return fenced ? before : l->gpus[i].index;
}

/* STOKER_NODES, for srun: the job's GPUs are listed node after node. */
static void put_nodes(struct stk_envs *e, const struct stk_launch *l, bool fenced)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    uint32_t gpu = 0;

    for (uint32_t k = 0; f && k < l->nodes.n; k++) {
        const struct stk_jobnode *n = &l->nodes.node[k];

        (void)fprintf(f, "%s%s:%u:", k ? ";" : "", n->name, n->tasks);
        for (uint32_t i = 0; i < n->n_gpus && gpu < l->n_gpus; i++)
            (void)fprintf(f, "%s%u", i ? "," : "", cuda_number(l, gpu++, fenced));
    }
    if (f && fclose(f) == 0)
        stk_env_put(e, STK_JOBNODES_NAME, text);
    free(text);
}

static void gpus(struct stk_envs *e, const struct stk_launch *l, uint32_t task, bool fenced)
{
    char visible[STK_SHIM_MAX_GPUS * 12] = "", mine[sizeof(visible)] = "", *p = visible, *q = mine;
    char uuids[4096] = "";
    size_t used = 0;
    uint32_t first, n;

    stk_launch_slice(l, task, &first, &n);
    for (uint32_t i = first; i < first + n; i++) {
        const char *comma = i > first ? "," : "";
        int k;

        p += sprintf(p, "%s%u", comma, cuda_number(l, i, fenced));
        q += sprintf(q, "%s%u", comma, l->gpus[i].index);
        k = snprintf(uuids + used, sizeof(uuids) - used, "%s%s", comma,
                     l->gpus[i].mig[0] ? l->gpus[i].mig : l->gpus[i].uuid);
        used += k > 0 && (size_t)k < sizeof(uuids) - used ? (size_t)k : 0;
    }
    stk_env_put(e, "CUDA_VISIBLE_DEVICES", visible);
    stk_env_put(e, "STOKER_GPUS", mine);
    if (!l->virtual_gpus && n > 0) {
        stk_env_put(e, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
        stk_env_put(e, "STOKER_GPU_UUIDS", uuids);
    }
    part(e, l, first, n);
}

static void ours(struct stk_envs *e, const struct stk_launch *l, uint32_t task, bool fenced)
{
    json_t *more = json_object_get(l->msg, "env");
    uint32_t index, local;
    const char *name;
    json_t *v;

    stk_env_put(e, STK_MARK_NAME, l->mark);
    stk_env_set(e, "STOKER_JOB_ID", "%u", l->number);
    stk_env_put(e, "STOKER_JOB_NAME", l->name);
    stk_env_set(e, "STOKER_LEASE", "%u", l->lease);
    stk_env_set(e, "STOKER_RESTARTS", "%u", l->restarts);
    stk_env_put(e, "STOKER_NODE", stk_launch_node(l, task, &index, &local)->name);
    if (l->nodes.n > 1)
        put_nodes(e, l, fenced);
    stk_env_set(e, "STOKER_TASKS", "%u", l->tasks);
    stk_env_set(e, "STOKER_TASK", "%u", task);
    if (l->array) {
        stk_env_set(e, "STOKER_ARRAY_ID", "%u", l->array);
        stk_env_set(e, "STOKER_ARRAY_INDEX", "%u", l->array_index);
    }
    json_object_foreach(more, name, v)
    {
        if (json_is_string(v))
            stk_env_put(e, name, json_string_value(v));
    }
}

static void venv(struct stk_envs *e, const struct stk_launch *l)
{
    const char *dir = stk_str_or(l->spec, "venv", NULL), *path = stk_env_get(e, "PATH");

    if (!dir || !*dir)
        return;
    stk_env_set(e, "PATH", "%s/bin%s%s", dir, path && *path ? ":" : "", path ? path : "");
    stk_env_put(e, "VIRTUAL_ENV", dir);
    stk_env_drop(e, "PYTHONHOME");
}

/* A batch script made for Slurm finds srun and its kin, which lie in a folder beside us. */
static void slurm_commands(struct stk_envs *e, const struct stk_launch *l)
{
    const char *path = stk_env_get(e, "PATH");
    char self[PATH_MAX], dir[PATH_MAX + 16], srun[PATH_MAX + 32], *slash;
    ssize_t n = l->slurm ? readlink("/proc/self/exe", self, sizeof(self) - 1) : 0;

    self[n > 0 ? n : 0] = '\0';
    slash = strrchr(self, '/');
    if (!slash)
        return;
    (void)snprintf(dir, sizeof(dir), "%.*s/slurm", (int)(slash - self), self);
    (void)snprintf(srun, sizeof(srun), "%s/srun", dir);
    if (access(srun, X_OK) == 0 && !(path && strstr(path, dir)))
        stk_env_set(e, "PATH", "%s%s%s", dir, path && *path ? ":" : "", path ? path : "");
}

char **stk_shim_env(const struct stk_launch *l, uint32_t task, bool fenced, struct stk_err *err)
{
    struct stk_envs e = {0};

    base(&e, l);
    slurm_commands(&e, l);
    venv(&e, l);
    gpus(&e, l, task, fenced);
    stk_env_gang(&e, l, task);
    stk_env_slurm(&e, l, task);
    ours(&e, l, task, fenced);
    if (stk_secrets_read(l, &e, err) < 0)
        return NULL;
    if (e.failed)
        (void)stk_err_set(err, -ENOMEM, "out of memory");
    return e.failed ? NULL : e.var;
}
