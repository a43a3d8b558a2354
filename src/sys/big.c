/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* mremap */
#include "sys/big.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define PAGE ((size_t)4096)
#define BIG ((size_t)1 << 20) /* blocks from here on are pages of their own */

static size_t pages(size_t size)
{
    return (size + PAGE - 1) & ~(PAGE - 1);
}

/* A hint: where it is refused nothing is lost. Whole pages on both sides, so that the mapping stays
 * one piece, which growing it needs. */
static void want_huge(void *p, size_t size)
{
    char *from = (char *)p - (uintptr_t)p % PAGE;

    (void)madvise(from, pages((size_t)((char *)p - from) + size), MADV_HUGEPAGE);
}

void *stk_big_realloc(void *p, size_t size)
{
    void *n = realloc(p, size);

    if (n && size >= 2 * HUGE_PAGE)
        want_huge(n, size);
    return n;
}

/* Pages come zeroed, lie on a cache line's start, and grow without being copied. */
static void *resize_big(void *p, size_t old, size_t size)
{
    void *n = old >= BIG ? mremap(p, pages(old), pages(size), MREMAP_MAYMOVE)
                         : mmap(NULL, pages(size), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (n == MAP_FAILED)
        return NULL;
    want_huge(n, pages(size));
    if (old < BIG && p) {
        memcpy(n, p, old);
        free(p);
    }
    return n;
}

static void *resize(void *ctx, void *p, size_t old, size_t size)
{
    void *n;

    (void)ctx;
    if (size >= BIG)
        return resize_big(p, old, size);
    if (old >= BIG) { /* callers free or grow, they do not shrink */
        (void)munmap(p, pages(old));
        return size == 0 ? NULL : calloc(1, size);
    }
    if (size == 0) {
        free(p);
        return NULL;
    }
    n = realloc(p, size);
    if (n && size > old)
        memset((char *)n + old, 0, size - old);
    return n;
}

const struct stk_mem stk_big_mem = {resize, NULL};
