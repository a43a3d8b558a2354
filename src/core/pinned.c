/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pinned.h"

#include "core/index.h"
#include "core/place.h"
#include "core/queue.h"

/* The lease is over: true when the pinned job's GPUs are then free. */
static bool cleared(const struct stk_state *s, const struct stk_job *j, struct stk_pinned *q)
{
    for (uint32_t i = 0; i < j->n_pieces; i++) {
        const struct stk_piece *p = &s->pieces[j->first_piece + i];
        uint64_t mask = stk_index_blocks(s, j, p);
        uint32_t n;

        if (p->node.i != q->node)
            continue;
        n = mask ? (uint32_t)__builtin_popcountll(mask & q->busy) : p->gpus;
        q->back += p->gpus;
        q->busy &= ~mask;
        q->lacks -= n < q->lacks ? n : q->lacks;
    }
    return q->lacks == 0;
}

stk_time stk_pinned_when(const struct stk_state *s, const struct stk_job *j, stk_time now,
                         struct stk_pinned *ret)
{
    const struct stk_piece at = stk_place_pin(&s->shapes[j->shape].demand);
    const struct stk_node *n = &s->nodes[at.node.i];
    stk_time t = now + 1;
    bool clear = false;

    *ret = (struct stk_pinned){at.node.i, at.mask & ~n->mask_free, 0, 0};
    if (s->shapes[j->shape].demand.exclusive)
        ret->busy = n->mask_used; /* it needs all of the node */
    if (!n->up || (at.mask & n->mask_off))
        return STK_NEVER_TIME;
    if (at.mask)
        ret->lacks = (uint32_t)__builtin_popcountll(ret->busy);
    else if (at.gpus > n->gpus_free)
        ret->lacks = at.gpus - n->gpus_free;
    if (ret->lacks == 0)
        return now;
    for (uint32_t i = 0; (i = stk_queue_stopping(s, j->pool, i)) != STK_NONE; i++)
        clear = cleared(s, &s->jobs[i], ret);
    for (struct stk_ocursor c = stk_otree_begin(&s->trees, &s->pools[j->pool].ends);
         c.block != UINT32_MAX; stk_ocursor_next(&s->trees, &c)) {
        const struct stk_oent *e = stk_ocursor_get(&s->trees, c);

        if (clear && e->key > t)
            break;
        t = e->key > t ? e->key : t; /* all that end at that time count */
        clear = cleared(s, &s->jobs[e->id], ret);
    }
    return clear ? t : STK_NEVER_TIME;
}
