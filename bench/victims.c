/* SPDX-License-Identifier: Apache-2.0 */
/* victims.c - how long it takes to find who gives way, and how cheap the set is.
 *
 *     bench_victims NODES JOBS SEARCHES     prints one line of JSON
 *
 * Nodes of 8 GPUs in racks of 32, filled with best-effort jobs of 1 to 8 GPUs and gangs of two to
 * four nodes; JOBS at most (0: until the cluster is full). What each would lose differs. Then jobs
 * of a higher tier ask for room: 1 GPU, 8 GPUs, 2 x 8 in one rack, 4 x 4 anywhere, 8 x 8 in one
 * rack. Each is asked for many times, with more time gone by. Two plain programs are asked the
 * same: all sets of candidates, where there are at most 16; and going in order, cheapest GPU first,
 * one after the other until the job fits, and back again whoever is not needed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "core/core.h"
#include "core/place.h"
#include "core/stake.h"
#include "core/state.h"
#include "core/txn.h"
#include "core/victims.h"
#include "policy/registry.h"
#include "sys/big.h"

#define GPUS 8
#define RACK 32
#define ALL_SETS 16
#define MOST 4096
#define N_KINDS 5

static const struct kind {
    const char *name;
    uint32_t tasks, gpus;
    uint8_t level;
} kinds[N_KINDS] = {{"1 GPU", 1, 1, 0},
                    {"8 GPUs", 1, 8, 0},
                    {"2 x 8 GPUs in one rack", 2, 8, STK_AT_RACK},
                    {"4 x 4 GPUs", 4, 4, 0},
                    {"8 x 8 GPUs in one rack", 8, 8, STK_AT_RACK}};

struct result {
    double *ours, *plain, *sets; /* microseconds */
    uint32_t n, n_sets, found, cheapest;
    double cost, cost_plain, cost_sets, cost_ours_sets; /* sums */
};

struct bench {
    struct stk_core *core;
    struct stk_state *s;
    struct stk_rng rng;
    stk_time now;
    uint32_t *who, n_who; /* candidates, cheapest GPU first */
};

static double now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_victims: %s\n", what);
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *us, uint32_t n)
{
    qsort(us, n, sizeof(*us), by_value);
    return n ? us[n / 2] : 0;
}

static uint32_t below(struct bench *b, uint32_t n)
{
    return (uint32_t)stk_rng_below(&b->rng, n);
}

static void apply(struct bench *b, const struct stk_event *ev)
{
    struct stk_err err;

    if (stk_core_apply(b->core, ev, &err) < 0)
        die(err.text);
}

/* ---- the world ---- */

static uint32_t submit(struct bench *b, const struct stk_job_spec *spec)
{
    const uint32_t job = stk_core_next_job(b->core).i;
    const struct stk_event ev = {.at = b->now, .type = STK_EV_SUBMIT, .job = {job}, .u.spec = spec};

    apply(b, &ev);
    return job;
}

static struct stk_job_spec spec_of(uint32_t tasks, uint32_t gpus, enum stk_tier tier)
{
    return (struct stk_job_spec){
        .kind = STK_KIND_TRAIN,
        .tier = tier,
        .estimate = 100000 * STK_SECOND,
        .demand = {.tasks = tasks, .gpus = gpus, .gpu_types = STK_ANY_GPU_TYPE}};
}

/* One more that runs; false: there is no room. */
static bool run_one(struct bench *b)
{
    const bool gang = below(b, 25) == 0;
    const uint32_t tasks = gang ? 2 + below(b, 3) : 1;
    const struct stk_job_spec spec =
        spec_of(tasks, gang ? GPUS : UINT32_C(1) << below(b, 4), STK_TIER_BEST_EFFORT);
    const uint32_t job = submit(b, &spec);
    struct stk_event out, ev = {.at = b->now, .job = {job}};

    if (stk_core_decide(b->core, b->now, &out, 1) == 0) {
        ev.type = STK_EV_CANCEL;
        apply(b, &ev);
        return false;
    }
    apply(b, &out);
    ev.type = STK_EV_STARTED;
    ev.lease = b->s->jobs[job].lease;
    apply(b, &ev);
    return true;
}

/* Many report a checkpoint, at any time within an hour. */
static void save_some(struct bench *b)
{
    const uint32_t n = b->s->n_jobs;

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t job = below(b, n);
        const struct stk_event ev = {
            .at = b->now, .type = STK_EV_CHECKPOINT, .job = {job}, .lease = b->s->jobs[job].lease};

        if (b->s->jobs[job].state == STK_JOB_RUNNING)
            apply(b, &ev);
        b->now += INT64_C(3600) * STK_SECOND / n;
    }
}

static void fill(struct bench *b, uint32_t jobs)
{
    uint32_t failed = 0, n = 0;

    while (failed < 20 && (jobs == 0 || n < jobs)) {
        const bool ran = run_one(b);

        n += ran;
        failed += !ran;
    }
    save_some(b);
}

/* ---- the question, three times ---- */

static int by_level(void *ctx, const struct stk_state *s, const struct stk_job *j,
                    const struct stk_job *v, uint64_t milli)
{
    (void)ctx;
    (void)s;
    (void)milli;
    return v->level < j->level ? v->level : STK_VICTIM_NEVER;
}

static double cost_of(const struct bench *b, uint32_t job)
{
    return (double)stk_stake_units(b->s, &b->s->jobs[job], b->now);
}

struct priced {
    double each; /* of its GPUs costs so much */
    uint32_t job;
};

/* Candidates, the cheapest GPU first. */
static void list(struct bench *b, uint32_t asks)
{
    struct priced *key = calloc(b->s->n_jobs + 1u, sizeof(*key));
    uint32_t n = 0;

    if (!key)
        die("out of memory");
    for (uint32_t i = 0; i < b->s->n_jobs; i++)
        if (i != asks && b->s->jobs[i].state == STK_JOB_RUNNING) {
            key[n].each = cost_of(b, i) / b->s->jobs[i].gpus;
            key[n++].job = i;
        }
    qsort(key, n, sizeof(*key), by_value); /* 'each' is the first member */
    for (uint32_t i = 0; i < n; i++)
        b->who[i] = key[i].job;
    b->n_who = n;
    free(key);
}

static bool fits(struct bench *b, uint32_t job)
{
    uint32_t n;

    return stk_place_try(b->s, b->s->jobs[job].shape, NULL, &n);
}

/* In order until it fits, and back whoever is not needed: what it costs; < 0: it never fits. */
static double plain(struct bench *b, uint32_t job)
{
    const stk_txn_mark mark = stk_txn_begin(b->s);
    double cost = 0;
    uint32_t n = 0;

    while (n < b->n_who && !fits(b, job))
        stk_txn_give_job(b->s, &b->s->jobs[b->who[n++]]);
    if (!fits(b, job)) {
        stk_txn_rollback(b->s, mark);
        return -1;
    }
    for (uint32_t i = n; i-- > 0;) {
        const stk_txn_mark one = stk_txn_begin(b->s);

        stk_txn_retake_job(b->s, &b->s->jobs[b->who[i]]);
        if (!fits(b, job)) {
            stk_txn_rollback(b->s, one);
            cost += cost_of(b, b->who[i]);
        }
    }
    stk_txn_rollback(b->s, mark);
    return cost;
}

/* All sets: the least that one costs. */
static double all_sets(struct bench *b, uint32_t job)
{
    double best = -1;

    for (uint32_t bits = 1; bits < UINT32_C(1) << b->n_who; bits++) {
        const stk_txn_mark mark = stk_txn_begin(b->s);
        double cost = 0;

        for (uint32_t i = 0; i < b->n_who; i++)
            cost += bits >> i & 1 ? cost_of(b, b->who[i]) : 0;
        if (best >= 0 && cost >= best)
            continue;
        for (uint32_t i = 0; i < b->n_who; i++)
            if (bits >> i & 1)
                stk_txn_give_job(b->s, &b->s->jobs[b->who[i]]);
        best = fits(b, job) ? cost : best;
        stk_txn_rollback(b->s, mark);
    }
    return best;
}

static void ask_all_sets(struct bench *b, struct result *r, uint32_t job, double ours)
{
    double t = now_us(), least;

    if (b->n_who > ALL_SETS || r->n_sets >= 20)
        return;
    least = all_sets(b, job);
    r->sets[r->n_sets++] = now_us() - t;
    r->cheapest += ours <= least * (1 + 1e-12);
    r->cost_sets += least;
    r->cost_ours_sets += ours;
}

static void ask(struct bench *b, struct result *r, uint32_t job)
{
    static const struct stk_victim_rule rule = {.class = by_level};
    static struct stk_event out[MOST];
    const struct stk_ask question = {.s = b->s, .now = b->now, .out = out, .cap = MOST};
    double t = now_us(), cost = 0, other;
    uint32_t n = stk_victims_room(&question, job, &rule);

    r->ours[r->n] = now_us() - t;
    for (uint32_t i = 0; i < n; i++)
        cost += cost_of(b, out[i].job.i);
    t = now_us();
    list(b, job);
    other = plain(b, job);
    r->plain[r->n++] = now_us() - t;
    if (n == 0)
        return;
    if (other < 0)
        die("a set where none does");
    r->found++;
    r->cost += cost;
    r->cost_plain += other;
    ask_all_sets(b, r, job, cost);
}

/* ---- */

static void init(struct bench *b, uint32_t nodes)
{
    struct stk_node_spec *specs = calloc(nodes, sizeof(*specs));
    struct stk_core_config cfg = {.nodes = specs,
                                  .n_nodes = nodes,
                                  .n_pools = 1,
                                  .order = stk_order_find("priority"),
                                  .backfill = stk_backfill_find("skip"),
                                  .place = stk_place_find("pack"),
                                  .preempt = stk_preempt_find("tier"),
                                  .admit = stk_admit_find("possible")};
    struct stk_params params = {0};
    struct stk_err err;

    *b = (struct bench){.now = STK_SECOND};
    cfg.params = &params;
    stk_rng_init(&b->rng, 7);
    b->who = calloc((size_t)nodes * GPUS + 1, sizeof(*b->who));
    if (!specs || !b->who)
        die("out of memory");
    for (uint32_t i = 0; i < nodes; i++)
        specs[i] = (struct stk_node_spec){.gpus = GPUS, .rack = 1 + i / RACK};
    if (stk_core_new(&cfg, &stk_big_mem, &b->core, &err) < 0)
        die(err.text);
    b->s = (struct stk_state *)(uintptr_t)stk_core_state(b->core);
    free(specs);
}

static void measure(struct bench *b, const struct kind *k, uint32_t searches, struct result *r)
{
    struct stk_job_spec spec = spec_of(k->tasks, k->gpus, STK_TIER_STANDARD);
    uint32_t job;

    spec.demand.level_required = k->level;
    if ((uint64_t)k->tasks * k->gpus > b->s->pools[0].gpus / 2)
        return;
    job = submit(b, &spec);
    for (uint32_t i = 0; i < searches && !fits(b, job); i++) {
        ask(b, r, job);
        b->now += 5 * STK_SECOND;
    }
    apply(b, &(struct stk_event){.at = b->now, .type = STK_EV_CANCEL, .job = {job}});
}

int main(int argc, char **argv)
{
    uint32_t nodes = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 6;
    uint32_t jobs = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 14;
    uint32_t searches = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 50;
    const char *sep = "";
    struct bench b;

    init(&b, nodes);
    fill(&b, jobs);
    list(&b, STK_NONE);
    (void)printf("{\"nodes\": %u, \"candidates\": %u, \"kinds\": [", nodes, b.n_who);
    for (uint32_t i = 0; i < N_KINDS; i++) {
        struct result r = {.ours = calloc(searches + 1, sizeof(double)),
                           .plain = calloc(searches + 1, sizeof(double)),
                           .sets = calloc(searches + 1, sizeof(double))};

        if (!r.ours || !r.plain || !r.sets)
            die("out of memory");
        measure(&b, &kinds[i], searches, &r);
        if (r.n > 0) {
            (void)printf(
                "%s{\"what\": \"%s\", \"searches\": %u, \"found\": %u, \"median_us\": %.2f, "
                "\"plain_us\": %.2f, \"cost_vs_plain\": %.4f, \"sets\": %u, \"sets_us\": "
                "%.1f, \"cheapest\": %u, \"cost_vs_cheapest\": %.4f}",
                sep, kinds[i].name, r.n, r.found, median(r.ours, r.n), median(r.plain, r.n),
                r.cost_plain > 0 ? r.cost / r.cost_plain : 1, r.n_sets, median(r.sets, r.n_sets),
                r.cheapest, r.cost_sets > 0 ? r.cost_ours_sets / r.cost_sets : 1);
            sep = ", ";
        }
        free(r.ours);
        free(r.plain);
        free(r.sets);
    }
    (void)printf("]}\n");
    stk_core_free(b.core);
    free(b.who);
    return 0;
}
