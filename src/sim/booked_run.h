/* SPDX-License-Identifier: Apache-2.0 */
/* booked_run.h - reservations from a file (rules/booked.h) in a simulated run. */
#ifndef STK_SIM_BOOKED_RUN_H
#define STK_SIM_BOOKED_RUN_H

#include "rules/booked.h"
#include "sim/ruled.h"
#include "sim/trace.h"

/* Tenants are these, or the trace's own. */
int stk_booked_of_run(const struct stk_run_rules *f, const struct stk_trace *t,
                      const struct stk_cluster *c, const struct stk_tenant_spec *tenants,
                      uint32_t n_tenants, struct stk_booked **ret, struct stk_err *err);

#endif
