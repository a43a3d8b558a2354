/* SPDX-License-Identifier: Apache-2.0 */
/* out_csv.h - a row per job, for plots and for comparing two schedulers job by job. Columns: id,
 * submit_s, first_start_s, end_s, wait_s, preemptions, nodes, with sim.each_s done_s; with several
 * runs 'bundle' comes first, and the runs follow one another. What never happened is an empty
 * field. */
#ifndef STK_SIM_OUT_CSV_H
#define STK_SIM_OUT_CSV_H

#include <stdint.h>

#include "base/err.h"
#include "sim/result.h"
#include "sim/trace.h"

/* Writes 'path' ("-": standard output). 0, -EINVAL when a run kept no rows, or the file's error. */
int stk_out_csv(const char *path, const struct stk_trace *t, const struct stk_run_result *runs,
                uint32_t n_runs, struct stk_err *err);

#endif
