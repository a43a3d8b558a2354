/* SPDX-License-Identifier: Apache-2.0 */
/* big.h - the allocator that programs hand to the pure layers. Large blocks are pages of their own:
 * zeroed, on a cache line's start, grown without copying, and huge where the system has them, which
 * saves address look-ups where rows are touched in no order.
 *
 * Its blocks only grow or go; what it gives must be given back to it. */
#ifndef STK_SYS_BIG_H
#define STK_SYS_BIG_H

#include "base/mem.h"

extern const struct stk_mem stk_big_mem;

#endif
