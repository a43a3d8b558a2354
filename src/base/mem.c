/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <errno.h>
#include <string.h>

int stk_mem_more(const struct stk_mem *mem, void *array, uint32_t *cap, uint32_t need, size_t elem)
{
    uint64_t want = (uint64_t)*cap * 2;
    void *old, *p;

    if (want < need)
        want = need;
    if (want < 16)
        want = 16;
    if (want > UINT32_MAX)
        want = UINT32_MAX;
    memcpy(&old, array, sizeof(old));
    p = mem->resize(mem->ctx, old, *cap * elem, (size_t)want * elem);
    if (!p)
        return -ENOMEM;
    memcpy(array, &p, sizeof(p));
    *cap = (uint32_t)want;
    return 0;
}

void stk_mem_drop(const struct stk_mem *mem, void *array, uint32_t *cap, size_t elem)
{
    void *p;

    memcpy(&p, array, sizeof(p));
    if (p)
        (void)mem->resize(mem->ctx, p, *cap * elem, 0);
    p = NULL;
    memcpy(array, &p, sizeof(p));
    *cap = 0;
}
