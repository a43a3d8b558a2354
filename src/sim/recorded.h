/* SPDX-License-Identifier: Apache-2.0 */
/* recorded.h - what really happened, where a trace says how long its jobs waited: as the result of
 * a run, to be put beside simulated ones, and as a guess at the machines it happened on. */
#ifndef STK_SIM_RECORDED_H
#define STK_SIM_RECORDED_H

#include "sim/run.h"

#define STK_RECORDED_NAME "recorded"
#define STK_RECORDED_WORDS 2048 /* bytes that are enough for words of a cluster */

/* How many of its jobs say how long they waited. */
uint32_t stk_recorded_jobs(const struct stk_trace *t);

/* Its times are Unix times: the first job came after 2001. */
bool stk_trace_is_dated(const struct stk_trace *t);

/* What happened, as a result named "recorded", totals included. Preemptions, events and digest are
 * not known: 0. -EINVAL: no job says; -ENOMEM. */
int stk_recorded_run(const struct stk_trace *t, const struct stk_cluster *c,
                     const struct stk_run_options *o, struct stk_run_result *ret,
                     struct stk_err *err);

/* The smallest cluster on which it could have happened, as --cluster takes it: of each GPU type as
 * many GPUs as were in use at once, in nodes as large as the largest task. -EINVAL: no job says
 * when it ran; -ENOMEM. */
int stk_recorded_cluster(const struct stk_trace *t, char words[STK_RECORDED_WORDS],
                         struct stk_err *err);

#endif
