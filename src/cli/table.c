/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CELL 2048
#define GAP 2 /* between columns */

struct cell {
    char *text;
    enum stk_colour colour;
};

struct stk_table {
    const struct stk_column *columns;
    size_t n_columns, n_cells, cap;
    struct cell *cells;
    int *width;
    bool failed;
};

struct stk_table *stk_table_new(const struct stk_column *columns, size_t n)
{
    struct stk_table *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->columns = columns;
    t->n_columns = n;
    t->width = calloc(n, sizeof(*t->width));
    if (!t->width) {
        stk_table_free(t);
        return NULL;
    }
    return t;
}

void stk_table_free(struct stk_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n_cells; i++)
        free(t->cells[i].text);
    free(t->cells);
    free(t->width);
    free(t);
}

void stk_table_cell(struct stk_table *t, enum stk_colour c, const char *fmt, ...)
{
    char raw[MAX_CELL], clean[MAX_CELL];
    va_list ap;

    if (t->n_cells == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 256;
        struct cell *cells = realloc(t->cells, cap * sizeof(*cells));

        if (!cells) {
            t->failed = true;
            return;
        }
        t->cells = cells;
        t->cap = cap;
    }
    va_start(ap, fmt);
    (void)vsnprintf(raw, sizeof(raw), fmt, ap);
    va_end(ap);
    t->cells[t->n_cells].text = strdup(stk_text_clean(clean, sizeof(clean), raw, false));
    t->cells[t->n_cells].colour = c;
    t->failed = t->failed || !t->cells[t->n_cells].text;
    t->n_cells++;
}

size_t stk_table_rows(const struct stk_table *t)
{
    return t->n_cells / t->n_columns;
}

/* The widths as printed. */
static void lay_out(const struct stk_table *t, const struct stk_term *term)
{
    int total = 0, width = term->width;

    for (size_t c = 0; c < t->n_columns; c++) {
        t->width[c] = stk_text_width(t->columns[c].title);
        for (size_t i = c; i < t->n_cells; i += t->n_columns) {
            int w = stk_text_width(t->cells[i].text);

            t->width[c] = w > t->width[c] ? w : t->width[c];
        }
        total += t->width[c] + (c > 0 ? GAP : 0);
    }
    while (width > 0 && total > width) {
        size_t widest = t->n_columns;

        for (size_t c = 0; c < t->n_columns; c++)
            if (t->columns[c].squeeze > 0 && t->width[c] > t->columns[c].squeeze &&
                (widest == t->n_columns || t->width[c] > t->width[widest]))
                widest = c;
        if (widest == t->n_columns)
            break;
        t->width[widest]--;
        total--;
    }
}

static void print_cell(const struct stk_table *t, const struct stk_term *term, size_t c,
                       const char *text, enum stk_colour colour)
{
    int width = stk_text_width(text), room = t->width[c], pad = room - width;
    bool last = c + 1 == t->n_columns;

    (void)fprintf(term->f, "%*s", c > 0 ? GAP : 0, "");
    if (pad > 0 && t->columns[c].right)
        (void)fprintf(term->f, "%*s", pad, "");
    (void)fputs(stk_term_on(term, colour), term->f);
    if (pad >= 0) {
        (void)fputs(text, term->f);
    } else {
        int dots = term->utf8 ? 1 : room > 3 ? 2 : 0;
        size_t n = stk_text_fit(text, room - dots);

        (void)fprintf(term->f, "%.*s%s", (int)n, text, term->utf8 ? "…" : dots ? ".." : "");
    }
    (void)fputs(stk_term_off(term, colour), term->f);
    if (pad > 0 && !t->columns[c].right && !last)
        (void)fprintf(term->f, "%*s", pad, "");
}

int stk_table_print(const struct stk_table *t, const struct stk_term *term, size_t max_rows)
{
    size_t rows = stk_table_rows(t);

    if (t->failed)
        return -ENOMEM;
    if (max_rows > 0 && rows > max_rows)
        rows = max_rows;
    lay_out(t, term);
    for (size_t c = 0; c < t->n_columns; c++)
        print_cell(t, term, c, t->columns[c].title, STK_BOLD);
    (void)fputc('\n', term->f);
    for (size_t i = 0; i < rows; i++) {
        for (size_t c = 0; c < t->n_columns; c++) {
            const struct cell *cell = &t->cells[i * t->n_columns + c];

            print_cell(t, term, c, cell->text, cell->colour);
        }
        (void)fputc('\n', term->f);
    }
    return 0;
}
