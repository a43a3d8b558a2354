/* SPDX-License-Identifier: Apache-2.0 */
/* top_frame.c - what a frame shows: a line about the whole, the GPUs, running jobs, waiting jobs
 * with their reasons, and the users' shares. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/ask.h"
#include "cli/gpus.h"
#include "cli/table.h"
#include "cli/top.h"
#include "cli/view.h"

#define MAX_USERS 64

static const char *const sorts[] = {"time", "GPUs", "user"};

static bool wanted(const struct stk_top *top, const json_t *job)
{
    return top->filter[0] == '\0' || strcasestr(stk_str(job, "name"), top->filter) ||
           strcasestr(stk_str(job, "user"), top->filter);
}

struct row {
    const json_t *job;
    const struct stk_top *top;
};

static int compare(const void *x, const void *y)
{
    const struct row *a = x, *b = y;
    double ga = stk_num(a->job, "gpus", 0), gb = stk_num(b->job, "gpus", 0);
    int64_t da, db;
    int by = 0;

    if (a->top->sort == STK_TOP_GPUS)
        by = (ga < gb) - (ga > gb);
    else if (a->top->sort == STK_TOP_USER)
        by = strcmp(stk_str(a->job, "user"), stk_str(b->job, "user"));
    if (by != 0)
        return by;
    da = stk_int(a->job, "id", 0);
    db = stk_int(b->job, "id", 0);
    return (da > db) - (da < db);
}

/* The jobs of a list that pass the filter, sorted; the caller frees. */
static struct row *sorted(const struct stk_top *top, const json_t *list, size_t *ret_n)
{
    struct row *rows = calloc(json_array_size(list) + 1, sizeof(*rows));
    size_t n = 0;

    for (size_t i = 0; rows && i < json_array_size(list); i++)
        if (wanted(top, json_array_get(list, i)))
            rows[n++] = (struct row){json_array_get(list, i), top};
    if (rows)
        qsort(rows, n, sizeof(*rows), compare);
    *ret_n = rows ? n : 0;
    return rows;
}

static int print_jobs(const struct stk_top *top, const json_t *list, const struct stk_term *t,
                      int lines, double now)
{
    static const struct stk_column columns[] = {
        {"ID", true, 0},   {"NAME", false, 8}, {"USER", false, 6},        {"STATE", false, 0},
        {"GPUS", true, 0}, {"TIME", true, 0},  {"GPUS/REASON", false, 10}};
    struct stk_table *table = stk_table_new(columns, sizeof(columns) / sizeof(*columns));
    size_t n = 0;
    struct row *rows = sorted(top, list, &n);
    char id[40], time[32], text[512];

    if (lines < 2 || n == 0 || !table) {
        free(rows);
        stk_table_free(table);
        return 0;
    }
    n = n > (size_t)lines - 1 ? (size_t)lines - 1 : n;
    for (size_t i = 0; i < n; i++) {
        const json_t *job = rows[i].job;
        const char *state = stk_view_state(job);

        stk_table_cell(table, STK_PLAIN, "%s", stk_view_id(job, id, sizeof(id)));
        stk_table_cell(table, STK_PLAIN, "%s", stk_str(job, "name"));
        stk_table_cell(table, STK_PLAIN, "%s", stk_str(job, "user"));
        stk_table_cell(table, stk_state_colour(state), "%s", state);
        stk_table_cell(table, STK_PLAIN, "%s", stk_view_gpus(job, id, sizeof(id)));
        stk_table_cell(table, STK_PLAIN, "%s",
                       stk_text_duration(stk_view_seconds(job, now), time, sizeof(time)));
        stk_table_cell(table, STK_PLAIN, "%s", stk_view_where(job, text, sizeof(text)));
    }
    (void)stk_table_print(table, t, 0);
    stk_table_free(table);
    free(rows);
    return (int)n + 1;
}

struct share {
    const char *user;
    double gpus;
    int jobs;
};

static size_t count_shares(const json_t *running, struct share shares[MAX_USERS])
{
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(running); i++) {
        const json_t *job = json_array_get(running, i);
        size_t u = 0;

        while (u < n && strcmp(shares[u].user, stk_str(job, "user")) != 0)
            u++;
        if (u == MAX_USERS)
            continue;
        if (u == n)
            shares[n++] = (struct share){stk_str(job, "user"), 0, 0};
        shares[u].gpus += stk_num(job, "gpus", 0);
        shares[u].jobs++;
    }
    return n;
}

static int print_shares(const json_t *cluster, const struct stk_term *t, int lines)
{
    struct share shares[MAX_USERS];
    int64_t total = stk_int(json_object_get(cluster, "gpus"), "total", 0);
    size_t n = count_shares(json_object_get(cluster, "running"), shares);
    char bar[20 * 4 + 1], user[64];
    int used = 0;

    for (size_t i = 0; i < n && used < lines; i++, used++)
        (void)fprintf(
            t->f, "%-12s %s %3.4g GPUs in %d job%s\n",
            stk_text_clean(user, sizeof(user), shares[i].user, false),
            stk_term_bar(t, total > 0 ? shares[i].gpus / (double)total : 0, 20, bar, sizeof(bar)),
            shares[i].gpus, shares[i].jobs, shares[i].jobs == 1 ? "" : "s");
    return used;
}

static void print_head(const struct stk_top *top, const json_t *cluster, const struct stk_term *t)
{
    const json_t *jobs = json_object_get(cluster, "jobs"), *gpus = json_object_get(cluster, "gpus");
    char time[32], policy[64], line[512], filter[160] = "", clean[96];
    int n;

    if (top->typing || top->filter[0] != '\0')
        (void)snprintf(filter, sizeof(filter), "  filter: %s%s",
                       stk_text_clean(clean, sizeof(clean), top->filter, false),
                       top->typing ? "_" : "");
    n = snprintf(line, sizeof(line),
                 "stoker %s  %s%s  GPUs %" PRId64 "/%" PRId64 "  running %" PRId64
                 "  waiting %" PRId64 "  held %" PRId64 "  suspended %" PRId64 "  by %s%s",
                 stk_text_time(stk_num(cluster, "now", stk_now()), time, sizeof(time)),
                 stk_text_clean(policy, sizeof(policy), stk_str(cluster, "policy"), false),
                 stk_yes(cluster, "virtual") ? " (virtual GPUs)" : "", stk_int(gpus, "busy", 0),
                 stk_int(gpus, "total", 0), stk_int(jobs, "running", 0),
                 stk_int(jobs, "waiting", 0) + stk_int(jobs, "blocked", 0),
                 stk_int(jobs, "held", 0), stk_int(jobs, "suspended", 0), sorts[top->sort], filter);
    if (n > 0 && t->width > 0)
        line[stk_text_fit(line, t->width)] = '\0';
    (void)fprintf(t->f, "%s%s%s\n", stk_term_on(t, STK_BOLD), line, stk_term_off(t, STK_BOLD));
}

void stk_top_frame(const struct stk_top *top, const json_t *cluster, const struct stk_term *term)
{
    const json_t *running = json_object_get(cluster, "running");
    const json_t *waiting = json_object_get(cluster, "waiting");
    int left = term->height - 1, third, users;
    double now = stk_num(cluster, "now", stk_now());

    print_head(top, cluster, term);
    left -= stk_gpu_lines(json_object_get(cluster, "gpu_list"), term, left / 2 > 0 ? left / 2 : 1);
    users = left / 5;
    third = (left - users - 2) / 2;
    if (left > 4 && json_array_size(running) > 0) {
        (void)fputc('\n', term->f);
        left -= 1 + print_jobs(top, running, term,
                               json_array_size(waiting) > 0 ? third : left - users - 2, now);
    }
    if (left - users > 3 && json_array_size(waiting) > 0) {
        (void)fputc('\n', term->f);
        left -= 1 + print_jobs(top, waiting, term, left - users - 2, now);
    }
    if (left > 2 && json_array_size(running) > 0) {
        (void)fputc('\n', term->f);
        (void)print_shares(cluster, term, left - 2);
    }
}
