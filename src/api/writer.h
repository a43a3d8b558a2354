/* SPDX-License-Identifier: Apache-2.0 */
/* writer.h - JSON text, written member by member.
 *
 * A list of 1,000 jobs has 50,000 values. As a tree each of them is allocated, hashed and freed;
 * here each is copied into one growing text. Keys are ours: they are written as they are. */
#ifndef STK_API_WRITER_H
#define STK_API_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/json.h"

struct stk_writer { /* begins as {0} */
    char *text;     /* not terminated */
    size_t len, cap;
    bool starved; /* there was no memory for some of it: the text is of no use */
};

void stk_writer_done(struct stk_writer *w);

/* A comma comes by itself. 'key' may be NULL: an element of a list, or the whole text. */
void stk_write_open(struct stk_writer *w, const char *key, char bracket); /* '{' or '[' */
void stk_write_close(struct stk_writer *w, char bracket);                 /* '}' or ']' */
void stk_write_null(struct stk_writer *w, const char *key);
void stk_write_bool(struct stk_writer *w, const char *key, bool value);
void stk_write_number(struct stk_writer *w, const char *key, int64_t value);
/* A number with a point: so many millionths, so seconds of a time in microseconds. */
void stk_write_millionths(struct stk_writer *w, const char *key, int64_t value);
/* NULL is the empty text. Bytes that are not UTF-8 become question marks. */
void stk_write_text(struct stk_writer *w, const char *key, const char *value);
/* A value that is a tree already; NULL: there was no memory for it. */
void stk_write_json(struct stk_writer *w, const char *key, json_t *take_value);
/* A value that was written elsewhere. */
void stk_write_written(struct stk_writer *w, const char *key, struct stk_writer *take_value);
/* All members of an object, into the object that is open. */
void stk_write_members(struct stk_writer *w, json_t *take_object);

#endif
