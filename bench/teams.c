/* SPDX-License-Identifier: Apache-2.0 */
/* teams.c - how long decide() takes after one event, where many teams share a large cluster.
 *
 *     bench_teams NODES WAITING EVENTS     prints one line of JSON
 *
 * Nodes of 8 GPUs, all in use by jobs of 50 teams with guarantees, limits and weights; so many jobs
 * wait. Then events one after the other: a job ends, or a new one comes, in turn. What is decided
 * after each is timed and done: decide() until it has nothing more, without what applying takes.
 *
 * The reference is a plain pass over all waiting jobs in rank order and, for each that is within
 * its team's limit, over all nodes until one has room: what a scheduler does that works in cycles
 * and keeps no indexes. It decides nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "core/core.h"
#include "core/state.h"
#include "drive/setup.h"
#include "sys/big.h"

#define GPUS 8
#define TEAMS 50
#define BATCH 256
#define PASSES 5

struct bench {
    struct stk_core *core;
    const struct stk_state *s;
    struct stk_setup setup;
    struct stk_rng rng;
    stk_time now;
    uint64_t decisions, evictions;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_teams: %s\n", what);
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void apply(struct bench *b, const struct stk_event *ev)
{
    struct stk_err err;

    if (stk_core_apply(b->core, ev, &err) < 0)
        die(err.text);
}

/* The k-th team has 1/k of the first one's guarantee, as bench/teams has it. */
static void fill_teams(struct stk_tenant_spec *teams, char names[TEAMS + 1][16], uint32_t nodes)
{
    double sum = 0, share;

    for (uint32_t k = 1; k <= TEAMS; k++)
        sum += 1.0 / k;
    share = nodes * (double)GPUS * 0.8 / sum;
    stk_tenant_spec_init(&teams[0], "default", STK_NONE);
    for (uint32_t k = 1; k <= TEAMS; k++) {
        (void)snprintf(names[k], sizeof(names[k]), "team-%u", k);
        stk_tenant_spec_init(&teams[k], names[k], STK_NONE);
        teams[k].guarantee = (uint64_t)(share / k) * 1000;
        teams[k].limit = ((uint64_t)(share * 5 / k) + 64) * 1000;
        teams[k].weight = (1 + k % 3) * STK_WEIGHT;
    }
}

static void make(struct bench *b, uint32_t nodes)
{
    static struct stk_tenant_spec teams[TEAMS + 1];
    static char names[TEAMS + 1][16];
    struct stk_node_spec *specs = calloc(nodes, sizeof(*specs));
    const struct stk_setup_words words = {.bundle = "default", .tenants = true};
    struct stk_core_config cfg = {.nodes = specs,
                                  .n_nodes = nodes,
                                  .n_pools = 1,
                                  .tenants = teams,
                                  .n_tenants = TEAMS + 1,
                                  .retain_done = 1};
    struct stk_err err;

    if (!specs || stk_setup_resolve(&words, &b->setup, &err) < 0)
        die("no policies, or no memory");
    for (uint32_t i = 0; i < nodes; i++)
        specs[i] = (struct stk_node_spec){.gpus = GPUS, .rack = 1 + i / 32};
    fill_teams(teams, names, nodes);
    cfg.order = b->setup.order;
    cfg.backfill = b->setup.backfill;
    cfg.place = b->setup.place;
    cfg.preempt = b->setup.preempt;
    cfg.admit = b->setup.admit;
    cfg.params = &b->setup.params;
    if (stk_core_new(&cfg, &stk_big_mem, &b->core, &err) < 0)
        die(err.text);
    b->s = stk_core_state(b->core);
    free(specs);
}

/* Most jobs are small; one in ten is a gang; one in ten is of a class that may evict others. */
static void submit(struct bench *b)
{
    uint64_t dice = stk_rng_below(&b->rng, 100), team = 1 + stk_rng_below(&b->rng, TEAMS);
    struct stk_job_spec spec = {
        .kind = STK_KIND_TRAIN,
        .tier = dice < 20 ? STK_TIER_BEST_EFFORT : STK_TIER_STANDARD,
        .priority = dice >= 90   ? 1000
                    : dice >= 30 ? 500
                                 : 100,
        .tenant = (uint32_t)(1 + stk_rng_below(&b->rng, team)), /* small numbers more often */
        .estimate = (60 + (stk_time)stk_rng_below(&b->rng, 86400)) * STK_SECOND,
        .demand = {.tasks = dice % 10 == 0 ? 4 : 1,
                   .gpus = UINT32_C(1) << stk_rng_below(&b->rng, 4),
                   .gpu_types = STK_ANY_GPU_TYPE}};

    apply(b, &(struct stk_event){.at = b->now,
                                 .type = STK_EV_SUBMIT,
                                 .job = stk_core_next_job(b->core),
                                 .u.spec = &spec});
}

static void exit_job(struct bench *b, uint32_t job, enum stk_cause cause)
{
    apply(b, &(struct stk_event){.at = b->now,
                                 .type = STK_EV_EXITED,
                                 .job = {job},
                                 .lease = b->s->jobs[job].lease,
                                 .u.exit = {.cause = cause}});
}

/* What decide() says is done at once; the time that deciding took. */
static double settle(struct bench *b)
{
    struct stk_event out[BATCH];
    double took = 0, from = now_ms();
    uint32_t n;

    while ((n = stk_core_decide(b->core, b->now, out, BATCH)) > 0) {
        took += now_ms() - from;
        b->decisions += n;
        for (uint32_t i = 0; i < n; i++)
            apply(b, &out[i]);
        for (uint32_t i = 0; i < n; i++)
            if (out[i].type == STK_EV_EVICT) {
                b->evictions++;
                exit_job(b, out[i].job.i, STK_CAUSE_EVICTED);
            }
        from = now_ms();
    }
    return took + now_ms() - from;
}

static void fill(struct bench *b, uint32_t waiting)
{
    while (b->s->n_waiting < waiting) {
        for (uint32_t i = 0; i < 500 && b->s->n_waiting < waiting; i++)
            submit(b);
        (void)settle(b);
    }
    b->decisions = b->evictions = 0;
}

static void one_event(struct bench *b, uint32_t i)
{
    uint32_t job = (uint32_t)stk_rng_below(&b->rng, b->s->n_jobs);

    b->now += STK_SECOND;
    if (i % 2 == 0) {
        submit(b);
        return;
    }
    while (!b->s->jobs[job].lease)
        job = (job + 1) % b->s->n_jobs;
    exit_job(b, job, STK_CAUSE_OK);
}

/* The reference; returns what it found so that it is not left out. */
static uint64_t pass(const struct stk_state *s)
{
    uint64_t found = 0;

    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const struct stk_job *j = &s->jobs[i];

        if (j->state != STK_JOB_WAITING)
            continue;
        for (uint32_t k = 0; k < s->n_nodes; k++)
            if (s->nodes[k].up && s->nodes[k].gpus_free >= s->shapes[j->shape].demand.gpus) {
                found += k;
                break;
            }
    }
    return found;
}

int main(int argc, char **argv)
{
    uint32_t nodes = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 5000;
    uint32_t waiting = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 10000;
    uint32_t events = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 3000;
    double *ms = calloc((size_t)events + 1, sizeof(*ms)), pass_ms, from;
    static struct bench b = {.now = STK_SECOND};
    uint64_t found = 0;
    char policies[200];

    if (!ms || nodes == 0 || events == 0)
        die("usage: bench_teams NODES WAITING EVENTS");
    stk_rng_init(&b.rng, 11);
    make(&b, nodes);
    fill(&b, waiting);
    for (uint32_t i = 0; i < events; i++) {
        one_event(&b, i);
        ms[i] = settle(&b);
    }
    from = now_ms();
    for (uint32_t i = 0; i < PASSES; i++)
        found += pass(b.s);
    pass_ms = (now_ms() - from) / PASSES;
    qsort(ms, events, sizeof(*ms), by_value);
    stk_setup_describe(&b.setup, policies, sizeof(policies));
    (void)printf(
        "{\"policies\": \"%s\", \"median_ms\": %.4f, \"p99_ms\": %.4f, \"worst_ms\": %.3f, "
        "\"waiting\": %u, \"decisions\": %llu, \"evictions\": %llu, \"pass_ms\": %.3f, "
        "\"found\": %llu}\n",
        policies, ms[events / 2], ms[events * 99 / 100], ms[events - 1], b.s->n_waiting,
        (unsigned long long)b.decisions, (unsigned long long)b.evictions, pass_ms,
        (unsigned long long)found);
    free(ms);
    stk_core_free(b.core);
    return 0;
}
