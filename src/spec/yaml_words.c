/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_words.c - see yaml_words.h. Words of SkyPilot's and dstack's job files keep their meaning;
 * what has none here is refused with the reason. */
#include "spec/yaml_words.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "spec/words.h"

#define EVENT_RETRIES 3 /* what "on_events: [error]" gives */

static struct stk_word show(const json_t *v)
{
    const char *s = json_string_value(v);

    return stk_words_show(s ? s : json_is_array(v) ? "a list" : "a mapping");
}

/* A key of the description by another name. */
static int same(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    return stk_yaml_put(j, w->text, stk_yaml_typed(stk_key_find(stk_spec_keys(), w->text), v));
}

static int refuse(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    (void)v;
    return stk_yaml_bad(j, "is not supported: %s", w->text);
}

static int type(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    const char *s = json_string_value(v);

    (void)w;
    if (s && strcmp(s, "task") == 0)
        return 0;
    return stk_yaml_bad(j, "only task is supported, got \"%s\"", show(v).text);
}

/* Text for a shell: bash, as both tools use, unless it names another. */
static int run(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    const char *s = json_string_value(v);

    if (!s)
        return stk_yaml_bad(j, "must be text, got %s", show(v).text);
    if (strncmp(s, "#!", 2) == 0)
        return stk_yaml_put(j, w->text, json_string(s));
    return stk_yaml_put(j, w->text, json_sprintf("#!/usr/bin/env bash\n%s", s));
}

/* A list of shell lines, of which a failing one ends the job. */
static int commands(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    json_t *text = json_string("#!/usr/bin/env bash\nset -e\n");
    size_t n = json_array_size(v), bytes = 0;

    for (size_t i = 0; text && i < n; i++) {
        const char *line = json_string_value(json_array_get(v, i));
        json_t *more;

        bytes += line ? strlen(line) : 0;
        if (!line || bytes > STK_MAX_TEXT) {
            json_decref(text);
            return stk_yaml_bad(j, "must be a list of shell lines, 1 MiB at most");
        }
        more = json_sprintf("%s%s\n", json_string_value(text), line);
        json_decref(text);
        text = more;
    }
    if (n == 0 || n > 1000) {
        json_decref(text);
        return stk_yaml_bad(j, "must be a list of 1 to 1000 shell lines");
    }
    return stk_yaml_put(j, w->text, text);
}

/* Made absolute: ~ is the home folder, the rest is relative to the current one. NULL: not a path,
 * or no room. */
static json_t *absolute(const char *s)
{
    char base[PATH_MAX];
    const char *home = getenv("HOME"); // NOLINT(concurrency-mt-unsafe): a job file is read by one

    if (*s == '/' || *s == '\0')
        return json_string(s);
    if (*s == '~' && (s[1] == '/' || s[1] == '\0') && home && *home == '/')
        return json_sprintf("%s%s", home, s + 1);
    if (!getcwd(base, sizeof(base)))
        return NULL;
    return strcmp(s, ".") == 0 ? json_string(base)
                               : json_sprintf("%s/%s", base, strncmp(s, "./", 2) == 0 ? s + 2 : s);
}

static int folder(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    const char *s = json_string_value(v);
    json_t *path = s ? absolute(s) : NULL;

    if (!path)
        return stk_yaml_bad(j, "must be a folder, got %s", show(v).text);
    return stk_yaml_put(j, w->text, path);
}

static int secrets(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    json_t *all = json_object(), *from = stk_json_loose(v);

    for (void *it = json_object_iter(from); it; it = json_object_iter_next(from, it)) {
        const char *s = json_string_value(json_object_iter_value(it));

        if (!s || !strchr("/~.", *s) || *s == '\0') {
            json_decref(all);
            return stk_yaml_bad(j,
                                "%s must be the path of a file with the value (a value written in "
                                "a job file is no secret)",
                                stk_words_show(json_object_iter_key(it)).text);
        }
        (void)json_object_set_new(all, json_object_iter_key(it), absolute(s));
    }
    return stk_yaml_put(j, w->text,
                        json_is_object(v) ? all : (json_decref(all), json_incref(from)));
}

/* A mapping, or a list of NAME=value. */
static int envs(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    json_t *all;

    if (!json_is_array(v))
        return same(j, w, v);
    all = json_object();
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *s = json_string_value(json_array_get(v, i)), *eq = s ? strchr(s, '=') : NULL;
        char name[256];

        if (!eq || eq == s || (size_t)(eq - s) >= sizeof(name)) {
            json_decref(all);
            return stk_yaml_bad(j, "entry %zu must be NAME=value", i + 1);
        }
        memcpy(name, s, (size_t)(eq - s));
        name[eq - s] = '\0';
        (void)json_object_set_new(all, name, json_string(eq + 1));
    }
    return stk_yaml_put(j, w->text, all);
}

/* Durations with a unit; dstack's max_duration takes bare seconds. */
static int duration(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    const char *s = json_string_value(v);
    bool bare = s && *s != '\0' && strspn(s, "0123456789") == strlen(s);
    int64_t seconds;

    if (bare && strcmp(j->path, "max_duration") != 0)
        return stk_yaml_bad(j, "needs a unit, as in %.20sm or %.20ss", s, s);
    if (!s || stk_words_duration(s, 1, &seconds) < 0)
        return stk_yaml_bad(j, "must be a time such as 90m, 1h30m, 1:30:00 or 2d, got \"%s\"",
                            show(v).text);
    return stk_yaml_put(j, w->text, json_integer(seconds));
}

static int when(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    const char *s = json_string_value(v);
    struct stk_err why;
    int64_t at;
    int rc = s ? stk_words_time(s, (int64_t)time(NULL), &at, &why) : -EINVAL;

    if (rc == -ERANGE)
        return stk_yaml_bad(j, "%s", why.text);
    if (rc < 0)
        return stk_yaml_bad(j,
                            "must be a time such as 16:30, now+1hour or 2030-01-31T08:00, got "
                            "\"%s\"",
                            show(v).text);
    return stk_yaml_put(j, w->text, json_integer(at));
}

static int array(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    const char *s = json_string_value(v);
    struct stk_err why;
    json_t *a;

    if (!s)
        return same(j, w, v);
    if (stk_words_array(s, &a, &why) < 0)
        return stk_yaml_bad(j, "%.150s", why.text);
    return stk_yaml_put(j, w->text, a);
}

static int signal_ahead(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    const char *s = json_string_value(v);
    struct stk_err why;
    json_t *a;

    if (!s)
        return same(j, w, v);
    if (stk_words_signal_ahead(s, &a, &why) < 0)
        return stk_yaml_bad(j, "%.150s", why.text);
    return stk_yaml_put(j, w->text, a);
}

/* "afterok:12,singleton", a list of those, or the description's own objects. */
static int depends(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    size_t n = json_is_array(v) ? json_array_size(v) : 1;
    json_t *list = json_array();
    bool singleton = false;
    struct stk_err why = {""};
    int rc = 0;

    if (json_is_array(v) && json_is_object(json_array_get(v, 0))) {
        json_decref(list);
        return same(j, w, v);
    }
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const char *s = json_string_value(json_is_array(v) ? json_array_get(v, i) : v);

        rc = s ? stk_words_depend(s, list, &singleton, &why)
               : stk_err_set(&why, -EINVAL, "must be a dependency such as afterok:12");
    }
    if (rc < 0) {
        json_decref(list);
        return stk_yaml_bad(j, "%.170s", why.text);
    }
    if (singleton)
        (void)stk_yaml_put(j, "singleton", json_true());
    return stk_yaml_put(j, w->text, list);
}

/* Adds a budget to "retry", which several words may build together. */
static int add_retry(struct stk_yaml_job *j, const char *what, json_t *take_value)
{
    json_t *retry = json_object_get(j->job, "retry");

    if (!retry) {
        retry = json_object();
        if (stk_yaml_put(j, "retry", retry) < 0) {
            json_decref(take_value);
            return -EINVAL;
        }
    }
    return json_object_set_new(retry, what, take_value) < 0 ? stk_yaml_bad(j, "out of memory") : 0;
}

static int on_event(struct stk_yaml_job *j, const json_t *event)
{
    const char *s = json_string_value(event);

    if (s && strcmp(s, "error") == 0)
        return add_retry(j, "error", json_integer(EVENT_RETRIES));
    if (s && strcmp(s, "interruption") == 0)
        return add_retry(j, "node", json_string("always"));
    if (s && strcmp(s, "no-capacity") == 0)
        return 0; /* a job waits for as long as it takes */
    return stk_yaml_bad(j, "has the events error, interruption and no-capacity, got \"%s\"",
                        show(event).text);
}

static int retry_map(struct stk_yaml_job *j, json_t *v)
{
    const json_t *events = json_object_get(v, "on_events");
    int rc = 0;

    if (!events)
        return stk_yaml_put(j, "retry", stk_yaml_typed(stk_key_find(stk_spec_keys(), "retry"), v));
    if (json_object_size(v) > 1)
        return stk_yaml_bad(j, "takes only on_events, or budgets: error, oom, timeout, node");
    if (!json_is_array(events))
        return on_event(j, events);
    for (size_t i = 0; rc == 0 && i < json_array_size(events); i++)
        rc = on_event(j, json_array_get(events, i));
    return rc;
}

static int retry(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    const char *s = json_string_value(v);
    bool yes;
    int rc = 0;

    (void)w;
    if (json_is_object(v))
        return retry_map(j, stk_json_loose(v));
    if (!s || stk_words_bool(s, &yes) < 0)
        return stk_yaml_bad(j, "must be true, false, on_events or budgets, got \"%s\"",
                            show(v).text);
    if (!yes)
        return 0;
    rc = add_retry(j, "error", json_integer(EVENT_RETRIES));
    return rc < 0 ? rc : add_retry(j, "node", json_string("always"));
}

/* SkyPilot: {max_restarts_on_errors: 3, recover_on_exit_codes: [33]}. */
static int recovery(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    static const struct stk_key budget = {.name = "error", .type = STK_KEY_BUDGET},
                                codes = {.name = "exit_codes", .type = STK_KEY_INTS};
    json_t *from = stk_json_loose(v);
    int rc = 0;

    (void)w;
    if (json_is_string(v)) /* the name of a strategy: which cloud to try next */
        return 0;
    for (void *it = json_object_iter(from); rc == 0 && it; it = json_object_iter_next(from, it)) {
        const char *name = json_object_iter_key(it);

        if (strcmp(name, "max_restarts_on_errors") == 0)
            rc = add_retry(j, "error", stk_yaml_typed(&budget, json_object_iter_value(it)));
        else if (strcmp(name, "recover_on_exit_codes") == 0)
            rc = add_retry(j, "exit_codes", stk_yaml_typed(&codes, json_object_iter_value(it)));
        else if (strcmp(name, "strategy") != 0)
            rc = stk_yaml_bad(j,
                              "has max_restarts_on_errors, recover_on_exit_codes and strategy, "
                              "got \"%s\"",
                              stk_words_show(name).text);
    }
    if (rc == 0 && json_object_get(from, "recover_on_exit_codes") &&
        !json_object_get(from, "max_restarts_on_errors")) /* they are not counted there */
        rc = add_retry(j, "error", json_string("always"));
    return rc;
}

static int idle(struct stk_yaml_job *j, const char *key, json_t *take_value)
{
    json_t *o = json_object_get(j->job, "idle");

    if (!o) {
        o = json_object();
        if (json_object_set_new(j->job, "idle", o) < 0 ||
            json_object_set_new(j->origin, "idle", json_string("utilization_policy")) < 0) {
            json_decref(take_value);
            return stk_yaml_bad(j, "out of memory");
        }
    }
    return json_object_set_new(o, key, take_value) < 0 ? stk_yaml_bad(j, "out of memory") : 0;
}

static int least_utilization(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    const char *s = json_string_value(v);
    int64_t pct;

    (void)w;
    if (!s || stk_words_whole(s, 100, &pct) < 0)
        return stk_yaml_bad(j, "must be a whole number from 0 to 100, got \"%s\"", show(v).text);
    return idle(j, "below_pct", json_integer(pct));
}

static int time_window(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    const char *s = json_string_value(v);
    int64_t seconds;

    (void)w;
    if (!s || stk_words_duration(s, 1, &seconds) < 0 || seconds == 0)
        return stk_yaml_bad(j, "must be a time such as 30m, got \"%s\"", show(v).text);
    return idle(j, "end_s", json_integer(seconds));
}

static int image_id(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v)
{
    const char *s = json_string_value(v);

    if (!s || strncmp(s, "docker:", 7) != 0)
        return stk_yaml_bad(j, "must be docker:IMAGE, got \"%s\"", show(v).text);
    return stk_yaml_put(j, w->text, json_string(s + 7));
}

static const char here[] = "jobs run on the machines of this cluster";
static const char service[] = "services cannot be run yet";

/* clang-format off */
const struct stk_yaml_word stk_yaml_words[] = {
    {"type", type, NULL},
    {"run", run, "script"},
    {"commands", commands, "script"},
    {"num_nodes", same, "tasks"},
    {"nodes", same, "tasks"},
    {"workdir", folder, "workdir"},
    {"working_dir", folder, "workdir"},
    {"venv", folder, "venv"},
    {"envs", envs, "envs"},
    {"env", envs, "envs"},
    {"secrets", secrets, "secrets"},
    {"time", duration, "time_limit_s"},
    {"max_duration", duration, "time_limit_s"},
    {"estimate", duration, "estimate_s"},
    {"grace", duration, "grace_s"},
    {"begin", when, "begin"},
    {"deadline", when, "deadline"},
    {"reservation", same, "reservation"},
    {"array", array, "array"},
    {"signal", signal_ahead, "signal"},
    {"depends", depends, "depends"},
    {"depends_on", depends, "depends"},
    {"retry", retry, NULL},
    {"resources.accelerators", stk_yaml_accelerators, NULL},
    {"resources.gpu", stk_yaml_accelerators, NULL},
    {"resources.gpus", same, "gpus"},
    {"gpu_mem", stk_yaml_memory, "gpu_mem_mib"},
    {"resources.gpu_mem", stk_yaml_memory, "gpu_mem_mib"},
    {"resources.share", same, "share"},
    {"resources.share_max", same, "share_max"},
    {"resources.mig", same, "mig"},
    {"resources.cpus", stk_yaml_cpus, NULL},
    {"resources.cpu", stk_yaml_cpus, NULL},
    {"resources.memory", stk_yaml_memory, "mem_mib"},
    {"resources.pids", same, "pids"},
    {"resources.named", same, "resources"},
    {"resources.job_recovery", recovery, NULL},
    {"resources.image_id", image_id, "image"},
    {"resources.priority", same, "priority"},
    {"resources.shm_size", refuse, "shared memory is the machine's"},
    {"resources.disk", refuse, "disk space is not counted"},
    {"resources.disk_size", refuse, "disk space is not counted"},
    {"resources.infra", refuse, here},
    {"resources.cloud", refuse, here},
    {"resources.region", refuse, here},
    {"resources.zone", refuse, here},
    {"resources.instance_type", refuse, here},
    {"resources.use_spot", refuse, "say tier: best-effort for a job that may be stopped"},
    {"resources.any_of", refuse, "list the GPU types in accelerators"},
    {"resources.ordered", refuse, "list the GPU types in accelerators"},
    {"resources.ports", refuse, service},
    {"utilization_policy.min_gpu_utilization", least_utilization, NULL},
    {"utilization_policy.time_window", time_window, NULL},
    {"file_mounts", refuse, "jobs see the files of the machine"},
    {"storage_mounts", refuse, "jobs see the files of the machine"},
    {"repos", refuse, "jobs see the files of the machine"},
    {"files", refuse, "jobs see the files of the machine"},
    {"volumes", refuse, "jobs see the files of the machine"},
    {"service", refuse, service},
    {"replicas", refuse, service},
    {"scaling", refuse, service},
    {"model", refuse, service},
    {"port", refuse, service},
    {"ports", refuse, service},
    {"python", refuse, "use venv or image"},
    {"nvcc", refuse, "use image"},
    {"backends", refuse, here},
    {"regions", refuse, here},
    {"spot_policy", refuse, "say tier: best-effort for a job that may be stopped"},
    {NULL, NULL, NULL},
};
/* clang-format on */
