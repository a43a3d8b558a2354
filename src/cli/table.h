/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - columns that fit the terminal. Cells are cleaned (cli/term.h) as they come. When the
 * rows are wider than the terminal, columns that may be squeezed give way, the widest first, down
 * to their least width; what is cut ends in "…". Not on a terminal nothing is cut. */
#ifndef STK_CLI_TABLE_H
#define STK_CLI_TABLE_H

#include "cli/term.h"

struct stk_column {
    const char *title;
    bool right;  /* numbers */
    int squeeze; /* the least width it may be cut to; 0: never cut */
};

struct stk_table;

/* NULL: out of memory. 'columns' stay the caller's. */
struct stk_table *stk_table_new(const struct stk_column *columns, size_t n);
void stk_table_free(struct stk_table *t); /* NULL is fine */

/* The next cell, row by row. Memory that runs out is noticed when printing. */
void stk_table_cell(struct stk_table *t, enum stk_colour c, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

size_t stk_table_rows(const struct stk_table *t);

/* 0, or -ENOMEM. 'max_rows' 0: all. */
int stk_table_print(const struct stk_table *t, const struct stk_term *term, size_t max_rows);

#endif
