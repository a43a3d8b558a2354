/* SPDX-License-Identifier: Apache-2.0 */
/* deadline.h - whether a job will have ended in time, by what is expected of it. */
#ifndef STK_FORECAST_DEADLINE_H
#define STK_FORECAST_DEADLINE_H

#include "forecast/forecast.h"

/* Whether it will have ended by its deadline: in nine cases of ten, in half of them, or not even
 * that. */
enum stk_deadline_answer {
    STK_DEADLINE_UNKNOWN, /* its end was not foreseen */
    STK_DEADLINE_FEASIBLE,
    STK_DEADLINE_AT_RISK,
    STK_DEADLINE_INFEASIBLE,
    STK_DEADLINE_LATE /* it is over */
};

struct stk_deadline {
    stk_time at;
    enum stk_deadline_answer answer;
    stk_time margin;   /* what is left then, in nine cases of ten; below 0: too little */
    stk_time earliest; /* the earliest deadline that would be feasible; 0: not known */
};

/* when: NULL: nothing is expected of it. */
struct stk_deadline stk_deadline_judge(stk_time deadline, stk_time now,
                                       const struct stk_expected *when);
const char *stk_deadline_name(enum stk_deadline_answer a);

#endif
