/* SPDX-License-Identifier: Apache-2.0 */
/* out_table.c - columns are a table of data: name, which member, how it is shown, which way is
 * better. All cells are made first, since a column is as wide as its widest cell. */
#include "sim/out_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "rules/booked.h"
#include "sim/human.h"

#define GAP 2
#define BOLD "\033[1m"
#define GREEN "\033[1;32m"
#define PLAIN "\033[0m"

enum show { SHOW_COUNT, SHOW_DURATION, SHOW_RATIO, SHOW_PERCENT, SHOW_KWH };

struct column {
    const char *head;
    enum show show;
    bool more_is_better;
    double (*value)(const struct stk_run_result *r);
    bool (*known)(const struct stk_run_result *r); /* of some run: it is shown; NULL: always */
};

#define MEMBER(name)                                                                               \
    static double get_##name(const struct stk_run_result *r)                                       \
    {                                                                                              \
        return (double)r->name;                                                                    \
    }
MEMBER(finished)
MEMBER(avg_jct_s)
MEMBER(p50_jct_s)
MEMBER(p90_jct_s)
MEMBER(p99_jct_s)
MEMBER(avg_wait_s)
MEMBER(p999_wait_s)
MEMBER(avg_bounded_slowdown)
MEMBER(utilization)
MEMBER(preemptions)
MEMBER(max_waiting)
MEMBER(makespan_s)
MEMBER(energy_kwh)

static double get_speed(const struct stk_run_result *r)
{
    return r->cpu_s > 0 ? (double)r->n_jobs / r->cpu_s : (double)NAN;
}

static double get_jain(const struct stk_run_result *r)
{
    return r->fair.jain;
}

static double get_ratio(const struct stk_run_result *r)
{
    return r->fair.ratio;
}

static double get_rho(const struct stk_run_result *r)
{
    return r->fair.rho_worst;
}

static double get_deadlines(const struct stk_run_result *r)
{
    return r->deadlines;
}

static double get_missed(const struct stk_run_result *r)
{
    return r->deadlines - r->deadlines_met;
}

static bool has_deadlines(const struct stk_run_result *r)
{
    return r->deadlines > 0;
}

static bool has_power(const struct stk_run_result *r)
{
    return r->power;
}

static bool has_tenants(const struct stk_run_result *r)
{
    return r->fair.known && r->fair.asked;
}

static const struct column columns[] = {
    {"finished", SHOW_COUNT, true, get_finished, NULL},
    {"avg JCT", SHOW_DURATION, false, get_avg_jct_s, NULL},
    {"p50 JCT", SHOW_DURATION, false, get_p50_jct_s, NULL},
    {"p90 JCT", SHOW_DURATION, false, get_p90_jct_s, NULL},
    {"p99 JCT", SHOW_DURATION, false, get_p99_jct_s, NULL},
    {"avg wait", SHOW_DURATION, false, get_avg_wait_s, NULL},
    {"p99.9 wait", SHOW_DURATION, false, get_p999_wait_s, NULL},
    {"slowdown", SHOW_RATIO, false, get_avg_bounded_slowdown, NULL},
    {"util", SHOW_PERCENT, true, get_utilization, NULL},
    {"preempt", SHOW_COUNT, false, get_preemptions, NULL},
    {"max queue", SHOW_COUNT, false, get_max_waiting, NULL},
    {"makespan", SHOW_DURATION, false, get_makespan_s, NULL},
    {"jobs/CPU-s", SHOW_COUNT, true, get_speed, NULL},
    {"energy", SHOW_KWH, false, get_energy_kwh, has_power},
    {"Jain", SHOW_RATIO, true, get_jain, has_tenants},
    {"min/max", SHOW_RATIO, true, get_ratio, has_tenants},
    {"worst rho", SHOW_RATIO, false, get_rho, has_tenants},
    {"deadlines", SHOW_COUNT, true, get_deadlines, has_deadlines},
    {"missed", SHOW_COUNT, false, get_missed, has_deadlines},
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

struct cell {
    char text[STK_HUMAN_LEN];
    bool best;
};

struct table {
    const struct stk_run_result *runs;
    uint32_t n_runs;
    struct cell *cells;      /* n_runs rows of N_COLUMNS */
    size_t width[N_COLUMNS]; /* with the gap before and the mark after; 0: not shown */
    size_t name_width;
    bool colour;
};

static void cell_show(struct cell *c, enum show show, double v)
{
    if (!isfinite(v) || v < 0) {
        (void)snprintf(c->text, sizeof(c->text), "-");
        return;
    }
    switch (show) {
    case SHOW_COUNT:
        stk_human_count(c->text, sizeof(c->text), v < 1e18 ? (uint64_t)(v + 0.5) : UINT64_MAX);
        break;
    case SHOW_DURATION:
        stk_human_duration(c->text, sizeof(c->text), v);
        break;
    case SHOW_RATIO:
        (void)snprintf(c->text, sizeof(c->text), v < 1e6 ? "%.2f" : "%.3g", v);
        break;
    case SHOW_PERCENT:
        (void)snprintf(c->text, sizeof(c->text), "%.1f%%", v * 100);
        break;
    case SHOW_KWH:
        (void)snprintf(c->text, sizeof(c->text), v < 1000 ? "%.1f kWh" : "%.0f kWh", v);
        break;
    }
}

static bool better(const struct column *c, double a, double b)
{
    return c->more_is_better ? a > b : a < b;
}

/* Marks the best of a column; all equal: nothing to mark. */
static void column_mark(struct table *t, size_t col)
{
    const struct column *c = &columns[col];
    double best = (double)NAN;
    bool differ = false;

    for (uint32_t i = 0; i < t->n_runs; i++) {
        double v = c->value(&t->runs[i]);

        if (!isfinite(v))
            continue;
        if (isfinite(best) && v != best)
            differ = true;
        if (!isfinite(best) || better(c, v, best))
            best = v;
    }
    for (uint32_t i = 0; differ && i < t->n_runs; i++)
        t->cells[i * N_COLUMNS + col].best = c->value(&t->runs[i]) == best;
}

static bool is_shown(const struct table *t, size_t col)
{
    bool known = !columns[col].known;

    for (uint32_t i = 0; i < t->n_runs && !known; i++)
        known = columns[col].known(&t->runs[i]);
    return known;
}

static void table_fill(struct table *t)
{
    t->name_width = strlen("bundle");
    for (uint32_t i = 0; i < t->n_runs; i++) {
        size_t len = strlen(t->runs[i].bundle);

        t->name_width = len > t->name_width ? len : t->name_width;
    }
    for (size_t col = 0; col < N_COLUMNS; col++) {
        size_t width = strlen(columns[col].head);

        for (uint32_t i = 0; i < t->n_runs; i++) {
            struct cell *c = &t->cells[i * N_COLUMNS + col];

            cell_show(c, columns[col].show, columns[col].value(&t->runs[i]));
            width = strlen(c->text) > width ? strlen(c->text) : width;
        }
        t->width[col] = is_shown(t, col) ? width + GAP + 1 : 0;
        column_mark(t, col);
    }
}

/* The name without bytes that a terminal would obey. */
static void print_name(const struct table *t, FILE *f, const char *name)
{
    size_t len = 0;

    for (; name[len]; len++)
        (void)fputc((unsigned char)name[len] < 0x20 || name[len] == 0x7F ? '?' : name[len], f);
    for (; len < t->name_width; len++)
        (void)fputc(' ', f);
}

static void print_cell(const struct table *t, FILE *f, const struct cell *c, size_t width)
{
    int pad = (int)(width - 1 - strlen(c->text));

    if (c->best)
        (void)fprintf(f, "%*s%s%s*%s", pad, "", t->colour ? GREEN : "", c->text,
                      t->colour ? PLAIN : "");
    else
        (void)fprintf(f, "%*s%s ", pad, "", c->text);
}

static void print_block(const struct table *t, FILE *f, size_t first, size_t end)
{
    (void)fputs(t->colour ? BOLD : "", f);
    print_name(t, f, "bundle");
    for (size_t col = first; col < end; col++)
        if (t->width[col])
            (void)fprintf(f, "%*s ", (int)t->width[col] - 1, columns[col].head);
    (void)fprintf(f, "%s\n", t->colour ? PLAIN : "");
    for (uint32_t i = 0; i < t->n_runs; i++) {
        print_name(t, f, t->runs[i].bundle);
        for (size_t col = first; col < end; col++)
            if (t->width[col])
                print_cell(t, f, &t->cells[i * N_COLUMNS + col], t->width[col]);
        (void)fputc('\n', f);
    }
}

/* Columns of the terminal behind 'f'; SIZE_MAX when there is none. */
static size_t line_width(FILE *f)
{
    struct winsize w;

    if (!isatty(fileno(f)) || ioctl(fileno(f), TIOCGWINSZ, &w) < 0 || !w.ws_col)
        return SIZE_MAX;
    return w.ws_col;
}

static void print_blocks(const struct table *t, FILE *f)
{
    size_t limit = line_width(f);
    size_t first = 0;

    for (; first < N_COLUMNS; first += first < N_COLUMNS && !t->width[first]) {
        size_t used = t->name_width + t->width[first];
        size_t end = first + 1;

        while (end < N_COLUMNS && used + t->width[end] <= limit)
            used += t->width[end++];
        if (first)
            (void)fputc('\n', f);
        print_block(t, f, first, end);
        first = end;
    }
}

static bool wants_colour(FILE *f)
{
    const char *no = getenv("NO_COLOR");

    return isatty(fileno(f)) && !(no && *no);
}

/* What became of reservations, and of GPUs that were kept free. */
static void print_booked(FILE *f, const struct stk_run_result *r)
{
    if (r->drains > 0)
        (void)fprintf(f,
                      "%s: GPUs were kept free for a job %" PRIu64 " times: %" PRIu64
                      " started, %" PRIu64 " given up\n",
                      r->bundle, r->drains, r->drains_started, r->drains_given_up);
    for (uint32_t i = 0; r->booked && i < stk_booked_n(r->booked); i++) {
        const struct stk_booked_row *row = stk_booked_row(r->booked, i);

        (void)fprintf(f, "%s: reservation %s: %u window%s, %u lapsed, %u refused, %.1f GPU-hours\n",
                      r->bundle, row->name, row->windows, row->windows == 1 ? "" : "s", row->lapsed,
                      row->refused, row->gpu_hours);
        if (row->note[0])
            (void)fprintf(f, "    refused: %s\n", row->note);
    }
}

int stk_out_table(FILE *f, const struct stk_run_result *runs, uint32_t n_runs, struct stk_err *err)
{
    struct table t = {.runs = runs, .n_runs = n_runs, .colour = wants_colour(f)};

    t.cells = calloc(n_runs ? n_runs : 1, N_COLUMNS * sizeof(*t.cells));
    if (!t.cells)
        return stk_err_set(err, -ENOMEM, "out of memory for a table of %u runs", n_runs);
    table_fill(&t);
    print_blocks(&t, f);
    free(t.cells);
    for (uint32_t i = 0; i < n_runs; i++)
        print_booked(f, &runs[i]);
    if (fflush(f) || ferror(f))
        return stk_err_set(err, errno ? -errno : -EIO, "cannot write the table: %s",
                           strerror(errno ? errno : EIO));
    return 0;
}
