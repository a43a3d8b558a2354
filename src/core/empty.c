/* SPDX-License-Identifier: Apache-2.0 */
#include "core/empty.h"

#include "core/booking.h"
#include "core/budget.h"
#include "core/defrag.h"
#include "core/index.h"
#include "core/place.h"
#include "core/stake.h"
#include "core/txn.h"

const char *stk_stay_name(enum stk_stay why)
{
    static const char *const names[STK_STAY_MAX] = {
        [STK_STAY_UNASKED] = "not_movable", [STK_STAY_CRITICAL] = "critical",
        [STK_STAY_PROTECTED] = "protected", [STK_STAY_NEEDED] = "needed",
        [STK_STAY_RESERVED] = "reserved",   [STK_STAY_KIND] = "kind",
        [STK_STAY_ROOM] = "no_room",
    };

    return (unsigned)why < STK_STAY_MAX ? names[why] : "?";
}

struct stk_whole stk_empty_whole(const struct stk_state *s, uint32_t pool)
{
    const struct stk_pool *p = &s->pools[pool];
    struct stk_whole w = {0, 0};

    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const struct stk_node *n = &s->nodes[s->pool_nodes[p->first_node + i]];

        if (!n->up)
            continue;
        w.free += n->gpus_free;
        w.whole += n->n_uses == 0 ? n->gpus_free : 0;
    }
    return w;
}

/* ---- who is there ---- */

static bool is_there(const struct stk_state *s, const struct stk_job *j, uint32_t node)
{
    for (uint32_t i = 0; i < j->n_pieces; i++)
        if (s->pieces[j->first_piece + i].node.i == node)
            return true;
    return false;
}

/* Whether it may be moved at all; STK_STAY_MAX: it may. */
static enum stk_stay stays(struct stk_state *s, uint32_t job, stk_time now)
{
    const struct stk_job *j = &s->jobs[job];

    if ((j->state != STK_JOB_RUNNING && j->state != STK_JOB_PLACED) || j->gpus == 0 ||
        s->shapes[j->shape].demand.mig || s->shapes[j->shape].demand.pin)
        return STK_STAY_KIND;
    if (j->tier == STK_TIER_CRITICAL)
        return STK_STAY_CRITICAL;
    if (!s->defrag_all && !s->terms[job].movable)
        return STK_STAY_UNASKED;
    if (stk_booking_owns(s, job))
        return STK_STAY_RESERVED;
    return stk_stake_until(s, j, now) > now ? STK_STAY_PROTECTED : STK_STAY_MAX;
}

/* Jobs on the node, the largest first; false: too many. */
static bool gather(struct stk_state *s, struct stk_empty_plan *p)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (!j->lease || !is_there(s, j, p->node))
            continue;
        if (n == STK_MAX_MOVING)
            return false;
        s->sort[n++] = (struct stk_sort_item){-(int64_t)j->gpus, i, 0};
    }
    stk_sort(s->sort, n, s->sort_tmp);
    for (uint32_t i = 0; i < n; i++)
        p->move[i] = s->sort[i].id;
    p->n = n;
    return true;
}

/* ---- what if they went ---- */

/* All of an empty node. Taken, nobody comes there any more. */
static struct stk_use all_of(const struct stk_node *n)
{
    return (struct stk_use){.gpus = n->gpus_free, .mask = n->mask_free, .whole = true};
}

/* All of them may go together: those that may are taken from budgets. */
static bool may_all(struct stk_state *s, struct stk_empty_plan *p, stk_time now)
{
    bool all = true;

    for (uint32_t i = 0; i < p->n; i++) {
        p->units[i] = stk_stake_units(s, &s->jobs[p->move[i]], now);
        p->cost += p->units[i];
        p->to[i] = STK_NONE;
        p->stay[i] = (uint8_t)stays(s, p->move[i], now);
        if (p->stay[i] == STK_STAY_MAX && !stk_budget_take(s, p->move[i]))
            p->stay[i] = STK_STAY_NEEDED;
        all &= p->stay[i] == STK_STAY_MAX;
    }
    for (uint32_t i = 0; i < p->n; i++)
        if (p->stay[i] == STK_STAY_MAX)
            stk_budget_give(s, p->move[i]);
    return all;
}

/* Jobs that wait, the first of each shape, and that find room where it was made. */
static void who_starts(struct stk_state *s, uint32_t pool, struct stk_empty_plan *p)
{
    for (uint32_t i = s->pools[pool].first_shape; i && p->n_starts < 8;
         i = s->shapes[i - 1].pool_next) {
        const struct stk_oent *e;

        if (s->shapes[i - 1].waiting.count == 0 || s->shapes[i - 1].demand.pin)
            continue;
        e = stk_otree_first(&s->trees, &s->shapes[i - 1].waiting, INT64_MAX);
        if (e && stk_defrag_put(s, e->id, NULL))
            p->starts[p->n_starts++] = e->id;
    }
}

/* They are taken off, and put elsewhere. */
static bool put_all(struct stk_state *s, struct stk_empty_plan *p, struct stk_use *ret_all)
{
    bool all = true;

    for (uint32_t i = 0; i < p->n; i++)
        stk_txn_give_job(s, &s->jobs[p->move[i]]);
    *ret_all = all_of(&s->nodes[p->node]);
    stk_txn_take(s, p->node, ret_all);
    for (uint32_t i = 0; i < p->n; i++)
        if (!stk_defrag_put(s, p->move[i], &p->to[i])) {
            p->stay[i] = STK_STAY_ROOM;
            all = false;
        }
    return all;
}

static void try_it(struct stk_state *s, struct stk_empty_plan *p, stk_time now)
{
    const stk_txn_mark mark = stk_txn_begin(s);
    const uint32_t pool = s->nodes[p->node].pool;
    struct stk_use all;

    if (!may_all(s, p, now))
        return;
    s->plans_moves = true;
    p->possible = put_all(s, p, &all);
    if (p->possible) { /* what it would be good for, if it were open */
        stk_txn_give(s, p->node, &all);
        p->after = stk_empty_whole(s, pool);
        who_starts(s, pool, p);
    }
    s->plans_moves = false;
    stk_txn_rollback(s, mark);
}

bool stk_empty_plan(struct stk_state *s, stk_time now, uint32_t node, struct stk_empty_plan *ret)
{
    *ret = (struct stk_empty_plan){.node = node};
    if (node >= s->n_nodes || s->nodes[node].n_uses == 0 || s->nodes[node].aggregate)
        return false;
    ret->before = ret->after = stk_empty_whole(s, s->nodes[node].pool);
    ret->too_many = !gather(s, ret);
    if (!ret->too_many && s->n_moving == 0 && !s->preempt->pass)
        try_it(s, ret, now);
    return true;
}

/* ---- which node ---- */

/* One for each piece of every job: its node, what the job loses, and whether it stays. */
static uint32_t list_pieces(struct stk_state *s, stk_time now)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];
        const bool bad = j->lease && (stays(s, i, now) != STK_STAY_MAX);

        for (uint32_t k = 0; j->lease && k < j->n_pieces && n < s->cap_sort_tmp; k++)
            s->sort[n++] = (struct stk_sort_item){s->pieces[j->first_piece + k].node.i, i, bad};
    }
    return n;
}

/* Nodes that nobody keeps, by what a GPU of them costs, into s->sort. */
static uint32_t price_nodes(struct stk_state *s, stk_time now)
{
    uint32_t n = list_pieces(s, now), rows = 0;

    stk_sort(s->sort, n, s->sort_tmp);
    for (uint32_t i = 0, k; i < n; i = k) {
        const uint32_t node = (uint32_t)s->sort[i].key;
        int64_t cost = 0;
        const uint32_t gpus = s->nodes[node].gpus;
        bool bad = !s->nodes[node].up || s->nodes[node].mask_off;

        for (k = i; k < n && s->sort[k].key == s->sort[i].key; k++) {
            cost += stk_stake_units(s, &s->jobs[s->sort[k].id], now);
            bad |= s->sort[k].data;
        }
        if (!bad && gpus > 0)
            s->sort[rows++] = (struct stk_sort_item){cost / gpus, node, 0};
    }
    stk_sort(s->sort, rows, s->sort_tmp);
    return rows;
}

bool stk_empty_best(struct stk_state *s, stk_time now, struct stk_empty_plan *ret)
{
    uint32_t node[STK_EMPTY_TRIES], n = price_nodes(s, now);

    n = n < STK_EMPTY_TRIES ? n : STK_EMPTY_TRIES;
    for (uint32_t i = 0; i < n; i++)
        node[i] = s->sort[i].id;
    for (uint32_t i = 0; i < n; i++)
        if (stk_empty_plan(s, now, node[i], ret) && ret->possible)
            return true;
    return false;
}
