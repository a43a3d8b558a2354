/* SPDX-License-Identifier: Apache-2.0 */
/* inner.h - the Slurm engine's own parts. */
#ifndef STK_ENGINE_SLURM_INNER_H
#define STK_ENGINE_SLURM_INNER_H

#include "base/map.h"
#include "engine/slurm/slurm.h"

enum stk_slurm_where {
    STK_S_UNSENT, /* Slurm is to be told */
    STK_S_ASKED,  /* it was told, and has not answered */
    STK_S_SENT,   /* it has the job, and is to start it */
    STK_S_RUNNING,
    STK_S_ENDED /* EXITED was emitted */
};

struct stk_slurm;

struct stk_slurm_job { /* that has a lease */
    struct stk_slurm *m;
    stk_job_number number;
    stk_job_id id;
    stk_lease_id lease;
    enum stk_slurm_where where;
    struct stk_piece *pieces;
    uint32_t n_pieces, restarts;
    char *spec;
    uint32_t slurm; /* its number there; 0: none */
    bool told_started, stopping, requeued, lost_once;
    struct stk_stop stop;
    int64_t sent_at;    /* ms: when Slurm was told to start it */
    int64_t not_before; /* ms: when it may be */
    int64_t harder_at;  /* ms: it was warned, and is stopped then; 0: not */
    struct stk_slurm_job *next;
};

typedef void (*stk_slurm_answer_fn)(struct stk_slurm_job *j, const json_t *answer);

struct stk_slurm_ask { /* a request without an answer yet */
    uint32_t id;
    stk_job_number number; /* 0: of no job */
    stk_lease_id lease;
    stk_slurm_answer_fn fn;
};

struct stk_slurm {
    struct stk_engine base;
    struct stk_mem mem;
    struct stk_slurm_config cfg;
    char **own; /* strings of the configuration */
    uint32_t n_own;
    struct stk_slurm_node *nodes;
    uint64_t *off;      /* told, by node */
    const char **names; /* of the partitions; NULL ends them */
    uint32_t n_nodes, n_partitions;
    json_t *news;          /* of nodes, by name */
    json_t *partitions;    /* as told last */
    json_t *left;          /* ms, by our number: when it was stopped to make room */
    json_t *ours, *theirs; /* jobs in Slurm by our number, and others' that run, by Slurm's */
    struct stk_slurm_job *jobs;
    /* link.c */
    uv_process_t process;
    uv_pipe_t in, out;
    uv_timer_t tick;
    char *line;
    size_t n_line;
    uint32_t next_id, open_handles;
    struct stk_slurm_ask *asks;
    uint32_t n_asks, cap_asks;
    bool running, closing, ready, away, told_away;
    int64_t again_at, clean_at;
    char why[512]; /* why Slurm cannot be reached; "": it can */
};

int64_t stk_slurm_ms(void);
void stk_slurm_log(const struct stk_slurm *m, bool trouble, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- link.c ---- */

int stk_slurm_link_open(struct stk_slurm *m);
void stk_slurm_link_close(struct stk_slurm *m); /* frees m when all handles are closed */
/* 'fn' gets NULL for an answer when the program ended first. */
int stk_slurm_ask(struct stk_slurm *m, json_t *take_request, const struct stk_slurm_job *j,
                  stk_slurm_answer_fn fn);

/* ---- cluster.c ---- */

int stk_slurm_cluster_make(struct stk_slurm *m, struct stk_err *err);
void stk_slurm_cluster_news(struct stk_slurm *m, const json_t *message);
/* Tells the core what cannot be used: drained nodes, and GPUs that others' jobs have. */
void stk_slurm_cluster_off(struct stk_slurm *m);
uint32_t stk_slurm_find_node(const struct stk_slurm *m, const char *name); /* n_nodes: none */

/* ---- jobs.c: what Slurm says of jobs ---- */

void stk_slurm_jobs_news(struct stk_slurm *m, const json_t *message);
/* Takes in what is known of it already. */
void stk_slurm_job_look(struct stk_slurm *m, struct stk_slurm_job *j);
void stk_slurm_exited(struct stk_slurm *m, struct stk_slurm_job *j, enum stk_cause cause,
                      int32_t code, const char *sentence);
/* Our number of a job with our mark; 0: it is not ours. */
stk_job_number stk_slurm_number(const struct stk_slurm *m, const json_t *job);

/* ---- slurm.c ---- */

struct stk_slurm_job *stk_slurm_find(const struct stk_slurm *m, stk_job_number number);
void stk_slurm_send(struct stk_slurm *m, struct stk_slurm_job *j);
void stk_slurm_do_stop(struct stk_slurm *m, struct stk_slurm_job *j);
void stk_slurm_ticks(struct stk_slurm *m);

/* ---- script.c ---- */

/* The request that sends it to Slurm, without where it runs; NULL: cannot be made. */
json_t *stk_slurm_describe(const struct stk_slurm *m, const struct stk_slurm_job *j,
                           struct stk_err *err);

#endif
