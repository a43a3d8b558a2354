/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.h - GPUs as lines with bars; shared by gpus and top. */
#ifndef STK_CLI_GPUS_H
#define STK_CLI_GPUS_H

#include <jansson.h>

#include "cli/term.h"

/* A line for each, then those of foreign processes. At most 'max' lines (0: all); returns how many
 * there were. */
int stk_gpu_lines(const json_t *gpus, const struct stk_term *t, int max);

#endif
