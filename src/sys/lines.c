/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/lines.h"

#include <stdlib.h>
#include <string.h>

#define PIECE (256u << 10)
#define KEEP (1u << 20) /* a larger buffer is given back when it is empty */

static size_t most(const struct stk_lines *l)
{
    return l->max ? l->max : STK_LINES_MAX;
}

void stk_lines_clear(struct stk_lines *l)
{
    l->n = l->from = l->looked = l->n_head = 0;
    l->skips = false;
}

void stk_lines_done(struct stk_lines *l)
{
    stk_lines_clear(l);
    free(l->text);
    l->text = NULL;
    l->cap = 0;
}

/* What was given is forgotten, and what is left stands at the beginning. */
static void close_up(struct stk_lines *l)
{
    if (l->from == 0)
        return;
    l->n -= l->from;
    l->looked -= l->from;
    memmove(l->text, l->text + l->from, l->n);
    l->from = 0;
    if (l->n == 0 && l->cap > KEEP)
        stk_lines_done(l);
}

/* What has come of a line that is too long is dropped, but for how it begins. */
static void skip(struct stk_lines *l)
{
    if (!l->skips) {
        l->n_head = l->n < STK_LINES_HEAD ? l->n : STK_LINES_HEAD;
        memcpy(l->head, l->text, l->n_head);
    }
    l->skips = true;
    l->n = l->looked = 0;
}

char *stk_lines_room(struct stk_lines *l, size_t *ret_size)
{
    size_t want;
    char *more;

    close_up(l);
    if (l->looked == l->n && (l->skips || l->n > most(l)))
        skip(l);
    want = l->n + PIECE;
    if (want > l->cap) {
        want = want > 2 * l->cap ? want : 2 * l->cap;
        more = realloc(l->text, want);
        if (!more)
            return NULL;
        l->text = more;
        l->cap = want;
    }
    *ret_size = l->cap - l->n;
    return l->text + l->n;
}

void stk_lines_filled(struct stk_lines *l, size_t n)
{
    l->n += n;
}

enum stk_lines_what stk_lines_next(struct stk_lines *l, const char **ret_line, size_t *ret_len)
{
    char *end = l->n > l->looked ? memchr(l->text + l->looked, '\n', l->n - l->looked) : NULL;
    size_t len;

    if (!end) {
        l->looked = l->n;
        return STK_LINES_NONE;
    }
    len = (size_t)(end - l->text) - l->from;
    *ret_line = l->skips ? l->head : l->text + l->from;
    *ret_len = l->skips ? l->n_head : len;
    l->from += len + 1;
    l->looked = l->from;
    if (l->skips) {
        l->skips = false;
        return STK_LINES_LONG;
    }
    if (len <= most(l))
        return STK_LINES_LINE;
    *ret_len = STK_LINES_HEAD < len ? STK_LINES_HEAD : len;
    return STK_LINES_LONG;
}
