/* SPDX-License-Identifier: Apache-2.0 */
/* out_table.c - columns are a table of data: name, which member, how it is shown, which way is
 * better. All cells are made first, since a column is as wide as its widest cell. */
#include "sim/out_table.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

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

static const struct column columns[] = {
    {"finished", SHOW_COUNT, true, get_finished},
    {"avg JCT", SHOW_DURATION, false, get_avg_jct_s},
    {"p50 JCT", SHOW_DURATION, false, get_p50_jct_s},
    {"p90 JCT", SHOW_DURATION, false, get_p90_jct_s},
    {"p99 JCT", SHOW_DURATION, false, get_p99_jct_s},
    {"avg wait", SHOW_DURATION, false, get_avg_wait_s},
    {"p99.9 wait", SHOW_DURATION, false, get_p999_wait_s},
    {"slowdown", SHOW_RATIO, false, get_avg_bounded_slowdown},
    {"util", SHOW_PERCENT, true, get_utilization},
    {"preempt", SHOW_COUNT, false, get_preemptions},
    {"max queue", SHOW_COUNT, false, get_max_waiting},
    {"makespan", SHOW_DURATION, false, get_makespan_s},
    {"jobs/CPU-s", SHOW_COUNT, true, get_speed},
    {"energy", SHOW_KWH, false, get_energy_kwh}, /* the last: left out where it is not known */
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
    size_t width[N_COLUMNS]; /* with the gap before and the mark after */
    size_t name_width;
    size_t n_columns; /* that are shown */
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
        t->width[col] = width + GAP + 1;
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
        (void)fprintf(f, "%*s ", (int)t->width[col] - 1, columns[col].head);
    (void)fprintf(f, "%s\n", t->colour ? PLAIN : "");
    for (uint32_t i = 0; i < t->n_runs; i++) {
        print_name(t, f, t->runs[i].bundle);
        for (size_t col = first; col < end; col++)
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

    while (first < t->n_columns) {
        size_t used = t->name_width + t->width[first];
        size_t end = first + 1;

        while (end < t->n_columns && used + t->width[end] <= limit)
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

int stk_out_table(FILE *f, const struct stk_run_result *runs, uint32_t n_runs, struct stk_err *err)
{
    struct table t = {.runs = runs, .n_runs = n_runs, .colour = wants_colour(f)};

    t.cells = calloc(n_runs ? n_runs : 1, N_COLUMNS * sizeof(*t.cells));
    if (!t.cells)
        return stk_err_set(err, -ENOMEM, "out of memory for a table of %u runs", n_runs);
    t.n_columns = n_runs > 0 && runs[0].power ? N_COLUMNS : N_COLUMNS - 1;
    table_fill(&t);
    print_blocks(&t, f);
    free(t.cells);
    if (fflush(f) || ferror(f))
        return stk_err_set(err, errno ? -errno : -EIO, "cannot write the table: %s",
                           strerror(errno ? errno : EIO));
    return 0;
}
