/* SPDX-License-Identifier: Apache-2.0 */
/* solver.h - a running stoker-lp to ask. Started at the first question. */
#ifndef STK_HETERO_SOLVER_H
#define STK_HETERO_SOLVER_H

#include "base/err.h"
#include "lp/solve.h"

struct stk_solver;

int stk_solver_new(const char *path, struct stk_solver **ret, struct stk_err *err);
void stk_solver_free(struct stk_solver *s); /* NULL is a no-op */

/* As stk_lp_solve(); also -EPIPE and others when the program fails. */
int stk_solver_ask(struct stk_solver *s, const struct stk_lp *p, double *ret_z, double *ret_x,
                   struct stk_err *err);

#endif
