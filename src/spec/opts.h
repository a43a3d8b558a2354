/* SPDX-License-Identifier: Apache-2.0 */
/* opts.h - reads command lines from a table: --name=value, --name value, -n value, -nvalue, -abc,
 * "--" and operands. Names are never abbreviated, and nothing is kept between calls. */
#ifndef STK_SPEC_OPTS_H
#define STK_SPEC_OPTS_H

#include <stdbool.h>

#include "base/err.h"

enum stk_opt_arg {
    STK_OPT_NONE,
    STK_OPT_NEEDS,
    STK_OPT_MAYBE /* only as --name=value or -nvalue */
};

struct stk_opt {
    const char *name; /* NULL ends the table; "": only the letter */
    char letter;      /* 0: none */
    enum stk_opt_arg arg;
    int id; /* the caller's word */
};

struct stk_opts {
    const struct stk_opt *table;
    int argc;
    char **argv;
    int at;           /* set to 1 to pass over the program's name */
    bool permute;     /* operands may stand between options and are returned */
    bool only;        /* the rest are operands: "--" was seen */
    const char *more; /* letters left of "-abc" */
    const struct stk_opt *opt;
    const char *value; /* of the option, or the operand; NULL: none */
    char shown[40];    /* "--name" or "-n", as it was written */
};

/* 1: an option, in opt and value. 2: an operand, in value (permute only). 0: the end; what is left
 * begins at argv[at]. -EINVAL: a sentence that names the flag. */
int stk_opts_next(struct stk_opts *o, struct stk_err *err);

#endif
