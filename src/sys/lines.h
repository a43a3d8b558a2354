/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h - lines out of a stream that comes in pieces, as our programs talk to each other over
 * pipes. A line that is too long is passed over, and the reader is told that there was one: what
 * comes after it is read as ever. Every byte is looked at once, however many pieces a line comes
 * in.
 *
 *     char *room = stk_lines_room(&l, &size);
 *     stk_lines_filled(&l, read(fd, room, size));
 *     while ((what = stk_lines_next(&l, &line, &len)) != STK_LINES_NONE)
 *         ...
 */
#ifndef STK_SYS_LINES_H
#define STK_SYS_LINES_H

#include <stdbool.h>
#include <stddef.h>

#define STK_LINES_MAX (64u << 20) /* bytes of the longest line that one of our programs reads */
#define STK_LINES_HEAD 64u        /* so many of a line that is too long are kept */

enum stk_lines_what {
    STK_LINES_NONE, /* the next one has not come whole */
    STK_LINES_LINE,
    STK_LINES_LONG /* the first bytes of one that was too long */
};

struct stk_lines { /* zero: nothing has come */
    size_t max;    /* 0: STK_LINES_MAX */
    char *text;
    size_t n, cap, from, looked; /* from: the next line; looked: no end is before it */
    bool skips;                  /* up to the next end of a line */
    char head[STK_LINES_HEAD];
    size_t n_head;
};

void stk_lines_done(struct stk_lines *l);
void stk_lines_clear(struct stk_lines *l); /* another stream begins */
/* Room for what comes next. NULL: no memory. Lines that were given are gone then. */
char *stk_lines_room(struct stk_lines *l, size_t *ret_size);
void stk_lines_filled(struct stk_lines *l, size_t n); /* so many bytes of it were */
/* The next line, without its end; it may have zeros in it. */
enum stk_lines_what stk_lines_next(struct stk_lines *l, const char **ret_line, size_t *ret_len);

#endif
