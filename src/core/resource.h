/* SPDX-License-Identifier: Apache-2.0 */
/* resource.h - named things that nodes have a number of: Gb/s of a network card, GiB of a local
 * disk, licences. They are counted like CPU and memory, with one difference: a node that does not
 * list one has none. What is free lies in an array of its own, so that who asks for none pays for
 * none.
 */
#ifndef STK_CORE_RESOURCE_H
#define STK_CORE_RESOURCE_H

#include "base/bytes.h"
#include "base/err.h"
#include "core/state.h"

/* Memory, and all free. The nodes and pools must be there. */
int stk_resource_build(struct stk_state *s, const struct stk_node_spec *specs, struct stk_err *err);
void stk_resource_memory(struct stk_state *s, struct stk_visit *v); /* core/blocks.h */

/* What a piece of this demand uses of each. Points into 'd'. */
static inline struct stk_amounts stk_amounts_of(const struct stk_demand *d,
                                                const struct stk_piece *p)
{
    if (d->n_resources == 0)
        return (struct stk_amounts){.each = NULL};
    if (d->cut && d->gpus > p->gpus)
        return (struct stk_amounts){d->resource, d->n_resources, p->gpus, d->gpus};
    return (struct stk_amounts){d->resource, d->n_resources, p->tasks, 1};
}

/* Of number 'i', rounded up. */
static inline uint64_t stk_amount(const struct stk_amounts *a, uint32_t i)
{
    return ((uint64_t)a->each[i] * a->of + a->in - 1) / a->in;
}

static inline uint32_t *stk_resource_on(const struct stk_state *s, uint32_t *of, uint32_t row)
{
    return of + (size_t)row * s->n_resources;
}

/* Whether the node has that much, in all or free: state.resource_all or resource_free. */
bool stk_resource_covers(const struct stk_state *s, uint32_t *have, uint32_t node,
                         const struct stk_amounts *a);

static inline bool stk_resource_fits(const struct stk_state *s, uint32_t node,
                                     const struct stk_amounts *a)
{
    return !a->each || stk_resource_covers(s, s->resource_free, node, a);
}

void stk_resource_take(struct stk_state *s, uint32_t node, const struct stk_amounts *a);
void stk_resource_give(struct stk_state *s, uint32_t node, const struct stk_amounts *a);

/* At most 'most' times that much: as often as 'have' of this row suffices. */
uint64_t stk_resource_times(const struct stk_state *s, uint32_t *have, uint32_t row,
                            const struct stk_amounts *a, uint64_t most);

/* A resource of which no node of the pool that it may use has enough in all, and the most one has;
 * STK_NONE: there is none. */
uint32_t stk_resource_never(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                            uint32_t *ret_most);

/* Of a saved state, which knows them by their names: writes these; reads them, and gives each its
 * number here, or STK_NONE; gives a demand the numbers that resources have here. */
void stk_resource_put_names(struct stk_bytes *b, const struct stk_state *s);
void stk_resource_get_names(struct stk_reader *r, const struct stk_state *s,
                            uint32_t ret[STK_MAX_RESOURCES]);
void stk_resource_renumber(struct stk_demand *d, const uint32_t here[STK_MAX_RESOURCES]);

/* Of sound(): what leases hold and what is free is what there is. */
void stk_resource_add(const struct stk_state *s, uint32_t node, const struct stk_amounts *a);
bool stk_resource_sound(const struct stk_state *s, uint32_t node, struct stk_err *err);

#endif
