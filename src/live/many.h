/* SPDX-License-Identifier: Apache-2.0 */
/* many.h - the job descriptions of one request: a list, or text of which each is parsed when it is
 * its turn. A parsed description takes many times the memory of its text, so that of a long list
 * never more than a few are parsed at a time. */
#ifndef STK_LIVE_MANY_H
#define STK_LIVE_MANY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Whether jansson gave up for lack of memory: then it says nothing, or just that. */
static inline bool stk_json_starved(const json_error_t *why)
{
    return why->text[0] == '\0' || json_error_code(why) == json_error_out_of_memory;
}

struct stk_cut { /* of the text */
    uint32_t from, len;
};

struct stk_many {
    json_t *list;         /* NULL: they are in the text */
    char *text;           /* malloc'd, as are the cuts */
    struct stk_cut *cuts; /* one for each */
    size_t bytes;         /* of the text */
    uint32_t n;
};

void stk_many_done(struct stk_many *m);
/* Number i, a new reference; NULL: it is not valid JSON (err says where, within the whole text), or
 * there is no memory (-ENOMEM in *ret_rc). */
json_t *stk_many_get(const struct stk_many *m, uint32_t i, int *ret_rc, struct stk_err *err);

#endif
