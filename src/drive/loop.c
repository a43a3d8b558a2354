/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/loop.h"

#include "core/speed.h"

#define MAX_DECISIONS 256 /* per call of decide(); more are asked for again */

struct act { /* what the engine has to hear of, once it is durable */
    enum stk_event_type type;
    stk_job_id job;
    stk_job_number number;
    stk_lease_id lease;
    bool suspend, kill;
};

struct stk_loop {
    struct stk_loop_config cfg;
    struct stk_mem mem;
    struct stk_event *inbox; /* emitted by the engine, not yet applied */
    uint32_t n_inbox, cap_inbox;
    struct act *acts;
    uint32_t n_acts, cap_acts;
    bool dirty; /* events were applied since the last commit */
    bool half;  /* the source has not fed all of this turn */
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
    stk_mem_drop(&mem, &l->acts, &l->cap_acts, sizeof(*l->acts));
    (void)mem.resize(mem.ctx, l, sizeof(*l), 0);
}

uint64_t stk_loop_decisions(const struct stk_loop *l)
{
    return l->decisions;
}

bool stk_loop_pending(const struct stk_loop *l)
{
    return l->n_inbox > 0;
}

/* The lease a job's processes belong to. */
static stk_lease_id lease_of(const struct stk_job *j)
{
    return j->lease ? j->lease : j->slept;
}

/* Remembers what the engine must be told. Room for it was made before the event was applied. */
static void note_act(struct stk_loop *l, const struct stk_event *ev)
{
    const struct stk_state *s = stk_core_state(l->cfg.core);
    const struct stk_job *j;
    struct act a = {.type = ev->type, .job = ev->job, .lease = ev->lease};

    if (ev->type == STK_EV_EXITED) { /* the slot may be somebody else's by now */
        if (l->cfg.engine->ops->settle)
            l->acts[l->n_acts++] = a;
        return;
    }
    if (ev->type == STK_EV_UPDATE
            ? !l->cfg.engine->ops->update || ev->u.update.expected
            : ev->type != STK_EV_PLACE && ev->type != STK_EV_EVICT && ev->type != STK_EV_CANCEL)
        return;
    j = &s->jobs[ev->job.i];
    if (ev->type == STK_EV_UPDATE) {
        a.number = j->number;
        l->acts[l->n_acts++] = a;
        return;
    }
    if (ev->type != STK_EV_PLACE && j->state != STK_JOB_STOPPING)
        return; /* nothing runs */
    a.number = j->number;
    a.lease = lease_of(j);
    a.suspend = ev->type == STK_EV_EVICT && j->suspend_wanted;
    a.kill = ev->type == STK_EV_EVICT && ev->u.evict.kill;
    l->acts[l->n_acts++] = a;
}

int stk_loop_apply(struct stk_loop *l, const struct stk_event *ev, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->cfg.core);
    stk_job_number number = 0;
    int rc;

    if (stk_mem_grow(&l->mem, &l->acts, &l->cap_acts, l->n_acts + 1, sizeof(*l->acts)) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    if (ev->type == STK_EV_EXITED && ev->job.i < s->n_jobs)
        number = s->jobs[ev->job.i].number;
    rc = stk_core_apply(l->cfg.core, ev, err);
    if (rc < 0)
        return rc;
    l->dirty = true;
    note_act(l, ev);
    if (ev->type == STK_EV_EXITED && l->cfg.engine->ops->settle)
        l->acts[l->n_acts - 1].number = number;
    if (l->cfg.watch->event)
        l->cfg.watch->event(l->cfg.watch_ctx, ev);
    return 0;
}

/* What the engine reported happens now: time does not go back within a turn. */
static int drain(struct stk_loop *l, stk_time now, struct stk_err *err)
{
    for (uint32_t i = 0; i < l->n_inbox; i++) {
        int rc;

        l->inbox[i].at = now;
        if (l->cfg.watch->report && !l->cfg.watch->report(l->cfg.watch_ctx, &l->inbox[i]))
            continue;
        rc = stk_loop_apply(l, &l->inbox[i], err);

        if (rc < 0 && !(rc == -ESTALE && l->cfg.watch->commit))
            return rc; /* live, late news about an older lease is no reason to stop */
        if (rc < 0 && l->inbox[i].type == STK_EV_SWAPPED && l->cfg.engine->ops->refused)
            l->cfg.engine->ops->refused(l->cfg.engine, &l->inbox[i]);
    }
    l->n_inbox = 0;
    return l->failed ? stk_err_set(err, l->failed, "out of memory for events") : 0;
}

static struct stk_start start_of(const struct stk_loop *l, uint32_t job)
{
    const struct stk_state *s = stk_core_state(l->cfg.core);
    const struct stk_job *j = &s->jobs[job];
    const struct stk_demand *d = &s->shapes[j->shape].demand;
    const struct stk_watch_ops *w = l->cfg.watch;

    return (struct stk_start){.job = {job},
                              .number = j->number,
                              .lease = lease_of(j),
                              .tag = j->tag,
                              .gpus = j->gpus,
                              .pieces = j->n_pieces ? &s->pieces[j->first_piece] : NULL,
                              .n_pieces = j->n_pieces,
                              .share = d->share,
                              .gpu_milli = d->gpu_milli,
                              .mig = d->mig,
                              .gpu_mem_mib = d->gpu_mem_mib,
                              .resume = j->slept != 0,
                              .speed = j->n_pieces ? stk_job_speed(s, j) : STK_SPEED,
                              .restarts = j->restarts,
                              .spec = w->spec && lease_of(j) ? w->spec(l->cfg.watch_ctx, j->number)
                                                             : NULL};
}

/* A description has changed; the slot may be somebody else's by now. */
static void act_update(struct stk_loop *l, stk_time now, const struct act *a)
{
    const struct stk_job *j = &stk_core_state(l->cfg.core)->jobs[a->job.i];
    struct stk_start start;

    if (j->number != a->number || j->state == STK_JOB_NONE || j->state == STK_JOB_DONE)
        return;
    start = start_of(l, a->job.i);
    l->cfg.engine->ops->update(l->cfg.engine, now, &start);
}

/* Tells the engine of something that has been applied and is durable. */
static int act(struct stk_loop *l, stk_time now, const struct act *a, struct stk_err *err)
{
    struct stk_engine *e = l->cfg.engine;
    struct stk_stop stop = {a->job, a->lease, STK_CAUSE_EVICTED, a->suspend, a->kill};

    if (a->type == STK_EV_PLACE) {
        const struct stk_start start = start_of(l, a->job.i);
        int rc = e->ops->start(e, now, &start);

        return rc < 0 ? stk_err_set(err, rc, "engine %s cannot start job %u", e->ops->name,
                                    start.number)
                      : 0;
    }
    if (a->type == STK_EV_EXITED) {
        e->ops->settle(e, a->number, a->lease);
        return 0;
    }
    if (a->type == STK_EV_UPDATE) {
        act_update(l, now, a);
        return 0;
    }
    if (a->type == STK_EV_CANCEL)
        stop.cause = STK_CAUSE_CANCELLED;
    e->ops->stop(e, now, &stop);
    return 0;
}

/* Makes what was applied durable, then lets the engine act on it. */
static int flush(struct stk_loop *l, stk_time now, struct stk_err *err)
{
    int rc = 0;

    if (l->dirty && l->cfg.watch->commit)
        rc = l->cfg.watch->commit(l->cfg.watch_ctx, err);
    if (rc == 0)
        l->dirty = false;
    for (uint32_t i = 0; i < l->n_acts && rc == 0; i++)
        rc = act(l, now, &l->acts[i], err);
    l->n_acts = 0;
    return rc;
}

/* Where decisions are made durable, as many as there are share a commit. */
static int decide(struct stk_loop *l, stk_time now, struct stk_err *err)
{
    uint32_t n, since = 0;
    int rc = 0;

    while ((n = stk_core_decide(l->cfg.core, now, l->out, MAX_DECISIONS)) > 0) {
        l->decisions += n;
        since += n;
        for (uint32_t i = 0; i < n && rc == 0; i++)
            rc = stk_loop_apply(l, &l->out[i], err);
        if (rc == 0 && l->cfg.watch->commit && since < MAX_DECISIONS)
            continue;
        since = 0;
        rc = rc < 0 ? rc : flush(l, now, err);
        rc = rc < 0 ? rc : drain(l, now, err);
        if (rc < 0)
            return rc;
    }
    return rc;
}

int stk_loop_adopt(struct stk_loop *l, stk_time now, struct stk_err *err)
{
    const struct stk_state *s = stk_core_state(l->cfg.core);
    struct stk_engine *e = l->cfg.engine;
    struct stk_adopt *list = NULL;
    uint32_t n = 0, cap = 0;
    int rc = 0;

    for (uint32_t i = 0; i < s->n_jobs && rc == 0 && e->ops->adopt; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (!j->lease && !j->slept)
            continue;
        rc = stk_mem_grow(&l->mem, &list, &cap, n + 1, sizeof(*list));
        if (rc < 0)
            break;
        list[n++] =
            (struct stk_adopt){.start = start_of(l, i),
                               .state = (enum stk_job_state)j->state,
                               .asleep = j->slept != 0 && j->lease == 0,
                               .stop = {{i},
                                        lease_of(j),
                                        j->cancel_wanted ? STK_CAUSE_CANCELLED : STK_CAUSE_EVICTED,
                                        j->suspend_wanted,
                                        s->stakes[i].kill}};
    }
    rc = rc < 0 ? stk_err_set(err, rc, "out of memory")
                : (e->ops->adopt ? e->ops->adopt(e, now, list, n, err) : 0);
    stk_mem_drop(&l->mem, &list, &cap, sizeof(*list));
    return rc;
}

/* What has happened since the last turn. */
static int take_news(struct stk_loop *l, stk_time now, struct stk_err *err)
{
    const struct stk_loop_config *c = &l->cfg;
    int rc;

    c->engine->ops->pump(c->engine, now);
    rc = drain(l, now, err);
    if (c->engine->ops->peek)
        stk_core_expect(c->core, c->engine->ops->peek(c->engine));
    if (rc == 0 && stk_core_tick_due(c->core, now)) {
        const struct stk_event tick = {.at = now, .type = STK_EV_TICK};

        rc = stk_loop_apply(l, &tick, err);
    }
    return rc;
}

int stk_loop_turn(struct stk_loop *l, stk_time now, struct stk_err *err)
{
    const struct stk_loop_config *c = &l->cfg;
    /* once a turn: what the engine has not been told yet it would say again */
    int rc = l->half ? 0 : take_news(l, now, err);

    if (rc == 0 && c->source->next(c->source_ctx) <= now)
        rc = c->source->feed(c->source_ctx, l, now, err);
    l->half = rc == -EINPROGRESS;
    if (rc == 0 && c->watch->before)
        rc = c->watch->before(c->watch_ctx, now, err);
    if (rc == 0)
        rc = decide(l, now, err);
    if (rc == 0)
        rc = flush(l, now, err);
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
        t = stk_loop_pending(l) ? now : t;
        if (t == STK_NEVER_TIME)
            return 0;
        now = t > now ? t : now;
        rc = stk_loop_turn(l, now, err);
        if (rc != 0)
            return rc < 0 ? rc : 0;
    }
}
