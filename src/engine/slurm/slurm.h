/* SPDX-License-Identifier: Apache-2.0 */
/* slurm.h - the engine that lets Slurm run the jobs. We decide which nodes and how many GPUs; Slurm
 * launches, limits and accounts. docs/spec/slurm-engine.md has how.
 *
 * libslurm is in stoker-libslurm, a program of its own, which we start and talk to over pipes. A
 * job of ours has our mark in its administrator's comment, so that it is found again whoever was
 * restarted.
 */
#ifndef STK_ENGINE_SLURM_SLURM_H
#define STK_ENGINE_SLURM_SLURM_H

#include <jansson.h>
#include <uv.h>

#include "engine/engine.h"

struct stk_slurm_config { /* strings are copied */
    uv_loop_t *loop;
    const char *program;           /* stoker-libslurm */
    const char *conf;              /* slurm.conf; NULL: Slurm's own */
    const char *mark;              /* of this stoker, in the comments of its jobs; no spaces */
    const char *const *partitions; /* that are ours to schedule on; NULL ends them */
    const char *rows;              /* file that keeps the nodes in order; NULL: none */
    const char *gpu_type;          /* of nodes whose GPUs have a type each; NULL: "gpu" */
    uint32_t start_ms;             /* Slurm starts what it was told to within; 0: 30 s */
    stk_time (*now)(void *ctx);    /* the scheduler's time, for events */
    stk_time (*ahead)(void *ctx);  /* by which that is ahead of the wall clock, which is Slurm's */
    /* When the job's processes started, by the scheduler's time; 0: not known. */
    stk_time (*began)(void *ctx, stk_job_number number);
    /* Optional from here on; all are called with 'ctx'. */
    void *ctx;
    void (*note)(void *ctx, stk_job_number number, const char *sentence);
    void (*log)(void *ctx, bool trouble, const char *line);
    /* GPUs of a node that cannot be used: it is drained, or others use them. 'shut': it takes no
     * job at all. Replaces what was said before. */
    void (*off)(void *ctx, uint32_t node, uint64_t mask, bool shut);
    /* The array a job belongs to, and which of its elements it is; false: none. */
    bool (*array)(void *ctx, stk_job_number number, stk_job_number *ret_array, uint32_t *ret_index);
    /* A job is sent to Slurm: "account", "qos" and "partition" (the pool) of 'o', as its
     * description has them, become words of Slurm's; the first two may be null. */
    void (*names)(void *ctx, stk_job_number number, json_t *o);
    /* The core still has this job. */
    bool (*lives)(void *ctx, stk_job_number number);
    /* It is this user's, as far as is known. */
    bool (*owns)(void *ctx, stk_job_number number, uint32_t uid);
    /* There are other nodes (stk_slurm_nodes()): the core is to have them, in the same places. */
    int (*changed)(void *ctx);
    /* Something that people should know of a job that goes on; NULL: no more. */
    void (*warn)(void *ctx, stk_job_number number, const char *sentence);
    /* Slurm is there; called every few seconds, so that whoever comes after us knows until when. */
    void (*contact)(void *ctx);
    int64_t contact_s; /* when it was last called in an earlier life, Unix; 0: never */
    /* A user's own job waits in one of the partitions: it is to become one of ours, once for 'key'.
     * stk_slurm_brought() is called with what came of it. NULL: they stay Slurm's. */
    void (*bring)(void *ctx, uint32_t uid, json_t *take_job, const char *key, json_t *take_made);
    /* Such jobs, while they wait: Slurm holds them, and why, or (NULL) no longer does; they ask for
     * something else (also, of any job that runs: time_limit_s alone, or nothing: it has none any
     * more); one is gone. */
    void (*hold)(void *ctx, const stk_job_number *numbers, uint32_t n, const char *why);
    void (*wishes)(void *ctx, const stk_job_number *numbers, uint32_t n, const json_t *wish);
    void (*gone)(void *ctx, stk_job_number number, const char *sentence);
    /* Some of them that wait may be gone: stk_slurm_has() is to be asked. */
    void (*missing)(void *ctx);
    /* Slurm did not start it: it is not to be tried before then, Unix time, and why; 0: it may be
     * tried now; -1: it runs. */
    void (*rest)(void *ctx, stk_job_number number, int64_t until, const char *sentence);
    /* The time limit of a job of ours, in seconds; 0: none. */
    int64_t (*limit)(void *ctx, stk_job_number number);
    /* Slurm's reservations are these: [{"name", "start", "end", "nodes"}]. */
    void (*booked)(void *ctx, const json_t *list);
    /* There are other accounts and QOS (stk_slurm_groups()); NULL: there is no slurmdbd, told once.
     */
    void (*groups)(void *ctx, const json_t *groups);
};

/* Accounts and QOS as accounting has them: {"accounts": [{"name", ...}], "qos": [...]}; borrowed.
 * NULL: there is no slurmdbd, or it has not been heard of. */
const json_t *stk_slurm_groups(const struct stk_engine *e);

/* Whether Slurm sees to it that users have only "associations" (accounts) or "qos" that are theirs,
 * and that jobs keep the "limits" of these. */
bool stk_slurm_enforces(const struct stk_engine *e, const char *what);
/* How long a job may run in a partition, in seconds; 0: as long as it likes. */
int64_t stk_slurm_longest(const struct stk_engine *e, const char *partition);

struct stk_slurm_node { /* in the order of the core's nodes */
    char *name;
    const char *gpu_type; /* "": Slurm says none */
    const char *features; /* "a,b" */
    const char *numbered; /* "g": its GPUs have types g0, g1, ...; NULL: they do not */
    uint32_t pool;        /* row of the partition that has given it its name */
    uint64_t in;          /* bits: rows of the configuration's partitions that have it */
    uint32_t gpus, cpus;
    uint64_t mem_mib;
    bool up;
    bool here; /* Slurm has it, in one of the partitions */
    bool odd;  /* Slurm says that it is otherwise, and it is not empty yet */
};

/* Starts the program and waits until it has told everything. -ETIMEDOUT, -ENOENT, -EINVAL: the
 * sentence says what to mend. */
int stk_engine_slurm_new(const struct stk_slurm_config *cfg, struct stk_engine **ret_engine,
                         struct stk_err *err);

/* Names, and the pool of each; they live as long as the engine. */
const char **stk_slurm_partitions(const struct stk_engine *e, uint32_t *ret_n);
/* The name of a partition of the past that is in slurm.partitions no more; NULL: the row is none.
 */
const char *stk_slurm_left_out(const struct stk_engine *e, uint32_t row);
const uint32_t *stk_slurm_pools(const struct stk_engine *e);
const struct stk_slurm_node *stk_slurm_nodes(const struct stk_engine *e, uint32_t *ret_n);

/* The core has all nodes. Tells again which nodes are not as the core has them, and which GPUs are
 * off. */
void stk_slurm_retell(struct stk_engine *e, bool (*was_up)(void *ctx, uint32_t node), void *ctx);

/* A user's own job, or an array, was taken in by an earlier life, as 'made'. Slurm may have
 * forgotten our mark on it since, and that it was put back. Before stk_slurm_has() is asked. Of an
 * array O(jobs that Slurm has started). */
void stk_slurm_know(struct stk_engine *e, stk_job_number first, const json_t *made);

/* The scheduler is open: users' own jobs may be brought. */
void stk_slurm_open(struct stk_engine *e);
/* What came of a job that was brought: its number, and how many elements it has; or a sentence that
 * says why it cannot be taken. */
void stk_slurm_brought(struct stk_engine *e, const json_t *made, stk_job_number first,
                       uint32_t count, const char *sentence);
/* Slurm still has this job, which was brought and waits. */
bool stk_slurm_has(struct stk_engine *e, stk_job_number number, const json_t *made);

/* What Slurm says of a job that it has: {"job", "state", "pieces", ...}; borrowed. NULL: nothing.
 */
const json_t *stk_slurm_of(const struct stk_engine *e, stk_job_number number);
int stk_slurm_signal(struct stk_engine *e, stk_job_number number, int sig);

/* numbers.c. Slurm's number of a job as squeue shows it: "1234", or "1234_5" of an array's element;
 * "": it has no record of its own there. */
const char *stk_slurm_number_text(const struct stk_engine *e, stk_job_number number, char *buf,
                                  size_t size);
/* Ours of Slurm's; of an array that of its first element. 0: it is not ours, or is forgotten. */
stk_job_number stk_slurm_number_find(const struct stk_engine *e, uint32_t slurm);

/* Whether such a description can be run here. -EOPNOTSUPP. */
int stk_slurm_check(const json_t *spec, struct stk_err *err);

#endif
