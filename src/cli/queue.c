/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - "stoker queue": jobs that have not ended; "stoker history": those that have. */
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/table.h"
#include "cli/view.h"

/* What both tables may show: Slurm's numbers where it runs the jobs, tenants where there are any.
 */
struct shown {
    bool history, slurm, tenants;
};

#define MAX_COLUMNS 12u

static size_t choose_columns(const struct shown *s, struct stk_column *columns)
{
    static const struct {
        struct stk_column column;
        bool queue, history, slurm, tenants; /* in which table, and where only if there are any */
    } all[] = {
        {{"ID", true, 0}, true, true, false, false},
        {{"SLURM", true, 0}, true, true, true, false},
        {{"NAME", false, 8}, true, true, false, false},
        {{"USER", false, 6}, true, true, false, false},
        {{"STATE", false, 0}, true, true, false, false},
        {{"GPUS", true, 0}, true, true, false, false},
        {{"TIME", true, 0}, true, true, false, false},
        {{"PRIO", true, 0}, true, false, false, false},
        {{"TENANT", false, 6}, true, false, false, true},
        {{"QUEUE", false, 6}, true, false, false, true},
        {{"GPUS/REASON", false, 8}, true, false, false, false},
        {{"ENDED", false, 0}, false, true, false, false},
        {{"CODE", true, 0}, false, true, false, false},
        {{"NOTE", false, 12}, false, true, false, false},
    };
    size_t n = 0;

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if ((s->history ? all[i].history : all[i].queue) && (s->slurm || !all[i].slurm) &&
            (s->tenants || !all[i].tenants))
            columns[n++] = all[i].column;
    return n;
}

static void id_name_user(struct stk_table *t, const json_t *job, const struct shown *s)
{
    const char *state = stk_view_state(job);
    char id[40];

    stk_table_cell(t, STK_PLAIN, "%s", stk_view_id(job, id, sizeof(id)));
    if (s->slurm)
        stk_table_cell(t, STK_PLAIN, "%s", stk_str(json_object_get(job, "slurm"), "id"));
    stk_table_cell(t, STK_PLAIN, "%s", stk_str(job, "name"));
    stk_table_cell(t, STK_PLAIN, "%s", stk_str(job, "user"));
    stk_table_cell(t, stk_state_colour(state), "%s", state);
    stk_table_cell(t, STK_PLAIN, "%s", stk_view_gpus(job, id, sizeof(id)));
}

struct times {    /* of the daemon, which may not agree with the clock */
    double now;   /* its time */
    double ahead; /* of the machine's clock: what is shown is by that */
};

static struct times times_of(const struct stk_ask *k)
{
    struct times t = {stk_now(), 0};
    json_t *health = NULL;

    if (stk_client_get(k->c, &health, NULL, "/v1/health") == 0) {
        t.now = stk_num(health, "now", t.now);
        t.ahead = stk_num(health, "clock_ahead_s", 0);
    }
    json_decref(health);
    return t;
}

/* Where it is, or why it waits; and what is expected of it. */
static const char *where_and_when(const json_t *job, const struct times *at, char *buf, size_t size)
{
    static const char *const bad[][2] = {
        {"at_risk", "at risk"}, {"infeasible", "infeasible"}, {"late", "missed"}};
    const char *answer = stk_str(json_object_get(job, "deadline"), "answer");
    const double start = stk_num(job, "start_p50", 0);
    char time[32];
    size_t n;

    (void)stk_view_where(job, buf, size);
    n = strlen(buf);
    if (start > 0)
        n += (size_t)snprintf(buf + n, size - n, "; starts about %s",
                              stk_text_time(start - at->ahead, time, sizeof(time)));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad) && n < size; i++)
        if (strcmp(answer, bad[i][0]) == 0)
            (void)snprintf(buf + n, size - n, "; deadline %s", bad[i][1]);
    return buf;
}

static void queue_row(struct stk_table *t, const json_t *job, const struct times *at,
                      const struct shown *s)
{
    char text[1024], time[32];

    id_name_user(t, job, s);
    stk_table_cell(t, STK_PLAIN, "%s",
                   stk_text_duration(stk_view_seconds(job, at->now), time, sizeof(time)));
    stk_table_cell(t, STK_PLAIN, "%lld", (long long)stk_int(job, "priority", 0));
    if (s->tenants) {
        stk_table_cell(t, STK_PLAIN, "%s", stk_str(job, "tenant"));
        stk_table_cell(t, STK_PLAIN, "%s", stk_str(job, "queue"));
    }
    stk_table_cell(t, STK_PLAIN, "%s", where_and_when(job, at, text, sizeof(text)));
}

static void history_row(struct stk_table *t, const json_t *job, const struct shown *s)
{
    const char *note = stk_str(job, "note");
    char time[32], ended[32];

    id_name_user(t, job, s);
    stk_table_cell(
        t, STK_PLAIN, "%s",
        stk_text_duration(stk_num(job, "run_s", stk_view_seconds(job, 0)), time, sizeof(time)));
    stk_table_cell(t, STK_PLAIN, "%s",
                   stk_text_time(stk_num(job, "ended", 0), ended, sizeof(ended)));
    if (json_is_integer(json_object_get(job, "signal")))
        stk_table_cell(t, STK_PLAIN, "sig %lld", (long long)stk_int(job, "signal", 0));
    else if (json_is_integer(json_object_get(job, "exit_code")))
        stk_table_cell(t, STK_PLAIN, "%lld", (long long)stk_int(job, "exit_code", 0));
    else
        stk_table_cell(t, STK_PLAIN, "-");
    stk_table_cell(t, STK_PLAIN, "%s", note);
}

static struct shown what_there_is(const json_t *jobs, bool history)
{
    struct shown s = {.history = history};

    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *job = json_array_get(jobs, i);

        s.tenants |= *stk_str(job, "tenant") != '\0';
        s.slurm |= json_object_get(job, "slurm") != NULL;
    }
    return s;
}

static int print_jobs(const struct stk_ask *k, const json_t *jobs, bool history)
{
    const struct shown s = what_there_is(jobs, history);
    struct stk_column columns[MAX_COLUMNS];
    size_t n = choose_columns(&s, columns);
    struct stk_table *t = stk_table_new(columns, n);
    struct times at = {0};
    int rc = -ENOMEM;

    if (!history)
        at = times_of(k);
    for (size_t i = 0; t && i < json_array_size(jobs); i++) {
        const json_t *job = json_array_get(jobs, i);

        if (history)
            history_row(t, job, &s);
        else
            queue_row(t, job, &at, &s);
    }
    if (t)
        rc = stk_table_print(t, &k->out, 0);
    stk_table_free(t);
    return rc < 0 ? stk_ask_fail(k, rc, &(struct stk_err){"out of memory"}) : STK_EXIT_OK;
}

static const char *none_text(const struct stk_args *a, bool history)
{
    static const char *const filters[] = {"mine", "user", "state", "name", "queue", "tenant"};

    for (size_t i = 0; i < sizeof(filters) / sizeof(*filters); i++)
        if (stk_arg(a, filters[i]) || stk_arg_is(a, filters[i]))
            return history ? "No ended jobs match." : "No waiting or running jobs match.";
    return history ? "No jobs have ended." : "No jobs waiting or running.";
}

static int show_jobs(const struct stk_ask *k, const json_t *jobs, bool history)
{
    if (k->json) {
        json_t *out = json_pack("{s:O}", "jobs", jobs);

        stk_print_json(out);
        json_decref(out);
        return STK_EXIT_OK;
    }
    if (json_array_size(jobs) == 0) { /* a program that reads the table gets an empty one */
        (void)fprintf(k->out.tty ? stdout : stderr, "%s\n", none_text(k->a, history));
        return STK_EXIT_OK;
    }
    return print_jobs(k, jobs, history);
}

/* What both kinds of jobs can be chosen by. */
static void filter(const struct stk_args *a, char *path, size_t size)
{
    stk_query(path, size, "name", stk_arg(a, "name"));
    stk_query(path, size, "queue", stk_arg(a, "queue"));
    stk_query(path, size, "tenant", stk_arg(a, "tenant"));
}

static int run_queue(const struct stk_args *a)
{
    char path[STK_CLIENT_MAX_PATH] = "/v1/jobs";
    json_t *jobs = NULL, *ended = NULL;
    int64_t limit = 0;
    struct stk_ask k;
    int rc = stk_arg_number(a, "limit", 1, 10000000, &limit);

    if (a->n_words > 0)
        return stk_misused(a, "takes no words, got \"%.40s\" (stoker show JOB)", a->words[0]);
    rc = rc != STK_EXIT_OK ? rc : stk_ask_open(&k, a);
    if (rc != STK_EXIT_OK)
        return rc;
    stk_query(path, sizeof(path), "user", stk_arg_is(a, "mine") ? "me" : stk_arg(a, "user"));
    stk_query(path, sizeof(path), "state", stk_arg(a, "state"));
    filter(a, path, sizeof(path));
    rc = stk_ask_pages(&k, path, "jobs", "after", (uint32_t)limit, &jobs);
    if (rc == STK_EXIT_OK && stk_arg_is(a, "all") && !stk_arg_is(a, "state")) {
        (void)strcpy(path, "/v1/history");
        stk_query(path, sizeof(path), "user", stk_arg_is(a, "mine") ? "me" : stk_arg(a, "user"));
        filter(a, path, sizeof(path));
        rc = stk_ask_pages(&k, path, "jobs", "before", limit > 0 ? (uint32_t)limit : 1000, &ended);
        (void)json_array_extend(jobs, ended);
    }
    if (rc == STK_EXIT_OK)
        rc = show_jobs(&k, jobs, false);
    json_decref(ended);
    json_decref(jobs);
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option queue_options[] = {
    {"mine", 'm', NULL, "only my jobs", NULL},
    {"user", 'u', "NAME", "only jobs of this user", NULL},
    {"state", 's', "STATE", "only jobs in this state",
     "held blocked waiting starting running suspended stopping"},
    {"name", 'n', "NAME", "only jobs of this name", NULL},
    {"queue", 'q', "QUEUE", "only jobs of this queue", NULL},
    {"tenant", 0, "TENANT", "only jobs of this tenant", NULL},
    {"all", 'a', NULL, "also jobs that have ended, the newest 1000", NULL},
    {"limit", 'l', "N", "at most so many", NULL},
    {0},
};
static const struct stk_options queue_groups[] = {{"options", queue_options}, {0}};

const struct stk_command stk_cmd_queue = {
    .name = "queue",
    .alias = "ls",
    .synopsis = "[options]",
    .help = "jobs that run or wait, and why they wait",
    .options = queue_groups,
    .section = STK_SECTION_LOOK,
    .run = run_queue,
};

static int run_history(const struct stk_args *a)
{
    char path[STK_CLIENT_MAX_PATH] = "/v1/history";
    json_t *jobs = NULL;
    int64_t limit = 50;
    struct stk_ask k;
    int rc = stk_arg_number(a, "limit", 1, 10000000, &limit);

    if (a->n_words > 0)
        return stk_misused(a, "takes no words, got \"%.40s\" (stoker show JOB)", a->words[0]);
    stk_query(path, sizeof(path), "user", stk_arg_is(a, "mine") ? "me" : stk_arg(a, "user"));
    stk_query(path, sizeof(path), "state", stk_arg(a, "state"));
    filter(a, path, sizeof(path));
    rc = rc != STK_EXIT_OK ? rc : stk_query_time(a, "since", path, sizeof(path));
    rc = rc != STK_EXIT_OK ? rc : stk_query_time(a, "until", path, sizeof(path));
    if (rc != STK_EXIT_OK || (rc = stk_ask_open(&k, a)) != STK_EXIT_OK)
        return rc;
    rc = stk_ask_pages(&k, path, "jobs", "before", stk_arg_is(a, "all") ? 0 : (uint32_t)limit,
                       &jobs);
    if (rc == STK_EXIT_OK)
        rc = show_jobs(&k, jobs, true);
    json_decref(jobs);
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option history_options[] = {
    {"mine", 'm', NULL, "only my jobs", NULL},
    {"user", 'u', "NAME", "only jobs of this user", NULL},
    {"state", 's', "STATE", "only jobs that ended so",
     "completed failed killed out_of_memory timeout node_lost gpu_error not_started cancelled "
     "dependency_failed lost"},
    {"name", 'n', "NAME", "only jobs of this name", NULL},
    {"queue", 'q', "QUEUE", "only jobs of this queue", NULL},
    {"tenant", 0, "TENANT", "only jobs of this tenant", NULL},
    {"since", 0, "TIME", "ended after: 2026-01-31, 14:00, or 2h, 7d ago", NULL},
    {"until", 0, "TIME", "ended before", NULL},
    {"limit", 'l', "N", "at most so many (default 50)", NULL},
    {"all", 'a', NULL, "no limit", NULL},
    {0},
};
static const struct stk_options history_groups[] = {{"options", history_options}, {0}};

const struct stk_command stk_cmd_history = {
    .name = "history",
    .synopsis = "[options]",
    .help = "jobs that have ended, newest first",
    .options = history_groups,
    .section = STK_SECTION_LOOK,
    .run = run_history,
};
