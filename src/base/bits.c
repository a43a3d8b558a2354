/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bits.h"

#include <assert.h>

void stk_bits_layout_init(struct stk_bits_layout *l, uint32_t n)
{
    uint32_t words = (n + 63) / 64;

    *l = (struct stk_bits_layout){.n = n};
    do {
        assert(l->levels < STK_BITS_LEVELS);
        if (words == 0)
            words = 1;
        l->start[l->levels++] = l->n_words;
        l->n_words += words;
        if (words == 1)
            return;
        words = (words + 63) / 64;
    } while (true);
}

void stk_bits_set(const struct stk_bits_layout *l, uint64_t *w, uint32_t i)
{
    for (uint32_t k = 0; k < l->levels; k++) {
        uint64_t *p = &w[l->start[k] + i / 64], old = *p;

        *p = old | UINT64_C(1) << (i % 64);
        if (old)
            return; /* the levels above know already */
        i /= 64;
    }
}

void stk_bits_clear(const struct stk_bits_layout *l, uint64_t *w, uint32_t i)
{
    for (uint32_t k = 0; k < l->levels; k++) {
        uint64_t *p = &w[l->start[k] + i / 64];

        *p &= ~(UINT64_C(1) << (i % 64));
        if (*p)
            return;
        i /= 64;
    }
}

static uint32_t low_bit(uint64_t x)
{
    return (uint32_t)__builtin_ctzll(x);
}

static uint32_t high_bit(uint64_t x)
{
    return 63 - (uint32_t)__builtin_clzll(x);
}

uint32_t stk_bits_next(const struct stk_bits_layout *l, const uint64_t *w, uint32_t i)
{
    uint32_t k = 0, at = i;

    if (i >= l->n)
        return UINT32_MAX;
    /* climb until a word has a member at or after the place, then go down to it */
    for (;; k++) {
        uint32_t size;
        uint64_t x;

        if (k >= l->levels)
            return UINT32_MAX;
        size = (k + 1 < l->levels ? l->start[k + 1] : l->n_words) - l->start[k];
        if (at / 64 >= size)
            return UINT32_MAX;
        x = w[l->start[k] + at / 64] & (~UINT64_C(0) << (at % 64));
        if (x) {
            at = at / 64 * 64 + low_bit(x);
            break;
        }
        at = at / 64 + 1;
    }
    while (k-- > 0)
        at = at * 64 + low_bit(w[l->start[k] + at]);
    return at;
}

uint32_t stk_bits_prev(const struct stk_bits_layout *l, const uint64_t *w, uint32_t i)
{
    uint32_t k = 0, at = i;

    if (l->n == 0)
        return UINT32_MAX;
    if (at >= l->n)
        at = l->n - 1;
    for (;; k++) {
        uint64_t x;

        if (k >= l->levels)
            return UINT32_MAX;
        x = w[l->start[k] + at / 64] & (~UINT64_C(0) >> (63 - at % 64));
        if (x) {
            at = at / 64 * 64 + high_bit(x);
            break;
        }
        if (at / 64 == 0)
            return UINT32_MAX;
        at = at / 64 - 1;
    }
    while (k-- > 0)
        at = at * 64 + high_bit(w[l->start[k] + at]);
    return at;
}
