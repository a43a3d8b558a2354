/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - free(t) as a height-balanced (AVL) tree of breakpoints.
 *
 * A breakpoint is a time at which free(t) changes, with the amount it changes by. The value at a
 * time is the value at the start plus all changes up to that time: a prefix sum in time order.
 * Every node keeps three numbers about the breakpoints of its subtree, so that a search can pass
 * over a whole subtree by looking at its root: sum   of all their changes low   the smallest prefix
 * sum, the empty prefix (0) included high  the largest, likewise Let v be the value just before a
 * subtree. If v >= need, some breakpoint inside brings the value below 'need' exactly when v + low
 * < need; if v < need, some breakpoint brings it to 'need' or above exactly when v + high >= need.
 * Searches therefore always go from one side of 'need' to the other.
 *
 * earliest() alternates two searches: from a time with enough free, the next breakpoint with too
 * little; when that comes too soon, the next one with enough again. Each jumps over a whole run.
 *
 * Invariants: in order, times strictly grow, lie after 'start' and before STK_NEVER_TIME; no change
 * is zero; the heights of two siblings differ by at most one; nodes[0] is all zero, which makes it
 * a correct empty subtree. Shape and answers depend only on the calls made, never on addresses.
 *
 * Costs, n breakpoints: add O(log n); at O(log n); earliest O(log n) for each gap that is too
 * short; trim O(log n) for each breakpoint forgotten; reset O(1). No recursion.
 */
#include "core/timeline.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>

/* No AVL tree whose nodes have 32-bit numbers is higher: 1.44 * log2(2^32) < 47. */
#define MAX_HEIGHT 47

/* The way from the root to a node: the words that hold each node's number on it. */
struct path {
    uint32_t *link[MAX_HEIGHT + 1];
    uint32_t n;
};

void stk_timeline_init(struct stk_timeline *t, const struct stk_mem *mem)
{
    *t = (struct stk_timeline){.mem = *mem, .used = 1};
}

void stk_timeline_done(struct stk_timeline *t)
{
    if (!t || !t->nodes)
        return;
    stk_mem_drop(&t->mem, &t->nodes, &t->cap, sizeof(*t->nodes));
    stk_timeline_reset(t, 0, 0);
}

int stk_timeline_reserve(struct stk_timeline *t, uint32_t intervals)
{
    if (intervals > (UINT32_MAX - 1) / 2)
        return -ENOMEM;
    return stk_mem_grow(&t->mem, &t->nodes, &t->cap, 2 * intervals + 1, sizeof(*t->nodes));
}

void stk_timeline_reset(struct stk_timeline *t, stk_time now, int64_t free)
{
    t->used = 1;
    t->spare = 0;
    t->root = 0;
    t->start = now;
    t->free = free;
}

static uint32_t take_node(struct stk_timeline *t)
{
    uint32_t x = t->spare;

    if (x) {
        t->spare = t->nodes[x].left;
        return x;
    }
    assert(t->used < t->cap); /* else: more adds than were reserved */
    return t->used++;
}

static void give_node(struct stk_timeline *t, uint32_t x)
{
    t->nodes[x].left = t->spare;
    t->spare = x;
}

/* Recomputes what a node knows about its subtree from its children. */
static void refresh(struct stk_timeline_node *nodes, uint32_t x)
{
    struct stk_timeline_node *n = &nodes[x];
    const struct stk_timeline_node *l = &nodes[n->left], *r = &nodes[n->right];
    int64_t here = l->sum + n->delta;

    n->sum = here + r->sum;
    n->low = l->low < here + r->low ? l->low : here + r->low;
    n->high = l->high > here + r->high ? l->high : here + r->high;
    n->height = 1 + (l->height > r->height ? l->height : r->height);
}

/* Both rotations return the new root of the subtree. */
static uint32_t rotate_right(struct stk_timeline_node *nodes, uint32_t x)
{
    uint32_t l = nodes[x].left;

    nodes[x].left = nodes[l].right;
    nodes[l].right = x;
    refresh(nodes, x);
    refresh(nodes, l);
    return l;
}

static uint32_t rotate_left(struct stk_timeline_node *nodes, uint32_t x)
{
    uint32_t r = nodes[x].right;

    nodes[x].right = nodes[r].left;
    nodes[r].left = x;
    refresh(nodes, x);
    refresh(nodes, r);
    return r;
}

/* Restores the balance at x, whose subtrees are in order and differ by at most two. */
static uint32_t balance(struct stk_timeline_node *nodes, uint32_t x)
{
    uint32_t l = nodes[x].left, r = nodes[x].right;

    if (nodes[l].height > nodes[r].height + 1) {
        if (nodes[nodes[l].left].height < nodes[nodes[l].right].height)
            nodes[x].left = rotate_left(nodes, l);
        return rotate_right(nodes, x);
    }
    if (nodes[r].height > nodes[l].height + 1) {
        if (nodes[nodes[r].right].height < nodes[nodes[r].left].height)
            nodes[x].right = rotate_right(nodes, r);
        return rotate_left(nodes, x);
    }
    refresh(nodes, x);
    return x;
}

static void push(struct path *p, uint32_t *link)
{
    assert(p->n <= MAX_HEIGHT);
    p->link[p->n++] = link;
}

/* Takes the node at the end of the path out of the tree. One with two children is overwritten by
 * its successor, which has no left child and leaves in its place. */
static void unlink_last(struct stk_timeline *t, struct path *p)
{
    uint32_t x = *p->link[p->n - 1], out = x;

    if (t->nodes[x].left && t->nodes[x].right) {
        push(p, &t->nodes[x].right);
        while (t->nodes[*p->link[p->n - 1]].left)
            push(p, &t->nodes[*p->link[p->n - 1]].left);
        out = *p->link[p->n - 1];
        t->nodes[x].at = t->nodes[out].at;
        t->nodes[x].delta = t->nodes[out].delta;
    }
    *p->link[p->n - 1] = t->nodes[out].left ? t->nodes[out].left : t->nodes[out].right;
    give_node(t, out);
}

/* Changes the breakpoint at 'at' by delta: made when new, removed when nothing is left of it. */
static void shift(struct stk_timeline *t, stk_time at, int64_t delta)
{
    struct path p = {.n = 0};
    uint32_t x = t->root;

    push(&p, &t->root);
    while (x && t->nodes[x].at != at) {
        push(&p, at < t->nodes[x].at ? &t->nodes[x].left : &t->nodes[x].right);
        x = *p.link[p.n - 1];
    }
    if (!x) {
        x = take_node(t);
        t->nodes[x] = (struct stk_timeline_node){.at = at};
        *p.link[p.n - 1] = x;
    }
    t->nodes[x].delta += delta;
    if (!t->nodes[x].delta)
        unlink_last(t, &p);
    while (p.n) {
        uint32_t *link = p.link[--p.n];

        if (*link)
            *link = balance(t->nodes, *link);
    }
}

void stk_timeline_add(struct stk_timeline *t, stk_time from, stk_time to, int64_t delta)
{
    if (from < t->start)
        from = t->start;
    if (to <= from || !delta)
        return;
    if (from == t->start)
        t->free += delta;
    else
        shift(t, from, delta);
    if (to != STK_NEVER_TIME)
        shift(t, to, -delta);
}

int64_t stk_timeline_at(const struct stk_timeline *t, stk_time at)
{
    int64_t v = t->free;
    uint32_t x = t->root;

    while (x) {
        const struct stk_timeline_node *n = &t->nodes[x];

        if (at < n->at) {
            x = n->left;
        } else {
            v += t->nodes[n->left].sum + n->delta;
            x = n->right;
        }
    }
    return v;
}

/* Whether a value inside subtree x, entered with value v, can be on the sought side of 'need'. */
static bool may_hold(const struct stk_timeline_node *n, int64_t v, int64_t need, bool enough)
{
    return enough ? v + n->high >= need : v + n->low < need;
}

/* Time of the first breakpoint of subtree x, entered with value v on the other side, whose value
 * is on the sought side; may_hold() says that there is one. */
static stk_time first_in(const struct stk_timeline *t, uint32_t x, int64_t v, int64_t need,
                         bool enough)
{
    for (;;) {
        const struct stk_timeline_node *n = &t->nodes[x];

        if (may_hold(&t->nodes[n->left], v, need, enough)) {
            x = n->left;
            continue;
        }
        v += t->nodes[n->left].sum + n->delta;
        if ((v >= need) == enough)
            return n->at;
        x = n->right;
    }
}

/* Time of the first breakpoint after 'after' from which on free >= need (enough) or free < need
 * (!enough); STK_NEVER_TIME when there is none. free(after) must be on the other side.
 *
 * On the way down to 'after' the search notes the nodes it left to its right; they and their right
 * subtrees are exactly what comes later, the deepest first. */
static stk_time find(const struct stk_timeline *t, stk_time after, int64_t need, bool enough)
{
    uint32_t later[MAX_HEIGHT], n_later = 0, x = t->root;
    int64_t v = t->free;

    while (x) {
        const struct stk_timeline_node *n = &t->nodes[x];

        if (after < n->at) {
            later[n_later++] = x;
            x = n->left;
        } else {
            v += t->nodes[n->left].sum + n->delta;
            x = n->right;
        }
    }
    while (n_later) {
        const struct stk_timeline_node *n = &t->nodes[later[--n_later]];

        v += n->delta;
        if ((v >= need) == enough)
            return n->at;
        if (may_hold(&t->nodes[n->right], v, need, enough))
            return first_in(t, n->right, v, need, enough);
        v += t->nodes[n->right].sum;
    }
    return STK_NEVER_TIME;
}

stk_time stk_timeline_earliest(const struct stk_timeline *t, stk_time from, int64_t need,
                               stk_time dur)
{
    stk_time at = from > t->start ? from : t->start;

    if (dur <= 0)
        dur = 1;
    if (at != STK_NEVER_TIME && stk_timeline_at(t, at) < need)
        at = find(t, at, need, true);
    while (at != STK_NEVER_TIME) {
        stk_time lack = find(t, at, need, false);

        if (lack == STK_NEVER_TIME || (at <= STK_NEVER_TIME - dur && lack >= at + dur))
            return at;
        at = find(t, lack, need, true);
    }
    return STK_NEVER_TIME;
}

void stk_timeline_trim(struct stk_timeline *t, stk_time now)
{
    if (now <= t->start)
        return;
    while (t->root) {
        uint32_t x = t->root;

        while (t->nodes[x].left)
            x = t->nodes[x].left;
        if (t->nodes[x].at > now)
            break;
        t->free += t->nodes[x].delta;
        shift(t, t->nodes[x].at, -t->nodes[x].delta);
    }
    t->start = now;
}
