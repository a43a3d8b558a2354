/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - a progress line with rate and time left on standard error. Silent unless that is a
 * terminal and the work takes longer than a second; at most five updates a second. Reads the clock
 * itself, so it is for programs, never for the core. */
#ifndef STK_SIM_PROGRESS_H
#define STK_SIM_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stk_progress {
    const char *label; /* borrowed */
    uint64_t total;    /* 0: unknown, then no bar and no time left */
    int64_t started_us, shown_us;
    int fd;
    bool on;    /* a terminal that can redraw a line */
    bool drawn; /* something is on the line now */
};

void stk_progress_init(struct stk_progress *p, const char *label, uint64_t total);

/* Cheap enough for every few hundred events. */
void stk_progress_update(struct stk_progress *p, uint64_t done);

/* Clears the line. May be called twice. */
void stk_progress_done(struct stk_progress *p);

/* The line as plain text; the filled part of the bar, which is coloured, starts at 'bar'. */
struct stk_progress_line {
    char text[240];
    size_t bar, filled; /* 0, 0: no bar */
};

/* What the line would say after 'elapsed_s' on a terminal 'width' columns wide; always shorter
 * than that. */
void stk_progress_line(const struct stk_progress *p, uint64_t done, double elapsed_s, size_t width,
                       struct stk_progress_line *ret_line);

#endif
