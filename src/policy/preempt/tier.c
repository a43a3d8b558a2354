/* SPDX-License-Identifier: Apache-2.0 */
/* tier.c - preempt: a job that cannot start may take the place of jobs of lower levels.
 *
 * A level is a tier and, inside it, a class of priorities: with the bounds 300 and 800 batch (below
 * 300), training, and inference (800 and above). The tier counts first. Critical jobs are never
 * evicted, so their classes make no difference: they share the highest level.
 *
 * Victims are considered lowest tier first, then lowest class, then lowest priority, then latest
 * start (least work at stake). They are added until the job provably fits, in a transaction; then
 * each that turns out not to be needed is put back, starting with the first. While they stop, the
 * pool is claimed for the job, so that nobody else takes the room.
 *
 * Cost: a look at counters when no eviction could help (core/evictable.h), else O(running
 * jobs).
 */
#include "policy/registry.h"

#include "core/decide.h"
#include "core/evictable.h"
#include "core/place.h"
#include "core/queue.h"
#include "core/txn.h"

enum { P_CLASSES };
static const struct stk_param params[] = {
    [P_CLASSES] = {"tier.classes", STK_PARAM_LIST, "300,800", -STK_MAX_PRIORITY, STK_MAX_PRIORITY,
                   NULL,
                   "priorities from which on a job is of the next class (batch, training, "
                   "inference); empty: only tiers count"},
    {0},
};

#define MAX_BOUNDS 2

_Static_assert(STK_TIER_CRITICAL == STK_TIER_MAX - 1, "the highest tier is the one never evicted");
_Static_assert(STK_TIER_CRITICAL *(MAX_BOUNDS + 1) < STK_LEVEL_MAX, "room for all levels");

struct tier {
    int64_t bound[STK_MAX_PARAM_LIST];
    uint32_t n;
};

static int init(void *st, const struct stk_params *p, struct stk_err *err)
{
    struct tier *t = st;

    t->n = stk_params_list(p, &params[P_CLASSES], t->bound);
    if (t->n > MAX_BOUNDS)
        return stk_err_set(err, -EINVAL, "%s takes at most %d priorities, got %u",
                           params[P_CLASSES].name, MAX_BOUNDS, t->n);
    return 0;
}

static uint32_t levels(const void *st)
{
    const struct tier *t = st;

    return STK_TIER_CRITICAL * (t->n + 1) + 1;
}

static uint32_t level(const void *st, const struct stk_job *j)
{
    const struct tier *t = st;
    uint32_t class = 0;

    if (j->tier == STK_TIER_CRITICAL)
        return levels(st) - 1;
    while (class < t->n && j->priority >= t->bound[class])
        class ++;
    return j->tier * (t->n + 1) + class;
}

/* Running jobs of lower levels into s->sort, in the order in which they are considered. */
static uint32_t candidates(struct stk_state *s, const struct stk_pool *p, const struct stk_job *j)
{
    uint32_t n = 0;

    for (struct stk_ocursor c = stk_otree_begin(&s->trees, &p->ends); c.block != UINT32_MAX;
         stk_ocursor_next(&s->trees, &c)) {
        uint32_t id = stk_ocursor_get(&s->trees, c)->id;

        if (s->jobs[id].level < j->level)
            s->sort[n++] = (struct stk_sort_item){-(int64_t)s->jobs[id].lease, id, 0};
    }
    stk_sort(s->sort, n, s->sort_tmp);
    for (uint32_t i = 0; i < n; i++) {
        const struct stk_job *v = &s->jobs[s->sort[i].id];

        s->sort[i].key = (int64_t)v->level * 4 * STK_MAX_PRIORITY + v->priority;
    }
    stk_sort(s->sort, n, s->sort_tmp);
    return n;
}

/* Takes off what is being stopped already: that room is on its way. */
static void give_stopping(struct stk_state *s, uint32_t pool)
{
    for (uint32_t i = 0; (i = stk_queue_stopping(s, pool, i)) != STK_NONE; i++)
        stk_txn_give_job(s, &s->jobs[i]);
}

static uint32_t room(const void *st, const struct stk_ask *ask, stk_job_id job)
{
    struct stk_state *s = ask->s;
    const struct stk_pool *p = &s->pools[ask->pool];
    const struct stk_job *j = &s->jobs[job.i];
    uint64_t below = 0;
    uint32_t n, used = 0, k = 0, pieces;
    stk_txn_mark mark;
    bool fits;

    (void)st;
    for (uint32_t l = 0; l < j->level; l++)
        below += p->level_leased[l];
    if (below == 0 || !stk_evictable_could(s, j))
        return 0;
    mark = stk_txn_begin(s);
    give_stopping(s, ask->pool);
    n = candidates(s, p, j);
    fits = n == 0 || stk_place_try(s, j->shape, NULL, &pieces);
    while (used < n && !fits) {
        stk_txn_give_job(s, &s->jobs[s->sort[used++].id]);
        fits = stk_place_try(s, j->shape, NULL, &pieces);
    }
    for (uint32_t i = 0; fits && i < used; i++) {
        stk_txn_mark one = stk_txn_begin(s);

        if (stk_txn_take_job(s, &s->jobs[s->sort[i].id]) &&
            stk_place_try(s, j->shape, NULL, &pieces))
            continue; /* it may stay */
        stk_txn_rollback(s, one);
        s->sort[k++] = s->sort[i];
    }
    stk_txn_rollback(s, mark);
    if (!fits)
        return 0;
    if (k > ask->cap)
        k = ask->cap; /* the pool is claimed for the job, which asks again for the rest */
    for (uint32_t i = 0; i < k; i++)
        ask->out[i] = stk_decide_evict(s, ask->now, s->sort[i].id, job.i);
    return k;
}

const struct stk_preempt_ops stk_preempt_tier = {
    .name = "tier",
    .help = "a job that cannot start takes the place of jobs of lower tiers, or of lower "
            "classes of priority in its own",
    .params = params,
    .state_size = sizeof(struct tier),
    .init = init,
    .levels = levels,
    .level = level,
    .room = room,
};
