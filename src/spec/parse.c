/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - a checked description into the values the scheduler works with. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/mig.h"
#include "model/topology.h"
#include "spec/keys.h"
#include "spec/spec.h"
#include "spec/words.h"
#include "sys/json.h"

#define STANDARD_OUT "stoker-%j.out"
#define STK_SEATS 2 /* who take turns on a GPU, when nothing is said */
#define STANDARD_ARRAY_OUT "stoker-%A_%a.out"

static int64_t whole(const json_t *o, const char *key, int64_t standard)
{
    const json_t *v = json_object_get(o, key);

    return v ? (int64_t)json_integer_value(v) : standard;
}

static void read_queue(const json_t *o, struct stk_spec *s)
{
    const char *tier = stk_str_or(o, "tier", NULL);

    s->queue = stk_str_or(o, "queue", NULL);
    s->qos = stk_str_or(o, "qos", NULL);
    s->class_name = stk_str_or(o, "class", NULL);
    s->tenant = stk_str_or(o, "tenant", NULL);
    s->reservation = stk_str_or(o, "reservation", NULL);
    s->account = stk_str_or(o, "account", NULL);
    s->nice = (int32_t)whole(o, "nice", 0);
    s->priority_said = json_object_get(o, "priority") != NULL;
    s->tier_said = tier != NULL;
    s->job.priority = (int32_t)whole(o, "priority", 0);
    for (int t = 0; tier && t < STK_TIER_MAX; t++)
        if (strcmp(tier, stk_tier_name((enum stk_tier)t)) == 0)
            s->job.tier = (enum stk_tier)t;
}

static void read_kind(const json_t *o, struct stk_job_spec *job)
{
    const char *kind = stk_str_or(o, "kind", NULL);

    job->kind = json_object_get(o, "items")                       ? STK_KIND_BATCH
                : json_is_true(json_object_get(o, "interactive")) ? STK_KIND_SHELL
                                                                  : STK_KIND_TRAIN;
    for (int k = 0; kind && k < STK_KIND_MAX; k++)
        if (strcmp(kind, stk_kind_name((enum stk_job_kind)k)) == 0)
            job->kind = (enum stk_job_kind)k;
}

static void read_retry(const json_t *o, struct stk_job_spec *job)
{
    const json_t *retry = json_object_get(o, "retry");

    for (int r = 0; r < STK_RETRY_MAX; r++) {
        const json_t *v = json_object_get(retry, stk_retry_name((enum stk_retry)r));

        job->retry[r] = json_is_string(v) ? STK_RETRY_ALWAYS : (uint8_t)json_integer_value(v);
    }
    if (json_is_false(json_object_get(o, "requeue")))
        memset(job->retry, 0, sizeof(job->retry));
}

/* Who takes turns has a seat: so much of the GPU's time, and all of its memory. */
static void read_seat(struct stk_spec *s)
{
    struct stk_demand *d = &s->job.demand;

    d->gpus = 1;
    s->by_memory = false;
    if (d->gpu_milli)
        return;
    d->share_max = d->share_max ? d->share_max : STK_SEATS;
    d->gpu_milli = (uint16_t)(d->share_max > 1 ? 1000 / d->share_max : 999);
}

/* Part of a GPU is gpus 1 and thousandths of it. */
static void read_gpus(const json_t *o, struct stk_spec *s)
{
    struct stk_demand *d = &s->job.demand;
    const char *mig = stk_str_or(o, "mig", NULL), *share = stk_str_or(o, "share", NULL);
    double gpus = json_number_value(json_object_get(o, "gpus"));

    d->gpus = gpus < 1 && gpus > 0 ? 1 : (uint32_t)gpus;
    d->gpu_milli = gpus < 1 ? (uint16_t)lround(gpus * 1000) : 0;
    d->gpu_mem_mib = (uint32_t)whole(o, "gpu_mem_mib", 0);
    d->share_max = (uint8_t)whole(o, "share_max", 0);
    s->by_memory = !json_object_get(o, "gpus") && d->gpu_mem_mib > 0;
    s->share_said = share != NULL;
    for (int i = 0; share && i < STK_SHARE_MAX; i++)
        if (strcmp(share, stk_share_name((enum stk_share)i)) == 0)
            d->share = (uint8_t)i;
    if (d->share == STK_SHARE_TIME)
        read_seat(s);
    if (mig) {
        d->mig = stk_mig_parse(mig, strlen(mig));
        d->gpu_milli = (uint16_t)stk_mig_milli(d->mig);
    }
    if (mig || s->by_memory)
        d->gpus = 1;
}

static uint8_t level(const json_t *o, const char *key)
{
    const char *word = stk_str(o, key);

    return (uint8_t)stk_level_of(word, strlen(word));
}

void stk_spec_near(const json_t *checked, struct stk_demand *d)
{
    const json_t *o = checked, *group = json_object_get(o, "group");
    uint32_t per_node = (uint32_t)whole(o, "tasks_per_node", 0);

    d->level_required = level(o, "topology");
    d->level_preferred = level(o, "prefer");
    d->group = (uint32_t)whole(group, "tasks", 0);
    d->group_level = level(group, "level");
    d->per_node = per_node && d->tasks % per_node == 0 && !d->gpu_milli ? per_node : 0;
    d->exclusive = json_is_true(json_object_get(o, "exclusive"));
}

/* What it asks for, or the share that the server gave it (live/cpu_share.c). */
static uint32_t cpu_milli(const json_t *o)
{
    const json_t *share = json_object_get(o, "cpu_share");

    return (uint32_t)lround(json_number_value(share ? share : json_object_get(o, "cpus")) * 1000);
}

static void read_job(const json_t *o, struct stk_spec *s)
{
    struct stk_job_spec *job = &s->job;

    job->demand.tasks = (uint32_t)whole(o, "tasks", 1);
    read_gpus(o, s);
    job->demand.gpu_types = STK_ANY_GPU_TYPE;
    job->demand.cpu_milli = cpu_milli(o);
    job->demand.mem_mib = (uint32_t)whole(o, "mem_mib", 0);
    stk_spec_near(o, &job->demand);
    if (s->by_memory)
        job->demand.per_node = 0; /* it will be part of a GPU */
    read_kind(o, job);
    read_queue(o, s);
    read_retry(o, job);
    s->time_limit = whole(o, "time_limit_s", 0) * STK_SECOND;
    job->estimate = whole(o, "estimate_s", s->time_limit / STK_SECOND) * STK_SECOND;
    job->begin = whole(o, "begin", 0) * STK_SECOND;
    job->held = json_is_true(json_object_get(o, "hold"));
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static int read_array(const json_t *o, struct stk_spec *s)
{
    const json_t *a = json_object_get(o, "array"), *list = json_object_get(a, "indices");
    int64_t first = whole(a, "first", 0), step = whole(a, "step", 1);
    size_t n;

    if (!a)
        return 0;
    n = list ? json_array_size(list) : (size_t)((whole(a, "last", first) - first) / step + 1);
    s->indices = calloc(n, sizeof(*s->indices));
    if (!s->indices)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        s->indices[i] = (uint32_t)(list ? json_integer_value(json_array_get(list, i))
                                        : first + (int64_t)i * step);
    if (list)
        qsort(s->indices, n, sizeof(*s->indices), by_number);
    s->n_indices = (uint32_t)n;
    s->array_limit = (uint32_t)whole(a, "limit", 0);
    return 0;
}

static int read_depends(const json_t *o, struct stk_spec *s)
{
    const json_t *list = json_object_get(o, "depends");
    size_t n = json_array_size(list);

    if (n == 0)
        return 0;
    s->deps = calloc(n, sizeof(*s->deps));
    if (!s->deps)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const json_t *d = json_array_get(list, i);
        const char *type = stk_str(d, "type");

        s->deps[i].corresponding = strcmp(type, "aftercorr") == 0;
        s->deps[i].job = (uint32_t)whole(d, "job", 0);
        s->deps[i].index = whole(d, "index", -1);
        for (int t = 0; t < STK_DEP_TYPE_MAX; t++)
            if (strcmp(type, stk_dep_type_name((enum stk_dep_type)t)) == 0)
                s->deps[i].type = (enum stk_dep_type)t;
    }
    s->n_deps = (uint32_t)n;
    return 0;
}

static int read_gpu_types(const json_t *o, struct stk_spec *s)
{
    json_t *list = json_object_get(o, "gpu_types");
    size_t n = json_is_object(list) ? json_object_size(list) : json_array_size(list);
    uint32_t i = 0;

    if (n == 0)
        return 0;
    s->gpu_types = calloc(n, sizeof(*s->gpu_types));
    s->gpu_speeds = calloc(n, sizeof(*s->gpu_speeds));
    if (!s->gpu_types || !s->gpu_speeds)
        return -ENOMEM;
    for (void *it = json_object_iter(list); it; it = json_object_iter_next(list, it)) {
        s->gpu_types[i] = json_object_iter_key(it);
        s->gpu_speeds[i++] =
            (uint32_t)lround(json_number_value(json_object_iter_value(it)) * STK_SPEED);
    }
    for (; i < n; i++) {
        s->gpu_types[i] = json_string_value(json_array_get(list, i));
        s->gpu_speeds[i] = STK_SPEED;
    }
    s->n_gpu_types = (uint32_t)n;
    return 0;
}

/* Members in order, so that what is the same is the same text. */
static int read_where(const json_t *o, struct stk_spec *s)
{
    static const char *const keys[] = {"nodelist", "exclude", "constraint"};
    json_t *where = json_object();

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (json_object_get(o, keys[i]))
            (void)json_object_set(where, keys[i], json_object_get(o, keys[i]));
    s->where =
        json_object_size(where) > 0 ? json_dumps(where, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(where);
    return json_object_get(o, "nodelist") && !s->where ? -ENOMEM : 0;
}

static void read_resources(const json_t *o, struct stk_spec *s)
{
    json_t *all = json_object_get(o, "resources");

    for (void *it = json_object_iter(all); it; it = json_object_iter_next(all, it)) {
        json_int_t n = json_integer_value(json_object_iter_value(it));

        if (n == 0 || s->n_resources == STK_MAX_RESOURCES)
            continue;
        s->resources[s->n_resources] = json_object_iter_key(it);
        s->amounts[s->n_resources++] = (uint32_t)n;
    }
}

/* The program's name when the job has none of its own. */
static const char *standard_name(const json_t *o)
{
    const char *program = json_string_value(json_array_get(json_object_get(o, "command"), 0));
    const char *slash = program ? strrchr(program, '/') : NULL;
    const char *name = slash ? slash + 1 : program;

    if (name && *name != '\0' && strlen(name) <= 128 &&
        stk_words_is_text(name, strlen(name), false))
        return name;
    return json_is_true(json_object_get(o, "interactive")) ? "interactive" : "job";
}

/* What it says about giving way. */
static void read_terms(const json_t *o, struct stk_spec *s)
{
    const json_t *keep = json_object_get(o, "keep_up");
    struct stk_terms *t = &s->job.terms;

    t->no_sleep = !s->may_suspend;
    t->signals = json_object_get(o, "signal") != NULL;
    t->min_run = whole(o, "min_run_s", 0) * STK_SECOND;
    t->plain = json_is_true(json_object_get(o, "plain")); /* the server says so */
    t->movable = json_is_true(json_object_get(o, "movable"));
    s->keep_up = stk_str_or(keep, "group", NULL);
    t->group_min = (uint32_t)whole(keep, "min", 0);
}

static void read_rest(const json_t *o, struct stk_spec *s)
{
    const char *cron = stk_str_or(json_object_get(o, "schedule"), "cron", NULL);

    s->scheduled = cron && stk_cron_parse(cron, &s->cron, NULL) == 0;
    s->name = stk_str_or(o, "name", standard_name(o));
    s->pool = stk_str_or(o, "pool", NULL);
    s->singleton = json_is_true(json_object_get(o, "singleton"));
    s->interactive = json_is_true(json_object_get(o, "interactive"));
    s->launch_once = strcmp(stk_str_or(o, "launch", "tasks"), "once") == 0;
    s->requeue = !json_is_false(json_object_get(o, "requeue"));
    s->may_suspend = strcmp(stk_str_or(o, "suspend", "auto"), "never") != 0;
    read_terms(o, s);
    s->n_items = (uint32_t)json_array_size(json_object_get(o, "items"));
    s->workers = (uint32_t)whole(o, "workers", 1);
    s->tasks_per_node = (uint32_t)whole(o, "tasks_per_node", 0);
    s->job.terms.deadline = whole(o, "deadline", 0) * STK_SECOND;
    s->deadline_required = json_is_true(json_object_get(o, "deadline_required"));
    s->out = stk_str_or(o, "stdout", s->n_indices > 0 ? STANDARD_ARRAY_OUT : STANDARD_OUT);
    s->err = stk_str_or(o, "stderr", NULL);
}

int stk_spec_parse(const json_t *checked, struct stk_spec *ret, struct stk_err *err)
{
    struct stk_spec s = {.source = json_incref(stk_json_loose(checked))};
    int rc;

    read_job(checked, &s);
    rc = read_array(checked, &s);
    if (rc == 0)
        rc = read_depends(checked, &s);
    if (rc == 0)
        rc = read_gpu_types(checked, &s);
    if (rc == 0)
        rc = read_where(checked, &s);
    if (rc < 0) {
        stk_spec_done(&s);
        return stk_err_set(err, rc, "out of memory");
    }
    read_resources(checked, &s);
    read_rest(checked, &s);
    *ret = s;
    return 0;
}

void stk_spec_done(struct stk_spec *s)
{
    free(s->indices);
    free(s->deps);
    free(s->gpu_types);
    free(s->gpu_speeds);
    free(s->where);
    json_decref(s->source);
    *s = (struct stk_spec){0};
}
