/* SPDX-License-Identifier: Apache-2.0 */
/* baseline.h - a period beside a baseline, for commands that show one. */
#ifndef STK_CLI_BASELINE_H
#define STK_CLI_BASELINE_H

#include "cli/ask.h"
#include "cli/compare.h"

extern const struct stk_figure stk_baseline_figures[]; /* what is compared */

/* The answer of /v1/baselines/NAME/compare, over the command's --since and --until; 'since' is
 * where it begins when not said, NULL: at the baseline's end. 0, or the exit code after having said
 * why. */
int stk_baseline_compare(struct stk_ask *k, const char *name, const char *since, json_t **ret);
void stk_baseline_print(const struct stk_ask *k, const json_t *compared);

#endif
