/* SPDX-License-Identifier: Apache-2.0 */
/* booking_hold.c - which leases count for which reservation, and what is held on its nodes. */
#include "core/booking.h"
#include "core/index.h"
#include "core/shape.h"
#include "core/txn.h"

/* ---- leases ---- */

/* What a piece keeps others from. */
uint32_t stk_booking_keeps(const struct stk_state *s, const struct stk_job *j,
                           const struct stk_piece *p)
{
    return s->shapes[j->shape].demand.exclusive ? s->nodes[p->node.i].gpus : p->gpus;
}

/* Adds the lease to the sums of one fence, or takes it off. */
static void count_on(struct stk_state *s, uint32_t job, struct stk_fence *f, uint32_t gpus)
{
    const struct stk_booking *b = &s->book.row[f->row];

    if (s->book.charged[job] == b->number)
        f->used += gpus;
    else if (!b->open && s->jobs[job].expected_end > b->start)
        f->late += gpus;
}

void stk_booking_count(struct stk_state *s, uint32_t job, bool add, uint32_t row)
{
    const struct stk_job *j = &s->jobs[job];

    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];
        const uint32_t gpus = stk_booking_keeps(s, j, p);

        for (uint32_t k = s->book.on_node[p->node.i]; k; k = s->book.fence[k - 1].next)
            if (row == STK_NONE || s->book.fence[k - 1].row == row)
                count_on(s, job, &s->book.fence[k - 1], add ? gpus : 0 - gpus);
    }
}

/* Whether the job has GPUs on a node on which the reservation still wants some. */
static bool could_charge(const struct stk_state *s, const struct stk_job *j, uint32_t row)
{
    for (uint32_t i = 0; i < j->n_pieces; i++)
        for (uint32_t k = s->book.on_node[s->pieces[j->first_piece + i].node.i]; k;
             k = s->book.fence[k - 1].next)
            if (s->book.fence[k - 1].row == row && stk_fence_wants(&s->book.fence[k - 1]) > 0 &&
                s->pieces[j->first_piece + i].gpus > 0)
                return true;
    return false;
}

bool stk_booking_charge(struct stk_state *s, uint32_t job, uint32_t row)
{
    struct stk_job *j = &s->jobs[job];
    struct stk_booking *b = &s->book.row[row];

    if (b->pool != j->pool || !stk_booking_mine(b, s->shapes[j->shape].demand.holders) ||
        (!b->open && j->expected_end <= b->start) || !could_charge(s, j, row))
        return false;
    s->book.charged[job] = b->number;
    b->used |= b->open;
    return true;
}

/* The lease in all sums, or no longer: its nodes may hold less, or more. */
static void recount(struct stk_state *s, uint32_t job, bool add)
{
    const struct stk_job *j = &s->jobs[job];

    stk_booking_count(s, job, add, STK_NONE);
    for (uint32_t i = 0; s->book.charged[job] && !s->book.loading && i < j->n_pieces; i++)
        stk_booking_fill(s, s->pieces[j->first_piece + i].node.i);
}

void stk_booking_lease(struct stk_state *s, uint32_t job)
{
    for (uint32_t i = 0; i < s->book.n && s->book.charged[job] == 0 && !s->book.loading; i++)
        (void)stk_booking_charge(s, job, i);
    if (s->book.n > 0)
        recount(s, job, true);
}

void stk_booking_unlease(struct stk_state *s, uint32_t job)
{
    if (s->book.n > 0)
        recount(s, job, false);
}

void stk_booking_uncharge(struct stk_state *s, uint32_t job)
{
    s->book.charged[job] = 0;
}

/* ---- what is held ---- */

/* It holds these from now on: one use of the node, or none. */
static void set_held(struct stk_state *s, struct stk_fence *f, uint32_t gpus, uint64_t mask)
{
    struct stk_use u = stk_fence_use(f);

    if (f->held > 0)
        stk_index_give(s, f->node, &u);
    f->held = gpus;
    f->mask = mask;
    u = stk_fence_use(f);
    if (gpus > 0)
        stk_index_take(s, f->node, &u);
}

void stk_booking_give(struct stk_state *s, struct stk_fence *f, uint32_t gpus)
{
    set_held(s, f, f->held - gpus, f->mask & ~stk_mask_lowest(f->mask, gpus));
}

static void hold(struct stk_state *s, struct stk_fence *f, uint32_t gpus)
{
    set_held(s, f, f->held + gpus, f->mask | stk_index_lowest(s, f->node, gpus));
    s->nodes[f->node].off = false;
}

/* More is held for it: its jobs that did not fit may fit now. O(shapes). */
static void wake_holder(struct stk_state *s, const struct stk_booking *b)
{
    struct stk_pool *p = &s->pools[b->pool];

    if (p->n_waiting == 0)
        return;
    for (uint32_t i = p->first_shape; i; i = s->shapes[i - 1].pool_next)
        if (s->shapes[i - 1].parked != STK_READY && s->shapes[i - 1].parked != STK_PARKED_LIMIT &&
            s->shapes[i - 1].parked != STK_PARKED_QUEUE &&
            stk_booking_mine(b, s->shapes[i - 1].demand.holders))
            stk_shape_ready(s, i - 1);
    stk_shape_mark_dirty(s, b->pool);
}

void stk_booking_fill(struct stk_state *s, uint32_t node)
{
    struct stk_node *n = &s->nodes[node];
    bool gave = false;

    for (uint32_t i = s->book.on_node[node]; i; i = s->book.fence[i - 1].next) {
        struct stk_fence *f = &s->book.fence[i - 1];
        const uint32_t want = stk_fence_wants(f);

        if (f->held > want) {
            stk_booking_give(s, f, f->held - want);
            gave = true;
        }
    }
    for (uint32_t i = s->book.on_node[node]; i && n->up; i = s->book.fence[i - 1].next) {
        struct stk_fence *f = &s->book.fence[i - 1];
        uint32_t more = s->book.row[f->row].open ? stk_fence_wants(f) - f->held : 0;

        more = more < n->gpus_free ? more : n->gpus_free;
        if (more == 0)
            continue;
        hold(s, f, more);
        wake_holder(s, &s->book.row[f->row]);
    }
    if (gave)
        stk_shape_wake(s, node);
}

void stk_booking_let(struct stk_state *s, const struct stk_job *j, const struct stk_piece *pieces,
                     uint32_t n)
{
    const uint64_t holders = s->shapes[j->shape].demand.holders;

    for (uint32_t i = 0; i < n && holders; i++) {
        if (pieces[i].node.i >= s->n_nodes)
            continue;
        for (uint32_t k = s->book.on_node[pieces[i].node.i]; k; k = s->book.fence[k - 1].next) {
            struct stk_fence *f = &s->book.fence[k - 1];
            const struct stk_use u = stk_fence_use(f);

            if (f->held == 0 || f->let || !stk_booking_mine(&s->book.row[f->row], holders))
                continue;
            f->let = true;
            stk_txn_give(s, f->node, &u);
        }
    }
}

void stk_booking_settle(struct stk_state *s, bool ok)
{
    for (uint32_t i = 0; i < s->book.n_fences; i++) {
        struct stk_fence *f = &s->book.fence[i];

        if (f->let && ok)
            f->held = 0, f->mask = 0;
        f->let = false;
    }
}
