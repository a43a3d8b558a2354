/* SPDX-License-Identifier: Apache-2.0 */
/* err.h - the one error convention: return 0 or -Exxx, and a sentence for a person in an optional
 * stk_err. The sentence says what was wrong, where, and what is allowed. */
#ifndef STK_BASE_ERR_H
#define STK_BASE_ERR_H

#include <errno.h>

struct stk_err {
    char text[512];
};

/* Writes the sentence into 'err' (may be NULL) and returns 'rc', so that callers write
 *     return stk_err_set(err, -EINVAL, "gpus must be > 0, got %d", n);
 */
int stk_err_set(struct stk_err *err, int rc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
