/* SPDX-License-Identifier: Apache-2.0 */
#include "core/beside.h"

#include "core/place.h"
#include "core/queue.h"
#include "core/txn.h"

/* Gives back what is being stopped and what ends up to 'until', tentatively; with 'job', only until
 * that fits. The time of the last end; STK_NEVER_TIME: the job does not fit after all of them. */
static stk_time pretend(struct stk_state *s, uint32_t pool, stk_time until, uint32_t job)
{
    stk_time t = 0;
    uint32_t n;

    for (uint32_t i = 0; (i = stk_queue_stopping(s, pool, i)) != STK_NONE; i++)
        stk_txn_give_job(s, &s->jobs[i]);
    for (struct stk_ocursor c = stk_otree_begin(&s->trees, &s->pools[pool].ends);
         c.block != UINT32_MAX; stk_ocursor_next(&s->trees, &c)) {
        const struct stk_oent *e = stk_ocursor_get(&s->trees, c);

        if (e->key > until)
            break;
        /* all that end at one time count */
        if (job != STK_NONE && e->key > t && stk_place_try(s, s->jobs[job].shape, NULL, &n))
            return t;
        stk_txn_give_job(s, &s->jobs[e->id]);
        t = e->key;
    }
    if (job != STK_NONE && !stk_place_try(s, s->jobs[job].shape, NULL, &n))
        return STK_NEVER_TIME;
    return t;
}

stk_time stk_beside_when(struct stk_state *s, uint32_t job, stk_time now)
{
    stk_txn_mark mark = stk_txn_begin(s);
    stk_time t = pretend(s, s->jobs[job].pool, STK_NEVER_TIME, job);

    stk_txn_rollback(s, mark);
    return t > now ? t : now + 1; /* one that outran its estimate may end at any time */
}

bool stk_beside_try(struct stk_state *s, uint32_t shape, uint32_t *ret_n)
{
    const struct stk_pool *p = &s->pools[s->shapes[shape].pool];
    stk_txn_mark mark = stk_txn_begin(s);
    uint32_t n;
    bool kept;

    if (!stk_place_try(s, shape, NULL, ret_n))
        return false;
    for (uint32_t i = 0; i < *ret_n; i++) {
        const struct stk_use u = stk_use_of(&s->shapes[shape].demand, &s->try_pieces[i]);

        stk_txn_take(s, s->try_pieces[i].node.i, &u);
    }
    (void)pretend(s, s->shapes[shape].pool, p->resv_at, STK_NONE);
    kept = stk_place_try(s, s->jobs[p->resv_job].shape, NULL, &n);
    stk_txn_rollback(s, mark);
    return kept && stk_place_try(s, shape, NULL, ret_n); /* its pieces again */
}
