/* SPDX-License-Identifier: Apache-2.0 */
/* sort.h - a stable sort of numbers by key, in scratch the caller provides. (The C library's qsort
 * allocates, and leaves the order of equal keys open.) O(n log n), fast on sorted input. */
#ifndef STK_BASE_SORT_H
#define STK_BASE_SORT_H

#include <stdint.h>

struct stk_sort_item {
    int64_t key;
    uint32_t id;
    uint32_t data; /* carried along */
};

/* 'scratch' has room for n items. */
void stk_sort(struct stk_sort_item *a, uint32_t n, struct stk_sort_item *scratch);

#endif
