/* SPDX-License-Identifier: Apache-2.0 */
/* where.h - on which nodes a job may run, in words: nodes by name, and features that nodes must
 * have. Pure: each question is about one node. */
#ifndef STK_MODEL_WHERE_H
#define STK_MODEL_WHERE_H

#include <stdbool.h>

#include "base/err.h"

/* Whether the pattern names the node: "n7", or numbers in brackets, "n[1-4,7]", "r[1-2]n[01-16]".
 */
bool stk_where_names(const char *pattern, const char *node);

/* Whether a node with these features ("a,b"; may be NULL) and GPUs of this type (may be NULL) meets
 * the constraint: names with '&' or ',' (all) or '|' (one of) between them, and parentheses where
 * both are used. A type is also a feature, by any part of its name. 1: it does, 0: not; -EINVAL:
 * that is no constraint, and the sentence says what is wrong. */
int stk_where_meets(const char *constraint, const char *features, const char *gpu_type,
                    struct stk_err *err);

#endif
