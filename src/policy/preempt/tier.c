/* SPDX-License-Identifier: Apache-2.0 */
/* tier.c - preempt: a job that cannot start may take the place of jobs of lower tiers.
 *
 * Victims are considered lowest tier first, then lowest priority, then latest start (least work at
 * stake). They are added until the job provably fits, in a transaction; then each that turns out not
 * to be needed is put back, starting with the first. While they stop, the pool is claimed for the
 * job, so that nobody else takes the room.
 *
 * Cost: O(jobs of lower tiers), only when such jobs hold enough GPUs.
 */
#include "policy/registry.h"

#include "core/decide.h"
#include "core/place.h"
#include "core/txn.h"

/* Running jobs of lower tiers into s->sort, in the order in which they are considered. */
static uint32_t candidates(struct stk_state *s, const struct stk_pool *p, const struct stk_job *j)
{
    uint32_t n = 0;

    for (struct stk_ocursor c = stk_otree_begin(&s->trees, &p->ends); c.block != UINT32_MAX;
         stk_ocursor_next(&s->trees, &c)) {
        uint32_t id = stk_ocursor_get(&s->trees, c)->id;

        if (s->jobs[id].tier < j->tier)
            s->sort[n++] = (struct stk_sort_item){-(int64_t)s->jobs[id].lease, id, 0};
    }
    stk_sort(s->sort, n, s->sort_tmp);
    for (uint32_t i = 0; i < n; i++) {
        const struct stk_job *v = &s->jobs[s->sort[i].id];

        s->sort[i].key = (int64_t)v->tier * 4 * STK_MAX_PRIORITY + v->priority;
    }
    stk_sort(s->sort, n, s->sort_tmp);
    return n;
}

static uint32_t room(const void *st, const struct stk_ask *ask, stk_job_id job)
{
    struct stk_state *s = ask->s;
    const struct stk_pool *p = &s->pools[ask->pool];
    const struct stk_job *j = &s->jobs[job.i];
    uint64_t could = p->gpus_free;
    uint32_t n, used = 0, k = 0, pieces;
    stk_txn_mark mark;
    bool fits = false;

    (void)st;
    for (uint32_t t = 0; t < j->tier; t++)
        could += p->tier_gpus_leased[t];
    if (could < j->gpus || could == p->gpus_free)
        return 0;
    n = candidates(s, p, j);
    mark = stk_txn_begin(s);
    while (used < n && !fits) {
        stk_txn_give_job(s, &s->jobs[s->sort[used++].id]);
        fits = stk_place_try(s, j->shape, NULL, &pieces);
    }
    for (uint32_t i = 0; fits && i < used; i++) {
        stk_txn_mark one = stk_txn_begin(s);

        if (stk_txn_take_job(s, &s->jobs[s->sort[i].id]) && stk_place_try(s, j->shape, NULL, &pieces))
            continue; /* it may stay */
        stk_txn_rollback(s, one);
        s->sort[k++] = s->sort[i];
    }
    stk_txn_rollback(s, mark);
    if (!fits)
        return 0;
    if (k > ask->cap)
        k = ask->cap; /* the rest when these are gone */
    for (uint32_t i = 0; i < k; i++)
        ask->out[i] = stk_decide_evict(s, ask->now, s->sort[i].id, job.i);
    return k;
}

const struct stk_preempt_ops stk_preempt_tier = {
    .name = "tier",
    .help = "a job that cannot start takes the place of jobs of lower tiers",
    .room = room,
};
