/* SPDX-License-Identifier: Apache-2.0 */
#include "base/heap.h"

#include <assert.h>

#define ARY 4

int stk_heap_reserve(struct stk_heap *h, const struct stk_mem *mem, uint32_t n)
{
    return stk_mem_grow(mem, &h->item, &h->cap, n, sizeof(*h->item));
}

void stk_heap_done(struct stk_heap *h, const struct stk_mem *mem)
{
    stk_mem_drop(mem, &h->item, &h->cap, sizeof(*h->item));
    h->n = 0;
}

static bool less(const struct stk_heap_item *a, const struct stk_heap_item *b)
{
    return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

static void put_at(struct stk_heap *h, uint32_t *pos, uint32_t at, struct stk_heap_item it)
{
    h->item[at] = it;
    pos[it.id] = at + 1;
}

static void sift_up(struct stk_heap *h, uint32_t *pos, uint32_t at, struct stk_heap_item it)
{
    while (at > 0) {
        uint32_t up = (at - 1) / ARY;

        if (!less(&it, &h->item[up]))
            break;
        put_at(h, pos, at, h->item[up]);
        at = up;
    }
    put_at(h, pos, at, it);
}

static void sift_down(struct stk_heap *h, uint32_t *pos, uint32_t at, struct stk_heap_item it)
{
    for (;;) {
        uint32_t first = at * ARY + 1, best = first;
        uint32_t end = first + ARY < h->n ? first + ARY : h->n;

        if (first >= h->n)
            break;
        for (uint32_t k = first + 1; k < end; k++)
            if (less(&h->item[k], &h->item[best]))
                best = k;
        if (!less(&h->item[best], &it))
            break;
        put_at(h, pos, at, h->item[best]);
        at = best;
    }
    put_at(h, pos, at, it);
}

static void settle(struct stk_heap *h, uint32_t *pos, uint32_t at, struct stk_heap_item it)
{
    if (at > 0 && less(&it, &h->item[(at - 1) / ARY]))
        sift_up(h, pos, at, it);
    else
        sift_down(h, pos, at, it);
}

void stk_heap_put(struct stk_heap *h, uint32_t *pos, uint32_t id, int64_t key, uint32_t tie)
{
    const struct stk_heap_item it = {key, tie, id};

    if (pos[id] != STK_HEAP_OUT) {
        settle(h, pos, pos[id] - 1, it);
        return;
    }
    assert(h->n < h->cap);
    sift_up(h, pos, h->n++, it);
}

void stk_heap_remove(struct stk_heap *h, uint32_t *pos, uint32_t id)
{
    uint32_t at = pos[id];

    if (at == STK_HEAP_OUT)
        return;
    pos[id] = STK_HEAP_OUT;
    h->n--;
    if (at - 1 < h->n)
        settle(h, pos, at - 1, h->item[h->n]);
}

/* Depth-first over the part of the heap that is not above the key; at most a level per call. */
static uint32_t count_below(const struct stk_heap *h, uint32_t at, int64_t key)
{
    uint32_t n = 1;

    if (at >= h->n || h->item[at].key > key)
        return 0;
    for (uint32_t k = 1; k <= ARY; k++)
        n += count_below(h, at * ARY + k, key);
    return n;
}

uint32_t stk_heap_count(const struct stk_heap *h, int64_t key)
{
    return count_below(h, 0, key);
}
