/* SPDX-License-Identifier: Apache-2.0 */
/* out_log.h - what happened to jobs, as it happens, a CSV row each: at_s, event (start, preempt,
 * end), id, and on a start the nodes with the GPUs there, "node:gpus" joined by spaces. So whoever
 * doubts a run can check it without asking the scheduler. It takes part in one run. */
#ifndef STK_SIM_OUT_LOG_H
#define STK_SIM_OUT_LOG_H

#include "sim/emit.h"
#include "sim/run.h"

struct stk_out_log {
    const struct stk_trace *t;
    const char *path;
    FILE *f;
    struct stk_emit e;
    struct stk_run_guest guest; /* for stk_run_options */
};

/* 'log' must stay where it is until it is closed. 0, or -Exxx with a sentence. */
int stk_out_log_open(struct stk_out_log *log, const char *path, const struct stk_trace *t,
                     struct stk_err *err);
int stk_out_log_close(struct stk_out_log *log, struct stk_err *err); /* also one never opened */

#endif
