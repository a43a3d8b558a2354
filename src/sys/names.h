/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - text to dense numbers, in order of first sight. */
#ifndef STK_SYS_NAMES_H
#define STK_SYS_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define STK_MAX_NAME_LEN 255u

/* A set of names, each with a dense number in order of first sight. */
struct stk_names {
    char *text; /* all names, each NUL terminated */
    size_t text_len, text_cap;
    uint32_t *offset; /* number -> start in text */
    uint32_t n, cap;
    uint32_t *slot; /* open-addressing hash table of numbers + 1 */
    uint32_t n_slots;
};

/* Number of the name (added when new), or -ENOMEM / -E2BIG (over 'max' names). */
int64_t stk_names_add(struct stk_names *t, const char *s, size_t len, uint32_t max);
int64_t stk_names_find(const struct stk_names *t, const char *s, size_t len); /* or -ENOENT */
const char *stk_names_get(const struct stk_names *t, uint32_t number);        /* "" when unknown */
void stk_names_done(struct stk_names *t);

#endif
