/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.h - the memory of a state, listed once: each module names the blocks it owns, and freeing
 * and forking go by the same list. What is in no list is in both cores after a fork, and freed by
 * neither.
 *
 * A block that holds pointers to others is named before these when blocks are copied, and after
 * them when they are dropped (stk_pool rows, stk_topo).
 */
#ifndef STK_CORE_BLOCKS_H
#define STK_CORE_BLOCKS_H

#include "core/state.h"

struct stk_visit {
    const struct stk_mem *mem;
    bool copies; /* false: drops */
    bool failed; /* no memory for a copy: the others are left out, too */
};

/* 'at' is where the pointer to the block lies: it gets that of the copy, or NULL. */
void stk_block(struct stk_visit *v, void *at, size_t size);

/* Of its 'size' bytes only the first 'used' were ever written: a copy takes those, and pages beyond
 * them stay untouched, however large the room is that was made ready. */
void stk_block_used(struct stk_visit *v, void *at, size_t size, size_t used);

#define STK_BLOCK(v, p, n) stk_block((v), &(p), (size_t)(n) * sizeof(*(p)))
#define STK_BLOCK_USED(v, p, cap, n)                                                               \
    stk_block_used((v), &(p), (size_t)(cap) * sizeof(*(p)), (size_t)(n) * sizeof(*(p)))

#endif
