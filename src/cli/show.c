/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - "stoker show": all about a job. */
#include <inttypes.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/ids.h"
#include "cli/view.h"

static void field(const struct stk_ask *k, const char *name, const char *value)
{
    char clean[8192];

    if (value && *value != '\0')
        (void)printf("%s%-12s%s %s\n", stk_term_on(&k->out, STK_DIM), name,
                     stk_term_off(&k->out, STK_DIM),
                     stk_text_clean(clean, sizeof(clean), value, false));
}

static void field_time(const struct stk_ask *k, const char *name, const json_t *job,
                       const char *key)
{
    char buf[32];

    if (stk_num(job, key, 0) > 0)
        field(k, name, stk_text_time(stk_num(job, key, 0), buf, sizeof(buf)));
}

static void field_int(const struct stk_ask *k, const char *name, const json_t *job, const char *key)
{
    char buf[32];

    (void)snprintf(buf, sizeof(buf), "%" PRId64, stk_int(job, key, 0));
    if (stk_int(job, key, 0) != 0)
        field(k, name, buf);
}

static void show_command(const struct stk_ask *k, const json_t *job)
{
    const json_t *command = json_object_get(job, "command");
    char line[4096] = "";
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(command) && n < sizeof(line); i++)
        n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%s", i > 0 ? " " : "",
                              json_string_value(json_array_get(command, i)));
    field(k, "command", line);
    if (json_object_get(job, "script")) {
        (void)snprintf(line, sizeof(line), "%zu bytes (--script prints it)",
                       json_string_length(json_object_get(job, "script")));
        field(k, "script", line);
    }
}

static void show_interruptions(const struct stk_ask *k, const json_t *job)
{
    int64_t restarts = stk_int(job, "restarts", 0), lost = stk_int(job, "preemptions", 0);
    char text[64] = "";
    size_t n = 0;

    if (restarts > 0)
        n = (size_t)snprintf(text, sizeof(text), "%" PRId64 " restart%s", restarts,
                             restarts == 1 ? "" : "s");
    if (lost > 0)
        (void)snprintf(text + n, sizeof(text) - n, "%s%" PRId64 " preemption%s", n > 0 ? ", " : "",
                       lost, lost == 1 ? "" : "s");
    field(k, "interrupted", text);
}

static void show_times(const struct stk_ask *k, const json_t *job)
{
    char time[32];

    field_time(k, "submitted", job, "submitted");
    field_time(k, "started", job, "started");
    field_time(k, "ended", job, "ended");
    if (!stk_view_ended(job))
        field_time(k, "expected end", job, "expected_end");
    if (stk_num(job, "waited_s", 0) >= 0.5)
        field(k, "waited", stk_text_duration(stk_num(job, "waited_s", 0), time, sizeof(time)));
    if (stk_num(job, "run_s", 0) > 0)
        field(k, "has run", stk_text_duration(stk_num(job, "run_s", 0), time, sizeof(time)));
    if (stk_num(job, "time_limit_s", 0) > 0)
        field(k, "time limit",
              stk_text_duration(stk_num(job, "time_limit_s", 0), time, sizeof(time)));
    if (!stk_view_ended(job) && stk_num(job, "expected_run_s", 0) > 0 &&
        stk_num(job, "expected_run_s", 0) != stk_num(job, "time_limit_s", 0))
        field(k, "expected run",
              stk_text_duration(stk_num(job, "expected_run_s", 0), time, sizeof(time)));
    show_interruptions(k, job);
}

/* "3.20 GPU-hours", "less than 0.01 kWh". */
static size_t put_amount(double v, const char *unit, char *buf, size_t size)
{
    if (v > 0 && v < 0.01)
        return (size_t)snprintf(buf, size, "less than 0.01 %s", unit);
    return (size_t)snprintf(buf, size, "%.*f %s", v >= 100 || v == 0 ? 0 : 2, v, unit);
}

/* "3.20 GPU-hours, 8.00 EUR, 1.2 kWh" and how well its GPUs were used. */
static void show_cost(const struct stk_ask *k, const json_t *job)
{
    const json_t *e = json_object_get(job, "efficiency");
    const char *currency = stk_str(e, "currency");
    char text[160];
    size_t n;

    if (!e)
        return;
    n = put_amount(stk_num(e, "gpu_hours", 0), "GPU-hours", text, sizeof(text));
    if (stk_num(e, "money", -1) >= 0)
        n += (size_t)snprintf(text + n, sizeof(text) - n, ", %.2f%s%.8s", stk_num(e, "money", 0),
                              *currency ? " " : "", currency);
    if (stk_num(e, "kwh", -1) >= 0) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, ", ");
        (void)put_amount(stk_num(e, "kwh", 0), "kWh", text + n, sizeof(text) - n);
    }
    field(k, "cost", text);
    if (stk_num(e, "util", -1) < 0)
        return;
    n = (size_t)snprintf(text, sizeof(text), "GPUs active %.0f%% of the time",
                         stk_num(e, "util", 0) * 100);
    if (*stk_str(e, "advice"))
        (void)snprintf(text + n, sizeof(text) - n, "; %.100s", stk_str(e, "advice"));
    field(k, "efficiency", text);
}

static void show_end(const struct stk_ask *k, const json_t *job)
{
    const char *note = stk_str(job, "note"), *colon = strstr(note, ": ");
    const char *more = colon ? colon + 2 : "";
    char text[32];

    if (json_is_integer(json_object_get(job, "exit_code"))) {
        (void)snprintf(text, sizeof(text), "%" PRId64, stk_int(job, "exit_code", 0));
        field(k, "exit code", text);
    }
    field_int(k, "signal", job, "signal");
    if (!strstr(stk_view_sentence(job), *more != '\0' ? more : note))
        field(k, "note", note); /* else the sentence has it */
}

static void show_env(const struct stk_ask *k, json_t *envs)
{
    char line[4096];
    const char *name;
    json_t *value;

    json_object_foreach(envs, name, value)
    {
        (void)snprintf(line, sizeof(line), "%s=%s", name, json_string_value(value));
        field(k, "environment", line);
    }
}

/* "1 (default)", "4 in each of 2 tasks" */
static void show_cpus(const struct stk_ask *k, const json_t *job)
{
    int64_t tasks = stk_int(job, "tasks", 1);
    char text[96], each[40] = "";

    if (stk_num(job, "cpus", 0) <= 0)
        return;
    if (tasks > 1)
        (void)snprintf(each, sizeof(each), " in each of %" PRId64 " tasks", tasks);
    (void)snprintf(text, sizeof(text), "%.4g%s%s", stk_num(job, "cpus", 0), each,
                   json_is_true(json_object_get(job, "cpus_default")) ? " (default)" : "");
    field(k, "cpus", text);
}

static void show_resources(const struct stk_ask *k, const json_t *job)
{
    char text[1024] = "";
    size_t n = 0;
    const char *name;
    json_t *amount;

    json_object_foreach(json_object_get(job, "resources"), name, amount)
    {
        if (n < sizeof(text))
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%" JSON_INTEGER_FORMAT " %s",
                                  n ? ", " : "", json_integer_value(amount), name);
    }
    field(k, "resources", text);
}

/* "0.5 of GPU 3, 20.0 GiB of memory, share mps, with job 12" */
static const char *part_text(const json_t *job, char *buf, size_t size)
{
    const json_t *part = json_object_get(job, "part"), *with = json_object_get(part, "with");
    const json_t *gpu = json_array_get(json_object_get(job, "gpu_indices"), 0);
    const char *profile = stk_str(part, "mig");
    char mem[32];
    size_t n = *profile != '\0' ? (size_t)snprintf(buf, size, "%.15s", profile)
                                : (size_t)snprintf(buf, size, "%.4g", stk_num(part, "gpus", 0));

    if (gpu && json_array_size(json_object_get(job, "gpu_indices")) == 1)
        n +=
            (size_t)snprintf(buf + n, size - n, " of GPU %lld", (long long)json_integer_value(gpu));
    else
        n += (size_t)snprintf(buf + n, size - n, " of a GPU");
    if (stk_num(part, "mem_mib", 0) > 0)
        n += (size_t)snprintf(buf + n, size - n, ", %s of memory",
                              stk_text_mib(stk_num(part, "mem_mib", 0), mem, sizeof(mem)));
    n += (size_t)snprintf(buf + n, size - n, ", share %.8s", stk_str(part, "share"));
    for (size_t i = 0; i < json_array_size(with) && n + 24 < size; i++)
        n += (size_t)snprintf(buf + n, size - n, "%s%lld",
                              i > 0                        ? ", "
                              : json_array_size(with) == 1 ? ", with job "
                                                           : ", with jobs ",
                              (long long)json_integer_value(json_array_get(with, i)));
    return buf;
}

/* "1234_5, running": what it is there; "": Slurm does not run it. */
static const char *slurm_text(const json_t *job, char *buf, size_t size)
{
    const json_t *there = json_object_get(job, "slurm");
    const char *state = stk_str(there, "state");
    int64_t own = stk_int(there, "job", 0);
    size_t n = (size_t)snprintf(buf, size, "%s", stk_str(there, "id"));

    if (strchr(buf, '_') && own > 0)
        n += (size_t)snprintf(buf + n, size - n, " (job %" PRId64 " there)", own);
    if (*buf != '\0' && *state != '\0')
        (void)snprintf(buf + n, size - n, ", %.40s", state);
    return buf;
}

#define MAX_LIFE 5 /* preemptions that are told one by one: the last ones */

/* For whom it was preempted, each time. */
static void show_preemptions(struct stk_ask *k, const json_t *job)
{
    json_t *life = NULL;
    const json_t *list, *e;
    size_t i, n = 0, seen = 0;
    char when[32], text[400];

    if (stk_int(job, "preemptions", 0) == 0 ||
        stk_ask_get(k, &life, "/v1/jobs/%u/events", (unsigned)stk_int(job, "id", 0)) != STK_EXIT_OK)
        return;
    list = json_object_get(life, "events");
    json_array_foreach(list, i, e)
    {
        n += strcmp(stk_str(e, "type"), "evict") == 0;
    }
    json_array_foreach(list, i, e)
    {
        if (strcmp(stk_str(e, "type"), "evict") != 0 || seen++ + MAX_LIFE < n)
            continue;
        (void)snprintf(text, sizeof(text), "%s: %.340s",
                       stk_text_time(stk_num(e, "at", 0), when, sizeof(when)),
                       stk_str(e, "sentence"));
        field(k, "preempted", text);
    }
    json_decref(life);
}

static void show_job(struct stk_ask *k, const json_t *job)
{
    const char *state = stk_view_state(job);
    enum stk_colour c = stk_state_colour(state);
    char id[40], text[1024], clean[1024], name[256];

    (void)printf("%sjob %s%s  %s  %s%s%s\n", stk_term_on(&k->out, STK_BOLD),
                 stk_view_id(job, id, sizeof(id)), stk_term_off(&k->out, STK_BOLD),
                 stk_text_clean(name, sizeof(name), stk_str(job, "name"), false),
                 stk_term_on(&k->out, c), stk_text_clean(clean, sizeof(clean), state, false),
                 stk_term_off(&k->out, c));
    field(k, stk_view_ended(job) ? "end" : "now", stk_view_sentence(job));
    if (!stk_view_ended(job) && *stk_str(job, "node") != '\0')
        field(k, "where", stk_view_where(job, text, sizeof(text)));
    if (json_is_integer(json_object_get(job, "array_id"))) {
        (void)snprintf(text, sizeof(text), "%" PRId64 ", this one is job %" PRId64,
                       stk_int(job, "array_id", 0), stk_int(job, "id", 0));
        field(k, "array", text);
    }
    field(k, "Slurm", slurm_text(job, text, sizeof(text)));
    field(k, "warning", stk_str(job, "warning"));
    field(k, "start", stk_view_start(job, text, sizeof(text)));
    field(k, "deadline", stk_view_deadline(job, text, sizeof(text)));
    field(k, "user", stk_str(job, "user"));
    field(k, "tenant", stk_str(job, "tenant"));
    field(k, "pool", stk_str(json_object_get(job, "spec"), "pool"));
    field(k, "queue", stk_str(job, "queue"));
    field(k, "reservation", stk_str(json_object_get(job, "spec"), "reservation"));
    field(k, "kind", stk_str(job, "kind"));
    (void)snprintf(text, sizeof(text), "%s in %" PRId64 " task%s",
                   stk_view_gpus(job, clean, sizeof(clean)), stk_int(job, "tasks", 1),
                   stk_int(job, "tasks", 1) == 1 ? "" : "s");
    field(k, "gpus", text);
    show_cpus(k, job);
    show_resources(k, job);
    if (json_object_get(job, "part"))
        field(k, "part", part_text(job, text, sizeof(text)));
    field_int(k, "priority", job, "priority");
    field(k, "tier", stk_str(job, "tier"));
    if (json_object_get(job, "items"))
        field(k, "items", stk_view_items(job, text, sizeof(text)));
    show_times(k, job);
    show_preemptions(k, job);
    show_cost(k, job);
    show_end(k, job);
    show_command(k, job);
    field(k, "folder", stk_str(job, "workdir"));
    field(k, "stdout", stk_str(job, "stdout"));
    if (strcmp(stk_str(job, "stdout"), stk_str(job, "stderr")) != 0)
        field(k, "stderr", stk_str(job, "stderr"));
    field(k, "comment", stk_str(job, "comment"));
    show_env(k, json_object_get(job, "envs"));
}

static int one(struct stk_ask *k, uint32_t id, json_t *all)
{
    json_t *job = NULL;
    const json_t *script;
    int rc = stk_ask_get(k, &job, "/v1/jobs/%u%s", id, stk_arg_is(k->a, "env") ? "?env=1" : "");

    if (rc != STK_EXIT_OK)
        return rc;
    script = json_object_get(job, "script");
    if (stk_arg_is(k->a, "script")) {
        if (script)
            (void)fwrite(json_string_value(script), 1, json_string_length(script), stdout);
        else
            rc = stk_misused(k->a, "job %u has no script, or not one for you to see", id);
    } else if (!k->json) {
        if (json_array_size(all) > 0)
            (void)putchar('\n');
        show_job(k, job);
    }
    (void)json_array_append_new(all, job);
    return rc;
}

static int run_show(const struct stk_args *a)
{
    return stk_ids_each(a, one);
}

static const struct stk_option show_options[] = {
    {"script", 0, NULL, "only its script, as it was submitted", NULL},
    {"env", 0, NULL, "also its environment, as it was submitted", NULL},
    {0},
};
static const struct stk_options show_groups[] = {{"options", show_options}, {0}};

const struct stk_command stk_cmd_show = {
    .name = "show",
    .synopsis = "[options] JOB...",
    .help = "all about a job",
    .complete = "@jobs",
    .options = show_groups,
    .section = STK_SECTION_LOOK,
    .run = run_show,
};
