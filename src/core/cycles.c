/* SPDX-License-Identifier: Apache-2.0 */
#include "core/cycles.h"

/* Whether it comes from outside: what follows need not go on from what was. */
static bool outside(const struct stk_event *ev)
{
    if (ev->type == STK_EV_EXITED)
        return ev->u.exit.cause != STK_CAUSE_EVICTED;
    if (ev->type == STK_EV_EVICT)
        return ev->u.evict.by_hand;
    return ev->type != STK_EV_PLACE && ev->type != STK_EV_STARTED && ev->type != STK_EV_SUSPENDED &&
           ev->type != STK_EV_CHECKPOINT && ev->type != STK_EV_SWAPPED;
}

/* Whether 'from' was given way to, through others perhaps, by 'to'. Every edge is followed once. */
static bool leads_to(const struct stk_cycles *c, stk_job_number from, stk_job_number to)
{
    stk_job_number reached[STK_CYCLE_EDGES + 1] = {from};
    bool used[STK_CYCLE_EDGES] = {false};
    uint32_t n = 1;

    for (uint32_t i = 0; i < n; i++) {
        if (reached[i] == to)
            return true;
        for (uint32_t k = 0; k < c->n; k++) {
            if (used[k] || c->edge[k].to != reached[i])
                continue;
            used[k] = true;
            reached[n++] = c->edge[k].who;
        }
    }
    return false;
}

static bool twice(const struct stk_cycles *c, stk_job_number who)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->edge[i].to == 0 && c->edge[i].who == who)
            return true;
    return false;
}

bool stk_cycles_see(struct stk_cycles *c, const struct stk_state *s, const struct stk_event *ev)
{
    stk_job_number who, to = 0;
    bool circle;

    if (outside(ev) || (c->n > 0 && c->edge[0].to == 0 && c->at != ev->at) ||
        c->n == STK_CYCLE_EDGES)
        c->n = 0;
    c->at = ev->at;
    if (ev->type != STK_EV_EVICT || ev->u.evict.by_hand || ev->u.evict.moved)
        return false;
    who = s->jobs[ev->job.i].number;
    if (ev->u.evict.for_job.i != STK_NONE)
        to = s->jobs[ev->u.evict.for_job.i].number;
    circle = to ? leads_to(c, who, to) : twice(c, who);
    c->edge[c->n].to = to;
    c->edge[c->n++].who = who;
    if (circle) {
        c->found++;
        c->last[0] = who;
        c->last[1] = to;
    }
    return circle;
}
