/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - what is read of one rule, and its plain values: what read.c and read_then.c share. */
#ifndef STK_RULES_VALUE_H
#define STK_RULES_VALUE_H

#include "rules/read.h"

struct stk_rules_reader {
    struct stk_rules *r;
    const struct stk_rules_world *w;
    struct stk_rule rule;
    struct stk_err *err;
    char where[96]; /* in it */
};

/* -EINVAL, with a sentence that names the rule and where in it. */
int stk_rules_bad(const struct stk_rules_reader *x, const char *what);
int stk_rules_no_such(const struct stk_rules_reader *x, const char *noun, const char *name);
/* A plain value as text; NULL: it is none, or longer than any. */
const char *stk_rules_text(const json_t *v, char *buf, size_t size);
int stk_rules_keys(const struct stk_rules_reader *x, json_t *o, const char *const *keys);
/* Thousandths of a decimal number; false: it is none. */
bool stk_rules_milli(const char *s, int64_t most, int64_t *ret);
int stk_rules_named(const struct stk_rules_reader *x, enum stk_rules_noun noun, const json_t *v,
                    uint32_t *ret);
/* What it changes. */
int stk_rules_read_then(struct stk_rules_reader *x, const json_t *then);

#endif
