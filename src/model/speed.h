/* SPDX-License-Identifier: Apache-2.0 */
/* speed.h - how fast jobs are. In general: by kind of job, GPU type, spread and company, in
 * measured steps per second; a table that somebody else owns, of which docs/spec/simulator.md has
 * the file format. Or, as a job itself says it, relative to a speed of 1: in thousandths
 * (model/demand.h).
 */
#ifndef STK_MODEL_SPEED_H
#define STK_MODEL_SPEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/demand.h"
#include "model/time.h"

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

static inline bool stk_speed_measured(const struct stk_speeds *s, uint32_t row, uint32_t other,
                                      uint32_t type)
{
    return s->beside[((size_t)row * s->rows + other) * s->types + type] >= 0;
}

/* Whoever was not measured together does not disturb. */
static inline double stk_speed_beside(const struct stk_speeds *s, uint32_t row, uint32_t other,
                                      uint32_t type)
{
    double v = s->beside[((size_t)row * s->rows + other) * s->types + type];

    return v >= 0 ? v : stk_speed_alone(s, row, type, false);
}

/* What is done in this time at that speed, as time at speed 1; rounded down. */
static inline stk_time stk_speed_work(stk_time t, uint32_t milli)
{
    if (milli == STK_SPEED)
        return t;
    return t / STK_SPEED * milli + t % STK_SPEED * milli / STK_SPEED;
}

/* How long that much work takes at that speed, which is > 0; rounded up, and no longer than any
 * job. */
static inline stk_time stk_speed_time(stk_time work, uint32_t milli)
{
    stk_time t;

    if (milli == STK_SPEED || milli == 0)
        return work;
    t = (work * STK_SPEED + milli - 1) / milli;
    return t < STK_MAX_DURATION ? t : STK_MAX_DURATION;
}

#endif
