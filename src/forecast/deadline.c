/* SPDX-License-Identifier: Apache-2.0 */
#include "forecast/deadline.h"

struct stk_deadline stk_deadline_judge(stk_time deadline, stk_time now,
                                       const struct stk_expected *when)
{
    struct stk_deadline d = {.at = deadline, .answer = STK_DEADLINE_UNKNOWN};

    if (now > deadline) {
        d.answer = STK_DEADLINE_LATE;
        d.margin = deadline - now;
    } else if (when && when->end_p50 != STK_NEVER_TIME && when->end_p90 != STK_NEVER_TIME) {
        d.answer = when->end_p90 <= deadline   ? STK_DEADLINE_FEASIBLE
                   : when->end_p50 <= deadline ? STK_DEADLINE_AT_RISK
                                               : STK_DEADLINE_INFEASIBLE;
        d.margin = deadline - when->end_p90;
        d.earliest = when->end_p90;
    }
    return d;
}

const char *stk_deadline_name(enum stk_deadline_answer a)
{
    static const char *const names[] = {"unknown", "feasible", "at_risk", "infeasible", "late"};

    return (unsigned)a < sizeof(names) / sizeof(*names) ? names[a] : "?";
}
