/* SPDX-License-Identifier: Apache-2.0 */
/* trace_formats.c - every trace format, in the order in which they are asked "is this yours?".
 * A new format is a file with one struct stk_trace_format, and a line here. */
#include "sim/trace_formats.h"

#include <stddef.h>

const struct stk_trace_format *const stk_trace_formats[] = {
    &stk_trace_philly, &stk_trace_venus, &stk_trace_openb,
    &stk_trace_blox,   &stk_trace_jsonl, &stk_trace_gavel,
    &stk_trace_swf,    &stk_trace_sacct, NULL,
};
