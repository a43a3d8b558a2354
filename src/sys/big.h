/* SPDX-License-Identifier: Apache-2.0 */
/* big.h - memory for large arrays: as realloc(), but large blocks ask for huge pages, which saves
 * page faults and address look-ups where millions of rows are touched in no order. */
#ifndef STK_SYS_BIG_H
#define STK_SYS_BIG_H

#include <stddef.h>

#include "base/mem.h"

/* As realloc(); to be freed by free(). size must not be 0. */
void *stk_big_realloc(void *p, size_t size);

/* The allocator that programs hand to the pure layers. Its blocks only grow or go; what it gives
 * must be given back to it. */
extern const struct stk_mem stk_big_mem;

#endif
