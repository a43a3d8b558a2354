/* SPDX-License-Identifier: Apache-2.0 */
/* rules.h - what the keys of a description must be to each other. Called by the check, after each
 * key by itself was found right. -EBADMSG: the schema says the rule, too; -EINVAL: it does not. */
#ifndef STK_SPEC_RULES_H
#define STK_SPEC_RULES_H

#include <jansson.h>

#include "spec/spec.h"

struct stk_key_pair {
    const char *key, *other;
};
extern const struct stk_key_pair stk_spec_needs[]; /* has no meaning without; ends with NULL */

int stk_spec_rules(const json_t *spec, struct stk_fault *ret);

#endif
