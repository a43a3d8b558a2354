/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/big.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)
#define BIG ((size_t)1 << 20) /* blocks from here on are pages of their own */

static size_t pages(size_t size)
{
    return (size + PAGE - 1) & ~(PAGE - 1);
}

/* Pages come zeroed, lie on a cache line's start, and grow without being copied. */
static void *resize_big(void *p, size_t old, size_t size)
{
    const int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void *n;

    if (old >= BIG)
        n = mremap(p, pages(old), pages(size), MREMAP_MAYMOVE);
    else
        /* cppcheck-suppress invalidFunctionArg ; -1 is what an anonymous mapping takes */
        n = mmap(NULL, pages(size), prot, flags, -1, 0);
    if (n == MAP_FAILED)
        return NULL;
    (void)madvise(n, pages(size), MADV_HUGEPAGE); /* a hint: where it is refused nothing is lost */
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
