/* SPDX-License-Identifier: Apache-2.0 */
/* top.h - one frame of the live view, from the answer of /v1/cluster. */
#ifndef STK_CLI_TOP_H
#define STK_CLI_TOP_H

#include <jansson.h>

#include "cli/term.h"

enum stk_top_sort { STK_TOP_TIME, STK_TOP_GPUS, STK_TOP_USER, STK_TOP_SORTS };

struct stk_top {
    enum stk_top_sort sort;
    char filter[64]; /* only jobs whose name or user has this in it */
    bool typing;     /* the filter is being typed */
};

/* At most term->height lines, none wider than term->width. */
void stk_top_frame(const struct stk_top *top, const json_t *cluster, const struct stk_term *term);

#endif
