/* SPDX-License-Identifier: Apache-2.0 */
/* compare.h - figures of two or three sides in a table, with the difference of the last; and the
 * period that a command is about. */
#ifndef STK_CLI_COMPARE_H
#define STK_CLI_COMPARE_H

#include "cli/ask.h"

enum stk_figure_kind {
    STK_FIGURE_COUNT,
    STK_FIGURE_NUMBER,
    STK_FIGURE_TIME, /* seconds */
    STK_FIGURE_SHARE /* of 1 */
};

struct stk_figure {
    const char *key; /* a member, or "member.member" */
    const char *name;
    enum stk_figure_kind kind;
    int better; /* 1: more is better, -1: less is, 0: neither */
};

struct stk_side {
    const char *title;
    const json_t *figures;
};

/* Rows that no side knows are left out. 'against': the side that the last one is compared with;
 * 'n': it is compared with none. */
void stk_compare_print(const struct stk_ask *k, const struct stk_figure *f,
                       const struct stk_side *sides, size_t n, size_t against);

struct stk_compared { /* a row, in words */
    const char *name;
    char was[64], is[64], change[64];
    int tone; /* 1: it is better now, -1: worse, 0: neither */
};
/* Calls 'fn' for each row of two sides that one of them knows. */
void stk_compare_each(const struct stk_figure *f, const json_t *was, const json_t *is,
                      void (*fn)(void *ctx, const struct stk_compared *row), void *ctx);

/* --since and --until (7d: so long ago; or a time) as seconds, into 'o'; 'since': where none is
 * said, NULL: it must be. 0, or STK_EXIT_USAGE after having said so. */
int stk_period(const struct stk_args *a, const char *since, json_t *o);

#endif
