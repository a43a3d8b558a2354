/* SPDX-License-Identifier: Apache-2.0 */
/* spent.h - what jobs have used: one job with a verdict, and a period added up. */
#ifndef STK_API_SPENT_H
#define STK_API_SPENT_H

#include "api/show.h"

/* ---- one job (efficiency.c) ---- */

#define STK_IDLE_BELOW 0.02 /* share of the time at work: below this a GPU is idle */
#define STK_POOR_BELOW 0.30 /* ... a job uses its GPUs poorly */
#define STK_JUDGE_AFTER 30  /* seconds that must have been measured for a verdict */

struct stk_spent_job {
    double gpus, gpu_h;      /* that it has; GPU-hours, as booked */
    double seen_s, util;     /* measured for so long; share of the time at work, -1: not known */
    double kwh, money;       /* -1: not known */
    double mem_mib, cpus;    /* the most on its GPUs; cores in use in the mean */
    uint32_t measured, idle; /* GPUs that were measured; that did nothing */
};

/* 'run' is the time it ran, 'gpus' with parts as parts. */
void stk_spent_job(struct stk_api *a, stk_job_number number, double gpus, stk_time run,
                   struct stk_spent_job *ret);
/* good, poor, idle, unknown; what to do about it, "" : nothing. */
const char *stk_spent_verdict(const struct stk_spent_job *j);
void stk_spent_advice(const struct stk_spent_job *j, char *buf, size_t size);
/* The member "efficiency" of a job. */
json_t *stk_spent_show(struct stk_api *a, const struct stk_spent_job *j);
/* ... of one that has run for so long; nothing in lists without detail, or without GPUs. */
void stk_spent_set(const struct stk_show *v, json_t *o, const struct stk_record *rec, stk_time run);
double stk_spent_money(const struct stk_api *a, double gpu_h, double kwh); /* -1: not known */
json_t *stk_spent_price(const struct stk_api *a); /* {"gpu_hour", "kwh", "currency"} */
json_t *stk_spent_number(double v);               /* null where it is negative */

/* ---- a period (spent.c) ---- */

enum stk_spent_by { STK_BY_TENANT, STK_BY_USER, STK_BY_QUEUE };

#define STK_SPENT_GROUPS 200u
#define STK_SPENT_TOP 10u
#define STK_SPENT_KINDS 2000u
#define STK_SPENT_TABLE 8192u
#define STK_SPENT_JOBS 50000u /* that ended, the latest; more are not looked at */

struct stk_spent_group {
    char name[80];
    uint32_t jobs, failed, preemptions;
    double gpu_h, measured_h,
        active_h; /* measured: GPU-hours of which is known how many were used */
    double kwh;
    float *wait; /* seconds of those that started */
    uint32_t n_wait, cap_wait, n_sorted;
};

struct stk_spent_kind { /* jobs of one user with one name: often the same again and again */
    char user[64], name[80];
    enum stk_job_kind kind;
    uint32_t jobs;
    double gpus, gpu_h, measured_h, active_h, idle_gpus, mem_mib; /* gpus, idle_gpus: of the last */
    stk_job_number last;
    int64_t spec; /* of the last */
};

struct stk_spent_row { /* a job that stands out */
    stk_job_number number;
    char name[80], user[64], tenant[80];
    double gpus, value;    /* seconds waited, or GPU-hours that were not used */
    stk_time began, ended; /* 0: it runs */
    struct stk_spent_job job;
};

struct stk_spent {
    stk_time since, until;
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

struct stk_spent *stk_spent_new(stk_time since, stk_time until, enum stk_spent_by by); /* or NULL */
void stk_spent_free(struct stk_spent *s);
/* One more job, which has run for so long. */
void stk_spent_add(struct stk_spent *s, struct stk_api *a, const struct stk_record *r,
                   stk_time run);
/* Of those that started; -1: none did. Sorts. */
double stk_spent_wait(struct stk_spent_group *g, double share);
json_t *stk_spent_show_group(const struct stk_api *a, struct stk_spent_group *g);

/* ---- when (usage.c) ---- */

struct stk_spent_cell {
    double gpus, allocated, active;
    uint32_t n; /* quarters of an hour */
};

struct stk_spent_heat {
    struct stk_spent_cell cell[7][24]; /* Monday first, local time */
    struct stk_spent_cell all;
    double hours;   /* measured */
    double kwh;     /* < 0, as it is at first: not measured */
    double gpus;    /* at the end */
    double waiting; /* jobs, mean */
};
/* Adds what was measured from 'since' on, which ends with a quarter of an hour, up to 'until': so
 * much that it takes a few milliseconds at most. Where it ends; < 0: it failed. */
stk_time stk_spent_heat(struct stk_api *a, stk_time since, stk_time until,
                        struct stk_spent_heat *io, struct stk_err *err);

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
