/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - "stoker report": a period in numbers, on the terminal, as a page or as JSON. */
#include "cli/report.h"

#include <errno.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/baseline.h"
#include "cli/table.h"
#include "cli/view.h"

const char *stk_report_number(const json_t *o, const char *key, char *buf, size_t size)
{
    double v = stk_num(o, key, -1);
    long long whole = (long long)v;

    if (v < 0)
        (void)snprintf(buf, size, "-");
    else if (v > 0 && v < 1)
        (void)snprintf(buf, size, "%.*f", v < 0.1 ? 4 : 2, v);
    else if (v < 100)
        (void)snprintf(buf, size, "%.1f", v);
    else if (whole < 1000)
        (void)snprintf(buf, size, "%lld", whole);
    else if (whole < 1000000)
        (void)snprintf(buf, size, "%lld,%03lld", whole / 1000, whole % 1000);
    else
        (void)snprintf(buf, size, "%lld,%03lld,%03lld", whole / 1000000, whole / 1000 % 1000,
                       whole % 1000);
    return buf;
}

const char *stk_report_share(const json_t *o, const char *key, char *buf, size_t size)
{
    double v = stk_num(o, key, -1);

    if (v < 0)
        (void)snprintf(buf, size, "-");
    else
        (void)snprintf(buf, size, "%.0f%%", v * 100);
    return buf;
}

const char *stk_report_money(const json_t *report, const json_t *o, const char *key, char *buf,
                             size_t size)
{
    const char *currency = stk_str(json_object_get(report, "price"), "currency");
    double v = stk_num(o, key, -1);

    buf[0] = '\0';
    if (v >= 0)
        (void)snprintf(buf, size, "%.2f%s%.8s", v, *currency ? " " : "", currency);
    return buf;
}

/* ---- on the terminal ---- */

static void line(const struct stk_ask *k, const char *name, const char *text)
{
    (void)printf("%s%-12s%s %s\n", stk_term_on(&k->out, STK_DIM), name,
                 stk_term_off(&k->out, STK_DIM), text);
}

static const char *count_of(const json_t *o, const char *key, char *buf, size_t size)
{
    (void)snprintf(buf, size, "%lld", (long long)stk_int(o, key, 0));
    return buf;
}

/* How active GPUs were, and of how much that is known. */
static const char *say_active(const json_t *c, char *buf, size_t size)
{
    const double allocated = stk_num(c, "allocated_gpu_hours", 0);
    const double unknown = allocated - stk_num(c, "measured_gpu_hours", 0);
    char a[32], b[16];

    if (!json_is_number(json_object_get(c, "active")))
        return "activity not measured";
    (void)snprintf(buf, size, "%s active (%s)",
                   stk_report_number(c, "active_gpu_hours", a, sizeof(a)),
                   stk_report_share(c, "active", b, sizeof(b)));
    if (unknown > 0.01 * allocated)
        (void)snprintf(buf + strlen(buf), size - strlen(buf), ", activity of %.3g not measured",
                       unknown);
    return buf;
}

static void print_whole(const struct stk_ask *k, const json_t *r)
{
    const json_t *c = json_object_get(r, "cluster"), *all = json_object_get(r, "all");
    char a[32], b[32], d[32], e[96], text[256];

    (void)snprintf(text, sizeof(text), "%s to %s",
                   stk_text_time(stk_num(r, "since", 0), a, sizeof(a)),
                   stk_text_time(stk_num(r, "until", 0), b, sizeof(b)));
    line(k, "period", text);
    (void)snprintf(text, sizeof(text), "%s of %s GPU-hours allocated (%s), %s; %s GPUs",
                   stk_report_number(c, "allocated_gpu_hours", a, sizeof(a)),
                   stk_report_number(c, "gpu_hours", b, sizeof(b)),
                   stk_report_share(c, "allocated", d, sizeof(d)), say_active(c, e, sizeof(e)),
                   count_of(c, "gpus", (char[32]){0}, 32));
    line(k, "utilization", text);
    (void)snprintf(text, sizeof(text), "%s GPU-hours allocated and not active%s%s",
                   stk_report_number(c, "idle_gpu_hours", a, sizeof(a)),
                   stk_num(c, "idle_money", -1) >= 0 ? ": " : "",
                   stk_report_money(r, c, "idle_money", b, sizeof(b)));
    line(k, "waste", text);
    (void)snprintf(text, sizeof(text), "%s GPU-hours%s%s",
                   stk_report_number(all, "gpu_hours", a, sizeof(a)),
                   stk_num(all, "money", -1) >= 0 ? ", " : "",
                   stk_report_money(r, all, "money", b, sizeof(b)));
    if (stk_num(all, "kwh", -1) >= 0) /* what the money is made of: not that of idle GPUs */
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), ", %s kWh",
                       stk_report_number(all, "kwh", a, sizeof(a)));
    line(k, "cost", text);
    (void)snprintf(text, sizeof(text), "%lld, %lld failed, %lld preemptions%s",
                   (long long)stk_int(all, "jobs", 0), (long long)stk_int(all, "failed", 0),
                   (long long)stk_int(all, "preemptions", 0),
                   stk_yes(r, "truncated") ? " (the latest; there were more)" : "");
    line(k, "jobs", text);
}

static int print_groups(const struct stk_ask *k, const json_t *r)
{
    static const struct stk_column columns[] = {
        {"NAME", false, 10},     {"JOBS", true, 0}, {"GPU-HOURS", true, 0}, {"UTIL", true, 0},
        {"IDLE GPU-H", true, 0}, {"COST", true, 0}, {"WAIT P50", true, 0},  {"WAIT P90", true, 0}};
    struct stk_table *t = stk_table_new(columns, 8);
    const json_t *g;
    char b[40];
    size_t i;
    int rc;

    json_array_foreach(json_object_get(r, "groups"), i, g)
    {
        stk_table_cell(t, STK_PLAIN, "%s", *stk_str(g, "name") ? stk_str(g, "name") : "-");
        stk_table_cell(t, STK_PLAIN, "%lld", (long long)stk_int(g, "jobs", 0));
        stk_table_cell(t, STK_PLAIN, "%s", stk_report_number(g, "gpu_hours", b, sizeof(b)));
        stk_table_cell(t, STK_PLAIN, "%s", stk_report_share(g, "util", b, sizeof(b)));
        stk_table_cell(t, STK_PLAIN, "%s", stk_report_number(g, "idle_gpu_hours", b, sizeof(b)));
        stk_table_cell(t, STK_PLAIN, "%s", stk_report_money(r, g, "money", b, sizeof(b)));
        stk_table_cell(t, STK_PLAIN, "%s",
                       stk_text_duration(stk_num(g, "wait_p50_s", -1), b, sizeof(b)));
        stk_table_cell(t, STK_PLAIN, "%s",
                       stk_text_duration(stk_num(g, "wait_p90_s", -1), b, sizeof(b)));
    }
    (void)printf("\n");
    rc = t ? stk_table_print(t, &k->out, 0) : -ENOMEM;
    stk_table_free(t);
    return rc;
}

static void print_jobs(const json_t *list, const char *title, const char *key, bool time)
{
    const json_t *j;
    char b[40], name[64], user[64];
    size_t i;

    if (json_array_size(list) > 0)
        (void)printf("\n%s\n", title);
    json_array_foreach(list, i, j)
    {
        if (i < 5)
            (void)printf("  job %-7lld %-20s %-10s %5g GPUs  %s%s%s%s\n",
                         (long long)stk_int(j, "id", 0),
                         stk_text_clean(name, sizeof(name), stk_str(j, "name"), false),
                         stk_text_clean(user, sizeof(user), stk_str(j, "user"), false),
                         stk_num(j, "gpus", 0),
                         time ? stk_text_duration(stk_num(j, key, 0), b, sizeof(b))
                              : stk_report_number(j, key, b, sizeof(b)),
                         time ? "" : " GPU-hours", *stk_str(j, "advice") && !time ? ": " : "",
                         time ? "" : stk_str(j, "advice"));
    }
}

static void print_advice(const json_t *r)
{
    const json_t *list = json_object_get(r, "recommendations"), *x;
    char b[40], money[40], text[512];
    size_t i;

    if (json_array_size(list) > 0)
        (void)printf("\nwhat could be better\n");
    json_array_foreach(list, i, x)
    {
        (void)printf("  %s\n", stk_text_clean(text, sizeof(text), stk_str(x, "text"), false));
        (void)printf("    %s; up to %s GPU-hours%s%s\n", stk_str(x, "evidence"),
                     stk_report_number(x, "gpu_hours", b, sizeof(b)),
                     stk_num(x, "money", -1) >= 0 ? ", " : "",
                     stk_report_money(r, x, "money", money, sizeof(money)));
    }
}

static int print(const struct stk_ask *k, const json_t *r)
{
    int rc;

    print_whole(k, r);
    rc = print_groups(k, r);
    print_jobs(json_object_get(r, "waste"), "most GPU time allocated and not active",
               "idle_gpu_hours", false);
    print_jobs(json_object_get(r, "waits"), "longest waits", "wait_s", true);
    print_advice(r);
    return rc < 0 ? stk_ask_fail(k, rc, &(struct stk_err){"out of memory"}) : STK_EXIT_OK;
}

/* ---- the command ---- */

static int write_page(const struct stk_ask *k, const json_t *r, const char *path)
{
    bool out = strcmp(path, "-") == 0;
    FILE *f = out ? stdout : fopen(path, "we");
    struct stk_err err;

    if (f) {
        stk_report_page(f, r);
        if (fflush(f) == 0 && (out || fclose(f) == 0))
            return STK_EXIT_OK;
    }
    (void)stk_err_set(&err, -errno, "%s: %s", path, strerror(errno));
    return stk_ask_fail(k, -errno, &err);
}

/* The same period beside a baseline: its member "against". */
static int add_against(struct stk_ask *k, json_t *report)
{
    const char *name = stk_arg(k->a, "against");
    json_t *compared = NULL;
    int rc = name ? stk_baseline_compare(k, name, "7d", &compared) : STK_EXIT_OK;

    if (compared)
        (void)json_object_set_new(report, "against", compared);
    return rc;
}

/* Wherever it is wanted. */
static int show(const struct stk_ask *k, const json_t *report)
{
    const json_t *against = json_object_get(report, "against");
    const char *html = stk_arg(k->a, "html");
    int rc;

    if (html)
        return write_page(k, report, html);
    if (k->json) {
        stk_print_json(report);
        return STK_EXIT_OK;
    }
    rc = print(k, report);
    if (against && rc == STK_EXIT_OK) {
        (void)printf("\nAgainst %.64s\n", stk_arg(k->a, "against"));
        stk_baseline_print(k, against);
    }
    return rc;
}

static int run_report(const struct stk_args *a)
{
    char path[256] = "/v1/report";
    json_t *reply = NULL;
    struct stk_ask k;
    int rc;

    if (a->n_words > 0)
        return stk_misused(a, "it takes no words");
    rc = stk_query_time(a, "since", path, sizeof(path));
    rc = rc != STK_EXIT_OK ? rc : stk_query_time(a, "until", path, sizeof(path));
    rc = rc != STK_EXIT_OK ? rc : stk_ask_open(&k, a);
    if (rc != STK_EXIT_OK)
        return rc;
    stk_query(path, sizeof(path), "by", stk_arg(a, "by"));
    rc = stk_ask_get(&k, &reply, "%s", path);
    rc = rc == STK_EXIT_OK ? add_against(&k, reply) : rc;
    rc = rc == STK_EXIT_OK ? show(&k, reply) : rc;
    json_decref(reply);
    stk_ask_close(&k);
    return rc;
}

static const struct stk_option own[] = {
    {"since", 0, "TIME", "from then on: 2026-01-31, 14:00, or 7d ago, which it is when not said",
     NULL},
    {"until", 0, "TIME", "and up to then", NULL},
    {"by", 0, "WHAT", "team (tenant), user or queue", NULL},
    {"against", 0, "NAME", "compare with a baseline (stoker baseline list)", NULL},
    {"html", 0, "FILE", "write a page that can be printed and mailed; -: to standard output", NULL},
    {0},
};
static const struct stk_options groups[] = {{"options", own}, {0}};

const struct stk_command stk_cmd_report = {
    .name = "report",
    .synopsis = "[--since 7d] [--by team|user|queue] [--against BASELINE] [--html FILE]",
    .help = "a period in numbers: utilization, waste, waits, cost, what could be better",
    .about = "Prices are in the configuration (cost.gpu_hour, cost.kwh). A weekly mail:\n"
             "stoker report --since 7d --html week.html",
    .options = groups,
    .section = STK_SECTION_LOOK,
    .run = run_report,
};
