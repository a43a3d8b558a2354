/* SPDX-License-Identifier: Apache-2.0 */
/* sequence.h - how full a cluster gets: jobs come one at a time in a given order, each is placed or
 * dropped at once, and nothing ever ends. The experiment of FGD (ATC 2023).
 *
 * A sequence file has three numbers (jobs, nodes, thousandths of GPUs in all), then the jobs of the
 * trace by index from 0, then the rank of each node: among equal nodes the lowest rank is taken.
 */
#ifndef STK_SIM_SEQUENCE_H
#define STK_SIM_SEQUENCE_H

#include <stdio.h>

#include "drive/setup.h"
#include "sim/cluster.h"

struct stk_sequence {
    uint32_t *jobs, *ranks;
    uint32_t n_jobs;
    uint32_t trace_jobs, n_nodes; /* what it must be for; set before it is read */
    const char *jobs_out; /* may be NULL: a CSV file, a row for each job with a place at the end */
};

/* A file, plain or .gz. 0, or -Exxx with a sentence. */
int stk_sequence_read(struct stk_sequence *q, const char *path, const struct stk_trace *t,
                      const struct stk_cluster *c, struct stk_err *err);
/* The same over a buffer, for tests and fuzzers: 'q' says what it must be for. */
int stk_sequence_parse(struct stk_sequence *q, const char *name, const char *data, size_t len,
                       struct stk_err *err);
void stk_sequence_done(struct stk_sequence *q);

struct stk_arrival { /* means over the arrivals of one percent of the cluster's GPUs */
    double alloc_pct,
        frag_pct; /* of all GPUs: given away; of no use to the jobs that usually come */
    uint32_t n;
};

#define STK_MAX_ARRIVAL_PCT 1000

struct stk_sequence_result {
    char place[64], policies[160];
    struct stk_arrival at[STK_MAX_ARRIVAL_PCT + 1];
    uint32_t n_at; /* percent asked for at the end, and one more */
    uint32_t placed, dropped;
    uint32_t migrations; /* running jobs that were moved to make room, and their GPUs */
    uint64_t migrated_gpus;
    uint64_t gpu_milli, used_milli;
    double frag_milli; /* at the end */
    double cpu_s;      /* deciding and applying */
};

int stk_sequence_run(const struct stk_trace *t, const struct stk_cluster *c,
                     const struct stk_setup *setup, const struct stk_sequence *q,
                     struct stk_sequence_result *ret, struct stk_err *err);

int stk_sequence_json(FILE *f, const struct stk_sequence_result *runs, uint32_t n,
                      struct stk_err *err);
void stk_sequence_table(FILE *f, const struct stk_sequence_result *runs, uint32_t n);

#endif
