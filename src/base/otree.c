/* SPDX-License-Identifier: Apache-2.0 */
#include "base/otree.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define NIL UINT32_MAX
#define FULL STK_OTREE_FANOUT
#define MERGE (STK_OTREE_FANOUT / 4) /* two neighbours this small become one */

struct step {
    uint32_t block, at;
};

int stk_opool_reserve(struct stk_opool *p, const struct stk_mem *mem, uint32_t inserts)
{
    /* One insertion splits at most one block per level and adds a root; trees are rarely more than
     * three levels high, so that many each is ample. Many insertions need less: each makes at most
     * one leaf, and either a root above it or half an entry's worth of branches, as a branch that
     * was split takes two more entries before it is split again; only branches that are full at the
     * start, at most one in FULL blocks, are split earlier, and may each get a root. */
    const uint64_t each = (uint64_t)inserts * 4;
    const uint64_t many = (uint64_t)inserts * 2 + (p->n - p->n_free) / (FULL / 2);
    uint64_t want = (each < many ? each : many) + STK_OTREE_HEIGHT + 1;

    if (p->n_free + (uint64_t)(p->cap - p->n) >= want)
        return 0;
    want += p->n;
    if (want > UINT32_MAX / 2)
        return -ENOMEM;
    return stk_mem_grow(mem, &p->block, &p->cap, (uint32_t)want, sizeof(*p->block));
}

void stk_opool_done(struct stk_opool *p, const struct stk_mem *mem)
{
    stk_mem_drop(mem, &p->block, &p->cap, sizeof(*p->block));
    *p = (struct stk_opool){0};
}

static uint32_t block_new(struct stk_opool *p, uint32_t level)
{
    uint32_t b;

    if (p->free) {
        b = p->free - 1;
        p->free = p->block[b].next;
        p->n_free--;
    } else {
        assert(p->n < p->cap);
        b = p->n++;
    }
    p->block[b].n = 0;
    p->block[b].level = level;
    p->block[b].next = p->block[b].prev = NIL;
    return b;
}

static void block_free(struct stk_opool *p, uint32_t b)
{
    p->block[b].next = p->free;
    p->free = b + 1;
    p->n_free++;
}

static bool less(const struct stk_oent *a, int64_t key, uint32_t tie)
{
    return a->key != key ? a->key < key : a->tie < tie;
}

/* First place whose entry is not before (key, tie). */
static uint32_t place_of(const struct stk_oblock *b, int64_t key, uint32_t tie)
{
    uint32_t lo = 0, hi = b->n;

    if (hi > 0 && less(&b->e[hi - 1], key, tie))
        return hi; /* appending is common */
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;

        if (less(&b->e[mid], key, tie))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The child of a branch that holds, or would hold, (key, tie). */
static uint32_t child_of(const struct stk_oblock *b, int64_t key, uint32_t tie)
{
    uint32_t at = place_of(b, key, tie);

    if (at < b->n && b->e[at].key == key && b->e[at].tie == tie)
        return at;
    return at > 0 ? at - 1 : 0;
}

static uint32_t descend(const struct stk_opool *p, const struct stk_otree *t, int64_t key,
                        uint32_t tie, struct step *path)
{
    uint32_t b = t->root - 1, depth = 0;

    while (p->block[b].level > 0) {
        path[depth] = (struct step){b, child_of(&p->block[b], key, tie)};
        b = p->block[b].e[path[depth].at].id;
        depth++;
    }
    path[depth] = (struct step){b, 0};
    return depth;
}

static void put_at(struct stk_oblock *b, uint32_t at, struct stk_oent e)
{
    memmove(&b->e[at + 1], &b->e[at], (b->n - at) * sizeof(*b->e));
    b->e[at] = e;
    b->n++;
}

static void cut_at(struct stk_oblock *b, uint32_t at)
{
    b->n--;
    memmove(&b->e[at], &b->e[at + 1], (b->n - at) * sizeof(*b->e));
}

static struct stk_oent summary(const struct stk_opool *p, uint32_t b)
{
    const struct stk_oblock *k = &p->block[b];
    struct stk_oent s = {k->e[0].key, k->e[0].tie, b, k->e[0].aux};

    for (uint32_t i = 1; i < k->n; i++)
        if (k->e[i].aux < s.aux)
            s.aux = k->e[i].aux;
    return s;
}

/* Splits a full block; the right part goes to a new neighbour, which is returned. Appending to the
 * end leaves the left part full, so that a queue fills its blocks. */
static uint32_t split(struct stk_opool *p, uint32_t b, uint32_t at)
{
    uint32_t right = block_new(p, p->block[b].level);
    struct stk_oblock *l = &p->block[b], *r = &p->block[right];
    uint32_t keep = at == l->n ? l->n - 1 : l->n / 2;

    r->n = l->n - keep;
    memcpy(r->e, &l->e[keep], r->n * sizeof(*r->e));
    l->n = keep;
    r->next = l->next;
    r->prev = b;
    if (r->next != NIL)
        p->block[r->next].prev = right;
    l->next = right;
    return right;
}

static void grow_root(struct stk_opool *p, struct stk_otree *t, uint32_t left, uint32_t right)
{
    uint32_t root = block_new(p, p->block[left].level + 1);

    p->block[root].n = 2;
    p->block[root].e[0] = summary(p, left);
    p->block[root].e[1] = summary(p, right);
    t->root = root + 1;
}

void stk_otree_insert(struct stk_opool *p, struct stk_otree *t, struct stk_oent e)
{
    struct step path[STK_OTREE_HEIGHT + 1];
    const int64_t aux = e.aux;
    uint32_t depth;

    t->count++;
    if (t->root == 0) {
        uint32_t b = block_new(p, 0);

        p->block[b].e[0] = e;
        p->block[b].n = 1;
        t->root = b + 1;
        return;
    }
    depth = descend(p, t, e.key, e.tie, path);
    path[depth].at = place_of(&p->block[path[depth].block], e.key, e.tie);
    for (;;) { /* put e into path[depth], splitting upwards while blocks are full */
        uint32_t b = path[depth].block, at = path[depth].at, right;

        if (p->block[b].n < FULL) {
            put_at(&p->block[b], at, e);
            break;
        }
        right = split(p, b, at);
        if (at > p->block[b].n)
            put_at(&p->block[right], at - p->block[b].n, e);
        else
            put_at(&p->block[b], at, e);
        if (depth == 0) {
            grow_root(p, t, b, right);
            return;
        }
        depth--;
        p->block[path[depth].block].e[path[depth].at] = summary(p, b);
        e = summary(p, right);
        path[depth].at++;
    }
    while (depth-- > 0) { /* what the branches above say of their child */
        struct stk_oent *up = &p->block[path[depth].block].e[path[depth].at];
        const struct stk_oent *low = &p->block[up->id].e[0];

        up->key = low->key;
        up->tie = low->tie;
        if (aux < up->aux)
            up->aux = aux;
    }
}

/* Takes block 'b' out of its level's list and frees it. */
static void unlink_block(struct stk_opool *p, uint32_t b)
{
    const struct stk_oblock *k = &p->block[b];

    if (k->prev != NIL)
        p->block[k->prev].next = k->next;
    if (k->next != NIL)
        p->block[k->next].prev = k->prev;
    block_free(p, b);
}

/* After a removal below: drops an empty child of the branch, or joins it with a small neighbour. */
static void tidy_child(struct stk_opool *p, struct step s)
{
    struct stk_oblock *up = &p->block[s.block];
    uint32_t b = up->e[s.at].id, next;

    if (p->block[b].n == 0) {
        unlink_block(p, b);
        cut_at(up, s.at);
        return;
    }
    if (p->block[b].n <= MERGE && s.at + 1 < up->n) {
        next = up->e[s.at + 1].id;
        if (p->block[next].n <= MERGE) {
            memcpy(&p->block[b].e[p->block[b].n], p->block[next].e,
                   p->block[next].n * sizeof(struct stk_oent));
            p->block[b].n += p->block[next].n;
            unlink_block(p, next);
            cut_at(up, s.at + 1);
        }
    }
    up->e[s.at] = summary(p, b);
}

bool stk_otree_remove(struct stk_opool *p, struct stk_otree *t, int64_t key, uint32_t tie)
{
    struct step path[STK_OTREE_HEIGHT + 1];
    struct stk_oblock *leaf;
    uint32_t depth, at;

    if (t->root == 0)
        return false;
    depth = descend(p, t, key, tie, path);
    leaf = &p->block[path[depth].block];
    at = place_of(leaf, key, tie);
    if (at == leaf->n || leaf->e[at].key != key || leaf->e[at].tie != tie)
        return false;
    cut_at(leaf, at);
    t->count--;
    while (depth-- > 0)
        tidy_child(p, path[depth]);
    while (t->root != 0) { /* a root without entries, or with one child, goes */
        const struct stk_oblock *root = &p->block[t->root - 1];
        uint32_t old = t->root - 1;

        if (root->n == 0)
            t->root = 0;
        else if (root->level > 0 && root->n == 1)
            t->root = root->e[0].id + 1;
        else
            break;
        block_free(p, old);
    }
    return true;
}

const struct stk_oent *stk_otree_first(const struct stk_opool *p, const struct stk_otree *t,
                                       int64_t max_aux)
{
    uint32_t b = t->root - 1;

    if (t->root == 0)
        return NULL;
    for (;;) {
        const struct stk_oblock *k = &p->block[b];
        uint32_t i = 0;

        while (i < k->n && k->e[i].aux > max_aux)
            i++;
        if (i == k->n)
            return NULL; /* only at the root: branches are exact */
        if (k->level == 0)
            return &k->e[i];
        b = k->e[i].id;
    }
}

struct stk_ocursor stk_otree_begin(const struct stk_opool *p, const struct stk_otree *t)
{
    uint32_t b = t->root - 1;

    if (t->root == 0)
        return (struct stk_ocursor){NIL, 0};
    while (p->block[b].level > 0)
        b = p->block[b].e[0].id;
    return (struct stk_ocursor){b, 0};
}

struct stk_ocursor stk_otree_seek(const struct stk_opool *p, const struct stk_otree *t, int64_t key,
                                  uint32_t tie)
{
    struct stk_ocursor c = {t->root - 1, 0};

    if (t->root == 0)
        return (struct stk_ocursor){NIL, 0};
    while (p->block[c.block].level > 0)
        c.block = p->block[c.block].e[child_of(&p->block[c.block], key, tie)].id;
    c.at = place_of(&p->block[c.block], key, tie);
    if (c.at == p->block[c.block].n) /* past this leaf: the next one starts with it */
        c = (struct stk_ocursor){p->block[c.block].next, 0};
    return c;
}

/* First entry of the block from 'at' on with aux <= max_aux; n when there is none. */
static uint32_t scan(const struct stk_oblock *b, uint32_t at, int64_t max_aux)
{
    while (at < b->n && b->e[at].aux > max_aux)
        at++;
    return at;
}

struct stk_ocursor stk_otree_skip(const struct stk_opool *p, const struct stk_otree *t,
                                  struct stk_ocursor from, int64_t max_aux)
{
    struct step path[STK_OTREE_HEIGHT + 1];
    const struct stk_oent *e;
    uint32_t depth, at, b;

    if (from.block == NIL)
        return from;
    at = scan(&p->block[from.block], from.at, max_aux);
    if (at < p->block[from.block].n)
        return (struct stk_ocursor){from.block, at};
    e = &p->block[from.block].e[from.at];
    depth = descend(p, t, e->key, e->tie, path);
    /* up to the first branch that has such an entry further right, then down to it */
    do {
        if (depth-- == 0)
            return (struct stk_ocursor){NIL, 0};
        b = path[depth].block;
        at = scan(&p->block[b], path[depth].at + 1, max_aux);
    } while (at == p->block[b].n);
    while (p->block[b].level > 0) {
        b = p->block[b].e[at].id;
        at = scan(&p->block[b], 0, max_aux);
    }
    return (struct stk_ocursor){b, at};
}

void stk_otree_set_aux(struct stk_opool *p, const struct stk_otree *t, int64_t key, uint32_t tie,
                       int64_t aux)
{
    struct step path[STK_OTREE_HEIGHT + 1];
    uint32_t depth = descend(p, t, key, tie, path);
    struct stk_oblock *leaf = &p->block[path[depth].block];
    uint32_t at = place_of(leaf, key, tie);

    assert(at < leaf->n && leaf->e[at].key == key && leaf->e[at].tie == tie);
    leaf->e[at].aux = aux;
    while (depth-- > 0) {
        struct stk_oent *up = &p->block[path[depth].block].e[path[depth].at];

        *up = summary(p, up->id);
    }
}
