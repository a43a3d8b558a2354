/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - 32-bit number to 32-bit number, open addressing, linear probing, deletion without
 * tombstones. O(1) expected; nothing allocates but reserve. Key UINT32_MAX is not allowed. */
#ifndef STK_BASE_MAP_H
#define STK_BASE_MAP_H

#include <stdint.h>

#include "base/mem.h"

struct stk_map_slot {
    uint32_t key; /* stored + 1, so that zeroed memory is an empty table */
    uint32_t value;
};

struct stk_map {
    struct stk_map_slot *slot;
    uint32_t n, cap; /* cap: power of two, or 0 */
};

int stk_map_reserve(struct stk_map *m, const struct stk_mem *mem, uint32_t n);
void stk_map_done(struct stk_map *m, const struct stk_mem *mem);
void stk_map_put(struct stk_map *m, uint32_t key, uint32_t value); /* room must be reserved */
uint32_t stk_map_get(const struct stk_map *m, uint32_t key);       /* UINT32_MAX: not there */
void stk_map_remove(struct stk_map *m, uint32_t key);

#endif
