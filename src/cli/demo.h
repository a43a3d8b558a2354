/* SPDX-License-Identifier: Apache-2.0 */
/* demo.h - the day of "stoker demo": what is submitted when, and what must have come of it. */
#ifndef STK_CLI_DEMO_H
#define STK_CLI_DEMO_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define STK_DEMO_GPUS 8
#define STK_DEMO_JOBS 16 /* at most, arrays counted once */
#define STK_DEMO_LIMIT_S 115

struct stk_demo_job {
    double at; /* seconds after the beginning */
    const char *name;
    const char *spec;   /* JSON, without name and folder */
    const char *after;  /* "afterok:NAME", or NULL */
    const char *expect; /* how it must end */
    const char *says;   /* told when it is submitted */
};

extern const struct stk_demo_job stk_demo_day[]; /* ends with a NULL name */

struct stk_demo {
    uint32_t first[STK_DEMO_JOBS], count[STK_DEMO_JOBS]; /* as submitted; 0: not yet */
    json_t *jobs;       /* by number as text: the job as last seen */
    const char *folder; /* where the output is */
    bool overlap;       /* two jobs were seen on one GPU */
};

/* The index of a job of the day. */
int stk_demo_find(const char *name);
const json_t *stk_demo_job(const struct stk_demo *d, uint32_t number);

/* Prints a line for each thing that must be so; how many are not. */
int stk_demo_check(const struct stk_demo *d);

#endif
