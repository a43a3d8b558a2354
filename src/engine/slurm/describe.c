/* SPDX-License-Identifier: Apache-2.0 */
/* describe.c - a description as a batch job of Slurm's: what is asked for, its environment, where
 * its output goes. What runs is in script.c, where in place.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/inner.h"
#include "spec/array.h"
#include "sys/json.h"
#include "sys/pattern.h"
#include "sys/rlimits.h"

/* ---- what cannot be ---- */

/* Whether it asks for something. */
static bool asks(const json_t *v)
{
    return v && !json_is_false(v) && !json_is_null(v) &&
           !(json_is_object(v) && json_object_size(v) == 0);
}

int stk_slurm_check(const json_t *spec, struct stk_err *err)
{
    static const struct {
        const char *key, *instead;
    } no[] = {
        {"interactive", "salloc and srun of Slurm's give a shell there"},
        {"items", "send an array"},
        {"image", "start the container in the script"},
        {"secrets", "read the file in the script"},
        {"mig", "it gives whole GPUs"},
        {"adopt", "it knows its own processes alone"},
        {"pids", "it counts no processes; leave it out"},
        {"log_max_mib", "it writes the output, all of it; leave it out"},
        {"grace_s", "KillWait in slurm.conf is how long it waits; leave it out, or use signal"},
        {"idle", "nobody measures the GPUs of its nodes; leave it out"},
        {"gpu_mem_mib", "it does not say how much memory GPUs have; name gpu_types"}};
    double gpus = json_number_value(json_object_get(spec, "gpus"));
    const char *share = stk_str(spec, "share");

    for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++) {
        const json_t *v = json_object_get(spec, no[i].key);
        bool none = json_is_integer(v) && json_integer_value(v) == 0 &&
                    strcmp(no[i].key, "grace_s") != 0; /* which means: at once */

        if (asks(v) && !none)
            return stk_err_set(err, -EOPNOTSUPP, "%s: Slurm runs the jobs here: %s", no[i].key,
                               no[i].instead);
    }
    if ((gpus > 0 && gpus < 1) || (*share && strcmp(share, "none") != 0))
        return stk_err_set(err, -EOPNOTSUPP,
                           "%s: Slurm runs the jobs here, and it gives whole GPUs",
                           gpus > 0 && gpus < 1 ? "gpus" : "share");
    return 0;
}

/* ---- its environment ---- */

static void put(json_t *env, const char *name, int64_t value)
{
    (void)json_object_set_new(env, name, json_sprintf("%lld", (long long)value));
}

static void put_missing(json_t *env, const char *name, const char *value)
{
    if (*value && !json_object_get(env, name))
        (void)json_object_set_new(env, name, json_string(value));
}

/* Each element is a job of its own for Slurm, which then says nothing of arrays: we do, in our
 * words and in its own. */
static void put_array(json_t *env, const json_t *spec, const struct stk_pattern *p)
{
    struct stk_array_bounds b = stk_array_bounds(json_object_get(spec, "array"));

    put(env, "STOKER_ARRAY_ID", p->array);
    put(env, "STOKER_ARRAY_INDEX", p->index);
    put(env, "SLURM_ARRAY_JOB_ID", p->array);
    put(env, "SLURM_ARRAY_TASK_ID", p->index);
    put(env, "SLURM_ARRAY_TASK_COUNT", b.count);
    put(env, "SLURM_ARRAY_TASK_MIN", b.first);
    put(env, "SLURM_ARRAY_TASK_MAX", b.last);
    put(env, "SLURM_ARRAY_TASK_STEP", b.step);
}

/* As sbatch says them to slurmd; it takes them out again. Of limits it knows the soft ones. */
static void put_limits(json_t *env, const json_t *spec)
{
    const json_t *all = json_object_get(spec, "rlimits");
    char name[32] = "SLURM_RLIMIT_", *end = name + strlen(name);

    (void)json_object_set_new(env, "SLURM_UMASK",
                              json_sprintf("%04o", (unsigned)stk_int(spec, "umask", 022)));
    for (size_t i = 0; i < STK_N_RLIMITS; i++) {
        const json_t *v = json_object_get(all, stk_rlimits[i].name);
        size_t k = 0;

        for (; stk_rlimits[i].name[k]; k++)
            end[k] = (char)(stk_rlimits[i].name[k] - 'a' + 'A');
        end[k] = '\0';
        if (json_array_size(v) > 0)
            put(env, name, json_integer_value(json_array_get(v, 0)));
    }
}

/* CPUs of a task; 0: it does not matter. */
static int64_t cpus_of(const json_t *spec)
{
    double cpus = json_number_value(json_object_get(spec, "cpus"));
    int64_t n = (int64_t)cpus;

    return n + ((double)n < cpus);
}

/* What sbatch, and not slurmctld, tells a script. */
static void put_sbatch(json_t *env, const json_t *spec)
{
    (void)json_object_set_new(env, "SLURM_JOB_NAME", json_string(stk_str(spec, "name")));
    (void)json_object_set_new(env, "SLURM_SUBMIT_DIR", json_string(stk_str(spec, "workdir")));
    if (*stk_str(spec, "host"))
        (void)json_object_set_new(env, "SLURM_SUBMIT_HOST", json_string(stk_str(spec, "host")));
    if (cpus_of(spec) > 0)
        put(env, "SLURM_CPUS_PER_TASK", cpus_of(spec));
}

static json_t *environment(const struct stk_slurm_job *j, const json_t *spec,
                           const struct stk_pattern *p)
{
    json_t *env = json_deep_copy(json_object_get(spec, "envs"));

    env = env ? env : json_object();
    put(env, "STOKER_JOB_ID", j->number);
    (void)json_object_set_new(env, "STOKER_JOB_NAME", json_string(stk_str(spec, "name")));
    put(env, "STOKER_TASKS", stk_int(spec, "tasks", 1));
    if (p->array)
        put_array(env, spec, p);
    put_sbatch(env, spec);
    put_limits(env, spec);
    if (j->before > 0) /* Slurm counts from there on when it restarts it itself */
        put(env, "SLURM_RESTART_COUNT", j->before);
    put_missing(env, "HOME", stk_str(spec, "home"));
    put_missing(env, "USER", stk_str(spec, "user"));
    put_missing(env, "LOGNAME", stk_str(spec, "user"));
    put_missing(env, "SHELL", stk_str(spec, "shell"));
    put_missing(env, "PATH", "/usr/local/bin:/usr/bin:/bin");
    return env;
}

/* ---- its output ---- */

/* What patterns of file names know of it. */
static struct stk_pattern pattern_of(const struct stk_slurm *m, const struct stk_slurm_job *j,
                                     const json_t *spec)
{
    struct stk_pattern p = {.number = j->number,
                            .name = stk_str(spec, "name"),
                            .node = m->nodes[j->pieces[0].node.i].name,
                            .user = stk_str(spec, "user")};

    if (m->cfg.array && !m->cfg.array(m->cfg.ctx, j->number, &p.array, &p.index))
        p.array = p.index = 0;
    return p;
}

/* Slurm has percent signs of its own; one that is meant for it is a KEPT here. */
#define KEPT '\1'

static void for_slurm(const char *path, char *out, size_t size)
{
    char *q = out;

    for (const char *p = path; *p && q < out + size - 3; p++) {
        if (*p == '%')
            *q++ = '%';
        *q++ = (char)(*p == KEPT ? '%' : *p);
    }
    *q = '\0';
}

/* A pattern with files of their own for tasks, in srun's words; "": it has none. */
static void each_file(const char *pattern, const struct stk_pattern *p, const char *workdir,
                      char *out, size_t size)
{
    char kept[4096], path[4096];
    bool has = false;
    size_t n = strlen(pattern);

    if (n >= sizeof(kept))
        return;
    memcpy(kept, pattern, n + 1);
    for (char *s = kept; (s = strchr(s, '%')) && s[1]; s++) {
        size_t digits = strspn(s + 1, "0123456789");

        if (s[1 + digits] == 't') {
            *s = KEPT;
            has = true;
        }
        s += 1 + digits - (s[1 + digits] == '\0');
    }
    if (has && stk_pattern_path(kept, p, workdir, path, sizeof(path)) == 0)
        for_slurm(path, out, size);
}

static void find_files(const json_t *spec, const struct stk_pattern *p,
                       struct stk_slurm_files *files)
{
    const char *const keys[] = {"stdout", "stderr", "stdin"}, *workdir = stk_str(spec, "workdir"),
                      *mode = stk_str(spec, "open_mode");

    memset(files, 0, sizeof(*files));
    files->empty = *mode ? strcmp(mode, "truncate") == 0 : !*stk_str(spec, "stdout");
    for (int i = 0; i < 3; i++) {
        const char *pattern = stk_str(spec, keys[i]);

        if (!*pattern && i == 0)
            pattern = stk_pattern_default(p);
        if (*pattern &&
            stk_pattern_path(pattern, p, workdir, files->path[i], sizeof(files->path[i])) < 0)
            files->path[i][0] = '\0';
        if (i < 2)
            each_file(pattern, p, workdir, files->each[i], sizeof(files->each[i]));
    }
    for (int i = 0; i < 2; i++) /* where one has, the other is said, too */
        if (files->each[!i][0] && !files->each[i][0])
            for_slurm(files->path[i], files->each[i], sizeof(files->each[i]));
}

static void set_files(const struct stk_slurm_files *files, json_t *o)
{
    const char *const keys[] = {"stdout", "stderr", "stdin"};
    char path[8192 + 1];

    for (int i = 0; i < 3; i++)
        if (files->path[i][0]) {
            for_slurm(files->path[i], path, sizeof(path));
            (void)json_object_set_new(o, keys[i], json_string(path));
        }
}

/* ---- all of it ---- */

static void set_limits(const struct stk_slurm_job *j, const json_t *spec, json_t *o)
{
    int64_t mem = stk_int(spec, "mem_mib", 0), limit = stk_int(spec, "time_limit_s", 0);
    uint32_t most = 1;

    for (uint32_t i = 0; i < j->n_pieces; i++)
        most = j->pieces[i].tasks > most ? j->pieces[i].tasks : most;
    if (cpus_of(spec) > 0)
        (void)json_object_set_new(o, "cpus_per_task", json_integer(cpus_of(spec)));
    if (mem > 0)
        (void)json_object_set_new(o, "mem_mib", json_integer(mem * most));
    if (limit > 0)
        (void)json_object_set_new(o, "time_limit_s", json_integer(limit));
    if (stk_yes(spec, "exclusive"))
        (void)json_object_set_new(o, "exclusive", json_true());
    stk_slurm_set_warning(j, o);
}

/* What it is booked to. */
static void set_names(const struct stk_slurm *m, const struct stk_slurm_job *j, const json_t *spec,
                      json_t *o)
{
    static const char *const keys[] = {"account", "qos", "wckey"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (*stk_str(spec, keys[i]))
            (void)json_object_set(o, keys[i], json_object_get(spec, keys[i]));
    if (m->cfg.names)
        m->cfg.names(m->cfg.ctx, j->number, o);
}

/* Without where it runs. */
static json_t *request(const struct stk_slurm *m, const struct stk_slurm_job *j, const json_t *spec,
                       struct stk_err *err)
{
    const struct stk_pattern p = pattern_of(m, j, spec);
    struct stk_slurm_files *files = malloc(sizeof(*files));
    char *script = NULL;
    json_t *o = NULL;

    if (files) {
        find_files(spec, &p, files);
        script = stk_slurm_script_of(j, spec, files, err);
    }
    if (script)
        o = json_pack("{s:s,s:s,s:s,s:O?,s:I,s:I,s:o,s:s}", "op", "submit", "script", script,
                      "name", stk_str(spec, "name"), "partition", json_object_get(spec, "pool"),
                      "uid", (json_int_t)stk_int(spec, "uid", -1), "gid",
                      (json_int_t)stk_int(spec, "gid", -1), "env", environment(j, spec, &p),
                      "workdir", stk_str(spec, "workdir"));
    if (o && stk_slurm_as_it_is(spec) && json_object_get(spec, "args"))
        (void)json_object_set(o, "args", json_object_get(spec, "args"));
    if (o)
        set_files(files, o);
    else
        (void)stk_err_set(err, -ENOMEM, "out of memory");
    free(script);
    free(files);
    return o;
}

json_t *stk_slurm_describe(const struct stk_slurm *m, const struct stk_slurm_job *j,
                           struct stk_err *err)
{
    json_t *spec = stk_json_loads(j->spec ? j->spec : "{}"), *o = NULL;

    if (stk_slurm_check(spec, err) == 0)
        o = request(m, j, spec, err);
    if (o) {
        set_limits(j, spec, o);
        set_names(m, j, spec, o);
    }
    json_decref(spec);
    return o;
}
