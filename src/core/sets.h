/* SPDX-License-Identifier: Apache-2.0 */
/* sets.h - sets of nodes that jobs are confined to (model/nodes.h): a bit per node and set. A
 * demand names one; everything that looks for room passes over the nodes outside it. */
#ifndef STK_CORE_SETS_H
#define STK_CORE_SETS_H

#include "base/bits.h"
#include "base/bytes.h"
#include "core/state.h"

struct stk_visit;

static inline uint32_t stk_sets_words(const struct stk_state *s)
{
    return s->n_nodes / 64 + 1;
}

/* A bit per node that the demand may use; NULL: all. */
static inline const uint64_t *stk_sets_of(const struct stk_state *s, const struct stk_demand *d)
{
    return d->nodes ? s->set_bits + (size_t)(d->nodes - 1) * stk_sets_words(s) : NULL;
}

static inline bool stk_sets_allow(const struct stk_state *s, const struct stk_demand *d,
                                  uint32_t node)
{
    return !d->nodes || stk_bits_test(stk_sets_of(s, d), node);
}

/* STK_EV_NODES: the set is these nodes from now on. O(nodes + shapes). */
int stk_sets_define(struct stk_state *s, const struct stk_node_set *set, struct stk_err *err);

/* Enough GPUs may be free on nodes of its set; false: surely not. O(nodes / 64 + nodes of the
 * set). */
bool stk_sets_room(const struct stk_state *s, uint32_t shape);

/* GPUs that are free on nodes that the demand may use, and how many such nodes there are. O(nodes
 * of the pool). */
uint64_t stk_sets_free(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                       uint32_t *ret_nodes);

/* Of these nodes, how many take no new jobs, and how many are down. */
void stk_sets_shut(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                   uint32_t *ret_drained, uint32_t *ret_down);

void stk_sets_memory(struct stk_state *s, struct stk_visit *v); /* core/blocks.h */
uint64_t stk_sets_digest(const struct stk_state *s, uint64_t h);
void stk_sets_put(struct stk_bytes *out, const struct stk_state *s);
/* -ENOMEM; a wrong number is marked in 'r'. */
int stk_sets_get(struct stk_reader *r, struct stk_state *s, uint64_t version);

#endif
