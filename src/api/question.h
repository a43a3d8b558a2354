/* SPDX-License-Identifier: Apache-2.0 */
/* question.h - what "what if" is asked with: checked, and as it is kept. */
#ifndef STK_API_QUESTION_H
#define STK_API_QUESTION_H

#include <jansson.h>

#include "api/http.h"

/* 0, or the request has been answered with what is wrong. 'now' in seconds. */
int stk_question_check(struct stk_request *r, json_t *body, double now);

/* What is kept of it and shown: what was imported is not, but for how long it was and a number by
 * which the same text is known again. Without an end it is
 * that of "until". New reference. */
json_t *stk_question_shown(json_t *body, double until);

#endif
