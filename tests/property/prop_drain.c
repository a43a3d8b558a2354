/* SPDX-License-Identifier: Apache-2.0 */
/* prop_drain.c - in random clusters that are always full of small jobs every gang that could run
 * starts, and by when: with GPUs kept free for one after the other, each that has waited long
 * enough is at most the longest expected and the longest real run away from its start. Estimates
 * are right, too short or missing; every backfill; some gangs must be in one rack. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/booking.h"
#include "core/drain.h"
#include "lib/prop.h"
#include "lib/world.h"

#define AFTER_S 600
#define LONGEST_S 400 /* run of a small job */
#define GANG_S 100
#define MOST_GANGS 4
#define NODES 8

struct steady {
    struct fx *f;
    struct stk_rng r;
    struct stk_node_spec nodes[NODES];
    char params[160];
    uint32_t gpus, most, guess; /* guess: percent of the run time that is estimated; 0: none */
    uint32_t gang[MOST_GANGS], n_gangs;
    uint64_t drains;
};

static uint32_t below(struct steady *w, uint32_t n)
{
    return (uint32_t)stk_rng_below(&w->r, n);
}

static void make(struct steady *w, uint64_t seed)
{
    static const char *const backfill[] = {"skip", "none", "easy", "conservative"};
    static const char *const place[] = {"pack", "spread", "first_fit", "stoker", "topology"};
    static const char *const order[] = {"fifo", "sjf", "ssf", "priority"};
    static const uint32_t guess[] = {100, 100, 60, 150, 0};
    struct fx_setup setup = {.n_nodes = 2, .seed = seed};

    memset(w, 0, sizeof(*w));
    stk_rng_init(&w->r, seed);
    setup.n_nodes += below(w, NODES - 1);
    w->most = 1 + below(w, 2);
    (void)snprintf(w->params, sizeof(w->params),
                   "drain.after_s=%d drain.limit_s=1000000 drain.most=%u", AFTER_S, w->most);
    for (uint32_t i = 0; i < setup.n_nodes; i++) {
        w->nodes[i] = (struct stk_node_spec){.gpus = 4u << below(w, 2)};
        w->nodes[i].rack = i / 3 + 1;
        w->gpus += w->nodes[i].gpus;
    }
    setup.nodes = w->nodes;
    setup.params = w->params;
    setup.backfill = backfill[below(w, 4)];
    setup.place = place[below(w, 5)];
    setup.order = order[below(w, 4)];
    setup.preempt = strcmp(setup.order, "priority") == 0 ? "tier" : "none";
    w->guess = guess[below(w, 5)];
    w->f = fx_new(&setup);
}

static uint32_t submit(struct steady *w, struct stk_job_spec spec, int64_t run_s)
{
    uint32_t job = stk_core_next_job(w->f->core).i;

    spec.estimate = run_s * STK_SECOND / 100 * w->guess;
    if (fx_try_submit(w->f, &spec) < 0)
        return STK_NONE;
    w->f->work[job].left = run_s * STK_SECOND;
    return job;
}

/* Small jobs wait at any time, twice as many GPUs as there are. */
static void keep_full(struct steady *w)
{
    const struct stk_state *s = w->f->s;
    uint64_t waiting = 0;

    for (uint32_t i = 0; i < s->n_jobs; i++)
        waiting +=
            s->jobs[i].state == STK_JOB_WAITING && s->jobs[i].gpus <= 2 ? s->jobs[i].gpus : 0;
    while (waiting < UINT64_C(2) * w->gpus) {
        const uint32_t gpus = 1 + below(w, 2);
        const int64_t run = 1 + below(w, LONGEST_S);

        fx_must(submit(w, fx_job(gpus, 1), run) != STK_NONE, "a small job comes in");
        waiting += gpus;
    }
}

static void add_gang(struct steady *w)
{
    struct stk_job_spec spec = fx_job(4, 1);
    uint32_t job;

    spec.demand.tasks = 1 + below(w, w->gpus / 4);
    if (below(w, 4) == 0)
        spec.demand.level_required = STK_AT_RACK;
    job = submit(w, spec, 1 + below(w, GANG_S));
    if (job != STK_NONE)
        w->gang[w->n_gangs++] = w->f->s->jobs[job].number;
}

/* Whoever else waits longer than a gang has its turn before it; 'most' at a time only make it
 * better. Small jobs of two GPUs may have turns, too: those that came before it. */
static stk_time bound(const struct steady *w)
{
    const stk_time each = (LONGEST_S + GANG_S) * (w->guess > 100 ? 150 : 100) / 100 + LONGEST_S;

    return (AFTER_S + AFTER_S / 16 + 10 + ((stk_time)w->n_gangs + 1) * each) * STK_SECOND;
}

static void check(struct steady *w)
{
    const struct stk_state *s = w->f->s;
    uint32_t drains = 0;

    fx_sound(w->f);
    for (uint32_t i = 0; i < s->book.n; i++)
        drains += s->book.row[i].drain;
    fx_must(drains <= w->most, "no more than drain.most");
    w->drains += drains;
    for (uint32_t i = 0; i < w->n_gangs; i++) {
        uint32_t job = stk_core_find(w->f->core, w->gang[i]);
        const struct stk_job *j = job == STK_NONE ? NULL : &s->jobs[job];

        if (j && j->state == STK_JOB_WAITING)
            fx_must(w->f->now - j->queued <= bound(w),
                    "gang %u of %u GPUs has waited %lld s (%s %s %s, %u%%)", j->number, j->gpus,
                    (long long)((w->f->now - j->queued) / STK_SECOND), w->f->setup.order,
                    w->f->setup.backfill, w->f->setup.place, w->guess);
    }
}

static uint64_t run(uint64_t seed)
{
    struct steady w;
    uint64_t drains;

    make(&w, seed);
    keep_full(&w);
    fx_turn(w.f);
    while (w.f->now < 6000 * STK_SECOND) {
        if (w.n_gangs < MOST_GANGS && below(&w, 6) == 0)
            add_gang(&w);
        keep_full(&w);
        fx_turn(w.f);
        fx_run(w.f, w.f->now + (stk_time)(1 + below(&w, 30)) * STK_SECOND);
        check(&w);
    }
    stk_core_free(fx_replay(w.f));
    drains = w.drains;
    fx_free(w.f);
    return drains;
}

int main(void)
{
    uint64_t runs = prop_number("STOKER_RUNS", 40), seed = prop_number("STOKER_SEED", 1),
             drains = 0;

    prop_watch("prop_drain");
    for (prop_seed = seed; prop_seed < seed + runs; prop_seed++)
        drains += run(prop_seed);
    fx_must(drains > 0 || runs < 10, "GPUs are kept free in some");
    (void)printf("%llu worlds, GPUs kept free at %llu instants\n", (unsigned long long)runs,
                 (unsigned long long)drains);
    return 0;
}
