/* SPDX-License-Identifier: Apache-2.0 */
/* tool.h - the commands of stoker-store: what main.c read from the command line, and what each does
 * with it. Exit codes: 0 done, 1 failed or problems found, 2 bad usage. */
#ifndef STK_STORETOOL_TOOL_H
#define STK_STORETOOL_TOOL_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/progress.h"
#include "store/store.h"

enum stk_tool_exit { STK_TOOL_OK, STK_TOOL_FAILED, STK_TOOL_USAGE };

struct stk_tool {
    const char *command;
    char state[PATH_MAX];
    const char *file;   /* the one word after the command; NULL: none */
    const char *output; /* export: where to; NULL: standard output */
    bool json;
    struct stk_retention keep;
    struct stk_progress progress;
};

int stk_tool_check(struct stk_tool *t);
int stk_tool_export(struct stk_tool *t);
int stk_tool_backup(struct stk_tool *t);
int stk_tool_restore(struct stk_tool *t);
int stk_tool_prune(struct stk_tool *t);
int stk_tool_accept(struct stk_tool *t);

/* Draws the progress line; not 0 once someone has asked us to stop. For stk_tick_fn. */
int stk_tool_tick(void *ctx, uint64_t done, uint64_t total);

/* Prints the sentence, and gives the exit code for it. */
int stk_tool_failed(struct stk_tool *t, const struct stk_err *err);

#endif
