/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lane.h"

#include "core/shape.h"
#include "core/usage.h"

struct stk_lane {
    uint32_t shape, tenant;
    struct stk_otree waiting;   /* by (what is their own, number) */
    int64_t key;                /* of the first: its rank, */
    uint32_t tie;               /* and its number */
    uint32_t child, next, prev; /* in the heap of the shape; lane + 1. prev: of a first child its
                                   parent. A free row: next */
    uint32_t t_next, t_prev;    /* lanes of the tenant; lane + 1 */
};

int stk_lane_reserve(struct stk_state *s, uint32_t n)
{
    uint32_t want = s->n_lanes + n - (n < s->n_free_lanes ? n : s->n_free_lanes);

    if (!stk_lanes_on(s))
        return 0;
    if (stk_opool_reserve(&s->trees, &s->mem, 2 * n + 4) < 0)
        return -ENOMEM;
    return stk_mem_grow(&s->mem, &s->lanes, &s->cap_lanes, want, sizeof(*s->lanes));
}

void stk_lane_memory(struct stk_state *s, struct stk_visit *v)
{
    STK_BLOCK_USED(v, s->lanes, s->cap_lanes, s->n_lanes);
}

/* ---- the heap of a shape ---- */

static bool less(const struct stk_lane *a, const struct stk_lane *b)
{
    return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

/* Two heaps into one; 0: none. Returns its root. */
static uint32_t join(struct stk_state *s, uint32_t a, uint32_t b)
{
    struct stk_lane *top, *under;

    if (!a || !b)
        return a ? a : b;
    if (less(&s->lanes[b - 1], &s->lanes[a - 1])) {
        uint32_t c = a;

        a = b;
        b = c;
    }
    top = &s->lanes[a - 1];
    under = &s->lanes[b - 1];
    under->prev = a;
    under->next = top->child;
    if (top->child)
        s->lanes[top->child - 1].prev = b;
    top->child = b;
    return a;
}

/* A row of siblings into one heap: pairs from the left, then all of these from the right. */
static uint32_t join_row(struct stk_state *s, uint32_t first)
{
    uint32_t pairs = 0, all = 0;

    while (first) {
        uint32_t a = first, b = s->lanes[a - 1].next;

        first = b ? s->lanes[b - 1].next : 0;
        s->lanes[a - 1].next = s->lanes[a - 1].prev = 0;
        if (b)
            s->lanes[b - 1].next = s->lanes[b - 1].prev = 0;
        a = join(s, a, b);
        s->lanes[a - 1].next = pairs;
        pairs = a;
    }
    while (pairs) {
        uint32_t a = pairs;

        pairs = s->lanes[a - 1].next;
        s->lanes[a - 1].next = 0;
        all = join(s, all, a);
    }
    return all;
}

static void heap_add(struct stk_state *s, uint32_t lane)
{
    uint32_t *root = &s->shapes[s->lanes[lane].shape].lanes;

    s->lanes[lane].child = s->lanes[lane].next = s->lanes[lane].prev = 0;
    *root = join(s, *root, lane + 1);
}

static void heap_remove(struct stk_state *s, uint32_t lane)
{
    struct stk_lane *l = &s->lanes[lane];
    uint32_t *root = &s->shapes[l->shape].lanes;
    uint32_t below = join_row(s, l->child);

    if (*root == lane + 1) {
        *root = below;
        return;
    }
    if (s->lanes[l->prev - 1].child == lane + 1)
        s->lanes[l->prev - 1].child = l->next;
    else
        s->lanes[l->prev - 1].next = l->next;
    if (l->next)
        s->lanes[l->next - 1].prev = l->prev;
    *root = join(s, *root, below);
}

/* ---- lanes ---- */

static int64_t index_key(uint32_t shape, uint32_t tenant)
{
    return (int64_t)shape << 32 | tenant;
}

static uint32_t find(const struct stk_state *s, uint32_t shape, uint32_t tenant)
{
    const int64_t key = index_key(shape, tenant);
    const struct stk_oent *e =
        stk_ocursor_get(&s->trees, stk_otree_seek(&s->trees, &s->lane_index, key, 0));

    return e && e->key == key ? e->id : STK_NONE;
}

static uint32_t open_lane(struct stk_state *s, uint32_t shape, uint32_t tenant)
{
    uint32_t lane = s->free_lane ? s->free_lane - 1 : s->n_lanes,
             *first = stk_usage_lanes(s, tenant);

    if (s->free_lane) {
        s->free_lane = s->lanes[lane].next;
        s->n_free_lanes--;
    } else {
        s->n_lanes++;
    }
    s->lanes[lane] = (struct stk_lane){.shape = shape, .tenant = tenant, .t_next = *first};
    if (*first)
        s->lanes[*first - 1].t_prev = lane + 1;
    *first = lane + 1;
    stk_otree_insert(&s->trees, &s->lane_index,
                     (struct stk_oent){.key = index_key(shape, tenant), .id = lane});
    return lane;
}

/* It is empty, and in no heap. */
static void close_lane(struct stk_state *s, uint32_t lane)
{
    struct stk_lane *l = &s->lanes[lane];

    if (l->t_next)
        s->lanes[l->t_next - 1].t_prev = l->t_prev;
    if (l->t_prev)
        s->lanes[l->t_prev - 1].t_next = l->t_next;
    else
        *stk_usage_lanes(s, l->tenant) = l->t_next;
    (void)stk_otree_remove(&s->trees, &s->lane_index, index_key(l->shape, l->tenant), 0);
    *l = (struct stk_lane){.next = s->free_lane};
    s->free_lane = lane + 1;
    s->n_free_lanes++;
}

/* Into the heap, under its first job. */
static void settle(struct stk_state *s, uint32_t lane)
{
    struct stk_lane *l = &s->lanes[lane];
    const struct stk_oent *first = stk_otree_first(&s->trees, &l->waiting, INT64_MAX);

    l->key = first->key + s->label[l->tenant];
    l->tie = first->tie;
    heap_add(s, lane);
}

struct stk_otree *stk_lane_tree(struct stk_state *s, const struct stk_job *j)
{
    if (!stk_lanes_on(s))
        return &s->shapes[j->shape].waiting;
    return &s->lanes[find(s, j->shape, j->tenant)].waiting;
}

void stk_lane_add(struct stk_state *s, const struct stk_job *j, struct stk_oent e)
{
    struct stk_shape *sh = &s->shapes[j->shape];
    uint32_t lane;

    if (!stk_lanes_on(s)) {
        stk_otree_insert(&s->trees, &sh->waiting, e);
        return;
    }
    sh->waiting.count++;
    lane = find(s, j->shape, j->tenant);
    if (lane == STK_NONE)
        lane = open_lane(s, j->shape, j->tenant);
    else
        heap_remove(s, lane);
    stk_otree_insert(&s->trees, &s->lanes[lane].waiting, e);
    settle(s, lane);
    stk_usage_waits(s, j->tenant, true);
}

bool stk_lane_remove(struct stk_state *s, const struct stk_job *j)
{
    struct stk_shape *sh = &s->shapes[j->shape];
    uint32_t lane;

    if (!stk_lanes_on(s))
        return stk_otree_remove(&s->trees, &sh->waiting, j->rank, j->number);
    lane = find(s, j->shape, j->tenant);
    if (lane == STK_NONE ||
        !stk_otree_remove(&s->trees, &s->lanes[lane].waiting, j->rank, j->number))
        return false;
    sh->waiting.count--;
    heap_remove(s, lane);
    if (s->lanes[lane].waiting.count > 0)
        settle(s, lane);
    else
        close_lane(s, lane);
    stk_usage_waits(s, j->tenant, false);
    return true;
}

uint32_t stk_lane_next(const struct stk_state *s, uint32_t shape, uint32_t at,
                       const struct stk_otree **ret)
{
    const struct stk_oent *e;

    if (!stk_lanes_on(s)) {
        *ret = &s->shapes[shape].waiting;
        return at == 0 ? 1 : STK_NONE;
    }
    e = stk_ocursor_get(&s->trees,
                        stk_otree_seek(&s->trees, &s->lane_index, index_key(shape, at), 0));
    if (!e || e->key >> 32 != shape)
        return STK_NONE;
    *ret = &s->lanes[e->id].waiting;
    return (uint32_t)e->key + 1;
}

/* Of all lanes the best job whose aux is at most this. */
static bool search(const struct stk_state *s, uint32_t shape, int64_t max_aux, struct stk_oent *ret)
{
    struct stk_ocursor c = stk_otree_seek(&s->trees, &s->lane_index, index_key(shape, 0), 0);
    const struct stk_oent *at;
    bool found = false;

    for (; (at = stk_ocursor_get(&s->trees, c)) && at->key >> 32 == shape;
         stk_ocursor_next(&s->trees, &c)) {
        const struct stk_lane *l = &s->lanes[at->id];
        const struct stk_oent *e;
        int64_t key;

        if (found && l->key > ret->key)
            continue; /* all of its jobs are behind */
        e = stk_otree_first(&s->trees, &l->waiting, max_aux);
        if (!e)
            continue;
        key = e->key + s->label[l->tenant];
        if (found && (key != ret->key ? key > ret->key : e->tie > ret->tie))
            continue;
        found = true;
        *ret = *e;
        ret->key = key;
    }
    return found;
}

bool stk_shape_first(const struct stk_state *s, uint32_t shape, int64_t max_aux,
                     struct stk_oent *ret)
{
    const struct stk_otree *t = &s->shapes[shape].waiting;
    const struct stk_oent *e;
    const struct stk_lane *l;

    if (stk_lanes_on(s)) {
        if (!s->shapes[shape].lanes)
            return false;
        l = &s->lanes[s->shapes[shape].lanes - 1];
        e = stk_otree_first(&s->trees, &l->waiting, max_aux);
        if (!e || e->tie != l->tie) /* not the first of the first lane: it may be of any */
            return search(s, shape, max_aux, ret);
        *ret = *e;
        ret->key = l->key;
        return true;
    }
    e = stk_otree_first(&s->trees, t, max_aux);
    if (e)
        *ret = *e;
    return e != NULL;
}

void stk_lane_moved(struct stk_state *s, uint32_t tenant)
{
    for (uint32_t at = *stk_usage_lanes(s, tenant); at; at = s->lanes[at - 1].t_next) {
        uint32_t shape = s->lanes[at - 1].shape;
        struct stk_oent first;

        heap_remove(s, at - 1);
        settle(s, at - 1);
        if (stk_heap_has(s->shape_pos, shape) && stk_shape_first(s, shape, INT64_MAX, &first))
            stk_shape_requeue(s, shape, &first);
    }
}

bool stk_lanes_sound(const struct stk_state *s, struct stk_err *err)
{
    for (uint32_t i = 0; stk_lanes_on(s) && i < s->n_shapes; i++) {
        const struct stk_otree *t = NULL;
        uint32_t n = 0;

        for (uint32_t at = 0; (at = stk_lane_next(s, i, at, &t)) != STK_NONE;)
            n += t->count;
        if (n != s->shapes[i].waiting.count || (n > 0) != (s->shapes[i].lanes > 0)) {
            (void)stk_err_set(err, -EINVAL, "shape %u: %u jobs in its lanes, counted %u", i, n,
                              s->shapes[i].waiting.count);
            return false;
        }
    }
    for (uint32_t i = 0; stk_lanes_on(s) && i < s->n_lanes; i++) {
        const struct stk_lane *l = &s->lanes[i];
        const struct stk_oent *first = stk_otree_first(&s->trees, &l->waiting, INT64_MAX);

        if (first && (l->key != first->key + s->label[l->tenant] || l->tie != first->tie)) {
            (void)stk_err_set(err, -EINVAL, "a lane of tenant %u lies in the wrong place",
                              l->tenant);
            return false;
        }
        if (l->child && less(&s->lanes[l->child - 1], l)) {
            (void)stk_err_set(err, -EINVAL, "lanes of shape %u are out of order", l->shape);
            return false;
        }
    }
    return true;
}
