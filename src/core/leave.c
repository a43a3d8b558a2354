/* SPDX-License-Identifier: Apache-2.0 */
#include "core/leave.h"

#include "core/budget.h"
#include "core/evictable.h"
#include "core/index.h"
#include "core/settings.h"
#include "core/stake.h"

static const struct stk_set move = {.kind = STK_SET_MOVE};

static const struct stk_set *set_for(const struct stk_state *s, uint32_t node)
{
    const struct stk_settings *t = s->settings;

    for (uint32_t i = 0; i < t->n; i++)
        if (t->set[i].kind == STK_SET_POOL && t->set[i].row == node)
            return &t->set[i];
    return NULL;
}

uint32_t stk_leave_target(const struct stk_state *s, uint32_t node)
{
    const struct stk_set *e = set_for(s, node);

    return e ? (uint32_t)e->value : s->settings->nodes[node].pool.i;
}

bool stk_leave_ready(const struct stk_state *s, uint32_t node)
{
    const struct stk_node *n = &s->nodes[node];

    if (n->n_uses > 0 || n->mask_wake)
        return false;
    for (uint32_t i = s->pools[n->pool].n_asleep ? s->pools[n->pool].first_shape : 0; i;
         i = s->shapes[i - 1].pool_next)
        if (s->shapes[i - 1].demand.pin == node + 1 && s->shapes[i - 1].refs > 0)
            return false; /* without GPUs */
    return true;
}

void stk_leave_mark(struct stk_state *s)
{
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        struct stk_node *n = &s->nodes[i];
        const struct stk_set *e = set_for(s, i);

        if (stk_leave_target(s, i) == n->pool)
            continue;
        n->leaving = true;
        n->clearing = e && e->evict;
        s->n_leaving++;
        s->leave_look = true;
        stk_evictable_node_up(s, i, false);
        stk_index_node_up(s, i, false);
    }
}

static bool on_clearing(const struct stk_state *s, const struct stk_job *j)
{
    for (uint32_t i = 0; i < j->n_pieces; i++)
        if (s->nodes[s->pieces[j->first_piece + i].node.i].clearing)
            return true;
    return false;
}

static bool must_go(const struct stk_state *s, const struct stk_job *j)
{
    if (j->state == STK_JOB_PLACED || j->state == STK_JOB_RUNNING)
        return j->tier != STK_TIER_CRITICAL && on_clearing(s, j);
    return (j->state == STK_JOB_WAITING || j->state == STK_JOB_HELD) && j->slept &&
           s->nodes[s->shapes[j->shape].demand.pin - 1].leaving;
}

/* It must, and may: it is neither protected nor needed. One that sleeps is neither. */
static bool may_go(struct stk_state *s, uint32_t job, stk_time now)
{
    const struct stk_job *j = &s->jobs[job];

    if (!must_go(s, j))
        return false;
    if (!j->lease)
        return true;
    if (stk_stake_until(s, j, now) > now) {
        stk_stake_spared(s, j->pool, stk_stake_until(s, j, now));
        return false;
    }
    return stk_budget_take(s, job);
}

static uint32_t evict(struct stk_state *s, stk_time now, struct stk_event *out, uint32_t cap)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_jobs && n < cap; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (may_go(s, i, now))
            out[n++] = (struct stk_event){.at = now,
                                          .type = STK_EV_EVICT,
                                          .job = {i},
                                          .lease = j->lease ? j->lease : j->slept,
                                          .u.evict = {.for_job = {STK_NONE}}};
    }
    for (uint32_t i = 0; i < n; i++)
        if (s->jobs[out[i].job.i].lease)
            stk_budget_give(s, out[i].job.i);
    return n;
}

uint32_t stk_leave_decide(struct stk_state *s, stk_time now, struct stk_event *out, uint32_t cap)
{
    uint32_t n;

    for (uint32_t i = 0; i < s->n_nodes; i++)
        if (s->nodes[i].leaving && stk_leave_ready(s, i)) {
            out[0] = (struct stk_event){.at = now, .type = STK_EV_SET, .u.set = &move};
            return 1;
        }
    n = evict(s, now, out, cap);
    s->leave_look = n > 0;
    return n;
}

bool stk_leave_sound(const struct stk_state *s, struct stk_err *err)
{
    uint32_t leaving = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++) {
        const struct stk_node *n = &s->nodes[i];

        leaving += n->leaving;
        if (n->leaving != (stk_leave_target(s, i) != n->pool) || (n->clearing && !n->leaving) ||
            n->up != (n->said_up && !n->leaving)) {
            (void)stk_err_set(err, -EINVAL, "node %u: it %s its pool, and should not", i,
                              n->leaving ? "leaves" : "stays in");
            return false;
        }
    }
    if (leaving != s->n_leaving) {
        (void)stk_err_set(err, -EINVAL, "%u nodes leave their pools, counted %u", leaving,
                          s->n_leaving);
        return false;
    }
    return true;
}
