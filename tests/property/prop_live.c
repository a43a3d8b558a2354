/* SPDX-License-Identifier: Apache-2.0 */
/* prop_live.c - random requests to the live part with a store on a disk that fails now and then.
 *
 * The engine here is a list of processes that outlive everything, as real ones do; it starts, ends
 * and reports them at random. Files may not grow at random times (RLIMIT_FSIZE), so commits fail.
 * What must hold after every turn: a copy of the folder, as kill -9 would leave it, opens to the
 * same state; every request was answered once; what was acknowledged is there, and what was refused
 * is not; no GPU has two owners as far as processes go.
 *
 * STOKER_RUNS (default 20) worlds from STOKER_SEED (default 1) on.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "config/config.h"
#include "core/state.h"
#include "lib/tmpdir.h"
#include "live/live.h"
#include "live/many.h"

#define MAX_PROCS 512
#define GPUS 4

#define MUST(x)                                                                                    \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            (void)fprintf(stderr, "seed %llu, line %d: not true: %s\n", (unsigned long long)seed,  \
                          __LINE__, #x);                                                           \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static uint64_t seed;

struct proc { /* of one lease */
    stk_job_number number;
    stk_lease_id lease;
    stk_job_id id;
    uint64_t mask;
    bool started, told_start, ended, told_end;
    enum stk_cause cause, stop;
};

struct toy {
    struct stk_engine base;
    struct proc procs[MAX_PROCS];
    uint32_t n;
    struct stk_rng *rng;
};

struct world {
    struct fx_dir dir, copy;
    struct stk_rng rng;
    struct toy toy;
    struct stk_config config;
    struct stk_setup setup;
    struct stk_node_spec node;
    struct stk_store *store;
    struct stk_live *live;
    stk_time now;
    uint32_t asked, answered, refused;
    stk_job_number known; /* the highest number acknowledged */
    uint64_t slice_ns;
};

static struct proc *find(struct toy *t, stk_job_number number, stk_lease_id lease)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->procs[i].number == number && t->procs[i].lease == lease)
            return &t->procs[i];
    return NULL;
}

static void must_be_alone(const struct toy *t, uint64_t mask)
{
    for (uint32_t i = 0; i < t->n; i++)
        MUST(t->procs[i].ended || !(t->procs[i].mask & mask));
}

static int start(struct stk_engine *e, stk_time now, const struct stk_start *s)
{
    struct toy *t = (struct toy *)e;
    struct proc p = {.number = s->number, .lease = s->lease, .id = s->job};

    (void)now;
    MUST(t->n < MAX_PROCS && s->spec && !find(t, s->number, s->lease));
    for (uint32_t i = 0; i < s->n_pieces; i++)
        p.mask |= s->pieces[i].mask;
    must_be_alone(t, p.mask);
    t->procs[t->n++] = p;
    return 0;
}

static void stop(struct stk_engine *e, stk_time now, const struct stk_stop *s)
{
    struct toy *t = (struct toy *)e;

    (void)now;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->procs[i].id.i == s->job.i && t->procs[i].lease == s->lease)
            t->procs[i].stop = s->cause;
}

/* Asked again after every commit that failed: everything is told anew. */
static int adopt(struct stk_engine *e, stk_time now, const struct stk_adopt *list, uint32_t n,
                 struct stk_err *err)
{
    struct toy *t = (struct toy *)e;

    (void)err;
    for (uint32_t i = 0; i < t->n; i++)
        t->procs[i].id.i = STK_NONE;
    for (uint32_t i = 0; i < n; i++) {
        const struct stk_adopt *a = &list[i];
        struct proc *p = find(t, a->start.number, a->start.lease);

        if (!p) { /* placed, and the engine was never told */
            MUST(a->state == STK_JOB_PLACED || a->state == STK_JOB_STOPPING);
            (void)start(e, now, &a->start);
            p = &t->procs[t->n - 1];
        }
        p->id = a->start.job;
        p->told_start = a->state == STK_JOB_RUNNING;
        p->told_end = false;
        p->stop = a->state == STK_JOB_STOPPING ? a->stop.cause : STK_CAUSE_NONE;
    }
    for (uint32_t i = t->n; i-- > 0;)
        if (t->procs[i].id.i == STK_NONE) { /* one that nobody knows: it has been settled */
            MUST(t->procs[i].ended);
            t->procs[i] = t->procs[--t->n];
        }
    return 0;
}

static void settle(struct stk_engine *e, stk_job_number number, stk_lease_id lease)
{
    struct toy *t = (struct toy *)e;
    struct proc *p = find(t, number, lease);

    MUST(p && p->ended);
    *p = t->procs[--t->n];
}

static void report(struct toy *t, struct proc *p)
{
    struct stk_event ev = {.job = p->id, .lease = p->lease};

    if (p->started && !p->told_start) {
        ev.type = STK_EV_STARTED;
        p->told_start = true;
        t->base.emit(t->base.emit_ctx, &ev);
    }
    if (p->ended && !p->told_end) {
        ev.type = STK_EV_EXITED;
        ev.u.exit.cause = p->cause;
        ev.u.exit.code = p->cause == STK_CAUSE_FAILED ? 3 : 0;
        p->told_end = true;
        t->base.emit(t->base.emit_ctx, &ev);
    }
}

static void pump(struct stk_engine *e, stk_time now)
{
    struct toy *t = (struct toy *)e;

    (void)now;
    for (uint32_t i = 0; i < t->n; i++) {
        struct proc *p = &t->procs[i];

        if (stk_rng_below(t->rng, 3) == 0)
            p->started = true;
        if (!p->ended && (p->stop != STK_CAUSE_NONE || (p->started && !stk_rng_below(t->rng, 4)))) {
            p->ended = true;
            p->cause = p->stop                    ? p->stop
                       : stk_rng_below(t->rng, 4) ? STK_CAUSE_OK
                                                  : STK_CAUSE_FAILED;
        }
        report(t, p);
    }
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

/* An engine that only looks, for copies. */
static int look_on(struct stk_engine *e, stk_time now, const struct stk_adopt *list, uint32_t n,
                   struct stk_err *err)
{
    (void)e;
    (void)now;
    (void)list;
    (void)n;
    (void)err;
    return 0;
}

static const struct stk_engine_ops blind_ops = {
    .name = "blind", .start = start, .stop = stop, .adopt = look_on, .pump = pump, .next = never};

/* ---- */

static stk_time clock_of(void *ctx)
{
    return ((struct world *)ctx)->now;
}

static int open_live(struct world *w, const struct fx_dir *dir, struct stk_engine *engine,
                     struct stk_store **store, struct stk_live **live)
{
    static const struct stk_live_node node = {.name = "node", .gpu_type = "virtual"};
    static const char *const pools[] = {"default"}, *const types[] = {"virtual"};
    struct stk_live_config cfg = {.engine = engine,
                                  .policy = w->setup.name,
                                  .nodes = &node,
                                  .pools = pools,
                                  .gpu_types = types,
                                  .n_gpu_types = 1,
                                  .limits = {100000, 100000, 100},
                                  .slice_ns = w->slice_ns,
                                  .clock = clock_of,
                                  .ctx = w};
    struct stk_err err = {""};

    cfg.core = (struct stk_core_config){.nodes = &w->node,
                                        .n_nodes = 1,
                                        .n_pools = 1,
                                        .order = w->setup.order,
                                        .backfill = w->setup.backfill,
                                        .place = w->setup.place,
                                        .preempt = w->setup.preempt,
                                        .admit = w->setup.admit,
                                        .params = &w->setup.params,
                                        .retain_done = 20};
    if (stk_store_open(dir->path, 0, store, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    cfg.store = *store;
    if (stk_live_open(&cfg, live, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    return 0;
}

/* ---- requests ---- */

static void on_submitted(void *ctx, int status, json_t *take)
{
    struct world *w = ctx;
    json_int_t id = json_integer_value(json_object_get(take, "id"));
    json_int_t n = json_integer_value(json_object_get(take, "count"));

    w->answered++;
    MUST(status == 201 || status == 507 || status == 422);
    w->refused += status == 507;
    MUST(status != 507 || strlen(json_string_value(
                              json_object_get(json_object_get(take, "error"), "message"))) > 10);
    if (status == 201 && (stk_job_number)(id + n - 1) > w->known)
        w->known = (stk_job_number)(id + n - 1);
    json_decref(take);
}

static void on_acted(void *ctx, int status, json_t *take)
{
    struct world *w = ctx;

    w->answered++;
    w->refused += status == 507;
    json_decref(take);
}

static json_t *describe(struct world *w)
{
    struct stk_rng *r = &w->rng;
    json_t *job = json_pack("{s:[s], s:i, s:s}", "command", "/bin/true", "gpus",
                            (int)stk_rng_below(r, GPUS + 1), "workdir", "/");

    if (stk_rng_below(r, 4) == 0)
        (void)json_object_set_new(job, "array",
                                  json_pack("{s:i,s:i,s:i}", "first", 0, "last",
                                            (int)stk_rng_below(r, 5), "limit",
                                            1 + (int)stk_rng_below(r, 3)));
    if (w->known > 0 && stk_rng_below(r, 4) == 0)
        (void)json_object_set_new(job, "depends",
                                  json_pack("[{s:s,s:i}]", "type",
                                            stk_rng_below(r, 2) ? "afterok" : "afterany", "job",
                                            1 + (int)stk_rng_below(r, w->known)));
    if (stk_rng_below(r, 5) == 0)
        (void)json_object_set_new(job, "hold", json_true());
    if (stk_rng_below(r, 4) == 0)
        (void)json_object_set_new(job, "retry", json_pack("{s:i}", "error", 2));
    if (stk_rng_below(r, 4) == 0)
        (void)json_object_set_new(job, "tier", json_string("critical"));
    return job;
}

static void ask(struct world *w)
{
    static const char *const verbs[] = {"cancel", "hold", "release", "requeue", "update"};
    struct stk_asker by = {{.uid = getuid(), .role = STK_ROLE_ADMIN, .user = "me"}, NULL, w};

    w->asked++;
    if (stk_rng_below(&w->rng, 3) > 0 || w->known == 0) {
        json_t *jobs = json_array();
        uint32_t n = 1 + (uint32_t)stk_rng_below(&w->rng, 4);

        for (uint32_t i = 0; i < n; i++)
            (void)json_array_append_new(jobs, describe(w));
        by.reply = on_submitted;
        MUST(stk_live_submit(w->live, &by, &(struct stk_many){.list = jobs, .n = n}, NULL, false) ==
             0);
    } else {
        stk_job_number number = 1 + (stk_job_number)stk_rng_below(&w->rng, w->known);

        by.reply = on_acted;
        MUST(stk_live_act(w->live, &by, verbs[stk_rng_below(&w->rng, 5)], &number, 1,
                          json_pack("{s:i,s:i,s:s}", "priority", (int)stk_rng_below(&w->rng, 1000),
                                    "time_limit_s", (int)stk_rng_below(&w->rng, 100), "name",
                                    "again")) == 0);
    }
}

/* ---- what must hold ---- */

static int count_one(void *ctx, const struct stk_record *rec)
{
    (void)rec;
    ++*(uint32_t *)ctx;
    return 0;
}

/* The folder as kill -9 would leave it. */
static void check_copy(struct world *w)
{
    struct toy blind = {.base = {.ops = &blind_ops}, .rng = &w->rng};
    struct stk_store *store = NULL;
    struct stk_live *live = NULL;
    char command[400];
    uint32_t n = 0;

    fx_dir_make(&w->copy);
    (void)snprintf(command, sizeof(command), "cp %s/stoker.* %s/", w->dir.path, w->copy.path);
    MUST(system(command) == 0); /* NOLINT(cert-env33-c): our own words */
    MUST(open_live(w, &w->copy, &blind.base, &store, &live) == 0);
    MUST(stk_core_digest(stk_live_core(live)) == stk_core_digest(stk_live_core(w->live)));
    MUST(stk_live_count(live) == stk_live_count(w->live));
    for (stk_job_number i = 1; i <= w->known; i++)
        MUST(stk_store_job_get(store, i, count_one, &n, NULL) == 0);
    MUST(n == w->known);
    stk_live_close(live);
    stk_store_close(store);
    fx_dir_remove(&w->copy);
}

/* Files may not grow beyond what the largest has now, or may again. */
static void set_trouble(const struct world *w, bool on)
{
    struct rlimit l = {RLIM_INFINITY, RLIM_INFINITY};
    char path[200];
    struct stat st;

    (void)snprintf(path, sizeof(path), "%s/stoker.db-wal", w->dir.path);
    if (on && stat(path, &st) == 0)
        l.rlim_cur = (rlim_t)st.st_size;
    MUST(setrlimit(RLIMIT_FSIZE, &l) == 0);
}

static void turn(struct world *w, bool trouble)
{
    struct stk_err err = {""};
    uint32_t n = 0;
    int rc;

    set_trouble(w, trouble);
    do /* what takes long goes on with the next slice, or is taken by the next turn */
        rc = stk_live_turn(w->live, &err);
    while (rc == 0 && (stk_live_is_open(w->live) || w->asked != w->answered));
    set_trouble(w, false);
    if (rc < 0 && !trouble)
        (void)fprintf(stderr, "%s\n", err.text);
    MUST(rc == 0 || (trouble && rc != -ENOTRECOVERABLE));
    MUST(w->asked == w->answered);
    /* what was refused has not happened */
    MUST(stk_store_job_get(w->store, w->known + 1, count_one, &n, NULL) == -ENOENT);
}

static void reopen(struct world *w)
{
    uint64_t before = stk_core_digest(stk_live_core(w->live));

    stk_live_close(w->live);
    stk_store_close(w->store);
    MUST(open_live(w, &w->dir, &w->toy.base, &w->store, &w->live) == 0);
    MUST(before == stk_core_digest(stk_live_core(w->live)));
}

static uint32_t run(void)
{
    struct world *w = calloc(1, sizeof(*w));
    struct stk_err err = {""};
    uint32_t refused;

    stk_rng_init(&w->rng, seed);
    w->slice_ns = seed % 2; /* in every other world every request takes several slices */
    w->now = 1000 * STK_SECOND;
    w->node = (struct stk_node_spec){.gpus = GPUS};
    w->toy = (struct toy){.base = {.ops = &toy_ops}, .rng = &w->rng};
    stk_config_init(&w->config);
    MUST(stk_config_setup(&w->config, &w->setup, &err) == 0);
    fx_dir_make(&w->dir);
    MUST(open_live(w, &w->dir, &w->toy.base, &w->store, &w->live) == 0);
    for (int i = 0; i < 150; i++) {
        w->now += (stk_time)stk_rng_below(&w->rng, 3) * STK_SECOND;
        while (stk_rng_below(&w->rng, 2))
            ask(w);
        turn(w, stk_rng_below(&w->rng, 3) == 0);
        if (stk_rng_below(&w->rng, 10) == 0)
            check_copy(w);
        if (stk_rng_below(&w->rng, 20) == 0)
            reopen(w);
    }
    check_copy(w);
    refused = w->refused;
    stk_live_close(w->live);
    stk_store_close(w->store);
    stk_config_done(&w->config);
    fx_dir_remove(&w->dir);
    free(w);
    return refused;
}

int main(void)
{
    const char *runs = getenv("STOKER_RUNS"), *first = getenv("STOKER_SEED");
    uint64_t n = runs ? strtoull(runs, NULL, 10) : 20, from = first ? strtoull(first, NULL, 10) : 1;
    uint32_t refused = 0;

    (void)signal(SIGXFSZ, SIG_IGN);
    for (seed = from; seed < from + n; seed++)
        refused += run();
    MUST(n < 5 || refused > 0); /* else nothing was tried */
    (void)printf("%llu worlds, %u requests refused for want of room\n", (unsigned long long)n,
                 refused);
    return 0;
}
