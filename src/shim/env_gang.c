/* SPDX-License-Identifier: Apache-2.0 */
/* env_gang.c - what tells the processes of a gang about each other, in the words of torch, JAX,
 * TensorFlow and Slurm.
 *
 * Ranks are given only where one process per task is started here. A job that starts its own (one
 * process, torchrun in it) sees where its node stands and no rank: a launcher that finds RANK or
 * SLURM_NTASKS believes that somebody else started its processes. For the same reason variables
 * that came along from a job that submitted this one are dropped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/env.h"
#include "shim/shim.h"
#include "spec/array.h"

#define LOCAL "127.0.0.1" /* all tasks of a local job are on this machine */

static const char *const gang_names[] = {"RANK",
                                         "WORLD_SIZE",
                                         "LOCAL_RANK",
                                         "LOCAL_WORLD_SIZE",
                                         "GROUP_RANK",
                                         "NODE_RANK",
                                         "NUM_NODES",
                                         "NODE_IPS",
                                         "GPUS_PER_NODE",
                                         "MASTER_ADDR",
                                         "MASTER_PORT",
                                         "TF_CONFIG",
                                         "ROLE_RANK",
                                         "ROLE_WORLD_SIZE",
                                         "JAX_COORDINATOR_ADDRESS",
                                         "JAX_PROCESS_ID",
                                         "JAX_NUM_PROCESSES",
                                         "JAX_LOCAL_DEVICE_IDS",
                                         "PET_MASTER_PORT",
                                         "PET_MASTER_ADDR"};

bool stk_env_is_ours(const char *name, bool from_a_job)
{
    if (strncmp(name, "STOKER_", 7) == 0)
        return strcmp(name, "STOKER_SOCKET") != 0;
    if (strcmp(name, "CUDA_VISIBLE_DEVICES") == 0)
        return true;
    if (!from_a_job)
        return false;
    if (strncmp(name, "SLURM_", 6) == 0 || strncmp(name, "CUDA_MPS_", 9) == 0)
        return true;
    for (size_t i = 0; i < sizeof(gang_names) / sizeof(gang_names[0]); i++)
        if (strcmp(name, gang_names[i]) == 0)
            return true;
    return false;
}

/* A task sees its own GPUs alone, counted from 0; JAX would take the one of its rank. */
static void jax_devices(struct stk_envs *e, const struct stk_launch *l)
{
    char list[STK_SHIM_MAX_GPUS * 4] = "", *p = list;

    for (uint32_t i = 0; i < l->gpus_per_task; i++)
        p += sprintf(p, "%s%u", i ? "," : "", i);
    if (*list)
        stk_env_put(e, "JAX_LOCAL_DEVICE_IDS", list);
}

/* TensorFlow names every worker by address; each needs a port of its own. */
static void tf_config(struct stk_envs *e, const struct stk_launch *l, uint32_t task)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (!f) {
        e->failed = true;
        return;
    }
    (void)fputs("{\"cluster\":{\"worker\":[", f);
    for (uint32_t i = 0; i < l->tasks; i++)
        (void)fprintf(f, "%s\"" LOCAL ":%u\"", i ? "," : "", l->port + i);
    (void)fprintf(f, "]},\"task\":{\"type\":\"worker\",\"index\":%u}}", task);
    if (fclose(f) == 0 && text)
        stk_env_put(e, "TF_CONFIG", text);
    else
        e->failed = true;
    free(text);
}

/* One address for each node, a line each; all are this machine. */
static void node_ips(struct stk_envs *e, uint32_t n)
{
    char *text = malloc((size_t)n * sizeof(LOCAL)), *p = text;

    if (!text) {
        e->failed = true;
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        p += sprintf(p, "%s" LOCAL, i ? "\n" : "");
    stk_env_put(e, "NODE_IPS", text);
    free(text);
}

void stk_env_gang(struct stk_envs *e, const struct stk_launch *l, uint32_t task)
{
    const struct stk_jobnode *node;
    uint32_t index, local;

    if (l->port == 0)
        return; /* neither a gang nor several GPUs: nothing to meet about */
    stk_env_put(e, "MASTER_ADDR", LOCAL);
    stk_env_set(e, "MASTER_PORT", "%u", l->port);
    node = stk_launch_node(l, task, &index, &local);
    node_ips(e, l->nodes.n);
    stk_env_set(e, "NODE_RANK", "%u", index);
    stk_env_set(e, "NUM_NODES", "%u", l->nodes.n);
    stk_env_set(e, "GPUS_PER_NODE", "%u", node->n_gpus);
    if (!l->one_each) {
        stk_env_set(e, "PET_MASTER_PORT", "%u", l->port); /* what torchrun itself reads */
        return;
    }
    stk_env_set(e, "RANK", "%u", task);
    stk_env_set(e, "WORLD_SIZE", "%u", l->tasks);
    stk_env_set(e, "LOCAL_RANK", "%u", local);
    stk_env_set(e, "LOCAL_WORLD_SIZE", "%u", node->tasks);
    stk_env_set(e, "GROUP_RANK", "%u", index);
    stk_env_set(e, "JAX_COORDINATOR_ADDRESS", LOCAL ":%u", l->port);
    stk_env_set(e, "JAX_NUM_PROCESSES", "%u", l->tasks);
    stk_env_set(e, "JAX_PROCESS_ID", "%u", task);
    jax_devices(e, l);
    tf_config(e, l, task);
}

static void slurm_array(struct stk_envs *e, const struct stk_launch *l)
{
    struct stk_array_bounds b = stk_array_bounds(json_object_get(l->spec, "array"));

    stk_env_set(e, "SLURM_ARRAY_JOB_ID", "%u", l->array);
    stk_env_set(e, "SLURM_ARRAY_TASK_ID", "%u", l->array_index);
    stk_env_set(e, "SLURM_ARRAY_TASK_COUNT", "%lld", (long long)b.count);
    stk_env_set(e, "SLURM_ARRAY_TASK_MIN", "%lld", (long long)b.first);
    stk_env_set(e, "SLURM_ARRAY_TASK_MAX", "%lld", (long long)b.last);
    stk_env_set(e, "SLURM_ARRAY_TASK_STEP", "%lld", (long long)b.step);
}

/* A text that was made for it; NULL: out of memory. */
static void put_taken(struct stk_envs *e, const char *name, char *take)
{
    if (take)
        stk_env_put(e, name, take);
    else
        e->failed = true;
    free(take);
}

static void slurm_tasks(struct stk_envs *e, const struct stk_launch *l, uint32_t task)
{
    uint32_t index, local;

    (void)stk_launch_node(l, task, &index, &local);
    stk_env_set(e, "SLURM_NTASKS", "%u", l->tasks);
    stk_env_set(e, "SLURM_NPROCS", "%u", l->tasks);
    if (l->tasks % l->nodes.n == 0)
        stk_env_set(e, "SLURM_NTASKS_PER_NODE", "%u", l->tasks / l->nodes.n);
    put_taken(e, "SLURM_TASKS_PER_NODE", stk_jobnodes_tasks(&l->nodes));
    stk_env_set(e, "SLURM_PROCID", "%u", task);
    stk_env_set(e, "SLURM_LOCALID", "%u", local);
    stk_env_set(e, "SLURM_NODEID", "%u", index);
    stk_env_put(e, "SLURM_STEP_ID", "0");
    stk_env_put(e, "SLURM_STEPID", "0");
    put_taken(e, "SLURM_STEP_NODELIST", /* without it JAX finds no Slurm */
              stk_jobnodes_names(&l->nodes));
    stk_env_set(e, "SLURM_STEP_NUM_NODES", "%u", l->nodes.n);
}

/* The GPUs that it has on the node of this task. */
static void slurm_gpus(struct stk_envs *e, const struct stk_launch *l, uint32_t task)
{
    char list[STK_SHIM_MAX_GPUS * 12] = "", *p = list;
    uint32_t index, local, first = 0;
    const struct stk_jobnode *node = stk_launch_node(l, task, &index, &local);

    for (uint32_t i = 0; i < index; i++)
        first += l->nodes.node[i].n_gpus;
    for (uint32_t i = first; i < first + node->n_gpus && i < l->n_gpus; i++)
        p += sprintf(p, "%s%u", i > first ? "," : "", l->gpus[i].index);
    if (node->n_gpus > 0) {
        stk_env_put(e, "SLURM_JOB_GPUS", list);
        stk_env_set(e, "SLURM_GPUS_ON_NODE", "%u", node->n_gpus);
    }
}

static void slurm_job(struct stk_envs *e, const struct stk_launch *l, uint32_t task)
{
    uint32_t index, local;
    const struct stk_jobnode *node = stk_launch_node(l, task, &index, &local);
    int64_t cpus = stk_int(l->spec, "cpus", 0);
    int64_t end_s = stk_shim_unix_us() / 1000000 + l->limit_ms / 1000;

    stk_env_set(e, "SLURM_JOB_ID", "%u", l->number);
    stk_env_set(e, "SLURM_JOBID", "%u", l->number);
    stk_env_put(e, "SLURM_JOB_NAME", l->name);
    put_taken(e, "SLURM_JOB_NODELIST", stk_jobnodes_names(&l->nodes));
    put_taken(e, "SLURM_NODELIST", stk_jobnodes_names(&l->nodes));
    stk_env_put(e, "SLURMD_NODENAME", node->name);
    stk_env_put(e, "SLURM_CLUSTER_NAME", "stoker");
    stk_env_set(e, "SLURM_JOB_NUM_NODES", "%u", l->nodes.n);
    stk_env_set(e, "SLURM_NNODES", "%u", l->nodes.n);
    stk_env_put(e, "SLURM_SUBMIT_DIR", l->workdir);
    stk_env_put(e, "SLURM_SUBMIT_HOST", stk_str_or(l->spec, "host", l->node));
    stk_env_put(e, "SLURM_JOB_USER", l->user);
    stk_env_set(e, "SLURM_JOB_UID", "%u", (unsigned)l->uid);
    stk_env_set(e, "SLURM_RESTART_COUNT", "%u", l->restarts);
    slurm_gpus(e, l, task);
    if (cpus > 0) {
        stk_env_set(e, "SLURM_CPUS_PER_TASK", "%lld", (long long)cpus);
        stk_env_set(e, "SLURM_CPUS_ON_NODE", "%lld", (long long)cpus * node->tasks);
    }
    if (l->limit_ms > 0)
        stk_env_set(e, "SLURM_JOB_END_TIME", "%lld", (long long)end_s);
    if (l->array)
        slurm_array(e, l);
}

void stk_env_slurm(struct stk_envs *e, const struct stk_launch *l, uint32_t task)
{
    if (l->slurm || l->one_each)
        slurm_job(e, l, task);
    if (l->one_each)
        slurm_tasks(e, l, task);
    if (l->interactive)
        stk_env_put(e, "SLURM_JOB_NAME", "interactive");
}
