/* SPDX-License-Identifier: Apache-2.0 */
/* lack.h - what a demand asks for beside GPUs (CPUs, memory, named resources): how much of one of
 * these it needs in one place, and the most that a place has. For explanations and refusals. */
#ifndef STK_CORE_LACK_H
#define STK_CORE_LACK_H

#include "core/state.h"

enum stk_lack_of {
    STK_LACK_CPUS,
    STK_LACK_MEM,
    STK_LACK_RESOURCE, /* and so on: + the number of a named resource */
    STK_LACK_END = STK_LACK_RESOURCE + STK_MAX_RESOURCES,
    STK_LACK_ANY = STK_LACK_END, /* all of them together */
};

struct stk_lack {
    enum stk_level level; /* it must be in one place of this level; 0: anywhere */
    uint64_t need, have;  /* cpu_milli, MiB, or pieces of a resource; 'have' in the best place */
};

/* Whether the demand asks for it. */
bool stk_lack_asks(const struct stk_demand *d, uint32_t of);
/* The demand without it. */
struct stk_demand stk_lack_without(const struct stk_demand *d, uint32_t of);

/* Counts what is free of it, or with 'empty' what there is, on nodes that have GPUs for a task.
 * True: that is too little, wherever its tasks go. False: it would do by count; *ret has the sum.
 * O(nodes). */
bool stk_lack_find(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                   uint32_t of, bool empty, struct stk_lack *ret);

#endif
