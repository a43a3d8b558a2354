/* SPDX-License-Identifier: Apache-2.0 */
/* describe.c - options to members of the description. Most are a row of a table; those with a
 * little language of their own have a function. What the daemon checks anyway is not checked
 * here, but for what would be lost on the way. */
#include "cli/describe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "spec/spec.h"
#include "spec/words.h"

enum kind { TEXT, WHOLE, REAL, MINUTES, SECONDS, SIZE, TIME, NO, YES, NEVER };

static const struct {
    const char *option, *key;
    enum kind kind;
} rows[] = {
    {"gpus", "gpus", REAL},
    {"gpu-mem", "gpu_mem_mib", SIZE},
    {"share", "share", TEXT},
    {"share-max", "share_max", WHOLE},
    {"mig", "mig", TEXT},
    {"tasks", "tasks", WHOLE},
    {"tasks-per-node", "tasks_per_node", WHOLE},
    {"topology", "topology", TEXT},
    {"prefer", "prefer", TEXT},
    {"constraint", "constraint", TEXT},
    {"exclusive", "exclusive", YES},
    {"cpus", "cpus", REAL},
    {"mem", "mem_mib", SIZE},
    {"pids", "pids", WHOLE},
    {"time", "time_limit_s", MINUTES},
    {"estimate", "estimate_s", MINUTES},
    {"pool", "pool", TEXT},
    {"name", "name", TEXT},
    {"priority", "priority", WHOLE},
    {"tier", "tier", TEXT},
    {"queue", "queue", TEXT},
    {"class", "class", TEXT},
    {"tenant", "tenant", TEXT},
    {"hold", "hold", YES},
    {"begin", "begin", TIME},
    {"reservation", "reservation", TEXT},
    {"deadline", "deadline", TIME},
    {"deadline-required", "deadline_required", YES},
    {"no-requeue", "requeue", NO},
    {"comment", "comment", TEXT},
    {"setup", "setup", TEXT},
    {"image", "image", TEXT},
    {"image-runtime", "image_runtime", TEXT},
    {"launch", "launch", TEXT},
    {"workers", "workers", WHOLE},
    {"grace", "grace_s", SECONDS},
    {"no-suspend", "suspend", NEVER},
    {"min-run", "min_run_s", SECONDS},
    {"movable", "movable", YES},
    {"stdout", "stdout", TEXT},
    {"stderr", "stderr", TEXT},
    {"stdin", "stdin", TEXT},
    {"log-max", "log_max_mib", SIZE},
};

static int whole(const char *s, json_t **ret)
{
    char *end = NULL;
    long long v;

    errno = 0;
    v = strtoll(s, &end, 10);
    if (end == s || *end != '\0' || errno != 0)
        return -EINVAL;
    *ret = json_integer(v);
    return 0;
}

static int real(const char *s, json_t **ret)
{
    char *end = NULL;
    double v;

    if (whole(s, ret) == 0)
        return 0;
    errno = 0;
    v = strtod(s, &end);
    if (end == s || *end != '\0' || errno != 0 || !(v >= 0 && v <= 1e9))
        return -EINVAL;
    *ret = json_real(v);
    return 0;
}

/* What is wrong with it, where there is more to say than what the option takes, is in 'err'. */
static int convert(enum kind kind, const char *s, json_t **ret, struct stk_err *err)
{
    int64_t v = 0;
    int rc = 0;

    switch (kind) {
    case WHOLE:
        return whole(s, ret);
    case REAL:
        return real(s, ret);
    case MINUTES:
    case SECONDS:
        rc = stk_words_duration(s, kind == MINUTES ? 60 : 1, &v);
        break;
    case SIZE:
        rc = stk_words_size(s, 'M', &v);
        break;
    case TIME:
        rc = stk_words_time(s, (int64_t)time(NULL), &v, err);
        break;
    case NO:
    case YES:
        *ret = json_boolean(kind == YES);
        return 0;
    case NEVER:
        *ret = json_string("never");
        return 0;
    default:
        *ret = json_string(s);
        return *ret ? 0 : -EINVAL;
    }
    if (rc == 0)
        *ret = json_integer(v);
    return rc;
}

static const char *example(enum kind kind)
{
    switch (kind) {
    case WHOLE:
        return "a whole number";
    case REAL:
        return "a number";
    case MINUTES:
        return "a time such as 90m, 1h30m or 1:30:00";
    case SECONDS:
        return "a time such as 30, 90s or 2m";
    case SIZE:
        return "a size such as 512M or 32G";
    case TIME:
        return "a time such as now+1h, 16:00, tomorrow or 2026-01-31T08:00";
    default:
        return "text in UTF-8";
    }
}

/* "none" as the value of an option that changes a job: without it. */
static bool taken_away(size_t row, const char *s)
{
    const enum kind kind = rows[row].kind;

    return strcmp(s, "none") == 0 &&
           (kind == WHOLE || kind == SIZE || kind == TIME ||
            strcmp(rows[row].key, "topology") == 0 || strcmp(rows[row].key, "constraint") == 0 ||
            strcmp(rows[row].key, "prefer") == 0);
}

static int simple_options(const struct stk_args *a, bool changes, json_t *spec, struct stk_err *err)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const char *s = stk_arg_known(a, rows[i].option) ? stk_arg(a, rows[i].option) : NULL;
        struct stk_err why = {""};
        json_t *v = NULL;

        if (!s)
            continue;
        if (changes && taken_away(i, s))
            v = json_null();
        else if (convert(rows[i].kind, s, &v, &why) < 0 && why.text[0])
            return stk_err_set(err, -EINVAL, "--%s %s", rows[i].option, why.text);
        else if (!v)
            return stk_err_set(err, -EINVAL, "--%s takes %s, got \"%.40s\"", rows[i].option,
                               example(rows[i].kind), s);
        (void)json_object_set_new(spec, rows[i].key, v);
    }
    return 0;
}

static int group(const struct stk_args *a, json_t *spec, struct stk_err *err)
{
    const char *s = stk_arg(a, "group"), *colon = s ? strchr(s, ':') : NULL;
    char *end = NULL;
    long long n;

    if (!s)
        return 0;
    errno = 0;
    n = strtoll(s, &end, 10);
    if (!colon || end != colon || end == s || errno != 0 || colon[1] == '\0')
        return stk_err_set(err, -EINVAL, "--group takes N:LEVEL such as 8:link, got \"%.40s\"", s);
    return json_object_set_new(spec, "group",
                               json_pack("{s:I,s:s}", "tasks", (json_int_t)n, "level", colon + 1));
}

/* One "name=value" of a list with commas: copies both; the rest of the list, or NULL. */
static const char *next_pair(const char *s, char name[64], char value[64])
{
    size_t n = strcspn(s, ",="), k;

    if (s[n] != '=' || n == 0 || n >= 64)
        return NULL;
    k = strcspn(s + n + 1, ",");
    if (k == 0 || k >= 64)
        return NULL;
    (void)snprintf(name, 64, "%.*s", (int)n, s);
    (void)snprintf(value, 64, "%.*s", (int)k, s + n + 1);
    s += n + 1 + k;
    return *s == ',' ? s + 1 : s;
}

/* "h100:1,a100:0.5": into 'speeds', in order; those without one have speed 1. */
static int add_types(const char *s, json_t *speeds, bool *unlike, struct stk_err *err)
{
    do {
        size_t len = strcspn(s, ","), name = strcspn(s, ":,");
        char text[32] = "1";
        json_t *v = NULL;

        if (name < len)
            (void)snprintf(text, sizeof(text), "%.*s", (int)(len - name - 1), s + name + 1);
        *unlike |= name < len;
        if (name == 0 || real(text, &v) < 0 || json_object_setn_new(speeds, s, name, v) < 0)
            return stk_err_set(err, -EINVAL,
                               "--gpu-type takes TYPE[:SPEED] joined by commas such as "
                               "h100:1,a100:0.5, got \"%.40s\"",
                               s);
        s += len + (s[len] == ',');
    } while (*s != '\0');
    return 0;
}

static int gpu_types(const struct stk_args *a, json_t *spec, struct stk_err *err)
{
    json_t *speeds = json_object(), *list = json_array();
    bool unlike = false;
    const char *s;
    int at = 0, rc = 0;

    while (rc == 0 && (s = stk_arg_next(a, "gpu-type", &at)) != NULL)
        rc = add_types(s, speeds, &unlike, err);
    for (void *it = json_object_iter(speeds); it; it = json_object_iter_next(speeds, it))
        (void)json_array_append_new(list, json_string(json_object_iter_key(it)));
    if (rc == 0 && json_array_size(list) > 0)
        (void)json_object_set(spec, "gpu_types", unlike ? speeds : list);
    json_decref(speeds);
    json_decref(list);
    return rc;
}

/* "nvme_gib=100", several joined by commas. */
static int add_resources(const char *s, json_t *all)
{
    char name[64], value[64];

    do {
        json_t *v = NULL;

        s = next_pair(s, name, value);
        if (!s || whole(value, &v) < 0 || json_object_set_new(all, name, v) < 0)
            return -EINVAL;
    } while (*s != '\0');
    return 0;
}

static int resources(const struct stk_args *a, json_t *spec, struct stk_err *err)
{
    json_t *all = json_object();
    const char *s;
    int at = 0, rc = 0;

    while (rc == 0 && (s = stk_arg_next(a, "resource", &at)) != NULL)
        if (add_resources(s, all) < 0)
            rc = stk_err_set(err, -EINVAL,
                             "--resource takes NAME=N such as nvme_gib=100, got \"%.40s\"", s);
    if (rc == 0 && json_object_size(all) > 0)
        (void)json_object_set(spec, "resources", all);
    json_decref(all);
    return rc;
}

/* Nodes by name. */
static int node_names(const struct stk_args *a, const char *option, json_t *spec,
                      struct stk_err *err)
{
    json_t *list = json_array();
    struct stk_err why = {""};
    const char *s;
    int at = 0, rc = 0;

    while (rc == 0 && (s = stk_arg_next(a, option, &at)) != NULL) {
        rc = stk_words_nodes(s, list, &why);
        if (rc < 0)
            (void)stk_err_set(err, rc, "--%s %.200s", option, why.text);
    }
    if (rc == 0 && json_array_size(list) > 0)
        (void)json_object_set(spec, option, list);
    json_decref(list);
    return rc;
}

static int depends(const struct stk_args *a, json_t *spec, struct stk_err *err)
{
    static const char *const names[] = {"after", "depends"};
    json_t *list = json_array();
    bool singleton = false;
    int rc = 0;

    for (int i = 0; i < 2; i++) {
        const char *s;
        int at = 0;

        while (rc == 0 && (s = stk_arg_next(a, names[i], &at)) != NULL)
            rc = stk_words_depend(s, list, &singleton, err);
    }
    if (rc == 0 && json_array_size(list) > 0)
        (void)json_object_set(spec, "depends", list);
    if (rc == 0 && singleton)
        (void)json_object_set_new(spec, "singleton", json_true());
    json_decref(list);
    return rc;
}

static int retry_count(json_t *rules, const char *name, const char *s)
{
    int64_t n = 0;

    if (strcmp(s, "always") == 0)
        return json_object_set_new(rules, name, json_string("always"));
    if (stk_words_whole(s, 254, &n) < 0)
        return -EINVAL;
    return json_object_set_new(rules, name, json_integer(n));
}

/* "error=2,oom=1,exit=75,exit=76", "3", "always" */
static int retry(const char *s, json_t *spec, struct stk_err *err)
{
    json_t *rules = json_object(), *codes = json_array();
    char name[64], value[64];
    int rc = s[strcspn(s, "=")] == '\0' ? retry_count(rules, "error", s) : 0;

    (void)json_object_set_new(spec, "retry", rules);
    while (rc == 0 && strchr(s, '=')) {
        int64_t code = 0;

        s = next_pair(s, name, value);
        rc = -EINVAL;
        if (!s)
            break;
        if (strcmp(name, "exit") == 0 && stk_words_whole(value, 255, &code) == 0)
            rc = json_array_append_new(codes, json_integer(code));
        else if (strcmp(name, "error") == 0 || strcmp(name, "oom") == 0 ||
                 strcmp(name, "timeout") == 0 || strcmp(name, "node") == 0)
            rc = retry_count(rules, name, value);
    }
    if (rc == 0 && json_array_size(codes) > 0)
        (void)json_object_set(rules, "exit_codes", codes);
    json_decref(codes);
    return rc == 0 ? 0
                   : stk_err_set(err, -EINVAL,
                                 "--retry takes N, always, or error=N,oom=N,timeout=N,node=N,"
                                 "exit=CODE with N from 0 to 254");
}

static int idle(const char *s, json_t *spec, struct stk_err *err)
{
    json_t *rules = json_object();
    char name[64], value[64], key[72];

    (void)json_object_set_new(spec, "idle", rules);
    do {
        int64_t v = 0;

        s = next_pair(s, name, value);
        if (!s || stk_words_duration(value, 1, &v) < 0 ||
            (strcmp(name, "warn") != 0 && strcmp(name, "suspend") != 0 && strcmp(name, "end") != 0))
            return stk_err_set(err, -EINVAL, "--idle takes warn=10m,suspend=20m,end=1h");
        (void)snprintf(key, sizeof(key), "%s_s", name);
        (void)json_object_set_new(rules, key, json_integer(v));
    } while (*s != '\0');
    return 0;
}

static int keep_up(const struct stk_args *a, json_t *spec, struct stk_err *err)
{
    const char *s = stk_arg(a, "keep-up"), *colon = s ? strrchr(s, ':') : NULL;
    json_t *min = NULL, *name;

    if (!s)
        return 0;
    name = colon && colon > s && whole(colon + 1, &min) == 0 ? json_stringn(s, (size_t)(colon - s))
                                                             : NULL;
    if (!name) {
        json_decref(min);
        return stk_err_set(err, -EINVAL, "--keep-up takes a group and a number: serving:3");
    }
    return json_object_set_new(spec, "keep_up", json_pack("{s:o,s:o}", "group", name, "min", min));
}

static int languages(const struct stk_args *a, json_t *spec, struct stk_err *err)
{
    const char *array = stk_arg(a, "array"), *signal = stk_arg(a, "signal");
    json_t *v = NULL;
    int rc = depends(a, spec, err);

    rc = rc < 0 ? rc : group(a, spec, err);
    rc = rc < 0 ? rc : keep_up(a, spec, err);
    rc = rc < 0 ? rc : gpu_types(a, spec, err);
    rc = rc < 0 ? rc : resources(a, spec, err);
    rc = rc < 0 ? rc : node_names(a, "nodelist", spec, err);
    rc = rc < 0 ? rc : node_names(a, "exclude", spec, err);
    if (rc == 0 && array && (rc = stk_words_array(array, &v, err)) == 0)
        (void)json_object_set_new(spec, "array", v);
    if (rc == 0 && signal && (rc = stk_words_signal_ahead(signal, &v, err)) == 0)
        (void)json_object_set_new(spec, "signal", v);
    if (rc == 0 && stk_arg(a, "retry"))
        rc = retry(stk_arg(a, "retry"), spec, err);
    if (rc == 0 && stk_arg(a, "idle"))
        rc = idle(stk_arg(a, "idle"), spec, err);
    return rc;
}

/* Nothing to run: for "shell" that is the user's shell. */
static json_t *login_shell(void)
{
    const char *shell = getenv("SHELL");

    return json_pack("{s:[s], s:s, s:s}", "command", shell && shell[0] == '/' ? shell : "/bin/sh",
                     "kind", "shell", "name", "interactive");
}

int stk_describe(const struct stk_args *a, bool shell, json_t **ret_spec, struct stk_err *err)
{
    json_t *spec = NULL;
    int rc = 0;

    if (shell && a->n_words == 0)
        spec = login_shell();
    else
        rc = stk_describe_words(a, &spec, err);
    rc = rc < 0 ? rc : simple_options(a, false, spec, err);
    rc = rc < 0 ? rc : languages(a, spec, err);
    rc = rc < 0 ? rc : stk_describe_context(a, spec, err);
    rc = rc < 0 ? rc : stk_spec_check(spec, err);
    if (rc < 0)
        json_decref(spec);
    else
        *ret_spec = spec;
    return rc;
}

int stk_describe_changes(const struct stk_args *a, json_t *changes, struct stk_err *err)
{
    const char *types = stk_arg(a, "gpu-type"), *exclusive = stk_arg(a, "exclusive");
    static const char *const lists[] = {"nodelist", "exclude"};
    int rc = simple_options(a, true, changes, err);

    for (int i = 0; i < 2 && rc == 0; i++)
        if (stk_arg(a, lists[i]) && strcmp(stk_arg(a, lists[i]), "none") == 0)
            (void)json_object_set_new(changes, lists[i], json_null());
        else
            rc = node_names(a, lists[i], changes, err);

    if (types && strcmp(types, "any") == 0)
        (void)json_object_set_new(changes, "gpu_types", json_null());
    else
        rc = rc < 0 ? rc : gpu_types(a, changes, err);
    if (exclusive && strcmp(exclusive, "yes") != 0 && strcmp(exclusive, "no") != 0)
        return stk_err_set(err, -EINVAL, "--exclusive takes yes or no, got \"%.40s\"", exclusive);
    if (exclusive)
        (void)json_object_set_new(changes, "exclusive",
                                  json_boolean(strcmp(exclusive, "yes") == 0));
    return rc < 0 ? rc : resources(a, changes, err);
}
