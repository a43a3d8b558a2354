/* SPDX-License-Identifier: Apache-2.0 */
/* out_table.h - runs side by side for a person: a row per run, '*' after the best of each column
 * (and colour on a terminal, unless NO_COLOR is set). On a narrow terminal the columns are folded
 * into blocks instead of wrapping. */
#ifndef STK_SIM_OUT_TABLE_H
#define STK_SIM_OUT_TABLE_H

#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "sim/result.h"

/* 0, -ENOMEM, or the error of 'f'. */
int stk_out_table(FILE *f, const struct stk_run_result *runs, uint32_t n_runs, struct stk_err *err);

#endif
