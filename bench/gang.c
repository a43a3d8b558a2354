/* SPDX-License-Identifier: Apache-2.0 */
/* gang.c - how long it takes to find a place for a gang that must lie in one rack, or in one zone.
 *
 *     bench_gang NODES DECISIONS     prints one line of JSON
 *
 * Nodes of 8 GPUs in racks of 32, zones of 64 racks. Gangs of 8 to 64 GPUs (tasks of 1, 2, 4 or 8)
 * come, each inside one rack, and go by chance, so that 80 to 90% of the GPUs are in use; now and
 * then one of 1,024 GPUs inside one zone. Timed: decide(), which finds the place, and the PLACE
 * event applied. The same question is put, at times, to a plain program: it looks at every rack,
 * adds up what its nodes could take, and keeps the tightest that has room; it knows nothing but one
 * byte per node, which lie side by side. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "core/core.h"
#include "core/state.h"
#include "policy/registry.h"
#include "sys/big.h"

#define GPUS 8
#define RACK 32
#define ZONE 64 /* racks */
#define BIG 1024
#define EVERY 16 /* decisions: the plain program is asked */

static double now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

struct series {
    double *us;
    uint32_t n;
};

struct bench {
    struct stk_core *core;
    const struct stk_state *s;
    struct stk_rng rng;
    uint32_t nodes;
    uint32_t *running, n_running;
    stk_time now;
    uint8_t *free;
    struct series decide[2], place[2], failed[2], plain[2]; /* in one rack, in one zone */
};

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_gang: %s\n", what);
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double at(struct series *s, double part)
{
    if (s->n == 0)
        return 0;
    qsort(s->us, s->n, sizeof(*s->us), by_value);
    return s->us[(uint32_t)(part * (s->n - 1))];
}

static void add(struct series *s, double us)
{
    s->us[s->n++] = us;
}

static void apply(struct bench *b, const struct stk_event *ev)
{
    struct stk_err err;

    if (stk_core_apply(b->core, ev, &err) < 0)
        die(err.text);
}

/* The plain program: the tightest place, and its nodes. Returns a number so that it is not left
 * out. */
static uint64_t plain_scan(const struct bench *b, uint32_t tasks, uint32_t gpus, uint32_t size)
{
    uint32_t best = UINT32_MAX, best_room = UINT32_MAX, left = tasks;
    uint64_t sum = 0;

    for (uint32_t from = 0; from < b->nodes; from += size) {
        uint32_t room = 0;

        for (uint32_t i = from; i < from + size && i < b->nodes; i++)
            room += b->free[i] / gpus;
        if (room >= tasks && room < best_room) {
            best = from;
            best_room = room;
        }
    }
    if (best == UINT32_MAX)
        return 0;
    for (uint32_t f = GPUS; f >= gpus && left > 0; f--)
        for (uint32_t i = best; i < best + size && i < b->nodes && left > 0; i++) {
            uint32_t n = b->free[i] == f ? f / gpus : 0;

            n = n < left ? n : left;
            left -= n;
            sum += n ? i : 0;
        }
    return sum + 1;
}

static void ask_plain(struct bench *b, uint32_t tasks, uint32_t gpus, bool big)
{
    static volatile uint64_t keep;
    double from;

    for (uint32_t i = 0; i < b->nodes; i++)
        b->free[i] = (uint8_t)b->s->nodes[i].gpus_free;
    from = now_us();
    keep = plain_scan(b, tasks, gpus, big ? RACK * ZONE : RACK);
    add(&b->plain[big], now_us() - from);
    (void)keep;
}

static void end_one(struct bench *b)
{
    uint32_t i = (uint32_t)stk_rng_below(&b->rng, b->n_running), job = b->running[i];
    const struct stk_event ev = {.at = b->now,
                                 .type = STK_EV_EXITED,
                                 .job = {job},
                                 .lease = b->s->jobs[job].lease,
                                 .u.exit = {.cause = STK_CAUSE_OK}};

    apply(b, &ev);
    b->running[i] = b->running[--b->n_running];
}

static void start_one(struct bench *b, bool big, bool count)
{
    uint32_t gpus = UINT32_C(1) << stk_rng_below(&b->rng, 4);
    uint32_t all = big ? BIG : 8 * (1 + (uint32_t)stk_rng_below(&b->rng, 8));
    uint32_t job = stk_core_next_job(b->core).i, n;
    struct stk_job_spec spec = {.kind = STK_KIND_TRAIN,
                                .tier = STK_TIER_STANDARD,
                                .estimate = STK_SECOND,
                                .demand = {.tasks = all / gpus,
                                           .gpus = gpus,
                                           .gpu_types = STK_ANY_GPU_TYPE,
                                           .level_required = big ? STK_AT_ZONE : STK_AT_RACK}};
    const struct stk_event submit = {
        .at = b->now, .type = STK_EV_SUBMIT, .job = {job}, .u.spec = &spec};
    const struct stk_event cancel = {.at = b->now, .type = STK_EV_CANCEL, .job = {job}};
    struct stk_event out;
    double t0, t1, t2;

    if (count && (b->place[big].n + b->failed[big].n) % EVERY == 0)
        ask_plain(b, all / gpus, gpus, big);
    apply(b, &submit);
    t0 = now_us();
    n = stk_core_decide(b->core, b->now, &out, 1);
    t1 = now_us();
    if (n == 0) {
        if (count)
            add(&b->failed[big], t1 - t0);
        apply(b, &cancel);
        return;
    }
    apply(b, &out);
    t2 = now_us();
    if (count) {
        add(&b->decide[big], t1 - t0);
        add(&b->place[big], t2 - t0);
    }
    b->running[b->n_running++] = job;
}

static void init(struct bench *b, uint32_t nodes, uint32_t decisions)
{
    struct stk_node_spec *specs = calloc(nodes, sizeof(*specs));
    struct stk_core_config cfg = {.nodes = specs,
                                  .n_nodes = nodes,
                                  .n_pools = 1,
                                  .order = stk_order_find("fifo"),
                                  .backfill = stk_backfill_find("skip"),
                                  .place = stk_place_find("pack"),
                                  .preempt = stk_preempt_find("none"),
                                  .admit = stk_admit_find("possible")};
    struct stk_params params = {0};
    struct stk_err err;

    *b = (struct bench){.nodes = nodes, .now = 1};
    cfg.params = &params;
    stk_rng_init(&b->rng, 7);
    b->running = calloc((size_t)nodes * GPUS, sizeof(*b->running));
    b->free = calloc(nodes, 1);
    if (!specs || !b->running || !b->free)
        die("out of memory");
    for (uint32_t i = 0; i < nodes; i++)
        specs[i] = (struct stk_node_spec){
            .gpus = GPUS, .rack = 1 + i / RACK, .zone = 1 + i / (RACK * ZONE), .region = 1};
    for (int k = 0; k < 2; k++)
        for (struct series **s = (struct series *[]){&b->decide[k], &b->place[k], &b->failed[k],
                                                     &b->plain[k], NULL};
             *s; s++)
            if (!((*s)->us = calloc(decisions + 1, sizeof(double))))
                die("out of memory");
    if (stk_core_new(&cfg, &stk_big_mem, &b->core, &err) < 0)
        die(err.text);
    b->s = stk_core_state(b->core);
    free(specs);
}

static void print(struct bench *b, double load)
{
    static const char *const name[] = {"rack_64", "zone_1024"};

    (void)printf("{\"nodes\": %u, \"load_pct\": %.1f", b->nodes, load);
    for (int k = 0; k < 2; k++)
        (void)printf(", \"%s\": {\"placed\": %u, \"median_us\": %.3f, \"p99_us\": %.3f, "
                     "\"decide_median_us\": %.3f, \"no_room\": %u, \"no_room_median_us\": %.3f, "
                     "\"plain_median_us\": %.3f}",
                     name[k], b->place[k].n, at(&b->place[k], 0.5), at(&b->place[k], 0.99),
                     at(&b->decide[k], 0.5), b->failed[k].n, at(&b->failed[k], 0.5),
                     at(&b->plain[k], 0.5));
    (void)printf("}\n");
}

int main(int argc, char **argv)
{
    uint32_t nodes = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000;
    uint32_t decisions = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 20000, done = 0,
             samples = 0;
    double load = 0;
    struct bench b;

    init(&b, nodes, decisions);
    while (done < decisions) {
        double used = 1 - (double)b.s->pools[0].gpus_free / (double)b.s->pools[0].gpus;
        bool warm = done > 0 || used > 0.85;

        b.now++;
        if (used > 0.80 && b.n_running && (used > 0.90 || stk_rng_below(&b.rng, 100) < 50)) {
            end_one(&b);
            continue;
        }
        start_one(&b, nodes > RACK * 8 && stk_rng_below(&b.rng, 100) < 4, warm);
        done += warm;
        samples += warm;
        load += warm ? used : 0;
    }
    print(&b, samples ? 100 * load / samples : 0);
    stk_core_free(b.core);
    return 0;
}
