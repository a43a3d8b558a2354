/* SPDX-License-Identifier: Apache-2.0 */
/* booked_run.h - reservations from a file (rules/booked.h) in a simulated run. */
#ifndef STK_SIM_BOOKED_RUN_H
#define STK_SIM_BOOKED_RUN_H

#include "rules/booked.h"
#include "sim/ruled.h"
#include "sim/trace.h"

struct stk_booked_run { /* what names mean; borrowed for the call */
    const struct stk_trace *trace;
    const struct stk_cluster *cluster;
    const struct stk_tenant_spec *tenants; /* these, or, when there are none, the trace's own */
    uint32_t n_tenants;
};

int stk_booked_of_run(const struct stk_run_rules *f, const struct stk_booked_run *x,
                      struct stk_booked **ret, struct stk_err *err);

#endif
