/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/big.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

void *stk_big_realloc(void *p, size_t size)
{
    void *n = realloc(p, size);

    if (n && size >= 2 * HUGE_PAGE) { /* a hint: where it is refused nothing is lost */
        uintptr_t from = ((uintptr_t)n + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
        uintptr_t to = ((uintptr_t)n + size) & ~(uintptr_t)(HUGE_PAGE - 1);

        if (to > from)
            (void)madvise((char *)n + (from - (uintptr_t)n), to - from, MADV_HUGEPAGE);
    }
    return n;
}

static void *resize(void *ctx, void *p, size_t old, size_t size)
{
    void *n;

    (void)ctx;
    if (size == 0) {
        free(p);
        return NULL;
    }
    n = stk_big_realloc(p, size);
    if (n && size > old)
        memset((char *)n + old, 0, size - old);
    return n;
}

const struct stk_mem stk_big_mem = {resize, NULL};
