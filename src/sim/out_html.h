/* SPDX-License-Identifier: Apache-2.0 */
/* out_html.h - a report in one HTML file: figures, comparison, distributions, the cluster over
 * time, waits by tenant. It loads nothing, so it can be mailed or kept next to the trace. The page
 * itself is report.html; only the data is made here. */
#ifndef STK_SIM_OUT_HTML_H
#define STK_SIM_OUT_HTML_H

#include <stdint.h>

#include "base/err.h"
#include "sim/result.h"
#include "sim/trace.h"

/* Writes 'path' ("-": standard output). Runs without per-job rows or samples leave gaps in the
 * charts, no more. 0, -ENOMEM, or the file's error. */
int stk_out_html(const char *path, const struct stk_trace *t, const struct stk_run_result *runs,
                 uint32_t n_runs, const char *title, struct stk_err *err);

#endif
