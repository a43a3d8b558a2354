/* SPDX-License-Identifier: Apache-2.0 */
/* sbatch.c - see sbatch.h. sbatch counts by node, by task and in all; a description counts by task.
 * Turning one into the other is done once, at the end, when all sources have spoken. */
#include "spec/sbatch.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spec/sbatch_flags.h"
#include "spec/spec.h"
#include "spec/words.h"

#define MAX_FLAGS 160

void stk_sbatch_init(struct stk_sbatch *s, enum stk_sbatch_tool tool, int64_t now_s)
{
    *s = (struct stk_sbatch){.tool = tool,
                             .now_s = now_s,
                             .nodes = -1,
                             .ntasks = -1,
                             .per_node = -1,
                             .cpus = -1,
                             .cpus_per_gpu = -1,
                             .gpus = -1,
                             .gpus_per_node = -1,
                             .gpus_per_task = -1,
                             .mem_mib = -1,
                             .mem_per_cpu_mib = -1,
                             .mem_per_gpu_mib = -1};
    s->job = json_object();
    s->notes = json_array();
}

void stk_sbatch_done(struct stk_sbatch *s)
{
    json_decref(s->job);
    json_decref(s->notes);
    free(s->export);
    free(s->wrap);
    free(s->jobid);
    free(s->script);
    *s = (struct stk_sbatch){0};
}

/* "job.sh:4: --gpus: must be ..."; origin may be "". */
static int set_flag(struct stk_sbatch *s, const struct stk_flag *f, const char *value,
                    const char *origin, const char *shown, struct stk_err *err)
{
    struct stk_err why = {""};
    int rc;

    if (value && !stk_words_is_text(value, strlen(value), true))
        rc = stk_err_set(&why, -EINVAL, "must be text in UTF-8");
    else
        rc = f->set(s, f, value, &why);
    if (rc < 0)
        (void)stk_err_set(err, rc, "%s%s: %.160s", origin, shown, why.text);
    return rc;
}

/* The flags of this tool as a table of options. */
static void make_table(const struct stk_sbatch *s, struct stk_opt *table)
{
    int n = 0;

    for (int i = 0; stk_flags[i].name && n < MAX_FLAGS - 1; i++)
        if (stk_flags[i].tools & (unsigned)s->tool)
            table[n++] =
                (struct stk_opt){stk_flags[i].name, stk_flags[i].letter, stk_flags[i].arg, i};
    table[n] = (struct stk_opt){0};
}

int stk_sbatch_words(struct stk_sbatch *s, int argc, char **argv, const char *origin, int *ret_rest,
                     struct stk_err *err)
{
    struct stk_opt table[MAX_FLAGS];
    struct stk_opts o = {.table = table, .argc = argc, .argv = argv, .at = 1};
    struct stk_err why = {""};
    int rc;

    make_table(s, table);
    while ((rc = stk_opts_next(&o, &why)) > 0) {
        rc = set_flag(s, &stk_flags[o.opt->id], o.value, origin, o.shown, err);
        if (rc < 0)
            return rc;
    }
    if (rc < 0)
        return stk_err_set(err, rc, "%s%.160s", origin, why.text);
    *ret_rest = o.at;
    return 0;
}

int stk_sbatch_args(struct stk_sbatch *s, int argc, char **argv, int *ret_rest, struct stk_err *err)
{
    return stk_sbatch_words(s, argc, argv, "", ret_rest, err);
}

int stk_sbatch_env(struct stk_sbatch *s, char *const *environment, struct stk_err *err)
{
    if (s->tool != STK_TOOL_SBATCH)
        return 0;
    for (; *environment; environment++) {
        size_t n = strcspn(*environment, "=");

        if (strncmp(*environment, "SBATCH_", 7) != 0 || (*environment)[n] != '=')
            continue;
        for (const struct stk_flag *f = stk_flags; f->name; f++) {
            int rc;

            if (!f->env || strlen(f->env) != n || strncmp(f->env, *environment, n) != 0)
                continue;
            rc = set_flag(s, f, f->arg == STK_OPT_NONE ? NULL : *environment + n + 1, "", f->env,
                          err);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

int64_t stk_sbatch_tasks(const struct stk_sbatch *s)
{
    int64_t nodes = s->nodes > 0 ? s->nodes : 1;

    return s->ntasks > 0 ? s->ntasks : nodes * (s->per_node > 0 ? s->per_node : 1);
}

/* All GPUs of the job. */
static int64_t all_gpus(const struct stk_sbatch *s)
{
    int64_t nodes = s->nodes > 0 ? s->nodes : 1;

    return s->gpus >= 0            ? s->gpus
           : s->gpus_per_node >= 0 ? s->gpus_per_node * nodes
           : s->gpus_per_task >= 0 ? s->gpus_per_task * stk_sbatch_tasks(s)
                                   : 0;
}

/* Memory of one task that has so many GPUs and CPUs. */
static int64_t memory(const struct stk_sbatch *s, int64_t tasks, int64_t gpus, int64_t cpus)
{
    int64_t nodes = s->nodes > 0 ? s->nodes : 1;

    if (s->mem_mib > 0)
        return (s->mem_mib * nodes + tasks - 1) / tasks;
    if (s->mem_per_cpu_mib > 0)
        return s->mem_per_cpu_mib * (cpus > 0 ? cpus : 1);
    return s->mem_per_gpu_mib > 0 ? s->mem_per_gpu_mib * gpus : 0;
}

/* Licences are said for the whole job, and counted per task. */
static int share_licenses(json_t *job, int64_t tasks, struct stk_err *err)
{
    json_t *all = json_object_get(job, "resources");

    for (void *it = json_object_iter(all); tasks > 1 && it; it = json_object_iter_next(all, it)) {
        json_int_t n = json_integer_value(json_object_iter_value(it));

        if (n % tasks != 0)
            return stk_err_set(err, -EINVAL,
                               "--licenses: %" JSON_INTEGER_FORMAT
                               " of %s cannot be shared evenly by %" PRId64 " tasks",
                               n, json_object_iter_key(it), tasks);
        (void)json_object_iter_set_new(all, it, json_integer(n / tasks));
    }
    return 0;
}

/* GPUs, CPUs and memory of one task. Tasks that share GPUs are to us one task with all of them,
 * whose script starts the others. */
static int per_task(struct stk_sbatch *s, json_t *job, struct stk_err *err)
{
    int64_t nodes = s->nodes > 0 ? s->nodes : 1, tasks = stk_sbatch_tasks(s), gpus = all_gpus(s);
    int64_t cpus = s->cpus, mem, shared = 1;

    if (gpus % tasks != 0 && nodes == 1 && s->tool == STK_TOOL_SBATCH) {
        shared = tasks;
        tasks = 1;
    }
    if (gpus % tasks != 0)
        return stk_err_set(err, -EINVAL,
                           "%" PRId64 " GPUs cannot be shared evenly by %" PRId64 " tasks", gpus,
                           tasks);
    gpus /= tasks;
    if (gpus > 1 && (s->gpu_milli || json_object_get(job, "mig")))
        return stk_err_set(err, -EINVAL,
                           "a task can have part of one GPU, or one MIG instance, got %" PRId64,
                           gpus);
    if (cpus < 0 && s->cpus_per_gpu > 0)
        cpus = s->cpus_per_gpu * gpus;
    else if (cpus > 0)
        cpus *= shared;
    mem = memory(s, tasks, gpus, cpus > 0 ? cpus : shared);
    (void)json_object_set_new(job, "tasks", json_integer(tasks));
    (void)json_object_set_new(
        job, "gpus", s->gpu_milli ? json_real((double)s->gpu_milli / 1000) : json_integer(gpus));
    if (shared == 1 && (s->per_node > 0 || s->nodes > 0))
        (void)json_object_set_new(
            job, "tasks_per_node",
            json_integer(s->per_node > 0 ? s->per_node : (tasks + nodes - 1) / nodes));
    if (cpus > 0)
        (void)json_object_set_new(job, "cpus", json_integer(cpus));
    if (mem > 0)
        (void)json_object_set_new(job, "mem_mib", json_integer(mem));
    if (gpus == 0)
        (void)json_object_del(job, "gpu_types");
    return share_licenses(job, tasks, err);
}

static int absolute(json_t *job, struct stk_err *err)
{
    const char *dir = json_string_value(json_object_get(job, "workdir"));
    char cwd[PATH_MAX], path[2 * PATH_MAX];

    if (!dir || dir[0] == '/')
        return 0;
    if (!getcwd(cwd, sizeof(cwd)))
        return stk_err_set(err, -errno, "cannot tell the current folder: %s", strerror(errno));
    (void)snprintf(path, sizeof(path), "%s/%.*s", cwd, PATH_MAX - 1, dir);
    return json_object_set_new(job, "workdir", json_string(path)) < 0
               ? stk_err_set(err, -EINVAL, "the current folder's name is not UTF-8")
               : 0;
}

/* What sbatch does when nothing is said: the script's name, slurm-JOB.out. */
static void defaults(struct stk_sbatch *s, json_t *job)
{
    const char *slash = strrchr(s->where, '/'), *name = slash ? slash + 1 : s->where;

    if (!json_object_get(job, "name") && (s->tool == STK_TOOL_SBATCH || s->wrap))
        (void)json_object_set_new(job, "name",
                                  json_string(s->wrap ? "wrap"
                                              : *name ? name
                                                      : "sbatch"));
    if (s->tool != STK_TOOL_SBATCH)
        return;
    if (!json_object_get(job, "stdout"))
        (void)json_object_set_new(
            job, "stdout",
            json_string(json_object_get(job, "array") ? "slurm-%A_%a.out" : "slurm-%j.out"));
    if (!json_object_get(job, "open_mode"))
        (void)json_object_set_new(job, "open_mode", json_string("truncate"));
    (void)json_object_set_new(job, "envs", json_object());
    stk_sbatch_tell(s, json_object_get(job, "envs"));
    (void)json_object_set_new(job, "launch", json_string("once"));
}

static int put_script(const struct stk_sbatch *s, json_t *job, struct stk_err *err)
{
    json_t *text = NULL;

    if (s->wrap && s->script)
        return stk_err_set(err, -EINVAL, "--wrap and a script cannot be given together");
    if (s->wrap)
        text = json_sprintf("#!/bin/sh\n%s\n", s->wrap);
    else if (s->script)
        text = json_stringn(s->script, s->script_len);
    else
        return 0;
    return json_object_set_new(job, "script", text) < 0
               ? stk_err_set(err, -EINVAL, "the script is not text in UTF-8")
               : 0;
}

static void put_priority(const struct stk_sbatch *s, json_t *job)
{
    if (s->priority_set)
        (void)json_object_set_new(job, "priority", json_integer(s->priority));
    if (s->nice_set && s->nice != 0)
        (void)json_object_set_new(job, "nice", json_integer(s->nice));
}

json_t *stk_sbatch_job(struct stk_sbatch *s, struct stk_err *err)
{
    json_t *job = json_deep_copy(s->job);
    int rc = job ? per_task(s, job, err) : stk_err_set(err, -ENOMEM, "out of memory");

    if (rc == 0)
        rc = absolute(job, err);
    if (rc == 0)
        rc = put_script(s, job, err);
    if (rc == 0) {
        put_priority(s, job);
        defaults(s, job);
        (void)json_object_set_new(job, "slurm", json_true());
        /* srun's command is not known yet: the caller checks */
        if (s->tool == STK_TOOL_SBATCH)
            rc = stk_spec_check(job, err);
    }
    if (rc == 0)
        return job;
    json_decref(job);
    return NULL;
}
