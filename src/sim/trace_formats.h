/* SPDX-License-Identifier: Apache-2.0 */
/* trace_formats.h - the formats that trace_formats.c lists; each is a file of its own. */
#ifndef STK_SIM_TRACE_FORMATS_H
#define STK_SIM_TRACE_FORMATS_H

#include "sim/trace.h"

extern const struct stk_trace_format stk_trace_philly;
extern const struct stk_trace_format stk_trace_venus;
extern const struct stk_trace_format stk_trace_openb;
extern const struct stk_trace_format stk_trace_blox;
extern const struct stk_trace_format stk_trace_gavel;
extern const struct stk_trace_format stk_trace_swf;
extern const struct stk_trace_format stk_trace_jsonl;
extern const struct stk_trace_format stk_trace_sacct;

#endif
