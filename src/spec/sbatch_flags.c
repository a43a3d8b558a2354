/* SPDX-License-Identifier: Apache-2.0 */
/* sbatch_flags.c - see sbatch_flags.h. A flag's function gets its value and either keeps it or says
 * why not; the caller puts the flag and the line in front of the sentence. */
#include "spec/sbatch_flags.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/demand.h"
#include "model/job.h"
#include "model/mig.h"
#include "model/where.h"
#include "spec/words.h"

static int put(struct stk_sbatch *s, const char *key, json_t *take_value, struct stk_err *err)
{
    return json_object_set_new(s->job, key, take_value) < 0
               ? stk_err_set(err, -EINVAL, "is not text in UTF-8")
               : 0;
}

static int64_t *number_at(struct stk_sbatch *s, const struct stk_flag *f)
{
    return (int64_t *)(void *)((char *)s + f->member);
}

static int set_number(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                      struct stk_err *err)
{
    int64_t n;

    if (stk_words_whole(v, STK_MAX_TASKS, &n) < 0 || n == 0)
        return stk_err_set(err, -EINVAL, "must be a whole number from 1 to %d, got \"%s\"",
                           STK_MAX_TASKS, stk_words_show(v).text);
    *number_at(s, f) = n;
    return 0;
}

/* "2", "2-4": the fewest nodes that will do. */
static int set_nodes(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                     struct stk_err *err)
{
    const char *dash = strchr(v, '-');
    char first[12] = "";
    int64_t most;

    if (!dash)
        return set_number(s, f, v, err);
    if ((size_t)(dash - v) >= sizeof(first) || stk_words_whole(dash + 1, STK_MAX_TASKS, &most) < 0)
        return stk_err_set(err, -EINVAL, "must be a number of nodes such as 2 or 2-4, got \"%s\"",
                           stk_words_show(v).text);
    memcpy(first, v, (size_t)(dash - v));
    return set_number(s, f, first, err);
}

static int set_true(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                    struct stk_err *err)
{
    (void)v;
    (void)err;
    *(bool *)(void *)((char *)s + f->member) = true;
    return 0;
}

static int set_string(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                      struct stk_err *err)
{
    char **at = (char **)(void *)((char *)s + f->member), *copy = strdup(v);

    if (!copy)
        return stk_err_set(err, -ENOMEM, "out of memory");
    free(*at);
    *at = copy;
    return 0;
}

static int set_label(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                     struct stk_err *err)
{
    return put(s, f->text, json_string(v), err);
}

static int set_pattern(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                       struct stk_err *err)
{
    char bad = stk_words_bad_pattern(v);

    if (bad)
        return stk_err_set(err, -EINVAL,
                           "does not know %%%c; there are %%j %%A %%a %%x %%t %%N %%u %%%%", bad);
    return put(s, f->text, json_string(v), err);
}

static int set_key_true(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                        struct stk_err *err)
{
    (void)v;
    return put(s, f->text, json_true(), err);
}

static int set_no_requeue(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                          struct stk_err *err)
{
    (void)f;
    (void)v;
    return put(s, "requeue", json_false(), err);
}

static int set_open_mode(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                         struct stk_err *err)
{
    const char *mode = strcmp(v, "a") == 0 ? "append" : strcmp(v, "t") == 0 ? "truncate" : v;

    if (!stk_words_among(mode, "append|truncate"))
        return stk_err_set(err, -EINVAL, "must be append or truncate, got \"%s\"",
                           stk_words_show(v).text);
    return put(s, f->text, json_string(mode), err);
}

static int set_time(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                    struct stk_err *err)
{
    int64_t seconds;

    if (stk_words_duration(v, 60, &seconds) < 0)
        return stk_err_set(err, -EINVAL,
                           "must be a time such as 90 (minutes), 1:30:00 or 1-12, got \"%s\"",
                           stk_words_show(v).text);
    return put(s, f->text, json_integer(seconds), err);
}

static int set_when(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                    struct stk_err *err)
{
    int64_t at;
    int rc = stk_words_time(v, s->now_s, &at, err);

    if (rc == -ERANGE)
        return -EINVAL;
    if (rc < 0)
        return stk_err_set(err, -EINVAL,
                           "must be a time such as now+1hour, 16:30 or 2030-01-31T08:00, got "
                           "\"%s\"",
                           stk_words_show(v).text);
    return put(s, f->text, json_integer(at), err);
}

static int set_array(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                     struct stk_err *err)
{
    json_t *array;
    int rc = stk_words_array(v, &array, err);

    return rc < 0 ? rc : put(s, f->text, array, err);
}

static int set_depend(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                      struct stk_err *err)
{
    json_t *list = json_array();
    bool singleton = false;
    int rc = stk_words_depend(v, list, &singleton, err);

    if (rc < 0) {
        json_decref(list);
        return rc;
    }
    if (singleton)
        (void)put(s, "singleton", json_true(), err);
    return put(s, f->text, list, err);
}

static int set_signal(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                      struct stk_err *err)
{
    json_t *signal;
    int rc = stk_words_signal_ahead(v, &signal, err);

    return rc < 0 ? rc : put(s, f->text, signal, err);
}

static int set_nice(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                    struct stk_err *err)
{
    (void)f;
    s->nice = 100;
    if (v && stk_words_signed(v, -1000000, 1000000, &s->nice) < 0)
        return stk_err_set(err, -EINVAL, "must be from -1000000 to 1000000, got \"%s\"",
                           stk_words_show(v).text);
    s->nice_set = true;
    return 0;
}

static int set_priority(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                        struct stk_err *err)
{
    (void)f;
    if (stk_words_signed(v, -STK_MAX_PRIORITY, STK_MAX_PRIORITY, &s->priority) < 0)
        return stk_err_set(err, -EINVAL, "must be a whole number, got \"%s\"",
                           stk_words_show(v).text);
    s->priority_set = true;
    return 0;
}

/* A pool, or one of the queues: the server knows which. */
static int set_partition(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                         struct stk_err *err)
{
    if (strchr(v, ','))
        return stk_err_set(err, -EINVAL, "takes one pool, got \"%s\"", stk_words_show(v).text);
    return put(s, f->text, json_string(v), err);
}

static int add_gpu_type(struct stk_sbatch *s, const char *type, size_t len, struct stk_err *err)
{
    json_t *list = json_object_get(s->job, "gpu_types"), *name = json_stringn(type, len);

    if (!list) {
        list = json_array();
        (void)json_object_set_new(s->job, "gpu_types", list);
    }
    return json_array_append_new(list, name) < 0 ? stk_err_set(err, -EINVAL, "is not text in UTF-8")
                                                 : 0;
}

/* "0.25": thousandths; 0: it is not such a word. */
static int64_t part_of_gpu(const char *s)
{
    int64_t milli = 0, each = 100;

    if (strncmp(s, "0.", 2) != 0 && *s != '.')
        return 0;
    for (s = strchr(s, '.') + 1; *s >= '0' && *s <= '9' && each > 0; s++, each /= 10)
        milli += (*s - '0') * each;
    return *s == '\0' ? milli : 0;
}

/* The last one said counts: nothing is left of what was said before. */
static void forget_gpus(struct stk_sbatch *s)
{
    s->gpus = s->gpus_per_node = s->gpus_per_task = -1;
    s->gpu_milli = 0;
    (void)json_object_del(s->job, "gpu_types");
    (void)json_object_del(s->job, "share");
    (void)json_object_del(s->job, "mig");
}

/* "4", "a100:4", "a100", "0.5", "1g.10gb:1". */
static int gpu_words(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                     struct stk_err *err)
{
    const char *colon = strrchr(v, ':'), *count = colon ? colon + 1 : v;
    size_t type = colon ? (size_t)(colon - v) : 0;
    int64_t n = 1, milli = part_of_gpu(count);

    if ((!milli && stk_words_whole(count, STK_MAX_GPUS, &n) < 0) || memchr(v, ':', type) ||
        strchr(v, ',')) {
        if (colon || strchr(v, ',') || *v == '\0' || strspn(v, "0123456789.") == strlen(v))
            return stk_err_set(err, -EINVAL,
                               "must be a number of GPUs such as 4, a100:4 or 0.5, got \"%s\"",
                               stk_words_show(v).text);
        type = strlen(v);
    }
    forget_gpus(s);
    *number_at(s, f) = n;
    s->gpu_milli = milli;
    if (type > 0 && stk_mig_parse(v, type))
        return put(s, "mig", json_stringn(v, type), err);
    return type > 0 ? add_gpu_type(s, v, type, err) : 0;
}

/* "mps:50": of a hundred that a GPU has, which is what Slurm counts when a site says nothing. */
static int set_mps(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                   struct stk_err *err)
{
    int64_t percent = 0;

    if (stk_words_whole(v, 100, &percent) < 0 || percent == 0)
        return stk_err_set(err, -EINVAL, "mps is a percentage of one GPU, 1 to 100, got \"%s\"",
                           stk_words_show(v).text);
    forget_gpus(s);
    *number_at(s, f) = 1;
    if (percent == 100)
        return 0;
    s->gpu_milli = percent * 10;
    return put(s, "share", json_string("mps"), err);
}

static int set_gres(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                    struct stk_err *err)
{
    if (strncmp(v, "gres:", 5) == 0 || strncmp(v, "gres/", 5) == 0)
        v += 5;
    if (strcmp(v, "none") == 0)
        return gpu_words(s, f, "0", err);
    if (strncmp(v, "mps:", 4) == 0)
        return set_mps(s, f, v + 4, err);
    if (strncmp(v, "shard", 5) == 0)
        return stk_err_set(err, -EINVAL,
                           "shards have no size here; ask for part of a GPU with --gres=mps:PERCENT"
                           " or --gpus=0.25");
    if (strchr(v, ',') || strncmp(v, "gpu", 3) != 0 || (v[3] != '\0' && v[3] != ':'))
        return stk_err_set(err, -EINVAL,
                           "only gpu[:TYPE][:N] and mps:PERCENT can be asked for, got \"%s\"",
                           stk_words_show(v).text);
    return gpu_words(s, f, v[3] == ':' ? v + 4 : "1", err);
}

/* "a100|h100", "(a100|h100)&nvme". */
static int set_constraint(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                          struct stk_err *err)
{
    if (stk_where_meets(v, NULL, NULL, err) < 0)
        return -EINVAL;
    (void)json_object_set_new(s->job, f->text, json_string(v));
    return 0;
}

static int set_node_names(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                          struct stk_err *err)
{
    json_t *list = json_array();
    int rc = stk_words_nodes(v, list, err);

    if (rc == 0)
        (void)json_object_set(s->job, f->text, list);
    json_decref(list);
    return rc;
}

/* "matlab:2,ansys": how much of each named resource. "|" (any of them) cannot be asked for. */
static int set_licenses(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                        struct stk_err *err)
{
    json_t *all = json_object();

    (void)json_object_set_new(s->job, f->text, all);
    do {
        size_t len = strcspn(v, ","), name = strcspn(v, ":,");
        char count[16] = "1";
        int64_t n = 1;

        if (name < len)
            (void)snprintf(count, sizeof(count), "%.*s", (int)(len - name - 1), v + name + 1);
        if (!stk_resource_name_ok(v, name) || stk_words_whole(count, UINT32_MAX, &n) < 0)
            return stk_err_set(err, -EINVAL,
                               "must be NAME[:N] joined by commas such as matlab:2, got \"%s\"",
                               stk_words_show(v).text);
        if (json_object_setn_new(all, v, name, json_integer(n)) < 0)
            return stk_err_set(err, -ENOMEM, "out of memory");
        v += len + (v[len] == ',');
    } while (*v != '\0');
    return 0;
}

static int set_mem(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                   struct stk_err *err)
{
    int64_t mib;

    if (stk_words_size(v, 'M', &mib) < 0)
        return stk_err_set(err, -EINVAL, "must be a size such as 32G or 4000M, got \"%s\"",
                           stk_words_show(v).text);
    s->mem_mib = s->mem_per_cpu_mib = s->mem_per_gpu_mib = -1;
    *number_at(s, f) = mib;
    return 0;
}

static int set_invalid_dep(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                           struct stk_err *err)
{
    (void)s;
    (void)f;
    return strcmp(v, "yes") == 0
               ? 0
               : stk_err_set(err, -EINVAL,
                             "only yes is supported: a job whose dependency failed ends");
}

static int set_kill_on_bad(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                           struct stk_err *err)
{
    (void)f;
    (void)err;
    s->no_kill = v && strcmp(v, "0") == 0;
    s->kill_on_bad = !s->no_kill;
    return 0;
}

static int refuse(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                  struct stk_err *err)
{
    (void)s;
    (void)v;
    return stk_err_set(err, -EINVAL, "is not supported: %s", f->text);
}

static int note(struct stk_sbatch *s, const struct stk_flag *f, const char *v, struct stk_err *err)
{
    char text[200];

    (void)v;
    (void)err;
    (void)snprintf(text, sizeof(text), "--%s: %s", f->name, f->text);
    return json_array_append_new(s->notes, json_string(text));
}

/* One switch is one rack; how long to wait for it is not looked at. */
static int set_switches(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                        struct stk_err *err)
{
    const struct stk_flag more = {.name = f->name, .text = "only 1 is looked at: one rack"};

    if (strcmp(v, "1") == 0 || strncmp(v, "1@", 2) == 0)
        return put(s, "topology", json_string("rack"), err);
    return note(s, &more, v, err);
}

static int set_exclusive(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                         struct stk_err *err)
{
    if (v && *v)
        return stk_err_set(err, -EINVAL,
                           "takes no value here: nobody else is on its nodes; got \"%s\"",
                           stk_words_show(v).text);
    return set_key_true(s, f, v, err);
}

static int ignore(struct stk_sbatch *s, const struct stk_flag *f, const char *v,
                  struct stk_err *err)
{
    (void)s;
    (void)f;
    (void)v;
    (void)err;
    return 0;
}

#define B STK_TOOL_SBATCH
#define S STK_TOOL_SRUN
#define BS (STK_TOOL_SBATCH | STK_TOOL_SRUN)
#define NO STK_OPT_NONE
#define YES STK_OPT_NEEDS
#define MAY STK_OPT_MAYBE
#define AT(m) offsetof(struct stk_sbatch, m)

static const char hint[] = "a wish about placement; it is not looked at";
static const char which[] = "-w, -x and -C say which nodes, -p which pool";
static const char later[] = "there is nothing like it here";

/* clang-format off */
const struct stk_flag stk_flags[] = {
    {"job-name", 'J', YES, BS, "SBATCH_JOB_NAME", set_label, "name", 0},
    {"nodes", 'N', YES, BS, NULL, set_nodes, NULL, AT(nodes)},
    {"ntasks", 'n', YES, BS, NULL, set_number, NULL, AT(ntasks)},
    {"ntasks-per-node", 0, YES, BS, NULL, set_number, NULL, AT(per_node)},
    {"tasks-per-node", 0, YES, BS, NULL, set_number, NULL, AT(per_node)},
    {"cpus-per-task", 'c', YES, BS, NULL, set_number, NULL, AT(cpus)},
    {"cpus-per-gpu", 0, YES, BS, "SBATCH_CPUS_PER_GPU", set_number, NULL, AT(cpus_per_gpu)},
    {"gres", 0, YES, BS, "SBATCH_GRES", set_gres, NULL, AT(gpus_per_node)},
    {"gpus", 'G', YES, BS, "SBATCH_GPUS", gpu_words, NULL, AT(gpus)},
    {"gpus-per-node", 0, YES, BS, "SBATCH_GPUS_PER_NODE", gpu_words, NULL, AT(gpus_per_node)},
    {"gpus-per-task", 0, YES, BS, "SBATCH_GPUS_PER_TASK", gpu_words, NULL, AT(gpus_per_task)},
    {"mem", 0, YES, BS, "SBATCH_MEM_PER_NODE", set_mem, NULL, AT(mem_mib)},
    {"mem-per-cpu", 0, YES, BS, "SBATCH_MEM_PER_CPU", set_mem, NULL, AT(mem_per_cpu_mib)},
    {"mem-per-gpu", 0, YES, BS, "SBATCH_MEM_PER_GPU", set_mem, NULL, AT(mem_per_gpu_mib)},
    {"time", 't', YES, BS, "SBATCH_TIMELIMIT", set_time, "time_limit_s", 0},
    {"time-min", 0, YES, BS, NULL, ignore, NULL, 0},
    {"partition", 'p', YES, BS, "SBATCH_PARTITION", set_partition, "pool", 0},
    {"account", 'A', YES, BS, "SBATCH_ACCOUNT", set_label, "account", 0},
    {"qos", 'q', YES, BS, "SBATCH_QOS", set_label, "qos", 0},
    {"wckey", 0, YES, BS, "SBATCH_WCKEY", set_label, "wckey", 0},
    {"comment", 0, YES, BS, NULL, set_label, "comment", 0},
    {"output", 'o', YES, BS, "SBATCH_OUTPUT", set_pattern, "stdout", 0},
    {"error", 'e', YES, BS, "SBATCH_ERROR", set_pattern, "stderr", 0},
    {"input", 'i', YES, BS, "SBATCH_INPUT", set_pattern, "stdin", 0},
    {"open-mode", 0, YES, BS, "SBATCH_OPEN_MODE", set_open_mode, "open_mode", 0},
    {"chdir", 'D', YES, BS, NULL, set_label, "workdir", 0},
    {"workdir", 0, YES, B, NULL, set_label, "workdir", 0},
    {"array", 'a', YES, B, "SBATCH_ARRAY_INX", set_array, "array", 0},
    {"dependency", 'd', YES, BS, NULL, set_depend, "depends", 0},
    {"kill-on-invalid-dep", 0, YES, B, NULL, set_invalid_dep, NULL, 0},
    {"signal", 0, YES, B, "SBATCH_SIGNAL", set_signal, "signal", 0},
    {"requeue", 0, NO, B, "SBATCH_REQUEUE", set_key_true, "requeue", 0},
    {"no-requeue", 0, NO, B, "SBATCH_NO_REQUEUE", set_no_requeue, NULL, 0},
    {"nice", 0, MAY, BS, NULL, set_nice, NULL, 0},
    {"priority", 0, YES, BS, NULL, set_priority, NULL, 0},
    {"begin", 'b', YES, BS, NULL, set_when, "begin", 0},
    {"deadline", 0, YES, BS, NULL, set_when, "deadline", 0},
    {"hold", 'H', NO, BS, NULL, set_key_true, "hold", 0},
    {"constraint", 'C', YES, BS, "SBATCH_CONSTRAINT", set_constraint, "constraint", 0},
    {"export", 0, YES, BS, "SBATCH_EXPORT", set_string, NULL, AT(export)},
    {"wrap", 0, YES, B, NULL, set_string, NULL, AT(wrap)},
    {"parsable", 0, NO, B, NULL, set_true, NULL, AT(parsable)},
    {"wait", 'W', NO, B, "SBATCH_WAIT", set_true, NULL, AT(wait)},
    {"test-only", 0, NO, B, NULL, set_true, NULL, AT(test_only)},
    {"quiet", 'Q', NO, BS, NULL, set_true, NULL, AT(quiet)},
    {"verbose", 'v', NO, BS, NULL, ignore, NULL, 0},
    {"oversubscribe", 's', NO, BS, NULL, ignore, NULL, 0},
    {"use-min-nodes", 0, NO, BS, NULL, ignore, NULL, 0},
    {"mail-type", 0, YES, BS, NULL, note, "no mail is sent", 0},
    {"mail-user", 0, YES, BS, NULL, note, "no mail is sent", 0},
    {"gres-flags", 0, YES, BS, NULL, note, hint, 0},
    {"gpu-bind", 0, YES, BS, NULL, note, hint, 0},
    {"gpu-freq", 0, YES, BS, NULL, refuse, "GPU clocks are not set", 0},
    {"hint", 0, YES, BS, NULL, note, hint, 0},
    {"distribution", 'm', YES, BS, NULL, note, hint, 0},
    {"cpu-bind", 0, YES, BS, NULL, note, hint, 0},
    {"mem-bind", 0, YES, BS, NULL, note, hint, 0},
    {"threads-per-core", 0, YES, BS, NULL, note, hint, 0},
    {"contiguous", 0, NO, BS, NULL, note, hint, 0},
    {"switches", 0, YES, BS, NULL, set_switches, NULL, 0},
    {"exclusive", 0, MAY, B, "SBATCH_EXCLUSIVE", set_exclusive, "exclusive", 0},
    {"nodelist", 'w', YES, BS, NULL, set_node_names, "nodelist", 0},
    {"nodefile", 'F', YES, B, NULL, refuse, which, 0},
    {"exclude", 'x', YES, BS, NULL, set_node_names, "exclude", 0},
    {"reservation", 0, YES, BS, "SBATCH_RESERVATION", set_label, "reservation", 0},
    {"licenses", 'L', YES, BS, NULL, set_licenses, "resources", 0},
    {"clusters", 'M', YES, BS, "SBATCH_CLUSTERS", refuse, "there is one cluster", 0},
    {"gpus-per-socket", 0, YES, BS, NULL, refuse, "use --gpus-per-node", 0},
    {"ntasks-per-gpu", 0, YES, BS, NULL, refuse, "GPUs are not shared between tasks", 0},
    {"ntasks-per-socket", 0, YES, BS, NULL, refuse, "use --ntasks-per-node", 0},
    {"ntasks-per-core", 0, YES, BS, NULL, refuse, "use --ntasks-per-node", 0},
    {"tres-per-task", 0, YES, BS, NULL, refuse, "use --gpus-per-task and -c", 0},
    {"sockets-per-node", 0, YES, BS, NULL, refuse, which, 0},
    {"cores-per-socket", 0, YES, BS, NULL, refuse, which, 0},
    {"mincpus", 0, YES, BS, NULL, refuse, which, 0},
    {"tmp", 0, YES, BS, NULL, refuse, "disk space is not counted", 0},
    {"overcommit", 'O', NO, BS, NULL, refuse, "CPUs are not shared between tasks", 0},
    {"export-file", 0, YES, B, NULL, refuse, "use --export", 0},
    {"get-user-env", 0, MAY, B, NULL, refuse, "use --export", 0},
    {"no-kill", 'k', MAY, BS, NULL, refuse, "a job that lost a task ends", 0},
    {"container", 0, YES, BS, NULL, refuse, "use image in a job file", 0},
    {"uid", 0, YES, BS, NULL, refuse, "jobs run as who submits them", 0},
    {"gid", 0, YES, BS, NULL, refuse, "jobs run as who submits them", 0},
    {"bb", 0, YES, BS, NULL, refuse, later, 0},
    {"x11", 0, MAY, BS, NULL, refuse, later, 0},
    {"propagate", 0, MAY, BS, NULL, note, "the submitter's limits apply", 0},
    {"label", 'l', NO, S, NULL, set_true, NULL, AT(label)},
    {"unbuffered", 'u', NO, S, NULL, set_true, NULL, AT(unbuffered)},
    {"kill-on-bad-exit", 'K', MAY, S, NULL, set_kill_on_bad, NULL, 0},
    {"jobid", 0, YES, S, NULL, set_string, NULL, AT(jobid)},
    {"pty", 0, MAY, S, NULL, set_true, NULL, AT(pty)},
    {"wait", 'W', YES, S, NULL, ignore, NULL, 0},
    {"mpi", 0, YES, S, NULL, note, "tasks get ranks in their environment and no PMI", 0},
    {"overlap", 0, NO, S, NULL, ignore, NULL, 0},
    {"exact", 0, NO, S, NULL, ignore, NULL, 0},
    {"exclusive", 0, MAY, S, NULL, ignore, NULL, 0},
    {"disable-status", 'X', NO, S, NULL, ignore, NULL, 0},
    {"immediate", 'I', MAY, S, NULL, refuse, "jobs wait for their turn", 0},
    {"multi-prog", 0, NO, S, NULL, refuse, later, 0},
    {"relative", 'r', YES, S, NULL, refuse, which, 0},
    {"preserve-env", 'E', NO, S, NULL, ignore, NULL, 0},
    {NULL, 0, NO, 0, NULL, NULL, NULL, 0},
};
/* clang-format on */
