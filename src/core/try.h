/* SPDX-License-Identifier: Apache-2.0 */
/* try.h - what would become of a job if it were submitted now.
 *
 * The same checks as for SUBMIT; then the job is submitted to a copy of the core, which decides,
 * and whose time goes on from expected end to expected end until the job starts. So the answer
 * counts the queue ahead of it, by the policies there are. It assumes that running jobs end when
 * they are expected to and end well, that those being stopped are gone at once, that nobody
 * submits or cancels anything, and that jobs which gave way start anew. A job that has outrun its
 * estimate, or has none, is not expected to end.
 *
 * Changes nothing. Costs O(all jobs), and the decisions until then: for a person's question.
 */
#ifndef STK_CORE_TRY_H
#define STK_CORE_TRY_H

#include "core/core.h"
#include "model/reason.h"

enum stk_try_answer {
    STK_TRY_NOW,     /* it would start at once, on 'pieces', when 'evicts' jobs have given way */
    STK_TRY_LATER,   /* expected to start 'at' */
    STK_TRY_UNKNOWN, /* it would wait, and when it starts cannot be foreseen */
    STK_TRY_NEVER    /* a dependency can no longer be met */
};

struct stk_try {
    enum stk_try_answer answer;
    stk_time at;                    /* NOW, LATER; else 0 */
    uint32_t evicts;                /* NOW: jobs that must give way first */
    const struct stk_piece *pieces; /* NOW: where; until the next call with this core */
    uint32_t n_pieces;
    struct stk_reason why; /* LATER, UNKNOWN: why it would not start at once */
};

/* 0, what SUBMIT would be refused with, or -ENOMEM. 'now' must not be before the latest event. */
int stk_core_try(struct stk_core *core, const struct stk_job_spec *spec, stk_time now,
                 struct stk_try *ret, struct stk_err *err);

#endif
