/* SPDX-License-Identifier: Apache-2.0 */
/* spare.c - room beside a reservation (core/backfill.h): on nodes that are not reserved, or in what
 * a reserved node has over. */
#include "core/backfill.h"

#include "core/beside.h"
#include "core/fence.h"
#include "core/gang.h"
#include "core/index.h"
#include "core/limit.h"
#include "core/part.h"
#include "core/place.h"
#include "core/power.h"
#include "core/sets.h"
#include "core/txn.h"
#include "model/mig.h"

/* Room on a reserved node beside its reservation, and beside the GPUs that a pinned one needs. */
static bool spare_on(struct stk_state *s, const struct stk_shape *sh, uint32_t node, uint64_t keep)
{
    const struct stk_demand *d = &sh->demand;
    const struct stk_node *n = &s->nodes[node];
    struct stk_piece piece = {.node = {node}, .gpus = d->gpus, .tasks = 1};
    struct stk_use u;

    if (d->pin ? d->pin - 1 != node : !stk_sets_allow(s, d, node))
        return false;
    if (d->pin)
        piece = stk_place_pin(d);
    else if (!n->aggregate)
        piece.mask = stk_layout_choose(stk_topo_layout(s, node), n->mask_free & ~keep,
                                       stk_node_shy(n), d->gpus);
    if (d->mig && !d->pin && n->mig && piece.mask)
        piece.slot = stk_part_slot(s, node, (uint32_t)__builtin_ctzll(piece.mask), d->mig);
    if (piece.slot == STK_MIG_ANY)
        return false; /* that GPU has no such instance */
    u = stk_use_of(d, &piece);
    if (n->extra < (int64_t)piece.gpus || (piece.mask & keep) || !stk_index_fits(s, node, &u) ||
        !((d->gpu_types >> n->gpu_type) & 1))
        return false;
    if (stk_shape_limited(sh) &&
        !(stk_limit_open(s, (uint32_t)(sh - s->shapes)) >> n->gpu_type & 1))
        return false;
    if (!n->aggregate && (uint32_t)__builtin_popcountll(piece.mask) != piece.gpus)
        return false;
    if (stk_demand_pairs(d) && (piece.mask & ~n->mask_free))
        return false;
    s->try_pieces[0] = piece;
    return stk_power_fits(s, &piece, 1);
}

static bool spare(struct stk_state *s, uint32_t shape, uint32_t *ret_n)
{
    const struct stk_shape *sh = &s->shapes[shape];
    const struct stk_pool *p = &s->pools[sh->pool];

    if (p->resv_tight)
        return false;
    if (stk_shape_limited(sh) && !stk_limit_beside(s, shape, p->resv_job))
        return false;
    if (p->resv_beside)
        return stk_beside_try(s, shape, ret_n);
    if (stk_place_try(s, shape, s->avoid, ret_n))
        return true;
    if ((sh->demand.tasks > 1 || stk_demand_near(&sh->demand)) && !sh->demand.pin)
        return false;
    for (uint32_t i = 0; i < p->n_resv; i++)
        if (spare_on(s, sh, s->resv_nodes[p->first_node + i], p->resv_mask)) {
            *ret_n = 1;
            return true;
        }
    return false;
}

bool stk_reserve_spare(struct stk_state *s, uint32_t shape, uint32_t *ret_n)
{
    stk_txn_mark mark = stk_txn_begin(s);
    bool ok;

    if (s->pools[s->shapes[shape].pool].n_booked == 0)
        return spare(s, shape, ret_n);
    stk_fence_raise(s, shape);
    s->book.raised = true;
    ok = spare(s, shape, ret_n);
    s->book.raised = false;
    stk_txn_rollback(s, mark);
    return ok;
}
