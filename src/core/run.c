/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - a job gets its lease, starts, or is told to give way. */
#include "core/verbs.h"

#include "core/backfill.h"
#include "core/booking.h"
#include "core/defrag.h"
#include "core/gang.h"
#include "core/limit.h"
#include "core/pair.h"
#include "core/power.h"
#include "core/queue.h"
#include "core/sets.h"
#include "core/txn.h"
#include "core/victims.h"
#include "core/walk.h"
#include "model/mig.h"

static uint32_t size_class(uint32_t n)
{
    uint32_t k = 0;

    while ((UINT32_C(1) << k) < n)
        k++;
    return k;
}

int stk_pieces_reserve(struct stk_state *s, uint32_t n)
{
    uint32_t k = size_class(n);

    if (!s->free_piece[k] && stk_mem_grow(&s->mem, &s->pieces, &s->cap_pieces,
                                          s->n_pieces + (UINT32_C(1) << k), sizeof(*s->pieces)) < 0)
        return -ENOMEM;
    return stk_victims_reserve(s);
}

uint32_t stk_pieces_alloc(struct stk_state *s, uint32_t n)
{
    uint32_t k = size_class(n), first;

    if (s->free_piece[k]) {
        first = s->free_piece[k] - 1;
        s->free_piece[k] = s->pieces[first].node.i;
        return first;
    }
    first = s->n_pieces;
    s->n_pieces += UINT32_C(1) << k;
    return first;
}

void stk_pieces_free(struct stk_state *s, uint32_t first, uint32_t n)
{
    uint32_t k = size_class(n);

    s->pieces[first].node.i = s->free_piece[k];
    s->free_piece[k] = first + 1;
}

static uint32_t bits_in(uint64_t x)
{
    return (uint32_t)__builtin_popcountll(x);
}

static int check_piece(const struct stk_state *s, const struct stk_job *j,
                       const struct stk_piece *p, struct stk_err *err)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    const struct stk_node *n;

    if (p->node.i >= s->n_nodes || s->nodes[p->node.i].pool != j->pool)
        return stk_err_set(err, -EINVAL, "job %u: node %u is not in pool %u", j->number, p->node.i,
                           j->pool);
    n = &s->nodes[p->node.i];
    if (!((d->gpu_types >> n->gpu_type) & 1))
        return stk_err_set(err, -EINVAL, "job %u does not accept the GPUs of node %u", j->number,
                           p->node.i);
    if (n->aggregate ? p->mask != 0 : bits_in(p->mask) != p->gpus)
        return stk_err_set(err, -EINVAL, "job %u: GPU mask does not name %u GPUs", j->number,
                           p->gpus);
    if (d->mig ? !stk_mig_slices(n->mig, d->mig, p->slot) : p->slot != 0)
        return stk_err_set(err, -EINVAL, "job %u: no MIG instance of its may start at slice %u",
                           j->number, p->slot);
    if (d->pin && (p->node.i + 1 != d->pin || p->mask != d->pin_mask || p->slot != d->pin_slot))
        return stk_err_set(err, -EINVAL, "job %u sleeps on node %u and can wake on its GPUs only",
                           j->number, d->pin - 1);
    if (d->cut ? p->tasks != 1 || (p->gpus == 0 && d->gpus > 0)
               : p->tasks == 0 || p->gpus != d->gpus * p->tasks)
        return stk_err_set(err, -EINVAL, "job %u: piece does not match its tasks", j->number);
    return 0;
}

int stk_run_take(struct stk_state *s, const struct stk_job *j, const struct stk_piece *pieces,
                 uint32_t n, struct stk_err *err)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    stk_txn_mark mark = stk_txn_begin(s);
    uint64_t gpus = 0, tasks = 0;
    struct stk_err why;
    int rc = 0;

    for (uint32_t i = 0; i < n && rc == 0; i++) {
        struct stk_use u;

        rc = check_piece(s, j, &pieces[i], err);
        if (rc < 0)
            break;
        u = stk_use_by(s, j, d, &pieces[i]);
        if (!stk_index_fits(s, pieces[i].node.i, &u) ||
            (stk_demand_pairs(d) && !stk_pair_allows(s, pieces, n, i))) {
            rc = stk_err_set(err, -ENOSPC, "job %u does not fit node %u now", j->number,
                             pieces[i].node.i);
            break;
        }
        stk_txn_take(s, pieces[i].node.i, &u);
        gpus += pieces[i].gpus;
        tasks += pieces[i].tasks;
    }
    if (rc == 0 && (gpus != j->gpus || ((!d->cut || d->gpus == 0) && tasks != d->tasks)))
        rc =
            stk_err_set(err, -EINVAL, "job %u: a gang starts whole or not at all (%llu of %u GPUs)",
                        j->number, (unsigned long long)gpus, j->gpus);
    if (rc == 0 && stk_demand_near(d) && stk_gang_check(s, d, pieces, n, &why) < 0)
        rc = stk_err_set(err, -EINVAL, "job %u: %s", j->number, why.text);
    if (rc < 0)
        stk_txn_rollback(s, mark);
    else
        stk_txn_commit(s, mark);
    return rc;
}

/* A job that outlives the pool's reservation uses up what the reserved node had to spare. */
static void charge_reservation(struct stk_state *s, const struct stk_job *j)
{
    const struct stk_pool *p = &s->pools[j->pool];
    const bool exclusive = s->shapes[j->shape].demand.exclusive;

    if (p->resv_job == STK_NONE || j->expected_end <= p->resv_at)
        return;
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *k = &s->pieces[j->first_piece + i];

        if (stk_bits_test(s->avoid, k->node.i))
            s->nodes[k->node.i].extra -= exclusive ? s->nodes[k->node.i].gpus : k->gpus;
    }
}

/* What reservations hold for the job is free to it. */
static int take(struct stk_state *s, const struct stk_job *j, const struct stk_event *ev,
                struct stk_err *err)
{
    const struct stk_piece *pieces = ev->u.place.pieces;
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    stk_txn_mark mark = stk_txn_begin(s);
    int rc = 0;

    /* later they may be others, and a job that sleeps wakes where it is */
    for (uint32_t i = 0; i < ev->u.place.n && rc == 0 && !d->pin; i++)
        if (pieces[i].node.i < s->n_nodes && !stk_sets_allow(s, d, pieces[i].node.i))
            rc = stk_err_set(err, -EINVAL, "job %u may not use node %u", j->number,
                             pieces[i].node.i);
    if (rc < 0)
        return rc;
    if (s->book.n == 0)
        return stk_run_take(s, j, pieces, ev->u.place.n, err);
    stk_booking_let(s, j, pieces, ev->u.place.n);
    rc = stk_run_take(s, j, pieces, ev->u.place.n, err);
    if (rc < 0)
        stk_txn_rollback(s, mark);
    else
        stk_txn_commit(s, mark);
    stk_booking_settle(s, rc == 0);
    return rc;
}

int stk_run_place(struct stk_state *s, const struct stk_event *ev, struct stk_err *err)
{
    struct stk_job *j = &s->jobs[ev->job.i];
    uint32_t n = ev->u.place.n;
    int rc;

    if (ev->lease != s->next_lease)
        return stk_err_set(err, -ESTALE, "job %u: lease must be %u", j->number, s->next_lease);
    if (n == 0 || n > s->max_pieces)
        return stk_err_set(err, -EINVAL, "job %u: a lease has 1 to %u pieces, got %u", j->number,
                           s->max_pieces, n);
    rc = stk_pieces_reserve(s, n);
    rc = rc < 0 ? rc : stk_queue_reserve(s, j->pool);
    /* a tentative session may give and take every piece, and those of a batch of new jobs */
    rc = rc < 0 ? rc
                : stk_txn_reserve(s, 4 * (s->n_pieces + n + s->n_nodes + STK_BATCH) + s->n_parts +
                                         8 * s->book.n_fences);
    if (rc < 0)
        return stk_err_set(err, -ENOMEM, "out of memory for a lease of %u pieces", n);
    rc = take(s, j, ev, err);
    if (rc < 0)
        return rc;
    stk_queue_leave(s, ev->job.i, true);
    if (s->pools[j->pool].n_stopping == 0)
        s->pools[j->pool].claim = STK_NONE; /* nobody goes any more, and another one starts */
    j->first_piece = stk_pieces_alloc(s, n);
    j->n_pieces = n;
    for (uint32_t i = 0; i < n; i++) {
        s->pieces[j->first_piece + i] = ev->u.place.pieces[i];
        s->nodes[ev->u.place.pieces[i].node.i].off = false; /* that switches it on */
    }
    stk_defrag_moved(s, j);
    stk_limit_took(s, j);
    j->lease = s->next_lease++;
    j->started = s->now;
    j->state = STK_JOB_PLACED;
    stk_queue_lease(s, ev->job.i);
    stk_pair_join(s, ev->job.i);
    for (uint32_t i = 0; s->book.n > 0 && i < n; i++)
        stk_booking_fill(s, ev->u.place.pieces[i].node.i);
    charge_reservation(s, j);
    return 0;
}

void stk_run_started(struct stk_state *s, uint32_t job)
{
    struct stk_job *j = &s->jobs[job];

    if (j->slept)
        stk_awake(s, j);
    if (j->state == STK_JOB_PLACED)
        j->state = STK_JOB_RUNNING;
    if (j->started == s->now)
        return;
    if (j->state == STK_JOB_STOPPING) { /* in no tree any more */
        j->started = s->now;
        return;
    }
    /* it runs from now, not from when it was told to */
    stk_queue_unlease(s, job);
    j->started = s->now;
    stk_queue_lease(s, job);
    stk_plan_drop(&s->pools[j->pool]);
}

void stk_run_evict(struct stk_state *s, const struct stk_event *ev)
{
    struct stk_job *j = &s->jobs[ev->job.i];

    j->by_hand = ev->u.evict.by_hand;
    if (j->lease == 0) { /* it sleeps: its processes are ended */
        if (j->state == STK_JOB_WAITING)
            stk_queue_leave(s, ev->job.i, false);
        j->state = STK_JOB_STOPPING;
        return;
    }
    j->suspend_wanted = ev->u.evict.suspend && j->n_pieces == 1;
    s->stakes[ev->job.i].kill = ev->u.evict.kill;
    if (ev->u.evict.moved) {
        stk_defrag_moves(s, ev->job.i);
        s->n_moved++;
    }
    stk_queue_unlease(s, ev->job.i);
    j->state = STK_JOB_STOPPING;
    s->pools[j->pool].n_stopping++;
    stk_plan_drop(&s->pools[j->pool]);
    if (ev->u.evict.for_job.i != STK_NONE)
        s->pools[j->pool].claim = ev->u.evict.for_job.i;
}
