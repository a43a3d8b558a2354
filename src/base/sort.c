/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sort.h"

#include <string.h>

#define RUN 16 /* pieces this small are sorted by insertion, then merged */

static void insertion(struct stk_sort_item *a, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct stk_sort_item v = a[i];
        uint32_t k = i;

        for (; k > 0 && v.key < a[k - 1].key; k--)
            a[k] = a[k - 1];
        a[k] = v;
    }
}

static void merge(const struct stk_sort_item *a, uint32_t na, const struct stk_sort_item *b,
                  uint32_t nb, struct stk_sort_item *out)
{
    while (na > 0 && nb > 0) {
        if (b->key < a->key) {
            *out++ = *b++;
            nb--;
        } else {
            *out++ = *a++;
            na--;
        }
    }
    memcpy(out, na ? a : b, (na ? na : nb) * sizeof(*out));
}

void stk_sort(struct stk_sort_item *a, uint32_t n, struct stk_sort_item *scratch)
{
    struct stk_sort_item *from = a, *to = scratch;

    for (uint32_t i = 0; i < n; i += RUN)
        insertion(a + i, n - i < RUN ? n - i : RUN);
    for (uint64_t run = RUN; run < n; run *= 2) {
        struct stk_sort_item *swap = from;

        for (uint64_t i = 0; i < n; i += 2 * run) {
            uint64_t mid = i + run < n ? i + run : n, end = i + 2 * run < n ? i + 2 * run : n;

            merge(from + i, (uint32_t)(mid - i), from + mid, (uint32_t)(end - mid), to + i);
        }
        from = to;
        to = swap;
    }
    if (from != a)
        memcpy(a, from, n * sizeof(*a));
}
