/* SPDX-License-Identifier: Apache-2.0 */
/* fork.c - the end of a core, and a second one that goes on from where it is.
 *
 * State is flat arrays with indices in place of pointers, so a fork is a copy of each: no event is
 * replayed and nothing is built anew, and caches and promises come along. Cost: the
 * bytes in use; room that was made ready for more is made ready in the copy, and not touched. */
#include <string.h>

#include "core/account.h"
#include "core/blocks.h"
#include "core/booking.h"
#include "core/budget.h"
#include "core/core.h"
#include "core/evictable.h"
#include "core/fair.h"
#include "core/index.h"
#include "core/lane.h"
#include "core/pair.h"
#include "core/score.h"
#include "core/sets.h"
#include "core/settings.h"
#include "core/tenant.h"
#include "core/usage.h"
#include "core/verbs.h"
#include "core/victims.h"

void stk_block_used(struct stk_visit *v, void *at, size_t size, size_t used)
{
    void *p, *copy = NULL;

    memcpy(&p, at, sizeof(p));
    if (!p)
        return;
    if (!v->copies) {
        (void)v->mem->resize(v->mem->ctx, p, size, 0);
    } else if (!v->failed) {
        copy = v->mem->resize(v->mem->ctx, NULL, 0, size);
        v->failed = !copy;
        if (copy)
            memcpy(copy, p, used);
    }
    memcpy(at, &copy, sizeof(copy));
}

void stk_block(struct stk_visit *v, void *at, size_t size)
{
    stk_block_used(v, at, size, size);
}

static void in_pools(struct stk_state *s, struct stk_visit *v)
{
    for (uint32_t p = 0; s->pools && p < s->n_pools; p++) {
        struct stk_pool *pool = &s->pools[p];

        STK_BLOCK(v, pool->ready.item, pool->ready.cap);
        for (uint32_t k = 0; k < 2; k++)
            STK_BLOCK(v, pool->entitled[k].item, pool->entitled[k].cap);
        STK_BLOCK(v, pool->due.item, pool->due.cap);
        STK_BLOCK(v, pool->plan.nodes, pool->plan.cap);
        STK_BLOCK(v, pool->rated, pool->cap_rated);
        STK_BLOCK(v, pool->walk, pool->cap_walk);
    }
}

/* Rows of jobs and what else grows with them. */
static void of_jobs(struct stk_state *s, struct stk_visit *v)
{
    STK_BLOCK_USED(v, s->jobs, s->cap_jobs, s->n_jobs);
    STK_BLOCK_USED(v, s->terms, s->cap_terms, s->n_jobs);
    STK_BLOCK_USED(v, s->stakes, s->cap_stakes, s->n_jobs);
    STK_BLOCK(v, s->arrays, s->cap_arrays);
    STK_BLOCK(v, s->by_array.slot, s->by_array.cap);
    STK_BLOCK_USED(v, s->edges, s->cap_edges, s->n_edges);
    STK_BLOCK(v, s->pieces, s->cap_pieces);
    STK_BLOCK_USED(v, s->shapes, s->cap_shapes, s->n_shapes);
    STK_BLOCK(v, s->shape_pos, s->cap_shape_pos);
    STK_BLOCK(v, s->timer_pos, s->cap_timer_pos);
    STK_BLOCK(v, s->due_pos, s->cap_due_pos);
    STK_BLOCK(v, s->undo, s->cap_undo);
    STK_BLOCK(v, s->try_pieces, s->cap_try);
    STK_BLOCK(v, s->batch, s->cap_batch);
    STK_BLOCK(v, s->sort, s->cap_sort);
    STK_BLOCK(v, s->sort_tmp, s->cap_sort_tmp);
    STK_BLOCK(v, s->list_a, s->cap_list_a);
    STK_BLOCK(v, s->list_b, s->cap_list_b);
    STK_BLOCK(v, s->by_number.slot, s->by_number.cap);
    STK_BLOCK(v, s->shape_by_hash.slot, s->shape_by_hash.cap);
    STK_BLOCK(v, s->timers.item, s->timers.cap);
    STK_BLOCK(v, s->outruns.item, s->outruns.cap);
    STK_BLOCK_USED(v, s->trees.block, s->trees.cap, s->trees.n);
}

static void all_blocks(struct stk_state *s, struct stk_visit *v)
{
    if (v->copies)
        STK_BLOCK(v, s->pools, s->n_pools);
    in_pools(s, v);
    if (!v->copies)
        STK_BLOCK(v, s->pools, s->n_pools);
    of_jobs(s, v);
    stk_evictable_memory(s, v);
    stk_victims_memory(s, v);
    stk_budget_memory(s, v);
    stk_score_memory(s, v);
    stk_seen_memory(s, v);
    stk_pair_memory(s, v);
    stk_usage_memory(s, v);
    stk_lane_memory(s, v);
    stk_tenants_memory(s, v);
    stk_fair_memory(s, v);
    stk_accounts_memory(s, v);
    stk_booking_memory(s, v);
    stk_index_memory(s, v);
    stk_sets_memory(s, v);
    stk_settings_memory(s, v);
    STK_BLOCK(v, s->mix, 1);
    STK_BLOCK(v, s->tags, (s->n_nodes + (size_t)1) * STK_TAGS);
    stk_block(v, &s->order_st, s->order->state_size);
    stk_block(v, &s->preempt_st, s->preempt->state_size);
    stk_block(v, &s->place_st, s->place->state_size);
}

void stk_core_free(struct stk_core *c)
{
    struct stk_mem mem;
    struct stk_visit drop = {.mem = &mem};

    if (!c)
        return;
    mem = c->s.mem;
    all_blocks(&c->s, &drop);
    (void)mem.resize(mem.ctx, c, sizeof(*c), 0);
}

int stk_core_fork(const struct stk_core *core, struct stk_core **ret, struct stk_err *err)
{
    const struct stk_mem *mem = &core->s.mem;
    struct stk_visit copy = {.mem = mem, .copies = true};
    struct stk_core *c = mem->resize(mem->ctx, NULL, 0, sizeof(*c));

    if (!c)
        return stk_err_set(err, -ENOMEM, "out of memory");
    *c = *core;
    all_blocks(&c->s, &copy);
    if (copy.failed) {
        stk_core_free(c);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    *ret = c;
    return 0;
}
