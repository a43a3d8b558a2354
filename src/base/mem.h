/* SPDX-License-Identifier: Apache-2.0 */
/* mem.h - where memory comes from. The pure layers never call malloc(); they are handed one of
 * these. Growing an array is the only operation they need, so it is the only one there is. */
#ifndef STK_BASE_MEM_H
#define STK_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

struct stk_mem {
    /* Resizes 'p' (NULL: a new block) from 'old' to 'size' bytes; bytes past 'old' are zero.
     * size == 0 frees and returns NULL. On failure returns NULL and 'p' is untouched. */
    void *(*resize)(void *ctx, void *p, size_t old, size_t size);
    void *ctx;
};

/* stk_mem_grow() where there is no room. */
int stk_mem_more(const struct stk_mem *mem, void *array, uint32_t *cap, uint32_t need, size_t elem);

/* Makes *array hold at least 'need' elements of 'elem' bytes, at least doubling; new elements are
 * zero. 0, or -ENOMEM with nothing changed. Costs nothing when there is room. */
static inline int stk_mem_grow(const struct stk_mem *mem, void *array, uint32_t *cap, uint32_t need,
                               size_t elem)
{
    return need <= *cap ? 0 : stk_mem_more(mem, array, cap, need, elem);
}

/* Frees an array grown by stk_mem_grow() and resets both words. NULL arrays are fine. */
void stk_mem_drop(const struct stk_mem *mem, void *array, uint32_t *cap, size_t elem);

#endif
