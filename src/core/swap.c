/* SPDX-License-Identifier: Apache-2.0 */
/* swap.c - the engine gave a job another GPU of the node than was decided: the books take that
 * over. Whoever had that GPU there has the other one; that is put right when it is said of that
 * job, too. Whole GPUs alone; how many each has stays as it is, so nothing else changes. What is no
 * longer so (the other has ended, or the GPU went to somebody else) is late news. O(log leases). */
#include "core/backfill.h"
#include "core/evictable.h"
#include "core/index.h"
#include "core/queue.h"
#include "core/shape.h"
#include "core/verbs.h"

/* Its piece with this GPU and without that; NULL: there is none, or not of whole GPUs. */
static struct stk_piece *piece_with(struct stk_state *s, uint32_t job, uint32_t node, uint64_t with,
                                    uint64_t without)
{
    const struct stk_job *j = &s->jobs[job];
    const struct stk_demand *d = &s->shapes[j->shape].demand;

    for (uint32_t i = 0; i < j->n_pieces; i++) {
        struct stk_piece *p = &s->pieces[j->first_piece + i];
        const struct stk_use u = stk_use_by(s, j, d, p);

        if (p->node.i == node && (p->mask & with) && !(p->mask & without))
            return u.milli || u.mig || u.whole ? NULL : p;
    }
    return NULL;
}

static void change(struct stk_state *s, uint32_t job, struct stk_piece *p, bool take)
{
    const struct stk_job *j = &s->jobs[job];
    const struct stk_use u = stk_use_by(s, j, &s->shapes[j->shape].demand, p);

    if (!take && j->state != STK_JOB_STOPPING) /* else it is in no tree any more */
        stk_queue_unlease(s, job);
    if (take)
        stk_index_take(s, p->node.i, &u);
    else
        stk_index_give(s, p->node.i, &u);
    if (take && j->state != STK_JOB_STOPPING)
        stk_queue_lease(s, job);
}

static bool leased(const struct stk_state *s, uint32_t job)
{
    return job < s->n_jobs && s->jobs[job].lease != 0;
}

int stk_swap(struct stk_state *s, const struct stk_event *ev, struct stk_err *err)
{
    uint32_t node = ev->u.swap.node.i, with = ev->u.swap.with.i, job = ev->job.i;
    uint64_t had, has;
    struct stk_piece *mine, *other = NULL;

    if (node >= s->n_nodes || s->nodes[node].aggregate || ev->u.swap.had >= s->nodes[node].gpus ||
        ev->u.swap.has >= s->nodes[node].gpus || with == job)
        return stk_err_set(err, -EINVAL, "GPUs to be swapped that do not exist");
    had = UINT64_C(1) << ev->u.swap.had;
    has = UINT64_C(1) << ev->u.swap.has;
    mine = piece_with(s, job, node, had, has);
    if (leased(s, with))
        other = piece_with(s, with, node, has, had);
    if (!mine || (with != STK_NONE && !other) ||
        (with == STK_NONE && (s->nodes[node].mask_used & has)))
        return stk_err_set(err, -ESTALE, "job %u: GPUs %u and %u of node %u cannot be swapped",
                           s->jobs[job].number, ev->u.swap.had, ev->u.swap.has, node);
    if (stk_queue_reserve(s, s->jobs[job].pool) < 0 ||
        (other && stk_queue_reserve(s, s->jobs[with].pool) < 0))
        return stk_err_set(err, -ENOMEM, "out of memory");
    change(s, job, mine, false);
    if (other)
        change(s, with, other, false);
    mine->mask ^= had | has;
    if (other)
        other->mask ^= had | has;
    change(s, job, mine, true);
    if (other)
        change(s, with, other, true);
    stk_evictable_recount(s, node);
    stk_plan_drop(&s->pools[s->nodes[node].pool]);
    stk_shape_unreserve(s, s->nodes[node].pool);
    stk_shape_wake(s, node);
    return 0;
}
