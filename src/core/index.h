/* SPDX-License-Identifier: Apache-2.0 */
/* index.h - what is free where: nodes bucketed by free GPUs, per pool and GPU type.
 *
 * "The fullest node with room for 4", "the emptiest", "the first" are each a look at a few buckets,
 * not at the nodes. take and give move one node between two buckets: O(1). A look that also asks
 * for CPU or memory may pass over nodes of a bucket that lack them; that part is linear in those.
 */
#ifndef STK_CORE_INDEX_H
#define STK_CORE_INDEX_H

#include "base/err.h"
#include "core/state.h"

int stk_index_build(struct stk_state *s, const struct stk_node_spec *specs, uint32_t n,
                    uint32_t n_pools, struct stk_err *err);
void stk_index_memory(struct stk_state *s, struct stk_visit *v); /* core/blocks.h */
void stk_index_file(struct stk_state *s, uint32_t node); /* into its bucket, while that is built */

/* What a piece of this demand uses of that of which a task asks for so much: CPU, memory. */
static inline uint64_t stk_use_share(const struct stk_demand *d, const struct stk_piece *p,
                                     uint32_t each)
{
    if (d->cut && d->gpus > p->gpus) /* in proportion, rounded up */
        return ((uint64_t)each * p->gpus + d->gpus - 1) / d->gpus;
    return (uint64_t)each * p->tasks;
}

/* What a piece of this demand uses on its node. */
struct stk_use stk_use_of(const struct stk_demand *d, const struct stk_piece *p);

/* The same, and whose it is. */
static inline struct stk_use stk_use_by(const struct stk_state *s, const struct stk_job *j,
                                        const struct stk_demand *d, const struct stk_piece *p)
{
    struct stk_use u = stk_use_of(d, p);

    u.holder = (uint32_t)(j - s->jobs) + 1;
    return u;
}

bool stk_index_fits(const struct stk_state *s, uint32_t node, const struct stk_use *u);
void stk_index_take(struct stk_state *s, uint32_t node, const struct stk_use *u);
void stk_index_give(struct stk_state *s, uint32_t node, const struct stk_use *u);
void stk_index_node_up(struct stk_state *s, uint32_t node, bool up);
void stk_index_gpus_off(struct stk_state *s, uint32_t node, uint64_t off);
/* The same for a lease that was there and was given back for a try: nobody else can have taken
 * those of its GPUs that are off. */
bool stk_index_fits_again(const struct stk_state *s, uint32_t node, const struct stk_use *u);

/* GPUs of the node that are given when no others are free. */
static inline uint64_t stk_node_shy(const struct stk_node *n)
{
    return n->mask_wake | n->mask_last;
}

/* GPUs that become free when the piece's lease ends, if its node is up; of one in parts, when the
 * last of those who share it has gone. */
static inline uint32_t stk_index_back(const struct stk_state *s, const struct stk_piece *p)
{
    uint64_t off = p->mask & s->nodes[p->node.i].mask_off;

    return off ? p->gpus - (uint32_t)__builtin_popcountll(off) : p->gpus;
}

/* The lowest 'n' of a set; all of it when it has fewer. */
static inline uint64_t stk_mask_lowest(uint64_t mask, uint32_t n)
{
    uint64_t left = mask;

    while (n-- > 0)
        left &= left - 1;
    return mask & ~left;
}

/* The same, those in 'last' only when the others do not suffice. */
static inline uint64_t stk_mask_choose(uint64_t mask, uint64_t last, uint32_t n)
{
    uint64_t first = stk_mask_lowest(mask & ~last, n);

    return first | stk_mask_lowest(mask & last, n - (uint32_t)__builtin_popcountll(first));
}

/* 'n' free GPUs of a node: the nearest to each other, of those on which nobody sleeps if they
 * suffice; 0 on aggregate nodes. */
uint64_t stk_index_lowest(const struct stk_state *s, uint32_t node, uint32_t n);

/* GPUs of the node that are off and that no job has, though one may block them. */
static inline uint64_t stk_node_idle_off(const struct stk_node *n)
{
    return n->mask_off & ~(n->held ? n->mask_own : n->mask_used);
}

/* GPUs of its node that nobody else can have while the job has this piece. */
static inline uint64_t stk_index_blocks(const struct stk_state *s, const struct stk_job *j,
                                        const struct stk_piece *p)
{
    return s->shapes[j->shape].demand.exclusive ? s->nodes[p->node.i].mask_all : p->mask;
}

/* All there is on a node: what an exclusive job blocks. */
struct stk_use stk_index_all(const struct stk_state *s, uint32_t node);

/* The same as stk_index_back() when an exclusive job may have the lease. */
static inline uint32_t stk_index_back_of(const struct stk_state *s, const struct stk_demand *d,
                                         const struct stk_piece *p)
{
    const struct stk_node *n = &s->nodes[p->node.i];

    return d->exclusive ? n->gpus - (uint32_t)__builtin_popcountll(n->mask_off)
                        : stk_index_back(s, p);
}

/* CPU, memory, named resources and the memory of its GPUs are enough, and it is not to be avoided.
 */
bool stk_index_has_room(const struct stk_state *s, uint32_t node, const struct stk_want *w);
/* First node (lowest id) of the bucket that has room for 'w', or STK_NONE. */
uint32_t stk_index_first(const struct stk_state *s, const struct stk_group *g, uint32_t bucket,
                         const struct stk_want *w);
/* Smallest non-empty bucket >= b, largest <= b; STK_NONE. */
uint32_t stk_index_bucket_up(const struct stk_state *s, const struct stk_group *g, uint32_t b);
uint32_t stk_index_bucket_down(const struct stk_state *s, const struct stk_group *g, uint32_t b);
static inline uint32_t stk_index_count(const struct stk_state *s, const struct stk_group *g,
                                       uint32_t bucket)
{
    return s->counts[g->count + bucket];
}

static inline bool stk_group_accepts(const struct stk_group *g, uint64_t gpu_types)
{
    return (gpu_types >> g->gpu_type) & 1;
}

#endif
