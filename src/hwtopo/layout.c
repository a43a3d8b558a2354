/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - the machine's GPUs as the scheduler wants them: islands, NUMA nodes, and how well any
 * two are connected. The numbers are those that NVIDIA's own device plugin counts with; so an
 * NVLink is worth more than any way on PCIe. */
#include "hwtopo/hwtopo.h"

#define PER_NVLINK 100

static const stk_weight by_path[] = {
    [STK_PATH_UNKNOWN] = 10, [STK_PATH_BOARD] = 60, [STK_PATH_PIX] = 50, [STK_PATH_PXB] = 40,
    [STK_PATH_PHB] = 30,     [STK_PATH_NODE] = 20,  [STK_PATH_SYS] = 10,
};
_Static_assert(sizeof(by_path) / sizeof(*by_path) == STK_PATH_MAX, "a weight each");
_Static_assert(STK_GPUVIEW_MAX == STK_MAX_NODE_GPUS && STK_MAX_ISLANDS * 2 >= STK_GPUVIEW_MAX,
               "all GPUs fit");

/* The GPUs with this number; those of an island have its lowest one's. */
static uint64_t having(const struct stk_hwtopo *t, bool numa, int64_t number)
{
    uint64_t mask = 0;

    for (uint32_t i = 0; i < t->n; i++)
        if ((numa ? (int64_t)t->gpu[i].numa : (int64_t)t->gpu[i].island) == number)
            mask |= UINT64_C(1) << i;
    return mask;
}

static bool has_two(uint64_t mask)
{
    return (mask & (mask - 1)) != 0;
}

void stk_hwtopo_layout(const struct stk_hwtopo *t, stk_weight *weight, struct stk_layout *ret)
{
    uint64_t seen = 0;

    *ret = (struct stk_layout){.gpus = t->n, .weight = weight};
    for (uint32_t i = 0; i < t->n; i++) {
        uint64_t island = having(t, false, i), numa = having(t, true, t->gpu[i].numa);

        if (has_two(island))
            ret->island[ret->n_islands++] = island;
        if (t->gpu[i].numa >= 0 && !(seen >> i & 1) && ret->n_numa < STK_MAX_ISLANDS) {
            ret->numa[ret->n_numa++] = numa;
            seen |= numa;
        }
    }
    for (uint32_t i = 0; i < t->n * t->n; i++)
        weight[i] = i / t->n == i % t->n
                        ? 0
                        : (stk_weight)(PER_NVLINK * t->link[i].nvlinks + by_path[t->link[i].path]);
}
