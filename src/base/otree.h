/* SPDX-License-Identifier: Apache-2.0 */
/* otree.h - an ordered set that can be walked, searched and changed at any place: a B+ tree.
 *
 * An entry is (key, tie) -> id, with a second number 'aux' of which every branch knows the smallest
 * below it, so that "the first entry in order whose aux is <= x" is found without looking at the
 * others (EASY backfill asks: the first waiting job that is short enough).
 *
 * Leaves and branches have one layout, an array of entries; a branch's entry repeats its child's
 * first (key, tie) and smallest aux. All trees of an owner take their blocks from one pool, so
 * state is two flat arrays. Walking is by leaf arrays linked left to right: sequential memory.
 *
 * insert, remove, find: O(log n) with fan-out 32; next: O(1). Only reserve allocates.
 * (key, tie) must be unique in a tree.
 */
#ifndef STK_BASE_OTREE_H
#define STK_BASE_OTREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

#define STK_OTREE_FANOUT 32
#define STK_OTREE_HEIGHT 10

struct stk_oent {
    int64_t key;
    uint32_t tie;
    uint32_t id; /* in a branch: the child block */
    int64_t aux;
};

struct stk_oblock {
    uint32_t n;
    uint32_t level;      /* 0: leaf */
    uint32_t next, prev; /* neighbours on the same level, UINT32_MAX: none; free list: next */
    struct stk_oent e[STK_OTREE_FANOUT];
};

struct stk_opool {
    struct stk_oblock *block;
    uint32_t n, cap;
    uint32_t free; /* first free block + 1; 0: none */
    uint32_t n_free;
};

struct stk_otree {
    uint32_t root; /* block + 1; 0: empty */
    uint32_t count;
};

struct stk_ocursor {
    uint32_t block; /* UINT32_MAX: past the end */
    uint32_t at;
};

/* Makes room for 'inserts' insertions, in whatever trees of the pool. */
int stk_opool_reserve(struct stk_opool *p, const struct stk_mem *mem, uint32_t inserts);
void stk_opool_done(struct stk_opool *p, const struct stk_mem *mem);

void stk_otree_insert(struct stk_opool *p, struct stk_otree *t, struct stk_oent e);
/* False when there is no such entry. */
bool stk_otree_remove(struct stk_opool *p, struct stk_otree *t, int64_t key, uint32_t tie);

/* First entry in order with aux <= max_aux; INT64_MAX: simply the first. NULL: none. */
const struct stk_oent *stk_otree_first(const struct stk_opool *p, const struct stk_otree *t,
                                       int64_t max_aux);
struct stk_ocursor stk_otree_begin(const struct stk_opool *p, const struct stk_otree *t);

/* First entry not before (key, tie). */
struct stk_ocursor stk_otree_seek(const struct stk_opool *p, const struct stk_otree *t, int64_t key,
                                  uint32_t tie);

/* First entry at or after the cursor with aux <= max_aux. */
struct stk_ocursor stk_otree_skip(const struct stk_opool *p, const struct stk_otree *t,
                                  struct stk_ocursor from, int64_t max_aux);

/* Changes the aux of an entry that is there. */
void stk_otree_set_aux(struct stk_opool *p, const struct stk_otree *t, int64_t key, uint32_t tie,
                       int64_t aux);

/* The entry under the cursor, NULL past the end. */
static inline const struct stk_oent *stk_ocursor_get(const struct stk_opool *p,
                                                     struct stk_ocursor c)
{
    return c.block == UINT32_MAX ? NULL : &p->block[c.block].e[c.at];
}

static inline void stk_ocursor_next(const struct stk_opool *p, struct stk_ocursor *c)
{
    if (++c->at < p->block[c->block].n)
        return;
    c->block = p->block[c->block].next;
    c->at = 0;
}

#endif
