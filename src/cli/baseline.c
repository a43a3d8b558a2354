/* SPDX-License-Identifier: Apache-2.0 */
/* baseline.c - "stoker baseline": marks a period, so that others can be compared with it. */
#include <stdio.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/baseline.h"
#include "cli/table.h"
#include "cli/view.h"

const struct stk_figure stk_baseline_figures[] = {
    {"jobs", "jobs ended", STK_FIGURE_COUNT, 0},
    {"jobs_per_day", "jobs a day", STK_FIGURE_NUMBER, 1},
    {"failed", "failed", STK_FIGURE_COUNT, -1},
    {"avg_wait_s", "wait, mean", STK_FIGURE_TIME, -1},
    {"p50_wait_s", "wait, median", STK_FIGURE_TIME, -1},
    {"p90_wait_s", "wait, p90", STK_FIGURE_TIME, -1},
    {"p99_wait_s", "wait, p99", STK_FIGURE_TIME, -1},
    {"avg_jct_s", "completion, mean", STK_FIGURE_TIME, -1},
    {"p90_jct_s", "completion, p90", STK_FIGURE_TIME, -1},
    {"gpu_hours", "GPU-hours", STK_FIGURE_NUMBER, 0},
    {"utilization", "utilization", STK_FIGURE_SHARE, 1},
    {"preemptions", "preemptions", STK_FIGURE_COUNT, 0},
    {"preemptions_per_day", "preemptions a day", STK_FIGURE_NUMBER, -1},
    {"steps_per_gpu_hour", "steps per GPU-hour", STK_FIGURE_NUMBER, 1},
    {0},
};

void stk_baseline_print(const struct stk_ask *k, const json_t *compared)
{
    const json_t *b = json_object_get(compared, "baseline"),
                 *p = json_object_get(compared, "period"),
                 *notes = json_object_get(compared, "notes");
    const struct stk_side sides[] = {{"before", json_object_get(b, "figures")}, {"now", p}};
    char a[32], z[32], text[600];

    (void)printf("before: %s, ", stk_text_clean(text, sizeof(text), stk_str(b, "name"), false));
    (void)printf("%s to %s", stk_text_time(stk_num(b, "since", 0), a, sizeof(a)),
                 stk_text_time(stk_num(b, "until", 0), z, sizeof(z)));
    if (*stk_str(b, "note"))
        (void)printf(" (%s)", stk_text_clean(text, sizeof(text), stk_str(b, "note"), false));
    (void)printf("\nnow:    %s to %s\n\n", stk_text_time(stk_num(p, "since", 0), a, sizeof(a)),
                 stk_text_time(stk_num(p, "until", 0), z, sizeof(z)));
    stk_compare_print(k, stk_baseline_figures, sides, 2, 0);
    (void)printf("\n%s\n",
                 json_array_size(notes) ? "What was changed:" : "Nothing was changed meanwhile.");
    for (size_t i = json_array_size(notes); i > 0; i--) {
        const json_t *n = json_array_get(notes, i - 1);

        (void)printf("  %s  %s: ", stk_text_time(stk_num(n, "at", 0), a, sizeof(a)),
                     stk_str(n, "kind"));
        (void)printf("%s%s%s\n", stk_text_clean(text, sizeof(text), stk_str(n, "text"), false),
                     *stk_str(n, "user") ? ", by " : "", stk_str(n, "user"));
    }
}

int stk_baseline_compare(struct stk_ask *k, const char *name, const char *since, json_t **ret)
{
    json_t *period = json_object();
    char path[400], escaped[256], number[32];
    const json_t *v;
    int rc = since || stk_arg(k->a, "since") || stk_arg(k->a, "until")
                 ? stk_period(k->a, "7d", period)
                 : STK_EXIT_OK;

    (void)snprintf(path, sizeof(path), "/v1/baselines/%s/compare",
                   stk_client_escape(escaped, sizeof(escaped), name));
    if ((since || stk_arg(k->a, "since")) && (v = json_object_get(period, "since"))) {
        (void)snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(v));
        stk_query(path, sizeof(path), "since", number);
    }
    if ((v = json_object_get(period, "until"))) {
        (void)snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(v));
        stk_query(path, sizeof(path), "until", number);
    }
    json_decref(period);
    return rc != STK_EXIT_OK ? rc : stk_ask_get(k, ret, "%s", path);
}

static int compare(struct stk_ask *k)
{
    json_t *reply = NULL;
    int rc = stk_baseline_compare(k, k->a->words[1], NULL, &reply);

    if (rc == STK_EXIT_OK && k->json)
        stk_print_json(reply);
    else if (rc == STK_EXIT_OK)
        stk_baseline_print(k, reply);
    json_decref(reply);
    return rc;
}

static int add(struct stk_ask *k)
{
    json_t *body = json_pack("{s:s,s:s*}", "name", k->a->words[1], "note", stk_arg(k->a, "note")),
           *reply = NULL;
    int rc = stk_period(k->a, NULL, body);

    rc = rc == STK_EXIT_OK ? stk_ask_do(k, "POST", "/v1/baselines", body, &reply) : rc;
    if (rc == STK_EXIT_OK && k->json)
        stk_print_json(reply);
    else if (rc == STK_EXIT_OK)
        (void)printf("baseline %.64s: %lld jobs; compare with it: stoker baseline compare %.64s\n",
                     k->a->words[1],
                     (long long)stk_int(json_object_get(reply, "figures"), "jobs", 0),
                     k->a->words[1]);
    json_decref(body);
    json_decref(reply);
    return rc;
}

static int rm(struct stk_ask *k)
{
    char path[300], name[256];
    int rc;

    (void)snprintf(path, sizeof(path), "/v1/baselines/%s",
                   stk_client_escape(name, sizeof(name), k->a->words[1]));
    rc = stk_ask_do(k, "DELETE", path, NULL, NULL);
    if (rc == STK_EXIT_OK && !k->json)
        (void)printf("baseline %.64s removed\n", k->a->words[1]);
    return rc;
}

static int note(struct stk_ask *k)
{
    json_t *body = json_pack("{s:s}", "text", k->a->words[1]), *reply = NULL;
    int rc = stk_ask_do(k, "POST", "/v1/notes", body, &reply);

    if (rc == STK_EXIT_OK && k->json)
        stk_print_json(reply);
    else if (rc == STK_EXIT_OK)
        (void)printf("noted\n");
    json_decref(body);
    json_decref(reply);
    return rc;
}

#define TEXT 32

/* The figure times 'factor' as text; "-" where it is not known. */
__attribute__((format(printf, 3, 0))) static const char *
known(const json_t *f, const char *key, const char *format, double factor, char buf[TEXT])
{
    const json_t *v = json_object_get(f, key);

    if (!json_is_number(v))
        return "-";
    (void)snprintf(buf, TEXT, format, json_number_value(v) * factor);
    return buf;
}

static int list(struct stk_ask *k)
{
    static const struct stk_column columns[] = {
        {"NAME", false, 8},     {"FROM", false, 0}, {"TO", false, 0},  {"JOBS", true, 0},
        {"MEAN WAIT", true, 0}, {"UTIL", true, 0},  {"NOTE", false, 8}};
    struct stk_table *t = stk_table_new(columns, sizeof(columns) / sizeof(*columns));
    json_t *reply = NULL, *b;
    size_t i;
    int rc = stk_ask_get(k, &reply, "/v1/baselines");

    if (rc == STK_EXIT_OK && k->json)
        stk_print_json(reply);
    json_array_foreach(json_object_get(reply, "baselines"), i, b)
    {
        const json_t *f = json_object_get(b, "figures");
        char text[TEXT];

        stk_table_cell(t, STK_PLAIN, "%s", stk_str(b, "name"));
        stk_table_cell(t, STK_PLAIN, "%s",
                       stk_text_time(stk_num(b, "since", 0), text, sizeof(text)));
        stk_table_cell(t, STK_PLAIN, "%s",
                       stk_text_time(stk_num(b, "until", 0), text, sizeof(text)));
        stk_table_cell(t, STK_PLAIN, "%lld", (long long)stk_int(f, "jobs", 0));
        stk_table_cell(t, STK_PLAIN, "%s", known(f, "avg_wait_s", "%.0f s", 1, text));
        stk_table_cell(t, STK_PLAIN, "%s", known(f, "utilization", "%.1f%%", 100, text));
        stk_table_cell(t, STK_PLAIN, "%s", stk_str(b, "note"));
    }
    if (rc == STK_EXIT_OK && !k->json)
        (void)stk_table_print(t, &k->out, 0);
    stk_table_free(t);
    json_decref(reply);
    return rc;
}

static int run_baseline(const struct stk_args *a)
{
    static const struct stk_verb verbs[] = {
        {"list", NULL, list, false},
        {"add", "under which name?", add, false},
        {"rm", "which baseline? (stoker baseline list)", rm, false},
        {"compare", "with which baseline? (stoker baseline list)", compare, false},
        {"note", "what was changed?", note, false},
        {0}};

    return stk_ask_verb(a, verbs,
                        "list, add NAME --since WHEN, rm NAME, compare NAME or note TEXT");
}

static const struct stk_option own[] = {
    {"since", 0, "WHEN",
     "the period begins: 7d (ago), 2026-11-01, 2026-11-01T08:00;\ncompare: since the baseline's "
     "end",
     NULL},
    {"until", 0, "WHEN", "and ends (now)", NULL},
    {"note", 0, "TEXT", "add: what it is", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

const struct stk_command stk_cmd_baseline = {
    .name = "baseline",
    .synopsis = "list\nadd NAME --since WHEN [--until WHEN] [--note TEXT]\nrm NAME\n"
                "compare NAME [--since WHEN] [--until WHEN]\nnote TEXT",
    .help = "mark a period, and compare another with it",
    .about = "After a change of policy or configuration: how were jobs, waits and utilization\n"
             "before, how are they now, and what was changed when. The figures of a baseline are\n"
             "kept when its jobs are forgotten. The daemon writes down what is changed in it; a\n"
             "note is for what it cannot know of, such as a new driver.",
    .complete = "list add rm compare note",
    .options = groups,
    .section = STK_SECTION_SITE,
    .run = run_baseline,
};
