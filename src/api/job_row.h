/* SPDX-License-Identifier: Apache-2.0 */
/* job_row.h - what job_row.c and job_detail.c share. */
#ifndef STK_API_JOB_ROW_H
#define STK_API_JOB_ROW_H

#include "api/show.h"

struct stk_job_row {
    const struct stk_show *v;
    const struct stk_record *rec;
    const struct stk_entry *e; /* NULL: it has ended */
    const struct stk_job *job; /* NULL: the core does not know it */
    uint32_t slot;             /* ... or STK_NONE */
    stk_time now;
    bool scheduled; /* it is a schedule: */
    stk_time next;  /* when it submits again, */
    stk_job_number last_job;
};

/* job_detail.c: what only those may see who may act on it, and what is read when it was asked for.
 */
void stk_job_row_private(const struct stk_job_row *r, struct stk_writer *w);

#endif
