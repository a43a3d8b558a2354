/* SPDX-License-Identifier: Apache-2.0 */
#include "core/leave.h"

#include "core/evictable.h"
#include "core/index.h"
#include "core/settings.h"

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

static uint32_t evict(const struct stk_state *s, stk_time now, struct stk_event *out, uint32_t cap)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_jobs && n < cap; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (must_go(s, j))
            out[n++] = (struct stk_event){.at = now,
                                          .type = STK_EV_EVICT,
                                          .job = {i},
                                          .lease = j->lease ? j->lease : j->slept,
                                          .u.evict = {.for_job = {STK_NONE}}};
    }
    return n;
}

uint32_t stk_leave_decide(struct stk_state *s, stk_time now, struct stk_event *out, uint32_t cap)
{
    uint32_t n;

    for (uint32_t i = 0; i < s->n_nodes; i++)
        if (s->nodes[i].leaving && stk_leave_ready(&s->nodes[i])) {
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
