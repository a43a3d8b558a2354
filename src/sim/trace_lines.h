/* SPDX-License-Identifier: Apache-2.0 */
/* trace_lines.h - text into lines, lines into fields, fields into numbers and names.
 *
 * What every reader of traces and clusters shares: it counts lines, writes "file:line: what was
 * expected" when one is malformed, and decides what then happens (stop, or skip and count).
 * Nothing here allocates per line; fields point into the text.
 *
 * A reader hands stk_lines_each() a function for one line. That function, and everything it calls
 * from below, returns 0, -EINVAL after stk_lines_bad() (this line is malformed: skipped when
 * lenient), or another -Exxx (give up). It must change nothing before it is sure of its line.
 */
#ifndef STK_SIM_TRACE_LINES_H
#define STK_SIM_TRACE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sim/trace.h"

struct stk_field {
    const char *s; /* not NUL terminated */
    uint32_t len;
};

struct stk_trace_lines {
    const char *name;        /* of the file, for messages */
    const char *path;        /* where it lies; NULL: nowhere (a buffer, standard input) */
    const char *throughputs; /* as in struct stk_trace_options */
    const char *next, *end;  /* unread text */
    struct stk_field text;   /* the current line, without its end */
    uint32_t number;         /* of the current line, from 1 */
    char comment;            /* lines that begin with this are passed over; 0: none do */
    bool lenient;
    bool untimed; /* as in struct stk_trace_options */
    uint32_t n_skipped;
    struct stk_err first_skip; /* what was wrong with the first skipped line */
    struct stk_err bad;        /* written by stk_lines_bad() */
};

/* Everything is borrowed. A byte order mark at the start is passed over. */
void stk_lines_init(struct stk_trace_lines *in, const char *name, const char *data, size_t len);

/* Moves to the next line that is neither blank nor a comment; false at the end. */
bool stk_lines_next(struct stk_trace_lines *in);

/* Reads the header line of a CSV. When the first line begins with the same column as 'expected' it
 * is taken, and must be all of 'expected'; otherwise it is left to be read as data. */
int stk_lines_header(struct stk_trace_lines *in, const char *expected, struct stk_err *err);

/* Calls 'one' for every remaining line and deals with malformed ones as 'lenient' says. */
int stk_lines_each(struct stk_trace_lines *in, int (*one)(struct stk_trace_lines *in, void *ctx),
                   void *ctx, struct stk_err *err);

/* Notes what is wrong with the current line and returns -EINVAL. */
int stk_lines_bad(struct stk_trace_lines *in, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Cuts the current line at every 'sep'. Returns the number of fields found, which may be more than
 * 'max'; only the first 'max' are stored. */
uint32_t stk_lines_split(const struct stk_trace_lines *in, char sep, struct stk_field *f,
                         uint32_t max);

/* The same at runs of blanks and tabs. */
uint32_t stk_lines_words(const struct stk_trace_lines *in, struct stk_field *f, uint32_t max);

/* "expected 5 fields (a,b,c,d,e), got 3" */
int stk_lines_bad_count(struct stk_trace_lines *in, const char *columns, uint32_t want,
                        uint32_t got);

/* The field as it may be shown in a message: short, printable, NUL terminated. */
struct stk_shown {
    char text[48];
};
struct stk_shown stk_field_show(struct stk_field f);

bool stk_field_is(struct stk_field f, const char *s);

bool stk_field_is_text(struct stk_field f); /* UTF-8 without control characters, but tabs */

/* 1 to STK_TRACE_MAX_NAME_LEN bytes of printable UTF-8: can be shown in a report and kept in JSON.
 */
bool stk_field_is_name(struct stk_field f);

/* Does the data's first line begin with 's'? For detection by header. */
bool stk_text_begins(const char *data, size_t len, const char *s);

/* Plain numbers, without a line: true when the whole field is one. Microseconds are rounded to the
 * nearest from the exact decimal, halves up. Both are below 2^63. */
bool stk_field_whole(struct stk_field f, uint64_t *ret);
bool stk_field_micro(struct stk_field f, uint64_t *ret);

/* The same with bounds and a message. 'no' is the field's place in the line, from 1; 'what' reads
 * as in "expected a whole number of %s". */
int stk_lines_whole(struct stk_trace_lines *in, struct stk_field f, uint32_t no, const char *what,
                    uint64_t max, uint64_t *ret);
int stk_lines_seconds(struct stk_trace_lines *in, struct stk_field f, uint32_t no, stk_time *ret);
int stk_lines_gpus(struct stk_trace_lines *in, struct stk_field f, uint32_t no, uint32_t *ret);
int stk_lines_u32(struct stk_trace_lines *in, struct stk_field f, uint32_t no, const char *what,
                  uint32_t *ret);

/* A name looked up last time: traces repeat themselves, and comparing is cheaper than hashing. */
struct stk_last_name {
    struct stk_field name;
    uint32_t number;
};

/* Number of a name in 'names'; the empty field is STK_NAME_DEFAULT. Names are printable UTF-8.
 * 'last' may be NULL. */
#define STK_NAME_DEFAULT "default"
int stk_lines_name(struct stk_trace_lines *in, struct stk_names *names, uint32_t max,
                   struct stk_field f, struct stk_last_name *last, uint32_t *ret);

/* A job id, as struct stk_trace_job keeps it. */
int stk_lines_id(struct stk_trace_lines *in, struct stk_trace *t, struct stk_field f,
                 uint64_t *ret);

/* A job as every reader starts it: standard tier, ends well, any GPU. */
struct stk_trace_job stk_lines_job(void);

/* Appends the finished job; -ENOMEM or -E2BIG. */
int stk_lines_push(struct stk_trace *t, const struct stk_trace_job *job);

#endif
