/* SPDX-License-Identifier: Apache-2.0 */
#include "core/fence.h"

#include "core/booking.h"
#include "core/index.h"
#include "core/lane.h"
#include "core/part.h"
#include "core/place.h"
#include "core/queue.h"
#include "core/speed.h"
#include "core/txn.h"

/* Whether the window is in the way of a job that runs from 'at' until then. Of one without an
 * estimate ('until' is 'at') nobody knows: those that drain for a job do not wait for it. */
static bool in_the_way(const struct stk_booking *b, uint64_t holders, stk_time at, stk_time until)
{
    return (b->start < until || (b->drain && until <= at)) && !stk_booking_mine(b, holders);
}

/* What windows other than one's own need of the node at this time, beyond what is held. */
static uint32_t needed_at(const struct stk_state *s, uint32_t node, uint64_t holders, stk_time t)
{
    uint32_t sum = 0;

    for (uint32_t i = s->book.on_node[node]; i; i = s->book.fence[i - 1].next) {
        const struct stk_fence *f = &s->book.fence[i - 1];
        const struct stk_booking *b = &s->book.row[f->row];

        if (b->start <= t && t < b->end && !stk_booking_mine(b, holders))
            sum += stk_fence_wants(f) - f->held;
    }
    return sum;
}

/* What a job may have of the node if it runs on when the window opens. */
static int64_t slack(const struct stk_state *s, const struct stk_fence *f, uint64_t holders)
{
    const struct stk_node *n = &s->nodes[f->node];
    const struct stk_booking *b = &s->book.row[f->row];
    int64_t left = (int64_t)n->gpus - __builtin_popcountll(n->mask_off) - f->late - f->used;

    for (uint32_t i = s->book.on_node[f->node]; i; i = s->book.fence[i - 1].next) {
        const struct stk_fence *k = &s->book.fence[i - 1];
        const struct stk_booking *other = &s->book.row[k->row];

        if (other->start <= b->start && b->start < other->end && !stk_booking_mine(other, holders))
            left -= stk_fence_wants(k);
    }
    return left;
}

static uint32_t leaves(const struct stk_state *s, uint32_t node, uint64_t holders, stk_time at,
                       stk_time until)
{
    const uint32_t free = s->nodes[node].gpus_free;
    int64_t keep = needed_at(s, node, holders, at);

    for (uint32_t i = s->book.on_node[node]; i; i = s->book.fence[i - 1].next) {
        const struct stk_fence *f = &s->book.fence[i - 1];
        const struct stk_booking *b = &s->book.row[f->row];
        int64_t more;

        if (b->start <= at || !in_the_way(b, holders, at, until))
            continue;
        more = (int64_t)free - slack(s, f, holders);
        keep = more > keep ? more : keep;
    }
    return keep < 0 ? 0 : keep < free ? (uint32_t)keep : free;
}

uint32_t stk_fence_leaves(struct stk_state *s, uint32_t node, stk_time at)
{
    return leaves(s, node, 0, at, STK_NEVER_TIME);
}

static void take(struct stk_state *s, uint32_t node, uint32_t gpus)
{
    const struct stk_use u = {.gpus = gpus, .mask = stk_index_lowest(s, node, gpus)};

    if (gpus > 0)
        stk_txn_take(s, node, &u);
}

/* What is left of GPUs that others share is gone, too: a part that is tried finds what is held. */
static void take_parts(struct stk_state *s, uint32_t node)
{
    const struct stk_node *n = &s->nodes[node];

    for (uint64_t m = n->mask_part; m; m &= m - 1) {
        const struct stk_use u = stk_part_rest(s, node, (uint32_t)__builtin_ctzll(m));

        if (u.milli > 0)
            stk_txn_take(s, node, &u);
    }
}

/* What is held for the job is free; with 'inside', nothing else there is. */
static void give_own(struct stk_state *s, const struct stk_booking *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        const struct stk_fence *f = &s->book.fence[b->first + i];
        const struct stk_use u = stk_fence_use(f);

        if (s->book.inside && s->book.stamped[f->node] != s->book.stamp) {
            s->book.stamped[f->node] = s->book.stamp;
            take(s, f->node, s->nodes[f->node].gpus_free);
            take_parts(s, f->node);
        }
        if (f->held > 0 && !f->let)
            stk_txn_give(s, f->node, &u);
    }
}

void stk_fence_raise(struct stk_state *s, uint32_t shape)
{
    const uint64_t holders = s->shapes[shape].demand.holders;
    const stk_time at = s->book.at > s->now ? s->book.at : s->now;
    const uint32_t pool = s->shapes[shape].pool;

    s->book.stamp++;
    for (uint32_t i = 0; i < s->book.n && s->pools[pool].n_open > 0 && holders; i++)
        if (s->book.row[i].pool == pool && s->book.row[i].open &&
            stk_booking_mine(&s->book.row[i], holders))
            give_own(s, &s->book.row[i]);
    s->book.stamp++;
    for (uint32_t i = 0; i < s->book.n; i++) {
        const struct stk_booking *b = &s->book.row[i];

        if (b->pool != pool || b->end <= at || !in_the_way(b, holders, at, s->book.until))
            continue;
        for (uint32_t k = 0; k < b->n; k++) {
            uint32_t node = s->book.fence[b->first + k].node;

            if (s->book.stamped[node] == s->book.stamp || !s->nodes[node].up)
                continue;
            s->book.stamped[node] = s->book.stamp;
            take(s, node, leaves(s, node, holders, at, s->book.until));
        }
    }
}

/* The latest start of a window of the pool before this time, after now; 0: none. */
static stk_time last_start(const struct stk_state *s, uint32_t pool, stk_time now, stk_time before)
{
    stk_time last = 0;

    for (uint32_t i = 0; i < s->book.n; i++) {
        const struct stk_booking *b = &s->book.row[i];

        if (b->pool == pool && b->start > now && b->start < before && b->start > last)
            last = b->start;
    }
    return last;
}

bool stk_fence_fits(struct stk_state *s, uint32_t shape, stk_time now, stk_time *ret_limit,
                    uint32_t *ret_n)
{
    const uint32_t pool = s->shapes[shape].pool;
    stk_time until = STK_NEVER_TIME;
    bool fits;

    *ret_limit = STK_NEVER_TIME;
    if (s->pools[pool].n_booked == 0)
        return stk_place_try(s, shape, NULL, ret_n);
    stk_fence_for(s, now, now + 1); /* who does not even fit for an instant is soon known */
    fits = stk_place_try(s, shape, NULL, ret_n);
    while (fits) {
        stk_fence_for(s, now, until);
        if (stk_place_try(s, shape, NULL, ret_n))
            break;
        until = last_start(s, pool, now, until);
        fits = until > 0;
    }
    stk_fence_any(s);
    if (fits && until != STK_NEVER_TIME)
        *ret_limit = until - now;
    return fits;
}

/* ---- what is held, for whom it is held ---- */

/* The window with the latest end among those open to the shape that hold something; NULL. */
static const struct stk_booking *open_to(const struct stk_state *s, uint32_t shape)
{
    const struct stk_shape *sh = &s->shapes[shape];
    const struct stk_booking *best = NULL;

    for (uint32_t i = 0; i < s->book.n && sh->demand.holders && sh->gpus > 0; i++) {
        const struct stk_booking *b = &s->book.row[i];
        uint32_t held = 0;

        if (!b->open || b->pool != sh->pool || !stk_booking_mine(b, sh->demand.holders))
            continue;
        for (uint32_t k = 0; k < b->n; k++)
            held += s->book.fence[b->first + k].held;
        if (held > 0 && (!best || b->end > best->end))
            best = b;
    }
    return best;
}

/* Bits of all nodes but those of the shape's open reservations. */
static void mark_outside(struct stk_state *s, uint32_t shape)
{
    const struct stk_shape *sh = &s->shapes[shape];

    for (uint32_t i = 0; i < s->n_nodes / 64 + 1; i++)
        s->book.outside[i] = UINT64_MAX;
    for (uint32_t i = 0; i < s->book.n; i++) {
        const struct stk_booking *b = &s->book.row[i];

        for (uint32_t k = 0;
             b->open && b->pool == sh->pool && stk_booking_mine(b, sh->demand.holders) && k < b->n;
             k++) {
            uint32_t node = s->book.fence[b->first + k].node;

            s->book.outside[node / 64] &= ~(UINT64_C(1) << (node % 64));
        }
    }
}

/* A part may have found a GPU that others share, which is not held for it. */
static bool all_held(const struct stk_state *s, uint32_t shape, uint32_t n)
{
    const struct stk_demand *d = &s->shapes[shape].demand;

    for (uint32_t i = 0; stk_demand_shares(d) && i < n; i++) {
        const struct stk_piece *p = &s->try_pieces[i];
        uint64_t held = 0;

        for (uint32_t k = s->book.on_node[p->node.i]; k; k = s->book.fence[k - 1].next)
            if (stk_booking_mine(&s->book.row[s->book.fence[k - 1].row], d->holders))
                held |= s->book.fence[k - 1].mask;
        if (p->mask & ~held)
            return false;
    }
    return true;
}

struct candidate {
    uint32_t shape; /* STK_NONE: there is none */
    struct stk_oent e;
};

/* The first job of the shape that ends by then. Where starts are planned: if its first does. */
static bool ends_by(const struct stk_state *s, uint32_t shape, stk_time now, stk_time end,
                    struct stk_oent *ret)
{
    return stk_shape_first(s, shape, s->backfill->reserve_all ? INT64_MAX : end - now, ret) &&
           stk_speed_longest(s, &s->jobs[ret->id], now) <= end - now;
}

static bool before(const struct stk_oent *a, const struct stk_oent *b)
{
    return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

/* The best-ranked job behind 'last' that may start on what is held for it. */
static struct candidate after(struct stk_state *s, uint32_t pool, stk_time now,
                              const struct stk_oent *last)
{
    struct candidate best = {.shape = STK_NONE};

    for (uint32_t i = s->pools[pool].first_shape; i; i = s->shapes[i - 1].pool_next) {
        const struct stk_booking *b = s->shapes[i - 1].waiting.count > 0 ? open_to(s, i - 1) : NULL;
        struct stk_oent e;

        if (!b || !ends_by(s, i - 1, now, b->drain ? STK_NEVER_TIME : b->end, &e) ||
            (last && !before(last, &e)))
            continue;
        if (best.shape == STK_NONE || before(&e, &best.e))
            best = (struct candidate){i - 1, e};
    }
    return best;
}

uint32_t stk_fence_next(struct stk_state *s, uint32_t pool, stk_time now, uint32_t *ret_n)
{
    struct stk_oent last = {.key = INT64_MIN};
    uint32_t found = STK_NONE;

    if (s->pools[pool].n_open == 0)
        return STK_NONE;
    for (;;) {
        const struct candidate c = after(s, pool, now, last.key == INT64_MIN ? NULL : &last);

        if (c.shape == STK_NONE || found != STK_NONE)
            break;
        last = c.e;
        mark_outside(s, c.shape);
        stk_fence_for(s, now, now + stk_speed_longest(s, &s->jobs[c.e.id], now));
        s->book.inside = true;
        if (stk_place_try(s, c.shape, s->book.outside, ret_n) && all_held(s, c.shape, *ret_n))
            found = c.e.id;
        s->book.inside = false;
        stk_fence_any(s);
    }
    return found;
}

/* ---- when ---- */

/* A lease is over, in the future that is tried: what is charged to reservations, too. */
static void charge(struct stk_state *s, const struct stk_job *j, bool back)
{
    const uint32_t number = s->book.charged[j - s->jobs];

    for (uint32_t i = 0; number && i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];

        for (uint32_t k = s->book.on_node[p->node.i]; k; k = s->book.fence[k - 1].next) {
            struct stk_fence *f = &s->book.fence[k - 1];

            if (s->book.row[f->row].number == number)
                f->used += back ? p->gpus : 0 - p->gpus;
        }
    }
}

/* The next end of a window of the pool after this time. */
static stk_time next_end(const struct stk_state *s, uint32_t pool, stk_time t)
{
    stk_time next = STK_NEVER_TIME;

    for (uint32_t i = 0; i < s->book.n; i++)
        if (s->book.row[i].pool == pool && s->book.row[i].end > t && s->book.row[i].end < next)
            next = s->book.row[i].end;
    return next;
}

/* What was held for windows that end at this time is free. */
static void close_windows(struct stk_state *s, uint32_t pool, stk_time t)
{
    for (uint32_t i = 0; i < s->book.n; i++) {
        const struct stk_booking *b = &s->book.row[i];

        for (uint32_t k = 0; b->pool == pool && b->end == t && k < b->n; k++) {
            struct stk_fence *f = &s->book.fence[b->first + k];
            const struct stk_use u = stk_fence_use(f);

            if (f->held == 0 || f->let)
                continue;
            stk_txn_give(s, f->node, &u);
            f->let = true;
        }
    }
}

/* Whether enough GPUs are free at all. Of those who may have what is held, or share, that is not
 * known before they are tried. */
static bool enough(const struct stk_state *s, const struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;

    return d->holders || d->pin || stk_demand_shares(d) ||
           s->pools[j->pool].gpus_free >= s->shapes[j->shape].gpus;
}

stk_time stk_fence_when(struct stk_state *s, uint32_t job, stk_time now, uint32_t *ret_n)
{
    const struct stk_job *j = &s->jobs[job];
    const struct stk_pool *p = &s->pools[j->pool];
    const stk_time length = stk_speed_longest(s, j, now);
    struct stk_ocursor c = stk_otree_begin(&s->trees, &p->ends), end;
    stk_time t = now;
    bool fits = false;

    for (uint32_t i = 0; (i = stk_queue_stopping(s, j->pool, i)) != STK_NONE; i++)
        stk_txn_give_job(s, &s->jobs[i]);
    for (;;) {
        const struct stk_oent *e = stk_ocursor_get(&s->trees, c);
        stk_time w = next_end(s, j->pool, t), next = e ? e->key : STK_NEVER_TIME;

        if (e == NULL || next > t) {
            stk_fence_for(s, t, t + length);
            fits = enough(s, j) && stk_place_try(s, j->shape, NULL, ret_n);
            next = w < next ? w : next;
            if (fits || next == STK_NEVER_TIME)
                break;
            t = next;
            close_windows(s, j->pool, t);
        }
        for (; e && e->key <= t; e = stk_ocursor_get(&s->trees, c)) {
            stk_txn_give_job(s, &s->jobs[e->id]);
            charge(s, &s->jobs[e->id], false);
            stk_ocursor_next(&s->trees, &c);
        }
    }
    stk_fence_any(s);
    end = c;
    for (c = stk_otree_begin(&s->trees, &p->ends);
         c.block != end.block || (c.block != UINT32_MAX && c.at != end.at);
         stk_ocursor_next(&s->trees, &c))
        charge(s, &s->jobs[stk_ocursor_get(&s->trees, c)->id], true);
    for (uint32_t i = 0; i < s->book.n_fences; i++)
        s->book.fence[i].let = false;
    return fits ? t : STK_NEVER_TIME;
}

/* ---- why ---- */

const struct stk_booking *stk_fence_why(struct stk_state *s, uint32_t job, stk_time now)
{
    const struct stk_job *j = &s->jobs[job];
    const uint64_t holders = s->shapes[j->shape].demand.holders;
    const struct stk_booking *why = NULL;
    const stk_time until = now + stk_speed_longest(s, j, now);
    stk_txn_mark mark = stk_txn_begin(s);
    uint32_t n;

    if (s->pools[j->pool].n_booked == 0)
        return NULL;
    for (uint32_t i = 0; i < s->book.n; i++)
        if (s->book.row[i].pool == j->pool && stk_booking_mine(&s->book.row[i], holders))
            give_own(s, &s->book.row[i]);
    for (uint32_t i = 0; i < s->book.n && !why; i++) {
        const struct stk_booking *b = &s->book.row[i];

        if (b->pool != j->pool || !in_the_way(b, holders, now, until))
            continue;
        for (uint32_t k = 0; k < b->n; k++) {
            const struct stk_use u = stk_fence_use(&s->book.fence[b->first + k]);

            if (u.gpus > 0)
                stk_txn_give(s, s->book.fence[b->first + k].node, &u);
        }
        s->book.raised = true; /* no fences: the reservation that is given back last is the one */
        if (stk_place_try(s, j->shape, NULL, &n))
            why = b;
        s->book.raised = false;
    }
    stk_txn_rollback(s, mark);
    return why;
}
