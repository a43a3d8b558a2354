/* SPDX-License-Identifier: Apache-2.0 */
/* swap.c - the engine gave a job other GPUs than were decided: the books take that over.
 *
 * On one node: whoever had these there has the others; that is put right when it is said of that
 * job, too. On another of its nodes: tasks of a gang lie there that were decided to lie here; each
 * of its nodes keeps one. Whole GPUs alone, of one type; how many the job has stays as it is, so
 * nothing else changes. What is no longer so (the other has ended, or a GPU went to somebody else)
 * is late news. O(log leases, pieces of the job). */
#include "core/backfill.h"
#include "core/evictable.h"
#include "core/gang.h"
#include "core/index.h"
#include "core/queue.h"
#include "core/shape.h"
#include "core/verbs.h"

/* Its piece with these GPUs and without those; NULL: there is none, or not of whole GPUs. */
static struct stk_piece *piece_with(struct stk_state *s, uint32_t job, uint32_t node, uint64_t with,
                                    uint64_t without)
{
    const struct stk_job *j = &s->jobs[job];
    const struct stk_demand *d = &s->shapes[j->shape].demand;

    for (uint32_t i = 0; i < j->n_pieces; i++) {
        struct stk_piece *p = &s->pieces[j->first_piece + i];
        const struct stk_use u = stk_use_by(s, j, d, p);

        if (p->node.i == node && (p->mask & with) == with && !(p->mask & without))
            return u.milli || u.mig || u.whole ? NULL : p;
    }
    return NULL;
}

static struct stk_use use_of(const struct stk_state *s, uint32_t job, const struct stk_piece *p)
{
    const struct stk_job *j = &s->jobs[job];

    return stk_use_by(s, j, &s->shapes[j->shape].demand, p);
}

static void give(struct stk_state *s, uint32_t job, const struct stk_piece *p)
{
    const struct stk_use u = use_of(s, job, p);

    stk_index_give(s, p->node.i, &u);
}

static void take(struct stk_state *s, uint32_t job, const struct stk_piece *p)
{
    const struct stk_use u = use_of(s, job, p);

    stk_index_take(s, p->node.i, &u);
}

/* It is in its queue's trees, or (not 'on') out of them while its pieces are changed. */
static void lease(struct stk_state *s, uint32_t job, bool on)
{
    if (s->jobs[job].state == STK_JOB_STOPPING)
        return; /* it is in no tree any more */
    if (on)
        stk_queue_lease(s, job);
    else
        stk_queue_unlease(s, job);
}

static bool leased(const struct stk_state *s, uint32_t job)
{
    return job < s->n_jobs && s->jobs[job].lease != 0;
}

static void changed(struct stk_state *s, uint32_t node)
{
    stk_evictable_recount(s, node);
    stk_plan_drop(&s->pools[s->nodes[node].pool]);
    stk_shape_unreserve(s, s->nodes[node].pool);
    stk_shape_wake(s, node);
}

/* ---- on one node ---- */

static int on_node(struct stk_state *s, const struct stk_event *ev)
{
    uint32_t node = ev->u.swap.node.i, with = ev->u.swap.with.i, job = ev->job.i;
    uint64_t had = ev->u.swap.had, has = ev->u.swap.has;
    struct stk_piece *mine = piece_with(s, job, node, had, has),
                     *other = leased(s, with) ? piece_with(s, with, node, has, had) : NULL;

    if (!mine || (with != STK_NONE && !other) ||
        (with == STK_NONE && (s->nodes[node].mask_used & has)))
        return -ESTALE;
    if (other && stk_queue_reserve(s, s->jobs[with].pool) < 0)
        return -ENOMEM;
    lease(s, job, false);
    give(s, job, mine);
    if (other) {
        lease(s, with, false);
        give(s, with, other);
        other->mask ^= had | has;
    }
    mine->mask ^= had | has;
    take(s, job, mine);
    lease(s, job, true);
    if (other) {
        take(s, with, other);
        lease(s, with, true);
    }
    changed(s, node);
    return 0;
}

/* ---- to another of its nodes ---- */

static void move(const struct stk_demand *d, struct stk_piece *a, struct stk_piece *b,
                 const struct stk_event *ev, bool back)
{
    uint32_t gpus = (uint32_t)__builtin_popcountll(ev->u.swap.had),
             tasks = d->cut ? 0 : gpus / d->gpus;

    a->mask ^= ev->u.swap.had;
    b->mask ^= ev->u.swap.has;
    a->gpus = back ? a->gpus + gpus : a->gpus - gpus;
    b->gpus = back ? b->gpus - gpus : b->gpus + gpus;
    a->tasks = back ? a->tasks + tasks : a->tasks - tasks;
    b->tasks = back ? b->tasks - tasks : b->tasks + tasks;
}

/* So many GPUs are whole tasks, and not all that it has there. */
static bool can_leave(const struct stk_demand *d, const struct stk_piece *a, uint32_t gpus)
{
    return gpus < a->gpus && (d->cut || (d->gpus > 0 && gpus % d->gpus == 0));
}

static int to_other(struct stk_state *s, const struct stk_event *ev)
{
    const struct stk_node *from = &s->nodes[ev->u.swap.node.i], *to = &s->nodes[ev->u.swap.to.i];
    const struct stk_job *j = &s->jobs[ev->job.i];
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    struct stk_piece *a = piece_with(s, ev->job.i, ev->u.swap.node.i, ev->u.swap.had, 0),
                     *b = piece_with(s, ev->job.i, ev->u.swap.to.i, 0, ev->u.swap.has);
    struct stk_use u;
    bool fits;

    if (!a || !b || ev->u.swap.with.i != STK_NONE || from->gpu_type != to->gpu_type ||
        (to->mask_used & ev->u.swap.has) ||
        !can_leave(d, a, (uint32_t)__builtin_popcountll(ev->u.swap.had)))
        return -ESTALE;
    lease(s, ev->job.i, false);
    give(s, ev->job.i, a);
    give(s, ev->job.i, b);
    move(d, a, b, ev, false);
    u = use_of(s, ev->job.i, b);
    fits = stk_index_fits_again(s, ev->u.swap.to.i, &u) &&
           (!stk_demand_near(d) ||
            stk_gang_check(s, d, &s->pieces[j->first_piece], j->n_pieces, NULL) == 0);
    if (!fits)
        move(d, a, b, ev, true);
    take(s, ev->job.i, a);
    take(s, ev->job.i, b);
    lease(s, ev->job.i, true);
    if (!fits)
        return -ESTALE;
    changed(s, ev->u.swap.node.i);
    changed(s, ev->u.swap.to.i);
    return 0;
}

static bool exists(const struct stk_state *s, stk_node_id node, uint64_t gpus)
{
    return node.i < s->n_nodes && !s->nodes[node.i].aggregate && gpus &&
           (s->nodes[node.i].gpus >= 64 || !(gpus >> s->nodes[node.i].gpus));
}

int stk_swap(struct stk_state *s, const struct stk_event *ev, struct stk_err *err)
{
    uint32_t node = ev->u.swap.node.i, to = ev->u.swap.to.i;
    uint64_t had = ev->u.swap.had, has = ev->u.swap.has;
    int rc;

    if (!exists(s, ev->u.swap.node, had) || !exists(s, ev->u.swap.to, has) ||
        __builtin_popcountll(had) != __builtin_popcountll(has) || ev->u.swap.with.i == ev->job.i)
        return stk_err_set(err, -EINVAL, "GPUs to be swapped that do not exist");
    if (stk_queue_reserve(s, s->jobs[ev->job.i].pool) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    rc = node == to ? on_node(s, ev) : to_other(s, ev);
    if (rc == -ENOMEM)
        return stk_err_set(err, rc, "out of memory");
    return rc == 0 ? 0
                   : stk_err_set(err, rc,
                                 "job %u: GPUs %llx of node %u and %llx of node %u cannot be "
                                 "swapped",
                                 s->jobs[ev->job.i].number, (unsigned long long)had, node,
                                 (unsigned long long)has, to);
}
