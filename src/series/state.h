/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - what is collected and not written yet; for collecting and for reading. */
#ifndef STK_SERIES_STATE_H
#define STK_SERIES_STATE_H

#include "series/row.h"

#define TABLE ((size_t)4 * STK_SERIES_MAX_GROUPS)

struct group {
    enum stk_series_kind kind;
    int64_t id;
    uint32_t members, width; /* width: members x fields */
    uint32_t calm;           /* minutes without a value */
    uint32_t steps;          /* of this minute */
    uint32_t step_s, room;   /* of the steps, and how many a minute has */
    struct stk_fold *now;    /* [width] */
    float *minute;           /* [step][width] */
    float *last;             /* [width]: the step before */
};

struct stk_series {
    stk_time step;
    stk_time minute; /* that is being collected; 0: none */
    bool went_on;    /* something was written in this life: no row is from before it */
    uint64_t quarter_bytes;
    struct group *list;
    uint32_t n, cap;
    uint32_t *table; /* place + 1, by hash */
};

struct group *stk_series_group(const struct stk_series *s, enum stk_series_kind kind, int64_t id);

#endif
