/* SPDX-License-Identifier: Apache-2.0 */
/* trace_extra.h - what few jobs of a trace have: named resources, GPU types of unlike speed, and
 * terms. As JSON, for trace_jsonl.c and trace_write.c. */
#ifndef STK_SIM_TRACE_EXTRA_H
#define STK_SIM_TRACE_EXTRA_H

#include <jansson.h>

#include "sim/emit.h"
#include "sim/trace.h"
#include "sim/trace_lines.h"

/* "resources": {"nvme_gib": 100} */
int stk_extra_read_resources(struct stk_trace_lines *in, struct stk_trace *t, json_t *v,
                             struct stk_trace_extra *x);
/* "gpu_types": {"h100": 1, "a100": 0.5} */
int stk_extra_read_speeds(struct stk_trace_lines *in, struct stk_trace *t, json_t *v,
                          struct stk_trace_extra *x, uint64_t *ret_types);
/* Keeps it for the job, if there is something in it. 0 or -ENOMEM. */
int stk_extra_keep(struct stk_trace *t, const struct stk_trace_extra *x, struct stk_trace_job *j);

/* {"nvme_gib":100}; of a job that has some. */
void stk_extra_put_resources(struct stk_emit *e, const struct stk_trace *t,
                             const struct stk_trace_extra *x);
/* Speed on the trace's type of this number, in thousandths. */
uint32_t stk_extra_speed(const struct stk_trace_extra *x, uint32_t type);

#endif
