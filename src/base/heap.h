/* SPDX-License-Identifier: Apache-2.0 */
/* heap.h - a priority queue of small numbers that also finds, re-keys and removes any member.
 *
 * Members are ids < some bound, smallest (key, tie) first. Where each id lies is kept in an array
 * 'pos' that the owner provides, so that many heaps over disjoint ids can share one (the ready
 * heaps of all pools share one array over shapes). Four children per place: half the depth of a
 * binary heap and the children share cache lines. top O(1), everything else O(log n); nothing
 * allocates but reserve.
 */
#ifndef STK_BASE_HEAP_H
#define STK_BASE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

struct stk_heap_item {
    int64_t key;
    uint32_t tie;
    uint32_t id;
};

struct stk_heap {
    struct stk_heap_item *item;
    uint32_t n, cap;
};

#define STK_HEAP_OUT 0 /* pos[id] of an id that is in no heap; else place + 1 */

int stk_heap_reserve(struct stk_heap *h, const struct stk_mem *mem, uint32_t n);
void stk_heap_done(struct stk_heap *h, const struct stk_mem *mem);
/* Adds the id, or moves it to its new place when it is in already. Room must be reserved. */
void stk_heap_put(struct stk_heap *h, uint32_t *pos, uint32_t id, int64_t key, uint32_t tie);
void stk_heap_remove(struct stk_heap *h, uint32_t *pos, uint32_t id); /* no-op when out */

/* How many have a key <= this. O(that number). */
uint32_t stk_heap_count(const struct stk_heap *h, int64_t key);

static inline bool stk_heap_has(const uint32_t *pos, uint32_t id)
{
    return pos[id] != STK_HEAP_OUT;
}

#endif
