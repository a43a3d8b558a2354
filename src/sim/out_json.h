/* SPDX-License-Identifier: Apache-2.0 */
/* out_json.h - the totals of runs as {"runs":[{...}]}, for scripts. Members and their order are
 * part of the command line's contract: add at the end, never rename. A figure without a value is
 * null. */
#ifndef STK_SIM_OUT_JSON_H
#define STK_SIM_OUT_JSON_H

#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "sim/emit.h"
#include "sim/result.h"

/* 0, or -Exxx when 'f' could not be written. */
int stk_out_json(FILE *f, const struct stk_run_result *runs, uint32_t n_runs, struct stk_err *err);

/* The members of one run without the braces; the HTML report embeds them. */
void stk_out_json_members(struct stk_emit *e, const struct stk_run_result *r);

#endif
