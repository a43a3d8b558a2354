/* SPDX-License-Identifier: Apache-2.0 */
/* bits.h - a set of small numbers that finds its next member fast.
 *
 * A bit per number, and above it summary levels with a bit per non-zero word, so that "first member
 * >= i" looks at a handful of words even when the set has a million places. The layout is apart
 * from the words: many sets of one size (the buckets of a node index) share one layout and lie in
 * one array. set, clear, next: O(log64 n).
 */
#ifndef STK_BASE_BITS_H
#define STK_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>

#define STK_BITS_LEVELS 4 /* 64^4 places */

struct stk_bits_layout {
    uint32_t n;                      /* places */
    uint32_t levels;                 /* used */
    uint32_t start[STK_BITS_LEVELS]; /* first word of each level */
    uint32_t n_words;                /* of one set, all levels */
};

void stk_bits_layout_init(struct stk_bits_layout *l, uint32_t n);
void stk_bits_set(const struct stk_bits_layout *l, uint64_t *w, uint32_t i);
void stk_bits_clear(const struct stk_bits_layout *l, uint64_t *w, uint32_t i);
/* Smallest member >= i, or UINT32_MAX. i may be past the end. */
uint32_t stk_bits_next(const struct stk_bits_layout *l, const uint64_t *w, uint32_t i);
/* Largest member <= i, or UINT32_MAX. */
uint32_t stk_bits_prev(const struct stk_bits_layout *l, const uint64_t *w, uint32_t i);

static inline bool stk_bits_test(const uint64_t *w, uint32_t i)
{
    return (w[i / 64] >> (i % 64)) & 1;
}

#endif
