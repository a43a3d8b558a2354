/* SPDX-License-Identifier: Apache-2.0 */
/* row.h - a row of the store as numbers: a few steps of one group. Inside src/series.
 *
 *     byte 0     1: the format
 *     byte 1     fields
 *     2, 3       members
 *     4, 5       steps
 *     6, 7       seconds of a step
 *     8 ...      float32, [step][member][field], least byte first
 */
#ifndef STK_SERIES_ROW_H
#define STK_SERIES_ROW_H

#include "series/series.h"

#define STK_ROW_HEAD 8u

struct stk_row_shape {
    uint32_t fields, members, steps, step_s;
};

size_t stk_row_size(const struct stk_row_shape *r);
void stk_row_put(const struct stk_row_shape *r, const float *values, unsigned char *bytes);
/* -EBADMSG: it is none. Fields that this program does not know are there all the same. */
int stk_row_get(const void *bytes, size_t len, struct stk_row_shape *ret);
float stk_row_value(const void *bytes, const struct stk_row_shape *r, uint32_t step,
                    uint32_t member, uint32_t field);

struct stk_fold { /* numbers on their way to be one */
    float sum, weight;
};
/* 'weight' counts for means: a number that stands for a longer time counts more. */
void stk_fold_add(struct stk_fold *f, enum stk_series_how how, float v, uint32_t weight);
float stk_fold_value(const struct stk_fold *f, enum stk_series_how how);

#endif
