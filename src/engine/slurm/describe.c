/* SPDX-License-Identifier: Apache-2.0 */
/* describe.c - a description as a batch job of Slurm's: what is asked for, its environment, where
 * its output goes. What runs is in script.c, where in place.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/slurm/inner.h"
#include "sys/pattern.h"

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

static int64_t number(const json_t *o, const char *key, int64_t otherwise)
{
    const json_t *v = json_object_get(o, key);

    return json_is_number(v) ? (int64_t)json_number_value(v) : otherwise;
}

int stk_slurm_check(const json_t *spec, struct stk_err *err)
{
    static const char *const no[] = {"interactive", "items", "image", "secrets", "mig", "adopt"};
    double gpus = json_number_value(json_object_get(spec, "gpus"));

    for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++) {
        const json_t *v = json_object_get(spec, no[i]);

        if (v && !json_is_false(v) && !json_is_null(v))
            return stk_err_set(err, -EOPNOTSUPP,
                               "%s: Slurm runs the jobs here, and this does not "
                               "go with it",
                               no[i]);
    }
    if (gpus > 0 && gpus < 1)
        return stk_err_set(err, -EOPNOTSUPP,
                           "gpus: Slurm runs the jobs here, and it gives whole GPUs");
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
    const json_t *a = json_object_get(spec, "array"), *list = json_object_get(a, "indices");
    int64_t first = number(a, "first", list ? p->index : 0), step = number(a, "step", 1);
    int64_t count = step > 0 ? (number(a, "last", first) - first) / step + 1 : 1;
    int64_t last = first + (count - 1) * step;
    const json_t *v;
    size_t i;

    json_array_foreach(list, i, v)
    {
        int64_t x = json_integer_value(v);

        first = i == 0 || x < first ? x : first;
        last = i == 0 || x > last ? x : last;
        count = (int64_t)json_array_size(list);
    }
    put(env, "STOKER_ARRAY_ID", p->array);
    put(env, "STOKER_ARRAY_INDEX", p->index);
    put(env, "SLURM_ARRAY_JOB_ID", p->array);
    put(env, "SLURM_ARRAY_TASK_ID", p->index);
    put(env, "SLURM_ARRAY_TASK_COUNT", count);
    put(env, "SLURM_ARRAY_TASK_MIN", first);
    put(env, "SLURM_ARRAY_TASK_MAX", last);
    put(env, "SLURM_ARRAY_TASK_STEP", step);
}

static json_t *environment(const struct stk_slurm_job *j, const json_t *spec,
                           const struct stk_pattern *p)
{
    json_t *env = json_deep_copy(json_object_get(spec, "envs"));

    env = env ? env : json_object();
    put(env, "STOKER_JOB_ID", j->number);
    (void)json_object_set_new(env, "STOKER_JOB_NAME", json_string(text(spec, "name")));
    put(env, "STOKER_TASKS", number(spec, "tasks", 1));
    if (p->array)
        put_array(env, spec, p);
    if (j->before > 0) /* Slurm counts from there on when it restarts it itself */
        put(env, "SLURM_RESTART_COUNT", j->before);
    put_missing(env, "HOME", text(spec, "home"));
    put_missing(env, "USER", text(spec, "user"));
    put_missing(env, "LOGNAME", text(spec, "user"));
    put_missing(env, "SHELL", text(spec, "shell"));
    put_missing(env, "PATH", "/usr/local/bin:/usr/bin:/bin");
    return env;
}

/* ---- its output ---- */

/* What patterns of file names know of it. */
static struct stk_pattern pattern_of(const struct stk_slurm *m, const struct stk_slurm_job *j,
                                     const json_t *spec)
{
    struct stk_pattern p = {.number = j->number,
                            .name = text(spec, "name"),
                            .node = m->nodes[j->pieces[0].node.i].name,
                            .user = text(spec, "user")};

    if (m->cfg.array && !m->cfg.array(m->cfg.ctx, j->number, &p.array, &p.index))
        p.array = p.index = 0;
    return p;
}

/* Slurm has percent signs of its own. */
static void set_path(json_t *o, const char *key, const char *path)
{
    char out[8192], *q = out;

    for (const char *p = path; *p && q < out + sizeof(out) - 3; p++) {
        if (*p == '%')
            *q++ = '%';
        *q++ = *p;
    }
    *q = '\0';
    (void)json_object_set_new(o, key, json_string(out));
}

static void set_output(const json_t *spec, const struct stk_pattern *p, json_t *o)
{
    const char *const keys[] = {"stdout", "stderr", "stdin"}, *workdir = text(spec, "workdir");
    char path[4096];

    for (int i = 0; i < 3; i++) {
        const char *pattern = text(spec, keys[i]);

        if (!*pattern && i == 0)
            pattern = stk_pattern_default(p);
        if (*pattern && stk_pattern_path(pattern, p, workdir, path, sizeof(path)) == 0)
            set_path(o, keys[i], path);
    }
}

/* ---- all of it ---- */

static void set_limits(const struct stk_slurm_job *j, const json_t *spec, json_t *o)
{
    double cpus = json_number_value(json_object_get(spec, "cpus"));
    int64_t mem = number(spec, "mem_mib", 0), limit = number(spec, "time_limit_s", 0);
    uint32_t most = 1;

    for (uint32_t i = 0; i < j->n_pieces; i++)
        most = j->pieces[i].tasks > most ? j->pieces[i].tasks : most;
    if (cpus > 0)
        (void)json_object_set_new(
            o, "cpus_per_task", json_integer((json_int_t)cpus + ((double)(json_int_t)cpus < cpus)));
    if (mem > 0)
        (void)json_object_set_new(o, "mem_mib", json_integer(mem * most));
    if (limit > 0)
        (void)json_object_set_new(o, "time_limit_s", json_integer(limit));
}

/* What it is booked to. */
static void set_names(const struct stk_slurm *m, const struct stk_slurm_job *j, const json_t *spec,
                      json_t *o)
{
    static const char *const keys[] = {"account", "qos", "wckey"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (*text(spec, keys[i]))
            (void)json_object_set(o, keys[i], json_object_get(spec, keys[i]));
    if (m->cfg.names)
        m->cfg.names(m->cfg.ctx, j->number, o);
}

json_t *stk_slurm_describe(const struct stk_slurm *m, const struct stk_slurm_job *j,
                           struct stk_err *err)
{
    json_t *spec = json_loads(j->spec ? j->spec : "{}", 0, NULL), *o = NULL;
    const struct stk_pattern p = pattern_of(m, j, spec);
    char *script = NULL;

    if (stk_slurm_check(spec, err) == 0)
        script = stk_slurm_script_of(j, spec, err);
    if (script) {
        o = json_pack("{s:s,s:s,s:s,s:s,s:I,s:I,s:o,s:s,s:O?}", "op", "submit", "script", script,
                      "name", text(spec, "name"), "partition",
                      m->cfg.partitions[m->nodes[j->pieces[0].node.i].partition], "uid",
                      (json_int_t)number(spec, "uid", -1), "gid",
                      (json_int_t)number(spec, "gid", -1), "env", environment(j, spec, &p),
                      "workdir", text(spec, "workdir"), "args", json_object_get(spec, "args"));
        if (!o)
            (void)stk_err_set(err, -ENOMEM, "out of memory");
    }
    if (o) {
        set_output(spec, &p, o);
        set_limits(j, spec, o);
        set_names(m, j, spec, o);
    }
    free(script);
    json_decref(spec);
    return o;
}
