/* SPDX-License-Identifier: Apache-2.0 */
/* sbatch_flags.h - the table of sbatch's and srun's flags, and what each does. */
#ifndef STK_SPEC_SBATCH_FLAGS_H
#define STK_SPEC_SBATCH_FLAGS_H

#include <stddef.h>

#include "spec/opts.h"
#include "spec/sbatch.h"

struct stk_flag {
    const char *name;
    char letter;
    enum stk_opt_arg arg;
    unsigned tools;  /* of enum stk_sbatch_tool */
    const char *env; /* the variable that means the same to sbatch; NULL: none */
    int (*set)(struct stk_sbatch *s, const struct stk_flag *f, const char *value,
               struct stk_err *err);
    const char *text; /* a key of the description, a sentence, or nothing: what 'set' makes of it */
    size_t member;    /* offset in struct stk_sbatch for those that keep a number or a word */
};

/* The words of a line or a command line; 'origin' begins each message. */
int stk_sbatch_words(struct stk_sbatch *s, int argc, char **argv, const char *origin, int *ret_rest,
                     struct stk_err *err);

/* Adds the variables that sbatch gives its script. */
void stk_sbatch_tell(const struct stk_sbatch *s, json_t *envs);

extern const struct stk_flag stk_flags[]; /* ends with a NULL name */

#endif
