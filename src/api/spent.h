/* SPDX-License-Identifier: Apache-2.0 */
/* spent.h - what jobs have used: one job with a verdict, and a period added up. */
#ifndef STK_API_SPENT_H
#define STK_API_SPENT_H

#include "api/show.h"
#include "figures/figures.h"

/* ---- one job (efficiency.c) ---- */

#define STK_IDLE_BELOW 0.02 /* share of the time at work: below this a GPU is idle */
#define STK_POOR_BELOW 0.30 /* ... a job uses its GPUs poorly */
#define STK_JUDGE_AFTER 30  /* seconds that must have been measured for a verdict */

struct stk_spent_job {
    struct stk_job_figures f; /* in the period */
    double gpus, gpu_h;       /* that it has; allocated GPU-hours */
    double seen_s, util;      /* seconds measured; active share of them, -1: not known */
    double kwh, money;        /* -1: not known */
    double mem_mib, cpus;     /* the most on its GPUs; cores in use in the mean */
    uint32_t measured, idle;  /* GPUs that were measured; that did nothing */
};

/* A job in a period, which has begun and is over. 'bins' may be NULL. */
int stk_spent_job(struct stk_api *a, const struct stk_record *r, struct stk_period p,
                  struct stk_gpu_amounts *bins, struct stk_spent_job *ret, struct stk_err *err);
/* good, poor, idle, unknown; what to do about it, "" : nothing. */
const char *stk_spent_verdict(const struct stk_spent_job *j);
void stk_spent_advice(const struct stk_spent_job *j, char *buf, size_t size);
/* The member "efficiency" of a job. */
json_t *stk_spent_show(struct stk_api *a, const struct stk_spent_job *j);
/* ... nothing in lists without detail, without GPUs, or before its first start. */
void stk_spent_set(const struct stk_show *v, json_t *o, const struct stk_record *rec);
double stk_spent_money(const struct stk_api *a, double gpu_h, double kwh); /* -1: not known */
json_t *stk_spent_price(const struct stk_api *a); /* {"gpu_hour", "kwh", "currency"} */
json_t *stk_spent_number(double v);               /* null where it is negative */

/* ---- a period (spent.c) ---- */

enum stk_spent_by { STK_BY_TENANT, STK_BY_USER, STK_BY_QUEUE };
struct stk_look_for;

#define STK_SPENT_GROUPS 200u
#define STK_SPENT_TOP 10u
#define STK_SPENT_KINDS 2000u
#define STK_SPENT_TABLE 8192u
#define STK_SPENT_JOBS 1000000u /* that ended, the latest; more are not looked at */

struct stk_spent_group {
    char name[80];
    uint32_t jobs, failed;
    uint64_t starts, preemptions;
    stk_gpu_time allocated, measured, active; /* measured: of jobs whose activity was sampled */
    double kwh;
    stk_time waited, *wait; /* of jobs that started in the period: all together, and each */
    uint32_t n_wait, cap_wait, n_sorted;
};

struct stk_spent_kind { /* jobs of one user with one name: often the same again and again */
    char user[64], name[80];
    enum stk_job_kind kind;
    uint32_t jobs;
    stk_gpu_time measured, active;
    double gpus, idle_gpus, mem_mib; /* gpus, idle_gpus: of the last */
    stk_job_number last;
    int64_t spec; /* of the last */
};

struct stk_spent_row { /* a job that stands out */
    stk_job_number number;
    char name[80], user[64], tenant[80];
    double gpus, value;    /* seconds waited, or GPU-hours that were not active */
    stk_time began, ended; /* 0: it runs */
    struct stk_spent_job job;
};

struct stk_spent {
    stk_time since, until; /* as asked */
    struct stk_period p;   /* ... up to now */
    struct stk_capacity_figures capacity;
    struct stk_gpu_amounts bins;
    enum stk_spent_by by;
    struct stk_spent_group all, *group;
    uint32_t n_groups;
    struct stk_spent_kind *kind;
    uint32_t n_kinds, table[STK_SPENT_TABLE];
    struct stk_spent_row wait[STK_SPENT_TOP], waste[STK_SPENT_TOP];
    uint32_t n_wait, n_waste;
    struct stk_spent_row biggest[STK_SPENT_TOP]; /* by GPU-hours */
    uint32_t n_biggest;
    bool truncated;
    uint32_t n_jobs;
};

/* With the capacity of the period. */
int stk_spent_new(struct stk_api *a, const struct stk_look_for *what, struct stk_spent **ret,
                  struct stk_err *err);
void stk_spent_free(struct stk_spent *s);
/* One more job; counts when it had a lease in the period or ended in it. */
int stk_spent_add(struct stk_spent *s, struct stk_api *a, const struct stk_record *r,
                  struct stk_err *err);
/* Seconds waited, of those that started; -1: none did. Sorts. */
double stk_spent_wait(struct stk_spent_group *g, uint32_t per_mille);
json_t *stk_spent_show_group(const struct stk_api *a, struct stk_spent_group *g);

/* ---- when (usage.c) ---- */

struct stk_spent_cell { /* GPU-hours */
    double gpus, allocated, active;
    double hours;
};

struct stk_spent_heat {
    struct stk_spent_cell cell[7][24]; /* Monday first, local time */
    double kwh;                        /* < 0, as it is at first: not measured */
};
/* Adds the energy that was measured from 'since' on, which ends with a quarter of an hour, up to
 * 'until', in pieces that take a few milliseconds. Returns where the piece ends; < 0: it failed. */
stk_time stk_spent_energy(struct stk_api *a, const struct stk_spent *s, struct stk_period p,
                          struct stk_spent_heat *io, struct stk_err *err);
/* The cells, from the intervals, once all jobs are in. */
void stk_spent_cells(struct stk_spent *s, struct stk_spent_heat *io);

/* summary.c: the cluster in the period. */
json_t *stk_spent_show_whole(const struct stk_api *a, const struct stk_spent *s,
                             const struct stk_spent_heat *h);
/* advise.c: [{"kind", "text", "evidence", "gpu_hours", "money", "jobs"}] */
json_t *stk_spent_advise(const struct stk_api *a, const struct stk_spent *s,
                         const struct stk_spent_heat *h);

/* ---- looking (look.c) ---- */

struct stk_look;
struct stk_look_for {
    stk_time since, until;
    enum stk_spent_by by;
    uint32_t days; /* > 0: up to now, and an answer that is a little old will do */
    /* What is answered; a new reference. */
    json_t *(*show)(struct stk_api *a, struct stk_spent *s, const struct stk_spent_heat *h);
};
/* Answers the request when the period was looked at, a slice at a time. */
void stk_look(struct stk_api *a, struct stk_request *r, const struct stk_look_for *what);

#endif
