/* SPDX-License-Identifier: Apache-2.0 */
/* prop_promise.c - promised starts are kept, whatever comes, tried on random worlds.
 *
 * With easy backfill the first job that cannot start is promised a start, with conservative
 * backfill every waiting job is. After each turn it is looked at what has become of the promises
 * made so far.
 *
 * - A promise moves later, or passes unkept, only with an excuse: since it was made some job of the
 *   pool has outrun its estimate, GPUs were lost or set aside, a job with a better rank came, or an
 *   operator let a job that runs run longer. That another job has started is none, nor that a user
 *   let a job run longer: that is done only where it delays nobody (core/delay.h). Where estimates
 * are right and nothing of that happens there is never an excuse.
 * - What a reservation will need and lacks does not become more by starts: nobody who is expected
 * to run into its time takes GPUs that it needs.
 * - Estimates that were outrun grow, some fifty times at most: nothing goes on for ever, and every
 *   job ends.
 *
 * STOKER_RUNS (default 200) worlds from STOKER_SEED (default 1) on; one that fails prints its seed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/booking.h"
#include "core/delay.h"
#include "lib/fixture.h"
#include "lib/prop.h"

#define MAX_JOBS 512
#define MAX_NODES 5
#define NEVER STK_NEVER_TIME

struct promises {
    bool sure;             /* nobody behind the first is planned by a guess */
    bool all;              /* every waiting job has one */
    bool fragments;        /* a plan by counting GPUs may fail to find nodes */
    stk_time at[MAX_JOBS]; /* by slot; NEVER: none */
    /* of jobs that had GPUs at the last turn: estimate (-1: it had none) and expected end */
    stk_time estimate[MAX_JOBS], end[MAX_JOBS];
    uint32_t upto; /* of the journal */
    uint64_t lacks[STK_MAX_BOOKINGS];
    uint32_t lacks_of[STK_MAX_BOOKINGS]; /* number of the reservation */
    uint32_t n_lacks;
    bool longer; /* an operator let a job run longer since the last turn */
    /* so far, to see that something is tested */
    uint64_t made, moved, excused, windows, extended, refused;
};

static bool has_gpus(const struct stk_job *j)
{
    return j->state == STK_JOB_PLACED || j->state == STK_JOB_RUNNING;
}

/* Whether some job takes or took longer than was expected of it, or its estimate has grown. */
static bool outran(const struct fx *f, struct promises *p)
{
    bool some = false;

    for (uint32_t i = 0; i < f->s->n_jobs; i++) {
        const struct stk_job *j = fx_of(f, i);

        some |= has_gpus(j) && j->expected_end <= f->now;
        some |= p->estimate[i] >= 0 && (p->end[i] < f->now || j->estimate > p->estimate[i]);
        p->estimate[i] = has_gpus(j) ? j->estimate : -1;
        p->end[i] = j->expected_end;
    }
    return some;
}

/* Since the last turn GPUs were lost or set aside, or stay with somebody who was told to go. */
static bool lost(const struct fx *f, const struct promises *p)
{
    for (uint32_t i = p->upto; i < f->n_log; i++) {
        const enum stk_event_type t = f->log[i].ev.type;

        if (t == STK_EV_NODE_DOWN || t == STK_EV_RESERVE)
            return true;
    }
    return false;
}

/* Since the last turn a job came that stands before this one. */
static bool better_came(const struct fx *f, const struct promises *p, const struct stk_job *j)
{
    for (uint32_t i = p->upto; i < f->n_log; i++)
        if (f->log[i].ev.type == STK_EV_SUBMIT && f->log[i].spec.priority > j->priority)
            return true;
    return false;
}

/* What it is promised now; NEVER: nothing. */
static stk_time promise_of(const struct fx *f, const struct promises *p, uint32_t job)
{
    const struct stk_pool *pool = &f->s->pools[0];

    if (p->all)
        return pool->plan_valid ? fx_of(f, job)->planned : NEVER;
    return pool->resv_job == job ? pool->resv_at : NEVER;
}

static void check_job(const struct fx *f, struct promises *p, uint32_t job, bool excuse)
{
    const struct stk_job *j = fx_of(f, job);
    const stk_time was = p->at[job];
    stk_time is;

    if (j->state != STK_JOB_WAITING) {
        p->at[job] = NEVER;
        return;
    }
    is = promise_of(f, p, job);
    excuse |= better_came(f, p, j) || f->s->pools[0].plan_sure != p->sure;
    p->excused += was != NEVER && excuse;
    if (was != NEVER && !excuse) {
        fx_must(is == NEVER || is <= was || is == f->now + 1,
                "at %lld: job %u was promised %lld and now %lld, and there is no excuse",
                (long long)f->now, j->number, (long long)was, (long long)is);
        fx_must(f->now <= was, "at %lld: job %u was promised %lld and waits", (long long)f->now,
                j->number, (long long)was);
    }
    p->made += was == NEVER && is != NEVER;
    p->moved += was != NEVER && is != NEVER && is > was;
    if (is != NEVER || excuse)
        p->at[job] = is;
}

/* ---- reservations ---- */

/* What the reservation will lack at its start, if all leases end as expected. */
static uint64_t lacks(const struct fx *f, const struct stk_booking *b)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < b->n; i++) {
        const struct stk_fence *at = &f->s->book.fence[b->first + i];
        uint64_t late = 0, has = f->s->nodes[at->node].up ? f->s->nodes[at->node].gpus : 0;

        for (uint32_t job = 0; job < f->s->n_jobs; job++) {
            const struct stk_job *j = fx_of(f, job);

            for (uint32_t k = 0; has_gpus(j) && j->expected_end > b->start && k < j->n_pieces; k++)
                if (f->s->pieces[j->first_piece + k].node.i == at->node)
                    late += f->s->pieces[j->first_piece + k].gpus;
        }
        sum += at->gpus + late > has ? at->gpus + late - has : 0;
    }
    return sum;
}

static void check_windows(const struct fx *f, struct promises *p, bool excuse)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < f->s->book.n; i++) {
        const struct stk_booking *b = &f->s->book.row[i];
        uint64_t now = lacks(f, b);

        if (b->open || b->start <= f->now)
            continue;
        for (uint32_t k = 0; k < p->n_lacks && !excuse; k++)
            fx_must(p->lacks_of[k] != b->number || now <= p->lacks[k],
                    "at %lld: reservation %u will lack %llu GPUs, not %llu", (long long)f->now,
                    b->number, (unsigned long long)now, (unsigned long long)p->lacks[k]);
        p->windows++;
        p->lacks[n] = now;
        p->lacks_of[n++] = b->number;
    }
    p->n_lacks = n;
}

static void check(struct fx *f, void *ctx)
{
    struct promises *p = ctx;
    const bool late = outran(f, p), excuse = lost(f, p) || late || p->longer;

    fx_sound(f);
    for (uint32_t i = 0; i < f->s->n_jobs; i++)
        check_job(f, p, i, excuse || p->fragments);
    check_windows(f, p, excuse);
    p->upto = f->n_log;
    p->longer = false;
    p->sure = f->s->pools[0].plan_sure;
}

/* ---- worlds ---- */

static char world[96]; /* for messages */

struct worlds {
    bool conservative, exact, windows, priority, nodes_fail, longer;
    struct stk_node_spec nodes[MAX_NODES];
    uint32_t n_nodes, gpus;
};

static uint32_t below(struct stk_rng *r, uint32_t n)
{
    return (uint32_t)stk_rng_below(r, n);
}

static void make(struct worlds *w, struct stk_rng *r)
{
    static const uint32_t sizes[] = {2, 4, 8};

    *w = (struct worlds){.conservative = below(r, 2)};
    w->exact = below(r, 2);
    w->windows = below(r, 2);
    w->priority = below(r, 3) == 0;
    w->nodes_fail = below(r, 3) == 0;
    w->longer = below(r, 2);
    /* a plan is one of GPUs that are counted: on one node these are the ones there are */
    w->n_nodes = w->conservative && below(r, 4) ? 1 : 1 + below(r, MAX_NODES);
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        w->nodes[i] = (struct stk_node_spec){.gpus = sizes[below(r, 3)]};
        w->gpus += w->nodes[i].gpus;
    }
}

/* How long it truly runs: what is expected, or something else. */
static void submit(const struct worlds *w, struct fx *f, struct stk_rng *r)
{
    struct stk_job_spec spec = fx_job(1 + below(r, below(r, 3) ? 4 : w->gpus), 1 + below(r, 60));
    uint32_t job;

    if (below(r, 4) == 0) {
        spec.demand.cut = false;
        spec.demand.tasks = 1 + below(r, 3);
        spec.demand.gpus = 1 + below(r, 2);
    }
    spec.priority = w->priority ? (int32_t)below(r, 3) : 0;
    if (!w->exact && below(r, 4)) {
        spec.terms.limit = spec.estimate * (1 + below(r, 8));
        spec.terms.limit = below(r, 4) ? spec.terms.limit : STK_MAX_DURATION;
    }
    job = stk_core_next_job(f->core).i;
    if (fx_try_submit(f, &spec) < 0 || w->exact)
        return;
    f->work[job].left = spec.estimate / 100 * (10 + below(r, 500));
    if (spec.terms.limit && f->work[job].left > spec.terms.limit)
        f->work[job].left = spec.terms.limit; /* it is stopped then */
}

/* Some job that runs; STK_NONE. */
static uint32_t running(const struct fx *f, struct stk_rng *r)
{
    const uint32_t from = below(r, f->s->n_jobs + 1);

    for (uint32_t i = 0; i < f->s->n_jobs; i++)
        if (fx_state(f, (from + i) % f->s->n_jobs) == STK_JOB_RUNNING)
            return (from + i) % f->s->n_jobs;
    return STK_NONE;
}

/* A job that runs may run for another time: its user's wish, or an operator's. */
static void change_limit(const struct worlds *w, struct fx *f, struct stk_rng *r)
{
    struct promises *p = f->ctx;
    const uint32_t job = running(f, r);
    const stk_time all = (stk_time)(1 + below(r, 90)) * STK_SECOND;
    const bool operators = below(r, 3) == 0 || !w->exact;
    struct stk_delay d = {0};
    const struct stk_job *j;

    if (job == STK_NONE)
        return;
    j = fx_of(f, job);
    if (j->started + all < f->now)
        return;
    if (!operators && all > j->estimate) {
        fx_must(stk_core_delays(f->core, f->now, &(struct stk_longer){{job}, j->estimate, all}, &d,
                                &f->err) == 0,
                "whom it delays: %s", f->err.text);
        p->refused += d.number || d.booking;
        p->extended += !d.number && !d.booking;
    }
    if (d.number || d.booking)
        return;
    p->longer |= operators;
    fx_must(fx_lasts(f, job, all) == 0, "its limit is changed: %s", f->err.text);
    p->estimate[job] = j->estimate;
    p->end[job] = j->expected_end;
}

static void act(const struct worlds *w, struct fx *f, struct stk_rng *r)
{
    uint32_t what = below(r, 100);
    int64_t now = f->now / STK_SECOND, start = now + 5 + below(r, 90),
            end = start + 5 + below(r, 60);

    if (w->windows && what < 6)
        (void)fx_reserve(f, fx_booking(1 + below(r, w->gpus), start, end));
    else if (w->nodes_fail && what < 9)
        (void)fx_node(f, below(r, w->n_nodes), below(r, 2));
    else if (!w->exact && what < 12)
        (void)fx_cancel(f, below(r, f->s->n_jobs + 1));
    else if (w->longer && what < 40)
        change_limit(w, f, r);
    else if (f->s->n_jobs < MAX_JOBS)
        submit(w, f, r);
}

static void run(uint64_t seed, struct promises *p)
{
    static const char *const places[] = {"pack", "first_fit", "spread"};
    struct worlds w;
    struct stk_rng r;
    struct fx *f;
    uint64_t places_made = 0, ticks = 0;
    uint32_t some;

    stk_rng_init(&r, seed);
    make(&w, &r);
    some = below(&r, 3);
    f = fx_new(&(struct fx_setup){.order = w.priority ? "priority" : "fifo",
                                  .backfill = w.conservative ? "conservative" : "easy",
                                  .place = places[some],
                                  .params = below(&r, 2) ? "backfill.patience_s=0" : "",
                                  .nodes = w.nodes,
                                  .n_nodes = w.n_nodes,
                                  .n_pools = 1,
                                  .seed = seed});
    (void)snprintf(
        world, sizeof(world), "%s%s%s%s%s%s, %u nodes,", w.conservative ? "conservative" : "easy",
        w.exact ? ", exact" : "", w.windows ? ", reservations" : "", w.priority ? ", priority" : "",
        w.nodes_fail ? ", nodes fail" : "", w.longer ? ", limits change" : "", w.n_nodes);
    for (uint32_t i = 0; i < MAX_JOBS; i++) {
        p->at[i] = NEVER;
        p->estimate[i] = -1;
    }
    p->upto = p->n_lacks = 0;
    p->all = w.conservative;
    p->fragments = w.conservative && w.n_nodes > 1;
    f->on_turn = check;
    f->ctx = p;
    for (int i = 0; i < 160; i++) {
        act(&w, f, &r);
        fx_turn(f);
        if (below(&r, 3) == 0)
            fx_run(f, f->now + (stk_time)below(&r, 30000000));
    }
    for (uint32_t i = 0; i < w.n_nodes; i++)
        (void)fx_node(f, i, true);
    fx_drain(f);
    for (uint32_t i = 0; i < f->s->n_jobs; i++)
        fx_must(fx_state(f, i) == STK_JOB_DONE, "job %u is %s for ever", fx_of(f, i)->number,
                stk_job_state_name(fx_state(f, i)));
    for (uint32_t i = 0; i < f->n_log; i++) {
        places_made += f->log[i].ev.type == STK_EV_PLACE;
        ticks += f->log[i].ev.type == STK_EV_TICK;
    }
    fx_must(ticks <= 64 * places_made + 4 * f->s->book.next, "%llu ticks for %llu leases",
            (unsigned long long)ticks, (unsigned long long)places_made);
    fx_finish(f);
}

/* ---- running them ---- */

int main(void)
{
    static struct promises p;
    uint64_t runs = prop_number("STOKER_RUNS", 200), seed = prop_number("STOKER_SEED", 1);

    prop_watch("prop_promise");
    prop_world = world;
    for (prop_seed = seed; prop_seed < seed + runs; prop_seed++)
        run(prop_seed, &p);
    (void)printf("%llu promises, %llu moved later with an excuse; %llu looks at reservations; "
                 "%llu jobs were let run longer, %llu were not\n",
                 (unsigned long long)p.made, (unsigned long long)p.moved,
                 (unsigned long long)p.windows, (unsigned long long)p.extended,
                 (unsigned long long)p.refused);
    fx_must(runs < 50 || (p.made > runs && p.moved > 0 && p.windows > runs &&
                          p.extended > runs / 4 && p.refused > runs / 4),
            "something is tested");
    return 0;
}
