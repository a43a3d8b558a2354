/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - reads one HTTP/1.1 response from bytes as they come. No I/O and no allocation: the
 * caller brings bytes, body bytes go to a function. Bodies by Content-Length, in chunks, or to the
 * end of the connection. What is not clearly right is refused; every part has a greatest size. */
#ifndef STK_CLIENT_ANSWER_H
#define STK_CLIENT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define STK_ANSWER_MAX_LINE 4096   /* a line of the head, or of a chunk's size */
#define STK_ANSWER_MAX_HEAD 65536U /* all lines that are not body, per response */

enum stk_answer_part {
    STK_ANSWER_STATUS,
    STK_ANSWER_HEADERS,
    STK_ANSWER_LENGTH, /* a body whose length is known */
    STK_ANSWER_CLOSE,  /* a body that ends with the connection */
    STK_ANSWER_CHUNK_SIZE,
    STK_ANSWER_CHUNK,
    STK_ANSWER_CHUNK_END,
    STK_ANSWER_TRAILERS,
    STK_ANSWER_DONE
};

struct stk_answer {
    enum stk_answer_part part;
    int status;               /* 0 until known; 100-199 never shown */
    bool chunked, has_length; /* as the headers said */
    bool close;               /* the connection ends after this response */
    uint64_t left;            /* bytes of this body or chunk still to come */
    uint64_t body, max_body;  /* bytes seen, most allowed (0: any number) */
    uint64_t offset;          /* Stoker-Offset: of a job's output, + body: where its next byte is */
    size_t head, n_line;
    char line[STK_ANSWER_MAX_LINE];
};

/* Gets body bytes; a negative result stops the reading and is passed on. */
typedef int (*stk_body_fn)(void *ctx, const char *data, size_t n);

void stk_answer_init(struct stk_answer *h, uint64_t max_body);

/* Takes bytes. Returns how many were used (fewer than 'n' only when the response is complete), or
 * -EPROTO (not HTTP), -E2BIG (too long), or what 'fn' returned. */
ssize_t stk_answer_feed(struct stk_answer *h, const char *data, size_t n, stk_body_fn fn, void *ctx,
                        struct stk_err *err);

/* The other side closed: 0 when the response is complete with that, -EPIPE when it was cut off. */
int stk_answer_end(struct stk_answer *h, struct stk_err *err);

static inline bool stk_answer_done(const struct stk_answer *h)
{
    return h->part == STK_ANSWER_DONE;
}

#endif
