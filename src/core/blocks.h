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

#define STK_BLOCK(v, p, n) stk_block((v), &(p), (size_t)(n) * sizeof(*(p)))

#endif
