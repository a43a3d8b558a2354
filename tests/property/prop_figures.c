/* SPDX-License-Identifier: Apache-2.0 */
/* prop_figures.c - figures of random periods over random histories, against a plain walk over time.
 *
 * The real live part, core and store run on a toy engine that starts, suspends, loses and ends
 * processes at random; people submit, hold, suspend, requeue and cancel; jobs have whole GPUs and
 * fractions, and preempt each other; nodes go down; the daemon is restarted and killed. Between two
 * turns nothing changes, so a ledger with a row for each job and each such interval is all that
 * happened. What must hold, for any period: allocated, capacity, starts, waits and preemptions are
 * those of the ledger, to the last digit, whoever adds them up; periods side by side add up; active
 * <= measured <= allocated <= capacity.
 *
 * STOKER_RUNS (default 15) worlds from STOKER_SEED (default 1) on.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "config/config.h"
#include "core/state.h"
#include "lib/tmpdir.h"
#include "live/counts.h"
#include "live/live.h"
#include "live/many.h"
#include "whatif/whatif.h"

#define MAX_PROCS 1024
#define MAX_JOBS 2000
#define NODES 2
#define GPUS 4
#define TURNS 160
#define PERIODS 25

#define MUST(x)                                                                                    \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            (void)fprintf(stderr, "seed %llu, line %d: not true: %s\n", (unsigned long long)seed,  \
                          __LINE__, #x);                                                           \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static uint64_t seed;
static uint64_t seen_suspends, seen_preemptions, seen_restarts, seen_parts, seen_unstarted,
    seen_down, seen_early;

struct proc { /* of one lease */
    stk_job_number number;
    stk_lease_id lease;
    stk_job_id id;
    uint32_t node;
    bool started, told_start, asleep, ended, told_end, suspend;
    enum stk_cause cause, stop;
};

struct row { /* of the ledger: a job between two turns */
    stk_time from, to;
    stk_job_number number;
    stk_lease_id lease; /* 0: it has none */
    uint32_t milli;
    bool waits;
};

struct begun { /* a lease */
    stk_job_number number;
    stk_lease_id lease;
    stk_time from; /* of its processes; of its GPUs where they never started */
    bool started, over;
};

struct gave_way {
    stk_time at;
};

struct world;
struct toy {
    struct stk_engine base;
    struct world *w;
    struct proc procs[MAX_PROCS];
    uint32_t n;
    bool down[NODES];
    stk_time last_turn;
};

struct world {
    struct fx_dir dir;
    struct stk_rng rng;
    struct toy toy;
    struct stk_config config;
    struct stk_setup setup;
    struct stk_node_spec node[NODES];
    struct stk_store *store;
    struct stk_live *live;
    stk_time now, opened, first;
    stk_job_number known;
    struct row *rows;
    uint32_t n_rows, cap_rows;
    struct begun *begun;
    uint32_t n_begun, cap_begun;
    struct gave_way *gave;
    uint32_t n_gave, cap_gave;
    struct {
        stk_time from, to;
        uint32_t gpus;
    } capacity[2 * TURNS + 2];
    uint32_t n_capacity;
    uint32_t preempted[MAX_JOBS];
    stk_time ended_early[MAX_JOBS]; /* its lease ended then, before the turn that heard of it */
};

static void *grow(void *list, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap)
        return list;
    *cap = *cap ? *cap * 2 : 1024;
    list = realloc(list, *cap * size);
    MUST(list);
    return list;
}

static bool chance(struct world *w, uint32_t one_in)
{
    return stk_rng_below(&w->rng, one_in) == 0;
}

/* ---- the engine ---- */

static struct proc *find_proc(struct toy *t, stk_job_number number, stk_lease_id lease)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->procs[i].number == number && t->procs[i].lease == lease)
            return &t->procs[i];
    return NULL;
}

static int start(struct stk_engine *e, stk_time now, const struct stk_start *s)
{
    struct toy *t = (struct toy *)e;
    struct proc p = {
        .number = s->number, .lease = s->lease, .id = s->job, .node = s->pieces[0].node.i};

    (void)now;
    for (uint32_t i = 0; s->resume && i < t->n; i++) /* the processes that slept are these */
        if (t->procs[i].number == s->number && t->procs[i].asleep)
            t->procs[i--] = t->procs[--t->n];
    MUST(t->n < MAX_PROCS);
    t->procs[t->n++] = p;
    return 0;
}

static void stop(struct stk_engine *e, stk_time now, const struct stk_stop *s)
{
    struct toy *t = (struct toy *)e;

    (void)now;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->procs[i].id.i == s->job.i && t->procs[i].lease == s->lease) {
            t->procs[i].stop = s->cause;
            t->procs[i].suspend = s->suspend;
        }
}

static int adopt(struct stk_engine *e, stk_time now, const struct stk_adopt *list, uint32_t n,
                 struct stk_err *err)
{
    struct toy *t = (struct toy *)e;

    (void)err;
    for (uint32_t i = 0; i < t->n; i++)
        t->procs[i].id.i = STK_NONE;
    for (uint32_t i = 0; i < n; i++) {
        const struct stk_adopt *a = &list[i];
        struct proc *p = find_proc(t, a->start.number, a->start.lease);

        if (!p) {
            MUST(!a->asleep);
            (void)start(e, now, &a->start);
            p = &t->procs[t->n - 1];
        }
        p->id = a->start.job;
        p->told_end = false;
        p->told_start = a->state == STK_JOB_RUNNING || p->told_start;
        p->stop = a->state == STK_JOB_STOPPING ? a->stop.cause : STK_CAUSE_NONE;
        p->suspend = a->state == STK_JOB_STOPPING && a->stop.suspend;
    }
    for (uint32_t i = t->n; i-- > 0;)
        if (t->procs[i].id.i == STK_NONE)
            t->procs[i] = t->procs[--t->n];
    return 0;
}

static void settle(struct stk_engine *e, stk_job_number number, stk_lease_id lease)
{
    struct toy *t = (struct toy *)e;
    struct proc *p = find_proc(t, number, lease);

    if (p)
        *p = t->procs[--t->n];
}

static void emit(struct toy *t, struct stk_event *ev)
{
    t->base.emit(t->base.emit_ctx, ev);
}

static void tell_end(struct toy *t, struct proc *p, stk_time now)
{
    struct stk_event ev = {.type = STK_EV_EXITED, .job = p->id, .lease = p->lease};
    const stk_time spare = now - t->last_turn;

    ev.u.exit.cause = p->cause;
    ev.u.exit.code = p->cause == STK_CAUSE_FAILED ? 3 : 0;
    if (!p->asleep && p->started && p->told_start && spare > 2 && chance(t->w, 3)) {
        ev.u.exit.ended = now - 1 - (stk_time)stk_rng_below(&t->w->rng, (uint64_t)spare - 1);
        if (p->number < MAX_JOBS)
            t->w->ended_early[p->number] = ev.u.exit.ended;
        seen_early++;
    }
    p->told_end = true;
    emit(t, &ev);
}

static void step(struct toy *t, struct proc *p, stk_time now)
{
    struct stk_event ev = {.job = p->id, .lease = p->lease};
    const bool lost = t->down[p->node] && chance(t->w, 2);

    if (p->ended)
        return;
    if (p->asleep) {
        if (p->stop == STK_CAUSE_NONE && !chance(t->w, 30))
            return;
        p->ended = true;
        p->cause = p->stop ? p->stop : STK_CAUSE_SIGNAL;
        tell_end(t, p, now);
        return;
    }
    if (!p->started && chance(t->w, 2))
        p->started = true;
    if (p->started && !p->told_start && !chance(t->w, 6)) {
        ev.type = STK_EV_STARTED;
        p->told_start = true;
        emit(t, &ev);
        return;
    }
    if (p->stop && p->suspend && p->told_start && chance(t->w, 2)) {
        ev.type = STK_EV_SUSPENDED;
        p->asleep = true;
        p->stop = STK_CAUSE_NONE;
        seen_suspends++;
        emit(t, &ev);
    } else if (lost || p->stop || (p->told_start && chance(t->w, 12)) || chance(t->w, 60)) {
        p->ended = true;
        p->cause = lost              ? STK_CAUSE_NODE_LOST
                   : p->stop         ? p->stop
                   : !p->started     ? STK_CAUSE_NOT_STARTED
                   : chance(t->w, 2) ? STK_CAUSE_OK
                                     : STK_CAUSE_FAILED;
        tell_end(t, p, now);
    }
}

static void pump(struct stk_engine *e, stk_time now)
{
    struct toy *t = (struct toy *)e;

    if (now == t->last_turn)
        return;
    for (uint32_t i = 0; i < NODES; i++)
        if (chance(t->w, t->down[i] ? 8 : 40)) {
            struct stk_event ev = {.type = t->down[i] ? STK_EV_NODE_UP : STK_EV_NODE_DOWN,
                                   .u.node = {i}};

            t->down[i] = !t->down[i];
            seen_down += t->down[i];
            emit(t, &ev);
        }
    for (uint32_t i = 0; i < t->n; i++)
        if (!t->procs[i].told_end)
            step(t, &t->procs[i], now);
}

static stk_time never(const struct stk_engine *e)
{
    (void)e;
    return STK_NEVER_TIME;
}

static const struct stk_engine_ops toy_ops = {.name = "toy",
                                              .start = start,
                                              .stop = stop,
                                              .adopt = adopt,
                                              .settle = settle,
                                              .pump = pump,
                                              .next = never};

/* ---- the daemon ---- */

static stk_time clock_of(void *ctx)
{
    return ((struct world *)ctx)->now;
}

static void open_live(struct world *w)
{
    static const struct stk_live_node node[NODES] = {{.name = "a", .gpu_type = "virtual"},
                                                     {.name = "b", .gpu_type = "virtual"}};
    static const char *const pools[] = {"default"}, *const types[] = {"virtual"};
    struct stk_live_config cfg = {.engine = &w->toy.base,
                                  .policy = w->setup.name,
                                  .nodes = node,
                                  .pools = pools,
                                  .gpu_types = types,
                                  .n_gpu_types = 1,
                                  .limits = {100000, 100000, 100},
                                  .clock = clock_of,
                                  .ctx = w};
    struct stk_err err = {""};
    int rc;

    cfg.core = (struct stk_core_config){.nodes = w->node,
                                        .n_nodes = NODES,
                                        .n_pools = 1,
                                        .order = w->setup.order,
                                        .backfill = w->setup.backfill,
                                        .place = w->setup.place,
                                        .preempt = w->setup.preempt,
                                        .admit = w->setup.admit,
                                        .params = &w->setup.params,
                                        .retain_done = 1000};
    rc = stk_store_open(w->dir.path, 0, &w->store, &err);
    cfg.store = w->store;
    rc = rc < 0 ? rc : stk_live_open(&cfg, &w->live, &err);
    if (rc < 0)
        (void)fprintf(stderr, "%s\n", err.text);
    MUST(rc == 0);
    w->opened = w->now;
}

/* As a clean stop leaves it, or as kill -9 does. */
static void restart(struct world *w, bool killed)
{
    struct fx_dir copy;
    char command[400];

    if (killed) {
        fx_dir_make(&copy);
        (void)snprintf(command, sizeof(command), "cp %s/stoker.* %s/", w->dir.path, copy.path);
        MUST(system(command) == 0); /* NOLINT(cert-env33-c): our own words */
    }
    stk_live_close(w->live);
    stk_store_close(w->store);
    if (killed) {
        fx_dir_remove(&w->dir);
        w->dir = copy;
    }
    open_live(w);
}

/* ---- people ---- */

static void on_answer(void *ctx, int status, json_t *take)
{
    struct world *w = ctx;
    json_int_t id = json_integer_value(json_object_get(take, "id"));

    if (status == 201 && id > (json_int_t)w->known)
        w->known = (stk_job_number)id;
    json_decref(take);
}

static void submit(struct world *w)
{
    static const char *const tiers[] = {"best-effort", "standard", "critical"};
    struct stk_asker by = {{.uid = getuid(), .role = STK_ROLE_ADMIN, .user = "me"}, on_answer, w};
    const bool part = chance(w, 3);
    json_t *job = json_pack("{s:[s],s:s,s:s,s:{s:i,s:i}}", "command", "/bin/true", "workdir", "/",
                            "tier", tiers[stk_rng_below(&w->rng, 3)], "retry", "error",
                            (int)stk_rng_below(&w->rng, 3), "node", (int)stk_rng_below(&w->rng, 3));

    (void)json_object_set_new(job, "gpus",
                              part ? json_real((1 + (double)stk_rng_below(&w->rng, 9)) / 10)
                                   : json_integer((json_int_t)stk_rng_below(&w->rng, GPUS + 1)));
    seen_parts += part;
    if (w->known > 0 && chance(w, 5))
        (void)json_object_set_new(job, "depends",
                                  json_pack("[{s:s,s:i}]", "type", "afterany", "job",
                                            1 + (int)stk_rng_below(&w->rng, w->known)));
    if (chance(w, 8))
        (void)json_object_set_new(job, "hold", json_true());
    if (chance(w, 8))
        (void)json_object_set_new(
            job, "begin",
            json_integer(w->now / STK_SECOND + (json_int_t)stk_rng_below(&w->rng, 9)));
    {
        json_t *jobs = json_array();

        (void)json_array_append_new(jobs, job);
        MUST(stk_live_submit(w->live, &by, &(struct stk_many){.list = jobs, .n = 1}, NULL, false) ==
             0);
    }
}

static void act(struct world *w)
{
    static const char *const verbs[] = {"cancel",  "hold",   "release", "release", "requeue",
                                        "suspend", "resume", "resume",  "update"};
    struct stk_asker by = {{.uid = getuid(), .role = STK_ROLE_ADMIN, .user = "me"}, on_answer, w};
    stk_job_number number = 1 + (stk_job_number)stk_rng_below(&w->rng, w->known);

    MUST(stk_live_act(w->live, &by, verbs[stk_rng_below(&w->rng, 9)], &number, 1,
                      json_pack("{s:i}", "priority", (int)stk_rng_below(&w->rng, 1000))) == 0);
}

/* ---- the ledger ---- */

static struct begun *find_begun(struct world *w, stk_job_number number, stk_lease_id lease)
{
    for (uint32_t i = w->n_begun; i-- > 0;)
        if (w->begun[i].number == number && w->begun[i].lease == lease)
            return &w->begun[i];
    return NULL;
}

static uint32_t milli_of(const struct stk_state *s, const struct stk_job *j)
{
    const uint32_t part = s->shapes[j->shape].demand.gpu_milli;

    return j->gpus * (part ? part : 1000);
}

/* How things are from the turn that is over until the next. */
static void write_rows(struct world *w, stk_time from, stk_time to)
{
    const struct stk_state *s = stk_core_state(stk_live_core(w->live));
    uint32_t gpus = 0;

    for (uint32_t i = 0; i < s->n_nodes; i++)
        gpus += s->nodes[i].said_up || s->nodes[i].n_uses > 0 ? s->nodes[i].gpus : 0;
    w->capacity[w->n_capacity].from = from;
    w->capacity[w->n_capacity].to = to;
    w->capacity[w->n_capacity++].gpus = gpus;
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];
        const bool waits = j->state == STK_JOB_WAITING;

        if (j->state == STK_JOB_NONE || j->state == STK_JOB_DONE || (!waits && !j->lease))
            continue;
        w->rows = grow(w->rows, w->n_rows, &w->cap_rows, sizeof(*w->rows));
        w->rows[w->n_rows++] =
            (struct row){from, to, j->number, j->lease, j->lease ? milli_of(s, j) : 0, waits};
    }
}

/* What the turn at this time has changed. */
static void note_changes(struct world *w)
{
    const struct stk_core *core = stk_live_core(w->live);
    const struct stk_state *s = stk_core_state(core);

    for (uint32_t i = 0; i < w->n_begun; i++) {
        struct begun *b = &w->begun[i];
        uint32_t slot = stk_core_find(core, b->number);
        struct proc *p;

        if (b->over)
            continue;
        p = find_proc(&w->toy, b->number, b->lease);
        if (!b->started && p && p->told_start) {
            b->started = true;
            b->from = w->now;
        }
        b->over = slot == STK_NONE || s->jobs[slot].lease != b->lease;
        seen_unstarted += b->over && !b->started;
    }
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (j->state == STK_JOB_NONE)
            continue;
        for (; w->preempted[j->number] < j->preemptions; w->preempted[j->number]++) {
            w->gave = grow(w->gave, w->n_gave, &w->cap_gave, sizeof(*w->gave));
            w->gave[w->n_gave++].at =
                w->ended_early[j->number] ? w->ended_early[j->number] : w->now;
            seen_preemptions++;
        }
        if (!j->lease || find_begun(w, j->number, j->lease))
            continue;
        seen_restarts += j->restarts > 0;
        w->begun = grow(w->begun, w->n_begun, &w->cap_begun, sizeof(*w->begun));
        w->begun[w->n_begun++] = (struct begun){j->number, j->lease, w->now, false, false};
    }
}

/* Rows of the interval before this turn: some leases ended inside it. */
static void cut_rows(struct world *w, uint32_t from)
{
    for (uint32_t i = from; i < w->n_rows; i++) {
        struct row *r = &w->rows[i];

        if (r->lease && w->ended_early[r->number] > r->from && w->ended_early[r->number] < r->to)
            r->to = w->ended_early[r->number];
    }
}

static void turn(struct world *w)
{
    const stk_time before = w->now;
    const uint32_t rows = w->n_rows;
    struct stk_err err = {""};

    w->now += 1 + (stk_time)stk_rng_below(&w->rng, 3000000);
    write_rows(w, before, w->now);
    while (!chance(w, 3))
        submit(w);
    while (w->known > 0 && !chance(w, 2))
        act(w);
    w->toy.last_turn = before;
    if (stk_live_turn(w->live, &err) < 0)
        (void)fprintf(stderr, "%s\n", err.text);
    MUST(err.text[0] == '\0');
    w->toy.last_turn = w->now;
    MUST(w->known < MAX_JOBS - 1);
    cut_rows(w, rows);
    note_changes(w);
    memset(w->ended_early, 0, sizeof(w->ended_early));
}

/* ---- figures by the ledger ---- */

struct naive {
    stk_gpu_time allocated, capacity;
    stk_time waited, wait[MAX_JOBS];
    uint64_t starts, preemptions;
    uint32_t n_wait;
};

static stk_time overlap(struct stk_period p, stk_time from, stk_time to)
{
    from = from > p.since ? from : p.since;
    to = to < p.until ? to : p.until;
    return to > from ? to - from : 0;
}

static bool is_allocated(struct world *w, const struct row *r)
{
    const struct begun *b = r->lease ? find_begun(w, r->number, r->lease) : NULL;

    return b && (b->started ? r->from >= b->from : b->over);
}

/* What the job waited before time 'at', since its start before that. */
static stk_time waited_before(struct world *w, stk_job_number number, stk_time after, stk_time at)
{
    stk_time sum = 0;

    for (uint32_t i = 0; i < w->n_rows; i++)
        if (w->rows[i].number == number && w->rows[i].from >= after && w->rows[i].from < at &&
            !is_allocated(w, &w->rows[i]))
            sum += w->rows[i].to - w->rows[i].from;
    return sum;
}

static int by_size(const void *a, const void *b)
{
    const stk_time *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void count_starts(struct world *w, struct stk_period p, struct naive *n)
{
    static stk_time wait[MAX_JOBS], last[MAX_JOBS];
    static bool started[MAX_JOBS];

    memset(wait, 0, sizeof(wait));
    memset(last, 0, sizeof(last));
    memset(started, 0, sizeof(started));
    for (uint32_t i = 0; i < w->n_begun; i++) {
        const struct begun *b = &w->begun[i];
        stk_time waited;

        if (!b->started && !b->over)
            continue; /* it has GPUs, and its processes may start yet */
        waited = waited_before(w, b->number, last[b->number], b->from);
        last[b->number] = b->from;
        if (b->from < p.since || b->from >= p.until)
            continue;
        n->starts++;
        n->waited += waited;
        wait[b->number] += waited;
        started[b->number] = true;
    }
    for (uint32_t i = 0; i < MAX_JOBS; i++)
        if (started[i])
            n->wait[n->n_wait++] = wait[i];
    qsort(n->wait, n->n_wait, sizeof(*n->wait), by_size);
}

static void walk(struct world *w, struct stk_period p, struct naive *n)
{
    memset(n, 0, sizeof(*n));
    for (uint32_t i = 0; i < w->n_rows; i++)
        if (is_allocated(w, &w->rows[i]))
            n->allocated +=
                (stk_gpu_time)overlap(p, w->rows[i].from, w->rows[i].to) * w->rows[i].milli;
    for (uint32_t i = 0; i < w->n_capacity; i++)
        n->capacity += (stk_gpu_time)overlap(p, w->capacity[i].from, w->capacity[i].to) *
                       w->capacity[i].gpus * 1000;
    for (uint32_t i = 0; i < w->n_gave; i++)
        n->preemptions += w->gave[i].at >= p.since && w->gave[i].at < p.until;
    count_starts(w, p, n);
}

/* ---- what must hold ---- */

static double number_of(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static struct stk_period_figures figures_of(struct world *w, struct stk_period p, json_t **ret)
{
    struct stk_period_figures f;
    struct stk_err err = {""};

    MUST(stk_figures(w->store, p, w->now, &f, ret, &err) == 0);
    return f;
}

static stk_time random_time(struct world *w)
{
    const stk_time life = w->now - w->first + 4 * STK_SECOND;

    return w->first - 2 * STK_SECOND + (stk_time)stk_rng_below(&w->rng, (uint64_t)life);
}

static void check_period(struct world *w, struct stk_period p)
{
    static struct naive n;
    json_t *o = NULL;
    const struct stk_period_figures f = figures_of(w, p, &o);

    walk(w, f.p, &n);
    MUST(f.allocated == n.allocated);
    MUST(f.capacity.sum == n.capacity);
    MUST(f.allocated <= f.capacity.sum);
    MUST(f.preemptions == n.preemptions);
    MUST(number_of(o, "starts") == (double)n.starts);
    MUST(number_of(o, "waited_s") == (double)n.waited / 1e6);
    MUST(number_of(o, "utilization") <= 1);
    MUST(number_of(o, "gpu_hours") == stk_figures_hours(n.allocated));
    if (n.n_wait > 0) {
        MUST(number_of(o, "p50_wait_s") == (double)n.wait[stk_figures_rank(n.n_wait, 500)] / 1e6);
        MUST(number_of(o, "p90_wait_s") == (double)n.wait[stk_figures_rank(n.n_wait, 900)] / 1e6);
    }
    json_decref(o);
}

/* Three periods side by side are the whole. */
static void check_sums(struct world *w)
{
    stk_time at[4];
    struct stk_period_figures part[3], whole;
    json_t *o[4] = {NULL};

    for (int i = 0; i < 4; i++)
        at[i] = random_time(w);
    qsort(at, 4, sizeof(*at), by_size);
    for (int i = 0; i < 3; i++)
        part[i] = figures_of(w, (struct stk_period){at[i], at[i + 1]}, &o[i]);
    whole = figures_of(w, (struct stk_period){at[0], at[3]}, &o[3]);
    MUST(part[0].allocated + part[1].allocated + part[2].allocated == whole.allocated);
    MUST(part[0].capacity.sum + part[1].capacity.sum + part[2].capacity.sum == whole.capacity.sum);
    MUST(part[0].preemptions + part[1].preemptions + part[2].preemptions == whole.preemptions);
    for (int i = 0; i < 4; i++)
        json_decref(o[i]);
}

struct use {
    struct world *w;
    struct stk_leases leases;
    struct stk_period p[4]; /* the last: all of the first three */
    struct stk_gpu_amounts amounts;
    stk_gpu_time allocated, active;
};

/* What samples say of a job holds for all its allocated time, and adjacent periods add up. */
static int check_use(void *ctx, const struct stk_record *r)
{
    struct use *u = ctx;
    struct stk_job_past past = {0};
    struct stk_job_figures f[4], all;

    MUST(stk_leases_read(&u->leases, u->w->store, r, NULL) == 0);
    past.lease = u->leases.list;
    past.n = u->leases.n;
    stk_figures_of_job(&past, (struct stk_period){0, u->w->now + 1}, u->w->now, &all, NULL);
    past.sampled = stk_rng_below(&u->w->rng, (uint64_t)all.ever + 1000);
    past.active = stk_rng_below(&u->w->rng, (uint64_t)past.sampled + 1000);
    for (int i = 0; i < 4; i++) {
        stk_figures_of_job(&past, u->p[i], u->w->now, &f[i], i == 3 ? &u->amounts : NULL);
        MUST(f[i].active <= f[i].measured && f[i].measured <= f[i].allocated);
    }
    u->allocated += f[3].allocated;
    u->active += f[3].active;
    MUST(f[0].active + f[1].active + f[2].active == f[3].active);
    MUST(f[0].measured + f[1].measured + f[2].measured == f[3].measured);
    stk_figures_of_job(&past, (struct stk_period){0, u->w->now + 1}, u->w->now, &all, NULL);
    MUST(all.measured == (past.sampled > 0 ? all.ever : 0));
    if (past.sampled > 0 && all.ever > 0) {
        const long double seen = (long double)(past.sampled < all.ever ? past.sampled : all.ever);
        const long double part = (long double)past.active < seen ? (long double)past.active : seen;

        MUST(fabsl((long double)all.active - part / seen * (long double)all.ever) <=
             1 + (long double)all.ever * 1e-15L);
    }
    MUST(all.preemptions == r->preemptions);
    MUST(past.n == 0 || r->ended == 0 || r->waited >= past.lease[past.n - 1].waited);
    return 0;
}

static void check_uses(struct world *w)
{
    struct use u = {.w = w};
    stk_gpu_time sum[STK_AMOUNT_MAX] = {0};
    stk_time at[4];

    for (int i = 0; i < 4; i++)
        at[i] = random_time(w);
    qsort(at, 4, sizeof(*at), by_size);
    at[3] = at[3] < w->now ? at[3] : w->now;
    at[2] = at[2] < at[3] ? at[2] : at[3];
    for (int i = 0; i < 3; i++)
        u.p[i] = (struct stk_period){at[i], at[i + 1]};
    u.p[3] = (struct stk_period){at[0], at[3]};
    MUST(stk_gpu_amounts_init(&u.amounts, u.p[3], 900 * STK_SECOND / 128) == 0);
    MUST(stk_store_history(w->store, &(struct stk_history_query){0}, check_use, &u, NULL) == 0);
    MUST(stk_store_live(w->store, check_use, &u, NULL) == 0);
    stk_gpu_amounts_finish(&u.amounts);
    for (uint32_t i = 0; i < u.amounts.n; i++)
        for (int k = 0; k < STK_AMOUNT_MAX; k++)
            sum[k] += u.amounts.amount[k][i];
    MUST(sum[STK_AMOUNT_ALLOCATED] == u.allocated && sum[STK_AMOUNT_ACTIVE] == u.active);
    stk_gpu_amounts_done(&u.amounts);
    stk_leases_done(&u.leases);
}

/* The counters of /metrics, since the daemon was started. */
static void check_counters(struct world *w)
{
    static struct naive n;
    const struct stk_live_counts *c = stk_live_counts(w->live);

    walk(w, (struct stk_period){w->opened, w->now + 1}, &n);
    MUST(stk_live_allocated(w->live, w->now) == n.allocated);
    MUST(c->wait.count == n.starts);
    MUST(stk_preemptions(c) == n.preemptions);
}

static void check_all(struct world *w)
{
    for (int i = 0; i < PERIODS; i++) {
        stk_time a = random_time(w), b = random_time(w);

        check_period(w, (struct stk_period){a < b ? a : b, (a < b ? b : a) + 1});
        check_sums(w);
    }
    check_period(w, (struct stk_period){0, w->now});
    check_uses(w);
    check_counters(w);
}

static void run(void)
{
    struct world *w = calloc(1, sizeof(*w));
    struct stk_err err = {""};

    stk_rng_init(&w->rng, seed);
    w->now = w->first = 1000000 * STK_SECOND;
    for (uint32_t i = 0; i < NODES; i++)
        w->node[i] = (struct stk_node_spec){.gpus = GPUS};
    w->toy = (struct toy){.base = {.ops = &toy_ops}, .w = w};
    stk_config_init(&w->config);
    MUST(stk_config_setup(&w->config, &w->setup, &err) == 0);
    fx_dir_make(&w->dir);
    open_live(w);
    for (int i = 0; i < TURNS; i++) {
        turn(w);
        if (chance(w, 25)) { /* no event has the time at which the daemon is started */
            write_rows(w, w->now, w->now + 1);
            w->now++;
            restart(w, chance(w, 2));
        }
        if (chance(w, 50))
            check_all(w);
    }
    check_all(w);
    stk_live_close(w->live);
    stk_store_close(w->store);
    stk_config_done(&w->config);
    fx_dir_remove(&w->dir);
    free(w->rows);
    free(w->begun);
    free(w->gave);
    free(w);
}

int main(void)
{
    const char *runs = getenv("STOKER_RUNS"), *first = getenv("STOKER_SEED");
    uint64_t n = runs ? strtoull(runs, NULL, 10) : 15, from = first ? strtoull(first, NULL, 10) : 1;

    for (seed = from; seed < from + n; seed++)
        run();
    (void)printf("%llu worlds: %llu suspends, %llu preemptions, %llu restarts, %llu fractions, "
                 "%llu never started, %llu nodes down, %llu ends told late\n",
                 (unsigned long long)n, (unsigned long long)seen_suspends,
                 (unsigned long long)seen_preemptions, (unsigned long long)seen_restarts,
                 (unsigned long long)seen_parts, (unsigned long long)seen_unstarted,
                 (unsigned long long)seen_down, (unsigned long long)seen_early);
    /* else it was not tried */
    MUST(n < 10 || (seen_suspends && seen_preemptions && seen_restarts && seen_parts &&
                    seen_unstarted && seen_down && seen_early));
    return 0;
}
