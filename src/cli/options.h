/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the one parser of command-line options. Options are tables; help, completion and man
 * pages are made from the same tables.
 *
 *     --name VALUE  --name=VALUE  -n VALUE  -nVALUE  --flag  -f  -fg (flags f and g)  --
 *
 * Options and words may be mixed, unless the command says that options end at its first word. An
 * option given twice: the last counts, unless the command asks for all of them.
 */
#ifndef STK_CLI_OPTIONS_H
#define STK_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"

struct stk_command;

struct stk_option {
    const char *name;
    char letter;          /* 0: none */
    const char *arg;      /* what its value is called in help; NULL: a flag */
    const char *help;     /* '\n' begins a new line */
    const char *complete; /* possible values, separated by spaces, or "@files", "@dirs", "@jobs" */
};

struct stk_options {
    const char *title;             /* "" for the first lines of a help text */
    const struct stk_option *list; /* ends with a NULL name */
};

/* What every command that talks to the daemon takes besides its own. */
extern const struct stk_option stk_daemon_options[], stk_common_options[];

struct stk_arg {
    const struct stk_option *option;
    const char *value; /* "" for a flag */
};

struct stk_args {
    const struct stk_command *cmd;
    struct stk_arg *set; /* as they were given */
    int n_set;
    char **words;
    int n_words;
    bool dashes; /* "--" stood before the first word */
};

/* 'argv[0]' is the command's name. On failure (-EINVAL, -ENOMEM) nothing is to be freed. */
int stk_args_parse(const struct stk_command *cmd, int argc, char **argv, struct stk_args *ret,
                   struct stk_err *err);
void stk_args_done(struct stk_args *a);

/* The value given last ("" for a flag), or NULL. The name must be in the command's tables. */
const char *stk_arg(const struct stk_args *a, const char *name);
static inline bool stk_arg_is(const struct stk_args *a, const char *name)
{
    return stk_arg(a, name) != NULL;
}
bool stk_arg_known(const struct stk_args *a, const char *name); /* whether it is in the tables */
/* All values in order: start with *at = 0; NULL: no more. */
const char *stk_arg_next(const struct stk_args *a, const char *name, int *at);

/* Each group of options of a command in turn, its own first; NULL: no more. */
const struct stk_options *stk_options_of(const struct stk_command *cmd, int i);

#endif
