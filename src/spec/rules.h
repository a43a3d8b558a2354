/* SPDX-License-Identifier: Apache-2.0 */
/* rules.h - what the keys of a description must be to each other. Called by the check, after each
 * key by itself was found right. */
#ifndef STK_SPEC_RULES_H
#define STK_SPEC_RULES_H

#include <jansson.h>

#include "spec/spec.h"

int stk_spec_rules(const json_t *spec, struct stk_fault *ret);

#endif
