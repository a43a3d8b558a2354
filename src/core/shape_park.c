/* SPDX-License-Identifier: Apache-2.0 */
/* shape_park.c - shapes that are to be tried, those that are parked, and what wakes them.
 *
 * Where starts are promised (EASY), most that wait stand behind a promise: they may neither be
 * promised one themselves nor have others evicted. Such a shape that finds no room has nothing to
 * hope for but room; and when there is no promise any more, the first of them, which is then looked
 * for. So what happens in the pool does not wake them all.
 */
#include "core/shape.h"

#include <assert.h>

#include "core/account.h"
#include "core/fair.h"
#include "core/lane.h"
#include "core/pair.h"
#include "core/sets.h"
#include "core/tenant.h"

void stk_shape_mark_dirty(struct stk_state *s, uint32_t pool)
{
    if (s->pools[pool].dirty)
        return;
    s->pools[pool].dirty = true;
    s->dirty[s->n_dirty++] = pool;
}

/* Where the pool's lists of shapes behind a promise begin. */
static uint32_t first_behind(const struct stk_pool *p)
{
    return p->park_layout.n / 2;
}

static uint32_t list_of(const struct stk_pool *p, const struct stk_shape *sh)
{
    return sh->need + (sh->behind ? first_behind(p) : 0);
}

static uint32_t *park_list(struct stk_state *s, const struct stk_shape *sh)
{
    struct stk_pool *p = &s->pools[sh->pool];

    if (sh->parked == STK_PARKED_LIMIT)
        return &s->tenants[sh->park_at].parked;
    if (sh->parked == STK_PARKED_QUEUE)
        return &s->accounts[sh->park_at].parked;
    if (sh->parked == STK_PARKED_TITLE)
        return &p->title_parked;
    return sh->parked == STK_PARKED_RESERVE ? &p->resv_parked
                                            : &s->counts[p->park_head + list_of(p, sh)];
}

void stk_shape_unpark(struct stk_state *s, uint32_t shape)
{
    struct stk_shape *sh = &s->shapes[shape];
    struct stk_pool *p = &s->pools[sh->pool];
    uint32_t *list = park_list(s, sh);

    if (sh->park_next)
        s->shapes[sh->park_next - 1].park_prev = sh->park_prev;
    if (sh->park_prev)
        s->shapes[sh->park_prev - 1].park_next = sh->park_next;
    else
        *list = sh->park_next;
    if (sh->parked == STK_PARKED_ROOM && *list == 0)
        stk_bits_clear(&p->park_layout, s->words + p->park_used, list_of(p, sh));
    p->n_behind -= sh->behind;
    sh->behind = false;
    sh->parked = STK_READY;
    sh->park_next = sh->park_prev = 0;
}

struct stk_heap *stk_shape_heap(const struct stk_state *s, uint32_t shape)
{
    struct stk_pool *p = &s->pools[s->shapes[shape].pool];
    const uint8_t title = s->shapes[shape].title;

    return title ? &p->entitled[title - 1] : &p->ready;
}

void stk_shape_requeue(struct stk_state *s, uint32_t shape, const struct stk_oent *at)
{
    const enum stk_title title = s->fair ? stk_fair_title(s, at->id) : STK_TITLE_NONE;

    if (title != s->shapes[shape].title)
        stk_heap_remove(stk_shape_heap(s, shape), s->shape_pos, shape);
    s->shapes[shape].title = (uint8_t)title;
    stk_heap_put(stk_shape_heap(s, shape), s->shape_pos, shape, at->key, at->tie);
}

void stk_shape_ready(struct stk_state *s, uint32_t shape)
{
    struct stk_oent first;

    if (s->shapes[shape].parked != STK_READY)
        stk_shape_unpark(s, shape);
    if (!stk_shape_first(s, shape, INT64_MAX, &first))
        return;
    stk_shape_requeue(s, shape, &first);
    stk_shape_mark_dirty(s, s->shapes[shape].pool);
}

void stk_shape_park(struct stk_state *s, uint32_t shape, enum stk_parked why)
{
    struct stk_shape *sh = &s->shapes[shape];
    struct stk_pool *p = &s->pools[sh->pool];
    uint32_t *list;

    assert(sh->parked == STK_READY && why != STK_READY);
    stk_heap_remove(stk_shape_heap(s, shape), s->shape_pos, shape);
    sh->parked = (uint8_t)why;
    list = park_list(s, sh);
    sh->park_next = *list;
    sh->park_prev = 0;
    if (*list)
        s->shapes[*list - 1].park_prev = shape + 1;
    *list = shape + 1;
    if (why == STK_PARKED_ROOM)
        stk_bits_set(&p->park_layout, s->words + p->park_used, list_of(p, sh));
}

void stk_shape_park_behind(struct stk_state *s, uint32_t shape)
{
    s->shapes[shape].behind = true;
    s->pools[s->shapes[shape].pool].n_behind++;
    stk_shape_park(s, shape, STK_PARKED_ROOM);
}

void stk_shape_park_at(struct stk_state *s, uint32_t shape, enum stk_parked why, uint32_t at)
{
    s->shapes[shape].park_at = at;
    stk_shape_park(s, shape, why);
}

/* Of the shapes parked for room, from this list on, the next after this one; 0: the first. All are
 * + 1; 0: there are no more. */
static uint32_t next_parked(const struct stk_state *s, const struct stk_pool *p, uint32_t list,
                            uint32_t at)
{
    if (at && s->shapes[at - 1].park_next)
        return s->shapes[at - 1].park_next;
    list = at ? list_of(p, &s->shapes[at - 1]) + 1 : list;
    list = stk_bits_next(&p->park_layout, s->words + p->park_used, list);
    return list == UINT32_MAX ? 0 : s->counts[p->park_head + list];
}

/* Those of some lists that may use the node get ready. */
static void wake_on(struct stk_state *s, struct stk_pool *p, uint32_t from, uint32_t to,
                    uint32_t node)
{
    for (; (from = stk_bits_next(&p->park_layout, s->words + p->park_used, from)) <= to; from++)
        for (uint32_t at = s->counts[p->park_head + from], next; at; at = next) {
            next = s->shapes[at - 1].park_next;
            if (stk_sets_allow(s, &s->shapes[at - 1].demand, node))
                stk_shape_ready(s, at - 1);
        }
}

/* Those of some lists get ready. */
static void wake_lists(struct stk_state *s, struct stk_pool *p, uint32_t from, uint32_t to)
{
    while ((from = stk_bits_next(&p->park_layout, s->words + p->park_used, from)) <= to)
        while (s->counts[p->park_head + from])
            stk_shape_ready(s, s->counts[p->park_head + from] - 1);
}

void stk_shape_wake_all(struct stk_state *s, struct stk_pool *p)
{
    wake_lists(s, p, 0, p->park_layout.n - 1);
    stk_shape_wake_titles(s, p);
}

void stk_shape_wake_heads(struct stk_state *s, struct stk_pool *p)
{
    wake_lists(s, p, 0, first_behind(p) - 1);
    stk_shape_wake_titles(s, p);
}

/* In the order in which shapes are tried: guarantees, what is due, the others; then as their first
 * jobs. */
struct turn {
    uint32_t title; /* from 0 */
    int64_t key;
    uint32_t tie, shape;
};

static bool sooner(const struct turn *a, const struct turn *b)
{
    if (a->title != b->title)
        return a->title < b->title;
    return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

static uint32_t place_of_title(uint8_t title)
{
    return title == STK_TITLE_GUARANTEE ? 0 : title == STK_TITLE_DUE ? 1 : 2;
}

/* Whose turn it is of those that are ready. */
static struct turn next_ready(const struct stk_pool *p)
{
    const struct stk_heap *heap[] = {&p->entitled[STK_TITLE_GUARANTEE - 1],
                                     &p->entitled[STK_TITLE_DUE - 1], &p->ready};

    for (uint32_t i = 0; i < 3; i++)
        if (heap[i]->n > 0)
            return (struct turn){i, heap[i]->item[0].key, heap[i]->item[0].tie, STK_NONE};
    return (struct turn){.title = 3, .shape = STK_NONE};
}

/* Titles of parked shapes may be out of date, but not too low: core/fair.h wakes those that get a
 * better one. One that is found may turn out to have lost its own, and to come later. */
void stk_shape_wake_first(struct stk_state *s, struct stk_pool *p)
{
    for (;;) {
        struct turn best = next_ready(p);

        for (uint32_t at = next_parked(s, p, first_behind(p), 0); at;
             at = next_parked(s, p, 0, at)) {
            struct turn t = {.title = place_of_title(s->shapes[at - 1].title), .shape = at - 1};
            struct stk_oent first;

            if (t.title > best.title || !stk_shape_first(s, at - 1, INT64_MAX, &first))
                continue;
            t.key = first.key;
            t.tie = first.tie;
            if (sooner(&t, &best))
                best = t;
        }
        if (best.shape == STK_NONE)
            return;
        stk_shape_ready(s, best.shape);
    }
}

void stk_shape_wake_titles(struct stk_state *s, struct stk_pool *p)
{
    while (p->title_parked)
        stk_shape_ready(s, p->title_parked - 1);
}

void stk_shape_unreserve(struct stk_state *s, uint32_t pool)
{
    struct stk_pool *p = &s->pools[pool];

    for (uint32_t i = 0; i < p->n_resv; i++) {
        uint32_t node = s->resv_nodes[p->first_node + i];

        s->avoid[node / 64] &= ~(UINT64_C(1) << (node % 64));
    }
    p->n_resv = 0;
    p->resv_job = STK_NONE;
    p->resv_mask = 0;
    p->resv_tight = p->resv_beside = false;
    for (uint32_t i = 0; p->late_keys && i < p->ready.n; i++)
        s->list_b[i] = p->ready.item[i].id;
    for (uint32_t i = 0; p->late_keys && i < p->ready.n; i++)
        stk_shape_ready(s, s->list_b[i]);
    p->late_keys = false;
    while (p->resv_parked)
        stk_shape_ready(s, p->resv_parked - 1);
    /* those that do not fit, too: the first of them gets the next reservation */
    if (p->promised && s->shapes[s->jobs[p->promised - 1].shape].behind)
        stk_shape_ready(s, s->jobs[p->promised - 1].shape);
    stk_shape_wake_heads(s, p);
    stk_shape_mark_dirty(s, pool);
}

void stk_shape_retry(struct stk_state *s, uint32_t pool)
{
    struct stk_pool *p = &s->pools[pool];
    uint64_t below = 0; /* jobs of lower levels with a lease */

    for (uint32_t k = 0; k < s->n_levels; k++) {
        if (below > 0 && p->level_waiting[k] > 0) {
            p->blocked = false;
            stk_shape_wake_heads(s, p);
            stk_shape_mark_dirty(s, pool);
            return;
        }
        below += p->level_leased[k];
    }
}

void stk_shape_wake(struct stk_state *s, uint32_t node)
{
    const struct stk_node *n = &s->nodes[node];
    struct stk_pool *p = &s->pools[n->pool];
    bool reserved = stk_bits_test(s->avoid, node);
    const uint32_t head = p->resv_job == STK_NONE ? STK_NONE : s->jobs[p->resv_job].shape;

    if (p->n_waiting == 0)
        return;
    /* even where a node is down: the job stood before others, or was the last to be stopped */
    if (s->whole_pool || p->claim != STK_NONE)
        stk_shape_mark_dirty(s, n->pool);
    if (!n->up)
        return;
    stk_pair_wake(s, node);
    stk_shape_wake_titles(s, p);
    stk_shape_retry(s, n->pool);
    if (s->backfill->reserve_all || !s->backfill->pass) {
        p->blocked = false;
        stk_shape_mark_dirty(s, n->pool);
    }
    wake_on(s, p, 0, n->gpus_free, node);
    wake_on(s, p, first_behind(p), first_behind(p) + n->gpus_free, node);
    /* on a reserved node only what the reservation leaves is of use, but to whom it is for */
    for (uint32_t at = p->resv_parked; at != 0;) {
        uint32_t shape = at - 1;

        at = s->shapes[shape].park_next;
        if (s->shapes[shape].need <= n->gpus_free &&
            stk_sets_allow(s, &s->shapes[shape].demand, node) &&
            (!reserved || shape == head || n->extra >= (int64_t)s->shapes[shape].need))
            stk_shape_ready(s, shape);
    }
}
