/* SPDX-License-Identifier: Apache-2.0 */
/* linked.h - which GPUs of a node go together best, when some pairs have more links than others. */
#ifndef STK_MODEL_LINKED_H
#define STK_MODEL_LINKED_H

#include <stdint.h>

/* How well two GPUs are connected: links first, then how near they are otherwise. Symmetric, 0 for
 * a GPU with itself. */
typedef uint16_t stk_weight;

/* 'n' of the GPUs in 'free' with the greatest sum of weights over all pairs, those with a GPU of
 * 'with' included (GPUs that the job has already, none of them free). Of several such sets, the one
 * that leaves the free GPUs best connected; then the lowest in order. All of 'free' when it has
 * fewer. Exact when there are at most STK_LINKED_SETS sets to compare, as with 16 GPUs; else GPUs
 * are left out one by one, the worst connected first. 'weight' has 'gpus' rows of as many. */
#define STK_LINKED_SETS 12870
uint64_t stk_linked_choose(const stk_weight *weight, uint32_t gpus, uint64_t with, uint64_t free,
                           uint32_t n);

#endif
