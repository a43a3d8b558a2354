/* SPDX-License-Identifier: Apache-2.0 */
/* whatif.c - "stoker whatif": what would have happened with another policy, more nodes or other
 * quotas. The daemon works it out in the background; this asks, waits, and shows what was recorded,
 * what the simulator makes of it, and what it makes of it with the changes, side by side. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/compare.h"
#include "cli/table.h"
#include "cli/view.h"
#include "sim/slurp.h"
#include "spec/words.h"

#define MAX_IMPORT ((size_t)8 << 20)

/* ---- the question ---- */

/* "order=fairshare" is a choice, "las.round_s=60" a parameter. */
static int add_set(const struct stk_ask *k, json_t *changes, const char *text)
{
    static const char *const choices[] = {"bundle", "order", "backfill", "place", "preempt"};
    size_t n = strcspn(text, "=");
    json_t *policy = json_object_get(changes, "policy"), *params;
    char name[32];

    if (text[n] == '\0' || n == 0)
        return stk_misused(k->a, "--set takes NAME=VALUE such as order=fairshare, got \"%s\"",
                           text);
    if (!policy) {
        policy = json_pack("{s:[]}", "params");
        (void)json_object_set_new(changes, "policy", policy);
    }
    (void)snprintf(name, sizeof(name), "%.*s", (int)n, text);
    for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++)
        if (n == strlen(choices[i]) && strcmp(name, choices[i]) == 0)
            return json_object_set_new(policy, name, json_string(text + n + 1)) < 0
                       ? STK_EXIT_FAILED
                       : STK_EXIT_OK;
    params = json_object_get(policy, "params");
    return json_array_append_new(params, json_string(text)) < 0 ? STK_EXIT_FAILED : STK_EXIT_OK;
}

/* "vision.limit=6", or "vision.limit=none". */
static int add_quota(const struct stk_ask *k, json_t *changes, const char *text)
{
    const char *equals = strrchr(text, '='), *dot = NULL;
    json_t *quotas = json_object_get(changes, "quotas"), *tenant;
    char name[256], key[32], *end = NULL;
    double n = 0;
    bool none;

    for (const char *p = text; equals && p < equals; p++)
        dot = *p == '.' ? p : dot;
    none = equals && strcmp(equals + 1, "none") == 0;
    if (equals && !none)
        n = strtod(equals + 1, &end);
    if (!dot || dot == text || (!none && (!end || *end != '\0' || end == equals + 1)) ||
        !isfinite(n) || (size_t)(equals - dot) > sizeof(key))
        return stk_misused(
            k->a, "--quota takes TENANT.limit=GPUS (or guarantee, weight; none), got \"%s\"", text);
    (void)snprintf(name, sizeof(name), "%.*s", (int)(dot - text), text);
    (void)snprintf(key, sizeof(key), "%.*s", (int)(equals - dot - 1), dot + 1);
    if (!quotas) {
        quotas = json_object();
        (void)json_object_set_new(changes, "quotas", quotas);
    }
    tenant = json_object_get(quotas, name);
    if (!tenant) {
        tenant = json_object();
        (void)json_object_set_new(quotas, name, tenant);
    }
    return json_object_set_new(tenant, key, none ? json_null() : json_real(n)) < 0 ? STK_EXIT_FAILED
                                                                                   : STK_EXIT_OK;
}

static int add_import(const struct stk_ask *k, json_t *question, const char *path)
{
    const char *format = stk_arg(k->a, "format"), *cluster = stk_arg(k->a, "cluster");
    struct stk_err err = {""};
    char *text = NULL;
    size_t len = 0;
    json_t *import, *body;
    int rc = stk_slurp(path, &text, &len, &err);

    if (rc < 0)
        return stk_ask_fail(k, -EINVAL, &err);
    if (len > MAX_IMPORT) {
        free(text);
        return stk_misused(k->a,
                           "%s is larger than 8 MiB; for such: stoker sim %s --recorded --compare "
                           "default,fifo",
                           path, path);
    }
    body = json_stringn(text, len);
    free(text);
    if (!body)
        return stk_misused(k->a, "%s is not UTF-8 text", path);
    import = json_pack("{s:o,s:s*,s:s*}", "text", body, "format", format, "cluster", cluster);
    return json_object_set_new(question, "import", import) < 0 ? STK_EXIT_FAILED : STK_EXIT_OK;
}

static int make_question(const struct stk_ask *k, json_t **ret)
{
    json_t *changes = json_object(), *q = json_pack("{s:o}", "changes", changes);
    const char *text, *since = stk_arg(k->a, "since"), *until = stk_arg(k->a, "until");
    int at = 0, rc = STK_EXIT_OK;

    while (rc == STK_EXIT_OK && (text = stk_arg_next(k->a, "set", &at)))
        rc = add_set(k, changes, text);
    at = 0;
    while (rc == STK_EXIT_OK && (text = stk_arg_next(k->a, "quota", &at)))
        rc = add_quota(k, changes, text);
    if ((text = stk_arg(k->a, "add-nodes")))
        (void)json_object_set_new(changes, "add_nodes", json_string(text));
    if ((text = stk_arg(k->a, "remove-nodes")))
        (void)json_object_set_new(changes, "remove_nodes", json_string(text));
    if ((text = stk_arg(k->a, "title")))
        (void)json_object_set_new(q, "title", json_string(text));
    if (rc == STK_EXIT_OK && (text = stk_arg(k->a, "trace")))
        rc = since || until ? stk_misused(k->a, "--trace is a period of its own: leave out --since "
                                                "and --until")
                            : add_import(k, q, text);
    else if (rc == STK_EXIT_OK)
        rc = stk_period(k->a, "7d", q);
    if (rc != STK_EXIT_OK) {
        json_decref(q);
        return rc;
    }
    *ret = q;
    return rc;
}

/* ---- waiting ---- */

static volatile sig_atomic_t stopped;

static void on_stop(int sig)
{
    (void)sig;
    stopped = 1;
}

static void draw(const struct stk_ask *k, const json_t *q)
{
    if (isatty(STDERR_FILENO) == 1 && !k->json)
        (void)fprintf(stderr, "\r\033[K%3.0f%%  %s", stk_num(q, "progress", 0) * 100,
                      stk_str(q, "step"));
}

/* Until it is answered. Ctrl-C takes the question back. */
static int wait_for(struct stk_ask *k, int64_t id, json_t **ret)
{
    struct timespec pause = {0, 100000000};
    json_t *q = NULL;
    char path[64];
    int rc;

    (void)signal(SIGINT, on_stop);
    (void)signal(SIGTERM, on_stop);
    (void)snprintf(path, sizeof(path), "/v1/whatif/%lld", (long long)id);
    for (;;) {
        json_decref(q);
        q = NULL;
        rc = stk_ask_get(k, &q, "%s", path);
        if (rc != STK_EXIT_OK)
            return rc;
        if (strcmp(stk_str(q, "state"), "done") == 0 || strcmp(stk_str(q, "state"), "failed") == 0)
            break;
        draw(k, q);
        (void)nanosleep(&pause, NULL);
        if (pause.tv_nsec < 500000000)
            pause.tv_nsec += 50000000;
        if (stopped) {
            json_decref(q);
            (void)stk_ask_do(k, "DELETE", path, NULL, NULL);
            (void)fprintf(stderr, "\nstoker whatif: stopped\n");
            return STK_EXIT_FAILED;
        }
    }
    if (isatty(STDERR_FILENO) == 1 && !k->json)
        (void)fprintf(stderr, "\r\033[K");
    *ret = q;
    return STK_EXIT_OK;
}

/* ---- showing ---- */

static const struct stk_figure figures[] = {
    {"finished", "jobs", STK_FIGURE_COUNT, 0},
    {"avg_jct_s", "completion, mean", STK_FIGURE_TIME, -1},
    {"p50_jct_s", "completion, median", STK_FIGURE_TIME, -1},
    {"p90_jct_s", "completion, p90", STK_FIGURE_TIME, -1},
    {"p99_jct_s", "completion, p99", STK_FIGURE_TIME, -1},
    {"avg_wait_s", "wait, mean", STK_FIGURE_TIME, -1},
    {"p50_wait_s", "wait, median", STK_FIGURE_TIME, -1},
    {"p90_wait_s", "wait, p90", STK_FIGURE_TIME, -1},
    {"p99_wait_s", "wait, p99", STK_FIGURE_TIME, -1},
    {"avg_bounded_slowdown", "slowdown", STK_FIGURE_NUMBER, -1},
    {"utilization", "utilization", STK_FIGURE_SHARE, 1},
    {"gpu_hours", "GPU-hours", STK_FIGURE_NUMBER, 0},
    {"gpus", "GPUs", STK_FIGURE_COUNT, 0},
    {"preemptions", "preemptions", STK_FIGURE_COUNT, -1},
    {"max_waiting", "longest queue", STK_FIGURE_COUNT, -1},
    {"fairness.jain", "fairness (Jain)", STK_FIGURE_NUMBER, 1},
    {"fairness.rho_worst", "worst rho", STK_FIGURE_NUMBER, -1},
    {0},
};

static void show_counts(const json_t *result)
{
    const json_t *jobs = json_object_get(result, "jobs");
    char from[32], to[32];

    (void)printf("%lld jobs from %s", (long long)stk_int(jobs, "compared", 0),
                 stk_text_time(stk_num(result, "since", 0), from, sizeof(from)));
    (void)printf(" to %s", stk_text_time(stk_num(result, "until", 0), to, sizeof(to)));
    if (stk_int(jobs, "carried_over", 0) || stk_int(jobs, "running", 0))
        (void)printf("; beside them %lld that were there before, %lld that have not ended",
                     (long long)stk_int(jobs, "carried_over", 0),
                     (long long)stk_int(jobs, "running", 0));
    if (stk_int(jobs, "left_out", 0) || stk_int(jobs, "malformed", 0))
        (void)printf("; left out: %lld without GPUs or never started, %lld malformed",
                     (long long)stk_int(jobs, "left_out", 0),
                     (long long)stk_int(jobs, "malformed", 0));
    (void)printf("\n\n");
}

static int show(struct stk_ask *k, const json_t *q)
{
    const json_t *result = json_object_get(q, "result"), *after;
    char text[300];

    if (strcmp(stk_str(q, "state"), "failed") == 0) {
        (void)fprintf(stderr, "stoker whatif: %s\n",
                      stk_text_clean(text, sizeof(text), stk_str(q, "error"), false));
        return STK_EXIT_FAILED;
    }
    after = json_object_get(result, "after");
    show_counts(result);
    {
        const struct stk_side sides[] = {{"recorded", json_object_get(result, "recorded")},
                                         {"simulated", json_object_get(result, "before")},
                                         {"with changes", after}};
        bool changed = json_is_object(after);

        stk_compare_print(k, figures, sides, changed ? 3 : 2, changed ? 1 : 2);
        (void)printf("\nrecorded: as it happened. simulated: the same policy in the simulator%s\n",
                     changed ? "; the last column is against it."
                             : ".\nNo change was asked for: where the two differ, it is the "
                               "simulator's own error.");
    }
    return STK_EXIT_OK;
}

static int list(struct stk_ask *k)
{
    static const struct stk_column columns[] = {{"ID", true, 0},    {"WHEN", false, 0},
                                                {"USER", false, 6}, {"STATE", false, 0},
                                                {"DONE", true, 0},  {"CHANGES", false, 12}};
    struct stk_table *t = stk_table_new(columns, sizeof(columns) / sizeof(*columns));
    json_t *reply = NULL, *q;
    size_t i;
    int rc = stk_ask_get(k, &reply, "/v1/whatif");

    if (rc == STK_EXIT_OK && k->json)
        stk_print_json(reply);
    json_array_foreach(json_object_get(reply, "questions"), i, q)
    {
        char when[32],
            *text = json_dumps(json_object_get(json_object_get(q, "question"), "changes"),
                               JSON_COMPACT);

        stk_table_cell(t, STK_PLAIN, "%lld", (long long)stk_int(q, "id", 0));
        stk_table_cell(t, STK_PLAIN, "%s", stk_text_time(stk_num(q, "at", 0), when, sizeof(when)));
        stk_table_cell(t, STK_PLAIN, "%s", stk_str(q, "user"));
        stk_table_cell(t, STK_PLAIN, "%s", stk_str(q, "state"));
        stk_table_cell(t, STK_PLAIN, "%.0f%%", stk_num(q, "progress", 0) * 100);
        stk_table_cell(t, STK_PLAIN, "%s", text ? text : "");
        free(text);
    }
    if (rc == STK_EXIT_OK && !k->json)
        (void)stk_table_print(t, &k->out, 0);
    stk_table_free(t);
    json_decref(reply);
    return rc;
}

static int look(struct stk_ask *k, const char *verb, const char *id)
{
    json_t *q = NULL;
    char path[300], name[256];
    int rc;

    (void)snprintf(path, sizeof(path), "/v1/whatif/%s", stk_client_escape(name, sizeof(name), id));
    if (strcmp(verb, "rm") == 0) {
        rc = stk_ask_do(k, "DELETE", path, NULL, &q);
        if (rc == STK_EXIT_OK && k->json)
            stk_print_json(q);
        json_decref(q);
        return rc;
    }
    rc = stk_ask_get(k, &q, "%s", path);
    if (rc == STK_EXIT_OK && k->json)
        stk_print_json(q);
    else if (rc == STK_EXIT_OK &&
             (json_is_object(json_object_get(q, "result")) || *stk_str(q, "error")))
        rc = show(k, q);
    else if (rc == STK_EXIT_OK)
        (void)printf("%s, %.0f%%\n", stk_str(q, "state"), stk_num(q, "progress", 0) * 100);
    json_decref(q);
    return rc;
}

static int ask(struct stk_ask *k)
{
    json_t *question = NULL, *reply = NULL, *q = NULL;
    int rc = make_question(k, &question);

    rc = rc == STK_EXIT_OK ? stk_ask_do(k, "POST", "/v1/whatif", question, &reply) : rc;
    if (rc == STK_EXIT_OK && stk_arg_is(k->a, "no-wait")) {
        if (k->json)
            stk_print_json(reply);
        else
            (void)printf("asked: stoker whatif show %lld\n", (long long)stk_int(reply, "id", 0));
    } else if (rc == STK_EXIT_OK) {
        rc = wait_for(k, stk_int(reply, "id", 0), &q);
        if (rc == STK_EXIT_OK && k->json) {
            stk_print_json(q);
            rc = *stk_str(q, "error") ? STK_EXIT_FAILED : STK_EXIT_OK;
        } else if (rc == STK_EXIT_OK) {
            rc = show(k, q);
        }
    }
    json_decref(question);
    json_decref(reply);
    json_decref(q);
    return rc;
}

static int run_whatif(const struct stk_args *a)
{
    const char *verb = a->n_words > 0 ? a->words[0] : NULL;
    bool named = verb && (strcmp(verb, "show") == 0 || strcmp(verb, "rm") == 0);
    struct stk_ask k;
    int rc;

    if (named && a->n_words != 2)
        return stk_misused(a, "which question? (stoker whatif list)");
    if (verb && !named && (strcmp(verb, "list") != 0 || a->n_words > 1))
        return stk_misused(a, "only options, or list, show ID, rm ID");
    rc = stk_ask_open(&k, a);
    if (rc == STK_EXIT_OK)
        rc = named ? look(&k, verb, a->words[1]) : verb ? list(&k) : ask(&k);
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option own[] = {
    {"since", 0, "WHEN", "the period begins: 7d (ago), 2026-11-01, 2026-11-01T08:00 (7d)", NULL},
    {"until", 0, "WHEN", "and ends (now)", NULL},
    {"trace", 0, "FILE", "in place of a period: sacct --parsable2, SWF, JSON Lines", "@files"},
    {"format", 0, "NAME", "of the trace, where it is not seen", NULL},
    {"cluster", 0, "SPEC", "of the trace: NODESxGPUS[:TYPE] (guessed)", NULL},
    {"set", 0, "NAME=VALUE",
     "bundle, order, backfill, place, preempt or a parameter;\nmay be repeated", NULL},
    {"add-nodes", 0, "SPEC", "more machines: 4x8:H100, joined by +", NULL},
    {"remove-nodes", 0, "SPEC", "fewer machines, likewise", NULL},
    {"quota", 0, "TENANT.NAME=N", "limit, guarantee or weight of a tenant; may be repeated", NULL},
    {"title", 0, "TEXT", "to know it by", NULL},
    {"no-wait", 0, NULL, "only ask; stoker whatif show ID has the answer", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

const struct stk_command stk_cmd_whatif = {
    .name = "whatif",
    .synopsis = "[--since 7d] [--set NAME=VALUE]... [--add-nodes SPEC] [--quota T.limit=N]...\n"
                "--trace FILE [--set NAME=VALUE]...\nlist\nshow ID\nrm ID",
    .help = "what would have happened with another policy, more nodes, other quotas",
    .about = "The daemon replays its own past in the simulator, in the background: as it was, and\n"
             "with the changes. What was recorded stands beside both, so that the simulation's\n"
             "own error shows. A user may have one such question at a time, operators several.",
    .complete = "list show rm",
    .options = groups,
    .section = STK_SECTION_LOOK,
    .run = run_whatif,
};
