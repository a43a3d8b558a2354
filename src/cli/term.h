/* SPDX-License-Identifier: Apache-2.0 */
/* term.h - what the place we write to can show, and text that is safe to show there. Names, reasons
 * and commands come from other people: what could move the cursor or set the title of a window is
 * replaced before it is printed. */
#ifndef STK_CLI_TERM_H
#define STK_CLI_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum stk_colour {
    STK_PLAIN,
    STK_BOLD,
    STK_DIM,
    STK_RED,
    STK_GREEN,
    STK_YELLOW,
    STK_BLUE,
    STK_MAGENTA,
    STK_CYAN
};

struct stk_term {
    FILE *f;
    bool tty, colour, utf8;
    int width, height; /* width 0: no limit */
};

/* Colours on a terminal only, and not with NO_COLOR or TERM=dumb. */
void stk_term_init(struct stk_term *t, FILE *f);
void stk_term_size(struct stk_term *t);

/* The escape that begins (ends) a colour, "" where there are none. */
const char *stk_term_on(const struct stk_term *t, enum stk_colour c);
const char *stk_term_off(const struct stk_term *t, enum stk_colour c);

/* "████▌░░░" or "####-...": 'cells' wide, share from 0 to 1. Returns 'buf'. */
const char *stk_term_bar(const struct stk_term *t, double share, int cells, char *buf, size_t size);

/* Copies text that is safe to print: control characters (also the eight-bit ones and those that
 * turn the writing direction) become '?', line ends and tabs a space unless 'lines', what is not
 * UTF-8 '?'. Cut to the buffer at a whole character. Returns 'buf'. */
const char *stk_text_clean(char *buf, size_t size, const char *text, bool lines);

/* Columns that clean text takes on a terminal. */
int stk_text_width(const char *s);

/* The bytes of the longest beginning that takes at most 'width' columns. */
size_t stk_text_fit(const char *s, int width);

#endif
