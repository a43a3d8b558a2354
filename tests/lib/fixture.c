/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/fixture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/save.h"
#include "core/speed.h"
#include "policy/registry.h"

void fx_must(bool ok, const char *fmt, ...)
{
    va_list ap;

    if (ok)
        return;
    (void)fflush(stdout);
    va_start(ap, fmt);
    (void)fprintf(stderr, "not true: ");
    (void)vfprintf(stderr, fmt, ap);
    (void)fprintf(stderr, "\n");
    va_end(ap);
    abort();
}

/* ---- memory: blocks always move, so that a kept pointer is found out ---- */

static void *resize(void *ctx, void *p, size_t old, size_t size)
{
    struct fx_heap *h = ctx;
    char *q = NULL;

    h->calls++;
    if (size > 0 && h->fail_at && h->calls >= h->fail_at)
        return NULL;
    if (size > 0) {
        q = calloc(1, size);
        fx_must(q != NULL, "the test has memory");
        if (p)
            memcpy(q, p, old < size ? old : size);
    }
    fx_must(p || old == 0, "a new block has no old size");
    h->live += size;
    h->live -= old;
    free(p);
    return q;
}

struct stk_mem fx_mem(struct fx_heap *h)
{
    return (struct stk_mem){resize, h};
}

static void *more(void *array, uint32_t *cap, uint32_t need, size_t elem)
{
    uint32_t want = need < 64 ? 64 : need * 2;
    char *p;

    if (need <= *cap)
        return array;
    p = realloc(array, want * elem);
    fx_must(p != NULL, "the test has memory");
    memset(p + *cap * elem, 0, (want - *cap) * elem);
    *cap = want;
    return p;
}

/* ---- making ---- */

static void set_params(struct stk_params *p, const char *text)
{
    char buf[512] = "", *save = NULL;

    if (!text)
        return;
    (void)snprintf(buf, sizeof(buf), "%s", text);
    for (char *kv = strtok_r(buf, " ", &save); kv; kv = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(kv, '=');
        const struct stk_param *decl;

        fx_must(eq != NULL, "parameter %s has a value", kv);
        *eq = '\0';
        decl = stk_param_find(kv, NULL);
        fx_must(decl && stk_params_set(p, decl, eq + 1, NULL) == 0, "parameter %s", kv);
    }
}

static struct stk_core *core_of(struct fx *f, const struct fx_setup *u)
{
    static const struct stk_node_spec two[2] = {{.gpus = 8}, {.gpus = 8}};
    static const char *const names[] = {"r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"};
    const struct stk_mem mem = fx_mem(&f->heap);
    struct stk_params params = {.n = 0};
    struct stk_core *core = NULL;
    const struct stk_core_config cfg = {
        .nodes = u->n_nodes ? u->nodes : two,
        .n_nodes = u->n_nodes ? u->n_nodes : 2,
        .layouts = u->layouts,
        .n_layouts = u->n_layouts,
        .n_pools = u->n_pools ? u->n_pools : 1,
        .tenants = u->tenants,
        .n_tenants = u->n_tenants,
        .queues = u->queues,
        .n_queues = u->n_queues,
        .n_resources = u->n_resources,
        .resource_names = names,
        .order = stk_order_find(u->order ? u->order : "fifo"),
        .backfill = stk_backfill_find(u->backfill ? u->backfill : "skip"),
        .place = stk_place_find(u->place ? u->place : "pack"),
        .preempt = stk_preempt_find(u->preempt ? u->preempt : "none"),
        .admit = stk_admit_find("possible"),
        .params = &params,
        .speeds = u->speeds,
        .type_speed = u->type_speed,
        .retain_done = u->forget ? u->retain : UINT32_MAX,
    };

    set_params(&params, u->params);
    fx_must(cfg.order && cfg.backfill && cfg.place && cfg.preempt, "policies are known");
    fx_must(stk_core_new(&cfg, &mem, &core, &f->err) == 0, "a core: %s", f->err.text);
    return core;
}

struct stk_core *fx_core(struct fx *f)
{
    return core_of(f, &f->setup);
}

void fx_org(struct stk_tenant_spec *table, uint32_t n)
{
    static const struct {
        const char *name;
        uint32_t under;
    } all[] = {{"default", STK_NONE}, {"org", STK_NONE}, {"a", 1}, {"b", 1},
               {"c", STK_NONE},       {"d", STK_NONE}};

    for (uint32_t i = 0; i < n; i++)
        stk_tenant_spec_init(&table[i], all[i].name, all[i].under);
}

struct fx *fx_new(const struct fx_setup *setup)
{
    struct fx *f = calloc(1, sizeof(*f));

    fx_must(f != NULL, "the test has memory");
    f->setup = *setup;
    stk_rng_init(&f->rng, setup->seed);
    f->core = fx_core(f);
    f->s = stk_core_state(f->core);
    return f;
}

void fx_free(struct fx *f)
{
    stk_core_free(f->core);
    fx_must(f->heap.live == 0, "the core gave back all memory but %llu bytes",
            (unsigned long long)f->heap.live);
    for (uint32_t i = 0; i < f->n_log; i++) {
        free(f->log[i].deps);
        free(f->log[i].pieces);
        free(f->log[i].ranges);
    }
    free(f->log);
    free(f->notes);
    free(f->work);
    free(f);
}

/* ---- events ---- */

static void *copy(const void *from, size_t n)
{
    void *to = malloc(n + 1);

    fx_must(to != NULL, "the test has memory");
    if (n > 0)
        memcpy(to, from, n);
    return to;
}

static void record(struct fx *f, const struct stk_event *ev)
{
    struct fx_record *r;

    f->log = more(f->log, &f->cap_log, f->n_log + 1, sizeof(*f->log));
    r = &f->log[f->n_log++];
    *r = (struct fx_record){.ev = *ev};
    if (ev->type == STK_EV_SUBMIT) {
        r->spec = *ev->u.spec;
        r->deps = copy(r->spec.deps, r->spec.n_deps * sizeof(*r->deps));
        f->work = more(f->work, &f->cap_work, ev->job.i + 1, sizeof(*f->work));
        f->work[ev->job.i] = (struct fx_work){.left = r->spec.estimate, .ends = STK_CAUSE_OK};
    } else if (ev->type == STK_EV_UPDATE && ev->u.update.spec) {
        r->spec = *ev->u.update.spec;
    } else if (ev->type == STK_EV_PLACE) {
        r->pieces = copy(ev->u.place.pieces, ev->u.place.n * sizeof(*r->pieces));
    } else if (ev->type == STK_EV_SET) {
        r->set = *ev->u.set;
    } else if (ev->type == STK_EV_RESERVE) {
        r->booking = *ev->u.booking;
        r->pieces = copy(r->booking.nodes, r->booking.n_nodes * sizeof(*r->pieces));
    } else if (ev->type == STK_EV_NODES) {
        r->nodes = *ev->u.nodes;
        r->ranges = copy(r->nodes.range, r->nodes.n * sizeof(*r->ranges));
    }
}

int fx_apply(struct fx *f, const struct stk_event *ev)
{
    int rc = stk_core_apply(f->core, ev, &f->err);

    if (rc == 0) {
        record(f, ev);
        f->now = ev->at;
    }
    return rc;
}

struct stk_job_spec fx_job(uint32_t gpus, int64_t seconds)
{
    return (struct stk_job_spec){
        .demand = {.tasks = 1, .gpus = gpus, .gpu_types = STK_ANY_GPU_TYPE, .cut = true},
        .tier = STK_TIER_STANDARD,
        .estimate = seconds * STK_SECOND};
}

int fx_try_submit(struct fx *f, const struct stk_job_spec *spec)
{
    const struct stk_event ev = {
        .at = f->now, .type = STK_EV_SUBMIT, .job = stk_core_next_job(f->core), .u.spec = spec};

    return fx_apply(f, &ev);
}

uint32_t fx_submit(struct fx *f, struct stk_job_spec spec)
{
    uint32_t job = stk_core_next_job(f->core).i;

    fx_must(fx_try_submit(f, &spec) == 0, "submit: %s", f->err.text);
    return job;
}

static stk_lease_id lease_of(const struct fx *f, uint32_t job)
{
    const struct stk_job *j;

    if (job >= f->s->n_jobs)
        return 0;
    j = &f->s->jobs[job];
    return j->lease ? j->lease : j->slept;
}

int fx_job_event(struct fx *f, enum stk_event_type type, uint32_t job)
{
    struct stk_event ev = {.at = f->now, .type = type, .job = {job}, .lease = lease_of(f, job)};

    if (type == STK_EV_EVICT)
        ev.u.evict.for_job.i = STK_NONE;
    return fx_apply(f, &ev);
}

int fx_update(struct fx *f, uint32_t job, int32_t priority, stk_time estimate)
{
    struct stk_event ev = {.at = f->now,
                           .type = STK_EV_UPDATE,
                           .job = {job},
                           .lease = lease_of(f, job),
                           .u.update = {.priority = priority, .estimate = estimate}};

    if (job < f->s->n_jobs) {
        ev.u.update.asked = f->s->terms[job].asked;
        ev.u.update.limit = f->s->terms[job].limit;
        ev.u.update.plain = f->s->terms[job].plain;
    }
    return fx_apply(f, &ev);
}

int fx_change(struct fx *f, uint32_t job, const struct stk_job_spec *spec)
{
    const struct stk_event ev = {.at = f->now,
                                 .type = STK_EV_UPDATE,
                                 .job = {job},
                                 .lease = lease_of(f, job),
                                 .u.update.spec = spec};

    return fx_apply(f, &ev);
}

int fx_exit(struct fx *f, uint32_t job, enum stk_cause cause)
{
    const struct stk_event ev = {.at = f->now,
                                 .type = STK_EV_EXITED,
                                 .job = {job},
                                 .lease = lease_of(f, job),
                                 .u.exit = {.cause = cause}};

    return fx_apply(f, &ev);
}

int fx_place(struct fx *f, uint32_t job, const struct stk_piece *pieces, uint32_t n)
{
    const struct stk_event ev = {.at = f->now,
                                 .type = STK_EV_PLACE,
                                 .job = {job},
                                 .lease = stk_core_next_lease(f->core),
                                 .u.place = {pieces, n}};

    return fx_apply(f, &ev);
}

int fx_node(struct fx *f, uint32_t node, bool up)
{
    const struct stk_event ev = {
        .at = f->now, .type = up ? STK_EV_NODE_UP : STK_EV_NODE_DOWN, .u.node = {node}};

    return fx_apply(f, &ev);
}

int fx_gpus_off(struct fx *f, uint32_t node, uint64_t mask)
{
    const struct stk_event ev = {
        .at = f->now, .type = STK_EV_GPUS_OFF, .u.off = {.node = {node}, .mask = mask}};

    return fx_apply(f, &ev);
}

int fx_node_off(struct fx *f, uint32_t node)
{
    const struct stk_event ev = {.at = f->now, .type = STK_EV_NODE_OFF, .u.node = {node}};

    return fx_apply(f, &ev);
}

int fx_set(struct fx *f, const struct stk_set *set)
{
    const struct stk_event ev = {.at = f->now, .type = STK_EV_SET, .u.set = set};

    return fx_apply(f, &ev);
}

struct stk_booking_spec fx_booking(uint32_t gpus, int64_t start_s, int64_t end_s)
{
    return (struct stk_booking_spec){.holder = STK_HOLDER_NAMED,
                                     .holder_id = 1,
                                     .gpu_types = STK_ANY_GPU_TYPE,
                                     .gpus = gpus,
                                     .start = start_s * STK_SECOND,
                                     .end = end_s * STK_SECOND};
}

int fx_nodes(struct fx *f, uint32_t number, uint64_t mask)
{
    struct stk_node_range range[64];
    struct stk_node_set set = {.number = number, .range = range};
    const struct stk_event ev = {
        .at = f->now, .type = STK_EV_NODES, .job = {STK_NONE}, .u.nodes = &set};

    for (uint32_t i = 0; i < 64; i++)
        if (mask >> i & 1)
            range[set.n++] = (struct stk_node_range){i, i};
    return fx_apply(f, &ev);
}

int fx_reserve(struct fx *f, struct stk_booking_spec spec)
{
    const struct stk_event ev = {
        .at = f->now, .type = STK_EV_RESERVE, .job = {STK_NONE}, .u.booking = &spec};

    spec.number = stk_core_next_booking(f->core);
    return fx_apply(f, &ev);
}

int fx_unreserve(struct fx *f, uint32_t number)
{
    const struct stk_event ev = {.at = f->now,
                                 .type = STK_EV_UNRESERVE,
                                 .job = {STK_NONE},
                                 .u.unreserve = {number, STK_OVER_REMOVED}};

    return fx_apply(f, &ev);
}

/* ---- the fake engine ---- */

static stk_time delay(struct fx *f, stk_time longest)
{
    return longest > 0 ? (stk_time)stk_rng_below(&f->rng, (uint64_t)longest + 1) : 0;
}

static bool percent(struct fx *f, uint32_t p)
{
    return p > 0 && stk_rng_below(&f->rng, 100) < p;
}

static void note(struct fx *f, stk_time at, struct stk_event ev)
{
    f->notes = more(f->notes, &f->cap_notes, f->n_notes + 1, sizeof(*f->notes));
    ev.at = at;
    f->notes[f->n_notes++] = (struct fx_note){at, f->seq++, ev};
}

static bool sooner(const struct fx_note *a, const struct fx_note *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static uint32_t first_note(const struct fx *f)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < f->n_notes; i++)
        if (sooner(&f->notes[i], &f->notes[best]))
            best = i;
    return best;
}

/* The lease's end, and its going to sleep where that would come after 'at'. */
static void forget_exit(struct fx *f, stk_lease_id lease, stk_time at)
{
    uint32_t k = 0;

    for (uint32_t i = 0; i < f->n_notes; i++) {
        const struct stk_event *ev = &f->notes[i].ev;

        if (ev->lease != lease ||
            (ev->type != STK_EV_EXITED && (ev->type != STK_EV_SUSPENDED || f->notes[i].at <= at)))
            f->notes[k++] = f->notes[i];
    }
    f->n_notes = k;
}

static uint32_t speed_of(const struct fx *f, uint32_t job)
{
    const struct stk_job *j = &f->s->jobs[job];

    return j->n_pieces ? stk_job_speed(f->s, j) : STK_SPEED;
}

static void engine_start(struct fx *f, const struct stk_event *place)
{
    struct fx_work *w = &f->work[place->job.i];
    struct stk_event ev = {.type = STK_EV_STARTED, .job = place->job, .lease = place->lease};
    stk_time at = f->now + delay(f, f->setup.late_start);

    w->since = at;
    w->halted = false;
    if (percent(f, f->setup.crash_pct)) {
        ev.type = STK_EV_EXITED;
        ev.u.exit.cause = STK_CAUSE_NOT_STARTED;
        note(f, at, ev);
        return;
    }
    note(f, at, ev);
    ev.type = STK_EV_EXITED;
    ev.u.exit.cause = w->ends;
    ev.u.exit.final = percent(f, f->setup.final_pct);
    ev.u.exit.lost = w->ends != STK_CAUSE_OK ? w->left : 0; /* from scratch */
    note(f, at + stk_speed_time(w->left, speed_of(f, place->job.i)), ev);
}

int fx_lasts(struct fx *f, uint32_t job, stk_time in_all)
{
    struct stk_event ev = {.type = STK_EV_EXITED, .job = {job}, .lease = lease_of(f, job)};
    int rc = fx_update(f, job, fx_of(f, job)->priority, in_all);
    stk_time end = fx_of(f, job)->expected_end;

    if (rc < 0 || fx_state(f, job) != STK_JOB_RUNNING)
        return rc;
    forget_exit(f, ev.lease, f->now);
    ev.u.exit.cause = f->work[job].ends;
    f->work[job].left = end > f->work[job].since ? end - f->work[job].since : 0;
    note(f, end > f->now ? end : f->now, ev);
    return 0;
}

static void engine_stop(struct fx *f, uint32_t job, stk_lease_id lease, enum stk_cause cause,
                        bool sleep)
{
    struct fx_work *w = &f->work[job];
    struct stk_event ev = {.type = STK_EV_EXITED, .job = {job}, .lease = lease};
    stk_time at = f->now + delay(f, f->setup.slow_stop);

    ev.u.exit.cause = cause;
    if (!w->halted && at > w->since && w->since + stk_speed_time(w->left, speed_of(f, job)) <= at)
        return; /* it ends by itself before it could be stopped */
    forget_exit(f, lease, at);
    if (!w->halted)
        w->left -= at > w->since ? stk_speed_work(at - w->since, speed_of(f, job)) : 0;
    w->halted = true;
    if (sleep && percent(f, f->setup.sleep_pct))
        ev.type = STK_EV_SUSPENDED;
    note(f, at, ev);
}

int fx_cancel(struct fx *f, uint32_t job)
{
    int rc = fx_job_event(f, STK_EV_CANCEL, job);

    if (rc == 0 && fx_state(f, job) == STK_JOB_STOPPING)
        engine_stop(f, job, lease_of(f, job), STK_CAUSE_CANCELLED, false);
    return rc;
}

int fx_suspend(struct fx *f, uint32_t job)
{
    const struct stk_event ev = {.at = f->now,
                                 .type = STK_EV_EVICT,
                                 .job = {job},
                                 .lease = lease_of(f, job),
                                 .u.evict = {.for_job = {STK_NONE}, .suspend = true}};
    int rc = fx_apply(f, &ev);

    if (rc < 0)
        return rc;
    fx_must(fx_job_event(f, STK_EV_HOLD, job) == 0, "held while it stops: %s", f->err.text);
    engine_stop(f, job, ev.lease, STK_CAUSE_EVICTED, fx_of(f, job)->suspend_wanted);
    return 0;
}

int fx_move(struct fx *f, uint32_t job)
{
    const struct stk_event ev = {.at = f->now,
                                 .type = STK_EV_EVICT,
                                 .job = {job},
                                 .lease = lease_of(f, job),
                                 .u.evict = {.for_job = {STK_NONE}, .moved = true}};
    int rc = fx_apply(f, &ev);

    if (rc == 0)
        engine_stop(f, job, ev.lease, STK_CAUSE_EVICTED, false);
    return rc;
}

int fx_wake_anew(struct fx *f, uint32_t job)
{
    int rc;

    if (job >= f->s->n_jobs || !fx_of(f, job)->slept || fx_of(f, job)->lease)
        return -EPROTO;
    rc = fx_job_event(f, STK_EV_EVICT, job);
    if (rc == 0)
        engine_stop(f, job, lease_of(f, job), STK_CAUSE_EVICTED, false);
    return rc;
}

int fx_kill(struct fx *f, uint32_t job, enum stk_cause cause)
{
    if (job >= f->s->n_jobs || !fx_of(f, job)->slept || fx_of(f, job)->lease)
        return -EPROTO;
    forget_exit(f, fx_of(f, job)->slept, f->now);
    return fx_exit(f, job, cause);
}

static void pump(struct fx *f)
{
    while (f->n_notes > 0) {
        uint32_t i = first_note(f);
        struct stk_event ev = f->notes[i].ev;
        int rc;

        if (f->notes[i].at > f->now)
            return;
        f->notes[i] = f->notes[--f->n_notes];
        ev.at = f->now;
        rc = fx_apply(f, &ev);
        fx_must(rc == 0 || ev.type == STK_EV_STARTED || ev.type == STK_EV_NODE_OFF || f->wild,
                "an exit is taken: %s", f->err.text);
        /* one that is tried again comes right in the end */
        if (ev.type == STK_EV_EXITED && f->work[ev.job.i].ends != STK_CAUSE_OK && percent(f, 50))
            f->work[ev.job.i].ends = STK_CAUSE_OK;
    }
}

static bool noted_off(const struct fx *f, uint32_t node)
{
    for (uint32_t i = 0; i < f->n_notes; i++)
        if (f->notes[i].ev.type == STK_EV_NODE_OFF && f->notes[i].ev.u.node.i == node)
            return true;
    return false;
}

/* Empty nodes are switched off after a while, unless somebody is there by then. */
static void switch_off(struct fx *f)
{
    for (uint32_t i = 0; f->setup.off_after > 0 && i < f->s->n_nodes; i++) {
        const struct stk_node *n = &f->s->nodes[i];

        if (stk_power_known(&n->power) && !n->off && n->n_uses == 0 && !noted_off(f, i))
            note(f, f->now + f->setup.off_after,
                 (struct stk_event){.type = STK_EV_NODE_OFF, .u.node = {i}});
    }
}

/* ---- turns ---- */

static uint32_t decide_once(struct fx *f, struct stk_event *out)
{
    uint32_t cap = f->setup.cap ? f->setup.cap : FX_MAX_CAP, n;
    uint64_t calls = f->heap.calls;

    n = stk_core_decide(f->core, f->now, out, cap);
    fx_must(calls == f->heap.calls, "deciding allocates nothing");
    fx_must(n <= cap, "no more than were asked for");
    for (uint32_t i = 0; i < n; i++) {
        fx_must(out[i].at == f->now, "decisions are for now");
        fx_must(out[i].type == STK_EV_PLACE || out[i].type == STK_EV_EVICT ||
                    out[i].type == STK_EV_RESERVE || out[i].type == STK_EV_UNRESERVE ||
                    (out[i].type == STK_EV_SET && out[i].u.set->kind == STK_SET_MOVE),
                "a decision's type");
        if (f->before)
            f->before(f, &out[i]);
        fx_must(fx_apply(f, &out[i]) == 0, "a proposal is accepted: %s", f->err.text);
    }
    f->decisions += n;
    return n;
}

uint32_t fx_decide(struct fx *f)
{
    struct stk_event out[FX_MAX_CAP];
    uint32_t n, sum = 0;

    while ((n = decide_once(f, out)) > 0) {
        sum += n;
        fx_must(sum < 1000 + 50 * f->s->n_jobs, "an instant comes to rest");
    }
    return sum;
}

/* The engine hears of the decisions in the journal from 'from' on. */
static void act(struct fx *f, uint32_t from)
{
    for (uint32_t i = from, end = f->n_log; i < end; i++) {
        const struct stk_event ev = f->log[i].ev;

        if (ev.type == STK_EV_PLACE)
            engine_start(f, &ev);
        else if (ev.type == STK_EV_EVICT)
            engine_stop(f, ev.job.i, ev.lease, STK_CAUSE_EVICTED,
                        f->s->jobs[ev.job.i].suspend_wanted);
    }
}

void fx_turn(struct fx *f)
{
    struct stk_event out[FX_MAX_CAP];
    const struct stk_event tick = {.at = f->now, .type = STK_EV_TICK};
    uint32_t n, sum = 0, from;

    pump(f);
    if (stk_core_tick_due(f->core, f->now))
        fx_must(fx_apply(f, &tick) == 0, "a tick: %s", f->err.text);
    do {
        from = f->n_log;
        do
            n = decide_once(f, out);
        while (n > 0 && f->setup.patient);
        n = f->n_log - from; /* nothing but decisions was applied */
        act(f, from);
        pump(f);
        sum += n;
        fx_must(sum < 1000 + 50 * f->s->n_jobs, "an instant comes to rest");
    } while (n > 0);
    switch_off(f);
    if (f->on_turn)
        f->on_turn(f, f->ctx);
}

stk_time fx_next(const struct fx *f)
{
    stk_time t = stk_core_wake(f->core, f->now);

    if (f->n_notes > 0 && f->notes[first_note(f)].at < t)
        t = f->notes[first_note(f)].at;
    return t;
}

void fx_run(struct fx *f, stk_time until)
{
    for (stk_time t = fx_next(f); t <= until && t != STK_NEVER_TIME; t = fx_next(f)) {
        f->now = t > f->now ? t : f->now;
        fx_turn(f);
    }
    f->now = until > f->now ? until : f->now;
}

void fx_drain(struct fx *f)
{
    uint64_t turns = 0;

    fx_turn(f);
    for (stk_time t = fx_next(f); t != STK_NEVER_TIME; t = fx_next(f)) {
        f->now = t > f->now ? t : f->now;
        fx_turn(f);
        fx_must(++turns < 1000000, "the world comes to rest");
    }
}

/* ---- looking ---- */

struct stk_job *fx_of(const struct fx *f, uint32_t job)
{
    return &f->s->jobs[job];
}

enum stk_job_state fx_state(const struct fx *f, uint32_t job)
{
    return job < f->s->n_jobs ? (enum stk_job_state)f->s->jobs[job].state : STK_JOB_NONE;
}

enum stk_reason_code fx_why(struct fx *f, uint32_t job)
{
    struct stk_reason r;

    fx_must(stk_core_why(f->core, (stk_job_id){job}, &r, &f->err) == 0, "why: %s", f->err.text);
    return r.code;
}

void fx_sound(const struct fx *f)
{
    struct stk_err err = {{0}};

    fx_must(stk_core_sound(f->core, &err), "sound: %s", err.text);
}

uint64_t fx_digest(const struct fx *f)
{
    return stk_core_digest(f->core);
}

static void replay(struct fx *f, struct stk_core *core, uint32_t from, uint32_t upto)
{
    for (uint32_t i = from; i < upto; i++) {
        struct fx_record *r = &f->log[i];
        struct stk_event ev = r->ev;

        if (ev.type == STK_EV_SUBMIT) {
            r->spec.deps = r->deps;
            ev.u.spec = &r->spec;
        } else if (ev.type == STK_EV_UPDATE && ev.u.update.spec) {
            r->spec.deps = NULL;
            ev.u.update.spec = &r->spec;
        } else if (ev.type == STK_EV_PLACE) {
            ev.u.place.pieces = r->pieces;
        } else if (ev.type == STK_EV_SET) {
            ev.u.set = &r->set;
        } else if (ev.type == STK_EV_RESERVE) {
            if (r->booking.nodes)
                r->booking.nodes = r->pieces;
            ev.u.booking = &r->booking;
        } else if (ev.type == STK_EV_NODES) {
            r->nodes.range = r->ranges;
            ev.u.nodes = &r->nodes;
        }
        fx_must(stk_core_apply(core, &ev, &f->err) == 0, "replay of event %u: %s", i, f->err.text);
    }
}

struct stk_core *fx_replay_some(struct fx *f, uint32_t upto)
{
    struct stk_core *core = fx_core(f);

    replay(f, core, 0, upto);
    return core;
}

void fx_replay_rest(struct fx *f, struct stk_core *core, uint32_t from)
{
    replay(f, core, from, f->n_log);
    fx_must(stk_core_digest(core) == fx_digest(f), "replay of %u events gives the same state",
            f->n_log);
}

struct stk_core *fx_replay(struct fx *f)
{
    struct stk_core *core = fx_core(f);

    fx_replay_rest(f, core, 0);
    return core;
}

struct stk_core *fx_reload(struct fx *f, const struct stk_core *core, const struct fx_setup *setup)
{
    const struct stk_mem mem = fx_mem(&f->heap);
    struct stk_bytes bytes = {.mem = &mem};
    struct stk_core *fresh = core_of(f, setup ? setup : &f->setup);

    fx_must(stk_core_save(core, &bytes, &f->err) == 0, "saved: %s", f->err.text);
    fx_must(stk_core_load(fresh, bytes.data, bytes.n, &f->err) == 0, "loaded: %s", f->err.text);
    stk_bytes_done(&bytes);
    fx_must(stk_core_sound(fresh, &f->err), "sound after loading: %s", f->err.text);
    return fresh;
}

struct fx *fx_plain(void)
{
    return fx_new(&(struct fx_setup){.order = "fifo"});
}

void fx_finish(struct fx *f)
{
    fx_sound(f);
    stk_core_free(fx_replay(f));
    fx_free(f);
}

uint32_t fx_run_on(struct fx *f, uint32_t node, uint32_t gpus, uint64_t mask)
{
    uint32_t job = fx_submit(f, fx_job(gpus, 10));
    const struct stk_piece p = {{node}, gpus, 1, 0, mask};

    fx_must(fx_place(f, job, &p, 1) == 0, "place: %s", f->err.text);
    fx_must(fx_job_event(f, STK_EV_STARTED, job) == 0, "started: %s", f->err.text);
    return job;
}
