/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.h - numbers as bytes, the same on every machine: what is stored or sent.
 *
 * A number is written seven bits a byte, lowest first, the top bit saying that more follow; a
 * signed one with its sign folded into the lowest bit, so that small numbers of either sign are
 * short. There is one way to write a number, and the reader takes no other.
 *
 * Errors stick: a writer or reader that has failed does nothing more, and is asked once, at the
 * end.
 */
#ifndef STK_BASE_BYTES_H
#define STK_BASE_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

#define STK_MAX_VARINT 10 /* bytes of the longest number */

struct stk_bytes {
    const struct stk_mem *mem; /* borrowed; NULL: 'data' is the caller's and does not grow */
    unsigned char *data;
    uint32_t n, cap;
    int failed;     /* 0, -ENOMEM, or -ENOSPC: the caller's buffer is full */
    uint64_t *hash; /* borrowed, or NULL. Not NULL: nothing is kept. Bytes that no longer fit into
                       the caller's buffer are mixed into it, and the buffer is used again */
};

void stk_bytes_done(struct stk_bytes *b); /* frees what it grew */
void stk_bytes_hash(struct stk_bytes *b); /* mixes what is in the buffer into b->hash */
void stk_put_u(struct stk_bytes *b, uint64_t v);
void stk_put_s(struct stk_bytes *b, int64_t v);
void stk_put_raw(struct stk_bytes *b, const void *p, uint32_t n);

struct stk_reader {
    const unsigned char *at, *end;
    bool bad;
};

/* A number <= max; else, or when the input is at its end, the reader is bad and it is 0. */
uint64_t stk_get_u(struct stk_reader *r, uint64_t max);
int64_t stk_get_s(struct stk_reader *r);
int64_t stk_get_i(struct stk_reader *r, int64_t min, int64_t max); /* likewise, and 'bad' outside */
/* The next n bytes, or NULL and a bad reader. */
const unsigned char *stk_get_raw(struct stk_reader *r, uint32_t n);

static inline uint32_t stk_get_u32(struct stk_reader *r)
{
    return (uint32_t)stk_get_u(r, UINT32_MAX);
}

static inline bool stk_get_bool(struct stk_reader *r)
{
    return stk_get_u(r, 1) != 0;
}

#endif
