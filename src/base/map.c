/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <assert.h>
#include <errno.h>

/* Eight neighbouring keys share a cache line: keys are often numbers given out one after the other.
 */
static uint32_t home(const struct stk_map *m, uint32_t key)
{
    uint32_t line = (uint32_t)(((uint64_t)(key / 8) * UINT64_C(0x9e3779b97f4a7c15)) >> 32);

    return (line * 8 + key % 8) & (m->cap - 1);
}

static uint32_t find(const struct stk_map *m, uint32_t key)
{
    uint32_t i = home(m, key);

    while (m->slot[i].key != 0 && m->slot[i].key != key + 1)
        i = (i + 1) & (m->cap - 1);
    return i;
}

int stk_map_reserve(struct stk_map *m, const struct stk_mem *mem, uint32_t n)
{
    struct stk_map bigger = {0};

    if ((uint64_t)n * 2 <= m->cap)
        return 0;
    if (n > UINT32_C(1) << 29)
        return -ENOMEM;
    bigger.cap = m->cap ? m->cap : 16;
    while (bigger.cap < (uint64_t)n * 2)
        bigger.cap *= 2;
    bigger.slot = mem->resize(mem->ctx, NULL, 0, bigger.cap * sizeof(*bigger.slot));
    if (!bigger.slot)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->cap; i++)
        if (m->slot[i].key != 0)
            stk_map_put(&bigger, m->slot[i].key - 1, m->slot[i].value);
    stk_map_done(m, mem);
    *m = bigger;
    return 0;
}

void stk_map_done(struct stk_map *m, const struct stk_mem *mem)
{
    stk_mem_drop(mem, &m->slot, &m->cap, sizeof(*m->slot));
    m->n = 0;
}

void stk_map_put(struct stk_map *m, uint32_t key, uint32_t value)
{
    uint32_t i = find(m, key);

    assert(key != UINT32_MAX);
    if (m->slot[i].key == 0)
        m->n++;
    m->slot[i] = (struct stk_map_slot){key + 1, value};
}

uint32_t stk_map_get(const struct stk_map *m, uint32_t key)
{
    uint32_t i;

    if (m->cap == 0 || key == UINT32_MAX)
        return UINT32_MAX;
    i = find(m, key);
    return m->slot[i].key ? m->slot[i].value : UINT32_MAX;
}

void stk_map_remove(struct stk_map *m, uint32_t key)
{
    uint32_t hole, i;

    if (m->cap == 0 || key == UINT32_MAX)
        return;
    hole = find(m, key);
    if (m->slot[hole].key == 0)
        return;
    m->n--;
    /* close the gap: a later member of the run moves into it unless that puts it before its home */
    for (i = (hole + 1) & (m->cap - 1); m->slot[i].key != 0; i = (i + 1) & (m->cap - 1)) {
        uint32_t h = home(m, m->slot[i].key - 1);

        if (((i - h) & (m->cap - 1)) < ((i - hole) & (m->cap - 1)))
            continue;
        m->slot[hole] = m->slot[i];
        hole = i;
    }
    m->slot[hole] = (struct stk_map_slot){0, 0};
}
