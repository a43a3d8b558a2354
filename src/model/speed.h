/* SPDX-License-Identifier: Apache-2.0 */
/* speed.h - how fast jobs are, by kind of job, GPU type, spread and company: measured steps per
 * second. A table that somebody else owns; docs/spec/simulator.md has the file format. */
#ifndef STK_MODEL_SPEED_H
#define STK_MODEL_SPEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stk_speeds {
    uint32_t rows, types;
    const double *alone;  /* rows x types x 2: on one node, over several; 0: cannot run there */
    const double *beside; /* rows x rows x types: own speed with the other on the same GPUs;
                             negative: not measured */
};

static inline double stk_speed_alone(const struct stk_speeds *s, uint32_t row, uint32_t type,
                                     bool spread)
{
    return s->alone[((size_t)row * s->types + type) * 2 + spread];
}

/* Whoever was not measured together does not disturb. */
static inline double stk_speed_beside(const struct stk_speeds *s, uint32_t row, uint32_t other,
                                      uint32_t type)
{
    double v = s->beside[((size_t)row * s->rows + other) * s->types + type];

    return v >= 0 ? v : stk_speed_alone(s, row, type, false);
}

#endif
