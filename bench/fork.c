/* SPDX-License-Identifier: Apache-2.0 */
/* fork.c - how long a fork of a large core takes.
 *
 *     bench_fork NODES JOBS TIMES     prints one line of JSON
 *
 * Nodes of 8 GPUs, all in use, in racks of 32; the other jobs wait. 'fork' is stk_core_fork() into
 * memory that is new each time. The reference is what there was before: the state saved as bytes
 * and loaded into a fresh core. Both copies must have the digest of the original. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "core/core.h"
#include "core/save.h"
#include "core/state.h"
#include "policy/registry.h"
#include "sys/big.h"

#define GPUS 8

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_fork: %s\n", what);
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static struct stk_core *make(uint32_t nodes)
{
    struct stk_node_spec *specs = calloc(nodes, sizeof(*specs));
    struct stk_params params = {0};
    struct stk_core_config cfg = {.nodes = specs,
                                  .n_nodes = nodes,
                                  .n_pools = 1,
                                  .order = stk_order_find("priority"),
                                  .backfill = stk_backfill_find("easy"),
                                  .place = stk_place_find("pack"),
                                  .preempt = stk_preempt_find("tier"),
                                  .admit = stk_admit_find("possible"),
                                  .params = &params};
    struct stk_core *core = NULL;
    struct stk_err err;

    if (!specs)
        die("out of memory");
    for (uint32_t i = 0; i < nodes; i++)
        specs[i] = (struct stk_node_spec){.gpus = GPUS, .rack = 1 + i / 32};
    if (stk_core_new(&cfg, &stk_big_mem, &core, &err) < 0)
        die(err.text);
    free(specs);
    return core;
}

static void apply(struct stk_core *core, const struct stk_event *ev)
{
    struct stk_err err;

    if (stk_core_apply(core, ev, &err) < 0)
        die(err.text);
}

/* Jobs of 1 to 8 GPUs: as many run as there is room for. */
static void fill(struct stk_core *core, uint32_t jobs)
{
    struct stk_rng rng;
    struct stk_event out[256];
    uint32_t n;

    stk_rng_init(&rng, 7);
    for (uint32_t i = 0; i < jobs; i++) {
        struct stk_job_spec spec = {.kind = STK_KIND_TRAIN,
                                    .tier = STK_TIER_STANDARD,
                                    .estimate =
                                        (1 + (stk_time)stk_rng_below(&rng, 86400)) * STK_SECOND,
                                    .demand = {.tasks = 1,
                                               .gpus = UINT32_C(1) << stk_rng_below(&rng, 4),
                                               .gpu_types = STK_ANY_GPU_TYPE}};

        apply(core,
              &(struct stk_event){
                  .at = 1, .type = STK_EV_SUBMIT, .job = stk_core_next_job(core), .u.spec = &spec});
    }
    while ((n = stk_core_decide(core, 1, out, 256)) > 0)
        for (uint32_t i = 0; i < n; i++)
            apply(core, &out[i]);
}

static double fork_once(const struct stk_core *core)
{
    double from = now_ms(), took;
    struct stk_core *fork = NULL;

    if (stk_core_fork(core, &fork, NULL) < 0)
        die("no fork");
    took = now_ms() - from;
    if (stk_core_digest(fork) != stk_core_digest(core))
        die("the fork has another digest");
    stk_core_free(fork);
    return took;
}

static double load_once(const struct stk_core *core, uint32_t nodes)
{
    double from = now_ms(), took;
    struct stk_bytes bytes = {.mem = &stk_big_mem};
    struct stk_core *fresh = make(nodes);

    if (stk_core_save(core, &bytes, NULL) < 0 ||
        stk_core_load(fresh, bytes.data, bytes.n, NULL) < 0)
        die("not saved and loaded");
    took = now_ms() - from;
    if (stk_core_digest(fresh) != stk_core_digest(core))
        die("the loaded core has another digest");
    stk_core_free(fresh);
    stk_bytes_done(&bytes);
    return took;
}

int main(int argc, char **argv)
{
    uint32_t nodes = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000;
    uint32_t jobs = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 100000;
    uint32_t times = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 21;
    double *fork_ms = calloc(times + 1, sizeof(double)),
           *load_ms = calloc(times + 1, sizeof(double));
    struct stk_core *core = make(nodes);
    const struct stk_state *s = stk_core_state(core);

    if (!fork_ms || !load_ms)
        die("out of memory");
    fill(core, jobs);
    for (uint32_t i = 0; i < times; i++) {
        fork_ms[i] = fork_once(core);
        load_ms[i] = load_once(core, nodes);
    }
    qsort(fork_ms, times, sizeof(double), by_value);
    qsort(load_ms, times, sizeof(double), by_value);
    (void)printf(
        "{\"nodes\": %u, \"jobs\": %u, \"running\": %u, \"waiting\": %u, "
        "\"fork_median_ms\": %.3f, \"fork_worst_ms\": %.3f, \"save_load_median_ms\": %.3f}\n",
        nodes, jobs, s->n_leased, s->n_waiting, fork_ms[times / 2], fork_ms[times ? times - 1 : 0],
        load_ms[times / 2]);
    stk_core_free(core);
    free(fork_ms);
    free(load_ms);
    return 0;
}
