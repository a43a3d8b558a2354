/* SPDX-License-Identifier: Apache-2.0 */
/* solve.h - shares of time: which part of the time each job runs on each GPU type.
 *
 *     find x >= 0 and the largest z >= 0 with
 *         sum over types of speed[job][type] * x[job][type] >= z * weight[job] + need[job]
 *         sum over types of x[job][type] <= 1                   a job runs in one place at a time
 *         sum over jobs of gpus[job] * x[job][type] <= count[type]
 *
 * All weights 0: z does not matter, and the question is whether there is such an x at all.
 *
 * Where many x are as good as each other, the answer is one from the middle of them, as an interior
 * point method without crossover finds it: every job that can have something of a type has
 * something of it. A corner, as the simplex method finds it, is as good by the letter, but leaves
 * whole jobs out that could as well run, and another row order gives another corner.
 */
#ifndef STK_LP_SOLVE_H
#define STK_LP_SOLVE_H

#include <stdint.h>

struct stk_lp {
    uint32_t jobs, types;
    const double *count;                /* of each type */
    const double *gpus, *weight, *need; /* of each job */
    const double *speed;                /* jobs x types */
};

/* 0 with z and jobs x types shares from 0 to 1, -ERANGE: there is no such x, or -EIO. */
int stk_lp_solve(const struct stk_lp *p, double *ret_z, double *ret_x);

#endif
