/* SPDX-License-Identifier: Apache-2.0 */
/* prop_core.c - what must hold for every stream of events, tried on random ones.
 *
 * STOKER_RUNS (default 200) worlds from STOKER_SEED (default 1) on; one that fails prints its seed,
 * and STOKER_RUNS=1 STOKER_SEED=that repeats it alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fair.h"
#include "core/pair.h"
#include "core/place.h"
#include "core/settings.h"
#include "core/tenant.h"
#include "core/try.h"
#include "lib/prop.h"
#include "lib/world.h"
#include "policy/registry.h"

/* ---- any events, legal or not ---- */

static uint64_t hostile_run(uint64_t seed, bool checked)
{
    struct world w;
    struct stk_rng r;
    struct fx *f;
    uint64_t digest;

    world_make(&w, &r, seed);
    f = fx_new(&w.setup);
    for (int i = 0; i < 400; i++) {
        (void)world_hostile(&w, f, &r);
        if (checked)
            fx_sound(f);
        if (stk_rng_below(&r, 8) == 0) {
            f->now += (stk_time)stk_rng_below(&r, 3) * STK_SECOND;
            if (f->now <= STK_MAX_DURATION)
                (void)fx_decide(f);
            if (checked)
                fx_sound(f);
        }
    }
    if (checked)
        stk_core_free(fx_replay(f));
    digest = fx_digest(f);
    fx_free(f);
    return digest;
}

/* ---- a world with users, machines and an engine that takes its time ---- */

static void check_turn(struct fx *f, void *ctx)
{
    (void)ctx;
    fx_sound(f);
    world_within_limits(f);
}

static void live(const struct world *w, struct fx *f, struct stk_rng *r, uint32_t actions)
{
    for (uint32_t i = 0; i < actions; i++) {
        world_act(w, f, r);
        if (stk_rng_below(r, 3) == 0)
            fx_run(f, f->now + (stk_time)stk_rng_below(r, 6000000));
        fx_turn(f);
    }
}

static void all_ended(const struct fx *f, const struct world *w)
{
    for (uint32_t i = 0; i < f->s->n_jobs; i++)
        fx_must(fx_state(f, i) == STK_JOB_DONE || fx_state(f, i) == STK_JOB_NONE,
                "job %u is %s though nothing will ever happen (%s)", fx_of(f, i)->number,
                stk_job_state_name(fx_state(f, i)), world_name(w));
}

static uint64_t world_run(uint64_t seed, bool checked)
{
    struct world w;
    struct stk_rng r;
    struct fx *f;
    uint64_t digest;

    world_make(&w, &r, seed);
    f = fx_new(&w.setup);
    f->on_turn = checked ? check_turn : NULL;
    live(&w, f, &r, 150);
    world_calm(f);
    fx_drain(f);
    all_ended(f, &w);
    if (checked)
        stk_core_free(fx_replay(f));
    digest = fx_digest(f);
    fx_free(f);
    return digest;
}

/* ---- caches may be dropped: a core that only heard the events has nothing to add ---- */

static void nothing_overlooked(struct fx *f, void *ctx)
{
    const struct world *w = ctx;
    struct stk_core *fresh;
    struct stk_event out[4];
    uint32_t n;

    for (uint32_t p = 0; p < f->s->n_pools; p++)
        if (f->s->pools[p].n_stopping > 0)
            return; /* who waits for room that is on its way may have lost it to another by now */
    fresh = fx_replay(f);
    n = stk_core_decide(fresh, f->now, out, 4);
    fx_must(n == 0, "at %lld: %s of job %u was overlooked (%s)", (long long)f->now,
            n ? stk_event_type_name(out[0].type) : "", n ? fx_of(f, out[0].job.i)->number : 0,
            world_name(w));
    stk_core_free(fresh);
}

/* Whether the decision now depends on nothing but events up to now. Lucid decides once per instant,
 * on purpose; ranks that move with time are looked at when something happens; a promise made at one
 * time is another than the same made later, unless all goes as expected. */
static bool caches_comparable(struct world *w)
{
    const struct stk_backfill_ops *b = stk_backfill_find(w->setup.backfill);
    bool promises = b->reserve_one || b->reserve_all;

    w->setup.late_start = 0;
    w->setup.cap = 0; /* an answer in parts is another one where a pool is decided whole */
    w->setup.slow_stop = promises ? 0 : w->setup.slow_stop;
    w->exact = w->exact || promises;
    if (strstr(w->params, "defrag") || strstr(w->params, "drain"))
        return false; /* how many may move changes with time, and is looked at when something else
                         does; who has waited long is looked at now and then */
    if (stk_preempt_find(w->setup.preempt)->pass)
        return strcmp(w->setup.preempt, "lucid") != 0 && strstr(w->params, "las.thresholds");
    /* plans count GPUs and know no rounds: what else a job lacks when its time comes is luck; and a
     * promise is kept while its job is over a limit for some time */
    return !promises || (strcmp(w->setup.place, "count") == 0 && !w->cpu_jobs && !w->types &&
                         !w->resources && !w->limits && !w->queued && !strstr(w->params, "round"));
}

static void caches_run(uint64_t seed)
{
    struct world w;
    struct stk_rng r;
    struct fx *f;

    world_make(&w, &r, seed);
    if (!caches_comparable(&w))
        return;
    f = fx_new(&w.setup);
    f->on_turn = nothing_overlooked;
    f->ctx = &w;
    live(&w, f, &r, 60);
    fx_free(f);
}

/* ---- saved and loaded anywhere, nothing is lost ---- */

/* Any policies on the same nodes: all there is goes on from here. */
static void other_policies(struct fx *f, const struct stk_core *core, struct stk_rng *r)
{
    struct world w = {.exact = false};
    struct stk_core *other;
    struct stk_event out[16];
    struct stk_err err = {{0}};
    uint32_t n, sum = 0;

    world_policies(&w, r);
    if (stk_place_find(w.setup.place)->aggregate != stk_place_find(f->setup.place)->aggregate)
        w.setup.place = f->setup.place;
    w.setup.nodes = f->setup.nodes;
    w.setup.n_nodes = f->setup.n_nodes;
    w.setup.n_pools = f->setup.n_pools;
    w.setup.n_resources = f->setup.n_resources;
    w.setup.layouts = f->setup.layouts;
    w.setup.n_layouts = f->setup.n_layouts;
    other = fx_reload(f, core, &w.setup);
    while ((n = stk_core_decide(other, f->now, out, 16)) > 0 && sum < 1000) {
        for (uint32_t i = 0; i < n; i++, sum++)
            fx_must(stk_core_apply(other, &out[i], &err) == 0, "a proposal after loading: %s",
                    err.text);
        fx_must(stk_core_sound(other, &err), "sound: %s", err.text);
    }
    stk_core_free(other);
}

/* A dry run is refused when the submit is, and changes nothing. */
static void dry_run(const struct world *w, struct fx *f, struct stk_rng *r)
{
    struct stk_dep deps[4];
    const struct stk_job_spec spec = world_job(w, f, r, deps);
    uint64_t before = fx_digest(f);
    struct stk_try t;
    int rc;

    if (f->now > STK_MAX_DURATION)
        return;
    rc = stk_core_try(f->core, &spec, f->now, &t, &f->err);
    fx_must(fx_digest(f) == before, "asking changes nothing");
    fx_sound(f);
    fx_must(fx_try_submit(f, &spec) == rc, "submitting has the same result");
    fx_must(rc < 0 || t.answer != STK_TRY_LATER || t.at >= f->now, "later is later");
}

static void save_run(uint64_t seed, bool hostile)
{
    struct stk_core *some, *loaded;
    struct world w;
    struct stk_rng r;
    uint32_t upto;
    struct fx *f;

    world_make(&w, &r, seed);
    f = fx_new(&w.setup);
    if (hostile)
        for (int i = 0; i < 400; i++) {
            (void)world_hostile(&w, f, &r);
            if (i % 8 == 0 && f->now <= STK_MAX_DURATION)
                (void)fx_decide(f);
        }
    else
        live(&w, f, &r, 60);
    dry_run(&w, f, &r);
    upto = (uint32_t)stk_rng_below(&r, f->n_log + 1u);
    some = fx_replay_some(f, upto);
    loaded = fx_reload(f, some, NULL);
    fx_must(stk_core_digest(loaded) == stk_core_digest(some), "loading gives the same state");
    other_policies(f, some, &r);
    fx_replay_rest(f, loaded, upto);
    fx_must(stk_core_sound(loaded, &f->err), "sound: %s", f->err.text);
    stk_core_free(some);
    stk_core_free(loaded);
    fx_free(f);
}

/* ---- a fork goes on as the original would have ---- */

static void go_on_as_a_fork(struct fx *f, void *ctx)
{
    struct stk_rng *r = ctx;
    struct stk_core *fork;

    if (stk_rng_below(r, 4) > 0)
        return;
    fx_must(stk_core_fork(f->core, &fork, &f->err) == 0, "forked: %s", f->err.text);
    fx_must(stk_core_digest(fork) == fx_digest(f), "a fork has the same state");
    stk_core_free(f->core);
    f->core = fork;
    f->s = stk_core_state(fork);
    fx_sound(f);
}

/* The digest has every event in it, decisions too. */
static uint64_t fork_run(uint64_t seed, bool forks)
{
    struct world w;
    struct stk_rng r, when;
    struct fx *f;
    uint64_t digest;

    world_make(&w, &r, seed);
    stk_rng_init(&when, seed);
    f = fx_new(&w.setup);
    f->on_turn = forks ? go_on_as_a_fork : NULL;
    f->ctx = &when;
    live(&w, f, &r, 60);
    world_calm(f);
    fx_drain(f);
    digest = fx_digest(f);
    fx_free(f);
    return digest;
}

/* ---- settings change while jobs wait and run ---- */

/* Taken in under a limit that was larger, or when its pool had other nodes: it waits for that to
 * come back. */
static bool cancel_too_large(struct fx *f)
{
    bool some = false;

    for (uint32_t i = 0; i < f->s->n_jobs; i++) {
        const struct stk_job *j = fx_of(f, i);

        if (fx_state(f, i) != STK_JOB_WAITING ||
            (fx_why(f, i) != STK_WHY_LIMIT && fx_why(f, i) != STK_WHY_QUEUE &&
             stk_place_possible(f->s, &f->s->shapes[j->shape].demand, j->pool, NULL) == 0))
            continue;
        (void)fx_cancel(f, i);
        some = true;
    }
    return some;
}

/* One that was set, but for nodes that are on their way home; STK_NONE. */
static uint32_t some_set(const struct fx *f)
{
    const struct stk_settings *t = f->s->settings;

    for (uint32_t i = 0; i < t->n; i++)
        if (t->set[i].kind != STK_SET_POOL || t->set[i].value != t->nodes[t->set[i].row].pool.i)
            return i;
    return STK_NONE;
}

/* Values come and go; then they are as they were, and every job ends. */
static uint64_t settings_run(uint64_t seed, uint64_t *set)
{
    struct world w;
    struct stk_rng r;
    struct fx *f;
    uint64_t digest;

    world_make(&w, &r, seed);
    f = fx_new(&w.setup);
    f->on_turn = go_on_as_a_fork;
    f->ctx = &r;
    for (uint32_t i = 0; i < 12; i++) {
        struct stk_set e;
        uint64_t before;

        live(&w, f, &r, 8);
        world_set(f, &r, &e);
        before = fx_digest(f);
        if (fx_set(f, &e) == 0)
            (*set)++;
        else
            fx_must(fx_digest(f) == before, "a refused set changes nothing");
        fx_sound(f);
    }
    while (some_set(f) != STK_NONE) {
        struct stk_set e = f->s->settings->set[some_set(f)];

        if (stk_rng_below(&r, 3) == 0)
            e = f->s->settings->set[stk_rng_below(&r, f->s->settings->n)];
        e.clear = true;
        if (fx_set(f, &e) < 0) /* others stand against it */
            fx_must(f->s->settings->n > 1, "what was set can be cleared: %s", f->err.text);
    }
    world_calm(f);
    fx_drain(f);
    for (uint32_t i = 0; i < f->s->n_nodes; i++)
        fx_must(f->s->nodes[i].pool == w.nodes[i].pool.i, "node %u is where it was", i);
    while (cancel_too_large(f))
        fx_drain(f);
    all_ended(f, &w);
    stk_core_free(fx_replay(f));
    digest = fx_digest(f);
    fx_free(f);
    return digest;
}

/* ---- first come, first served ---- */

struct fifo_seen {
    stk_job_number last[4]; /* started, by pool */
    uint32_t upto;          /* of the journal */
};

static void check_fifo(struct fx *f, void *ctx)
{
    struct fifo_seen *seen = ctx;

    for (; seen->upto < f->n_log; seen->upto++) {
        const struct stk_event *ev = &f->log[seen->upto].ev;
        const struct stk_job *j;

        if (ev->type != STK_EV_PLACE)
            continue;
        j = &f->s->jobs[ev->job.i];
        fx_must(j->number > seen->last[j->pool], "job %u starts after job %u", j->number,
                seen->last[j->pool]);
        seen->last[j->pool] = j->number;
    }
}

static void fifo_run(uint64_t seed)
{
    struct fifo_seen seen = {{0}, 0};
    struct world w;
    struct stk_rng r;
    struct fx *f;

    world_make(&w, &r, seed);
    w.setup.order = "fifo";
    w.setup.backfill = "none";
    w.setup.preempt = "none";
    w.setup.params = "";
    w.setup.forget = false;
    w.setup.final_pct = 0;
    w.limits = w.queued = w.booked = false; /* who is over a limit, or has reserved, is passed by
                                               others */
    w.setup.n_tenants = w.setup.n_queues = 0;
    f = fx_new(&w.setup);
    f->on_turn = check_fifo;
    f->ctx = &seen;
    for (int i = 0; i < 60; i++) {
        struct stk_dep deps[4];
        struct stk_job_spec spec = world_job(&w, f, &r, deps);

        spec.n_deps = 0;
        spec.begin = 0;
        spec.held = false;
        memset(spec.retry, 0, sizeof(spec.retry));
        (void)fx_try_submit(f, &spec);
        if (stk_rng_below(&r, 4) == 0)
            (void)fx_cancel(f, (uint32_t)stk_rng_below(&r, f->s->n_jobs + 1u));
        fx_run(f, f->now + (stk_time)stk_rng_below(&r, 4000000));
        fx_turn(f);
    }
    fx_drain(f);
    all_ended(f, &w);
    fx_free(f);
}

/* ---- work conservation ---- */

static void nobody_idles(struct fx *f, void *ctx)
{
    (void)ctx;
    for (uint32_t p = 0; p < f->s->n_pools; p++)
        fx_must(f->s->pools[p].n_waiting == 0 || f->s->pools[p].gpus_free == 0,
                "pool %u: %u jobs of one GPU wait while %llu GPUs are free", p,
                f->s->pools[p].n_waiting, (unsigned long long)f->s->pools[p].gpus_free);
}

static void busy_run(uint64_t seed)
{
    static const char *const place[] = {"pack", "spread", "first_fit", "fgd", "gpupacking"};
    struct world w;
    struct stk_rng r;
    struct fx *f;

    world_make(&w, &r, seed);
    w.setup.place = "pack";
    world_cluster(&w, &r);
    for (uint32_t i = 0; i < w.setup.n_nodes; i++)
        w.nodes[i].cpu_milli = w.nodes[i].mem_mib = w.nodes[i].gpu_mem_mib = 0;
    world_no_mig(&w);
    world_plain(&w);
    world_no_topology(&w);
    w.types = w.cpu_jobs = w.parts = false;
    w.sets = false; /* who is confined to some nodes waits while others are free */
    w.setup.order = seed % 2 ? "fifo" : "sjf";
    w.setup.backfill = "skip";
    w.setup.place = place[seed % 5];
    w.setup.preempt = "none";
    w.setup.params = "";
    w.setup.sleep_pct = 0; /* who sleeps waits for its own GPUs */
    f = fx_new(&w.setup);
    f->on_turn = nobody_idles;
    for (int i = 0; i < 60; i++) {
        struct stk_job_spec spec = fx_job(1, 1 + (int64_t)stk_rng_below(&r, 9));

        spec.pool.i = (uint32_t)stk_rng_below(&r, w.setup.n_pools);
        (void)fx_try_submit(f, &spec);
        if (stk_rng_below(&r, 5) == 0)
            world_act(&w, f, &r);
        for (uint32_t k = 0; k < f->s->n_jobs; k++) /* only whole single GPUs in this world */
            if (fx_of(f, k)->gpus != 1 && fx_state(f, k) != STK_JOB_DONE)
                (void)fx_cancel(f, k);
        fx_run(f, f->now + (stk_time)stk_rng_below(&r, 1500000));
        fx_turn(f);
    }
    fx_free(f);
}

/* ---- nobody is slowed more than the policy or the job allows ---- */

struct bounds {
    double floor;
    bool unknown;
    uint64_t seen; /* instants at which two jobs shared */
};

/* The share of its speed that the table leaves 'a' beside 'b'; negative: not measured. */
static double keeps(const struct stk_demand *a, const struct stk_demand *b, uint32_t type)
{
    if (a->row == 0 || b->row == 0 ||
        !stk_speed_measured(&world_speeds, a->row - 1, b->row - 1, type))
        return -1;
    return stk_speed_beside(&world_speeds, a->row - 1, b->row - 1, type) /
           stk_speed_alone(&world_speeds, a->row - 1, type, false);
}

static void check_speeds(struct fx *f, void *ctx)
{
    struct bounds *k = ctx;

    fx_sound(f);
    for (uint32_t i = 0; i < f->s->n_jobs; i++) {
        const struct stk_job *j = fx_of(f, i);
        const struct stk_demand *a = &f->s->shapes[j->shape].demand, *b;
        uint32_t mate = j->lease ? stk_pair_mate(f->s, i) : STK_NONE;
        double v;

        if (mate == STK_NONE)
            continue;
        k->seen++;
        b = &f->s->shapes[fx_of(f, mate)->shape].demand;
        v = keeps(a, b, f->s->nodes[f->s->pieces[j->first_piece].node.i].gpu_type);
        fx_must(v >= 0 || (k->unknown && a->slo_milli == 0), "job %u shares unmeasured", j->number);
        fx_must(v < 0 || v >= k->floor, "job %u keeps %g of its speed", j->number, v);
        fx_must(v < 0 || v * 1000 >= a->slo_milli, "job %u keeps %g of its speed, its SLO is %u",
                j->number, v, a->slo_milli);
    }
}

static uint64_t share_run(uint64_t seed)
{
    static const char *const backfill[] = {"none", "skip", "easy", "conservative"};
    struct bounds k = {.floor = seed % 3 ? 0.6 : 0.45, .unknown = seed % 5 == 0};
    struct world w;
    struct stk_rng r;
    struct fx *f;

    world_make(&w, &r, seed);
    w.setup.place = "share";
    w.setup.order = seed % 2 ? "fifo" : "priority";
    w.setup.backfill = backfill[seed % 4];
    w.setup.preempt = seed % 2 || seed % 4 == 3 ? "none" : "tier";
    (void)snprintf(w.params, sizeof(w.params), "share.floor=%g share.unknown=%s share.all=%s",
                   k.floor, k.unknown ? "true" : "false", seed % 7 ? "false" : "true");
    w.setup.params = w.params;
    world_cluster(&w, &r);
    f = fx_new(&w.setup);
    f->on_turn = check_speeds;
    f->ctx = &k;
    live(&w, f, &r, 150);
    world_calm(f);
    fx_drain(f);
    all_ended(f, &w);
    fx_free(f);
    return k.seen;
}

/* ---- a power cap is never exceeded, and nobody starves under it ---- */

static void check_power(struct fx *f, void *ctx)
{
    uint64_t *tight = ctx;

    fx_sound(f);
    fx_must(f->s->cap_w == 0 || f->s->watts <= f->s->cap_w || f->s->n_on == 0,
            "%llu W under a cap of %llu (%s/%s/%s)", (unsigned long long)f->s->watts,
            (unsigned long long)f->s->cap_w, f->setup.order, f->setup.backfill, f->setup.preempt);
    for (uint32_t p = 0; p < f->s->n_pools; p++)
        *tight += f->s->pools[p].power_short;
}

static uint64_t energy_run(uint64_t seed)
{
    static const char *const backfill[] = {"none", "skip", "easy", "conservative"};
    struct world w;
    struct stk_rng r;
    struct fx *f;
    uint64_t tight = 0;

    world_make(&w, &r, seed);
    w.setup.place = "energy";
    w.setup.order = seed % 3 == 0 ? "priority" : seed % 3 == 1 ? "fifo" : "srtf";
    w.setup.backfill = backfill[seed % 4];
    w.setup.preempt = seed % 4 == 3                   ? "none"
                      : seed % 3 == 0                 ? "tier"
                      : seed % 3 == 2 && seed % 4 < 2 ? "afresh"
                                                      : "none";
    w.params[0] = '\0';
    world_cluster(&w, &r);
    f = fx_new(&w.setup);
    f->on_turn = check_power;
    f->ctx = &tight;
    live(&w, f, &r, 150);
    world_calm(f);
    fx_drain(f);
    all_ended(f, &w);
    stk_core_free(fx_replay(f));
    fx_free(f);
    return tight;
}

/* ---- what is guaranteed can always be had ---- */

#define N_TEAMS 6

/* Jobs of whole nodes, so that nothing lies in fragments: nobody waits who is within a guarantee.
 */
static void check_guarantees(struct fx *f, void *ctx)
{
    struct stk_state *s = (struct stk_state *)(uintptr_t)f->s; /* caches only */
    uint64_t *reclaimed = ctx;

    fx_sound(f);
    world_within_limits(f);
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        *reclaimed += j->preemptions > 0;
        fx_must(j->state != STK_JOB_WAITING || stk_fair_types(s, j) == 0,
                "job %u of tenant %u waits within its guarantee (%s)", j->number, j->tenant,
                f->setup.params);
    }
}

static uint64_t guarantee_run(uint64_t seed)
{
    static const char *const params[] = {"", "reclaim.due=off", "reclaim.levels=tenant",
                                         "reclaim.levels=tenant reclaim.due=off"};
    static const char *const backfill[] = {"none", "skip", "easy"};
    static const char *const names[N_TEAMS] = {"t0", "t1", "t2", "t3", "t4", "t5"};
    struct stk_tenant_spec teams[N_TEAMS];
    struct stk_node_spec nodes[12];
    uint64_t reclaimed = 0, left = 12;
    struct stk_rng r;
    struct fx *f;
    bool tree;

    stk_rng_init(&r, seed);
    for (uint32_t i = 0; i < 12; i++)
        nodes[i] = (struct stk_node_spec){.gpus = 8};
    for (uint32_t i = 0; i < N_TEAMS; i++) {
        uint64_t own = stk_rng_below(&r, 4);

        stk_tenant_spec_init(&teams[i], names[i], STK_NONE);
        own = own < left ? own : left;
        left -= own;
        teams[i].guarantee = 8000 * own;
        teams[i].weight = (uint32_t)stk_rng_below(&r, 4) * 500;
    }
    tree = seed / 4 % 2 == 1;
    for (uint32_t i = 2; tree && i < 4; i++) { /* what is guaranteed above serves all below */
        teams[1].guarantee += teams[i].guarantee;
        teams[i].guarantee = i == 2 ? 0 : teams[i].guarantee;
        teams[i].parent = 1;
    }
    if (tree && seed / 8 % 2 == 1) { /* what relatives borrowed below a limit is taken back, too */
        const uint64_t least = teams[1].guarantee > 24000 ? teams[1].guarantee : 24000;

        teams[1].limit = least + 8000 * stk_rng_below(&r, 3);
    }
    f = fx_new(&(struct fx_setup){.order = seed % 2 ? "fifo" : "priority",
                                  .backfill = backfill[seed % 3],
                                  .preempt = "reclaim",
                                  .params = params[seed % 4],
                                  .nodes = nodes,
                                  .n_nodes = 12,
                                  .tenants = teams,
                                  .n_tenants = N_TEAMS,
                                  .seed = seed});
    f->on_turn = check_guarantees;
    f->ctx = &reclaimed;
    for (int i = 0; i < 120; i++) {
        const uint32_t gpus = 8 * (1 + (uint32_t)stk_rng_below(&r, 3));
        struct stk_job_spec spec = fx_job(gpus, 1 + (int64_t)stk_rng_below(&r, 60));

        spec.tenant = (uint32_t)stk_rng_below(&r, N_TEAMS);
        spec.tenant += tree && spec.tenant == 1; /* that one has others below it */
        if (seed % 2 == 0) { /* of jobs that ask for the same, the first is of the highest level */
            spec.tier = stk_rng_below(&r, 3) ? STK_TIER_STANDARD : STK_TIER_BEST_EFFORT;
            spec.priority = (int32_t)stk_rng_below(&r, 1000);
        }
        (void)fx_submit(f, spec);
        fx_turn(f);
        fx_run(f, f->now + (stk_time)stk_rng_below(&r, 4) * STK_SECOND);
    }
    fx_drain(f);
    fx_finish(f);
    return reclaimed;
}

/* ---- running them ---- */

int main(void)
{
    uint64_t runs = prop_number("STOKER_RUNS", 200), seed = prop_number("STOKER_SEED", 1),
             shared = 0, tight = 0, set = 0, reclaimed = 0;

    prop_watch("prop_core");
    for (prop_seed = seed; prop_seed < seed + runs; prop_seed++) {
        prop_world = "hostile";
        fx_must(hostile_run(prop_seed, true) == hostile_run(prop_seed, false),
                "same seed, same state");
        prop_world = "world";
        fx_must(world_run(prop_seed, true) == world_run(prop_seed, false), "same seed, same state");
        prop_world = "fifo";
        fifo_run(prop_seed);
        prop_world = "busy";
        busy_run(prop_seed);
        prop_world = "share";
        shared += share_run(prop_seed);
        prop_world = "energy";
        tight += energy_run(prop_seed);
        prop_world = "guarantee";
        reclaimed += guarantee_run(prop_seed);
        prop_world = "caches";
        caches_run(prop_seed);
        prop_world = "fork";
        fx_must(fork_run(prop_seed, true) == fork_run(prop_seed, false), "a fork decides the same");
        prop_world = "settings";
        fx_must(settings_run(prop_seed, &set) == settings_run(prop_seed, &set),
                "same seed, same state");
        prop_world = "save";
        save_run(prop_seed, prop_seed % 3 == 0);
    }
    fx_must(tight > 0 || runs < 50, "some power caps are reached");
    fx_must(set > 4 * runs, "values are set");
    fx_must(shared > 0 || runs < 50, "some jobs share");
    fx_must(reclaimed > 0 || runs < 50, "some guarantees are taken back");
    (void)printf("%llu worlds; two jobs shared GPUs at %llu instants\n", (unsigned long long)runs,
                 (unsigned long long)shared / 2);
    return 0;
}
