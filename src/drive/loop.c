/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/loop.h"

#include "core/state.h"

#define MAX_DECISIONS 256 /* per call of decide(); more are asked for again */

struct stk_loop {
    struct stk_loop_config cfg;
    struct stk_mem mem;
    struct stk_event *inbox; /* emitted by the engine, not yet applied */
    uint32_t n_inbox, cap_inbox;
    int failed; /* an emit that could not be kept */
    uint64_t decisions;
    struct stk_event out[MAX_DECISIONS];
};

static void take_event(void *ctx, const struct stk_event *ev)
{
    struct stk_loop *l = ctx;

    if (stk_mem_grow(&l->mem, &l->inbox, &l->cap_inbox, l->n_inbox + 1, sizeof(*l->inbox)) < 0) {
        l->failed = -ENOMEM;
        return;
    }
    l->inbox[l->n_inbox++] = *ev;
}

int stk_loop_new(const struct stk_loop_config *cfg, const struct stk_mem *mem,
                 struct stk_loop **ret_loop, struct stk_err *err)
{
    struct stk_loop *l = mem->resize(mem->ctx, NULL, 0, sizeof(*l));

    if (!l)
        return stk_err_set(err, -ENOMEM, "out of memory");
    l->cfg = *cfg;
    l->mem = *mem;
    cfg->engine->emit = take_event;
    cfg->engine->emit_ctx = l;
    *ret_loop = l;
    return 0;
}

void stk_loop_free(struct stk_loop *l)
{
    struct stk_mem mem;

    if (!l)
        return;
    mem = l->mem;
    stk_mem_drop(&mem, &l->inbox, &l->cap_inbox, sizeof(*l->inbox));
    (void)mem.resize(mem.ctx, l, sizeof(*l), 0);
}

uint64_t stk_loop_decisions(const struct stk_loop *l)
{
    return l->decisions;
}

int stk_loop_apply(struct stk_loop *l, const struct stk_event *ev, struct stk_err *err)
{
    int rc = stk_core_apply(l->cfg.core, ev, err);

    if (rc == 0 && l->cfg.watch->event)
        l->cfg.watch->event(l->cfg.watch_ctx, ev);
    return rc;
}

static int drain(struct stk_loop *l, struct stk_err *err)
{
    for (uint32_t i = 0; i < l->n_inbox; i++) {
        int rc = stk_loop_apply(l, &l->inbox[i], err);

        if (rc < 0)
            return rc;
    }
    l->n_inbox = 0;
    return l->failed ? stk_err_set(err, l->failed, "out of memory for events") : 0;
}

/* Tells the engine of a decision that has been applied. */
static int act(struct stk_loop *l, const struct stk_event *ev, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->cfg.core);
    const struct stk_job *j = &s->jobs[ev->job.i];
    const struct stk_start start = {
        ev->job, ev->lease, j->tag, j->gpus, &s->pieces[j->first_piece], j->n_pieces};
    struct stk_engine *e = l->cfg.engine;

    if (ev->type == STK_EV_PLACE) {
        int rc = e->ops->start(e, ev->at, &start);

        return rc < 0
                   ? stk_err_set(err, rc, "engine %s cannot start job %u", e->ops->name, j->number)
                   : 0;
    }
    e->ops->stop(e, ev->at, ev->job, ev->lease, STK_CAUSE_EVICTED);
    return 0;
}

static int decide(struct stk_loop *l, stk_time now, struct stk_err *err)
{
    uint32_t n;
    int rc = 0;

    while ((n = stk_core_decide(l->cfg.core, now, l->out, MAX_DECISIONS)) > 0) {
        l->decisions += n;
        for (uint32_t i = 0; i < n && rc == 0; i++)
            rc = stk_loop_apply(l, &l->out[i], err);
        for (uint32_t i = 0; i < n && rc == 0; i++)
            rc = act(l, &l->out[i], err);
        rc = rc < 0 ? rc : drain(l, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int stk_loop_turn(struct stk_loop *l, stk_time now, struct stk_err *err)
{
    const struct stk_loop_config *c = &l->cfg;
    int rc;

    c->engine->ops->pump(c->engine, now);
    rc = drain(l, err);
    if (c->engine->ops->peek)
        stk_core_expect(c->core, c->engine->ops->peek(c->engine));
    if (rc == 0 && stk_core_tick_due(c->core, now)) {
        const struct stk_event tick = {.at = now, .type = STK_EV_TICK};

        rc = stk_loop_apply(l, &tick, err);
    }
    if (rc == 0 && c->source->next(c->source_ctx) <= now)
        rc = c->source->feed(c->source_ctx, l, now, err);
    if (rc == 0 && c->watch->before)
        rc = c->watch->before(c->watch_ctx, now, err);
    if (rc == 0)
        rc = decide(l, now, err);
    if (rc == 0 && c->watch->after)
        rc = c->watch->after(c->watch_ctx, now, err);
    return rc;
}

int stk_loop_run_virtual(struct stk_loop *l, struct stk_err *err)
{
    const struct stk_loop_config *c = &l->cfg;
    stk_time now = 0;

    for (;;) {
        stk_time t = c->source->next(c->source_ctx), e = c->engine->ops->next(c->engine);
        stk_time w = stk_core_wake(c->core, now);
        int rc;

        t = e < t ? e : t;
        t = w < t ? w : t;
        if (t == STK_NEVER_TIME)
            return 0;
        now = t > now ? t : now;
        rc = stk_loop_turn(l, now, err);
        if (rc != 0)
            return rc < 0 ? rc : 0;
    }
}
