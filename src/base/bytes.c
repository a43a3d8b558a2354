/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"

void stk_bytes_done(struct stk_bytes *b)
{
    if (b->mem)
        stk_mem_drop(b->mem, &b->data, &b->cap, 1);
    b->n = 0;
}

void stk_bytes_hash(struct stk_bytes *b)
{
    uint64_t h = stk_hash_mix(*b->hash, b->n);

    for (uint32_t i = 0; i < b->n; i += 8) {
        uint64_t word = 0;

        for (uint32_t k = 0; k < 8 && i + k < b->n; k++)
            word |= (uint64_t)b->data[i + k] << 8 * k;
        h = stk_hash_mix(h, word);
    }
    *b->hash = h;
    b->n = 0;
}

static bool room(struct stk_bytes *b, uint32_t n)
{
    if (b->failed)
        return false;
    if (b->hash && b->cap - b->n < n)
        stk_bytes_hash(b);
    if (b->cap - b->n >= n)
        return true;
    if (!b->mem)
        b->failed = -ENOSPC;
    else if (n > UINT32_MAX - b->n || stk_mem_grow(b->mem, &b->data, &b->cap, b->n + n, 1) < 0)
        b->failed = -ENOMEM;
    return !b->failed;
}

void stk_put_u(struct stk_bytes *b, uint64_t v)
{
    unsigned char tmp[STK_MAX_VARINT];
    uint32_t n = 0;

    do
        tmp[n++] = (unsigned char)((v & 127) | (v > 127 ? 128 : 0));
    while ((v >>= 7) != 0);
    if (!room(b, n))
        return;
    for (uint32_t i = 0; i < n; i++)
        b->data[b->n++] = tmp[i];
}

void stk_put_s(struct stk_bytes *b, int64_t v)
{
    stk_put_u(b, ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0));
}

void stk_put_raw(struct stk_bytes *b, const void *p, uint32_t n)
{
    if (n == 0 || !room(b, n))
        return;
    memcpy(b->data + b->n, p, n);
    b->n += n;
}

uint64_t stk_get_u(struct stk_reader *r, uint64_t max)
{
    uint64_t v = 0;

    for (unsigned shift = 0; !r->bad && r->at < r->end && shift < 64; shift += 7) {
        unsigned char c = *r->at++;

        if (shift == 63 && c > 1)
            break; /* more than 64 bits */
        v |= (uint64_t)(c & 127) << shift;
        if (c & 128)
            continue;
        if ((c == 0 && shift > 0) || v > max)
            break; /* not the short way to write it, or too large */
        return v;
    }
    r->bad = true;
    return 0;
}

int64_t stk_get_s(struct stk_reader *r)
{
    uint64_t v = stk_get_u(r, UINT64_MAX);

    return (int64_t)((v >> 1) ^ (v & 1 ? UINT64_MAX : 0));
}

int64_t stk_get_i(struct stk_reader *r, int64_t min, int64_t max)
{
    int64_t v = stk_get_s(r);

    r->bad |= v < min || v > max;
    return r->bad ? 0 : v;
}

const unsigned char *stk_get_raw(struct stk_reader *r, uint32_t n)
{
    const unsigned char *p = r->at;

    if (r->bad || (size_t)(r->end - r->at) < n) {
        r->bad = true;
        return NULL;
    }
    r->at += n;
    return p;
}
