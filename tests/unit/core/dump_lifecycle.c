/* SPDX-License-Identifier: Apache-2.0 */
/* dump_lifecycle.c - prints the table of legal moves, "state event -> state/state" or "-" a line,
 * for tests/e2e/test_spec.py to compare with the one in docs/spec. */
#include <stdio.h>

#include "core/lifecycle.h"

int main(void)
{
    for (unsigned s = 0; s < STK_JOB_STATE_MAX; s++) {
        for (unsigned t = 0; t < STK_EV_TYPE_MAX; t++) {
            unsigned to = stk_lifecycle_next((enum stk_job_state)s, (enum stk_event_type)t);
            const char *sep = "";

            (void)printf("%s %s -> ", stk_job_state_name((enum stk_job_state)s),
                         stk_event_type_name((enum stk_event_type)t));
            for (unsigned k = 0; k < STK_JOB_STATE_MAX; k++) {
                if (!(to & STK_STATE_BIT(k)))
                    continue;
                (void)printf("%s%s", sep, stk_job_state_name((enum stk_job_state)k));
                sep = "/";
            }
            (void)printf("%s\n", to ? "" : "-");
        }
    }
    return 0;
}
