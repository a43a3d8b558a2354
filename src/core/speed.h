/* SPDX-License-Identifier: Apache-2.0 */
/* speed.h - jobs that are faster on some GPU types than on others (demand.speed_milli). Estimates
 * are for speed 1; a job goes as fast as its slowest GPU lets it. */
#ifndef STK_CORE_SPEED_H
#define STK_CORE_SPEED_H

#include "core/state.h"
#include "model/speed.h"

/* Of a job of this demand on these pieces, in thousandths. */
uint32_t stk_speed_on(const struct stk_state *s, const struct stk_demand *d,
                      const struct stk_piece *pieces, uint32_t n);

/* Of one that has a lease. */
static inline uint32_t stk_job_speed(const struct stk_state *s, const struct stk_job *j)
{
    const struct stk_demand *d = &s->shapes[j->shape].demand;

    return d->n_speeds ? stk_speed_on(s, d, &s->pieces[j->first_piece], j->n_pieces) : STK_SPEED;
}

/* The pool's types on which it has the greatest speed below *io_below, or a greater one; *io_below
 * is then that speed. 0: there is none. O(groups). */
uint64_t stk_speed_class(const struct stk_state *s, const struct stk_demand *d, uint32_t pool,
                         uint32_t *io_below);

/* How long so much work takes a job that waits on the slowest GPUs it may get. */
stk_time stk_speed_slowest(const struct stk_state *s, const struct stk_job *j, stk_time work);
/* How long a job that waits will run if it gets the slowest GPUs it may get. */
stk_time stk_speed_longest(const struct stk_state *s, const struct stk_job *j, stk_time now);

#endif
