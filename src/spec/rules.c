/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - see rules.h. Each rule is a function that blames one key. */
#include "spec/rules.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/mig.h"
#include "model/topology.h"
#include "spec/words.h"
#include "when/cron.h"

/* 'path' begins with the key. */
__attribute__((format(printf, 3, 0))) static void note_fault(struct stk_fault *f, const char *path,
                                                             const char *fmt, va_list ap)
{
    (void)snprintf(f->key, sizeof(f->key), "%.*s", (int)strcspn(path, ".["), path);
    (void)snprintf(f->path, sizeof(f->path), "%s", path);
    (void)vsnprintf(f->what, sizeof(f->what), fmt, ap);
}

/* A rule that the schema does not say. */
__attribute__((format(printf, 3, 4))) static int blame(struct stk_fault *f, const char *path,
                                                       const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    note_fault(f, path, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

/* A rule that the schema says, too. */
__attribute__((format(printf, 3, 4))) static int blame_form(struct stk_fault *f, const char *path,
                                                            const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    note_fault(f, path, fmt, ap);
    va_end(ap);
    return -EBADMSG;
}

static int64_t whole(const json_t *spec, const char *key, int64_t standard)
{
    const json_t *v = json_object_get(spec, key);

    return v ? (int64_t)json_integer_value(v) : standard;
}

static const struct stk_key_pair exclusive_keys[] = {
    {"command", "script"},    {"command", "args"},      {"array", "items"},
    {"array", "interactive"}, {"items", "interactive"}, {"priority", "class"},
};

static bool given(const json_t *spec, const char *key)
{
    const json_t *v = json_object_get(spec, key);

    return v && !json_is_false(v);
}

static int exclusive(const json_t *spec, struct stk_fault *f)
{
    for (size_t i = 0; i < sizeof(exclusive_keys) / sizeof(*exclusive_keys); i++) {
        const struct stk_key_pair *p = &exclusive_keys[i];

        if (given(spec, p->key) && given(spec, p->other))
            return blame(f, p->other, "cannot be given together with %s", p->key);
    }
    return 0;
}

const struct stk_key_pair stk_spec_needs[] = {
    {"args", "script"}, {"workers", "items"}, {"image_runtime", "image"}, {NULL, NULL}};

static int needed(const json_t *spec, struct stk_fault *f)
{
    const char *dir = json_string_value(json_object_get(spec, "workdir"));

    for (const struct stk_key_pair *p = stk_spec_needs; p->key; p++)
        if (given(spec, p->key) && !given(spec, p->other))
            return blame_form(f, p->key, "has no meaning without %s", p->other);
    if (given(spec, "image") && given(spec, "workdir") && strpbrk(dir, ":,"))
        return blame(f, "workdir", "must not hold ':' or ',' when there is an image, got \"%s\"",
                     stk_words_show(dir).text);
    if (!given(spec, "command") && !given(spec, "script") && !given(spec, "interactive")) {
        *f = (struct stk_fault){.what = "a job needs a command or a script"};
        return -EBADMSG;
    }
    return 0;
}

static int kind(const json_t *spec, struct stk_fault *f)
{
    const char *k = json_string_value(json_object_get(spec, "kind"));

    if (k && given(spec, "items") && strcmp(k, "batch") != 0)
        return blame(f, "kind", "must be batch when there are items, got \"%s\"", k);
    if (given(spec, "items") && whole(spec, "tasks", 1) > 1)
        return blame(f, "tasks",
                     "cannot be more than 1 with items; workers says how many run at "
                     "a time");
    return 0;
}

/* Whole GPUs, or thousandths of one. */
static int fraction(double gpus, struct stk_fault *f)
{
    double milli = gpus * 1000;

    if (gpus == floor(gpus))
        return 0;
    if (gpus > 1)
        return blame(f, "gpus", "must be a whole number, or part of one GPU below 1, got %g", gpus);
    if (milli < 0.999 || milli > 999.001 || fabs(milli - round(milli)) > 1e-6)
        return blame(f, "gpus", "part of a GPU must be 0.001 to 0.999, in thousandths, got %g",
                     gpus);
    return 0;
}

/* An instance is what its profile says. */
static int instance(const json_t *spec, const char *profile, const char *share, struct stk_fault *f)
{
    if (stk_mig_parse(profile, strlen(profile)) == 0)
        return blame(f, "mig", "must be a MIG profile such as 1g.10gb, got \"%s\"",
                     stk_words_show(profile).text);
    if (json_object_get(spec, "gpus") && json_number_value(json_object_get(spec, "gpus")) != 1)
        return blame(f, "mig", "is one instance per task; leave gpus out");
    if (share && strcmp(share, "mig") != 0)
        return blame(f, "share", "of a MIG instance is mig, got \"%s\"", share);
    if (given(spec, "gpu_mem_mib") || given(spec, "share_max"))
        return blame(f, given(spec, "share_max") ? "share_max" : "gpu_mem_mib",
                     "cannot be given together with mig: an instance is not shared, and its "
                     "profile says how much memory it has");
    return 0;
}

/* Whole GPUs in turns: one seat, one task, and it must be possible to put it to sleep. */
static int seat(const json_t *spec, double gpus, struct stk_fault *f)
{
    const char *suspend = json_string_value(json_object_get(spec, "suspend"));

    if (gpus > 1 || (gpus == 0 && json_object_get(spec, "gpus")))
        return blame(f, "share", "time is for one GPU: gpus 1, or part of it such as 0.5, got %g",
                     gpus);
    if (whole(spec, "tasks", 1) > 1)
        return blame(f, "share",
                     "time takes one task: those of a gang would not have their turns together, "
                     "got tasks %" PRId64,
                     whole(spec, "tasks", 1));
    if (suspend && strcmp(suspend, "never") == 0)
        return blame(f, "share", "time suspends the job between its turns; suspend is never");
    return 0;
}

/* Parts of a GPU, and who shares one. */
static int parts(const json_t *spec, struct stk_fault *f)
{
    const char *profile = json_string_value(json_object_get(spec, "mig"));
    const char *share = json_string_value(json_object_get(spec, "share"));
    double gpus = json_number_value(json_object_get(spec, "gpus"));
    bool mem = whole(spec, "gpu_mem_mib", 0) > 0, some = json_object_get(spec, "gpus") != NULL;
    bool part = (gpus > 0 && gpus < 1) || (!some && mem);

    if (fraction(gpus, f) < 0)
        return -EINVAL;
    if (profile)
        return instance(spec, profile, share, f);
    if (share && strcmp(share, "mig") == 0)
        return blame(f, "share", "mig needs mig: which profile, such as 1g.10gb");
    if (mem && some && gpus == 0)
        return blame(f, "gpu_mem_mib", "has no meaning with 0 GPUs");
    if (share && strcmp(share, "time") == 0)
        return seat(spec, gpus, f);
    if (!part && (share || given(spec, "share_max")))
        return blame(f, share ? "share" : "share_max",
                     "has a meaning only for part of a GPU, such as gpus 0.5");
    return 0;
}

static int amount(const json_t *spec, struct stk_fault *f)
{
    int64_t gpus = (int64_t)ceil(json_number_value(json_object_get(spec, "gpus")));
    int64_t tasks = whole(spec, "tasks", 1);

    if (gpus * tasks > STK_MAX_GPUS)
        return blame(f, "gpus", "times tasks must be at most %d, got %" PRId64 " times %" PRId64,
                     STK_MAX_GPUS, gpus, tasks);
    if (given(spec, "gpu_types") && gpus == 0 && !given(spec, "gpu_mem_mib") &&
        !given(spec, "mig") && !given(spec, "share"))
        return blame(f, "gpu_types", "has no meaning without gpus");
    if (whole(spec, "deadline", INT64_MAX) < whole(spec, "begin", 0))
        return blame(f, "deadline", "is before begin");
    return 0;
}

/* The wish without which all is well; "prefer" when there is more than one. */
static const char *guilty(const struct stk_demand *of)
{
    static const char *const names[] = {"exclusive", "group", "prefer", "topology"};

    for (int i = 0; i < 4; i++) {
        struct stk_demand d = *of;

        d.exclusive = i != 0 && d.exclusive;
        d.group = i == 1 ? 0 : d.group;
        d.group_level = i == 1 ? STK_AT_GPU : d.group_level;
        d.level_preferred = i == 2 ? STK_AT_GPU : d.level_preferred;
        d.level_required = i == 3 ? STK_AT_GPU : d.level_required;
        if (stk_demand_near_check(&d, NULL) == 0)
            return names[i];
    }
    return "prefer";
}

/* Wishes about where its tasks lie. */
static int near(const json_t *spec, struct stk_fault *f)
{
    double gpus = json_number_value(json_object_get(spec, "gpus"));
    bool part = (gpus > 0 && gpus < 1) || given(spec, "mig") || given(spec, "share") ||
                (gpus == 0 && given(spec, "gpu_mem_mib"));
    struct stk_demand d = {.tasks = (uint32_t)whole(spec, "tasks", 1),
                           .gpus = part ? 1 : (uint32_t)gpus,
                           .gpu_milli = part};
    struct stk_err why;

    stk_spec_near(spec, &d);
    if (stk_demand_near_check(&d, &why) == 0)
        return 0;
    return blame(f, guilty(&d), "%s", why.text);
}

static int by_number(const void *a, const void *b)
{
    const json_int_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static int unique(const json_t *list, struct stk_fault *f)
{
    size_t n = json_array_size(list);
    json_int_t *all = calloc(n ? n : 1, sizeof(*all));
    int rc = 0;

    if (!all)
        return blame(f, "array", "out of memory");
    for (size_t i = 0; i < n; i++)
        all[i] = json_integer_value(json_array_get(list, i));
    qsort(all, n, sizeof(*all), by_number);
    for (size_t i = 1; i < n && rc == 0; i++)
        if (all[i] == all[i - 1])
            rc = blame_form(f, "array.indices", "has %" JSON_INTEGER_FORMAT " twice", all[i]);
    free(all);
    return rc;
}

static int array(const json_t *spec, struct stk_fault *f)
{
    const json_t *a = json_object_get(spec, "array"), *list = json_object_get(a, "indices");
    int64_t first = whole(a, "first", 0), last = whole(a, "last", -1), step = whole(a, "step", 1);

    if (!a)
        return 0;
    if (list && (last >= 0 || json_object_get(a, "first") || json_object_get(a, "step")))
        return blame_form(f, "array", "has either indices or first, last and step");
    if (list)
        return unique(list, f);
    if (last < 0)
        return blame_form(f, "array", "needs indices, or first and last");
    if (last < first)
        return blame(f, "array.last", "must not be below first (%" PRId64 "), got %" PRId64, first,
                     last);
    if ((last - first) / step + 1 > STK_MAX_ARRAY)
        return blame(f, "array", "has at most %d elements, got %" PRId64, STK_MAX_ARRAY,
                     (last - first) / step + 1);
    return 0;
}

static int depends(const json_t *spec, struct stk_fault *f)
{
    const json_t *list = json_object_get(spec, "depends");

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *d = json_array_get(list, i);
        const char *type = json_string_value(json_object_get(d, "type"));
        char path[48];

        (void)snprintf(path, sizeof(path), "depends[%zu]", i);
        if (type && strcmp(type, "aftercorr") == 0 && !json_object_get(spec, "array"))
            return blame(f, path, "aftercorr has a meaning only for an array");
        if (type && strcmp(type, "aftercorr") == 0 && json_object_get(d, "index"))
            return blame(f, path, "aftercorr takes its index from this array");
    }
    return 0;
}

static int schedule(const json_t *spec, struct stk_fault *f)
{
    static const char *const others[] = {"begin",   "deadline",  "hold",
                                         "depends", "singleton", "interactive"};
    const json_t *o = json_object_get(spec, "schedule");
    struct stk_cron c;
    struct stk_err err;

    if (!o)
        return 0;
    if (stk_cron_parse(json_string_value(json_object_get(o, "cron")), &c, &err) < 0)
        return blame(f, "schedule.cron", "%s", err.text);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (given(spec, others[i]))
            return blame(f, others[i], "cannot be given together with schedule");
    return 0;
}

static int retry(const json_t *spec, struct stk_fault *f)
{
    const json_t *o = json_object_get(spec, "retry"), *error = json_object_get(o, "error");

    if (json_object_get(o, "exit_codes") && (!error || json_integer_value(error) == 0) &&
        !json_is_string(error))
        return blame(f, "retry.exit_codes", "has no meaning without retry.error: how often");
    return 0;
}

static int rlimits(const json_t *spec, struct stk_fault *f)
{
    json_t *all = json_object_get(spec, "rlimits"), *v;
    const char *name;

    json_object_foreach(all, name, v)
    {
        json_int_t soft = json_integer_value(json_array_get(v, 0)),
                   hard = json_integer_value(json_array_get(v, 1));
        char path[48];

        (void)snprintf(path, sizeof(path), "rlimits.%.20s", name);
        if (json_array_size(v) != 2)
            return blame(f, path, "must be two numbers: the soft limit and the hard one");
        if (hard >= 0 && (soft < 0 || soft > hard))
            return blame(f, path, "the soft limit is above the hard one");
    }
    return 0;
}

static int secrets(const json_t *spec, struct stk_fault *f)
{
    json_t *all = json_object_get(spec, "secrets"), *envs = json_object_get(spec, "envs");

    for (void *it = json_object_iter(all); it; it = json_object_iter_next(all, it)) {
        if (json_object_get(envs, json_object_iter_key(it)))
            return blame(f, "secrets", "%s is in envs too",
                         stk_words_show(json_object_iter_key(it)).text);
    }
    return 0;
}

int stk_spec_rules(const json_t *spec, struct stk_fault *ret)
{
    static int (*const rules[])(const json_t *, struct stk_fault *) = {
        exclusive, needed,  kind,     parts, amount,  near,
        array,     depends, schedule, retry, rlimits, secrets};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(rules) / sizeof(*rules); i++)
        rc = rules[i](spec, ret);
    return rc;
}
